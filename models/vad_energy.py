"""The built-in voice activity detector: the energy of each frame against two thresholds.

The audio-in stage pushes or scans frame energies (``acoustics.frame_energies``). Levels in dBFS become whole sums of
squares once, through ``decimal``, so a frame at a threshold falls on the same side on every processor. Left out: an
adaptive noise floor; a scenario with loud noise states its thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING
from functools import lru_cache

from bargein.models.acoustics import Decibels, power_ratio
from bargein.models.hysteresis import Hysteresis, VadEdge, VadState, decided_at_us
from bargein.sim.kernel.frames import FRAME_SAMPLES

__all__ = ["EnergyVad", "VadEdge", "VadSettings", "VadState", "decided_at_us", "energy_threshold"]

_FULL_SCALE_SQUARE = 32768 * 32768


@dataclass(frozen=True, slots=True)
class VadSettings:
    """When a frame counts as speech.

    Attributes:
        on_db: Frame level (dBFS) that starts speech. -40 lies 20 dB under normal speech, above a quiet room.
        off_db: Frame level (dBFS) below which speech fades, at most ``on_db``.
        onset_frames: Frames of 20 ms in a row at ``on_db`` or more that start speech.
        hangover_frames: Frames of 20 ms in a row below ``off_db`` that stop it. 200 ms outlast the stops and the
            commas of fluent speech.
    """

    on_db: Decibels = -40
    off_db: Decibels = -46
    onset_frames: int = 2
    hangover_frames: int = 10


@lru_cache(maxsize=64)
def energy_threshold(level_db: Decibels) -> int:
    """The smallest sum of squares over one frame that reaches ``level_db`` dBFS."""
    return int((FRAME_SAMPLES * _FULL_SCALE_SQUARE * power_ratio(level_db)).to_integral_value(ROUND_CEILING))


class EnergyVad(Hysteresis):
    """A detector over frame energies (sums of squares over 320 samples).

    Raises:
        ValueError: ``off_db`` lies above ``on_db``, a level is no number of decibels, or a count is under 1.
    """

    __slots__ = ("settings",)

    def __init__(self, settings: VadSettings | None = None) -> None:
        self.settings = settings = settings or VadSettings()
        super().__init__(
            on=energy_threshold(settings.on_db),
            off=energy_threshold(settings.off_db),
            onset_frames=settings.onset_frames,
            hangover_frames=settings.hangover_frames,
        )
