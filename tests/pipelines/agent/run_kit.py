"""A world for agent runs: a model that answers from a list, tools that take their time, and what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bargein.pipelines.agent.answers import Answer, ToolReply
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.endings import Failed, Failure, Settled
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.parts import CallPart, Part, RunMessage, TextPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.reports import Report, provider_response
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order

MS = 1_000
S = 1_000_000
LETTERS = {EffectKind.COMPLETION: "C", EffectKind.TOOL_CALL: "T", EffectKind.CUSTOM: "X", EffectKind.RETRIEVAL: "R"}
BUSY = provider_response(503, {"error": {"code": "overloaded"}})
SCHEMA = {"type": "object", "properties": {"people": {}, "day": {}}, "required": ["day", "people"]}


def text(said: str, usage: int = 0) -> Answer:
    return Answer((TextPart(said),), usage={"total": usage} if usage else {})


def call(name: str, id: str = "c1", **arguments: Any) -> CallPart:
    return CallPart(id, name, arguments, f"p-{id}")


def calls(*parts: Part, usage: int = 0) -> Answer:
    return Answer(tuple(parts), "tool_calls", {"total": usage} if usage else {})


class Model:
    """Answers requests in turn: an answer, a report, a stream of (instant after the request, item), or nothing."""

    def __init__(self, clock: Clock, *script: Any, delay_us: int = 0) -> None:
        self.clock = clock
        self.script = list(script)
        self.delay_us = delay_us
        self.requests: list[dict[str, Any]] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        self.requests.append(effect.payload.request.to_dict())
        said = self.script.pop(0)
        if said is None:
            return None
        if not isinstance(said, list):
            failed = isinstance(said, Report)
            outcome = Outcome(Status.FAILED if failed else Status.OK, said)
            timer = self.clock.call_in(self.delay_us, Order.DELIVERY, effect.land, outcome)
            return lambda _: timer.cancel()
        timers = []
        for at_us, item in said:
            done = isinstance(item, StreamEnd | Outcome)
            act = effect.land if done else effect.deliver
            outcome = item if isinstance(item, Outcome) else Outcome(Status.OK, item)
            timers.append(self.clock.call_in(at_us, Order.DELIVERY, act, outcome if done else item))
        return lambda _: [timer.cancel() for timer in timers]


class Tool:
    """Answers each call with the same value, or what a function makes of its request, after a while."""

    def __init__(self, clock: Clock, value: Any, delay_us: int = 0) -> None:
        self.clock = clock
        self.value = value
        self.delay_us = delay_us
        self.started: list[tuple[int, str]] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        payload = effect.payload
        self.started.append((self.clock.now, payload.args if hasattr(payload, "args") else str(payload)))
        value = self.value(payload) if callable(self.value) else self.value
        if value is None:
            return None
        outcome = value if isinstance(value, Outcome) else Outcome(Status.OK, value)
        timer = self.clock.call_in(self.delay_us, Order.DELIVERY, effect.land, outcome)
        return lambda _: timer.cancel()


class World:
    """A clock, a bus, an agent with a model, and its runs."""

    def __init__(self, *script: Any, delay_us: int = 0, layers: tuple[Any, ...] = (), **settings: Any) -> None:
        self.clock = Clock()
        self.bus = LayeredBus(EffectBus(self.clock))
        self.hooks = Hooks()
        self.runs = AgentRuns(self.clock, self.bus, self.hooks)
        self.agent = Agent.named("golden", **settings)
        self.model = Model(self.clock, *script, delay_us=delay_us)
        self.bus.serve("golden/model:default", self.model, *layers)

    def tool(self, name: str, value: Any = 42, delay_us: int = 0, layers: tuple[Any, ...] = (), **more: Any) -> Tool:
        grant = self.agent.grant(name, f"{name} it", {"type": "object"})
        tool = Tool(self.clock, value, delay_us)
        self.bus.serve(grant.key, tool, *layers, **more)
        return tool

    def on(self, at: At, hook: Callable[[Moment], object]) -> None:
        self.hooks.on(at, hook)

    def run(self, prompt: Any = "hello", *history: RunMessage, until_us: int | None = None, **more: Any) -> Run:
        run = self.runs.spawn(self.agent, prompt, history, **more)
        self.clock.run(until_us)
        return run

    def request(self, number: int) -> dict[str, Any]:
        return self.model.requests[number - 1]

    def said(self, number: int) -> list[Any]:
        """(role, what is said) of a request's messages; parts as text, or as ``call name`` and ``result text``."""
        return [(each["role"], _told(each["content"])) for each in self.request(number)["chat_history"]]

    @property
    def records(self) -> str:
        letters = []
        for effect in self.bus.bus.log:
            cancelled = effect.outcome is not None and effect.outcome.status is Status.CANCELLED
            letters.append(LETTERS[effect.kind] + ("✗" if cancelled else ""))
        return " ".join(letters)

    def told(self, kind: str) -> list[dict[str, Any]]:
        return self.runs.timeline.of(kind)


def _told(content: Any) -> Any:
    if isinstance(content, str):
        return content
    told = []
    for part in content:
        if part["type"] == "tool_call":
            told.append(f"call {part['name']}")
        elif part["type"] == "tool_result":
            told.append("result " + " ".join(str(item.get("text", item.get("value"))) for item in part["items"]))
        else:
            told.append(part.get("text", part["type"]))
    return told[0] if len(told) == 1 else told


def output(run: Run) -> str:
    assert isinstance(run.ending, Settled), run.ending
    return run.ending.output


def failure(run: Run) -> Failure:
    assert isinstance(run.ending, Failed), run.ending
    return run.ending.failure


def report(run: Run) -> Report:
    assert isinstance(run.ending, Failed), run.ending
    assert run.ending.report is not None, run.ending
    return run.ending.report


def delta(*pieces: str, every_us: int = 100 * MS) -> list[Any]:
    """Text that streams, a piece at a time, and its end."""
    items: list[Any] = [((at + 1) * every_us, TextDelta(piece)) for at, piece in enumerate(pieces)]
    return [*items, ((len(pieces) + 1) * every_us, StreamEnd())]


def named(name: str, at_us: int, index: int = 0, arguments: str = "", id: str = "w1") -> Any:
    return (at_us, CallDelta(index, id, name, arguments))


def refused(message: str) -> ToolReply:
    return ToolReply((TextPart(message),), "refused")
