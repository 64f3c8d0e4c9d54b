"""A recording: words with their places in samples, and the samples themselves when someone asks.

Callers, TTS and clips hand recordings around; most sessions need only the word timings, so the samples are
decoded or rendered on the first ``pcm()``. This file also reads a user's own WAV or FLAC. Left out: where packaged
lines and the synthetic voice come from (``models.fixtures``, ``models.voice``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from math import gcd
from typing import IO, Any

import numpy as np

from bargein.models.acoustics import Energies, Pcm, frame_energies
from bargein.models.sentences import split_words
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["AudioError", "Recording", "Word", "load", "recording_of", "spread_words"]

_ACCEPTED = "a WAV or FLAC file of at most 10 minutes is accepted"
_LONGEST_S = 600
_RATES_HZ = (4_000, 192_000)
_FORMATS = ("WAV", "WAVEX", "RF64", "FLAC")
_TAP_UNITY = 1 << 28


class AudioError(Exception):
    """A user's audio file cannot be used; the message names the file, what was found and what is accepted."""


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word: its text (with the space before it) and where it sounds, in samples, end exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Recording:
    """Speech at 16 kHz, mono, with word timings.

    Attributes:
        text: What is said.
        voice: Who says it (``caller`` or ``agent``).
        words: Invariant: their texts together are exactly ``text``, none starts before the one before it has
            ended, and the last ends at ``length``.
        length: Samples.
        content: Invariant: equal keys mean equal samples (hex SHA-256 of the samples, or of the recipe that
            renders them), so that whatever is computed from the samples may be kept under it.
        source: Gives the samples; it keeps them itself, within bounds.
    """

    text: str
    voice: str
    words: tuple[Word, ...] = field(hash=False)
    length: int
    content: str
    source: Callable[[], Pcm] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if "".join(word.text for word in self.words) != self.text:
            raise ValueError(f"the words of a recording must spell its text {self.text!r}")
        at = 0
        for word in self.words:
            if not at <= word.start <= word.end:
                raise ValueError(f"{word} of {self.text!r} starts before sample {at} or ends before it starts")
            at = word.end
        if self.words and at != self.length:
            raise ValueError(f"the last word of {self.text!r} ends at sample {at}, its recording at {self.length}")

    def pcm(self) -> Pcm:
        """The samples: a read-only int16 array of ``length`` at 16 kHz, decoded or rendered on first use."""
        samples = self.source()
        samples.setflags(write=False)
        return samples

    def frame_energies(self, first_sample_offset_in_frame: int = 0) -> Energies:
        """``acoustics.frame_energies`` of the samples, kept: a line said again at the same offset is free."""
        return _energies(self, first_sample_offset_in_frame)

    def spelling(self, text: str) -> Recording:
        """The same sound for ``text``, which may differ in the spaces around it only."""
        if text == self.text:
            return self
        spelt = split_words(text)
        if text.strip() != self.text.strip() or len(spelt) != len(self.words):
            raise ValueError(f"a recording of {self.text!r} does not say {text!r}")
        words = tuple(replace(word, text=new) for word, new in zip(self.words, spelt, strict=True))
        return replace(self, text=text, words=words)


def recording_of(pcm: Pcm, text: str, voice: str = "caller") -> Recording:
    """A recording made of samples at hand (int16, 16 kHz), its words spread evenly by their letters."""
    kept = np.array(pcm, dtype="<i2")
    content = sha256(kept.tobytes()).hexdigest()
    return Recording(text, voice, spread_words(text, len(kept)), len(kept), content, _Held(kept))


def spread_words(text: str, length: int) -> tuple[Word, ...]:
    """Word timings for ``text`` over ``length`` samples when none are known: each word in proportion to its letters."""
    texts = split_words(text)
    weights = [len(word.strip()) or 1 for word in texts]
    total, done, words = sum(weights), 0, []
    for word, weight in zip(texts, weights, strict=True):
        words.append(Word(word, length * done // total, length * (done + weight) // total))
        done += weight
    return tuple(words)


def load(path: str | os.PathLike[str], text: str, voice: str = "caller") -> tuple[Recording, tuple[str, ...]]:
    """Read a user's WAV or FLAC as speech that says ``text``.

    Any rate from 4 to 192 kHz and any number of channels is converted to 16 kHz mono. The resampling filter has
    whole-number taps, so its sums are exact and do not depend on the order in which a processor adds.

    Returns:
        The recording, its words spread evenly, and a note for each conversion that was made.

    Raises:
        AudioError: The file is missing, empty, no WAV or FLAC, longer than 10 minutes, or at an odd rate.
    """
    import soundfile

    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            if not file.read(1):
                raise AudioError(f"{name}: the file is empty; {_ACCEPTED}")
            file.seek(0)
            pcm, notes = _read(name, file)
    except OSError as error:
        raise AudioError(f"{name}: {(error.strerror or str(error)).lower()}; {_ACCEPTED}") from None
    except soundfile.LibsndfileError as error:
        found = error.error_string.rstrip(".").lower()
        raise AudioError(f"{name}: not audio that can be read ({found}); {_ACCEPTED}") from None
    return recording_of(pcm, text, voice), tuple(notes)


def _read(name: str, file: IO[bytes]) -> tuple[Pcm, list[str]]:
    import soundfile

    # A file object with a name would have its format guessed from the extension; the content decides instead.
    with soundfile.SoundFile(_Nameless(file)) as sound:
        rate, channels = int(sound.samplerate), int(sound.channels)
        if sound.format not in _FORMATS:
            raise AudioError(f"{name}: {sound.format} audio found; {_ACCEPTED}")
        low, high = _RATES_HZ
        if not low <= rate <= high:
            raise AudioError(f"{name}: a rate of {rate} Hz found; {low} to {high} Hz is accepted")
        if sound.frames > _LONGEST_S * rate:
            raise AudioError(f"{name}: {sound.frames // rate} seconds of audio found; {_ACCEPTED}")
        blocks = list(_mono_blocks(name, sound))
    pcm: Pcm = np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.int16)
    if not len(pcm):
        raise AudioError(f"{name}: audio of 0 samples found; {_ACCEPTED}")
    notes = []
    if channels > 1:
        notes.append(f"{'stereo' if channels == 2 else f'{channels} channels'}: channel mix taken")
    if rate != SAMPLE_RATE_HZ:
        pcm = _resampled(pcm, rate)
        notes.append(f"{rate} Hz: resampled to {SAMPLE_RATE_HZ} Hz")
    if not pcm.any():
        notes.append("silent: every sample is 0")
    return pcm, notes


def _mono_blocks(name: str, sound: Any) -> Iterator[Pcm]:
    """The file's samples as 16-bit mono, a block at a time: ten minutes of stereo floats would be half a gigabyte."""
    for block in sound.blocks(blocksize=1 << 16, dtype="float64", always_2d=True):
        if not np.isfinite(block).all():
            raise AudioError(f"{name}: samples that are no numbers found; {_ACCEPTED}")
        whole = np.clip(np.rint(block * 32768), -32768, 32767).astype(np.int64)
        channels = whole.shape[1]
        yield ((2 * whole.sum(axis=1) + channels) // (2 * channels)).astype(np.int16)


def _resampled(pcm: Pcm, rate_hz: int) -> Pcm:
    from scipy.signal import firwin, resample_poly

    shared = gcd(rate_hz, SAMPLE_RATE_HZ)
    up, down = SAMPLE_RATE_HZ // shared, rate_hz // shared
    widest = max(up, down)
    # scipy's own default filter, with its taps rounded to whole numbers: the products then sum to integers below
    # 2**53, which a float holds exactly whatever the order of the additions.
    taps = np.rint(firwin(20 * widest + 1, 1 / widest, window=("kaiser", 5.0)) * _TAP_UNITY)
    whole = np.rint(resample_poly(pcm.astype(np.float64), up, down, window=taps)).astype(np.int64)
    resampled: Pcm = np.clip((whole + _TAP_UNITY // 2) // _TAP_UNITY, -32768, 32767).astype(np.int16)
    return resampled


@lru_cache(maxsize=256)
def _energies(recording: Recording, first_sample_offset_in_frame: int) -> Energies:
    energies = frame_energies(recording.pcm(), first_sample_offset_in_frame)
    energies.setflags(write=False)
    return energies


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    pcm: Pcm

    def __call__(self) -> Pcm:
        return self.pcm


class _Nameless:
    """Just the reading half of a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell
