"""Many sessions: a sweep on one and on two workers, and the runs an exploration makes in a second.

Efficiency is the speed of two workers over twice that of one. On the wall it is true only where two processors are
free; by processor time it leaves out the wait for them, and with it what a worker does not get done while it waits
for a task.
"""

from __future__ import annotations

from statistics import median

from rich.console import Console

from bargein import sim
from bargein.sim.lab.sweep.tasks import CHUNK
from tests.bench.measuring import Both, measured, numbers

__all__ = ["run"]

SWEPT = "cut_before_the_first_sample"
SESSIONS = 10_000
EXPLORED = ("barge_in_during_booking", "orphan_replay", "clip_overtaking")


def run(console: Console) -> None:
    """Sweep, then explore."""
    _sweep(console)
    _explore(console)


def _sweep(console: Console) -> None:
    """Half the sessions at a time, one worker and two in turn; workers are started anew and end within the figure."""
    single: list[Both] = []
    double: list[Both] = []
    for share in (SESSIONS // 2, SESSIONS - SESSIONS // 2):
        single.append(_swept(1, share))
        double.append(_swept(2, share))
    wall = [sum(each.wall_s for each in found) for found in (single, double)]
    cpu = [sum(each.cpu_s for each in found) for found in (single, double)]
    table = numbers(f"{SESSIONS:,} sessions, {CHUNK} a task", "s on the wall", "s of processor", "us a session")
    for name, seconds, used in (("one worker", wall[0], cpu[0]), ("two workers", wall[1], cpu[1])):
        table.add_row(name, f"{seconds:.2f}", f"{used:.2f}", f"{used / SESSIONS * 1e6:,.0f}")
    console.print(table)
    console.print(
        f"efficiency of two workers: {wall[0] / wall[1] / 2:.0%} on the wall, {cpu[0] / cpu[1]:.0%} by processor"
    )


def _swept(workers: int, sessions: int) -> Both:
    with measured() as figure:
        sim.sweep(SWEPT, seeds=sessions, workers=workers)
        if workers > 1:
            _end_workers()
    return figure


def _end_workers() -> None:
    """Let the workers end, so that their processor time is known."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _explore(console: Console) -> None:
    table = numbers("exploration", "runs", "runs a second of processor", "us a run")
    speeds = []
    for name in EXPLORED:
        with measured() as figure:
            found = sim.explore(name, budget=1_000)
        speeds.append(found.runs / figure.cpu_s)
        table.add_row(name, f"{found.runs:,}", f"{speeds[-1]:,.0f}", f"{figure.cpu_s / found.runs * 1e6:,.0f}")
    console.print(table)
    console.print(f"median: {median(speeds):,.0f} runs a second")
