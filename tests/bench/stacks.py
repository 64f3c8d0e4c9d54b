"""Another framework's session beside ours: the same scenario, models and clock, and what each costs the processor.

The framework is skipped, with a reason, where its extra is not installed.
"""

from __future__ import annotations

from importlib.util import find_spec

from rich.console import Console

from bargein import sim
from bargein.sim.lab.session import run_plan
from bargein.sim.lab.stacks import STACKS, run_stack
from bargein.sim.scenario.build import Plan
from tests.bench.measuring import numbers, side_by_side

__all__ = ["run"]

SCENARIOS = ("barge_in_during_booking", "parallel_lookups", "question_during_a_slow_lookup")


def run(console: Console) -> None:
    """Run each scenario through each framework and through our own pipeline, in turn."""
    for stack in STACKS:
        if find_spec(stack) is None:
            console.print(f"{stack}: skipped, it is not installed; pip install 'bargein\\[{stack}]'")
            continue
        table = numbers("scenario", "virtual s", f"ms, {stack}", "ms, bargein", "ratio")
        for name in SCENARIOS:
            plan = Plan(sim.load(name))
            theirs, ours = side_by_side(
                lambda plan=plan: run_stack(plan, stack),  # type: ignore[misc]  # noqa: B023
                lambda plan=plan: run_plan(plan),  # type: ignore[misc]
                budget_s=2.0,
            )
            virtual = run_plan(plan).virtual_us / 1e6
            table.add_row(name, f"{virtual:.1f}", f"{theirs * 1e3:.1f}", f"{ours * 1e3:.2f}", f"{theirs / ours:,.0f}")
        console.print(table)
