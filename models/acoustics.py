"""Sound as integers: gains, noise, mixing, and the energy of each frame.

Whatever renders or hears audio calls these functions. Every sum and product is a whole number, because the last
bit of a float depends on the processor and one flipped frame would move a timeline. Decibels become integers
once, through ``decimal``. 0 dBFS is the power of a full-scale square wave (RMS 32768). Left out: rooms, filters
and codecs; an echo is a delayed, scaled copy in a mix.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from functools import lru_cache
from math import isqrt
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bargein.sim.kernel.frames import FRAME_SAMPLES
from bargein.sim.kernel.streams import Stream

__all__ = [
    "SPEECH_RMS",
    "Decibels",
    "Energies",
    "NoiseKind",
    "Pcm",
    "decibels",
    "frame_energies",
    "gain_q16",
    "looped",
    "mix",
    "noise_bed",
    "noise_gain_for_snr",
    "normalised",
    "power_ratio",
    "rms",
    "scale",
]

Pcm: TypeAlias = npt.NDArray[np.int16]
Energies: TypeAlias = npt.NDArray[np.int64]
Decibels: TypeAlias = str | int | float | Decimal
NoiseKind: TypeAlias = Literal["white", "pink", "babble"]

SPEECH_RMS = 3277  # -20 dBFS: 20 dB over the default detector's threshold, and room for the peaks of speech

_UNITY = 1 << 16
_LOUDEST_DB = 120
_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)  # a caller's own decimal context must not reach a decision
_GAMMA = 0x9E3779B97F4A7C15
_PINK_ROWS = 10
_TALKERS = 6
_SYLLABLE_SAMPLES = 1600


def decibels(value: Decibels) -> Decimal:
    """``value`` (dB, with or without the unit: ``-20``, ``"-20"``, ``"-20 dB"``) as an exact decimal.

    Raises:
        ValueError: It is no finite number between -120 and 120.
    """
    text = str(value).strip()
    if text.lower().endswith("db"):
        text = text[:-2].rstrip()
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number) > _LOUDEST_DB:
        raise ValueError(f"{value!r} is no level: a number of decibels from -{_LOUDEST_DB} to {_LOUDEST_DB}")
    return number


def power_ratio(db: Decibels) -> Decimal:
    """10 ** (db / 10) to 28 digits: how many times the power a level in dB stands for."""
    return _EXACT.power(Decimal(10), _EXACT.divide(decibels(db), Decimal(10)))


def gain_q16(db: Decibels) -> int:
    """The amplitude gain of ``db`` as a whole number of 1/65536ths: 0 dB is 65536, -6 dB is 32846."""
    return _whole(_EXACT.multiply(_amplitude_ratio(db), Decimal(_UNITY)))


def noise_gain_for_snr(speech_rms: int, noise_rms: int, snr_db: Decibels) -> int:
    """The gain (1/65536ths) that puts noise of RMS ``noise_rms`` ``snr_db`` below speech of RMS ``speech_rms``.

    Raises:
        ValueError: ``noise_rms`` is not positive (silence cannot be made loud) or ``speech_rms`` is negative.
    """
    if noise_rms <= 0 or speech_rms < 0:
        raise ValueError(f"an SNR takes noise_rms > 0 and speech_rms >= 0, not {noise_rms} and {speech_rms}")
    wanted = _EXACT.divide(Decimal(speech_rms * _UNITY), _amplitude_ratio(snr_db))
    return _whole(_EXACT.divide(wanted, Decimal(noise_rms)))


def rms(pcm: Pcm) -> int:
    """The root of the mean square, rounded down; 0 for no samples."""
    if not len(pcm):
        return 0
    wide = pcm.astype(np.int64)
    return isqrt(int(wide @ wide) // len(pcm))


def scale(pcm: Pcm, q16: int) -> Pcm:
    """``pcm`` times ``q16`` / 65536, rounded half up; what does not fit 16 bits is clipped to them."""
    return _saturated((pcm.astype(np.int64) * q16 + _UNITY // 2) >> 16)


def normalised(pcm: Pcm, target_rms: int = SPEECH_RMS) -> Pcm:
    """``pcm`` at RMS ``target_rms`` (to a sample value or two); silence stays silence."""
    return scale(pcm, target_rms * _UNITY // (rms(pcm) or 1))


def mix(tracks: Iterable[tuple[int, Pcm]], samples: int) -> Pcm:
    """The sum of ``tracks`` over a window of ``samples`` samples, clipped to 16 bits once, at the end.

    Args:
        tracks: Pairs of where a track begins, in samples from the window's start (may be negative), and its
            samples. What lies outside the window is left out.
        samples: Length of the window.
    """
    total = np.zeros(samples, dtype=np.int64)
    for begin, pcm in tracks:
        first, last = max(begin, 0), min(begin + len(pcm), samples)
        if first < last:
            total[first:last] += pcm[first - begin : last - begin]
    return _saturated(total)


def frame_energies(pcm: Pcm, first_sample_offset_in_frame: int = 0) -> Energies:
    """The sum of squares over each frame of the global grid that ``pcm`` touches.

    Args:
        pcm: int16 samples at 16 kHz.
        first_sample_offset_in_frame: Samples (0 to 319) between a frame boundary and the first of ``pcm``.

    Returns:
        One int64 a frame; the rest of the first and of the last frame counts as silence.
    """
    if not 0 <= first_sample_offset_in_frame < FRAME_SAMPLES:
        raise ValueError(f"an offset in a frame is 0 to {FRAME_SAMPLES - 1}, not {first_sample_offset_in_frame}")
    if not len(pcm):
        return np.zeros(0, dtype=np.int64)
    frames = -(-(first_sample_offset_in_frame + len(pcm)) // FRAME_SAMPLES)
    padded = np.zeros(frames * FRAME_SAMPLES, dtype=np.int64)
    padded[first_sample_offset_in_frame : first_sample_offset_in_frame + len(pcm)] = pcm
    rows = padded.reshape(frames, FRAME_SAMPLES)
    energies: Energies = np.einsum("ij,ij->i", rows, rows)
    return energies


def noise_bed(kind: NoiseKind, stream: Stream, samples: int) -> Pcm:
    """``samples`` samples of noise at RMS ``SPEECH_RMS``, meant to be looped; one draw from ``stream``.

    ``white`` is near-Gaussian, ``pink`` falls 3 dB an octave, ``babble`` is six talkers reduced to pink noise
    whose loudness moves at the pace of syllables (no words, so that nothing can be recognised in it).

    Raises:
        ValueError: ``kind`` is none of these, or ``samples`` is not positive.
    """
    if kind not in _BEDS or samples <= 0:
        raise ValueError(f"a noise bed is one of {', '.join(_BEDS)} over 1 sample or more, not {kind!r} over {samples}")
    return _bed(kind, stream.u64(), samples)


def looped(bed: Pcm, first_sample: int, samples: int) -> Pcm:
    """``samples`` samples of ``bed`` played round and round, from position ``first_sample`` of the session."""
    return bed.take(np.arange(first_sample, first_sample + samples), mode="wrap")


@lru_cache(maxsize=16)
def _bed(kind: NoiseKind, seed: int, samples: int) -> Pcm:
    noise = _BEDS[kind](seed, samples)
    power = int(noise @ noise) // samples
    bed = _saturated(noise * SPEECH_RMS // (isqrt(power) or 1))
    bed.setflags(write=False)
    return bed


def _white(seed: int, samples: int) -> npt.NDArray[np.int64]:
    """Four 16-bit uniforms a sample, summed and centred: a bell within +-8191 (wide enough, and exact)."""
    counter = np.arange(1, samples + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(seed)
    counter = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    counter = (counter ^ (counter >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    counter ^= counter >> np.uint64(31)
    lanes = sum((counter >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48))
    return (np.asarray(lanes).astype(np.int64) - 2 * 0xFFFF) >> 4


def _pink(seed: int, samples: int) -> npt.NDArray[np.int64]:
    """Voss and McCartney's sum of held noises: row k changes every 2**k samples."""
    total = np.zeros(samples, dtype=np.int64)
    for row in range(_PINK_ROWS):
        held = _white(_mixed(seed, row), (samples >> row) + 1)
        total += np.repeat(held, 1 << row)[:samples]
    return total


def _babble(seed: int, samples: int) -> npt.NDArray[np.int64]:
    total = np.zeros(samples, dtype=np.int64)
    steps = -(-samples // _SYLLABLE_SAMPLES)
    along = np.arange(_SYLLABLE_SAMPLES)
    for talker in range(_TALKERS):
        level = np.abs(_white(_mixed(seed, 100 + talker), steps)) >> 8
        level = np.append(level, level[0])  # ends where it began: the bed is looped
        ramp = level[:-1, None] * (_SYLLABLE_SAMPLES - along) + level[1:, None] * along
        total += _pink(_mixed(seed, 200 + talker), samples) * ramp.reshape(-1)[:samples] >> 16
    return total


_BEDS = {"white": _white, "pink": _pink, "babble": _babble}


def _mixed(seed: int, salt: int) -> int:
    return Stream(seed, f"noise/{salt}").u64()


def _amplitude_ratio(db: Decibels) -> Decimal:
    return _EXACT.power(Decimal(10), _EXACT.divide(decibels(db), Decimal(20)))


def _whole(number: Decimal) -> int:
    return int(number.to_integral_value(rounding=ROUND_HALF_EVEN))


def _saturated(wide: npt.NDArray[np.int64]) -> Pcm:
    return np.clip(wide, -32768, 32767).astype(np.int16)
