"""One effect being answered from its record, step by step, at the places at which its handler acted.

``replay`` has every effect of a session answered so; whoever goes on from a checkpoint has the past of the program's
own tools answered so. On a connection it also hears what is said, and refuses what was not said then. Left out: which
record answers which effect (``replay``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.identity import differences, written
from bargein.sim.effects.log import HEAR, ITEM, LAND, SAID, EffectRecord, Step
from bargein.sim.effects.published import publish_again
from bargein.sim.effects.recording import HANG_UP, Plain, Recorder
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer

__all__ = ["Playing", "ReplayRefused", "is_heard", "play"]


class ReplayRefused(ValueError):
    """What runs is not what was recorded; the arguments are sentences, one for each thing that differs."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each thing that differs: where, what was recorded and what was found."""
        return tuple(str(each) for each in self.args)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def play(effect: Effect, record: EffectRecord, plain: Plain, recorder: Recorder) -> Callable[[Cause], object]:
    """Do for ``effect`` what its handler did for ``record``, step by step, beginning now.

    Returns:
        What stops it.
    """
    playing = Playing(effect, record, plain, recorder)
    playing.go(0)
    return playing.stop


class Playing:
    """One effect being answered.

    Invariant: items are delivered in their recorded order, since steps fall on their recorded distances.
    """

    __slots__ = (
        "_clock",
        "_effect",
        "_given",
        "_heard",
        "_hidden",
        "_plain",
        "_record",
        "_recorder",
        "_refusing",
        "_timers",
    )

    def __init__(
        self,
        effect: Effect,
        record: EffectRecord,
        plain: Plain,
        recorder: Recorder,
        hidden: bool = False,
        refusing: Callable[[ReplayRefused], object] = lambda _: None,
    ) -> None:
        self._hidden = hidden
        self._refusing = refusing
        self._effect = effect
        self._record = record
        self._plain = plain
        self._recorder = recorder
        self._clock: Clock = recorder.clock
        self._given = 0
        self._heard = iter([number for number, step in enumerate(record.steps) if number and is_heard(step)])
        self._timers: list[Timer] = []
        effect.listen(self._hear)

    def whole(self) -> tuple[list[Any], Outcome | None]:
        """Everything that it will deliver, and what it will land with, if it will."""
        record = self._record
        items = [self._read(item) for item in record.items[: record.delivered]]
        if self._hidden or record.status is None or record.cancelled:
            return items, None
        return items, self._outcome()

    def go(self, number: int) -> None:
        """Step ``number``, on its instant."""
        step = self._record.steps[number]
        self._do(step, step.does)

    def _do(self, step: Step, acts: list[str | int]) -> None:
        record = self._record
        for act in acts:
            if type(act) is int:
                later = record.steps[act]
                delay_us = later.at_us - step.at_us
                self._timers.append(self._clock.call_in(delay_us, Order(later.order), self.go, act))
            elif act == ITEM:
                self._effect.deliver(self._next_item())
            elif act == LAND:
                if self._hidden:
                    continue
                self._publish()
                self._effect.land(self._outcome())
            elif act == HANG_UP:
                self._recorder.session.hang_up_when_silent()

    def _next_item(self) -> Any:
        item = self._record.items[self._given]
        if _is_said(item):
            raise self._refused(f"recorded was that it is told {_shown(item)} before; it was not")
        self._given += 1
        return self._read(item)

    def _read(self, item: Any) -> Any:
        try:
            return self._plain.item_of(item)
        except ValueError as problem:
            raise self._refused(str(problem)) from None

    def _outcome(self) -> Outcome:
        status = self._record.status
        assert status is not None
        try:
            return self._plain.outcome_of(status, self._record.value)
        except ValueError as problem:
            raise self._refused(str(problem)) from None

    def _publish(self) -> None:
        try:
            publish_again(self._effect, self._record.published)
        except ValueError as problem:
            raise self._refused(str(problem)) from None

    def _refused(self, told: str) -> ReplayRefused:
        refused = ReplayRefused(f"{self._place}: {told}")
        self._refusing(refused)
        return refused

    def _hear(self, said: Any) -> None:
        """Something is said on the connection: see that it was, now, and do what was done on it."""
        record, found = self._record, {SAID: self._plain.item(said)}
        number = next(self._heard, None)
        recorded = record.items[self._given] if self._given < len(record.items) else None
        if number is None or not _is_said(recorded):
            raise self._refused(f"it was told {_shown(found)}; recorded was nothing")
        step = record.steps[number]
        at_us = self._effect.dispatched_at_us + step.at_us - record.dispatched_at_us
        if at_us != self._clock.now or step.does[1:2] != [ITEM]:
            told = f"it was told {_shown(found)}; recorded was {_shown(recorded)} at {at_us} us"
            raise self._refused(told)
        for difference in differences(recorded, found):
            raise self._refused(difference)
        self._given += 1
        self._do(step, step.does[2:])

    def finish(self) -> None:
        """Assert, after the session's end, that everything was said that was said in the recording.

        Raises:
            ReplayRefused: something was not.
        """
        number = next(self._heard, None)
        if number is not None:
            at_us = self._record.steps[number].at_us
            raise self._refused(f"what it was told at {at_us} us was never said")

    @property
    def _place(self) -> str:
        return f"effect {self._record.id} ({self._record.key}) at {self._clock.now} us"

    def silence(self) -> None:
        """Nothing more comes."""
        for timer in self._timers:
            timer.cancel()

    def stop(self, _: Cause) -> None:
        """The effect was cancelled: nothing more comes, and what nobody had collected is kept again."""
        self.silence()
        record = self._record
        if record.cancelled and record.status is not None and record.status != Status.CANCELLED:
            rest = [self._read(item) for item in record.items[self._given :]]
            self._effect.keep(rest, self._outcome())


def is_heard(step: Step) -> bool:
    """Whether a step began with something that was said on a connection."""
    return step.does[:1] == [HEAR]


def _is_said(item: Any) -> TypeGuard[dict[str, Any]]:
    return type(item) is dict and item.keys() == {SAID}


def _shown(item: dict[str, Any]) -> str:
    return written(item[SAID]).decode()
