"""Running a scenario through another stack: what is refused, and how."""

from __future__ import annotations

import sys

import pytest

from bargein import sim
from bargein.sim.lab.stacks import run_stack
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError


def test_an_unknown_stack_is_refused_by_name() -> None:
    with pytest.raises(ScenarioError, match='there is no stack called "nobody"; accepted is livekit'):
        run_stack(Plan(sim.load("parallel_lookups")), "nobody")


def test_a_stack_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bargein.models.stacks.livekit", None)
    with pytest.raises(ScenarioError, match=r"livekit is not installed; accepted is pip install 'bargein\[livekit\]'"):
        run_stack(Plan(sim.load("parallel_lookups")), "livekit")
