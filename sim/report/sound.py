"""The two sides of a call as samples, from what was said and what was heard.

The lab hands in the caller's lines and the playout book's utterances; the WAV writer takes the arrays. Left out:
noise and echo, which only the microphone hears.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bargein.models.recordings import Recording
from bargein.pipelines.playout_book import Utterance

__all__ = ["caller_track", "heard_track"]


def caller_track(said: Iterable[tuple[int, int, Recording]], length: int) -> NDArray[np.int16]:
    """The caller's lines, each at its place: ``length`` samples, int16, 16 kHz.

    Args:
        said: (line, first sample, recording).
    """
    track = np.zeros(length, dtype=np.int32)
    for _, first, recording in said:
        pcm = recording.pcm()[: max(0, length - first)]
        track[first : first + len(pcm)] += pcm
    return np.clip(track, -32768, 32767).astype(np.int16)


def heard_track(utterances: Iterable[Utterance], length: int) -> NDArray[np.int16]:
    """What left the playout of each utterance, to the sample: ``length`` samples, int16, 16 kHz."""
    track = np.zeros(length, dtype=np.int16)
    for utterance in utterances:
        if not utterance.spans:
            continue
        pcm = np.concatenate([speech.pcm() for _, speech in utterance.pieces])
        for start, offset, count in utterance.spans:
            count = min(count, length - start)
            track[start : start + count] = pcm[offset : offset + count]
    return track
