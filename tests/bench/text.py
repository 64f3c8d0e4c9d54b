"""What a session's text costs: JSON lines, the digest, and judging it, beside running it."""

from __future__ import annotations

from statistics import median

from rich.console import Console

from bargein import sim
from bargein.sim.lab.invariants import check
from bargein.sim.lab.metrics import metrics
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from tests.bench.measuring import numbers, side_by_side

__all__ = ["run"]


def run(console: Console) -> None:
    """Measure every built-in, and show the medians and the longest."""
    kinds = ("the session itself", "JSON lines", "digest", "records", "metrics of records", "invariants of records")
    found: list[list[float]] = []
    for name in sim.scenarios():
        plan = Plan(sim.load(name))
        result = run_plan(plan)
        timeline, records, settings = result.timeline, result.records, result.check_settings
        found.append(
            side_by_side(
                lambda plan=plan: run_plan(plan),  # type: ignore[misc]
                timeline.to_jsonl,
                timeline.digest,
                lambda timeline=timeline: list(timeline),  # type: ignore[misc]
                lambda records=records: metrics(records),  # type: ignore[misc]
                lambda records=records, settings=settings: check(records, settings),  # type: ignore[misc]
                budget_s=0.2,
            )
        )
    table = numbers("what", "us, median of the built-ins", "us, at most", "share of the session")
    columns = list(zip(*found, strict=True))
    for kind, column in zip(kinds, columns, strict=True):
        ratio = median(cost / session for cost, session in zip(column, columns[0], strict=True))
        table.add_row(kind, f"{median(column) * 1e6:,.0f}", f"{max(column) * 1e6:,.0f}", f"{ratio:.2f}")
    console.print(table)
