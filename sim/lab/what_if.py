"""What may be changed in the middle of a call, and what is refused by name.

``resumes`` asks it before anything runs, and once more, of the caller's lines, at the place. What is still to come can
change: how the agent decides from there on, what tools and the model will answer, what the caller will say. What was
done already, what the session was built of, and when something is to happen that is timed already cannot.
Left out: adopting it (``Opened.adopt``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bargein.models.python_tools import Tools
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.identity import NOTHING, Change, changes
from bargein.sim.lab.programs import judged_apart
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError

__all__ = ["changed_plan", "check_lines"]

_CHANGEABLE = (
    ("agent", "filler"),
    ("agent", "turn"),
    ("agent", "engine"),
    ("agent", "tts"),
    ("agent", "fallback"),
    ("agent", "max_tool_rounds"),
    ("agent", "max_context_tokens"),
    ("agent", "system"),
    ("agent", "speculation"),
)
_CHANGEABLE_TOOL = ("latency", "result", "error", "crash", "progress", "results")
_FIXED_LLM = ("wire", "quirks", "chunking", "cassette", "profile")
_ACCEPTED = (
    "accepted are agent.filler, agent.turn, agent.engine, agent.tts, agent.fallback, agent.system, agent.speculation, "
    "agent.max_tool_rounds, agent.max_context_tokens, steering, what a tool's runs come to, the rest of the llm "
    "script, and what a line that has not begun says"
)


def changed_plan(plan: Plan, tools: Tools | None, saved: Checkpoint, values: Mapping[str, Any]) -> Plan | None:
    """The plan with the values changed; ``None`` where nothing is.

    Raises:
        ScenarioError: a value is none, or cannot be changed in the middle of a call.
    """
    if not values:
        return None
    old = plan.scenario
    new = old
    for path, value in values.items():
        new = new.with_value(path, value)
    wrong = [f"{place}: it cannot be changed in the middle of a call; {_ACCEPTED}" for place in _fixed(old, new)]
    asked = sum(record.kind == EffectKind.COMPLETION for record in saved.records)
    if old.llm.rounds and new.llm.rounds[:asked] != old.llm.rounds[:asked]:
        wrong.append(f"llm: its first {asked} rounds were given already; accepted is to change a later one")
    if wrong:
        raise ScenarioError(*dict.fromkeys(wrong))
    return Plan(new, tools)


def _fixed(old: Scenario, new: Scenario) -> Iterator[str]:
    """What differs and cannot be changed, by its path."""
    for change in _leaves(judged_apart(old.to_dict()), judged_apart(new.to_dict())):
        path = change.path
        if path[0] in ("llm", "caller", "steering"):
            continue
        if path[:2] in _CHANGEABLE or (path[0] == "tools" and len(path) > 2 and path[2] in _CHANGEABLE_TOOL):
            continue
        yield change.place
    yield from (f"llm.{name}" for name in _FIXED_LLM if getattr(old.llm, name, None) != getattr(new.llm, name, None))
    if len(old.caller) != len(new.caller):
        yield "caller"


def _leaves(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """What differs, key by key also where one side has nothing at all."""
    for change in changes(before, after, path):
        if change.recorded is NOTHING and type(change.found) is dict:
            yield from _leaves({}, change.found, change.path)
        elif change.found is NOTHING and type(change.recorded) is dict:
            yield from _leaves(change.recorded, {}, change.path)
        else:
            yield change


def check_lines(opened: Opened, old: Scenario, new: Scenario) -> None:
    """That only lines which have not begun say something else, and all of them when they did.

    Raises:
        ScenarioError: a line was said already, or its time is changed.
    """
    begun = [record["line"] for record in opened.session.timeline.of("caller.started")]
    for number, (one, other) in enumerate(zip(old.caller, new.caller, strict=True), start=1):
        if one == other:
            continue
        if number in begun:
            raise ScenarioError(f"caller[{number - 1}]: the line was begun already; accepted is a later one")
        if (one.at_us, one.after, one.level, one.speaks) != (other.at_us, other.after, other.level, other.speaks):
            raise ScenarioError(
                f"caller[{number - 1}]: when and how a line is said cannot be changed in the middle of a call; "
                "accepted is what it says"
            )
