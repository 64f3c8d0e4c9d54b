"""What is due in a replay: an effect that was recorded, and is not asked for by the end of the instant on which it was.

Steps that follow on that instant may still bring it, and so may whatever waits for somebody outside: a request that is
held, a call that waits for its turn, a run that was not spawned yet. Whoever drives says whether something does (run
contract, section 10.1). Left out: effects that nobody recorded, which are refused as they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bargein.sim.effects.log import EffectRecord
from bargein.sim.kernel.clock import Clock

__all__ = ["DueEffects", "MayCome"]

MayCome = Callable[[str], bool]
"""Whether something outside may still make the program ask for more under a scope."""


class DueEffects:
    """The records that were not asked for yet, the first of which is watched.

    Args:
        records: in the order of dispatch.
        missing: called with the first record that is due and cannot come any more.
        from_start: whether the program begins on the instant on which the recording did; one that goes on from a
            checkpoint has a clock of its own, and only its first effect tells how far apart the two are.

    Invariant: the program is behind its recording by as much as its latest effect was.
    """

    def __init__(
        self, records: Iterable[EffectRecord], missing: Callable[[EffectRecord], object], *, from_start: bool = True
    ) -> None:
        self.may_come: MayCome = lambda _: False
        self._left = {record.id: record for record in records}
        self._missing = missing
        self._clock: Clock | None = None
        self._watched: EffectRecord | None = None
        self._behind_us: int | None = 0 if from_start else None

    def begin(self, clock: Clock) -> None:
        """Watch on ``clock``; a second time changes nothing."""
        if self._clock is None:
            self._clock = clock
            self._watch()

    def came(self, record: EffectRecord, at_us: int) -> None:
        """The effect of ``record`` was asked for."""
        del self._left[record.id]
        behind_us = at_us - record.dispatched_at_us
        self._behind_us = behind_us if self._behind_us is None else max(self._behind_us, behind_us)
        self._watch()

    def _watch(self) -> None:
        record = next(iter(self._left.values()), None)
        if record is not None and record is not self._watched and self._behind_us is not None:
            self._watched = record
            self._look_at(record, record.dispatched_at_us + self._behind_us)

    def _look_at(self, record: EffectRecord, due_us: int) -> None:
        assert self._clock is not None
        self._clock.call_last(max(self._clock.now, due_us), self._look, record)

    def _look(self, record: EffectRecord) -> None:
        assert self._clock is not None
        assert self._behind_us is not None
        due_us = record.dispatched_at_us + self._behind_us
        if record.id not in self._left:
            return
        if due_us > self._clock.now:
            self._look_at(record, due_us)
        elif self.may_come(record.scope):
            self._watched = None  # looked for again when something else has come
        else:
            self._missing(record)
