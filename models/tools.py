"""Scripted tools: each run takes a latency and comes to a result, a reported error or a crash.

A tool is the handler of one key on the effect bus. Left out: whether a call may run, which the tool engine has
decided before, and how a result is filled in from the arguments, which whoever wrote the plan knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bargein.models.latency import Latency
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.streams import Stream

__all__ = ["Fill", "RunPlan", "ScriptedTool"]

Fill = Callable[[Any, dict[str, Any], int], Any]
"""A result as planned, the call's arguments and the number of the run, to the result."""


class ProgressPlan(Protocol):
    """Something a run reports on the way."""

    @property
    def at_us(self) -> int: ...
    @property
    def text(self) -> str: ...


class RunPlan(Protocol):
    """What one run comes to."""

    @property
    def result(self) -> Any: ...
    @property
    def error(self) -> str | None: ...
    @property
    def crash(self) -> str | None: ...
    @property
    def latency(self) -> Latency | None: ...
    @property
    def progress(self) -> Sequence[ProgressPlan] | None: ...


class ScriptedTool:
    """The body of one tool in one session.

    Args:
        plan: gives what the n-th run does, from 1.
        fill: fills a planned result or error in.
        stream: the random stream its latencies draw from.

    Attributes:
        runs: how often it was started.
    """

    def __init__(self, clock: Clock, plan: Callable[[int], RunPlan], fill: Fill, stream: Stream) -> None:
        self._clock = clock
        self._plan = plan
        self._fill = fill
        self._stream = stream
        self.runs = 0

    def adopt(self, plan: Callable[[int], RunPlan]) -> None:
        """Do otherwise in the runs that are still to start."""
        self._plan = plan

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Run once (``effects.Handler``)."""
        self.runs += 1
        number = self.runs
        plan = self._plan(number)
        timers: list[Timer] = []
        for progress in plan.progress or ():
            timers.append(self._clock.call_in(progress.at_us, Order.DELIVERY, effect.deliver, progress.text))
        delay = None if plan.latency is None else plan.latency.draw(self._stream)
        if delay is not None:
            outcome = self._outcome(plan, number, effect.payload.arguments)
            timers.append(self._clock.call_in(delay, Order.DELIVERY, effect.land, outcome))

        def stop(_: Cause) -> None:
            for timer in timers:
                timer.cancel()

        return stop

    def _outcome(self, plan: RunPlan, number: int, arguments: dict[str, Any]) -> Outcome:
        if plan.crash is not None:
            return Outcome(Status.CRASHED, plan.crash)
        if plan.error is not None:
            return Outcome(Status.FAILED, self._fill(plan.error, arguments, number))
        return Outcome(Status.OK, self._fill(plan.result, arguments, number))
