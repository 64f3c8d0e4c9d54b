"""From a loudness or likelihood a frame to speech that starts and stops: two thresholds and two counters.

Every VAD of this package decides through this one rule, on integers. Speech starts once ``onset_frames`` frames in
a row are at or above ``on``; it stops once ``hangover_frames`` in a row are below ``off``. A decision falls at the
END of its deciding frame. Left out: what the levels are (``models.vad_energy``, ``models.vad_silero``) and what a
decision leads to (the turn detector).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal, NamedTuple

import numpy as np

from bargein.models.acoustics import Energies
from bargein.sim.kernel.frames import FRAME_US

__all__ = ["Hysteresis", "VadEdge", "VadState", "decided_at_us"]


class VadEdge(NamedTuple):
    """Speech started or stopped.

    ``onset_frame`` is the first frame of the run that decided it (for a stop: the first quiet one), ``last_frame``
    the last voiced frame so far (for a start: the deciding frame; for a stop: the one before the quiet run).
    """

    kind: Literal["start", "stop"]
    onset_frame: int
    last_frame: int


class VadState(NamedTuple):
    """All that a detector remembers between two frames; plain numbers, so a checkpoint can hold it.

    ``run`` counts the frames in a row, up to now, that speak for a change: at or above ``on`` in silence, below
    ``off`` in speech. Invariant: it is less than the number that makes the change.
    """

    next_frame: int = 0
    speaking: bool = False
    run: int = 0


def decided_at_us(frame: int) -> int:
    """The instant at which a decision on ``frame`` falls: the frame's end."""
    return (frame + 1) * FRAME_US


class Hysteresis:
    """The rule, with three faces that agree: a frame at a time, a span at once, and a span that silence follows.

    Args:
        on: Level from which a frame counts as voiced while there is silence.
        off: Level below which a frame counts as quiet during speech; 1 .. ``on``, so that level 0 is always quiet.
        onset_frames: Voiced frames in a row that start speech, at least 1.
        hangover_frames: Quiet frames in a row that stop it, at least 1.

    Raises:
        ValueError: The numbers do not fit together.
    """

    __slots__ = ("hangover_frames", "off", "on", "onset_frames", "state")

    def __init__(self, *, on: int, off: int, onset_frames: int, hangover_frames: int) -> None:
        if not 1 <= off <= on:
            raise ValueError(f"the thresholds must keep 1 <= off <= on, not off={off} and on={on}")
        if onset_frames < 1 or hangover_frames < 1:
            raise ValueError(
                "onset_frames and hangover_frames are 1 or more,"
                f" not onset_frames={onset_frames} and hangover_frames={hangover_frames}"
            )
        self.on = on
        self.off = off
        self.onset_frames = onset_frames
        self.hangover_frames = hangover_frames
        self.state = VadState()

    def push(self, level: int) -> VadEdge | None:
        """Take the next frame's level into ``state``; the decision that falls at its end, if one does."""
        frame, speaking, run = self.state
        counts = level < self.off if speaking else level >= self.on
        run = run + 1 if counts else 0
        changes = run == (self.hangover_frames if speaking else self.onset_frames)
        self.state = VadState(frame + 1, speaking != changes, 0 if changes else run)
        return self._edge(speaking, frame) if changes else None

    def scan(self, levels: Energies, state: VadState) -> tuple[list[tuple[int, VadEdge]], VadState]:
        """Decide a whole span that begins at ``state.next_frame``; ``self.state`` is neither read nor written.

        Returns:
            ``(deciding frame, edge)`` in order, and the state after the span: what pushing each level would give.
        """
        frame, speaking, carried = state
        if not len(levels):
            return [], state
        # A run carried in began before the span, at a negative index; only the current kind can be carried.
        voiced = _Runs(levels >= self.on, 0 if speaking else carried, self.onset_frames)
        quiet = _Runs(levels < self.off, carried if speaking else 0, self.hangover_frames)
        edges: list[tuple[int, VadEdge]] = []
        undecided = -carried
        while True:
            runs = quiet if speaking else voiced
            begin = runs.first_from(undecided)
            if begin is None:
                break
            decided = begin + runs.needed - 1
            edges.append((frame + decided, self._edge(speaking, frame + decided)))
            speaking = not speaking
            undecided = decided + 1
        return edges, VadState(frame + len(levels), speaking, runs.open)

    def settle(self, levels: Energies, state: VadState, upto: int) -> tuple[list[tuple[int, VadEdge]], VadState]:
        """Decide the frames before ``upto``: ``levels`` from ``state.next_frame`` on, and silence after them.

        For a span cut short (``levels`` beyond ``upto`` are ignored) as well as for one that silence of any length
        follows, which costs the same as none.

        Raises:
            ValueError: ``upto`` lies before the state.
        """
        frames = upto - state.next_frame
        if frames < 0:
            raise ValueError(f"frame {upto} lies before frame {state.next_frame}, which is yet to be decided")
        edges, (frame, speaking, run) = self.scan(levels[:frames], state)
        silent = upto - frame
        if not silent:
            return edges, VadState(frame, speaking, run)
        if not speaking:
            return edges, VadState(upto)
        if run + silent < self.hangover_frames:
            return edges, VadState(upto, True, run + silent)
        decided = frame + self.hangover_frames - run - 1
        return [*edges, (decided, self._edge(True, decided))], VadState(upto)

    def _edge(self, speaking: bool, frame: int) -> VadEdge:
        if speaking:
            first_quiet = frame - self.hangover_frames + 1
            return VadEdge("stop", first_quiet, first_quiet - 1)
        return VadEdge("start", frame - self.onset_frames + 1, frame)


class _Runs:
    """The runs of True in a mask: where those of at least ``needed`` begin, and how long the one still open is."""

    __slots__ = ("_begins", "needed", "open")

    def __init__(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]], carried: int, needed: int) -> None:
        padded = np.zeros(len(mask) + 2, dtype=np.int8)
        padded[1:-1] = mask
        steps = np.diff(padded)
        begins = np.flatnonzero(steps == 1)
        ends = np.flatnonzero(steps == -1)
        if len(begins) and begins[0] == 0:
            begins[0] = -carried
        self.needed = needed
        self.open = int(ends[-1] - begins[-1]) if len(ends) and ends[-1] == len(mask) else 0
        self._begins: list[int] = begins[ends - begins >= needed].tolist()

    def first_from(self, index: int) -> int | None:
        """Where the first long enough run at or after ``index`` begins."""
        at = bisect_left(self._begins, index)
        return self._begins[at] if at < len(self._begins) else None
