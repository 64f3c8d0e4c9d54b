"""Streams that are collected live: sources that are drawn from, and handlers that push.

`SourceHandler` serves a key from a *source*: a generator that yields items, and `Pause` where the next one takes time,
and returns the outcome. A source is drawn from only while its queue has room, one item beyond the bound at most. A
reply that was not asked for as a stream is folded to one answer and has no items. A source may yield errors and go on;
the first one is what the effect comes to, once its reply has ended. `PushHandler` puts any other handler behind the
same collection; what it pushes waits in a buffer that counts as its own (run contract, "Returned replies and collection
cadence"). Left out: collecting (``streams``).

Ties: a source goes on as a delivery. A cancellation closes it at once, and nothing it does afterwards counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bargein.sim.effects.bus import Effect, Handler, Outcome, Status
from bargein.sim.effects.reports import Report, report_of
from bargein.sim.effects.streams import NOTHING, LiveStreams, error_in
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.errors import VoidRun

__all__ = ["STREAM_CAPACITY", "Pause", "PushHandler", "Source", "SourceHandler"]

STREAM_CAPACITY = 64
"""Items that wait in a stream's queue, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The source has nothing for ``us`` microseconds; ``None`` is for ever."""

    us: int | None


Source = Callable[[Effect], Generator[Any, None, Outcome]]
"""Opens the reply to an effect: yields its items and its pauses, returns what the effect comes to."""


class _Stream:
    """One reply on its way: its source, the queue, and at most one item that found no room in it.

    Invariant: once closed, nothing of the source is seen any more.
    """

    __slots__ = (
        "_clock",
        "_closed",
        "_drawing",
        "_failed",
        "_held",
        "_outcome",
        "_queue",
        "_source",
        "_streams",
        "_timer",
        "capacity",
        "effect",
        "failure",
        "live",
    )

    def __init__(self, clock: Clock, streams: LiveStreams, effect: Effect, capacity: int | None, live: bool) -> None:
        self._clock = clock
        self._streams = streams
        self._queue: deque[Any] = deque()
        self._held: Any = NOTHING
        self._source: Generator[Any, None, Outcome] | None = None
        self._timer: Timer | None = None
        self._outcome: Outcome | None = None
        self._failed: Outcome | None = None
        self._closed = False
        self._drawing = False
        self.capacity = capacity
        self.effect = effect
        self.failure: Report | None = None
        self.live = live

    # -- what comes in ------------------------------------------------------------------------------------

    def draw(self, source: Generator[Any, None, Outcome], fold: Callable[[Sequence[Any]], Any] | None) -> None:
        """Draw from ``source``; ``fold`` makes one answer of its items where they are not told."""
        self._source = source if fold is None else _folded(source, fold)
        self._go_on()

    def _go_on(self, _: object = None) -> None:
        """Draw until the source pauses, ends, or has no room."""
        self._timer = None
        source = self._source
        while source is not None and not self._closed and self._held is NOTHING:
            self._drawing = True
            try:
                item = next(source)
            except StopIteration as end:
                self._source = None
                self.end(end.value)
                return
            except VoidRun:
                raise
            except Exception as error:
                self._source = None
                self.end(Outcome(Status.CRASHED, f"{type(error).__name__}: {error}"))
                return
            finally:
                self._drawing = False
            if self._closed:
                source.close()
            elif isinstance(item, Pause):
                if item.us is not None:
                    self._timer = self._clock.call_in(item.us, Order.DELIVERY, self._go_on)
                return
            else:
                self.put(item)

    def put(self, item: Any) -> None:
        """One item; it is held back where the queue is full."""
        if self._closed or self._outcome is not None:
            return
        error = error_in(item) if self._failed is None else None
        if error is not None:
            self._failed = Outcome(Status.FAILED, error)
        if self.capacity is not None and len(self._queue) >= self.capacity:
            self._held = item
        else:
            self._queue.append(item)
        self._streams.wake()

    def end(self, outcome: Outcome) -> None:
        """The reply has ended; what comes after is not read. A failure is its last item, unless it was told before."""
        if self._closed or self._outcome is not None:
            return
        if self.live and outcome.status not in (Status.OK, Status.CANCELLED):
            error = report_of(outcome)
            if self._failed is None:
                self.failure = error
                self._queue.append(error)
            elif error != self._failed.value:
                self._queue.append(error)
        self._outcome = self._failed or outcome
        self._streams.wake()

    # -- what is collected (`streams.Collected`) ----------------------------------------------------------

    def take(self) -> Any:
        return self._queue.popleft() if self._queue else NOTHING

    @property
    def ended(self) -> Outcome | None:
        return None if self._queue else self._outcome

    @property
    def waiting(self) -> bool:
        return bool(self._queue) or self._outcome is not None

    def refill(self) -> None:
        if self._held is not NOTHING and (self.capacity is None or len(self._queue) < self.capacity):
            self._queue.append(self._held)
            self._held = NOTHING
            self._go_on()

    def close(self, _: Cause | None = None) -> None:
        """Stop the source and drop what was not collected; a reply that had ended is kept for the record."""
        if not self._closed and self._outcome is not None and self._outcome.status is not Status.CANCELLED:
            rest = [item for item in self._queue if item is not self.failure]
            self.effect.keep(rest, self._outcome)
        self._closed = True
        self._queue.clear()
        self._held = NOTHING
        if self._timer is not None:
            self._timer.cancel()
        source, self._source = self._source, None
        if source is not None and not self._drawing:
            source.close()
        self._streams.close(self)


def _folded(
    source: Generator[Any, None, Outcome], fold: Callable[[Sequence[Any]], Any]
) -> Generator[Any, None, Outcome]:
    """The source with its items folded into the outcome, the first error or the end; only its pauses are left."""
    items: list[Any] = []
    try:
        while True:
            try:
                item = next(source)
            except StopIteration as end:
                outcome: Outcome = end.value
                return Outcome(Status.OK, fold(items)) if outcome.status is Status.OK else outcome
            if isinstance(item, Pause):
                yield item
                continue
            error = error_in(item)
            if error is not None:
                return Outcome(Status.FAILED, error)
            items.append(item)
    finally:
        source.close()


def _tuple(items: Sequence[Any]) -> Any:
    return tuple(items)


class SourceHandler:
    """Serves a key from a source (``effects.Handler``).

    Args:
        streams: collects.
        capacity: items that wait in a stream's queue; at least one.
        streamed: whether an effect asks for a stream; all do unless given.
        fold: makes the one answer of a reply that was not asked for as a stream, from its items.
    """

    def __init__(
        self,
        clock: Clock,
        streams: LiveStreams,
        source: Source,
        *,
        capacity: int = STREAM_CAPACITY,
        streamed: Callable[[Effect], bool] | None = None,
        fold: Callable[[Sequence[Any]], Any] = _tuple,
    ) -> None:
        self._clock = clock
        self.streams = streams
        self._source = source
        self._capacity = max(1, capacity)
        self.streamed = streamed
        self._fold = fold

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        """Open the source and draw from it as the collection makes room."""
        live = self.streamed is None or self.streamed(effect)
        stream = _Stream(self._clock, self.streams, effect, self._capacity, live)
        self.streams.open(stream)
        stream.draw(self._source(effect), None if live else self._fold)
        return stream.close


class PushHandler:
    """Serves a key by another handler, whose items and outcome are collected (``effects.Handler``).

    Args:
        handler: pushes when it likes; nothing holds it back.
        streams: collects.
        streamed: whether an effect asks for a stream; all do unless given. What others push is for their asker alone.
    """

    def __init__(
        self,
        clock: Clock,
        streams: LiveStreams,
        handler: Handler,
        *,
        streamed: Callable[[Effect], bool] | None = None,
    ) -> None:
        self._clock = clock
        self.streams = streams
        self._handler = handler
        self.streamed = streamed

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Have the handler serve a stand-in that puts what it gets into the queue."""
        if self.streamed is not None and not self.streamed(effect):
            return self._handler.serve(effect)
        stream = _Stream(self._clock, self.streams, effect, None, True)
        self.streams.open(stream)
        stop = self._handler.serve(cast(Effect, _StandIn(effect, stream)))

        def closed(cause: Cause) -> None:
            stream.close()
            if stop is not None:
                stop(cause)

        return closed


class _StandIn:
    """An effect, as a handler sees it that is collected from."""

    __slots__ = ("_effect", "_stream")

    def __init__(self, effect: Effect, stream: _Stream) -> None:
        self._effect = effect
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._effect, name)

    def deliver(self, item: Any) -> None:
        self._stream.put(item)

    def land(self, outcome: Outcome) -> None:
        self._stream.end(outcome)
