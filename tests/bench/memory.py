"""Memory over 100,000 sessions in one process: the resident size after each tenth of them.

A session's objects hold each other, so that only the collector frees them; what stays must not grow with their
number. The first tenth is a warm-up: caches fill in it.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

from rich.console import Console

from bargein import sim
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from tests.bench.measuring import measured, numbers

__all__ = ["run"]

SCENARIO = "cut_before_the_first_sample"
SESSIONS = 100_000
STEPS = 10


def run(console: Console) -> None:
    """Run them, one after the other, each with a seed of its own."""
    plan = Plan(sim.load(SCENARIO))
    table = numbers("sessions", "resident MB", "objects", "us a session")
    sizes = []
    step = SESSIONS // STEPS
    for done in range(0, SESSIONS, step):
        with measured() as figure:
            for seed in range(done, done + step):
                run_plan(plan, seed)
        gc.collect()
        sizes.append(_resident_mb())
        cost = figure.cpu_s / step * 1e6
        table.add_row(f"{done + step:,}", f"{sizes[-1]:.1f}", f"{len(gc.get_objects()):,}", f"{cost:,.0f}")
    console.print(table)
    console.print(f"grown after the first {step:,}: {sizes[-1] - sizes[0]:+.1f} MB")


def _resident_mb() -> float:
    """The size now; where the system does not tell, the largest so far."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
