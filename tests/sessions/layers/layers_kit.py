"""A booking over the phone, and the layers that the tests put around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bargein import sim
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.lab.result import Result
from bargein.sim.scenario.model import Scenario

MS, S = 1_000, 1_000_000
BOOK, LOOK, MODEL = "agent/tool:book#0", "agent/tool:look#0", "agent/model:default"
MakeLayers = Callable[[Clock], Mapping[str, Sequence[sim.Layer]]]

TOOLS: dict[str, Any] = {
    "book": {
        "description": "Books.",
        "kind": "side_effect",
        "parameters": {"type": "object", "properties": {"people": {"type": "integer"}}},
        "latency": "500ms",
        "result": {"booked": True},
    },
    "look": {"description": "Looks.", "latency": "100ms", "result": "sunny"},
}
LINE = {"at": "0s", "level": "decision", "for": "100ms", "say": "Book it."}
RULES: dict[str, Any] = {
    "rules": [
        {"when": {"result": {"tool": "book", "is": "ok"}}, "text": "It is booked."},
        {"when": {"result": {"tool": "book", "is": "note"}}, "text": "It is booked already."},
        {"when": {"result": {"tool": "book", "is": "pending"}}, "text": "Still working on it."},
    ],
    "else": {"calls": [{"book": {"people": 2}}]},
}
"""A model that asks for the booking until it reads that it is made, or that it is on its way."""
LLM: list[dict[str, Any]] = [{"calls": [{"book": {"people": 2}}]}, {"text": "Done."}, {"text": "Fine."}]


def scenario(*, caller: Sequence[Mapping[str, Any]] = (), tools: Mapping[str, Any] = {}, **more: Any) -> Scenario:
    """One caller who wants a booking at once, and says ``caller`` besides; ``tools`` differ in what they name."""
    declared = {name: {**spec, **tools.get(name, {})} for name, spec in TOOLS.items()}
    declared |= {name: spec for name, spec in tools.items() if name not in TOOLS}
    data = {"scenario": "layered", "tools": declared, "caller": [LINE, *caller], "llm": LLM}
    return Scenario.from_dict({**data, **more})


def run(layers: MakeLayers | Mapping[str, Sequence[sim.Layer]], *, broken: Sequence[str] = (), **more: Any) -> Result:
    """The call with these layers; it breaks nothing but ``broken``."""
    make = layers if callable(layers) else lambda _: layers
    result = sim.run(scenario(**more), layers=make)
    assert [each.invariant for each in result.violations] == list(broken), result.violations
    return result


# -- layers -----------------------------------------------------------------------------------------------------------


class Approve(sim.Layer):
    """A person who answers after so long; ``None`` never does."""

    name = "approve"

    def __init__(self, clock: Clock, after_us: int | None, denial: str | None = None) -> None:
        self.clock = clock
        self.after_us = after_us
        self.denial = denial

    def approval(self) -> sim.Approval:
        approval = sim.Approval()
        if self.after_us is not None:
            self.clock.call_in(self.after_us, Order.DELIVERY, lambda _: self.answer(approval))
        return approval

    def answer(self, approval: sim.Approval) -> None:
        if self.denial is None:
            approval.approve()
        else:
            approval.deny(self.denial)

    def before(self, ask: sim.Ask) -> sim.Suspend:
        return sim.Suspend(self.approval())


class Judge(Approve):
    """A person who looks at the result before the agent does."""

    name = "judge"

    def before(self, ask: sim.Ask) -> None:
        """Lets everything pass."""

    def after(self, ask: sim.Ask, outcome: Outcome) -> sim.Later:
        return sim.Later(self.approval())


class Deny(sim.Layer):
    name = "deny"

    def __init__(self, reason: str = "Not here.") -> None:
        self.reason = reason

    def before(self, ask: sim.Ask) -> sim.Deny:
        return sim.Deny(self.reason)


class Arguments(sim.Layer):
    """Asks for a call with other arguments."""

    name = "arguments"

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    def before(self, ask: sim.Ask) -> sim.Patch:
        return sim.Patch(replace(ask.payload, arguments={**ask.payload.arguments, **self.arguments}))


class Fields(sim.Layer):
    """Asks for a request with other fields."""

    name = "fields"

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def before(self, ask: sim.Ask) -> sim.Patch:
        return sim.Patch(replace(ask.payload, **self.fields))


class Replace(sim.Layer):
    name = "replace"

    def __init__(self, value: Any, status: Status = Status.OK) -> None:
        self.outcome = Outcome(status, value)

    def after(self, ask: sim.Ask, outcome: Outcome) -> Outcome:
        return self.outcome


class Note(sim.Layer):
    """Writes down what it sees and lets it pass."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen

    def before(self, ask: sim.Ask) -> None:
        self.seen.append(f"{self.name} in {ask.key}")

    def after(self, ask: sim.Ask, outcome: Outcome) -> Outcome:
        self.seen.append(f"{self.name} out {outcome.status}")
        return outcome


# -- what is seen ---------------------------------------------------------------------------------------------------

_TOLD = {
    "tool.suspended": ("call", "layer"),
    "tool.withdrawn": ("call", "cause"),
    "tool.withheld": ("call", "layer"),
    "tool.started": ("call",),
    "tool.finished": ("call", "status"),
    "tool.dropped": ("call", "cause"),
    "tool.settled": ("call", "outcome"),
    "tool.late_result": ("call", "outcome"),
    "llm.suspended": ("round", "layer"),
    "llm.withdrawn": ("round", "cause"),
    "llm.withheld": ("round", "layer"),
    "llm.request": ("round",),
    "llm.first_token": ("round",),
    "llm.done": ("round",),
    "llm.failed": ("round", "reason"),
    "speculation.started": (),
    "speculation.committed": (),
    "speculation.discarded": ("reason",),
    "turn.user": ("text",),
    "turn.interrupted": ("cause",),
    "run.ended": ("ending",),
    "filler.spoken": ("text",),
    "fallback.spoken": ("text",),
    "memory.loaded": ("messages",),
    "memory.failed": ("operation", "reason"),
    "session.ended": ("reason",),
}


def told(result: Result, *families: str) -> list[tuple[Any, ...]]:
    """``(instant, kind, what it tells)`` of the kinds that begin so, in order."""
    return [
        (each["t"], each["kind"], *(str(each[name]) for name in _TOLD[each["kind"]]))
        for each in result.records
        if each["kind"] in _TOLD and each["kind"].startswith(families or "")
    ]


def log(result: Result) -> list[tuple[Any, ...]]:
    """Key, status, instants of dispatch and landing of each record."""
    return [(each["key"], each["status"], each["dispatched_at_us"], each["landed_at_us"]) for each in result.effects]


def answers(result: Result) -> list[tuple[str, str]]:
    """What the model reads for each call."""
    return [(each["call_id"], each["content"]) for each in result.context if each["role"] == "tool"]


def notes(result: Result) -> list[str]:
    """Late notes in the conversation."""
    return [each["text"] for each in result.context if each["role"] == "system"]


def remembered(result: Result) -> tuple[int, int]:
    """Entries of the idempotency store, and side effects that are known as recent."""
    engine = result.opened.session.engine
    return engine.idempotency_usage().entries, len(engine._desk.recent)
