"""What only our own pipeline runs is refused before another stack's session is begun."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.scenario.around import surroundings
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("memory", {"store": "memory"}, "memory"),
        ("steering", [{"limit": {"max_bytes": 10}}], "steering"),
        ("models", {"fast": []}, "models"),
        ("s2s", {"provider": "realtime"}, "s2s"),
        ("llm.wire", "anthropic", "llm.wire"),
    ],
)
def test_a_part_that_other_stacks_do_not_run_is_named(key: str, value: Any, name: str) -> None:
    plan = Plan(sim.load("parallel_lookups").with_value(key, value))
    with pytest.raises(ScenarioError) as refusal:
        surroundings(plan)
    assert refusal.value.sentences == (f"parallel_lookups has {name}, which other stacks do not run",)


def test_a_plain_scenario_is_taken() -> None:
    assert surroundings(Plan(sim.load("parallel_lookups"))).epoch == 0
