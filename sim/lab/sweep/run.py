"""The sweep itself: every variant with every seed, shared among workers, kept as it comes, written at the end.

``bargein sweep`` and ``sim.sweep`` call it. A seed stands for one caller and one course of the world, and each
variant meets the same ones; named random streams see to it that a varied value moves no draws but its own. Left
out: what the table shows (``sim.report.sweep_plots``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bargein.models.python_tools import Tools
from bargein.sim.lab.sweep.journal import Journal
from bargein.sim.lab.sweep.rows import DEFAULT_METRICS, FIXED, Row, check_metrics
from bargein.sim.lab.sweep.table import Table, check_format, read_rows, write_table
from bargein.sim.lab.sweep.tasks import CHUNK, chunks, run_chunks
from bargein.sim.lab.sweep.variants import Variant, expand
from bargein.sim.scenario.layering import Layering, MakeLayers
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.remembering import check_repeatable

__all__ = ["Progress", "sweep"]

Progress = Callable[[int, int], object]
"""Told of sessions done and sessions in all."""

_DEAD_WORKER = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerStoppedError")


def sweep(
    scenario: Scenario,
    vary: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 100,
    *,
    metrics: Sequence[str] | None = None,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    workers: int | None = None,
    backend: str | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Table:
    """Run a scenario with its values varied, over the same seeds for every variant.

    Args:
        vary: values by dotted path (`variants.expand`); the scenario as it is where there are none.
        seeds: this many, from 0, or these.
        metrics: what to measure; every single number unless given.
        tools: tools that the program brings.
        layers: makes the layers of each session, anew for each.
        workers: sessions are shared among so many; ``None`` takes what ``joblib.parallel_config`` says, else 1.
        backend: of joblib, such as ``"dask"``; processes unless given.
        out: a ``.csv`` or ``.parquet`` file. What is finished is kept beside it until all is; the same sweep
            started again goes on from there, and the rows of a long one need no memory.
        progress: told of sessions done and in all, now and then.

    Returns:
        A row for each session: the same whatever ran it, and in whatever order.

    Raises:
        ScenarioError: something given cannot be used, or the result cannot be kept; one sentence.
        KeyboardInterrupt: Ctrl-C; its note says what was kept.
    """
    variants = expand(scenario, vary or {})
    for each in variants:
        check_repeatable(each.scenario)
    hooks = [Layering(each.scenario, layers).hooks for each in variants] if layers is not None else []
    numbers = _seeds(seeds)
    names = check_metrics(DEFAULT_METRICS if metrics is None else metrics)
    columns = ("variant", "seed", *(vary or {}), *FIXED, *names)
    work = _Work(variants, numbers, names, tools, layers, progress)
    if out is None:
        rows: list[Row] = []
        found: dict[int, list[Row]] = {}
        with _told(work, None):
            for number, part in work.run({}, workers, backend):
                found[number] = part
        for number in sorted(found):
            rows += found[number]
        return Table(columns, list(_labels(iter(rows), variants)), tuple(vary or {}), len(rows))
    suffix = check_format(out)
    partial = out.with_name(out.name + ".partial")
    with _told(work, partial):
        journal = Journal(partial, _fingerprint(scenario, variants, columns, numbers, hooks))
        try:
            for number, part in work.run(journal.done, workers, backend):
                journal.keep(number, part)
            write_table(out, columns, _labels(journal.rows(), variants), suffix)
        except BaseException:
            journal.close()
            raise
        journal.remove()
    return Table(columns, lambda: read_rows(out), tuple(vary or {}), work.total, out)


class _Work:
    """The sessions of a sweep and how many are done."""

    def __init__(
        self,
        variants: list[Variant],
        seeds: tuple[int, ...],
        metrics: tuple[str, ...],
        tools: Tools | None,
        layers: MakeLayers | None,
        progress: Progress | None,
    ) -> None:
        self._arguments = (variants, seeds, metrics, tools, layers)
        self._progress = progress
        self.total = len(variants) * len(seeds)
        self.done = 0

    def run(
        self, finished: Mapping[int, object], workers: int | None, backend: str | None
    ) -> Iterator[tuple[int, list[Row]]]:
        """The chunks that are not finished, as they come."""
        kept = frozenset(finished)
        self.done = sum(chunk.sessions for chunk in chunks(*self._arguments) if chunk.number in kept)
        self._tell()
        todo = (chunk for chunk in chunks(*self._arguments) if chunk.number not in kept)
        for number, rows in run_chunks(todo, workers, backend):
            yield number, rows
            self.done += len(rows)
            self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self.done, self.total)


class _told:  # noqa: N801  (a context manager, named like a function)
    """Says in one sentence what happened to what was finished, when a sweep cannot go on."""

    def __init__(self, work: _Work, partial: Path | None) -> None:
        self._work = work
        self._partial = partial

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyboardInterrupt):
            error.add_note(f"stopped; {self._kept()}")
        elif isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else f"{self._partial}: " if self._partial else ""
            raise ScenarioError(f"{where}{(error.strerror or str(error)).lower()}; {self._kept()}") from None
        elif error is not None and type(error).__name__ in _DEAD_WORKER:
            raise ScenarioError(f"a worker died ({type(error).__name__}); {self._kept()}") from error

    def _kept(self) -> str:
        work = self._work
        if self._partial is None:
            return f"{work.done} of {work.total} sessions were done and are not kept; accepted is a file to keep them"
        if not work.done:
            return f"none of {work.total} sessions was kept; accepted is a place that can be written"
        return (
            f"{work.done} of {work.total} sessions are kept in {self._partial}, and the same sweep started again "
            "goes on from there"
        )


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, int) and type(seeds) is not bool:
        if seeds < 1:
            raise ScenarioError(f"seeds is {seeds}; accepted is 1 or more")
        return tuple(range(seeds))
    given = tuple(seeds) if not isinstance(seeds, bool) else ()
    if not given or any(type(seed) is not int for seed in given):
        raise ScenarioError("seeds are none, or not whole numbers; accepted is how many, or a list of whole numbers")
    return tuple(dict.fromkeys(given))


def _labels(rows: Iterator[Row], variants: Sequence[Variant]) -> Iterator[Row]:
    """The rows with the varied values in the place of their columns."""
    for number, seed, *rest in rows:
        yield [number, seed, *variants[number].labels, *rest]


def _fingerprint(
    scenario: Scenario,
    variants: Sequence[Variant],
    columns: tuple[str, ...],
    seeds: tuple[int, ...],
    hooks: list[list[str]],
) -> str:
    """Which sessions these are, measured how: so that only the same sweep goes on."""
    told = [
        version("bargein"),
        CHUNK,
        scenario.to_dict(),
        [variant.labels for variant in variants],
        columns,
        seeds,
        *hooks,
    ]
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
