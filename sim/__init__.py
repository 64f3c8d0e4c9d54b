"""bargein from Python: ``from bargein import sim; r = sim.run("barge_in_during_booking")``.

The names below are what users import; heavy parts are loaded when one is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bargein.sim.lab.result import Result
    from bargein.sim.scenario.model import Scenario

__all__ = ["load", "run", "scenarios"]


def load(scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario) -> Scenario:
    """A scenario by built-in name, from a file, or from plain data with a file's keys; a scenario is returned as it is.

    Raises:
        bargein.sim.scenario.places.ScenarioError: it cannot be used; one sentence for each thing wrong.
    """
    from bargein.sim.scenario.loading import load as load_file
    from bargein.sim.scenario.model import Scenario

    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Mapping):
        return Scenario.from_dict(scenario)
    return load_file(os.fspath(scenario))


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    seed: int | None = None,
    tie_seed: int | None = None,
    set: Mapping[str, Any] | None = None,
) -> Result:
    """Simulate one session and return what came of it.

    Args:
        scenario: a built-in's name, a file, plain data, or a scenario.
        seed: of the random streams; the scenario's own where none is given.
        tie_seed: permutes what falls on the same instant, reproducibly.
        set: values to change first, by dotted path: ``{"agent.filler.delay": "800ms"}``.

    Raises:
        bargein.sim.scenario.places.ScenarioError: the scenario cannot be used.
    """
    from bargein.sim.lab.session import run_plan
    from bargein.sim.scenario.build import Plan

    chosen = load(scenario)
    for path, value in (set or {}).items():
        chosen = chosen.with_value(path, value)
    return run_plan(Plan(chosen), seed, tie_seed)


def scenarios() -> tuple[str, ...]:
    """The names of the built-in scenarios."""
    from bargein.sim.scenario.loading import builtin_names

    return builtin_names()
