"""What one session costs: each built-in by spans and per frame, beside plain SimPy with as many timeouts.

Calls of Python functions are counted too: a number that no other program on the machine moves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import simpy
from rich.console import Console

from bargein import sim
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from tests.bench.measuring import numbers, side_by_side

__all__ = ["run"]


def run(console: Console) -> None:
    """Measure every built-in."""
    table = numbers("scenario", "virtual s/s", "per frame", "us a session", "us a record", "calls", "to bare SimPy")
    speeds, ratios = [], []
    for name in sim.scenarios():
        spans = Plan(sim.load(name))
        frames = Plan(spans.scenario.with_value("session.per_frame", True))
        result = run_plan(spans)
        by_span, by_frame, plain = side_by_side(
            lambda plan=spans: run_plan(plan),  # type: ignore[misc]
            lambda plan=frames: run_plan(plan),  # type: ignore[misc]
            lambda count=result.opened.session.clock.processed: _bare(count),  # type: ignore[misc]
        )
        virtual = result.virtual_us / 1e6
        speeds.append(virtual / by_span)
        ratios.append(by_span / plain)
        table.add_row(
            name,
            f"{speeds[-1]:,.0f}",
            f"{virtual / by_frame:,.0f}",
            f"{by_span * 1e6:,.0f}",
            f"{by_span * 1e6 / len(result.timeline):.2f}",
            f"{_calls(lambda plan=spans: run_plan(plan)):,}",  # type: ignore[misc]
            f"{ratios[-1]:.1f}",
        )
    console.print(table)
    console.print(
        f"median over the built-ins: {median(speeds):,.0f} virtual seconds a second, "
        f"{median(ratios):.1f} times bare SimPy with as many timeouts as the session has events"
    )


def _bare(timeouts: int) -> None:
    env = simpy.Environment()

    def process() -> object:
        for _ in range(timeouts):
            yield env.timeout(10)

    env.process(process())
    env.run()


def _calls(function: Callable[[], object]) -> int:
    """How many Python functions are called."""
    count = 0

    def see(_: object, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
