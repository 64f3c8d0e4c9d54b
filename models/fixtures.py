"""The packaged spoken lines: looked up by voice and text, decoded only when their samples are asked for.

``models.voice.speak`` asks here first. The manifest beside the audio holds words, lengths and hashes; the script
``audio_fixtures/make_fixtures.py`` writes both. Left out: lines nobody recorded (the synthetic voice speaks those).
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from importlib.resources import files
from io import BytesIO

import numpy as np

from bargein.models.acoustics import Pcm
from bargein.models.recordings import Recording, Word
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["FixtureError", "find", "packaged"]

_PACKAGE = "bargein.audio_fixtures"


class FixtureError(Exception):
    """A packaged recording is not what the manifest says: the installation is broken."""


def find(voice: str, text: str) -> Recording | None:
    """The packaged recording of ``text`` by ``voice``, spelt as given; None where there is none.

    Spaces around the text do not matter for the search. No audio is decoded.
    """
    found = _by_line().get((voice, text.strip()))
    return found and found.spelling(text)


def packaged() -> tuple[Recording, ...]:
    """Every packaged recording, in the manifest's order. No audio is decoded."""
    return tuple(_by_line().values())


@lru_cache(maxsize=1)
def _by_line() -> dict[tuple[str, str], Recording]:
    manifest = json.loads((files(_PACKAGE) / "manifest.json").read_text(encoding="utf-8"))
    return {
        (line["voice"], line["text"]): Recording(
            text=line["text"],
            voice=line["voice"],
            words=tuple(Word(word["text"], word["start"], word["end"]) for word in line["words"]),
            length=line["samples"],
            content=line["pcm_sha256"],
            source=partial(_decode, line["file"], line["samples"]),
        )
        for line in manifest["lines"]
    }


@lru_cache(maxsize=256)
def _decode(file: str, samples: int) -> Pcm:
    import soundfile

    raw = (files(_PACKAGE) / file).read_bytes()
    decoded, rate = soundfile.read(BytesIO(raw), dtype="int16")
    if decoded.shape != (samples,) or rate != SAMPLE_RATE_HZ:
        raise FixtureError(
            f"{file}: shape {decoded.shape} at {rate} Hz found where the manifest says {samples} samples"
            f" of mono at {SAMPLE_RATE_HZ} Hz; install bargein again"
        )
    pcm: Pcm = np.ascontiguousarray(decoded)
    return pcm
