"""The agent's ear: the detector and what it listens to, as the pipeline's port wants them.

A session gets one; the audio-in stage drives it. `EnergyEar` hears the mix of everything that sounds. `SileroEar` goes
by the likelihoods that are kept for each line, and so hears lines in a quiet room only. The edges of a line that is
heard alone depend on nothing but its samples, its place within a frame and the settings, so they are kept for all
sessions of the process. Left out: when something sounds (``bargein.pipelines.audio_in``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bargein.models.acoustics import Energies, Pcm, frame_energies, mix
from bargein.models.hysteresis import Hysteresis
from bargein.models.recordings import Recording
from bargein.models.vad_energy import EnergyVad, VadEdge, VadSettings, VadState
from bargein.models.vad_silero import SileroDecisions, SileroSettings, SileroVad
from bargein.pipelines.ports import Heard, Room, Sound
from bargein.sim.kernel.frames import FRAME_SAMPLES

__all__ = ["EnergyEar", "SileroEar"]

_Key = tuple[str, int, VadSettings | SileroSettings]
_KEPT: dict[_Key, tuple[tuple[int, VadEdge], ...]] = {}
_KEPT_MOST = 4096
_LONG_SILENCE = 1 << 20
"""Frames of silence after a line within which its last edge has come whatever the hangover."""


def _at_rest(state: VadState) -> bool:
    """Whether there is silence, and no frame in a row that speaks against it."""
    return not state.speaking and state.run == 0


def _edges(detector: Hysteresis, key: _Key, levels: Energies, frame: int) -> list[tuple[int, VadEdge]]:
    """(deciding frame, edge) for a line whose levels begin at ``frame``, in silence; kept under ``key``."""
    kept = _KEPT.get(key)
    if kept is None:
        edges, _ = detector.settle(levels, VadState(), len(levels) + _LONG_SILENCE)
        if len(_KEPT) >= _KEPT_MOST:
            _KEPT.clear()
        kept = _KEPT[key] = tuple(edges)
    return [
        (frame + decided, VadEdge(edge.kind, frame + edge.onset_frame, frame + edge.last_frame))
        for decided, edge in kept
    ]


class EnergyEar(EnergyVad):
    """The energy detector with its microphone."""

    __slots__ = ()

    def levels(self, pcm: Pcm, first_sample: int) -> Energies:
        """Sum of squares over each frame of the grid that ``pcm``, beginning at ``first_sample``, touches."""
        return frame_energies(pcm, first_sample % FRAME_SAMPLES)

    def hear(self, sounds: Sequence[Sound], room: Room | None, first_frame: int, frames: int) -> Energies:
        """Sum of squares over each frame of the mix."""
        begin, count = first_frame * FRAME_SAMPLES, frames * FRAME_SAMPLES
        tracks = [(each.start - begin, each.pcm()[: each.stop - each.start]) for each in sounds]
        if room is not None:
            tracks.append((0, room.slice(begin, count)))
        return frame_energies(mix(tracks, count))

    def at_rest(self, state: VadState) -> bool:
        """Whether there is silence, and no frame in a row that speaks against it."""
        return _at_rest(state)

    def edges_of(self, line: Heard, first_sample: int) -> Sequence[tuple[int, VadEdge]]:
        """(deciding frame, edge) for a line that begins at the session's ``first_sample``, in silence."""
        frame, offset = divmod(first_sample, FRAME_SAMPLES)
        key = (line.content, offset, self.settings)
        levels = _NOTHING if key in _KEPT else frame_energies(line.pcm(), offset)
        return _edges(self, key, levels, frame)


class SileroEar(SileroVad):
    """The Silero detector over the kept decisions of each line; where two lines overlap, the surer one counts.

    Args:
        decisions: of every line that will be heard, computed before the session.
    """

    __slots__ = ("_decisions",)

    def __init__(self, settings: SileroSettings, decisions: SileroDecisions) -> None:
        super().__init__(settings)
        self._decisions = decisions

    def hear(self, sounds: Sequence[Sound], room: Room | None, first_frame: int, frames: int) -> Energies:
        """The likelihood, in thousandths, at the end of each frame."""
        if room is not None or any(each.line is None for each in sounds):
            raise ValueError("the Silero detector's decisions are kept for clean lines; noise and echo need energy")
        heard = np.zeros(frames, dtype=np.int64)
        for each in sounds:
            frame, offset = divmod(each.start, FRAME_SAMPLES)
            levels = self._levels(each.line, offset)
            first, last = max(frame, first_frame), min(frame + len(levels), first_frame + frames)
            if first < last:
                part = heard[first - first_frame : last - first_frame]
                np.maximum(part, levels[first - frame : last - frame], out=part)
        return heard

    def _levels(self, line: Heard | None, offset: int) -> Energies:
        assert isinstance(line, Recording)
        return self._decisions.levels(line, offset)

    def at_rest(self, state: VadState) -> bool:
        """Whether there is silence, and no frame in a row that speaks against it."""
        return _at_rest(state)

    def edges_of(self, line: Heard, first_sample: int) -> Sequence[tuple[int, VadEdge]]:
        """(deciding frame, edge) for a line that begins at the session's ``first_sample``, in silence."""
        frame, offset = divmod(first_sample, FRAME_SAMPLES)
        key = (line.content, offset, self.settings)
        return _edges(self, key, _NOTHING if key in _KEPT else self._levels(line, offset), frame)


_NOTHING: Energies = np.zeros(0, dtype=np.int64)
