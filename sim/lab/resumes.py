"""Stopping a session at a place, saving it there, and going on from the saved document in another process.

``sim.run(checkpoint=...)`` and ``sim.resume`` call it. A session is deterministic, so going on means to run it again
up to the place: what the program's own Python did is answered from the recorded effects and does not run a second
time, models of the world run again, and only if every effect and every part of the state is as it was saved does the
session go on. Left out: the document (``sim.effects.checkpoint``) and the state (``state``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bargein.models.python_tools import Tools
from bargein.pipelines.events import KINDS
from bargein.sim.effects.bus import Effect, Handler
from bargein.sim.effects.checkpoint import Checkpoint, Place
from bargein.sim.effects.documents import read_bytes
from bargein.sim.effects.identity import NOTHING, Change, changes, differences, tool_key, written
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Answers, ReplayRefused, play
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.durations import DurationError, parse_duration
from bargein.sim.lab.payloads import PlainPayloads
from bargein.sim.lab.programs import PYTHON, check_recordable, judged_apart, program_differences, program_of
from bargein.sim.lab.replays import log_of, plan_of
from bargein.sim.lab.replays import record as record_plan
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import judge
from bargein.sim.lab.state import digests_of, state_of
from bargein.sim.report.atomic import write_whole
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

__all__ = ["Resumed", "When", "read_checkpoint", "resume", "run_and_save", "take_checkpoint"]

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
    "agent.max_tool_rounds, agent.max_context_tokens, what a tool's runs come to, the rest of the llm script, and what "
    "a line that has not begun says"
)


@dataclass(frozen=True, slots=True)
class When:
    """The place at which a session is to be stopped.

    Attributes:
        text: as the user gave it.
        kind, nth: right after the nth event of this kind; or
        at_us: before anything of this instant.
    """

    text: str
    kind: str = ""
    nth: int = 1
    at_us: int = 0

    @classmethod
    def parse(cls, text: str) -> When:
        """``tool.committed:2``, ``turn.barge_in`` or ``4.5s``.

        Raises:
            ScenarioError: it is neither an event nor an instant.
        """
        kind, _, nth = text.partition(":")
        if kind in KINDS:
            if nth and not (nth.isascii() and nth.isdecimal() and 0 < len(nth) < 10 and int(nth) > 0):
                raise ScenarioError(f'"{text}": found the number "{nth}"; accepted is a whole number from 1')
            return cls(text, kind, int(nth or 1))
        try:
            return cls(text, at_us=parse_duration(text))
        except DurationError:
            pass
        if text[:1].isdigit() or not kind:
            raise ScenarioError(f'"{text}" is no place; accepted is an event such as tool.committed:2, or 4.5s')
        raise ScenarioError(f'"{text}": {unknown("event", kind, KINDS)}; an instant such as 4.5s is accepted too')


def take_checkpoint(
    plan: Plan, when: When, seed: int | None = None, tie_seed: int | None = None
) -> tuple[Result, EffectLog, Checkpoint]:
    """Run one session, saving it on the way at a place.

    Returns:
        What came of the whole session, its log, and the checkpoint.

    Raises:
        ScenarioError: the place does not come, or the session is over there.
    """
    check_recordable(plan.scenario)
    recorder = Recorder()
    opened = plan.open(seed, tie_seed, recorder=recorder)
    taken: list[Checkpoint] = []

    def go() -> None:
        run_to(opened, when)
        taken.append(_taken(plan, opened, recorder, when, seed, tie_seed))
        opened.session.go_on()

    result = judge(plan, opened, go, seed, tie_seed)
    if not taken:
        raise ScenarioError(f'"{when.text}" does not come: {result.stopped}')
    return result, log_of(plan, recorder, result), taken[0]


def run_and_save(
    plan: Plan,
    seed: int | None,
    tie_seed: int | None,
    *,
    record: str | os.PathLike[str] | None,
    checkpoint_at: str | None,
    checkpoint: str | os.PathLike[str] | None,
) -> Result:
    """Run one session and write what was asked for, each file whole or not at all.

    Raises:
        ScenarioError: the place is none or does not come, or half of a pair is missing.
        OSError: a file cannot be written.
    """
    if (checkpoint_at is None) is not (checkpoint is None):
        raise ScenarioError(
            "a checkpoint needs a place and a file; accepted are both, such as tool.committed:2 and a path"
        )
    if checkpoint_at is None or checkpoint is None:
        result, log = record_plan(plan, seed, tie_seed)
    else:
        result, log, saved = take_checkpoint(plan, When.parse(checkpoint_at), seed, tie_seed)
        write_whole(checkpoint, saved.to_bytes())
        reasons = saved.unresumable(PYTHON)
        result.notes += tuple([f"the checkpoint can be looked at, and not resumed: {each}" for each in reasons])
    if record is not None:
        write_whole(record, log.to_bytes())
    return result


def run_to(opened: Opened, when: When) -> None:
    """Run a session from its start to a place.

    Raises:
        ScenarioError: the place does not come, or the session is over there.
    """
    session, clock = opened.session, opened.session.clock
    if not when.kind:
        session.start()
        if not clock.run_while(lambda at_us: at_us < when.at_us):
            last_us = clock.now
            raise ScenarioError(f'"{when.text}": the call is over at {last_us} us; accepted is an earlier instant')
        clock.run(until=when.at_us)
        return
    seen = 0

    def count(_: object) -> None:
        nonlocal seen
        seen += 1

    session.timeline.watch(when.kind, count)
    session.start()
    if not clock.run_while(lambda _: seen < when.nth):
        if seen >= when.nth:
            raise ScenarioError(f'"{when.text}": the call is over there; accepted is a place before its end')
        raise ScenarioError(f'"{when.text}": there {"is" if seen == 1 else "are"} {seen} of {when.kind} in this call')


def _taken(
    plan: Plan, opened: Opened, recorder: Recorder, when: When, seed: int | None, tie_seed: int | None
) -> Checkpoint:
    """The session as it stands."""
    session = opened.session
    own = [spec.name for spec in plan.scenario.own_tools]
    header = {
        **program_of(plan),
        "seed": plan.scenario.seed if seed is None else seed,
        "tie_seed": tie_seed,
    }
    try:
        records = recorder.records(PlainPayloads())
    except (TypeError, ValueError) as problem:
        raise ScenarioError(f"the session cannot be saved: {problem}") from None
    parts = state_of(opened, own)
    place = Place(when.text, session.clock.now, session.clock.processed, len(session.timeline))
    return Checkpoint(header, place, session.epoch + 1, len(records), records, parts, digests_of(parts))


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file.

    Raises:
        DocumentError: there is none, or it cannot be used.
    """
    name = os.fspath(path)
    return Checkpoint.from_bytes(read_bytes(name, "a checkpoint"), name)


# -- going on -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came of a session that was resumed.

    Attributes:
        result: the whole session, from its start.
        place: where it was taken up.
    """

    result: Result
    place: Place

    @property
    def ok(self) -> bool:
        """Whether every invariant and every expectation held."""
        return self.result.ok

    def to_json(self) -> dict[str, Any]:
        """The object that ``bargein resume --json`` prints: a run's, and where it was taken up."""
        place = {name: getattr(self.place, name) for name in ("why", "at_us", "events", "seq")}
        return {**self.result.to_json(), "resumed": place}


def resume(
    saved: Checkpoint,
    *,
    tools: Tools | None = None,
    set: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    record: str | os.PathLike[str] | None = None,
) -> Resumed:
    """Go on from a checkpoint to the end of the session.

    Args:
        tools: the program's own tools, where it has any; what they did before the place is not done again.
        set: values to change from the place on, by dotted path.
        folder: where the scenario's recordings are, if it has any.
        record: a file for the log of the whole session; not with ``set``, since a log names one program.

    Raises:
        DocumentError: the checkpoint's scenario is none.
        OSError: the log cannot be written.
        ScenarioError: a value cannot be changed, or not in the middle of a call.
        ReplayRefused: the program is not the one that was saved, or the session does not come to the saved state.
    """
    if record is not None and set:
        raise ScenarioError("a log names one program, and a session with changed values is two; accepted is either")
    plan = plan_of(saved.header, saved.name, folder, tools)
    _check(saved, plan, tools)
    changed = _changed(plan, tools, saved, set or {})
    own = [spec.name for spec in plan.scenario.own_tools]
    past = _Past(saved, own)
    recorder = Recorder(past.handler)
    opened = plan.open(saved.header["seed"], saved.header["tie_seed"], recorder=recorder)

    def go() -> None:
        _run_again(saved, opened, recorder, own)
        past.over = True
        if changed is not None:
            _check_lines(opened, plan.scenario, changed.scenario)
            opened.adopt(changed)
        opened.session.go_on()

    judged = changed or plan
    result = judge(judged, opened, go, saved.header["seed"], saved.header["tie_seed"])
    if record is not None:
        write_whole(record, log_of(plan, recorder, result).to_bytes())
    return Resumed(result, saved.place)


def _check(saved: Checkpoint, plan: Plan, tools: Tools | None) -> None:
    """Everything that can be refused before anything runs."""
    found = list(program_differences(saved.header, program_of(plan))) or saved.unresumable(PYTHON)
    missing = [spec.name for spec in plan.scenario.own_tools] if tools is None else []
    if missing and not found:
        found = [f"the program's own tools {', '.join(missing)} are not here; accepted is to give them"]
    if found:
        raise ReplayRefused(*(f"{saved.name}: {each}" for each in found))


class _Past:
    """What the program's own tools did before the place, from the records; it does not happen again.

    Attributes:
        over: the place was reached, and what comes now is done by the tools themselves.
    """

    def __init__(self, saved: Checkpoint, own: Collection[str]) -> None:
        self.name = saved.name
        self.over = False
        self.answers = Answers(saved.records, PlainPayloads())
        self._own = frozenset(tool_key("agent", name, 0) for name in own)

    def handler(self, recorder: Recorder, key: str, handler: Handler) -> Handler:
        """Who serves ``key``."""
        return _Recorded(self, recorder, handler) if key in self._own else handler


class _Recorded:
    """A tool of the program's own, and what it did before the place."""

    __slots__ = ("_handler", "_past", "_recorder")

    def __init__(self, past: _Past, recorder: Recorder, handler: Handler) -> None:
        self._past = past
        self._recorder = recorder
        self._handler = handler

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        if self._past.over:
            return self._handler.serve(effect)
        record = self._past.answers.next(effect)
        if record is None:
            raise ReplayRefused(f"{self._past.name}: effect {effect.id} ({effect.key}) was never recorded")
        return play(effect, record, PlainPayloads(), self._recorder)


def _run_again(saved: Checkpoint, opened: Opened, recorder: Recorder, own: list[str]) -> None:
    """Bring the session to the place, and see that it is the one that was saved.

    Raises:
        ReplayRefused: it is not.
    """
    session, place = opened.session, saved.place
    clock = session.clock
    session.start()
    left = clock.run_while(lambda at_us: clock.processed < place.events and at_us <= place.at_us)
    if left and clock.now < place.at_us:
        clock.run(until=place.at_us)  # the place is an instant at which nothing happens
    if (clock.processed, len(session.timeline)) != (place.events, place.seq) or not left:
        raise ReplayRefused(
            f"{saved.name}: place: it was after {place.events} events and {place.seq} records, and the session "
            f"comes to {clock.processed} and {len(session.timeline)} by {place.at_us} us"
        )
    found = next(_state_differences(saved, opened, recorder, own), None)
    if found is not None:
        raise ReplayRefused(f"{saved.name}: {found}")


def _state_differences(saved: Checkpoint, opened: Opened, recorder: Recorder, own: list[str]) -> Iterator[str]:
    records = [record.to_dict() for record in recorder.records(PlainPayloads())]
    before = [record.to_dict() for record in saved.records]
    if written(records) != written(before):
        yield next(differences(before, records, "records"), "records: their order of keys is another")
    if opened.session.epoch + 1 != saved.next_run or len(records) != saved.next_id:
        found = {"next_run": opened.session.epoch + 1, "next_id": len(records)}
        yield from differences({"next_run": saved.next_run, "next_id": saved.next_id}, found, "counters")
    parts = state_of(opened, own)
    if digests_of(parts) != saved.digests:
        yield next(differences(saved.parts, parts, "parts"), "parts: their order of keys is another")


# -- what may be changed --------------------------------------------------------------------------------------


def _changed(plan: Plan, tools: Tools | None, saved: Checkpoint, values: Mapping[str, Any]) -> Plan | None:
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
    asked = sum(record.kind == "completion" for record in saved.records)
    if old.llm.rounds and new.llm.rounds[:asked] != old.llm.rounds[:asked]:
        wrong.append(f"llm: its first {asked} rounds were given already; accepted is to change a later one")
    if wrong:
        raise ScenarioError(*dict.fromkeys(wrong))
    return Plan(new, tools)


def _fixed(old: Scenario, new: Scenario) -> Iterator[str]:
    """What differs and cannot be changed, by its path."""
    for change in _leaves(judged_apart(old.to_dict()), judged_apart(new.to_dict())):
        path = change.path
        if path[0] in ("llm", "caller"):
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


def _check_lines(opened: Opened, old: Scenario, new: Scenario) -> None:
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
