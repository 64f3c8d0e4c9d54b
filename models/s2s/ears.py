"""A live provider's ears: from the detector's edges to the user's turns, on the provider's side of the wire.

Speech is told once it has lasted the minimum time, and a turn has ended after the minimum silence, as a server-side
detector decides it. Words are known to the provider with the speech itself; their transcript is another matter (the
server sends it when it likes). Left out: whether the agent is interrupted by it (``server``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bargein.pipelines.ports import Edge, Transcriber
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import FRAME_US

__all__ = ["Ears", "Listening"]


class Listening(Protocol):
    """How speech becomes turns."""

    @property
    def min_speech_us(self) -> int: ...
    @property
    def min_silence_us(self) -> int: ...


class Ears:
    """Decides on the user's turns.

    Args:
        words: knows what was said between two instants.
        on_start: called with the onset of speech; on_stop: with the end of it and the words of the turn.
        on_words: called when words of a turn have come, which may be long after it.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Listening,
        words: Transcriber,
        on_start: Callable[[int], object],
        on_stop: Callable[[int, str], object],
        on_words: Callable[[], object] = lambda: None,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._words = words
        self._on_start = on_start
        self._on_stop = on_stop
        self._on_words = on_words
        self._onset_us = 0
        self._told = False  # the turn that goes on was told
        self._timer: Timer | None = None  # to its beginning, or to its end
        self._texts: list[str] = []
        self._segments = 0
        self._pending = 0
        self._placed = 0
        self.hearing = False

    @property
    def idle(self) -> bool:
        """Whether nobody speaks and no turn is open."""
        return not (self.hearing or self._timer is not None or self._told or self._pending or self._placed)

    def on_edge(self, edge: Edge) -> None:
        """The caller's sound begins or ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if edge.kind == "start":
            self.hearing = True
            self._onset_us = edge.onset_frame * FRAME_US
            if not self._told:
                due_us = max(self._clock.now, self._onset_us + self._settings.min_speech_us)
                self._timer = self._clock.call_at(due_us, Order.DELIVERY, self._start)
        else:
            self.hearing = False
            self._stop((edge.last_frame + 1) * FRAME_US)

    def _start(self, _: object) -> None:
        self._timer = None
        self._told = True
        self._on_start(self._onset_us)

    def _stop(self, end_us: int) -> None:
        """Too short to have been told is too short to count."""
        if not self._told:
            return
        self._segments += 1
        self._pending += 1
        self._words.transcribe(self._segments, self._onset_us, end_us, self._take_words)
        due_us = max(self._clock.now, end_us + self._settings.min_silence_us)
        self._timer = self._clock.call_at(due_us, Order.TIMER, self._end, end_us)

    def _take_words(self, segment: int, text: str, more: bool) -> None:
        if not more:
            self._pending -= 1
        if text:
            self._texts.append(text)
        self._on_words()

    def _end(self, end_us: int) -> None:
        self._timer = None
        self._told = False
        texts, self._texts = self._texts, []
        self._on_stop(end_us, " ".join(texts))

    def place(self, text: str, duration_us: int) -> None:
        """The caller says ``text`` from now on, without audio: the turn begins and ends exactly so."""
        self._placed += 1
        self._on_start(self._clock.now)
        self._clock.call_in(duration_us, Order.TIMER, self._end_placed, text)

    def _end_placed(self, text: str) -> None:
        self._placed -= 1
        self._on_stop(self._clock.now, text)

    def stop(self) -> None:
        """The call is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.hearing = self._told = False
        self._pending = self._placed = 0
