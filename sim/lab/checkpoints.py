"""Stopping a session at a place and saving it there.

``sim.run(checkpoint_at=...)`` calls it. The place is right after an event of the timeline, or before an instant; the
session then goes on to its end as if nothing had been. Left out: the document (``sim.effects.checkpoint``), what it
shows of the session (``state``), and going on from it (``resumes``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from bargein.pipelines.events import KINDS
from bargein.sim.effects.checkpoint import Checkpoint, Place
from bargein.sim.effects.documents import read_bytes
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.durations import DurationError, parse_duration
from bargein.sim.lab.payloads import PlainPayloads
from bargein.sim.lab.programs import PYTHON, program_of
from bargein.sim.lab.replays import log_of
from bargein.sim.lab.replays import record as record_plan
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import judge
from bargein.sim.lab.state import digests_of, state_of
from bargein.sim.report.atomic import write_whole
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

__all__ = ["When", "checkpoint_of", "next_run", "read_checkpoint", "run_and_save", "run_to", "take_checkpoint"]


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
        kind, colon, nth = text.partition(":")
        if kind in KINDS:
            if colon and not (nth.isascii() and nth.isdecimal() and len(nth) < 10 and int(nth) > 0):
                raise ScenarioError(
                    f'"{text}": found the number "{nth}"; accepted is a whole number from 1 to 999999999'
                )
            return cls(text, kind, int(nth or 1))
        try:
            return cls(text, at_us=parse_duration(text))
        except DurationError:
            pass
        if text.lstrip("+-. ")[:1].isdigit() or not kind.strip():
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
    recorder = Recorder()
    opened = plan.open(seed, tie_seed, recorder=recorder)
    taken: list[Checkpoint] = []

    def go() -> None:
        run_to(opened, when)
        taken.append(checkpoint_of(plan, opened, recorder, when.text, seed, tie_seed))
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
        ScenarioError: the place is none or does not come, half of a pair is missing, or both files are one.
        OSError: a file cannot be written.
    """
    if (checkpoint_at is None) is not (checkpoint is None):
        raise ScenarioError(
            "a checkpoint needs a place and a file; accepted are both, such as tool.committed:2 and a path"
        )
    if record is not None and checkpoint is not None and os.path.realpath(record) == os.path.realpath(checkpoint):
        raise ScenarioError(f"{os.fspath(record)}: the log and the checkpoint are to be one file; accepted are two")
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


def checkpoint_of(
    plan: Plan,
    opened: Opened,
    recorder: Recorder,
    why: str,
    seed: int | None = None,
    tie_seed: int | None = None,
) -> Checkpoint:
    """The session as it stands, between two events of its clock.

    Args:
        why: what was asked for.
        seed, tie_seed: those that it was opened with.

    Raises:
        ScenarioError: something that went over the bus has no plain form.
    """
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
    place = Place(why, session.clock.now, session.clock.processed, len(session.timeline))
    return Checkpoint(header, place, next_run(opened), len(records), records, parts, digests_of(parts))


def next_run(opened: Opened) -> int:
    """The number of the next run: an epoch that an interruption has opened is still without one."""
    session = opened.session
    return session.epoch + 1 if session._has_user else session.epoch


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file.

    Raises:
        DocumentError: there is none, or it cannot be used.
    """
    name = os.fspath(path)
    return Checkpoint.from_bytes(read_bytes(name, "a checkpoint"), name)
