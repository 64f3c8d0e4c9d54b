"""Recording: a bus that notes every effect with what came back of it, and when its handler acted.

A session that is to be recorded gets a `Recorder`'s bus in place of the plain one, and its handlers get the recorder's
clock, so that it is known which of their timers belongs to which effect: a replay sets the same timers at the same
places, and therefore takes part in ties as the handler did. Nothing is turned into text while the session runs.

Left out: what a request is as plain data; the caller's `Plain` says. A handler that waits otherwise than by this
clock is recorded by what becomes visible of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from bargein.sim.effects.bus import Effect, EffectBus, Handler, Outcome
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.log import ITEM, LAND, EffectRecord, Step
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer

__all__ = ["HANG_UP", "Control", "HandlersClock", "Plain", "RecordedEffect", "Recorder"]

HANG_UP = "hang_up_when_silent"
"""What a handler may ask of the session besides answering."""


class Control(Protocol):
    """What a handler may ask of its session."""

    def hang_up_when_silent(self) -> None:
        """End the call once the agent has nothing more to say."""
        ...


class Plain(Protocol):
    """Between what goes over the bus and plain data."""

    def request(self, effect: Effect) -> Any:
        """The payload as plain data."""
        ...

    def item(self, item: Any) -> Any:
        """A stream item as plain data."""
        ...

    def value(self, outcome: Outcome) -> Any:
        """An outcome's value as plain data."""
        ...

    def item_of(self, data: Any) -> Any:
        """The stream item that plain data stands for.

        Raises:
            ValueError: it stands for none.
        """
        ...

    def outcome_of(self, status: str, value: Any) -> Outcome:
        """The outcome that plain data stands for.

        Raises:
            ValueError: it stands for none.
        """
        ...


class RecordedEffect(Effect):
    """An effect that notes what is done to it."""

    __slots__ = ("cancelling", "delivered", "steps")

    def __init__(self, bus: Any, *rest: Any) -> None:
        super().__init__(bus, *rest)
        self.delivered: list[Any] = []
        self.steps = [Step(self.dispatched_at_us)]
        self.cancelling = False

    def deliver(self, item: Any) -> None:
        if self.outcome is None:
            self.delivered.append(item)
            cast(_RecordingBus, self._bus).note(self, ITEM)
        super().deliver(item)

    def land(self, outcome: Outcome) -> None:
        if self.outcome is None:
            bus = cast(_RecordingBus, self._bus)
            if self.cancelling:
                bus.visible.append((bus.clock.now, self.id, "cancelled"))
            else:
                bus.note(self, LAND)
        super().land(outcome)

    def cancel(self, cause: Cause) -> bool:
        self.cancelling = self.outcome is None
        return super().cancel(cause)


class _RecordingBus(EffectBus):
    """Hands every effect to its handler in the sight of the clock."""

    effect_class = RecordedEffect

    def __init__(self, clock: Clock, recorder: Recorder) -> None:
        super().__init__(clock)
        self._recorder = recorder
        self.handlers_clock = HandlersClock(clock)
        self.visible: list[tuple[int, int, str]] = []

    def _install(self, key: str, handler: Handler, descriptor: Descriptor | None) -> None:
        super()._install(key, _Watched(self._recorder.handler(key, handler), self.handlers_clock), descriptor)

    def note(self, effect: RecordedEffect, act: str) -> None:
        """Write down that ``act`` happened, in the step in which it did."""
        clock = self.handlers_clock
        if clock.effect is effect:
            clock.step.does.append(act)
        else:
            self._note_untimed(effect, act)
        self.visible.append((self.clock.now, effect.id, act))

    def _note_untimed(self, effect: RecordedEffect, act: str) -> None:
        """The handler was woken by something else than its clock: a step of its own, timed from the dispatch."""
        now, steps = self.clock.now, effect.steps
        if len(steps) == 1 or steps[-1].at_us != now:
            steps[0].does.append(len(steps))
            steps.append(Step(now, Order.DELIVERY))
        steps[-1].does.append(act)


class _Watched:
    """A handler whose timers are told apart by the effect that they serve."""

    __slots__ = ("_clock", "handler")

    def __init__(self, handler: Handler, clock: HandlersClock) -> None:
        self.handler = handler
        self._clock = clock

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        recorded = cast(RecordedEffect, effect)
        stop: Callable[[Cause], object] | None
        stop = self._clock.within(recorded, recorded.steps[0], self.handler.serve, effect)
        return stop


class HandlersClock:
    """The session's clock, as handlers see it.

    Attributes:
        effect, step: on whose behalf a handler is acting right now, and which of its steps it is.
    """

    __slots__ = ("_clock", "effect", "step")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.effect: RecordedEffect | None = None
        self.step = Step(0)

    @property
    def now(self) -> int:
        return self._clock.now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def call_in(self, delay_us: int, order: Order, function: Callable[[Any], object], argument: object = None) -> Timer:
        """As the session's clock, and noted."""
        if self.effect is None:
            return self._clock.call_in(delay_us, order, function, argument)
        step = Step(0, int(order))
        timer = self._clock.call_in(delay_us, order, self._fire, (self.effect, step, function, argument))
        return self._timed(step, timer)

    def call_at(self, at_us: int, order: Order, function: Callable[[Any], object], argument: object = None) -> Timer:
        """As the session's clock, and noted."""
        if self.effect is None:
            return self._clock.call_at(at_us, order, function, argument)
        step = Step(0, int(order))
        timer = self._clock.call_at(at_us, order, self._fire, (self.effect, step, function, argument))
        return self._timed(step, timer)

    def _timed(self, step: Step, timer: Timer) -> Timer:
        assert self.effect is not None
        step.at_us = timer.at_us
        self.step.does.append(len(self.effect.steps))
        self.effect.steps.append(step)
        return timer

    def _fire(self, bound: tuple[RecordedEffect, Step, Callable[[Any], object], object]) -> None:
        effect, step, function, argument = bound
        self.within(effect, step, function, argument)

    def within(self, effect: RecordedEffect, step: Step, function: Callable[[Any], Any], argument: Any) -> Any:
        """Call ``function(argument)`` as a step of ``effect``."""
        before = self.effect, self.step
        self.effect, self.step = effect, step
        try:
            return function(argument)
        finally:
            self.effect, self.step = before


class _NotedControl:
    """The session, as handlers see it."""

    def __init__(self, clock: HandlersClock, control: Control) -> None:
        self._clock = clock
        self._control = control

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control, name)

    def hang_up_when_silent(self) -> None:
        self._clock.step.does.append(HANG_UP)
        self._control.hang_up_when_silent()


class Recorder:
    """Records one session.

    Args:
        swap: what serves a key in place of its handler; the handler itself unless given.

    Attributes:
        bus: for the session, once `open` has made it.
        clock: for its handlers, likewise.
        session: what its handlers may ask it, once `control` was given it.
    """

    bus: EffectBus
    clock: Clock
    session: Control

    def __init__(self, swap: Callable[[Recorder, str, Handler], Handler] | None = None) -> None:
        self._swap = swap

    def open(self, clock: Clock) -> EffectBus:
        """Make the bus of a session on ``clock``."""
        self._bus = _RecordingBus(clock, self)
        self.bus = self._bus
        self.clock = cast(Clock, self._bus.handlers_clock)
        return self.bus

    def control(self, session: Control) -> Control:
        """The session as its handlers are to see it."""
        self.session = _NotedControl(self._bus.handlers_clock, session)
        return self.session

    def handler(self, key: str, handler: Handler) -> Handler:
        """What serves ``key``."""
        return handler if self._swap is None else self._swap(self, key, handler)

    @property
    def deliveries(self) -> list[tuple[int, int, str]]:
        """What became visible so far, in order: instant, effect and ``item``, ``land`` or ``cancelled``."""
        return self._bus.visible

    def records(self, plain: Plain) -> list[EffectRecord]:
        """Everything so far as records.

        Raises:
            TypeError, ValueError: something that went over the bus has no plain form.
        """
        return [_record_of(cast(RecordedEffect, effect), plain) for effect in self.bus.log]


def _record_of(effect: RecordedEffect, plain: Plain) -> EffectRecord:
    """The record of one effect as it stands."""
    request = plain.request(effect)
    outcome = effect.outcome
    return EffectRecord(
        effect.id,
        effect.key,
        str(effect.kind),
        effect.parent,
        effect.scope,
        effect.dispatched_at_us,
        effect.landed_at_us,
        request,
        stable_hash(request),
        [plain.item(item) for item in effect.delivered],
        None if outcome is None else str(outcome.status),
        None if outcome is None else plain.value(outcome),
        [Step(step.at_us, step.order, step.does[:]) for step in effect.steps],
    )
