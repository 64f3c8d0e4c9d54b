"""Replay: a session's effects answered from its log, by nobody else.

A `Replay` takes the place of every handler. It answers the n-th effect of a key with the n-th record of that key,
once its request was seen to be the recorded one, and acts at the steps at which the handler acted, timed where the
handler timed them. In *exchange mode* that is all; in *policy-visible mode* the instants and the batches in which
things became visible must come out as they were recorded (run contract, section 10.1). A recorded cancellation has to
happen again: in exchange mode whoever does not cancel is answered as cancelled, in policy-visible mode refused. What
is said on a connection has to be what was said on it, on its instant, in both modes: whoever heard it acted on that.
Once something was refused, nothing is answered any more.

Keys that the program serves itself, from what others answer, keep their handlers, and what comes of them is compared.

Left out: comparing programs before anything runs, and running (``sim.lab.replays``, ``pipelines.agent.run_logs``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from bargein.sim.effects.bus import Effect, Handler, Outcome, Status
from bargein.sim.effects.deliveries import delivery_differences, delivery_faults, given_up, planned_steps
from bargein.sim.effects.due import DueEffects, MayCome
from bargein.sim.effects.identity import differences, stable_hash
from bargein.sim.effects.live_replay import LivePlan, PlannedHandler
from bargein.sim.effects.log import ITEM, LAND, START, EffectLog, EffectRecord, batches_of
from bargein.sim.effects.playing import Playing, ReplayRefused, is_heard
from bargein.sim.effects.recording import HANG_UP, Plain, RecordedEffect, Recorder
from bargein.sim.effects.sources import PushHandler
from bargein.sim.kernel.cancel import Cause

__all__ = ["Answers", "Replay", "ReplayRefused"]

_ACTS = (ITEM, LAND, HANG_UP)


class Answers:
    """Records handed out in order, key by key.

    Args:
        records: in the order of dispatch.
        plain: between plain data and what goes over the bus.
    """

    def __init__(self, records: list[EffectRecord], plain: Plain) -> None:
        self._plain = plain
        self._left: dict[str, Iterator[EffectRecord]] = {}
        self._by_key: dict[str, list[EffectRecord]] = {}
        for record in records:
            self._by_key.setdefault(record.key, []).append(record)

    def next(self, effect: Effect) -> EffectRecord | None:
        """The record that answers ``effect``; ``None`` where the key has no more.

        Raises:
            ReplayRefused: its request is not the recorded one.
        """
        if effect.key not in self._left:
            self._left[effect.key] = iter(self._by_key.get(effect.key, ()))
        record = next(self._left[effect.key], None)
        if record is None:
            return None
        request = self._plain.request(effect)
        if record.hash != stable_hash(request):
            where = next(differences(record.request, request), "it has another canonical form")
            raise ReplayRefused(f"effect {effect.id} ({effect.key}) at {effect.dispatched_at_us} us: {where}")
        if (record.kind, record.scope) != (effect.kind, effect.scope):
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}): recorded as a {record.kind} of {record.scope}, found a "
                f"{effect.kind} of {effect.scope}"
            )
        return record

    def unused(self) -> EffectRecord | None:
        """The first record that nobody asked for."""
        rest = [record for key, records in self._by_key.items() for record in self._left.get(key, iter(records))]
        return min(rest, key=lambda record: record.id, default=None)


class Replay:
    """Answers for one session.

    Args:
        log: what was recorded.
        plain: between plain data and what goes over the bus.
        visible: whether this is the policy-visible mode.
        own: keys that the program serves itself.
        instants: in policy-visible mode, whether everything also has to come on its instant. Where whoever drives may
            take longer over something than they did, it is enough that batches and their order are the same.

    Attributes:
        recorder: for the session; it records the replay in turn.
        failure: why the replay was refused, once it was.

    Raises:
        ReplayRefused: the log cannot establish what the mode promises.
    """

    def __init__(
        self, log: EffectLog, plain: Plain, *, visible: bool, own: Collection[str] = (), instants: bool = True
    ) -> None:
        for record in log.records:
            for step in record.steps:
                for act in step.does[1:] if is_heard(step) else step.does:
                    if type(act) is str and act not in _ACTS:
                        raise ReplayRefused(f'effect {record.id} does "{act}"; accepted is one of {", ".join(_ACTS)}')
        if visible:
            fault = next(delivery_faults(log), None)
            if fault is not None:
                raise ReplayRefused(fault)
        self.log = log
        self.visible = visible
        self.recorder = Recorder(self._swap, self._withdrawn)
        self.playing: list[Playing] = []
        self.derived: list[tuple[int, EffectRecord]] = []
        self._plain = plain
        self.failure: ReplayRefused | None = None
        self._own = frozenset(own)
        self._given_up = given_up(log)
        self._instants = instants
        self._answers = Answers(log.records, plain)
        self._due = DueEffects(log.records, self._missing, from_start=START not in log.header)
        self._plan = LivePlan(planned_steps(log.header["deliveries"]))

    def may_come(self, still: MayCome) -> None:
        """Ask ``still(scope)`` before an effect of that scope is missed; nothing may come late unless this is given."""
        self._due.may_come = still

    def _swap(self, recorder: Recorder, key: str, handler: Handler) -> Handler:
        if self.visible:
            self._due.begin(recorder.bus.clock)
        if key in self._own:
            return _Derived(self, handler)
        replayer = _Replayer(self, recorder)
        live: Any = handler
        if getattr(live, "streams", None) is None:
            return replayer
        if self._plan.steps and (self.visible or live.streams.by_hand):
            return PlannedHandler(replayer.begin, live, self._plan, recorder.bus.clock)
        return PushHandler(recorder.clock, live.streams, replayer, streamed=live.streamed)

    def answer(self, effect: Effect) -> EffectRecord:
        """The record that answers ``effect``.

        Raises:
            ReplayRefused: it was not recorded so, or something before it was refused.
        """
        if self.failure is not None:
            raise self.failure
        try:
            return self._answer(effect)
        except ReplayRefused as refused:
            raise self.fail(refused) from None

    def _withdrawn(self, effect: Effect) -> None:
        """Nobody was asked to serve ``effect``: nor was anybody in the recording, which has nothing of its either."""
        if self.visible:
            self._due.begin(self.recorder.bus.clock)
        record = self.answer(effect)
        if not record.cancelled or record.items or record.steps[0].does:
            raise self.fail(
                ReplayRefused(
                    f"effect {effect.id} ({effect.key}) was served in the recording, and at {effect.dispatched_at_us} "
                    "us it was given up before anybody was asked to serve it"
                )
            )

    def fail(self, refused: ReplayRefused) -> ReplayRefused:
        """Answer nothing from now on. Returns ``refused``."""
        self.failure = refused
        for playing in self.playing:
            playing.silence()
        return refused

    def _missing(self, record: EffectRecord) -> None:
        raise self.fail(
            ReplayRefused(
                f"effect {record.id} ({record.key}) was recorded at {record.dispatched_at_us} us, and now nobody has "
                f"asked for it by {self.recorder.bus.clock.now} us"
            )
        )

    def _answer(self, effect: Effect) -> EffectRecord:
        record = self._answers.next(effect)
        if record is None:
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}) at {effect.dispatched_at_us} us was never recorded: the log has "
                "no more of that key"
            )
        id = effect.id if effect.id >= 0 else record.id  # a connection has its number only once all is written
        late = record.dispatched_at_us != effect.dispatched_at_us
        if self.visible and (record.id != id or (late and self._instants)):
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}) was recorded as effect {record.id} at {record.dispatched_at_us} "
                f"us, and was dispatched at {effect.dispatched_at_us} us"
            )
        if self.visible:
            self._due.came(record, effect.dispatched_at_us)
        return record

    def finish(self) -> None:
        """Assert, after the session's end, that everything recorded has come again.

        Raises:
            ReplayRefused: a record was not asked for; in policy-visible mode, something became visible otherwise; or
                something was refused before.
        """
        if self.failure is not None:
            raise self.failure
        unused = self._answers.unused()
        if unused is not None:
            raise ReplayRefused(
                f"effect {unused.id} ({unused.key}), recorded at {unused.dispatched_at_us} us, was never asked for"
            )
        for playing in self.playing:
            playing.finish()
        for difference in self._derived_otherwise():
            raise ReplayRefused(difference)
        if self.visible:
            found = batches_of(self.recorder.deliveries)
            for difference in delivery_differences(self.log.header["deliveries"], found, instants=self._instants):
                raise ReplayRefused(difference)

    def _derived_otherwise(self) -> Iterator[str]:
        """Where what the program made of others' answers is not what was recorded."""
        found = {record.id: record for record in self.recorder.records(self._plain)} if self.derived else {}
        for id, record in self.derived:
            for difference in differences(_outcome_of(record), _outcome_of(found[id])):
                yield f"effect {record.id} ({record.key}): {difference}"

    def cancelled_at_us(self, record: EffectRecord) -> int | None:
        """When whoever asked for it gave it up, if so; its answer may have been there."""
        return record.landed_at_us if record.cancelled else self._given_up.get(record.id)

    def check_cancelled(self, effect: Effect, record: EffectRecord) -> None:
        """At the end of the instant at which the effect was cancelled in the recording."""
        if cast(RecordedEffect, effect).given_up:
            return
        if self.visible:
            raise self.fail(
                ReplayRefused(
                    f"effect {effect.id} ({effect.key}) was cancelled at {self.cancelled_at_us(record)} us in the "
                    "recording, and now nobody cancels it"
                )
            )
        if record.status == Status.CANCELLED:
            effect.land(self._plain.outcome_of(record.status, record.value))
        else:
            effect.land(Outcome(Status.CANCELLED, Cause.DISCARDED))  # the record holds the answer, and not the cause


def _outcome_of(record: EffectRecord) -> dict[str, Any]:
    return {"items": record.items, "status": record.status, "value": record.value}


class _Derived:
    """Lets the program serve a key itself, and notes what that has to come to."""

    __slots__ = ("_handler", "_replay")

    def __init__(self, replay: Replay, handler: Handler) -> None:
        self._replay = replay
        self._handler = handler

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        self._replay.derived.append((effect.id, self._replay.answer(effect)))
        return self._handler.serve(effect)


class _Replayer:
    """Serves one key from the log."""

    __slots__ = ("_recorder", "_replay")

    def __init__(self, replay: Replay, recorder: Recorder) -> None:
        self._replay = replay
        self._recorder = recorder

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        playing = self.begin(effect)
        playing.go(0)
        return playing.stop

    def begin(self, effect: Effect) -> Playing:
        """What answers ``effect``."""
        replay = self._replay
        record = replay.answer(effect)
        cancelled_at_us = replay.cancelled_at_us(record)
        if cancelled_at_us is not None:
            at_us = effect.dispatched_at_us + cancelled_at_us - record.dispatched_at_us
            clock = replay.recorder.bus.clock
            clock.call_last(at_us, lambda _: replay.check_cancelled(effect, record))
        # Where an answer was given up, only the policy that gives it up again gets to see it.
        hidden = cancelled_at_us is not None and not replay.visible
        playing = Playing(effect, record, replay._plain, self._recorder, hidden, replay.fail)
        replay.playing.append(playing)
        return playing
