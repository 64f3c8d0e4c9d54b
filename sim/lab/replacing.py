"""Going on from a checkpoint with other tools of the program's own than those it was saved with.

``resumes`` asks it, where the host accepts that they were changed. What is told of a tool (its description and schema)
and how long it is waited for may change within its name; the past is answered from the records, under the declarations
that were saved (run contract, section 13). What its calls may do, and when, was decided under the declaration of then,
and stays. Left out: adopting them (``Opened.replace_tools``), and values that are changed (``what_if``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from bargein.models.python_tools import Tools
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.scenario.build import Opened
from bargein.sim.scenario.model import Scenario

__all__ = ["check_calls", "with_other_tools"]

_ACCEPTED = "accepted are another description, parameters, timeout and filler_after"
_FIXED = {
    "kind": "what an interruption and a repeat do to its calls depends on it",
    "repeatable": "which calls were run again was decided by it",
    "confirm": "which calls waited for the user was decided by it",
}
"""What of a declaration stays in the middle of a call, and why."""
_TOLD = ("description", "parameters")


def with_other_tools(saved: Checkpoint, old: Scenario, tools: Tools) -> Scenario:
    """The saved scenario in the program as it is now.

    Args:
        old: the saved scenario, with the program's own tools as they were declared.

    Raises:
        ReplayRefused: a tool is missing or one too many, or is of another sort than the one that was saved.
        ScenarioError: the scenario does not fit the tools.
    """
    wrong = list(_misfits(old, [spec.name for spec in tools.specs]))
    if not wrong:
        new = old.with_tools(tools.specs)
        wrong = list(_changes(old, _own(old), _own(new)))
    if wrong:
        raise ReplayRefused(*(f"{saved.name}: {each}" for each in wrong))
    return new


def _own(scenario: Scenario) -> dict[str, ToolSpec]:
    """The program's own tools that the agent uses, as they are declared in the session."""
    names = [spec.name for spec in scenario.own_tools]
    return {spec.name: spec for spec in scenario.specs if spec.name in names}


def _misfits(old: Scenario, given: list[str]) -> Iterator[str]:
    own = [spec.name for spec in old.own_tools]
    for name in own:
        if name not in given:
            yield f"tools.{name}: the program brings none of that name, and the saved one did; accepted is to give it"
    for name in given:
        if name not in own and (old.agent.tools is None or name in old.agent.tools):
            yield (
                f"tools.{name}: the program brings it, and the saved one did not; "
                f"accepted are its tools {', '.join(own) or '(none)'}"
            )


def _changes(scenario: Scenario, old: Mapping[str, ToolSpec], new: Mapping[str, ToolSpec]) -> Iterator[str]:
    for name, before in old.items():
        after = new[name]
        for field, why in _FIXED.items():
            saved, given = getattr(before, field), getattr(after, field)
            if saved != given:
                place = f"tools.{name}.{field}"
                yield f"{place}: saved was {_shown(saved)}, given is {_shown(given)}; {why}, so it stays; {_ACCEPTED}"
        if scenario.s2s is not None and any(getattr(before, field) != getattr(after, field) for field in _TOLD):
            yield (
                f"tools.{name}: a live provider was told of it when the call connected; "
                f"accepted is the same {' and '.join(_TOLD)}"
            )


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def check_calls(saved: Checkpoint, opened: Opened, old: Scenario, new: Scenario) -> None:
    """That at the place no call of a changed tool is bound to what was declared of it.

    Raises:
        ReplayRefused: one waits to be run, judged by the old schema; or a filler was spoken by the old delay.
    """
    before, after = _own(old), _own(new)
    differ = {
        name: [
            field.name for field in fields(ToolSpec) if getattr(before[name], field.name) != getattr(spec, field.name)
        ]
        for name, spec in after.items()
    }
    session = opened.session
    waiting = [(each.call_id, each.tool.spec.name) for each in session.engine.confirmations.pending]
    waiting += [(call.id, call.name) for call in session.runner.guesses.held_calls()]
    waiting += session.engine.suspended_calls
    wrong = [
        f"{saved.name}: tools.{name}.parameters: call {call} was made by the saved ones and waits to be run; "
        "accepted is a place where none of the tool's calls waits"
        for call, name in waiting
        if "parameters" in differ.get(name, ())
    ]
    spoken = dict.fromkeys(record["tool"] for record in session.timeline.of("filler.spoken"))
    wrong += [
        f"{saved.name}: tools.{name}.filler_after: a filler was timed by the saved one; accepted is an earlier place"
        for name in spoken
        if "filler_after_us" in differ.get(name, ())
    ]
    if wrong:
        raise ReplayRefused(*wrong)
