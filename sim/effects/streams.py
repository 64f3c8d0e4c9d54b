"""Live delivery: what streamed effects bring is collected in fair, bounded steps, and several observers see it at once.

Streams put their items into queues of their own (``sources``). A *step* of `LiveStreams` takes from them in turn: so
many of one stream, so many in all, beginning after the stream that was served last, so that a busy one cannot keep the
others waiting. All batches of a step are taken before anybody is told of one; then the observers are told, then whoever
dispatched the effects, then the effects that have ended land (run contract, "Live stream delivery" and "Returned
replies and collection cadence"). Steps follow one another on one instant until nothing is left, so the bounds shape
batches and never times.

Ties: a step is a delivery, so what came in on an instant is told before an interruption that falls on it. Left out:
keeping anything for an observer; one that comes late reads what was accumulated and is told of what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bargein.sim.effects.bus import Effect, Outcome
from bargein.sim.effects.reports import Report
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.errors import VoidRun

__all__ = [
    "CHECKS_PER_EFFECT",
    "KEPT_STREAMS",
    "NOTHING",
    "STREAM_WORK_PER_STEP",
    "Batch",
    "Capture",
    "Collected",
    "LiveStreams",
    "Observation",
    "Streamed",
    "error_in",
]

CHECKS_PER_EFFECT = 64
"""Looks into one stream's queue in one step."""

STREAM_WORK_PER_STEP = 4_096
"""Looks into queues in one step, all streams together."""

KEPT_STREAMS = 256
"""Ended streams whose items are kept for those who come late."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Newly collected items of one streamed effect; observers share it.

    Attributes:
        effect: as it is now; it may be over by the time an observer looks.
        id: of the effect; a retry is another.
        start: how many items and errors of the effect came before.
        items: stream items as they came, errors among them (`error_in`). What the effect fails with is its last.
    """

    effect: Effect
    id: int
    start: int
    items: tuple[Any, ...]


@dataclass(slots=True)
class Streamed:
    """What a stream has brought so far.

    Attributes:
        count: items and errors collected.
        items: the items, as long as they are kept.
        errors: every error with its position among all items and errors, from 0; kept also where items are not.

    A stream may go on past an error. What it comes to is decided by the first one, and whoever needs to know that
    everything came through has to look at all of them (run contract, section 13).

    Invariant: a batch is in here before anybody is told of it.
    """

    count: int = 0
    items: list[Any] = field(default_factory=list)
    errors: list[tuple[int, Report]] = field(default_factory=list)

    @property
    def error(self) -> Report | None:
        """What the stream fails with, if it does: the first error."""
        return self.errors[0][1] if self.errors else None


def error_in(item: Any) -> Report | None:
    """The report, where a stream item is an error: one by itself, or an item that carries it as its ``report``."""
    found = item if isinstance(item, Report) else getattr(item, "report", None)
    return found if isinstance(found, Report) else None


class Collected(Protocol):
    """A stream, as the collection sees it."""

    effect: Effect
    live: bool
    """Whether its items are told; a reply that is given in one piece has none."""

    def take(self) -> Any:
        """The next item, or ``NOTHING``."""
        ...

    @property
    def ended(self) -> Outcome | None:
        """What the effect comes to, once its queue is empty for good."""
        ...

    @property
    def failure(self) -> Report | None:
        """The error that was queued for the failing outcome alone; whoever dispatched the effect reads it there."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether a step would find something here."""
        ...

    def refill(self) -> None:
        """Room was made in the queue."""
        ...


class Capture(Protocol):
    """Whoever is told of a step before anybody else; a recording keeps what was collected together."""

    def taken(self, batches: Iterable[tuple[Effect, Sequence[Any]]]) -> None:
        """A step has begun, and what it took for whoever dispatched the effects is this."""
        ...

    def landing(self, effect: Effect | None) -> None:
        """The step has this effect land now; ``None`` when it has."""
        ...


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = _Nothing()
"""A queue is empty at this moment."""

Observer = Callable[[Batch], object]


class Observation:
    """An observer that is told, until it is closed."""

    __slots__ = ("active", "observer")

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.active = True

    def close(self) -> None:
        """Be told nothing more; harmless when it was closed before."""
        self.active = False


class LiveStreams:
    """The streams of one session.

    Args:
        clock: steps are scheduled on it, one while something is waiting.
        keep: how many ended streams' items are kept for those who come late; what is told does not depend on it.
        by_hand: whether whoever drives the session calls `step` itself.

    Attributes:
        capture: told of every step first, if anybody is.
        plan: takes the step in place of `step`, where somebody knows what has to be collected; a replay does.

    Invariant: every item is told to an observer once, or never where it was attached later.
    """

    def __init__(self, clock: Clock, *, keep: int = KEPT_STREAMS, by_hand: bool = False) -> None:
        self._clock = clock
        self._keep = keep
        self.by_hand = by_hand
        self.capture: Capture | None = None
        self.plan: Callable[[], bool] | None = None
        self._streams: dict[int, Collected] = {}
        self._streamed: dict[int, Streamed] = {}
        self._observations: list[Observation] = []
        self._served = -1
        self._scheduled = False
        self._telling = False

    # -- who is told ------------------------------------------------------------------------------------------

    def observe(self, observer: Observer) -> Observation:
        """Have ``observer(batch)`` called with every batch from now on.

        It is called on the instant, and must return promptly: work that takes time belongs into a bounded queue of its
        own. The order among observers is nobody's to rely on.
        """
        observation = Observation(observer)
        self._observations.append(observation)
        return observation

    def streamed(self, effect: int) -> Streamed | None:
        """What a stream has brought so far; ``None`` of one that is not kept. To be read, not kept or changed."""
        return self._streamed.get(effect)

    # -- the streams ------------------------------------------------------------------------------------------

    def open(self, stream: Collected) -> None:
        """Collect from ``stream`` until it lands or is closed. Called by its handler."""
        id = stream.effect.id
        self._streams[id] = stream
        if len(self._streams) > 1:  # a suspended effect may be served after later ones
            self._streams = dict(sorted(self._streams.items()))
        if stream.live:
            self._streamed[id] = Streamed()

    def close(self, stream: Collected) -> None:
        """Collect no more from it; what it has brought stays."""
        if self._streams.pop(stream.effect.id, None) is not None:
            self._forget_old()

    def _forget_old(self) -> None:
        ended = [id for id in self._streamed if id not in self._streams]
        for id in ended[: max(0, len(ended) - self._keep)]:
            del self._streamed[id]

    @property
    def open_streams(self) -> tuple[int, ...]:
        """The effects that are collected from, in the order of dispatch."""
        return tuple(self._streams)

    def wake(self) -> None:
        """Something is waiting: take a step, on this instant. Called by a stream."""
        if not self._scheduled and not self.by_hand:
            self._scheduled = True
            self._clock.call_in(0, Order.DELIVERY, self._scheduled_step)

    def _scheduled_step(self, _: object) -> None:
        self._scheduled = False
        if self.step():
            self.wake()

    # -- a step -----------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Collect once and tell what was collected.

        Returns:
            Whether something is waiting for another step.

        Raises:
            VoidRun: an observer wants to wait, or takes a step itself.
        """
        if self._telling:
            raise VoidRun("an observer takes a step of the session that tells it; it has to return first")
        if self.plan is not None:
            return self.plan()
        self._give(self._take())
        for stream in list(self._streams.values()):
            stream.refill()
        return any(stream.waiting for stream in self._streams.values())

    def collect(self, planned: Iterable[tuple[int, int]]) -> None:
        """Take a step that collects exactly so many items of these effects, in this order; a replay knows them."""
        batches = []
        for id, count in planned:
            stream = self._streams[id]
            items = [stream.take() for _ in range(count)]
            if items:
                batches.append(self._accumulate(stream, items))
        self._give(batches)

    def _give(self, batches: list[Batch]) -> None:
        """Tell the observers what was taken, then whoever dispatched the effects; then those that have ended land."""
        given = [(batch.effect, self._of_asker(batch)) for batch in batches]
        capture = self.capture
        if capture is not None:
            capture.taken(given)
        self._telling = True
        try:
            for batch in batches:
                self._tell(batch)
        finally:
            self._telling = False
        for effect, items in given:
            for item in items:
                effect.deliver(item)
        for stream in list(self._streams.values()):
            outcome = stream.ended
            if outcome is None:
                continue
            self.close(stream)
            if capture is not None:
                capture.landing(stream.effect)
            stream.effect.land(outcome)
            if capture is not None:
                capture.landing(None)

    def _of_asker(self, batch: Batch) -> list[Any]:
        """A batch without the error that is the effect's own; whoever dispatched it reads that in the outcome."""
        failure = self._streams[batch.id].failure
        return [item for item in batch.items if failure is None or item is not failure]

    def _take(self) -> list[Batch]:
        """Take from the queues in turn, within the bounds, and accumulate what was taken."""
        batches: list[Batch] = []
        left = STREAM_WORK_PER_STEP
        for id in self._turns():
            if not left:
                break
            stream = self._streams[id]
            items: list[Any] = []
            checks = min(left, CHECKS_PER_EFFECT)
            while checks:
                checks -= 1
                left -= 1
                item = stream.take()
                if item is NOTHING:
                    break
                items.append(item)
            self._served = id
            if items:
                batches.append(self._accumulate(stream, items))
        return batches

    def _turns(self) -> Iterable[int]:
        """The streams in the order in which they are served: after the last one served, wrapping once."""
        ids = list(self._streams)
        return [id for id in ids if id > self._served] + [id for id in ids if id <= self._served]

    def _accumulate(self, stream: Collected, items: list[Any]) -> Batch:
        id = stream.effect.id
        streamed = self._streamed[id]
        batch = Batch(stream.effect, id, streamed.count, tuple(items))
        for at, item in enumerate(items, streamed.count):
            error = error_in(item)
            if error is not None:
                streamed.errors.append((at, error))
            elif self._keep:
                streamed.items.append(item)
        streamed.count += len(items)
        return batch

    def _tell(self, batch: Batch) -> None:
        for observation in list(self._observations):
            if observation.active:
                answer = observation.observer(batch)
                if hasattr(answer, "send") or hasattr(answer, "callbacks"):  # a generator or coroutine; an event
                    if hasattr(answer, "close"):
                        answer.close()
                    raise VoidRun("an observer of streams wants to wait; it has to return, and queue what takes time")
        self._observations = [each for each in self._observations if each.active]
