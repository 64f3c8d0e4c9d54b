"""Numbers over the sessions of a sweep: shares, quantiles, distributions, and differences of paired sessions.

The plots draw them and a notebook may tabulate them. Missing values (a session without the case) are left out of
quantiles and means, and a pair counts only where both of its sessions have a value. Left out: tests of significance;
an interval says as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from bargein.sim.kernel.durations import DurationError, as_us
from bargein.sim.lab.sweep.table import Table

__all__ = ["Difference", "TradePoint", "amount", "ecdf", "filler_trade", "means", "paired", "quantile"]


@dataclass(frozen=True, slots=True)
class TradePoint:
    """What one filler delay gives.

    Attributes:
        delay: as it was varied.
        silent: share of calls with dead air beyond the bound.
        wait_us: median and 95th percentile of how long a ready answer waited behind its filler; ``None`` where no
            filler was followed by one.
        in_vain: share of fillers whose answer was there within half a second; ``None`` without fillers.
    """

    delay: Any
    silent: float
    wait_us: tuple[int, int] | None
    in_vain: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A variant against the baseline, over sessions with the same seed.

    Attributes:
        label: the variant's values.
        pairs: how many.
        mean: of the differences; ``low`` to ``high`` is its 95 % interval (Student's t). ``None`` without two pairs.
    """

    label: str
    pairs: int
    mean: float | None
    low: float | None
    high: float | None


def amount(value: Any) -> int | float | None:
    """A varied value as a number to draw along: microseconds for a duration; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return as_us(value)
    except DurationError:
        return None


def quantile(values: Sequence[int], share: float) -> int:
    """The smallest value that this share of all does not exceed; ``values`` is not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def ecdf(values: Sequence[int]) -> tuple[list[int], list[float]]:
    """Each value, in order, and the share of values up to it."""
    ordered = sorted(values)
    return ordered, [(at + 1) / len(ordered) for at in range(len(ordered))]


def filler_trade(table: Table, delay: str = "agent.filler.delay", beyond_us: int = 2_000_000) -> list[TradePoint]:
    """For each value of the filler's delay what it costs and what it gives, the shortest first.

    Raises:
        ScenarioError: the table does not have the columns.
    """
    names = (delay, "dead_air_us", "answer_wait_us", "fillers_heard", "fillers_in_vain")
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for of, *values in zip(*(table.column(name) for name in names), strict=True):
        groups.setdefault(of, []).append(tuple(values))
    points = []
    for of in sorted(groups, key=lambda of: (amount(of) is None, amount(of) or 0, str(of))):
        rows = groups[of]
        waits = [wait for _, wait, _, _ in rows if wait is not None]
        heard = sum(count or 0 for _, _, count, _ in rows)
        points.append(
            TradePoint(
                of,
                sum((air or 0) > beyond_us for air, _, _, _ in rows) / len(rows),
                (quantile(waits, 0.5), quantile(waits, 0.95)) if waits else None,
                sum(count or 0 for _, _, _, count in rows) / heard if heard else None,
            )
        )
    return points


def means(table: Table, across: str, up: str, value: str) -> tuple[list[Any], list[Any], list[list[float | None]]]:
    """The mean of a column for each pair of two varied values.

    Returns:
        The values across, the values up, and for each value up a row of means; ``None`` where there is no value.

    Raises:
        ScenarioError: the table does not have the columns.
    """
    sums: dict[tuple[Any, Any], tuple[int, int]] = {}
    for x, y, found in zip(table.column(across), table.column(up), table.column(value), strict=True):
        number = len(found.split()) if isinstance(found, str) else found  # names of broken invariants are counted
        if number is not None:
            total, count = sums.get((x, y), (0, 0))
            sums[x, y] = (total + number, count + 1)
    xs, ys = list(dict.fromkeys(table.column(across))), list(dict.fromkeys(table.column(up)))
    return xs, ys, [[sums[x, y][0] / sums[x, y][1] if (x, y) in sums else None for x in xs] for y in ys]


def paired(table: Table, metric: str, baseline: int = 0) -> list[Difference]:
    """Each variant's difference from the baseline variant, seed by seed.

    Raises:
        ScenarioError: the table does not have the column.
    """
    labels: dict[int, str] = {}
    values: dict[int, dict[int, int]] = {}
    columns = [table.column(name) for name in table.varied]
    numbers = zip(table.column("variant"), table.column("seed"), table.column(metric), strict=True)
    for at, (variant, seed, value) in enumerate(numbers):
        labels.setdefault(variant, ", ".join(str(column[at]) for column in columns))
        if value is not None:
            values.setdefault(variant, {})[seed] = value
    base = values.get(baseline, {})
    found = []
    for variant, label in labels.items():
        if variant != baseline:
            own = values.get(variant, {})
            found.append(_difference(label, [own[seed] - base[seed] for seed in base if seed in own]))
    return found


def _difference(label: str, differences: list[int]) -> Difference:
    count = len(differences)
    if count < 2:
        return Difference(label, count, None, None, None)
    from scipy.special import stdtrit

    mean = sum(differences) / count
    spread = sqrt(sum((each - mean) ** 2 for each in differences) / (count - 1))
    half = float(stdtrit(count - 1, 0.975)) * spread / sqrt(count)
    return Difference(label, count, mean, mean - half, mean + half)
