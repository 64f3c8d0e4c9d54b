"""Live observers in a replay: recorded streams are collected again, in the batches in which they were.

A key that is collected live is served from the log behind the same collection, so that observers are told as they
were. In exchange mode the collection groups what comes as it likes; in policy-visible mode it takes, step by step, what
it took in the recording (run contract, section 10.1 and "Live stream delivery"). Whoever takes the steps by hand is
given those of the recording in either mode, each on its instant. Left out: the records (``replay``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.deliveries import Planned
from bargein.sim.effects.playing import Playing
from bargein.sim.effects.reports import Report, report_of
from bargein.sim.effects.streams import NOTHING, LiveStreams, error_in
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock

__all__ = ["LiveHandler", "LivePlan", "PlannedHandler"]


class LiveHandler(Protocol):
    """A handler whose effects are collected live (``sources``)."""

    streams: LiveStreams
    streamed: Callable[[Effect], bool] | None


class LivePlan:
    """The steps that collections took in a recording, taken again as soon as there is what they took.

    Args:
        steps: in order.

    Attributes:
        steps: those that are still to be taken.
    """

    def __init__(self, steps: list[Planned]) -> None:
        self.steps = deque(steps)
        self._planned = {effect for step in steps for effect, _, _ in step.takes}
        self._streams: dict[int, _PlannedStream] = {}
        self._taking = False

    def collects(self, id: int) -> bool:
        """Whether anything of this effect was collected."""
        return id in self._planned

    def open(self, stream: _PlannedStream) -> None:
        """Take from ``stream`` too."""
        self._streams[stream.effect.id] = stream

    def proceed(self) -> None:
        """Take every step that can be taken now."""
        while self._take_next():
            pass

    def step(self, clock: Clock) -> bool:
        """Take the next step by hand, if it is due. Returns whether another one is."""
        if self.steps and self.steps[0].at_us <= clock.now:
            self._take_next()
        return bool(self.steps) and self.steps[0].at_us <= clock.now

    def _take_next(self) -> bool:
        """Take the next step, if all that it takes is there; not while one is being told."""
        streams = None if self._taking or not self.steps else self._ready(self.steps[0])
        if streams is None:
            return False
        taken = []
        for (effect, items, ends), stream in zip(self.steps.popleft().takes, streams, strict=True):
            stream.ending = ends
            taken.append((effect, items + (ends and stream.failure is not None)))
        self._taking = True
        try:
            streams[0].streams.collect(taken)
        finally:
            self._taking = False
        return True

    def _ready(self, step: Planned) -> list[_PlannedStream] | None:
        streams = []
        for effect, items, ends in step.takes:
            stream = self._streams.get(effect)
            if stream is None or stream.closed or not stream.has(items, ends):
                return None
            streams.append(stream)
        return streams


class _PlannedStream:
    """A reply from a log that waits to be collected (``streams.Collected``); its handler takes it for the effect."""

    def __init__(self, effect: Effect, streams: LiveStreams, live: bool, plan: LivePlan) -> None:
        self.effect = effect
        self.streams = streams
        self.live = live
        self.failure: Report | None = None
        self.ending = False
        self.closed = False
        self._plan = plan
        self._queue: deque[Any] = deque()
        self._outcome: Outcome | None = None
        self._broken = False
        self._filled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.effect, name)

    def fill(self, items: list[Any], outcome: Outcome | None) -> None:
        """Have everything there at once; whoever takes the steps says when it is collected."""
        for item in items:
            self._put(item)
        if outcome is not None:
            self._end(outcome)
        self._filled = True

    def deliver(self, item: Any) -> None:
        if not self._filled:
            self._put(item)
            self._plan.proceed()

    def land(self, outcome: Outcome) -> None:
        if self.closed:
            return
        if outcome.status is Status.CANCELLED:
            self.close()
            self.effect.land(outcome)
        elif not self._filled:
            self._end(outcome)
            self._plan.proceed()

    def _put(self, item: Any) -> None:
        self._broken = self._broken or error_in(item) is not None
        self._queue.append(item)

    def _end(self, outcome: Outcome) -> None:
        self._outcome = outcome
        if self.live and outcome.status is not Status.OK and not self._broken:
            self.failure = report_of(outcome)
            self._queue.append(self.failure)

    def has(self, items: int, ends: bool) -> bool:
        """Whether so much of it is there."""
        return len(self._queue) >= items and (not ends or self._outcome is not None)

    def take(self) -> Any:
        return self._queue.popleft() if self._queue else NOTHING

    @property
    def ended(self) -> Outcome | None:
        return self._outcome if self.ending and not self._queue else None

    @property
    def waiting(self) -> bool:
        return False

    def refill(self) -> None:
        """There is no source to draw from."""

    def close(self) -> None:
        """Nothing more is collected."""
        self.closed = True
        self._queue.clear()
        self.streams.close(self)


class PlannedHandler:
    """Serves a live key from a log, collected as it was recorded.

    Args:
        begin: finds the record of an effect.
        live: whose place it takes.
        clock: of the replay.
    """

    def __init__(self, begin: Callable[[Effect], Playing], live: LiveHandler, plan: LivePlan, clock: Clock) -> None:
        self.streams = live.streams
        self.streamed = live.streamed
        self._begin = begin
        self._plan = plan
        if self.streams.by_hand:
            self.streams.plan = lambda: plan.step(clock)

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        """Have the record played to a stand-in whose items wait for their step."""
        live = self.streamed is None or self.streamed(effect)
        if not live and not self._plan.collects(effect.id):
            playing = self._begin(effect)
            playing.go(0)
            return playing.stop
        stream = _PlannedStream(effect, self.streams, live, self._plan)
        playing = self._begin(cast(Effect, stream))
        self.streams.open(stream)
        self._plan.open(stream)
        if self.streams.by_hand:
            stream.fill(*playing.whole())
        playing.go(0)

        def closed(cause: Cause) -> None:
            stream.close()
            playing.stop(cause)

        return closed
