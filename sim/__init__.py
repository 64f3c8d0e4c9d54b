"""bargein from Python: ``from bargein import sim; r = sim.run("barge_in_during_booking")``.

The names below are what users import; heavy parts are loaded when one is used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bargein.models.python_tools import Progress, ToolCallContext, ToolError, Tools
    from bargein.sim.lab.result import Result
    from bargein.sim.scenario.model import Scenario

__all__ = ["Progress", "ToolCallContext", "ToolError", "Tools", "load", "main", "run", "scenarios"]

_TOOLS = ("Progress", "ToolCallContext", "ToolError", "Tools")


def __getattr__(name: str) -> Any:
    """What tools are written with, loaded when it is first used."""
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bargein.models import python_tools

    return getattr(python_tools, name)


def load(scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario, *, tools: Tools | None = None) -> Scenario:
    """A scenario by built-in name, from a file, or from plain data with a file's keys; a scenario is returned as it is.

    Args:
        tools: tools that the program brings, so that the scenario may call them.

    Raises:
        bargein.sim.scenario.places.ScenarioError: it cannot be used; one sentence for each thing wrong.
    """
    from bargein.sim.scenario.loading import load as load_file
    from bargein.sim.scenario.model import Scenario

    if isinstance(scenario, Scenario):
        return scenario if tools is None else scenario.with_tools(tools.specs)
    specs = () if tools is None else tools.specs
    if isinstance(scenario, Mapping):
        return Scenario.from_dict(scenario, tools=specs)
    return load_file(os.fspath(scenario), tools=specs)


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    tools: Tools | None = None,
    seed: int | None = None,
    tie_seed: int | None = None,
    set: Mapping[str, Any] | None = None,
) -> Result:
    """Simulate one session and return what came of it.

    Args:
        scenario: a built-in's name, a file, plain data, or a scenario.
        tools: the program's own tools; they replace the scenario's of the same name and add to the others.
        seed: of the random streams; the scenario's own where none is given.
        tie_seed: permutes what falls on the same instant, reproducibly.
        set: values to change first, by dotted path: ``{"agent.filler.delay": "800ms"}``.

    Raises:
        bargein.sim.scenario.places.ScenarioError: the scenario cannot be used.
    """
    from bargein.sim.lab.session import run_plan
    from bargein.sim.scenario.build import Plan

    chosen = load(scenario, tools=tools)
    for path, value in (set or {}).items():
        chosen = chosen.with_value(path, value)
    return run_plan(Plan(chosen, tools), seed, tie_seed)


def scenarios() -> tuple[str, ...]:
    """The names of the built-in scenarios."""
    from bargein.sim.scenario.loading import builtin_names

    return builtin_names()


def main(tools: Tools | None = None, arguments: Sequence[str] | None = None) -> None:
    """The ``bargein`` command as part of a program that brings its own tools; it exits as the command does.

    Args:
        tools: offered to every scenario that is run or checked, unless ``--tools`` names others.
        arguments: of the command line; the program's own unless given.
    """
    from bargein.sim.cli import main as command

    command.main(args=None if arguments is None else list(arguments), prog_name="bargein", obj=tools)
