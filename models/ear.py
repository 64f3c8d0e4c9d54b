"""The agent's ear: frame energies and the detector that decides on them, as the pipeline's port wants it.

A session gets one; the audio-in stage drives it. The edges of a line that is heard alone in a quiet room depend
on nothing but its samples, its place within a frame and the thresholds, so they are kept for all sessions of the
process. Left out: mixing (``bargein.pipelines.audio_in``) and the neural detector (``models.vad_silero``).
"""

from __future__ import annotations

from collections.abc import Sequence

from bargein.models.acoustics import Energies, Pcm, frame_energies
from bargein.models.vad_energy import EnergyVad, VadEdge, VadSettings, VadState
from bargein.pipelines.ports import Heard
from bargein.sim.kernel.frames import FRAME_SAMPLES

__all__ = ["EnergyEar"]

_KEPT: dict[tuple[str, int, VadSettings], tuple[tuple[int, VadEdge], ...]] = {}
_KEPT_MOST = 4096
_LONG_SILENCE = 1 << 20
"""Frames of silence after a line within which its last edge has come whatever the hangover."""


class EnergyEar(EnergyVad):
    """The energy detector with its microphone."""

    __slots__ = ()

    def levels(self, pcm: Pcm, first_sample: int) -> Energies:
        """Sum of squares over each frame of the grid that ``pcm``, beginning at ``first_sample``, touches."""
        return frame_energies(pcm, first_sample % FRAME_SAMPLES)

    def at_rest(self, state: VadState) -> bool:
        """Whether there is silence, and no frame in a row that speaks against it."""
        return not state.speaking and state.run == 0

    def edges_of(self, line: Heard, first_sample: int) -> Sequence[tuple[int, VadEdge]]:
        """(deciding frame, edge) for a line that begins at the session's ``first_sample``, in silence."""
        frame, offset = divmod(first_sample, FRAME_SAMPLES)
        key = (line.content, offset, self.settings)
        kept = _KEPT.get(key)
        if kept is None:
            levels = frame_energies(line.pcm(), offset)
            edges, _ = self.settle(levels, VadState(), len(levels) + _LONG_SILENCE)
            if len(_KEPT) >= _KEPT_MOST:
                _KEPT.clear()
            kept = _KEPT[key] = tuple(edges)
        return [
            (frame + decided, VadEdge(edge.kind, frame + edge.onset_frame, frame + edge.last_frame))
            for decided, edge in kept
        ]
