"""A session of a sweep as one row: which variant and seed, its digest, what broke, and the numbers asked for.

Workers make rows, the journal keeps them and the table shows them; none of them keeps a timeline. Left out: what the
numbers mean; ``METRICS`` and ``FILLER_METRICS`` say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bargein.sim.lab.metrics import METRICS
from bargein.sim.lab.result import Result
from bargein.sim.lab.sweep.fillers import FILLER_METRICS, filler_metrics
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

__all__ = ["DEFAULT_METRICS", "FIXED", "MEASURES", "Row", "check_metrics", "failed_row", "is_list", "row"]

Row = list[Any]

MEASURES: dict[str, tuple[str, str]] = {**METRICS, **FILLER_METRICS}
"""Unit and definition of everything that a sweep can measure."""


def is_list(name: str) -> bool:
    """Whether a metric has many numbers a session, which its cell holds with spaces between them."""
    return name in MEASURES and name.endswith("s_us")


DEFAULT_METRICS: tuple[str, ...] = tuple(name for name in MEASURES if not is_list(name))
"""What is measured unless one says otherwise: every single number."""

FIXED = ("digest", "virtual_us", "violations", "error")
"""The columns after the varied ones: digest, length, names of broken invariants, and why a session could not be run."""


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if all of them are known.

    Raises:
        ScenarioError: one is not, named with the nearest that is.
    """
    if not names:
        raise ScenarioError("no metrics are given; accepted is one or more")
    for name in names:
        if name not in MEASURES:
            raise ScenarioError(unknown("metric", name, MEASURES))
    return tuple(dict.fromkeys(names))


def row(result: Result, names: Sequence[str]) -> Row:
    """The values of ``FIXED`` and of these metrics."""
    broken = dict.fromkeys(violation.invariant for violation in result.unexpected_violations)
    metrics = dict(result.metrics)
    if any(name in FILLER_METRICS for name in names):
        metrics.update(filler_metrics(result.records))
    return [result.digest, result.virtual_us, " ".join(broken), "", *(_cell(metrics[name]) for name in names)]


def failed_row(error: Exception, names: Sequence[str]) -> Row:
    """The row of a session that the scenario's script had no answer for."""
    return ["", None, "", " ".join(str(error).split()), *(None for _ in names)]


def _cell(value: int | list[int] | None) -> Any:
    """A list of numbers is one text, so that a row is a row in every format."""
    return " ".join(map(str, value)) if isinstance(value, list) else value
