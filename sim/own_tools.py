"""Tools that the command line is told of: ``--tools my_tools:registry``.

The one place where a user's module is imported; a scenario file itself never imports code. Left out: what the tools
are (``bargein.models.python_tools``).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from bargein.models.python_tools import Tools
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

__all__ = ["import_tools"]


def import_tools(place: str) -> Tools:
    """The tools at ``module:attribute``; the module may lie in the current directory.

    Raises:
        ScenarioError: it cannot be imported, has no such attribute, or that is no `Tools`.
    """
    module_name, colon, attribute = place.partition(":")
    if not (colon and module_name and attribute):
        raise ScenarioError(
            f'--tools "{place}" names no tools; accepted is module:attribute, such as my_tools:registry'
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as ``python -m`` has it; an installed command does not
    try:
        module = import_module(module_name)
    except Exception as problem:
        what = " ".join(f"{type(problem).__name__}: {problem}".split())  # one sentence, whatever it says
        raise ScenarioError(
            f"--tools {place}: {module_name} cannot be imported ({what}); accepted is a module that is importable here"
        ) from None
    found = getattr(module, attribute, None)
    if found is None:
        names = [name for name, value in vars(module).items() if isinstance(value, Tools)]
        raise ScenarioError(f"--tools {place}: {unknown('attribute', attribute, names)}")
    if not isinstance(found, Tools):
        raise ScenarioError(
            f"--tools {place}: it is of type {type(found).__name__}; accepted is an instance of bargein.sim.Tools"
        )
    return found
