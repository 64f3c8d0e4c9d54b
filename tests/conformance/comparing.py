"""A recording gone through again with our own decoder, context and encoder.

`compare` decodes every recorded answer into messages, answers its calls with the results that the next recorded
request holds, and encodes each request from our context. What the program said in between is taken from the
recording, what the model said never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bargein.models.providers.adapter import Adapter
from bargein.pipelines.agent.assembly import Response, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.messages import Message, Role, ToolCall, assistant, tool_answer
from bargein.pipelines.agent.request import AgentSettings, Request, derive_request
from tests.conformance.cassettes import Cassette
from tests.conformance.differences import Difference, differences
from tests.conformance.evidence import Evidence
from tests.conformance.reading import Recorded, Turn, read

__all__ = ["Verdict", "compare", "decode"]


@dataclass(slots=True)
class Verdict:
    """What became of one file."""

    name: str
    found: list[Difference] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The kinds of its justified differences, once each."""
        return sorted({each.kind for each in self.found if each.kind})

    @property
    def unexplained(self) -> list[Difference]:
        """Its differences that nothing justifies."""
        return [each for each in self.found if not each.kind]

    @property
    def grade(self) -> str:
        """``exact``, ``justified`` or ``different``."""
        return "different" if self.unexplained else "justified" if self.found else "exact"

    def __str__(self) -> str:
        why = f" ({', '.join(self.kinds)})" if self.grade == "justified" else ""
        faults = "".join(f"\n    {each}" for each in self.unexplained[:5])
        return f"{self.grade:9}  {self.name}{why}{faults}"


def decode(adapter: Adapter, pieces: Sequence[bytes], epoch: int = 1) -> tuple[Response, StreamEnd]:
    """One answer, from its bytes in ``pieces``."""
    decoder, assembler = adapter.decoder(), ResponseAssembler()
    items = [item for piece in pieces for item in decoder.feed(piece)] + decoder.finish()
    *deltas, end = items
    for delta in deltas:
        assert not isinstance(delta, StreamEnd)
        assembler.feed(delta)
    assert isinstance(end, StreamEnd)
    return assembler.finish(epoch, Context()), end


def compare(cassette: Cassette) -> Verdict:
    """Go through one recording."""
    verdict = Verdict(cassette.name)
    walk = _Walk(cassette)
    for number in range(len(cassette.exchanges)):
        try:
            found = walk.exchange(number)
        except Exception as error:  # a recording that stumps us is a finding about its file, not the end of the report
            found = [Difference("the whole", f"{type(error).__name__}: {error}", None)]
        verdict.found += [replace(each, place=f"request {number}: {each.place}") for each in found]
    return verdict


class _Walk:
    """The way through one recording: the answers decoded so far, and what stood before."""

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._evidence = Evidence()
        self._answers: list[Message] = []
        self._before: Recorded | None = None
        self._sent: list[Message] = []

    def exchange(self, number: int) -> list[Difference]:
        """Compare the request of an exchange, then take its answer."""
        exchange = self._cassette.exchanges[number]
        adapter = self._cassette.adapter(exchange.request)
        recorded = read(self._cassette.wire, exchange.request)
        chained = "previous_response_id" in exchange.request
        messages, found = self._conversation(recorded, chained)
        context = Context()
        for message in messages:
            context.push(message)
        context.validate()
        if exchange.streamed:
            ours = adapter.encode(_request(recorded, context, exchange.request.get("model", "")))
            found += differences(ours, exchange.request, self._evidence)
            refusal = adapter.rules(ours)
            if refusal is not None:
                found.append(Difference("the whole", refusal, None))
            self._evidence.add(exchange.answer)
            said = decode(adapter, [exchange.answer], epoch=number + 1)[0].assistant_message()
            self._sent = [*messages, *([] if said is None else [said])]
            self._answers += [] if said is None else [said]
        self._before = recorded
        return found

    def _conversation(self, recorded: Recorded, chained: bool) -> tuple[list[Message], list[Difference]]:
        """The conversation of a request: the recorded turns, with our answers where the recording has the model's.

        Where the provider keeps what went before (``chained``), our own context does too.
        """
        earlier = [message for message in self._sent if message.role is not Role.SYSTEM] if chained else []
        own = {} if chained else self._own(recorded.turns)
        messages: list[Message] = []
        edits: list[Difference] = []
        calls: dict[str, list[ToolCall]] = {}
        for call in (call for message in earlier for call in message.calls):
            calls.setdefault(call.provider_id or call.name, []).append(call)
        for at, turn in enumerate(recorded.turns):
            if turn.role == "tool":
                # The oldest call of this id, or of this name where the wire has no ids.
                messages.append(tool_answer(calls[turn.call].pop(0).id, turn.content, turn.is_error))
            elif turn.role == "assistant":
                message = _foreign(turn, at)
                if at in own:
                    message, more = self._as_edited(own[at], turn, recorded)
                    edits += more
                for call in message.calls:
                    calls.setdefault(call.provider_id or call.name, []).append(call)
                messages.append(message)
            else:
                messages.append(Message(Role.SYSTEM if turn.role == "system" else Role.USER, tuple(turn.parts)))
        head = sum(turn.role == "system" for turn in recorded.turns)
        return [*messages[:head], *earlier, *messages[head:]] if chained else messages, edits

    def _own(self, turns: Sequence[Turn]) -> dict[int, Message]:
        """Which of our answers stands where: the one that says the same, else the one whose turn it is."""
        models = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
        answers = self._answers[-len(models) :] if models else []
        own = dict(zip(models[-len(answers) :], answers, strict=True)) if answers else {}
        for at in models:
            same = [each for each in self._answers if _says(each, turns[at])]
            if same:
                own[at] = same[-1] if own.get(at) not in same else own[at]
        return own

    def _as_edited(self, message: Message, turn: Turn, recorded: Recorded) -> tuple[Message, list[Difference]]:
        """Our answer with the edits that the recorded program made to it, each proved by the answer itself."""
        edits: list[Difference] = []
        before = [] if self._before is None else self._before.turns
        if recorded.turns[: len(before)] != before:
            quoted = message
            if not turn.reasons and _reasons(message):
                quoted = replace(quoted, provider_data=None)
            if not turn.text and message.text:
                quoted = quoted.with_text("")
            if quoted is not message:
                edits.append(Difference("an answer", message.to_dict(), None, "program_edit"))
                message = quoted
        ids = {asked.id for asked in turn.calls}
        if len(turn.calls) < len(message.calls) and all(call.provider_id for call in message.calls):
            kept = tuple(p for p in message.parts if type(p) is not ToolCall or p.provider_id in ids)
            edits.append(Difference("an answer", len(message.calls), len(turn.calls), "program_edit"))
            message = replace(message, parts=kept, provider_data=None)
        for ours, theirs in zip(message.calls, turn.calls, strict=False):
            renamed = ours.name != theirs.name and ours.arguments == theirs.arguments
            changed = ours.arguments != theirs.arguments
            if (renamed and self._evidence.holds("name", ours.name)) or (
                changed and self._evidence.called(ours.name, ours.arguments)
            ):
                edits.append(Difference(f"call {ours.id}", ours.name, theirs.name, "program_edit"))
                fixed = replace(ours, name=theirs.name, arguments=theirs.arguments)
                message = replace(message, parts=tuple(fixed if part is ours else part for part in message.parts))
        return message, edits


def _says(message: Message, turn: Turn) -> bool:
    """Whether an answer and a recorded turn have the same calls, or without calls the same text."""
    if not turn.calls or not message.calls:
        return not turn.calls and not message.calls and turn.text == message.text
    ours = [(call.provider_id, call.name, call.arguments) for call in message.calls]
    theirs = [
        (asked.id if own[0] else "", asked.name, asked.arguments) for asked, own in zip(turn.calls, ours, strict=False)
    ]
    return ours == theirs and len(turn.calls) == len(ours) and (not turn.text or turn.text == message.text)


def _reasons(message: Message) -> bool:
    data = message.provider_data or {}
    return "members" in data or any("item" in each for each in data.get("order", ()))


def _foreign(turn: Turn, at: int) -> Message:
    """An answer that was there before the recording began."""
    calls = [ToolCall(f"t0.{at * 100 + n}", each.name, each.arguments, each.id) for n, each in enumerate(turn.calls)]
    return assistant(turn.text, tuple(calls))


def _request(recorded: Recorded, context: Context, model: str) -> Request:
    settings = AgentSettings(
        model=model,
        max_context_tokens=10**9,
        temperature=recorded.temperature,
        max_tokens=recorded.max_tokens,
        additional_params=recorded.params,
    )
    return derive_request(settings, context.messages, recorded.tools)
