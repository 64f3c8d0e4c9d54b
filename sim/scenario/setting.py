"""One value of a scenario's data changed by its dotted path: ``--set agent.filler.delay=800ms``.

``Scenario.with_value`` and the command line call it. Left out: whether the result is a scenario; its checks say so,
and they know the nearest key to an unknown one.
"""

from __future__ import annotations

import re
from copy import deepcopy
from json import dumps
from typing import Any

from bargein.sim.scenario.places import Path, ScenarioError, path_text
from bargein.sim.scenario.suggest import unknown

__all__ = ["assignment", "changed", "parse_path", "split_assignment"]

_NAMED: dict[Path, str] = {("tools",): "tool", ("models",): "model"}
"""Mappings to which a path adds nothing by naming part of what is not there, and what they hold."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def split_assignment(text: str) -> tuple[str, Any]:
    """``key=value`` as a path and the value, which is read as YAML.

    Raises:
        ScenarioError: there is no ``=``, or the value is no YAML.
    """
    from bargein.sim.scenario.texts import parse_yaml

    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f'"{text}" sets nothing; accepted is key=value, such as agent.filler.delay=800ms')
    return path.strip(), parse_yaml(value, text)[0]


def assignment(path: str, value: Any) -> str:
    """``key=value`` as one would give it on the command line."""
    return f"{path}={value if isinstance(value, str) else dumps(value, ensure_ascii=False, default=str)}"


def parse_path(text: str) -> Path:
    """``caller[1].after.by`` (or ``caller.1.after.by``) as keys and list positions.

    Raises:
        ScenarioError: it is no path.
    """
    steps: list[str | int] = []
    end = 0
    for match in _STEP.finditer(text):
        if text[end : match.start()] not in (("", ".") if steps else ("",)):
            break
        key, index = match.groups()
        steps.append(int(index) if index else key)
        end = match.end()
    if not steps or end != len(text):
        raise ScenarioError(f'"{text}" is not a path; accepted is keys joined by dots, such as agent.filler.delay')
    return tuple(steps)


def changed(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of ``data`` with the value at ``path`` replaced; missing mappings on the way are made.

    Raises:
        ScenarioError: the path leads to a tool, a model, a list item or a part of a plain value that is not there.
    """
    copied = deepcopy(data)
    steps = parse_path(path)
    holder: Any = copied
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        done = steps[:position]
        if done == ("llm",) or (len(done) == 2 and done[0] == "models"):
            holder = _script(copied if len(done) == 1 else copied["models"], done[-1], step)
        if isinstance(holder, list):
            index = int(step) if isinstance(step, int) or step.isdecimal() else -1
            if not 0 <= index < len(holder):
                items = f"an item from 0 to {len(holder) - 1}" if holder else "nothing, since it is empty"
                raise ScenarioError(f"{path}: {path_text(done)} has no item {step}; accepted is {items}")
            step = index
        elif isinstance(step, int):
            raise ScenarioError(f"{path}: {path_text(done) or 'a scenario'} is no list; accepted is a key")
        elif done in _NAMED and step not in holder and not (last and isinstance(value, dict | list)):
            raise ScenarioError(f"{path}: {unknown(_NAMED[done], step, holder)}")
        if last:
            holder[step] = deepcopy(value)
            break
        inner = holder[step] if isinstance(step, int) else holder.get(step)
        if not isinstance(inner, dict | list):
            # A shorthand or a default gives way to the mapping that the path asks for.
            inner = holder[step] = {}
        holder = inner
    return copied


def _script(scripts: dict[str, Any], label: Any, step: str | int) -> Any:
    """The script in the form that the path means: a bare list of rounds, or the mapping around it."""
    script = scripts[label]
    by_index = isinstance(step, int) or step.isdecimal()
    if isinstance(script, list) and not by_index:
        script = scripts[label] = {"rounds": script}
    elif isinstance(script, dict) and by_index:
        return script.get("rules") or script.get("rounds") or []
    return script
