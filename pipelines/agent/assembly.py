"""From streamed deltas to one response: text, complete calls, and calls that could not be read.

Fed by the runner while a response streams. Fragments are kept per index in any order and any split; nothing is
parsed before `ResponseAssembler.finish`, so partial JSON never runs (tool contract, item 3 and "Assembly").
A delta that breaks a rule raises and changes nothing. Left out: warming up connections, which belongs to the
provider, and running anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from json import dumps, loads
from typing import Any

from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import CallDelta, Delta, ResponseData, TextDelta
from bargein.pipelines.agent.messages import Message, ToolCall, assistant
from bargein.pipelines.wordings import UNKNOWN_TOOL_NAME

__all__ = [
    "AssembleError",
    "BufferFull",
    "ConflictingCallProviderData",
    "ConflictingId",
    "ConflictingName",
    "ConflictingResponseProviderData",
    "InvalidCall",
    "Response",
    "ResponseAssembler",
    "TooManyCalls",
]

MAX_BYTES = 256 * 1024
MAX_CALLS = 32
SLOT_BYTES = 64
"""What opening a call costs of the buffer, so that empty fragments cannot grow it for ever."""


class AssembleError(ValueError):
    """A delta that was refused; what was assembled before it stands."""


class ConflictingId(AssembleError):
    """A second, different id for one call."""


class ConflictingName(AssembleError):
    """A second, different name for one call."""


class ConflictingCallProviderData(AssembleError):
    """Second, different provider data for one call."""


class ConflictingResponseProviderData(AssembleError):
    """Second, different provider data for the response."""


class BufferFull(AssembleError):
    """The response holds as many bytes as it may."""


class TooManyCalls(AssembleError):
    """The response asks for more calls than it may."""


@dataclass(frozen=True, slots=True)
class InvalidCall:
    """A call that could not be read; it is answered with an error and never runs.

    Attributes:
        id: its internal id, in sequence with its valid siblings.
        name: the name that arrived, or ``unknown_tool``.
        raw: the argument text as it came.
        reason: what is wrong with it.
    """

    id: str
    name: str
    raw: str
    reason: str
    provider_id: str = ""
    provider_data: Any = None


@dataclass(frozen=True, slots=True)
class Response:
    """One complete response of the model."""

    text: str
    calls: tuple[ToolCall | InvalidCall, ...]
    provider_data: Any = None

    def assistant_message(self) -> Message | None:
        """The message for the context, or ``None`` without text and calls; provider data alone makes none.

        A call that could not be read is recorded under its name with empty arguments, so that the context stays
        valid and its error result explains.
        """
        if not self.text and not self.calls:
            return None
        calls = tuple(
            [
                call
                if type(call) is ToolCall
                else ToolCall(call.id, call.name, {}, call.provider_id, call.provider_data)
                for call in self.calls
            ]
        )
        return assistant(self.text, calls, self.provider_data)


class _Slot:
    __slots__ = ("arguments", "id", "name", "provider_data")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.provider_data: Any = None


class ResponseAssembler:
    """Collects one response.

    Args:
        max_bytes: what text, arguments, names, slots and provider data may take together.
        max_calls: how many calls one response may open.
    """

    __slots__ = ("_bytes", "_calls", "_data", "_over", "_text", "max_bytes", "max_calls")

    def __init__(self, max_bytes: int = MAX_BYTES, max_calls: int = MAX_CALLS) -> None:
        self.max_bytes = max_bytes
        self.max_calls = max_calls
        self._text: list[str] = []
        self._calls: dict[int, _Slot] = {}
        self._data: Any = None
        self._bytes = 0
        self._over = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def call_count(self) -> int:
        """The calls opened so far."""
        return len(self._calls)

    def feed(self, delta: Delta) -> None:
        """Take one delta.

        Raises:
            AssembleError: it was refused and not applied; one of the subclasses says why.
            RuntimeError: the response was finished or cancelled.
        """
        if self._over:
            self._still_open()
        if type(delta) is TextDelta:  # the hot path: dozens a second of speech
            text = delta.text
            size = self._bytes + (len(text) if text.isascii() else _size(text))
            if size > self.max_bytes:
                self._charge(size - self._bytes)
            self._bytes = size
            self._text.append(text)
        elif type(delta) is CallDelta:
            self._feed_call(delta)
        elif type(delta) is ResponseData:
            self._feed_data(delta)

    def _feed_data(self, delta: ResponseData) -> None:
        if delta.value is None or delta.value == self._data:
            return
        if self._data is not None:
            raise ConflictingResponseProviderData("the response already has other provider data")
        self._charge(_size(dumps(delta.value, ensure_ascii=False)))
        self._data = delta.value

    def _feed_call(self, delta: CallDelta) -> None:
        slot = self._calls.get(delta.index)
        if slot is None and len(self._calls) >= self.max_calls:
            raise TooManyCalls(f"a response may ask for {self.max_calls} calls; index {delta.index} is one more")
        seen = slot or _Slot()
        if delta.id and seen.id and delta.id != seen.id:
            raise ConflictingId(f"call {delta.index} has the id {seen.id}; {delta.id} is another")
        if delta.name and seen.name and delta.name != seen.name:
            raise ConflictingName(f"call {delta.index} has the name {seen.name}; {delta.name} is another")
        new_data = delta.provider_data is not None and delta.provider_data != seen.provider_data
        if new_data and seen.provider_data is not None:
            raise ConflictingCallProviderData(f"call {delta.index} already has other provider data")
        cost = _size(delta.arguments) + (SLOT_BYTES if slot is None else 0)
        if delta.id and not seen.id:
            cost += _size(delta.id)
        if delta.name and not seen.name:
            cost += _size(delta.name)
        if new_data:
            cost += _size(dumps(delta.provider_data, ensure_ascii=False))
        self._charge(cost)
        if slot is None:
            self._calls[delta.index] = seen
        seen.id = seen.id or delta.id or ""
        seen.name = seen.name or delta.name or ""
        if delta.arguments:
            seen.arguments.append(delta.arguments)
        if new_data:
            seen.provider_data = delta.provider_data

    def _charge(self, size: int) -> None:
        if self._bytes + size > self.max_bytes:
            raise BufferFull(f"a response may hold {self.max_bytes} bytes; {self._bytes} are used and {size} more came")
        self._bytes += size

    def finish(self, epoch: int, context: Context) -> Response:
        """Parse what was collected, once, in time linear in its bytes.

        Args:
            epoch: the turn, for the calls' ids.
            context: mints the ids; it already holds every earlier response of the turn.
        """
        self._still_open()
        self._over = True
        ids = context.next_call_ids(epoch, len(self._calls)) if self._calls else []
        slots = [slot for _, slot in sorted(self._calls.items())] if self._calls else []
        calls = tuple([_parse(call_id, slot) for call_id, slot in zip(ids, slots, strict=True)])
        return Response("".join(self._text), calls, self._data)

    def cancel(self) -> None:
        """Throw the response away; nothing can be had from it afterwards."""
        self._still_open()
        self._over = True
        self._text.clear()
        self._calls.clear()
        self._data = None

    def _still_open(self) -> None:
        if self._over:
            raise RuntimeError("this response was finished or cancelled; start another assembler")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _parse(call_id: str, slot: _Slot) -> ToolCall | InvalidCall:
    raw = "".join(slot.arguments)

    def invalid(reason: str) -> InvalidCall:
        return InvalidCall(call_id, slot.name or UNKNOWN_TOOL_NAME, raw, reason, slot.id, slot.provider_data)

    if not slot.name:
        return invalid("the call has no name")
    if not raw or raw.isspace():
        return ToolCall(call_id, slot.name, {}, slot.id, slot.provider_data)
    try:
        arguments = loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return invalid(f"the arguments are not JSON: {error}")
    if type(arguments) is not dict:
        return invalid("the arguments are not a JSON object")
    return ToolCall(call_id, slot.name, arguments, slot.id, slot.provider_data)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
