"""How the benchmarks measure: side by side, by the processor's time, as medians.

Figures that are compared are measured in turn (A B A B ...), so that a machine that slows down slows both, and by
the processor time of this process, so that other programs count for little. Where several processes work together
there is only the clock on the wall; `Both` keeps the two. Left out: judging.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

from rich.table import Table

__all__ = ["Both", "measured", "numbers", "side_by_side"]

ROUNDS = 7


def side_by_side(*functions: Callable[[], object], budget_s: float = 0.6) -> list[float]:
    """The median seconds of processor time a call of each function takes, all measured in turn.

    Args:
        functions: what is compared; each is called once before it counts.
        budget_s: about how long all of it may take; it decides how often a function is called in a round.
    """
    share = budget_s / ROUNDS / len(functions)
    repeats = []
    for function in functions:
        function()
        repeats.append(max(1, int(share / max(_timed(function, 1), 1e-7))))
    rounds = [
        [_timed(function, times) for function, times in zip(functions, repeats, strict=True)] for _ in range(ROUNDS)
    ]
    return [median(column) for column in zip(*rounds, strict=True)]


def _timed(function: Callable[[], object], times: int) -> float:
    started = process_time()
    for _ in range(times):
        function()
    return (process_time() - started) / times


@dataclass(slots=True)
class Both:
    """Seconds on the wall, and seconds of processor time of this process and of its children that have ended."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, other: Both) -> None:
        """Take another figure into this one."""
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s


@contextmanager
def measured() -> Iterator[Both]:
    """Measure the block both ways; the figures stand when it has ended."""
    found = Both()
    wall, cpu = perf_counter(), _cpu()
    yield found
    found.wall_s, found.cpu_s = perf_counter() - wall, _cpu() - cpu


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def numbers(title: str, *columns: str) -> Table:
    """A table with one column of names and columns of numbers."""
    table = Table(title, *columns)
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    return table
