"""What comes back over the bus for an agent run: a model's answer, whole or streamed, and a tool's reply.

A streamed answer is folded into parts as it arrives, one part per item of the provider, in the provider's order; what
it is at the end is what a unary one is at once (run contract, sections 1 and 4). Left out: judging it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any

from bargein.pipelines.agent.deltas import CallDelta, ResponseData, StreamEnd, TextDelta
from bargein.pipelines.agent.parts import AssistantHead, CallPart, ImagePart, JsonPart, OpaquePart, Part, TextPart
from bargein.sim.effects.reports import Report

__all__ = ["Answer", "CallDone", "PartDone", "StreamError", "StreamFold", "ToolReply", "ToolRequest", "family_of"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's whole answer.

    Attributes:
        finish: why it stopped.
        usage: what it cost, counter by counter; one the wire did not send is absent or ``None``.
    """

    parts: tuple[Part, ...]
    finish: str = "stop"
    usage: Mapping[str, int | None] = field(default_factory=dict)
    raw: Any = None

    @property
    def head(self) -> AssistantHead:
        """What the stored message keeps of the whole."""
        return AssistantHead("", self.finish, self.raw)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call as it goes to its handler.

    Attributes:
        args: compact JSON text.
        context: values from the run, for the handler only; no record has them.
        outputs: what the handler publishes beside its reply.
    """

    name: str
    args: str
    context: Mapping[str, Any] = field(default_factory=dict, compare=False)
    outputs: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def arguments(self) -> Any:
        """The arguments, read."""
        return loads(self.args)

    def publish(self, name: str, value: Any) -> None:
        """Hand a value back beside the reply."""
        self.outputs[name] = value

    def to_dict(self) -> dict[str, Any]:
        """As a record holds it."""
        return {"name": self.name, "args": self.args}


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a tool answers; ``status`` is ok, error or refused."""

    items: tuple[TextPart | ImagePart | JsonPart, ...]
    status: str = "ok"


def family_of(value: Any) -> str:
    """To which family of effects an outcome's value belongs."""
    return "completion" if isinstance(value, Answer | StreamEnd) else "tool_call"


@dataclass(slots=True)
class PartDone:
    """A stream's item that is a whole part: reasoning, a picture, something opaque, or a call in one piece."""

    part: Part


@dataclass(slots=True)
class CallDone:
    """The call at ``index`` is complete; the number may be used again for another."""

    index: int


@dataclass(slots=True)
class StreamError:
    """The stream broke here; what came before stands, and nothing counts that comes after."""

    report: Report


@dataclass(slots=True, eq=False)
class Block:
    """A part that is still streaming in.

    Attributes:
        call_id: internal id, of a call.
        named_at: position of the item that named the call.
    """

    whole: Part | None = None
    text: str = ""
    call_id: str = ""
    provider_id: str = ""
    name: str | None = None
    arguments: str = ""
    native: Any = None
    named_at: int = -1

    def part(self) -> Part:
        """As far as it came."""
        if self.whole is not None:
            return self.whole
        if self.call_id:
            return CallPart(self.call_id, self.name or "", _read(self.arguments), self.provider_id, self.native)
        return TextPart(self.text)


class StreamFold:
    """The parts of an answer as it streams in.

    Args:
        scope: names the run; the ids of its calls begin with it.
        first_call: number of the first one.
    """

    def __init__(self, scope: str, first_call: int) -> None:
        self._scope = scope
        self.calls = first_call
        self.blocks: list[Block] = []
        self.items = 0
        self.end = StreamEnd()
        self._open: dict[int, Block] = {}

    def feed(self, item: Any) -> None:
        """Take the next item."""
        if isinstance(item, TextDelta):
            last = self.blocks[-1] if self.blocks else None
            if last is None or last.whole is not None or last.call_id:
                last = Block()
                self.blocks.append(last)
            last.text += item.text
        elif isinstance(item, CallDelta):
            self._call(item)
        elif isinstance(item, CallDone):
            self._open.pop(item.index, None)
        elif isinstance(item, PartDone):
            self._whole(item.part)
        elif isinstance(item, ResponseData):
            self._whole(OpaquePart(item.value))
        elif isinstance(item, StreamEnd):
            self.end = item
        self.items += 1

    def _call(self, item: CallDelta) -> None:
        block = self._open.get(item.index)
        if block is None:
            block = self._open[item.index] = Block(call_id=self._mint())
            self.blocks.append(block)
        if item.id:
            block.provider_id = item.id
        if item.name and block.name is None:
            block.name, block.named_at = item.name, self.items
        if item.provider_data is not None:
            block.native = item.provider_data
        block.arguments += item.arguments

    def _whole(self, part: Part) -> None:
        if type(part) is CallPart:
            call_id = part.id or self._mint()
            whole = CallPart(call_id, part.name, part.arguments, part.provider_id, part.native)
            self.blocks.append(Block(whole, call_id=call_id, name=part.name, named_at=self.items))
        else:
            self.blocks.append(Block(part))

    def _mint(self) -> str:
        self.calls += 1
        return f"{self._scope}.{self.calls - 1}"

    def parts(self) -> tuple[Part, ...]:
        """What there is so far."""
        return tuple([block.part() for block in self.blocks])

    def prefix(self, block: Block) -> tuple[Part, ...]:
        """What there was when ``block`` was named: itself last, without its arguments."""
        before = [each.part() for each in self.blocks[: self.blocks.index(block)]]
        named = CallPart(block.call_id, block.name or "", {}, block.provider_id)
        return (*before, named if block.whole is None else block.whole)

    def answer(self, outcome: Any) -> Answer:
        """The whole answer; ``outcome`` may bring how it ended."""
        end = outcome if isinstance(outcome, StreamEnd) else self.end
        return Answer(self.parts(), end.reason, dict(end.usage))


def is_answerless(answer: Answer) -> bool:
    """Whether there is no text, no call and no picture in it; thoughts are no answer."""
    return not any(
        isinstance(part, CallPart | ImagePart) or (type(part) is TextPart and part.text) for part in answer.parts
    )


def is_empty(parts: tuple[Part, ...]) -> bool:
    """Whether nothing was said at all: no parts, or one text that is empty and bare."""
    if not parts:
        return True
    only = parts[0]
    return len(parts) == 1 and type(only) is TextPart and not only.text and not only.annotations


def render_args(arguments: Any) -> str:
    """A call's arguments as they are dispatched."""
    return dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _read(arguments: str) -> Any:
    if not arguments:
        return {}
    try:
        return loads(arguments)
    except ValueError:
        return arguments
