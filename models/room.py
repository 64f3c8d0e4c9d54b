"""What the microphone picks up besides the caller: noise of a room, and the bot coming back as echo.

Built once a session from a scenario's acoustics and handed to the audio-in stage. Integer arithmetic throughout.
Left out: reverberation and an echo canceller; an echo is a delayed, quieter copy.
"""

from __future__ import annotations

from bargein.models.acoustics import (
    SPEECH_RMS,
    Decibels,
    NoiseKind,
    Pcm,
    gain_q16,
    looped,
    noise_bed,
    noise_gain_for_snr,
    rms,
    scale,
)
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ, us_to_samples
from bargein.sim.kernel.streams import Stream

__all__ = ["NoisyRoom", "ScaledEcho"]

_BED_SAMPLES = 8 * SAMPLE_RATE_HZ


class NoisyRoom:
    """Noise all the time, ``snr_db`` below speech of the fixtures' level."""

    def __init__(self, kind: NoiseKind, snr_db: Decibels, stream: Stream) -> None:
        bed = noise_bed(kind, stream, _BED_SAMPLES)
        self._bed = scale(bed, noise_gain_for_snr(SPEECH_RMS, rms(bed), snr_db))

    def slice(self, first_sample: int, count: int) -> Pcm:
        """``count`` samples from the session's sample ``first_sample``; the bed is repeated."""
        return looped(self._bed, first_sample, count)


class ScaledEcho:
    """The bot's sound, ``delay_us`` later (in whole samples, rounded down) and changed by ``gain_db``."""

    def __init__(self, delay_us: int, gain_db: Decibels) -> None:
        self.delay_samples = us_to_samples(delay_us)
        self._gain = gain_q16(gain_db)

    def returned(self, pcm: Pcm) -> Pcm:
        """What comes back of ``pcm``."""
        return scale(pcm, self._gain)
