"""Many sessions: a sweep on one and on two workers, and the runs an exploration makes in a second.

Efficiency is the speed of two workers over twice that of one, once they are started. On the wall it is true only
where two processors are free; by processor time it leaves out the wait for them, and with it what a worker does not
get done while it waits for a task.
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
    """Half the sessions at a time, one worker and two in turn, and a task for each of two: what starting them costs."""
    one, two, start = Both(), Both(), Both()
    for share in (SESSIONS // 2, SESSIONS - SESSIONS // 2):
        one.add(_swept(1, share))
        two.add(_swept(2, share))
        start.add(_swept(2, CHUNK + 1))
    few = 2 * (CHUNK + 1)
    table = numbers(f"a sweep, {CHUNK} sessions a task", "sessions", "s on the wall", "s of processor")
    for name, sessions, used in (
        ("one worker", SESSIONS, one),
        ("two workers, started twice", SESSIONS, two),
        ("two workers, started twice", few, start),
    ):
        table.add_row(name, f"{sessions:,}", f"{used.wall_s:.2f}", f"{used.cpu_s:.2f}")
    console.print(table)
    share_of_one = (SESSIONS - few) / SESSIONS
    wall = one.wall_s * share_of_one / (two.wall_s - start.wall_s) / 2
    cpu = one.cpu_s * share_of_one / (two.cpu_s - start.cpu_s)
    console.print(f"efficiency of two workers once they are started: {wall:.0%} on the wall, {cpu:.0%} by processor")


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
