"""Replay: a session's effects answered from its log, by nobody else.

A `Replay` takes the place of every handler. It answers the n-th effect of a key with the n-th record of that key,
once its request was seen to be the recorded one, and acts at the steps at which the handler acted, timed where the
handler timed them. In *exchange mode* that is all; in *policy-visible mode* the instants and the batches in which
things became visible must come out as they were recorded (run contract, section 10.1). A recorded cancellation has to
happen again: in exchange mode whoever does not cancel is answered as cancelled, in policy-visible mode refused.

Left out: comparing programs before anything runs, and running (``sim.lab.replays``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bargein.sim.effects.bus import Effect, Handler
from bargein.sim.effects.identity import differences, stable_hash
from bargein.sim.effects.log import ITEM, LAND, EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import HANG_UP, Plain, Recorder
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer

__all__ = ["Answers", "Replay", "ReplayRefused", "delivery_faults"]

_ACTS = (ITEM, LAND, HANG_UP)


class ReplayRefused(ValueError):
    """What runs is not what was recorded; the arguments are sentences, one for each thing that differs."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each thing that differs: where, what was recorded and what was found."""
        return tuple(str(each) for each in self.args)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


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

    Attributes:
        recorder: for the session; it records the replay in turn.

    Raises:
        ReplayRefused: the log cannot establish what the mode promises.
    """

    def __init__(self, log: EffectLog, plain: Plain, *, visible: bool) -> None:
        for record in log.records:
            for step in record.steps:
                for act in step.does:
                    if type(act) is str and act not in _ACTS:
                        raise ReplayRefused(f'effect {record.id} does "{act}"; accepted is one of {", ".join(_ACTS)}')
        if visible:
            fault = next(delivery_faults(log), None)
            if fault is not None:
                raise ReplayRefused(fault)
        self.log = log
        self.visible = visible
        self.recorder = Recorder(self._swap)
        self._plain = plain
        self._answers = Answers(log.records, plain)

    def _swap(self, recorder: Recorder, key: str, handler: Handler) -> Handler:
        return _Replayer(self, recorder)

    def answer(self, effect: Effect) -> EffectRecord:
        """The record that answers ``effect``."""
        record = self._answers.next(effect)
        if record is None:
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}) at {effect.dispatched_at_us} us was never recorded: the log has "
                "no more of that key"
            )
        if self.visible and (record.id, record.dispatched_at_us) != (effect.id, effect.dispatched_at_us):
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}) was recorded as effect {record.id} at {record.dispatched_at_us} "
                f"us, and was dispatched at {effect.dispatched_at_us} us"
            )
        return record

    def finish(self) -> None:
        """Assert, after the session's end, that everything recorded has come again.

        Raises:
            ReplayRefused: a record was not asked for; in policy-visible mode, something became visible otherwise.
        """
        unused = self._answers.unused()
        if unused is not None:
            raise ReplayRefused(
                f"effect {unused.id} ({unused.key}), recorded at {unused.dispatched_at_us} us, was never asked for"
            )
        if self.visible:
            found = batches_of(self.recorder.deliveries)
            for recorded, again in zip(self.log.header["deliveries"], found, strict=False):
                if recorded != again:
                    raise ReplayRefused(f"recorded was {_told(recorded)}; now it was {_told(again)}")
            if len(found) != len(self.log.header["deliveries"]):
                raise ReplayRefused(
                    f"recorded were {len(self.log.header['deliveries'])} batches of deliveries; now {len(found)}"
                )

    def check_cancelled(self, effect: Effect, record: EffectRecord) -> None:
        """At the end of the instant at which the effect was cancelled in the recording."""
        if not effect.running:
            return
        if self.visible:
            raise ReplayRefused(
                f"effect {effect.id} ({effect.key}) was cancelled at {record.landed_at_us} us in the recording, and "
                "now nobody cancels it"
            )
        assert record.status is not None
        effect.land(self._plain.outcome_of(record.status, record.value))


def delivery_faults(log: EffectLog) -> Iterator[str]:
    """Why a log cannot establish what became visible when; nothing where it can."""
    deliveries = log.header["deliveries"]
    if not deliveries and any(record.items or record.status is not None for record in log.records):
        yield "it has no deliveries, so what became visible when is not known; accepted is a log that has them"
        return
    items = [0] * len(log.records)
    ends = [""] * len(log.records)
    last_us = 0
    for at, batch in enumerate(deliveries):
        if type(batch) is not list or [type(each) for each in batch] != [int, int, int, str]:
            yield f"deliveries[{at}]: accepted is [instant, effect, items, end]"
            return
        at_us, effect, count, end = batch
        if not 0 <= effect < len(log.records):
            yield f"deliveries[{at}]: there is no effect {effect}; accepted is one of the {len(log.records)} records"
            return
        if at_us < last_us or count < 0 or end not in ("", LAND, "cancelled") or ends[effect]:
            yield f"deliveries[{at}]: {_told(batch)} cannot follow what stands before it"
            return
        last_us = at_us
        items[effect] += count
        ends[effect] = end
        if items[effect] > len(log.records[effect].items):
            yield (
                f"deliveries[{at}]: effect {effect} shows {items[effect]} items, and its stream has "
                f"{len(log.records[effect].items)}"
            )
            return
    for record in log.records:
        wanted = "" if record.status is None else "cancelled" if record.cancelled else LAND
        if items[record.id] != len(record.items) or ends[record.id] != wanted:
            yield f"effect {record.id}: its deliveries do not show all that came of it"
            return


def _told(batch: list[Any]) -> str:
    at_us, effect, items, end = batch
    parts = [f"{items} item{'' if items == 1 else 's'}"] if items else []
    parts += [{LAND: "the outcome", "cancelled": "the cancellation"}[end]] if end else []
    return f"{' and '.join(parts) or 'nothing'} of effect {effect} at {at_us} us"


class _Replayer:
    """Serves one key from the log."""

    __slots__ = ("_recorder", "_replay")

    def __init__(self, replay: Replay, recorder: Recorder) -> None:
        self._replay = replay
        self._recorder = recorder

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        replay = self._replay
        record = replay.answer(effect)
        if record.cancelled:
            assert record.landed_at_us is not None
            at_us = effect.dispatched_at_us + record.landed_at_us - record.dispatched_at_us
            clock = replay.recorder.bus.clock
            clock.call_last(at_us, lambda _: replay.check_cancelled(effect, record))
        return play(effect, record, replay._plain, self._recorder)


def play(effect: Effect, record: EffectRecord, plain: Plain, recorder: Recorder) -> Callable[[Cause], object]:
    """Do for ``effect`` what its handler did for ``record``, step by step, beginning now.

    Returns:
        What stops it.
    """
    playing = _Playing(effect, record, plain, recorder)
    playing.go(0)
    return playing.stop


class _Playing:
    """One effect being answered.

    Invariant: items are delivered in their recorded order, since steps fall on their recorded distances.
    """

    __slots__ = ("_clock", "_effect", "_given", "_plain", "_record", "_recorder", "_timers")

    def __init__(self, effect: Effect, record: EffectRecord, plain: Plain, recorder: Recorder) -> None:
        self._effect = effect
        self._record = record
        self._plain = plain
        self._recorder = recorder
        self._clock: Clock = recorder.clock
        self._given = 0
        self._timers: list[Timer] = []

    def go(self, number: int) -> None:
        """Step ``number``, on its instant."""
        record = self._record
        step = record.steps[number]
        for act in step.does:
            if type(act) is int:
                later = record.steps[act]
                delay_us = later.at_us - step.at_us
                self._timers.append(self._clock.call_in(delay_us, Order(later.order), self.go, act))
            elif act == ITEM:
                self._given += 1
                self._effect.deliver(self._plain.item_of(record.items[self._given - 1]))
            elif act == LAND:
                assert record.status is not None
                self._effect.land(self._plain.outcome_of(record.status, record.value))
            else:
                self._recorder.session.hang_up_when_silent()

    def stop(self, _: Cause) -> None:
        """The effect was cancelled: nothing more comes."""
        for timer in self._timers:
            timer.cancel()
