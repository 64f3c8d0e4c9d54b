"""Scripted tools: what a run comes to and when, what it reports on the way, and that it can be stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bargein.models.latency import NEVER, Constant, Latency, Uniform
from bargein.models.tools import ScriptedTool
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Stream


@dataclass
class Progress:
    at_us: int
    text: str


@dataclass
class Run:
    result: Any = None
    error: str | None = None
    crash: str | None = None
    latency: Latency | None = None
    progress: tuple[Progress, ...] | None = None


@dataclass
class Payload:
    arguments: dict[str, Any]


class Counter:
    """A tool whose runs are ``runs``, the last one again and again, on a bus of its own."""

    def __init__(self, *runs: Run) -> None:
        self.clock = Clock()
        self.stream = Stream(1, "tool/book")
        self.tool = ScriptedTool(
            self.clock,
            lambda number: runs[min(number, len(runs)) - 1],
            lambda value, arguments, number: f"{value} {arguments['day']} #{number}",
            self.stream,
        )
        self.bus = EffectBus(self.clock)
        self.bus.register("book", self.tool)
        self.log: list[tuple[int, object]] = []

    def call(self, day: str = "friday") -> Effect:
        return self.bus.dispatch(
            EffectKind.TOOL_CALL,
            "book",
            Payload({"day": day}),
            scope="t1",
            on_item=lambda item: self.log.append((self.clock.now, item)),
            on_landed=lambda effect: self.log.append((self.clock.now, effect.outcome)),
        )

    def run(self) -> list[tuple[int, object]]:
        self.clock.run()
        return self.log


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (Run("booked", latency=Constant(50)), Outcome(Status.OK, "booked friday #1")),
        (Run("x", error="full on", latency=Constant(50)), Outcome(Status.FAILED, "full on friday #1")),
        (Run("x", error="x", crash="KeyError", latency=Constant(50)), Outcome(Status.CRASHED, "KeyError")),
    ],
)
def test_a_run_comes_to_a_result_an_error_or_a_crash_after_its_latency(run: Run, outcome: Outcome) -> None:
    counter = Counter(run)
    counter.call()
    assert counter.run() == [(50, outcome)]


def test_runs_are_counted_and_each_takes_its_own_plan_and_arguments() -> None:
    counter = Counter(Run("first", latency=Constant(50)), Run("then", latency=Constant(10)))
    for day in ("friday", "sunday", "monday"):
        counter.call(day)
    assert counter.tool.runs == 3
    assert counter.run() == [
        (10, Outcome(Status.OK, "then sunday #2")),
        (10, Outcome(Status.OK, "then monday #3")),
        (50, Outcome(Status.OK, "first friday #1")),
    ]


def test_progress_comes_on_the_way_and_not_after_the_end() -> None:
    steps = (Progress(10, "looking"), Progress(50, "nearly"), Progress(60, "too late"))
    counter = Counter(Run("ok", latency=Constant(50), progress=steps))
    counter.call()
    assert counter.run() == [(10, "looking"), (50, "nearly"), (50, Outcome(Status.OK, "ok friday #1"))]


@pytest.mark.parametrize("latency", [NEVER, None])
def test_a_tool_that_hangs_reports_progress_and_lands_nothing(latency: Latency | None) -> None:
    counter = Counter(Run("ok", latency=latency, progress=(Progress(10, "looking"),)))
    effect = counter.call()
    assert counter.run() == [(10, "looking")]
    assert effect.running


def test_a_stopped_run_leaves_nothing_behind_on_the_clock() -> None:
    counter = Counter(Run("ok", latency=Constant(50), progress=(Progress(10, "looking"), Progress(40, "nearly"))))
    effect = counter.call()
    counter.clock.call_at(20, Order.INTERRUPTION, lambda _: (effect.cancel(Cause.BARGE_IN), counter.clock.stop()))
    assert counter.run() == [(10, "looking"), (20, Outcome(Status.CANCELLED, Cause.BARGE_IN))]
    assert not counter.clock.busy


def test_a_run_draws_its_latency_from_the_tools_own_stream() -> None:
    counter = Counter(Run("ok", latency=Uniform(1, 99)))
    counter.call()
    assert counter.stream.drawn == 1
    assert counter.run() == [(Uniform(1, 99).draw(Stream(1, "tool/book")), Outcome(Status.OK, "ok friday #1"))]
