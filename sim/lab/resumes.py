"""Going on from a checkpoint, in another process than the one that saved it.

``sim.resume`` calls it. A session is deterministic, so going on means to run it again up to the place: what the
program's own Python did, and what came of a memory that is kept, is answered from the recorded effects and does not
happen a second time, models of the world run again, and only if every effect and every part of the state is as it was
saved does the session go on. Left out: saving (``checkpoints``) and what may be changed on the way (``what_if``,
``replacing``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bargein.models.memory import MemoryHandler
from bargein.models.python_tools import Tools
from bargein.sim.effects.bus import Effect, Handler, Outcome
from bargein.sim.effects.checkpoint import Checkpoint, Place
from bargein.sim.effects.identity import differences, tool_key, written
from bargein.sim.effects.log import EffectRecord
from bargein.sim.effects.playing import play
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Answers, ReplayRefused
from bargein.sim.kernel.cancel import Cause
from bargein.sim.lab.checkpoints import next_run
from bargein.sim.lab.payloads import PlainPayloads
from bargein.sim.lab.programs import PYTHON, program_differences, program_of
from bargein.sim.lab.replacing import check_calls, with_other_tools
from bargein.sim.lab.replays import log_of, plan_of
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import judge
from bargein.sim.lab.state import digests_of, state_of
from bargein.sim.lab.what_if import changed_plan, check_lines, check_rounds
from bargein.sim.report.atomic import write_whole
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.layering import MakeLayers
from bargein.sim.scenario.places import ScenarioError

__all__ = ["Resumed", "Resumption", "resume"]


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
    layers: MakeLayers | None = None,
    replace: bool = False,
    set: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    record: str | os.PathLike[str] | None = None,
) -> Resumed:
    """Go on from a checkpoint to the end of the session.

    Args:
        tools: the program's own tools, where it has any; what they did before the place is not done again.
        layers: makes the layers of the session, which decide again up to the place as they did.
        replace: take them as they are now, from the place on, also where they are declared otherwise.
        set: values to change from the place on, by dotted path.
        folder: where the files are that the scenario reads, if it reads any.
        record: a file for the log of the whole session; not with ``set`` or ``replace``, since a log names one program.

    Raises:
        DocumentError: the checkpoint's scenario is none.
        OSError: the log cannot be written.
        ScenarioError: a value cannot be changed, or not in the middle of a call.
        ReplayRefused: the program is not the one that was saved, or the session does not come to the saved state.
    """
    if record is not None and set:
        raise ScenarioError("a log names one program, and a session with changed values is two; accepted is either")
    if record is not None and replace:
        raise ScenarioError("a log names one program, and a session with replaced tools is two; accepted is either")
    if replace and tools is None:
        raise ScenarioError("there are no tools to replace with; accepted is replace together with tools")
    going = Resumption(saved, None if replace else tools, folder, layers=layers, given=tools is not None)
    before = going.plan.scenario
    after = with_other_tools(saved, before, tools) if replace and tools is not None else None
    changed = changed_plan(going.plan, tools, saved, set or {}, after)

    def go() -> None:
        going.reach()
        if changed is not None:
            check_lines(going.opened, before, changed.scenario)
            check_rounds(going.opened, before, changed.scenario)
            if replace:
                check_calls(saved, going.opened, before, changed.scenario)
                going.opened.replace_tools(changed, going.recorder)
            going.opened.adopt(changed)
        going.opened.session.go_on()

    result = judge(changed or going.plan, going.opened, go, saved.header["seed"], saved.header["tie_seed"])
    if changed is not None:
        result.earlier = before, saved.place.seq
    if record is not None:
        write_whole(record, log_of(going.plan, going.recorder, result).to_bytes())
    return Resumed(result, saved.place)


class Resumption:
    """A session on its way back to the place at which it was saved.

    Args:
        saved: where it was.
        tools: the program's own tools; where none are here, they stand by their saved declarations alone.
        folder: where the files are that it reads.
        layers: makes the layers of the session.
        given: whether the program's own tools will be there when the session goes on.

    Attributes:
        plan: of its scenario.
        opened: the session; recorder: records it from its start.

    Raises:
        DocumentError: the checkpoint's scenario is none.
        ReplayRefused: the program is not the one that was saved, or nobody can go on from there.
    """

    def __init__(
        self,
        saved: Checkpoint,
        tools: Tools | None = None,
        folder: Path | None = None,
        *,
        layers: MakeLayers | None = None,
        given: bool | None = None,
    ) -> None:
        plan = plan_of(saved.header, saved.name, folder, tools)
        self.plan = plan if layers is None else plan.under(layers)
        _check(saved, self.plan, tools is not None if given is None else given)
        self._saved = saved
        self._own = [spec.name for spec in self.plan.scenario.own_tools]
        memory = self.plan.scenario.memory
        self._past = _Past(saved, self._own, keeps=memory is not None and memory.keep)
        self.recorder = Recorder(self._past.handler, self._past.withdrawn)
        self.opened = self.plan.open(saved.header["seed"], saved.header["tie_seed"], recorder=self.recorder)

    def reach(self) -> None:
        """Run it up to the place, and see that everything is as it was.

        Raises:
            ReplayRefused: it is not.
        """
        _run_again(self._saved, self.opened, self.recorder, self._own)
        self._past.over = True


def _check(saved: Checkpoint, plan: Plan, given: bool) -> None:
    """Everything that can be refused before anything runs."""
    found = list(program_differences(saved.header, program_of(plan))) or saved.unresumable(PYTHON)
    own = [spec.name for spec in plan.scenario.own_tools]
    missing = [] if given else own
    if any(each.startswith(f"tools.{name}.") for each in found for name in own):
        found.append("the program's own tools have changed; accepted is to say so, by --replace or replace=True")
    if missing and not found:
        found = [f"the program's own tools {', '.join(missing)} are not here; accepted is to give them"]
    if found:
        raise ReplayRefused(*(f"{saved.name}: {each}" for each in found))


class _Past:
    """What was done outside of the session before the place, from the records; it does not happen again.

    Args:
        own: the program's own tools.
        keeps: whether the memory is written to a file, which may hold more by now than it did.

    Attributes:
        over: the place was reached, and what comes now is done by the tools and the memory themselves.
    """

    def __init__(self, saved: Checkpoint, own: Collection[str], *, keeps: bool) -> None:
        self.name = saved.name
        self.over = False
        self._answers = Answers(saved.records, PlainPayloads())
        self._own = frozenset(tool_key("agent", name, 0) for name in own)
        self._keeps = keeps

    def handler(self, recorder: Recorder, key: str, handler: Handler) -> Handler:
        """Who serves ``key``."""
        if self._keeps and isinstance(handler, MemoryHandler):
            return _Remembered(self, handler)
        return _Recorded(self, recorder, handler) if key in self._own else handler

    def withdrawn(self, effect: Effect) -> None:
        """Nobody was asked to serve ``effect``, and its record answers nobody else."""
        if effect.key in self._own and not self.over:
            self.record(effect)

    def record(self, effect: Effect) -> EffectRecord:
        """What became of ``effect``.

        Raises:
            ReplayRefused: it was not asked for.
        """
        record = self._answers.next(effect)
        if record is None:
            raise ReplayRefused(f"{self.name}: effect {effect.id} ({effect.key}) was never recorded")
        return record

    def outcome(self, record: EffectRecord) -> Outcome:
        """What it landed with.

        Raises:
            ReplayRefused: it is none.
        """
        try:
            return PlainPayloads().outcome_of(record.status or "", record.value)
        except ValueError as problem:
            raise ReplayRefused(f"{self.name}: effect {record.id} ({record.key}): {problem}") from None


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
        return play(effect, self._past.record(effect), PlainPayloads(), self._recorder)


class _Remembered:
    """A memory that is kept, and what its operations came to before the place.

    One that was asked for and had not landed there has left no trace in the file, and is carried out when it lands.
    """

    __slots__ = ("_handler", "_past")

    def __init__(self, past: _Past, handler: MemoryHandler) -> None:
        self._past = past
        self._handler = handler

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        if not self._past.over:
            record = self._past.record(effect)
            if record.status is not None and not record.cancelled:
                self._handler.done[effect.id] = self._past.outcome(record)
        return self._handler.serve(effect)


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
    if next_run(opened) != saved.next_run or len(records) != saved.next_id:
        found = {"next_run": next_run(opened), "next_id": len(records)}
        yield from differences({"next_run": saved.next_run, "next_id": saved.next_id}, found, "counters")
    parts = state_of(opened, own)
    if digests_of(parts) != saved.digests:
        yield next(differences(saved.parts, parts, "parts"), "parts: their order of keys is another")
