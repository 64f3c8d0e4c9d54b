"""A recording driven as agent runs: the first request is the program, and the runs have to ask every later one.

`drive` sets up an agent from the first recorded request. Its model streams the recorded answers one after the other,
its tools answer with the results that the next recorded request holds, the later call first. What else the recorded
program did between two requests is done the way a run allows: a hook stores what it said, patches the request or
repairs a call, and counts as ``program_edit``. Where a run settles and the recording goes on, the next run has its
history. No assistant turn is ever taken from the recording; ``comparing`` does the same without runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bargein.models.providers.adapter import Adapter, Item
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.fold import Completion
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.agent.parts import RunMessage
from bargein.pipelines.agent.request import Request
from bargein.pipelines.agent.run import AgentRun
from bargein.pipelines.agent.run_settings import Agent, ToolAccess
from bargein.pipelines.agent.run_state import Resolution, ResolutionKind
from bargein.sim.effects.bus import Effect, EffectBus, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.conformance.cassettes import Cassette
from tests.conformance.comparing import Verdict, decode
from tests.conformance.differences import Difference, differences
from tests.conformance.evidence import Evidence
from tests.conformance.programs import news, preamble, quoted, said
from tests.conformance.reading import Asked, read

__all__ = ["Driven", "drive"]

PIECE_BYTES = 256
"""So much of an answer arrives at a time: less than most events."""
PIECE_US = 1_000
TOOL_US = 50_000
CONCURRENCY = 8
UNRECORDED = "no request with this result was recorded"


@dataclass(slots=True)
class Driven(Verdict):
    """What became of one file: its differences, and how many runs and requests it took."""

    runs: int = 0
    requests: int = 0

    def __str__(self) -> str:
        first, *rest = Verdict.__str__(self).splitlines()
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return "\n".join([f"{first}: {self.requests} requests, {runs}", *rest])


def drive(cassette: Cassette) -> Driven:
    """Drive one recording."""
    verdict = Driven(cassette.name)
    try:
        _Driving(cassette, verdict).go()
    except Exception as error:  # a recording that stumps us is a finding about its file, not the end of the report
        verdict.found.append(Difference("the whole", f"{type(error).__name__}: {error}", None))
    return verdict


class _Driving:
    """One agent, its world, and how far the recording has been asked."""

    def __init__(self, cassette: Cassette, verdict: Driven) -> None:
        self.verdict = verdict
        self._cassette = cassette
        self._recorded = [read(cassette.wire, each.request) for each in cassette.exchanges]
        self._evidence = Evidence()
        self._asked = [self._pairs(number) for number in range(len(self._recorded))]
        self._replies: dict[str, list[str]] = {}
        self._begins = 0
        self._clock = Clock()
        hooks = Hooks()
        hooks.on(At.BEFORE_REQUEST, self._as_the_program)
        hooks.on(At.INVALID_CALL, self._repair)
        bus = EffectBus(self._clock)
        agent = self._program()
        bus.register(agent.model.key, _Handler(self._answer))
        for grant in agent.grants:
            bus.register(grant.key, _Handler(self._result))
        self._agent = AgentRun(agent, bus, self._clock, hooks=hooks)

    def _program(self) -> Agent:
        """The agent that the first request shows; a tool whose calls were repaired into another's is not allowed."""
        first = self._recorded[0]
        repaired = {call.name for pairs in self._asked for call, asked in pairs if call.name != asked.name}
        allowed = tuple([tool.name for tool in first.tools if tool.name not in repaired])
        agent = Agent.named(
            "recorded",
            preamble=preamble(first),
            temperature=first.temperature,
            max_tokens=first.max_tokens,
            additional_params=first.params,
            concurrency=CONCURRENCY,
            tool_access=ToolAccess(allowed=allowed),
        )
        for tool in first.tools:
            agent.grant(tool.name, tool.description, tool.parameters)
        return agent

    def go(self) -> None:
        """Start runs until every recorded request was asked, or one is not."""
        history: tuple[RunMessage, ...] = ()
        while (begins := self.verdict.requests) < len(self._recorded):
            self._begins = begins
            turns = [turn for turn in self._recorded[begins].turns if turn.role != "system"]
            fresh = [said(turn) for turn in (news(turns, "user") if begins else turns)]
            if fresh:
                history = self._run([*history, *fresh[:-1]], fresh[-1])
            if self.verdict.requests == begins:
                self._note(begins, Difference("the whole", "never asked", None))
                return

    def _run(self, history: list[RunMessage], prompt: RunMessage) -> tuple[RunMessage, ...]:
        """One run, to its end. Returns its messages."""
        left = len(self._recorded) - self.verdict.requests
        run = self._agent.start(prompt, history, streamed=True, max_turns=left)
        self._clock.run()
        self.verdict.runs += 1
        return run.history.messages()

    # -- the model ----------------------------------------------------------------------------------------

    def _answer(self, effect: Effect) -> None:
        """Compare what is asked with what was recorded, then stream what was answered."""
        number = self.verdict.requests
        self.verdict.requests += 1
        exchange = self._cassette.exchanges[number]
        adapter = self._cassette.adapter(exchange.request)
        ours = adapter.encode(_voiced(effect.payload))
        found = list(differences(ours, exchange.request, self._evidence))
        refusal = adapter.rules(ours)
        if refusal is not None:
            found.append(Difference("the whole", refusal, None))
        self._note(number, *found)
        self._evidence.add(exchange.answer)
        self._expect(number)
        for at_us, item in _streamed(adapter, exchange.answer):
            if isinstance(item, StreamEnd):
                self._clock.call_in(at_us, Order.DELIVERY, effect.land, Outcome(Status.OK, item))
            else:
                self._clock.call_in(at_us, Order.DELIVERY, effect.deliver, item)

    def _pairs(self, number: int) -> list[tuple[ToolCall, Asked]]:
        """The calls of a recorded answer, each with what the next request shows of it."""
        if number + 1 == len(self._recorded):
            return []
        exchange = self._cassette.exchanges[number]
        answer = decode(self._cassette.adapter(exchange.request), [exchange.answer])[0].assistant_message()
        shown = [turn.calls for turn in self._recorded[number + 1].turns if turn.role == "assistant"]
        return list(zip(answer.calls, shown[-1], strict=False)) if answer is not None and shown else []

    def _expect(self, number: int) -> None:
        """Find what the calls of an answer come to in the request after it."""
        self._replies = {}
        results: dict[str, list[str]] = {}
        for turn in news(self._recorded[number + 1].turns, "tool") if self._asked[number] else ():
            results.setdefault(turn.call, []).append(turn.content)
        for call, asked in self._asked[number]:
            for key in (call.provider_id, asked.name):  # the name, where the wire has no ids
                if results.get(key):
                    self._replies.setdefault(asked.name, []).append(results[key].pop(0))
                    break

    # -- the tools ----------------------------------------------------------------------------------------

    def _result(self, effect: Effect) -> None:
        """Answer a call as recorded; of several, the later one first, which must not show."""
        replies = self._replies.get(effect.payload.name, [])
        left = sum(len(each) for each in self._replies.values())
        value = replies.pop(0) if replies else UNRECORDED
        self._clock.call_in(TOOL_US * max(left, 1), Order.DELIVERY, effect.land, Outcome(Status.OK, value))

    # -- the program --------------------------------------------------------------------------------------

    def _as_the_program(self, moment: Moment) -> None:
        """Do before a request what the recorded program did before its own."""
        number = self.verdict.requests
        if number in (0, len(self._recorded)):
            return
        first, before, now = self._recorded[0], self._recorded[number - 1], self._recorded[number]
        if number > self._begins:
            for turn in news(now.turns, "user"):
                self._edited(number, "what is said", turn.text)
                moment.runs.store(moment.run, said(turn))
        if now.tools != first.tools:
            names = [tool.name for tool in now.tools]
            self._edited(number, "the tools on offer", names)
            moment.patch(RequestPatch(active_tools=tuple(names)))
        if (instructions := preamble(now)) != preamble(first):
            self._edited(number, "the preamble", instructions)
            moment.patch(RequestPatch(preamble=instructions))
        chained = "previous_response_id" in self._cassette.exchanges[number].request
        if not chained and now.turns[: len(before.turns)] != before.turns:
            self._edited(number, "the history", "the last answer and what follows it")
            moment.patch(RequestPatch(history=quoted(moment.run, now)))

    def _repair(self, moment: Moment) -> None:
        """Repair a call that no tool answers, where the recorded program did."""
        assert moment.invalid is not None
        number, name = self.verdict.requests, moment.invalid.call.name
        for call, asked in self._asked[number - 1]:
            if call.name == name != asked.name:
                self._edited(number, f"call of {name}", asked.name)
                moment.resolve(Resolution(ResolutionKind.REPAIR, asked.name))
                return

    def _edited(self, number: int, what: str, recorded: Any) -> None:
        self._note(number, Difference(what, "as the run has it", recorded, "program_edit"))

    def _note(self, number: int, *found: Difference) -> None:
        self.verdict.found += [replace(each, place=f"request {number}: {each.place}") for each in found]


class _Handler:
    """Serves a key with a function; nothing here is ever cancelled."""

    def __init__(self, serve: Callable[[Effect], object]) -> None:
        self._serve = serve

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        self._serve(effect)
        return None


def _voiced(asked: Completion) -> Request:
    """What a run asks, as the adapters take it."""
    return Request(asked.messages, asked.tools, asked.temperature, asked.max_tokens, asked.additional_params)


def _streamed(adapter: Adapter, answer: bytes) -> list[tuple[int, Item]]:
    """The items of an answer, with how long after the request each comes; the end is the last of them."""
    decoder = adapter.decoder()
    pieces = [answer[at : at + PIECE_BYTES] for at in range(0, len(answer), PIECE_BYTES)]
    items = [((at + 1) * PIECE_US, item) for at, piece in enumerate(pieces) for item in decoder.feed(piece)]
    return items + [((len(pieces) + 1) * PIECE_US, item) for item in decoder.finish()]
