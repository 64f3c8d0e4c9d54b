"""Audio in: what the microphone hears, and what the detector decides on it, frame by frame of the global grid.

The caller speaks lines, the room has its noise, and the bot's playout comes back as echo. By spans, the whole
known future is scanned at once and only the detector's edges become events; when the future changes (a line
begins, the bot is cut) what has passed is settled and the rest is scanned again. Per frame, the reference, each
frame is mixed and pushed when it has come in. Both give the same edges on the same instants.

A frame is decided on its end, ahead of everything else on that instant. Left out: what an edge means
(``turn_detector``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bargein.pipelines.ports import EchoPath, Edge, Heard, Pcm, Room, SpeechDetector
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import FRAME_SAMPLES, FRAME_US

__all__ = ["AudioIn"]

_CHUNK_FRAMES = 500
"""How far a room that is never quiet is scanned ahead: ten seconds."""


class _Track:
    """A line of the caller, or a stretch of the bot's echo."""

    __slots__ = ("_pcm", "line", "start", "stop")

    def __init__(self, start: int, length: int, line: Heard | None, pcm: Pcm | None = None) -> None:
        self.start = start
        self.stop = start + length
        self.line = line
        self._pcm = pcm

    def pcm(self) -> Pcm:
        """The samples, asked for when they are mixed."""
        if self._pcm is None:
            assert self.line is not None
            self._pcm = self.line.pcm()
        return self._pcm


class AudioIn:
    """The microphone of one session.

    Args:
        on_edge: called with each of the detector's edges, on the end of its deciding frame.
        room: noise that is always there, or ``None``.
        echo: how the bot comes back into the microphone, or ``None``.
        per_frame: the reference mode.
    """

    def __init__(
        self,
        clock: Clock,
        detector: SpeechDetector,
        on_edge: Callable[[Edge], object],
        room: Room | None = None,
        echo: EchoPath | None = None,
        per_frame: bool = False,
    ) -> None:
        self._clock = clock
        self._detector = detector
        self._on_edge = on_edge
        self._room = room
        self._echo = echo
        self._per_frame = per_frame
        self._caller: list[_Track] = []
        self._echoes: list[_Track] = []
        self._alone: tuple[Heard, int] | None = None  # the one line that is all there is to hear
        self._state: Any = detector.state
        self._edges: deque[tuple[int, Edge]] = deque()
        self._timer: Timer | None = None
        self._running = False
        self._speaking = False
        self._horizon = 0  # the frame up to which a noisy room was scanned

    # -- what is heard ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to listen, at the start of the session."""
        self._running = True
        if self._per_frame:
            self._timer = self._clock.call_in(FRAME_US, Order.FRAME, self._tick)
        elif self._room is not None:
            self._plan()

    def stop(self) -> None:
        """Stop listening; no edge comes any more."""
        self._running = False
        self._edges.clear()
        if self._timer is not None:
            self._timer.cancel()

    def hear(self, line: Heard, first_sample: int) -> None:
        """The caller begins a line at the session's sample ``first_sample``, now or a part of a frame later."""
        if self._per_frame:
            self._caller.append(_Track(first_sample, line.length, line))
            return
        self._settle()
        if not self._caller and not self._echoes and self._room is None:
            self._plan_alone(line, first_sample)
        else:
            self._caller.append(_Track(first_sample, line.length, line))
            self._plan()

    def hear_bot(self, first_sample: int, pcm: Pcm) -> None:
        """The bot is about to be heard from ``first_sample`` on; its echo follows."""
        if self._echo is None:
            return
        back = self._echo.returned(pcm)
        track = _Track(first_sample + self._echo.delay_samples, len(back), None, back)
        if not self._per_frame:
            self._settle()
        self._echoes.append(track)
        if not self._per_frame:
            self._plan()

    def bot_cut(self, at_sample: int) -> None:
        """Nothing of the bot is heard from ``at_sample`` on."""
        if self._echo is None:
            return
        if not self._per_frame:
            self._settle()
        limit = at_sample + self._echo.delay_samples
        for track in self._echoes:
            track.stop = min(track.stop, max(limit, track.start))
        if not self._per_frame:
            self._plan()

    # -- by spans -----------------------------------------------------------------------------------------

    def _mix(self, first_frame: int, last_frame: int) -> NDArray[np.int64]:
        """Levels of the frames from ``first_frame`` up to ``last_frame`` (exclusive)."""
        return self._detector.hear((*self._caller, *self._echoes), self._room, first_frame, last_frame - first_frame)

    def _settle(self) -> None:
        """Decide what has passed under the mix as it was; its last edges stay due if they fall on this instant."""
        now = self._clock.now
        frame = now // FRAME_US
        if self._alone is not None:
            line, first_sample = self._alone
            self._alone = None
            if self._edges or self._speaking or frame * FRAME_SAMPLES < first_sample + line.length + FRAME_SAMPLES:
                self._caller = [_Track(first_sample, line.length, line)]
            # else the line and all its edges are past: there was silence again, and its samples are not needed
        if frame > self._state.next_frame:
            if self._caller or self._echoes or self._room is not None:
                _, self._state = self._detector.scan(self._mix(self._state.next_frame, frame), self._state)
            else:
                _, self._state = self._detector.settle(_NOTHING, self._state, frame)
            begin = frame * FRAME_SAMPLES
            self._caller = [track for track in self._caller if track.stop > begin]
            self._echoes = [track for track in self._echoes if track.stop > begin]
        self._edges = deque(edge for edge in self._edges if edge[0] <= now)

    def _plan(self) -> None:
        """Scan the future as it is known now, and wait for its first edge."""
        if not self._running:
            return
        state = self._state
        first = state.next_frame
        stops = [track.stop for track in (*self._caller, *self._echoes)]
        last = max([first, *(-(-stop // FRAME_SAMPLES) for stop in stops)])
        if self._room is not None:
            last = self._horizon = max(last, first + _CHUNK_FRAMES)
            edges, _ = self._detector.scan(self._mix(first, last), state)
        else:
            levels = self._mix(first, last) if last > first else _NOTHING
            edges, _ = self._detector.settle(levels, state, last + _CHUNK_FRAMES)
        self._edges.extend(((frame + 1) * FRAME_US, edge) for frame, edge in edges)
        self._arm()

    def _plan_alone(self, line: Heard, first_sample: int) -> None:
        """One line in a quiet room: its edges need no mix, and the detector keeps them by content."""
        if not self._detector.at_rest(self._state):
            self._caller.append(_Track(first_sample, line.length, line))
            self._plan()
            return
        self._alone = (line, first_sample)
        self._edges.extend(
            ((frame + 1) * FRAME_US, edge) for frame, edge in self._detector.edges_of(line, first_sample)
        )
        self._arm()

    def _arm(self) -> None:
        """Wait for the next edge or, where it is never quiet, for the end of what was scanned."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._edges:
            self._timer = self._clock.call_at(self._edges[0][0], Order.FRAME, self._fire)
        elif self._room is not None:
            self._timer = self._clock.call_at(self._horizon * FRAME_US, Order.FRAME, self._scan_on)

    def _fire(self, _: object) -> None:
        _, edge = self._edges.popleft()
        self._timer = None
        self._arm()
        self._speaking = edge.kind == "start"
        self._on_edge(edge)

    def _scan_on(self, _: object) -> None:
        self._settle()
        self._plan()

    # -- per frame ----------------------------------------------------------------------------------------

    def _tick(self, _: object) -> None:
        if not self._running:
            return
        frame = self._clock.now // FRAME_US - 1
        self._timer = self._clock.call_in(FRAME_US, Order.FRAME, self._tick)
        begin = frame * FRAME_SAMPLES
        self._caller = [track for track in self._caller if track.stop > begin]
        self._echoes = [track for track in self._echoes if track.stop > begin]
        level = int(self._mix(frame, frame + 1)[0])
        edge = self._detector.push(level)
        if edge is not None:
            self._on_edge(edge)


_NOTHING: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
