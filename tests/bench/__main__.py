"""``make bench``: what a session costs, side by side in one run, as medians and ratios.

Every figure that is compared is measured in turn with what it is compared with (A B A B ...), so that a machine
that slows down slows both. Prints and judges nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import simpy
from rich.console import Console
from rich.table import Table

from bargein import sim
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan

ROUNDS = 9
REPEATS = 60


def timed(function: Callable[[], object], repeats: int) -> float:
    """Seconds a call, over ``repeats`` calls."""
    started = perf_counter()
    for _ in range(repeats):
        function()
    return (perf_counter() - started) / repeats


def side_by_side(*functions: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """The median seconds a call of each function, all measured in turn."""
    for function in functions:
        function()
    rounds = [[timed(function, repeats) for function in functions] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def bare(timeouts: int) -> None:
    """As many timeouts in plain SimPy as the session has events."""
    env = simpy.Environment()

    def process() -> object:
        for _ in range(timeouts):
            yield env.timeout(10)

    env.process(process())
    env.run()


def sessions(console: Console) -> None:
    """Each built-in, by spans and per frame, against a bare SimPy run of as many timeouts."""
    table = Table("scenario", "virtual s/s, spans", "per frame", "us a session", "us a record", "ratio to bare SimPy")
    for column in table.columns[1:]:
        column.justify = "right"
    speeds = []
    for name in sim.scenarios():
        spans = Plan(sim.load(name))
        frames = Plan(spans.scenario.with_value("session.per_frame", True))
        result = run_plan(spans)
        events = result.opened.session.clock.processed
        by_span, by_frame, plain = side_by_side(
            lambda plan=spans: run_plan(plan),  # type: ignore[misc]
            lambda plan=frames: run_plan(plan),  # type: ignore[misc]
            lambda count=events: bare(count),  # type: ignore[misc]
        )
        virtual = result.virtual_us / 1e6
        speeds.append(virtual / by_span)
        table.add_row(
            name,
            f"{virtual / by_span:,.0f}",
            f"{virtual / by_frame:,.0f}",
            f"{by_span * 1e6:,.0f}",
            f"{by_span * 1e6 / len(result.timeline):.2f}",
            f"{by_span / plain:.1f}",
        )
    console.print("one session, events as many as its ratio's timeouts")
    console.print(table)
    console.print(f"median over the built-ins: {median(speeds):,.0f} virtual seconds a second\n")


def main() -> None:
    """Everything, in order."""
    console = Console(width=120)
    console.print(f"Python {sys.version.split()[0]}, medians of {ROUNDS} rounds measured in turn\n")
    sessions(console)


if __name__ == "__main__":
    main()
