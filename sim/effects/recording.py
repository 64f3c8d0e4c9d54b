"""Recording: a bus that notes every effect with what came back of it, and when its handler acted.

A session that is to be recorded gets a `Recorder`'s bus in place of the plain one, and its handlers get the recorder's
clock, so that it is known which of their timers belongs to which effect: a replay sets the same timers at the same
places, and therefore takes part in ties as the handler did. What a live collection takes in one step is noted as it is
taken, before anybody is told. Nothing is turned into text while the session runs.

Left out: what a request is as plain data; the caller's `Plain` says. A handler that waits otherwise than by this
clock is recorded by what becomes visible of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from bargein.sim.effects.bus import Effect, EffectBus, Handler, Outcome
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.log import DIRECT, HEAR, ITEM, LAND, SAID, EffectRecord, Step
from bargein.sim.effects.published import published_by
from bargein.sim.effects.streams import LiveStreams
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


class _Said(NamedTuple):
    """Among the items of a connection, what its opener said."""

    what: Any


class RecordedEffect(Effect):
    """An effect that notes what is done to it."""

    __slots__ = ("answered", "cancelling", "collected", "delivered", "given_up", "in_pass", "steps", "uncollected")

    _bus: _RecordingBus

    def __init__(self, bus: Any, *rest: Any) -> None:
        super().__init__(bus, *rest)
        self.delivered: list[Any] = []
        self.steps = [Step(self.dispatched_at_us)]
        self.cancelling = False
        self.given_up = False
        self.answered: Outcome | None = None
        self.uncollected: Sequence[Any] = ()
        self.collected = 0
        self.in_pass = 0

    def deliver(self, item: Any) -> None:
        if self.collected:  # noted when it was collected, before anybody was told
            self.collected -= 1
        elif self.outcome is None:
            self.delivered.append(item)
            self._bus.note(self, ITEM)
        if self.outcome is None:  # as any effect does, without a call more for each item
            self.items += 1
            if self._on_item is not None:
                self._on_item(item)

    def land(self, outcome: Outcome) -> None:
        if self.outcome is None:
            if self.cancelling:
                self.told(cancelled=True)
            else:
                self._bus.note(self, LAND)
        super().land(outcome)

    def say(self, said: Any) -> None:
        if self.outcome is None:
            step = Step(self._bus.clock.now, 0, [HEAR])
            self.steps.append(step)
            self._bus.handlers_clock.within(self, step, self._pass_on, said)

    def _pass_on(self, said: Any) -> None:
        self.delivered.append(_Said(said))
        self._bus.note(self, ITEM)
        super().say(said)

    def cancel(self, cause: Cause) -> bool:
        self.cancelling = self.outcome is None
        return super().cancel(cause)

    def withhold(self) -> None:
        self._bus.take_back(self)

    def told(self, *, cancelled: bool) -> None:
        self.given_up = cancelled
        self._bus.see(self.id, "cancelled" if cancelled else LAND)

    def keep(self, items: Sequence[Any], outcome: Outcome) -> None:
        self.uncollected, self.answered = items, outcome


class _RecordingBus(EffectBus):
    """Hands every effect to its handler in the sight of the clock."""

    effect_class = RecordedEffect

    def __init__(self, clock: Clock, recorder: Recorder) -> None:
        super().__init__(clock)
        self._recorder = recorder
        self.handlers_clock = HandlersClock(clock)
        self.visible: list[tuple[Any, ...]] = []
        self.passes = 0
        self._collecting = 0
        self._collected: Effect | None = None

    def _install(self, key: str, handler: Handler, descriptor: Descriptor | None) -> None:
        served = self._recorder.handler(key, handler)
        streams: LiveStreams | None = getattr(served, "streams", None)
        if streams is not None:
            streams.capture = self
        super()._install(key, _Watched(served, self.handlers_clock), descriptor)

    def unserved(self, effect: Effect) -> None:
        self._recorder.unserved(effect)

    def note(self, effect: RecordedEffect, act: str) -> None:
        """Write down that ``act`` happened, in the step in which it did."""
        clock = self.handlers_clock
        if clock.effect is effect:
            clock.step.does.append(act)
        else:
            self._note_untimed(effect, act)
        if self._collected is effect:
            self.see(effect.id, act, self._collecting)
        elif self.passes:
            self.see(effect.id, act)
        else:
            self.visible.append((self.clock.now, effect.id, act))

    def see(self, id: int, what: str, collecting: int = 0) -> None:
        """Write down that something became visible; with the steps that keep it apart, where any are known."""
        if collecting or self.passes:
            self.visible.append((self.clock.now, id, what, collecting, self.passes))
        else:
            self.visible.append((self.clock.now, id, what))

    # -- of a live collection (`streams.Capture`) ---------------------------------------------------------

    def taken(self, batches: Iterable[tuple[Effect, Sequence[Any]]]) -> None:
        self._collecting += 1
        for effect, items in batches:
            recorded = cast(RecordedEffect, effect)
            self._collected = effect
            for item in items:
                recorded.delivered.append(item)
                self.note(recorded, ITEM)
            recorded.collected += len(items)
        self._collected = None

    def landing(self, effect: Effect | None) -> None:
        self._collected = effect

    def take_back(self, effect: RecordedEffect) -> None:
        """The outcome that landed just now did not become visible."""
        for at in range(len(self.visible) - 1, -1, -1):
            if self.visible[at][1:3] == (effect.id, LAND):
                del self.visible[at]
                return

    def _note_untimed(self, effect: RecordedEffect, act: str) -> None:
        """The handler was woken by something else than its clock: a step of its own, timed from the dispatch."""
        now, steps = self.clock.now, effect.steps
        if len(steps) == 1 or steps[-1].at_us != now:
            steps[0].does.append(len(steps))
            steps.append(Step(now, Order.DELIVERY))
        elif effect.in_pass != self.passes:  # the program has taken a step in between, and takes one in a replay too
            steps[-1].does.append(len(steps))
            steps.append(Step(now, Order.WORK))
        effect.in_pass = self.passes
        steps[-1].does.append(act)


class _Watched:
    """A handler whose timers are told apart by the effect that they serve."""

    __slots__ = ("_clock", "handler")

    def __init__(self, handler: Handler, clock: HandlersClock) -> None:
        self.handler = handler
        self._clock = clock

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        assert isinstance(effect, RecordedEffect)
        stop: Callable[[Cause], object] | None
        stop = self._clock.within(effect, effect.steps[0], self.handler.serve, effect)
        return stop


class HandlersClock:
    """The session's clock, as handlers see it.

    Attributes:
        effect, step: on whose behalf a handler is acting right now, and which of its steps it is.
    """

    __slots__ = ("__weakref__", "_clock", "effect", "step")

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
        effect = self.effect
        if effect is None:
            return self._clock.call_in(delay_us, order, function, argument)
        step = Step(0, order)
        timer = self._clock.call_in(delay_us, order, self._fire, (effect, step, function, argument))
        step.at_us = timer.at_us
        self.step.does.append(len(effect.steps))
        effect.steps.append(step)
        return timer

    def call_at(self, at_us: int, order: Order, function: Callable[[Any], object], argument: object = None) -> Timer:
        """As the session's clock, and noted."""
        if self.effect is None:
            return self._clock.call_at(at_us, order, function, argument)
        return self.call_in(at_us - self._clock.now, order, function, argument)

    def _fire(self, bound: tuple[RecordedEffect, Step, Callable[[Any], object], object]) -> None:
        self.within(*bound)

    def within(self, effect: RecordedEffect, step: Step, function: Callable[[Any], Any], argument: Any) -> Any:
        """Call ``function(argument)`` as a step of ``effect``."""
        effect_before, step_before = self.effect, self.step
        self.effect, self.step = effect, step
        try:
            return function(argument)
        finally:
            self.effect, self.step = effect_before, step_before


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
        unserved: told of an effect that was given up before any handler was asked.

    Attributes:
        bus: for the session, once `open` has made it.
        clock: for its handlers, likewise.
        session: what its handlers may ask it, once `control` was given it.
        programs: identities of the programs whose runs are gone by the time the log is made, by scope.
    """

    bus: EffectBus
    clock: Clock
    session: Control

    def __init__(
        self,
        swap: Callable[[Recorder, str, Handler], Handler] | None = None,
        unserved: Callable[[Effect], object] = lambda _: None,
    ) -> None:
        self._swap = swap
        self.unserved = unserved
        self.programs: dict[str, Any] = {}

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

    def passed(self) -> None:
        """The program has taken a step of its own: what becomes visible from now on is seen apart from what was."""
        self._bus.passes += 1

    def overruled(self, effect: Effect) -> None:
        """The program put an outcome of its own in place of one that the handler of ``effect`` still owes."""
        self._bus.see(effect.id, DIRECT)

    @property
    def deliveries(self) -> list[tuple[Any, ...]]:
        """What became visible so far, in order, as `log.batches_of` takes it."""
        beyond = len(self._bus.log)
        return [each if each[1] >= 0 else (each[0], beyond + ~each[1], *each[2:]) for each in self._bus.visible]

    def records(self, plain: Plain) -> list[EffectRecord]:
        """Everything so far as records, connections behind the rest.

        Raises:
            TypeError, ValueError: something that went over the bus has no plain form.
        """
        records = [_record_of(cast(RecordedEffect, effect), effect.id, plain) for effect in self.bus.log]
        for connection in self.bus.connections:
            records.append(_record_of(cast(RecordedEffect, connection), len(records), plain))
        return records


def _record_of(effect: RecordedEffect, number: int, plain: Plain) -> EffectRecord:
    """The record of one effect as it stands."""
    request = plain.request(effect)
    outcome = effect.outcome if effect.answered is None else effect.answered
    items = [*effect.delivered, *effect.uncollected]
    return EffectRecord(
        number,
        effect.key,
        str(effect.kind),
        effect.parent,
        effect.scope,
        effect.dispatched_at_us,
        effect.landed_at_us,
        request,
        stable_hash(request),
        [{SAID: plain.item(item.what)} if type(item) is _Said else plain.item(item) for item in items],
        None if outcome is None else str(outcome.status),
        None if outcome is None else plain.value(outcome),
        [Step(step.at_us, int(step.order), step.does[:]) for step in effect.steps],
        published_by(effect),
    )
