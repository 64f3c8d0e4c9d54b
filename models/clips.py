"""Clips: filler phrases whose audio was rendered before the session, by key.

The filler policy asks whether a clip is there, the speech stage plays it. A store is built once and does not change
(tool contract, "Clip playback"). Left out: rendering; the voice does that when the store is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bargein.models.tts import Piece, spoken
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["RenderedClips"]


class RenderedClips:
    """A read-only store of clips at the session's rate.

    Args:
        texts: what each key says.
        voice: who says it.
        missing: keys that the store announces but cannot give, as a cache that was not filled.
        rate_hz: the rate of the audio; another than the session's cannot be played.
    """

    __slots__ = ("_missing", "_rate_hz", "_texts", "_voice")

    def __init__(
        self,
        texts: Mapping[str, str],
        voice: str,
        missing: frozenset[str] = frozenset(),
        rate_hz: int = SAMPLE_RATE_HZ,
    ) -> None:
        self._texts = MappingProxyType(dict(texts))
        self._voice = voice
        self._missing = missing
        self._rate_hz = rate_hz

    def has(self, key: str) -> bool:
        """Whether the clip can be had."""
        return key in self._texts and key not in self._missing

    def clip(self, key: str) -> tuple[Piece, int] | None:
        """The clip and its sample rate, or ``None``."""
        return (spoken(self._voice, self._texts[key]), self._rate_hz) if self.has(key) else None
