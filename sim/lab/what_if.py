"""What may be changed in the middle of a call, and what is refused by name.

``resumes`` asks it before anything runs, and once more, of the caller's lines, at the place. What is still to come can
change: how the agent decides from there on, what tools and models will answer, what the caller will say. What was
done already, what the session was built of, and when something is to happen that is timed already cannot.
Left out: adopting it (``Opened.adopt``), and other tools of the program's own (``replacing``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bargein.models.python_tools import Tools
from bargein.models.s2s.handler import LiveHandler
from bargein.pipelines.response_stream import model_key
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.identity import NOTHING, Change, changes
from bargein.sim.lab.programs import judged_apart
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.model import Llm, Scenario
from bargein.sim.scenario.places import ScenarioError

__all__ = ["changed_plan", "check_lines", "check_rounds"]

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
    "script and of other models', and what a line that has not begun says"
)
_CONNECTED_WITH = (("agent", "turn"), ("agent", "system"))
"""What a live provider is told when it is connected to, and keeps."""
_ACCEPTED_LIVE = (
    "accepted are agent.filler, agent.engine, agent.tts, agent.fallback, agent.max_tool_rounds, "
    "agent.max_context_tokens, what a tool's runs come to, the rest of the llm script, and what a line that has not "
    "begun says; a live provider keeps what it was connected with"
)


def changed_plan(
    plan: Plan, tools: Tools | None, saved: Checkpoint, values: Mapping[str, Any], new: Scenario | None = None
) -> Plan | None:
    """The plan with the values changed; ``None`` where nothing is.

    Args:
        new: the plan's scenario with other tools of the program's own, where these are replaced too.

    Raises:
        ScenarioError: a value is none, or cannot be changed in the middle of a call.
    """
    old = plan.scenario
    if new is None:
        if not values:
            return None
        new = old
    for path, value in values.items():
        new = new.with_value(path, value)
    accepted = _ACCEPTED if old.s2s is None else _ACCEPTED_LIVE
    wrong = [f"{place}: it cannot be changed in the middle of a call; {accepted}" for place in _fixed(old, new)]
    if old.s2s is not None and new.own_tools != old.own_tools:
        wrong.append("tools: a live provider keeps those that it was connected with; accepted is to leave them")
    for place, label, before, after in _scripts(old, new) if old.s2s is None else ():
        asked = sum(record.key == model_key(label) for record in saved.records)
        if before.rounds and after.rounds[:asked] != before.rounds[:asked]:
            wrong.append(f"{place}: its first {asked} rounds were given already; accepted is to change a later one")
    if wrong:
        raise ScenarioError(*dict.fromkeys(wrong))
    return Plan(new, tools)


def _fixed(old: Scenario, new: Scenario) -> Iterator[str]:
    """What differs and cannot be changed, by its path."""
    for change in _leaves(judged_apart(old.to_dict()), judged_apart(new.to_dict())):
        path = change.path
        if path[0] in ("llm", "models", "caller", "steering"):
            continue
        if old.s2s is not None and path[:2] in _CONNECTED_WITH:
            yield change.place
        elif path[:2] in _CHANGEABLE or (path[0] == "tools" and len(path) > 2 and path[2] in _CHANGEABLE_TOOL):
            continue
        else:
            yield change.place
    labels = dict.fromkeys((*old.models, *new.models))
    yield from (f"models.{label}" for label in labels if label not in old.models or label not in new.models)
    for place, _, before, after in _scripts(old, new):
        yield from (f"{place}.{name}" for name in _FIXED_LLM if getattr(before, name) != getattr(after, name))
    if len(old.caller) != len(new.caller):
        yield "caller"


def _scripts(old: Scenario, new: Scenario) -> Iterator[tuple[str, str, Llm, Llm]]:
    """Where the script of each model stands that both have, its label, and the script in either."""
    yield "llm", old.agent.model, old.llm, new.llm
    for label, script in old.models.items():
        if label in new.models:
            yield f"models.{label}", label, script, new.models[label]


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


def check_rounds(opened: Opened, old: Scenario, new: Scenario) -> None:
    """That a live provider's script differs only in rounds that it has not begun; before anybody is told, it has.

    Raises:
        ScenarioError: it has begun one.
    """
    given = len(opened.model.requests) if isinstance(opened.model, LiveHandler) else 0
    if old.llm.rounds[:given] != new.llm.rounds[:given]:
        raise ScenarioError(f"llm: its first {given} rounds were given already; accepted is to change a later one")
