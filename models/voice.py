"""The voice that says any text: a packaged recording where there is one, a plain synthetic voice elsewhere.

Callers and TTS models call ``speak``. The synthetic voice is meant to be seen by a VAD and told apart by ear (the
caller is low, the agent high), not to be understood; its timings and its waveform are integer arithmetic, so a line
has the same samples everywhere. Left out: languages; letters are only counted.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache, partial
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from bargein.models.acoustics import SPEECH_RMS, Pcm, normalised
from bargein.models.fixtures import find
from bargein.models.recordings import Recording, Word
from bargein.models.sentences import split_words
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["VOICES", "speak", "synthesize"]

VOICES = ("caller", "agent")

_RECIPE = "bargein synthetic voice 1"  # part of the content key: raise it when the sound or the timing changes
_PITCH_HZ = {"caller": 110, "agent": 205}
_VOWELS = frozenset("aeiouyıæœø")
# 110 ms a vowel and 35 ms a consonant: about 160 words a minute of English. The pauses (100 and 160 ms) stay under
# the VAD's default hangover, so that a line of two sentences is one turn.
_VOWEL_SAMPLES, _CONSONANT_SAMPLES = 1760, 560
_COMMA_SAMPLES, _STOP_SAMPLES = 1600, 2560
_ATTACK_SAMPLES, _RELEASE_SAMPLES = 160, 320
_FULL, _DIP = 256, 64  # loudness inside a syllable, and where two syllables of a word meet
_HARMONICS = ((1, 4), (2, 3), (3, 3), (5, 1))


def speak(voice: str, text: str) -> Recording:
    """``text`` said by ``voice`` (``caller`` or ``agent``): the packaged recording, else the synthetic voice.

    The recording's words spell ``text`` exactly, spaces around it included. Nothing is decoded or rendered yet.

    Raises:
        ValueError: There is no such voice.
    """
    return find(voice, text) or synthesize(voice, text)


@lru_cache(maxsize=1024)
def synthesize(voice: str, text: str) -> Recording:
    """``text`` in the synthetic voice: 110 ms a vowel group, 35 ms a consonant, pauses after punctuation.

    Other scripts' letters and digits count as a vowel each; a word of signs only lasts one vowel. A text of
    nothing but spaces is a recording of no samples.

    Raises:
        ValueError: There is no such voice.
    """
    if voice not in _PITCH_HZ:
        raise ValueError(f"there is no voice {voice!r}; the voices are {', '.join(VOICES)}")
    said = text.strip()
    words, at = [], 0
    for word in split_words(said or text):
        end = at + sum(_syllables(word))
        words.append(Word(word, at, end))
        at = end + _pause(word)
    length = words[-1].end if words else 0
    content = sha256(f"{_RECIPE}\n{voice}\n{said}".encode()).hexdigest()
    source = partial(_render, voice, said, length)
    return Recording(said or text, voice, tuple(words), length, content, source).spelling(text)


def _syllables(word: str) -> list[int]:
    """The lengths, in samples, of a word's syllables: its sound shared out evenly, the last takes the rest."""
    if not word.strip():
        return []
    vowels = consonants = 0
    in_vowel = False
    for sign in unicodedata.normalize("NFKD", word.lower()):
        kind = unicodedata.category(sign)
        if sign in _VOWELS:
            vowels += not in_vowel
            in_vowel = True
        elif kind == "Ll":
            consonants += 1
            in_vowel = False
        elif kind in ("Lo", "Nd"):
            vowels += 1
            in_vowel = False
    count = vowels or 1
    sound = _VOWEL_SAMPLES * count + _CONSONANT_SAMPLES * consonants
    share = sound // count
    return [share] * (count - 1) + [sound - share * (count - 1)]


def _pause(word: str) -> int:
    """The silence, in samples, after a word that is not the last."""
    mark = word.rstrip("\"'”’)]")[-1:]
    if mark in (",", ";", ":"):
        return _COMMA_SAMPLES
    return _STOP_SAMPLES if mark in (".", "!", "?", "…") else 0


@lru_cache(maxsize=256)
def _render(voice: str, said: str, length: int) -> Pcm:
    if not length:
        return np.zeros(0, dtype=np.int16)
    steps: list[npt.NDArray[np.int64]] = []  # how far the phase moves, in 65536ths of a period, at each sample
    levels: list[npt.NDArray[np.int64]] = []
    spoken = 0
    for word in split_words(said):
        syllables = _syllables(word)
        for index, samples in enumerate(syllables):
            falling = _PITCH_HZ[voice] * (112 - min(24, 2 * spoken)) // 100
            steps.append(np.full(samples, falling * 65536 // SAMPLE_RATE_HZ, dtype=np.int64))
            levels.append(_envelope(samples, first=index == 0, last=index == len(syllables) - 1))
            spoken += 1
        pause = np.zeros(_pause(word), dtype=np.int64)
        steps.append(pause)
        levels.append(pause)
        if len(pause) == _STOP_SAMPLES:
            spoken = 0
    phase = np.cumsum(np.concatenate(steps))
    wave = sum(weight * _near_sine(phase * harmonic) for harmonic, weight in _HARMONICS)
    pcm: Pcm = (wave * np.concatenate(levels) // (_FULL * 22)).astype(np.int16)
    return normalised(pcm[:length], SPEECH_RMS)  # the pause after the last word falls away


def _near_sine(phase: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A period made of two parabolas, +-32768 high: a sine to the ear, without a sine's last bit."""
    half = phase & 0x7FFF
    arch = half * (0x8000 - half) >> 13
    return np.where(phase & 0x8000, -arch, arch)


def _envelope(samples: int, *, first: bool, last: bool) -> npt.NDArray[np.int64]:
    level = np.full(samples, _FULL, dtype=np.int64)
    begin, end = 0 if first else _DIP, 0 if last else _DIP
    level[:_ATTACK_SAMPLES] = begin + (_FULL - begin) * np.arange(_ATTACK_SAMPLES) // _ATTACK_SAMPLES
    level[-_RELEASE_SAMPLES:] = _FULL - (_FULL - end) * np.arange(1, _RELEASE_SAMPLES + 1) // _RELEASE_SAMPLES
    return level
