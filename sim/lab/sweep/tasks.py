"""A sweep's sessions in chunks, each one task for a worker: this process, another one, or a cluster.

Any joblib backend can run them; a task carries scenarios as data and brings back rows, so that where it ran cannot
be seen in them. Left out: keeping what comes back (``journal``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bargein.models.python_tools import Tools
from bargein.sim.lab.session import run_plan
from bargein.sim.lab.sweep.rows import Row, failed_row, row
from bargein.sim.lab.sweep.variants import Variant
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.layering import MakeLayers
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError

__all__ = ["CHUNK", "Chunk", "chunks", "run_chunk", "run_chunks"]

CHUNK = 200
"""Sessions a task: about 0.2 s of work, so that sending it costs little and stopping loses little."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some sessions: (variant's number, its scenario, seeds), and the metrics to measure."""

    number: int
    parts: tuple[tuple[int, Scenario, tuple[int, ...]], ...]
    metrics: tuple[str, ...]
    tools: Tools | None = None
    layers: MakeLayers | None = None

    @property
    def sessions(self) -> int:
        """How many."""
        return sum(len(seeds) for _, _, seeds in self.parts)


def chunks(
    variants: Sequence[Variant],
    seeds: Sequence[int],
    metrics: tuple[str, ...],
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
) -> Iterator[Chunk]:
    """All sessions, variant by variant and seed by seed, cut into tasks; made as they are needed."""
    number, room = 0, CHUNK
    parts: list[tuple[int, Scenario, tuple[int, ...]]] = []
    for at, variant in enumerate(variants):
        start = 0
        while start < len(seeds):
            taken = tuple(seeds[start : start + room])
            parts.append((at, variant.scenario, taken))
            start += len(taken)
            room -= len(taken)
            if not room:
                yield Chunk(number, tuple(parts), metrics, tools, layers)
                number, room, parts = number + 1, CHUNK, []
    if parts:
        yield Chunk(number, tuple(parts), metrics, tools, layers)


def run_chunk(chunk: Chunk) -> tuple[int, list[Row]]:
    """Run a task: the chunk's number, and a row for each session that begins with its variant's number and its seed."""
    rows: list[Row] = []
    for number, scenario, seeds in chunk.parts:
        plan = Plan(scenario, chunk.tools, chunk.layers)
        for seed in seeds:
            try:
                values = row(run_plan(plan, seed), chunk.metrics)
            except ScenarioError as error:
                values = failed_row(error, chunk.metrics)
            rows.append([number, seed, *values])
    return chunk.number, rows


def run_chunks(todo: Iterator[Chunk], workers: int | None, backend: str | None) -> Iterator[tuple[int, list[Row]]]:
    """Run the tasks; what is finished comes first.

    Args:
        workers: how many at once; ``None`` takes what the surrounding ``joblib.parallel_config`` says, else 1.
        backend: of joblib; ``None`` takes the surrounding one, else processes.
    """
    if workers in (None, 1) and backend is None and not _configured():
        yield from map(run_chunk, todo)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=workers, backend=backend, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(run_chunk)(chunk) for chunk in todo)


def _configured() -> bool:
    """Whether somebody has set up a backend around this call."""
    import sys

    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import DEFAULT_BACKEND, get_active_backend

    backend, workers = get_active_backend()
    return workers not in (None, 1) or type(backend).__name__.lower() != f"{DEFAULT_BACKEND}backend"
