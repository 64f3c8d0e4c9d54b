"""Make the spoken fixtures from ``lines.yaml``: ``audio/*.flac``, ``manifest.json``, ``silero_vad.json``.

Run ``python audio_fixtures/make_fixtures.py`` after editing the lines (needs libespeak-ng, whose output the audio is,
and the extra ``silero``).
Word timings are espeak-ng's own word events. Each line is spoken in a fresh process, since the synthesiser carries
its phase from one line into the next: a line's audio depends on nothing but the line, and adding one changes no
other. Left out: any use of the fixtures (``models.fixtures`` reads them).
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bargein.models.acoustics import Pcm, normalised
from bargein.models.fixtures import packaged
from bargein.models.sentences import split_sentences, split_words
from bargein.models.vad_silero import SileroDecisions
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["Spoken", "lines", "main", "render", "synthesiser"]

HERE = Path(__file__).parent
VOICES = {"caller": "gmw/en-US+m3", "agent": "gmw/en-GB-x-rp+f3"}
WORDS_A_MINUTE = 165
LICENCE = "CC0-1.0"
ABOUT = (
    "Spoken by espeak-ng for this project and given away under CC0-1.0; the licence of espeak-ng (GPL-3.0-or-later)"
    " covers the program, not the audio it makes. Made by audio_fixtures/make_fixtures.py, which uses no seed."
)

# The longest silence kept: 20 ms at the edges, 120 ms inside, so that a comma is not taken for the end of a turn.
_EDGE_SAMPLES, _PAUSE_SAMPLES = 320, 1920
_WINDOW_SAMPLES = 80
_SILENCE_RMS = 58  # -55 dBFS, with speech at -20

_SYNCHRONOUS, _EXIT_NEVER = 2, 0x8000
_RATE, _CHARS_UTF8, _BY_CHARACTER, _WORD_EVENT = 1, 1, 1, 1


class Spoken(NamedTuple):
    """One finished line: 16 kHz samples, and each word's ``(start, end)`` in them."""

    pcm: Pcm
    spans: list[tuple[int, int]]


class _Event(ctypes.Structure):
    """``espeak_EVENT`` of ``speak_lib.h``."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


def lines() -> Iterator[tuple[str, str]]:
    """Each ``(voice, text)`` to record, once: callers' lines whole, the agent's by sentence, as the TTS cuts them."""
    import yaml

    seen = set()
    for line in yaml.safe_load((HERE / "lines.yaml").read_text(encoding="utf-8")):
        voice, text = line["voice"], line["text"].strip()
        for piece in split_sentences(text) if voice == "agent" else [text]:
            key = (voice, piece.strip())
            if key not in seen:
                seen.add(key)
                yield key


def render(key: tuple[str, str]) -> Spoken:
    """Speak one ``(voice, text)``. Call it once a process: espeak-ng remembers the line before."""
    voice, text = key
    raw, rate, starts = _espeak(VOICES[voice], text)
    loud = normalised(_resampled(raw, rate))
    at = [start * SAMPLE_RATE_HZ // rate for start in starts]
    silent = _silence(loud)
    kept = _kept(silent)
    place = np.concatenate(([0], np.cumsum(kept)))  # a sample's index before -> after the cuts
    spans = []
    for begin, until in zip(at, [*at[1:], len(loud)], strict=True):
        heard = np.flatnonzero(~silent[begin:until])
        end = begin + int(heard[-1]) + 1 if len(heard) else until
        spans.append((int(place[begin]), int(place[end])))
    pcm = normalised(loud[kept])
    spans[-1] = (spans[-1][0], len(pcm))
    return Spoken(pcm, spans)


def main() -> None:
    """Write every file, and remove the audio of lines that are gone."""
    keys = list(lines())
    with get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        spoken = pool.map(render, keys, chunksize=1)
    (HERE / "audio").mkdir(exist_ok=True)
    entries = [_write(key, line) for key, line in zip(keys, spoken, strict=True)]
    names = {entry["file"] for entry in entries}
    if len(names) != len(entries):
        raise SystemExit("two lines would share one file name; change the wording of one")
    for old in sorted((HERE / "audio").glob("*.flac")):
        if f"audio/{old.name}" not in names:
            old.unlink()
    manifest = {
        "about": ABOUT,
        "licence": LICENCE,
        "synthesiser": synthesiser(),
        "voices": VOICES,
        "lines": entries,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    # A word a line: short enough to read, and a changed timing is a one-line diff.
    text = re.sub(
        r'\{\s+"text": (.*),\s+"start": (\d+),\s+"end": (\d+)\s+\}',
        r'{"text": \1, "start": \2, "end": \3}',
        text,
    )
    (HERE / "manifest.json").write_text(text + "\n", encoding="utf-8")
    _write_decisions()
    print(f"{len(entries)} recordings, {sum(entry['samples'] for entry in entries) / SAMPLE_RATE_HZ:.1f} s")


def _write_decisions() -> None:
    """What Silero makes of each line, so that using it on the packaged lines needs no network."""
    decisions = SileroDecisions(HERE)
    for recording in packaged():
        decisions.compute(recording)
    decisions.save()


def _write(key: tuple[str, str], line: Spoken) -> dict[str, Any]:
    import soundfile

    voice, text = key
    words = split_words(text)
    name = f"audio/{voice}_{re.sub('[^a-z0-9]+', '_', text.lower()).strip('_')[:60]}.flac"
    flac = BytesIO()
    soundfile.write(flac, line.pcm, SAMPLE_RATE_HZ, format="FLAC", subtype="PCM_16")
    (HERE / name).write_bytes(flac.getvalue())
    return {
        "file": name,
        "voice": voice,
        "text": text,
        "rate_hz": SAMPLE_RATE_HZ,
        "samples": len(line.pcm),
        "licence": LICENCE,
        "flac_sha256": sha256(flac.getvalue()).hexdigest(),
        "pcm_sha256": sha256(line.pcm.astype("<i2").tobytes()).hexdigest(),
        "words": [
            {"text": word, "start": start, "end": end} for word, (start, end) in zip(words, line.spans, strict=True)
        ],
    }


def _espeak(voice: str, text: str) -> tuple[Pcm, int, list[int]]:
    """Raw samples, their rate, and where each word of ``text`` begins among them."""
    library = ctypes.CDLL("libespeak-ng.so.1")
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, None, _EXIT_NEVER)
    blocks: list[Pcm] = []
    events: list[tuple[int, int]] = []

    def collect(samples: Any, count: int, event: Any) -> int:
        if count > 0:
            blocks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        index = 0
        while event[index].type:
            if event[index].type == _WORD_EVENT:
                events.append((event[index].text_position - 1, event[index].sample))
            index += 1
        return 0

    callback = _Callback(collect)  # held in a name: ctypes keeps no reference
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(voice.encode()) or library.espeak_SetParameter(_RATE, WORDS_A_MINUTE, 0):
        raise RuntimeError(f"espeak-ng has no voice {voice} on this machine")
    raw = text.encode()
    if library.espeak_Synth(raw, len(raw) + 1, 0, _BY_CHARACTER, 0, _CHARS_UTF8, None, None):
        raise RuntimeError(f"espeak-ng could not say {text!r}")
    library.espeak_Synchronize()
    pcm = np.concatenate(blocks)
    return pcm, rate, _starts(text, events, len(pcm))


def _starts(text: str, events: list[tuple[int, int]], samples: int) -> list[int]:
    """Where each word begins. A word that espeak-ng says in one breath with the word before it ("for the", "I am")
    has no event of its own: the two share their time by their letters."""
    words = split_words(text)
    found: list[int | None] = []
    end = 0
    for word in words:
        begin, end = end, end + len(word)
        found.append(next((sample for position, sample in events if begin <= position < end), None))
    starts: list[int] = []
    for index, start in enumerate(found):
        if start is None:
            until = next((later for later in found[index:] if later is not None), samples)
            joined = next(n for n in range(index, len(found) + 1) if n == len(found) or found[n] is not None)
            letters = [len(word.strip()) for word in words[index - 1 : joined]]
            start = starts[-1] + (until - starts[-1]) * letters[0] // sum(letters)
        starts.append(start)
    return starts


def _resampled(pcm: Pcm, rate_hz: int) -> Pcm:
    from scipy.signal import resample_poly

    ratio = np.gcd(rate_hz, SAMPLE_RATE_HZ)
    wide = resample_poly(pcm.astype(np.float64), SAMPLE_RATE_HZ // ratio, rate_hz // ratio)
    resampled: Pcm = np.clip(np.rint(wide), -32768, 32767).astype(np.int16)
    return resampled


def _silence(pcm: Pcm) -> npt.NDArray[np.bool_]:
    """Which samples lie in a 5 ms window under -55 dBFS."""
    windows = -(-len(pcm) // _WINDOW_SAMPLES)
    padded = np.zeros(windows * _WINDOW_SAMPLES, dtype=np.int64)
    padded[: len(pcm)] = pcm
    energy = (padded.reshape(windows, _WINDOW_SAMPLES) ** 2).sum(axis=1)
    return np.repeat(energy < _SILENCE_RMS**2 * _WINDOW_SAMPLES, _WINDOW_SAMPLES)[: len(pcm)]


def _kept(silent: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which samples stay: all sound, 20 ms of silence at the edges, 120 ms (half at each side) inside."""
    steps = np.diff(np.concatenate(([False], silent, [False])).astype(np.int8))
    kept = np.ones(len(silent), dtype=np.bool_)
    for begin, end in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True):
        before = 0 if begin == 0 else _EDGE_SAMPLES if end == len(silent) else _PAUSE_SAMPLES // 2
        after = 0 if end == len(silent) else _EDGE_SAMPLES if begin == 0 else _PAUSE_SAMPLES // 2
        kept[begin + before : max(begin + before, end - after)] = False
    return kept


def synthesiser() -> str:
    """The synthesiser on this machine, by name and version; its library must be there."""
    library = ctypes.CDLL("libespeak-ng.so.1")
    library.espeak_Info.restype = ctypes.c_char_p
    return f"espeak-ng {library.espeak_Info(None).decode().split()[0]}"


if __name__ == "__main__":
    main()
