"""Which identical side effects may run again, and which may not (tool contract, "Repeats within a turn",
"Regeneration").

Three rules, all over the 32 side effects that were started last. A success that the model read forbids the same
call in a later response of that turn, unless the tool is repeatable. An orphan, a side effect whose result can no
longer be its own tool result, forbids it in any other response within the orphan window, until a delivered answer
has used the orphan up. A remote effect whose outcome nobody knows forbids it in the rest of its turn. Gated tools
have a cycle of their own. ``tools.effect_once`` reports what is found here.
Left out: how two calls are known to be identical; the lab brings a digest for each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.base import CheckSettings, ToolFacts
from bargein.sim.lab.invariants.facts import Facts, epoch_of_call

__all__ = ["forbidden_repeats"]

_LOOK_BACK = 32
_UNLISTED = ToolFacts()
_DETACHED = frozenset({"timed_out_running", "interrupted_running"})
_CLOSED_WITHOUT = frozenset({"interrupted", "timeout"})
_USES_UP = frozenset({"orphan_replayed", "orphan_lost"})


@dataclass(slots=True)
class _Story:
    """What became of one call, each with the record that says so."""

    settled: Record | None = None
    answer: Record | None = None
    responses: list[int] = field(default_factory=list)


def forbidden_repeats(facts: Facts, settings: CheckSettings) -> Iterator[tuple[Record, Record, str]]:
    """Side effects that ran although an identical one forbade it: ``(second, first, why)``, in order."""
    stories = _stories(facts)
    started = [record for record in facts.of("tool.started") if record["side_effect"]]
    for at, second in enumerate(started):
        digest = settings.identities.get(second["call"])
        tool = settings.tools.get(second["tool"], _UNLISTED)
        if digest is None or tool.confirm:
            continue
        for first in started[max(0, at - _LOOK_BACK) : at]:
            if settings.identities.get(first["call"]) != digest or first["call"] == second["call"]:
                continue
            if _same_response(stories, first["call"], second["call"]):
                continue
            why = _orphaned(facts, settings, stories, first, second)
            if why is None and not tool.repeatable:
                why = _read_already(settings, stories, first, second) or _in_doubt(facts, first, second)
            if why is not None:
                yield second, first, why
                break


def _stories(facts: Facts) -> dict[str, _Story]:
    stories: dict[str, _Story] = {}
    for settled in facts.of("tool.settled"):
        story = stories.setdefault(settled["call"], _Story())
        story.settled = story.settled or settled
    for push in facts.of("context.pushed"):
        for call in push["calls"]:
            stories.setdefault(call, _Story()).responses.append(push["message"])
        if push["role"] == "tool":
            story = stories.setdefault(push["call"], _Story())
            story.answer = story.answer or push
    return stories


def _same_response(stories: dict[str, _Story], first: str, second: str) -> bool:
    empty = _Story()
    return bool(set(stories.get(first, empty).responses) & set(stories.get(second, empty).responses))


def _orphaned(
    facts: Facts, settings: CheckSettings, stories: dict[str, _Story], first: Record, second: Record
) -> str | None:
    orphaned = _orphaned_at(stories.get(first["call"], _Story()))
    window_us = settings.at(second).orphan_window_us
    if orphaned is None or orphaned["seq"] > second["seq"] or window_us == 0:
        return None
    if second["t"] - orphaned["t"] > window_us:
        return None
    digest = settings.identities[first["call"]]
    for settled in facts.of("tool.settled"):
        if settled["outcome"] not in _USES_UP or settled["tool"] != first["tool"]:
            continue
        answer = stories[settled["call"]].answer
        if (
            answer is None
            or answer["error"] == "interrupted"
            or settings.identities.get(settled["call"], digest) != digest
        ):
            continue
        if orphaned["seq"] < settled["seq"] and answer["seq"] < second["seq"]:
            return None
    return "its result missed its own slot, and the orphan window is open"


def _orphaned_at(story: _Story) -> Record | None:
    """The record that made a call an orphan; ``None`` when its result reached its own slot, or still may."""
    if story.settled is not None and story.settled["outcome"] in _DETACHED:
        return story.settled
    if story.answer is not None and story.answer["error"] in _CLOSED_WITHOUT:
        return story.answer
    return None


def _in_doubt(facts: Facts, first: Record, second: Record) -> str | None:
    """Whoever ran ``first`` could not say in its own turn what came of it."""
    for finished in facts.of("tool.finished"):
        if finished["call"] == first["call"] and finished["status"] == "lost" and finished["seq"] < second["seq"]:
            turns = [epoch_of_call(each["call"], each["epoch"]) for each in (first, second)]
            return f"nobody knows what it did in turn {turns[1]}" if turns[0] == turns[1] else None
    return None


def _read_already(settings: CheckSettings, stories: dict[str, _Story], first: Record, second: Record) -> str | None:
    """A success of the same turn that the model had read: of ``first`` itself, or of a replay under another id."""
    epoch = epoch_of_call(second["call"], second["epoch"])
    digest = settings.identities[second["call"]]
    for call, story in stories.items():
        replay = story.settled is not None and story.settled["outcome"] == "orphan_replayed"
        if call != first["call"] and not (replay and settings.identities.get(call) == digest):
            continue
        answer = story.answer
        if answer is None or answer["error"] or epoch_of_call(call, answer["epoch"]) != epoch:
            continue
        if answer["seq"] < second["seq"] and not _same_response(stories, call, second["call"]):
            return f"its success was read in turn {epoch}"
    return None
