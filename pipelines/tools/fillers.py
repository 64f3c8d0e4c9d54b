"""The filler policy: when to say something while tools run, and what.

The runner asks for the delay when a tool round starts and for the phrase when that delay has passed (tool contract,
"Filler policy"). Phrases take turns, without randomness, and only a spoken filler moves the turn. Left out: the
timer, speaking, and the audio of a clip.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from bargein.pipelines.settings import FillerConfig, FillerSettings, PhraseSettings
from bargein.pipelines.tools.spec import ToolSpec

__all__ = ["DEFAULT", "PER_TOOL", "ClipCache", "FillerChoice", "FillerPolicy"]

DEFAULT = FillerConfig()
"""On, one fixed delay for every tool that allows fillers."""
PER_TOOL = FillerConfig(delay_us=None)
"""On, each tool's own ``filler_after``."""


class ClipCache(Protocol):
    """Knows which phrases have been rendered beforehand."""

    def has(self, key: str) -> bool:
        """Whether the clip of this key can be played."""
        ...


@dataclass(frozen=True, slots=True)
class FillerChoice:
    """What to say, and the clip that says it where one is available."""

    text: str
    clip: str | None = None


class FillerPolicy:
    """The fillers of one session.

    Args:
        settings: on or off, delay and phrases.
        clips: the clips that are available; none unless given.
    """

    __slots__ = ("_clips", "_spoken", "settings")

    def __init__(self, settings: FillerSettings | None = None, clips: ClipCache | None = None) -> None:
        self.settings = settings or FillerSettings()
        self._clips = clips
        self._spoken = 0

    @classmethod
    def from_config(cls, config: FillerConfig, clips: ClipCache | None = None) -> FillerPolicy:
        """A policy with the default phrase."""
        return cls(FillerSettings(config), clips)

    def copy(self) -> FillerPolicy:
        """The same policy for another session: its phrases start from the beginning, the clips are shared."""
        return type(self)(self.settings, self._clips)

    def adopt(self, settings: FillerSettings, clips: ClipCache | None) -> None:
        """Go on by other settings; whose turn among the phrases it is stays."""
        self.settings = settings
        self._clips = clips

    def delay_us(self, specs: Iterable[ToolSpec]) -> tuple[int, str] | None:
        """When a round needs a filler.

        Args:
            specs: the tools that run, in issue order.

        Returns:
            The delay from the start of the round in microseconds, with the tool it is for: the smallest one, the
            first call's of equal ones; ``None`` where there is no filler.
        """
        chosen: tuple[int, str] | None = None
        for spec in specs:
            delay_us = self._delay_of(spec)
            if delay_us is not None and (chosen is None or delay_us < chosen[0]):
                chosen = delay_us, spec.name
        return chosen

    def _delay_of(self, spec: ToolSpec) -> int | None:
        """Under a fixed delay the tool's own is only a switch."""
        config = self.settings.config
        if not config.enabled or spec.filler_after_us is None or not self._phrases(spec.name):
            return None
        return spec.filler_after_us if config.delay_us is None else config.delay_us

    def choose(self, tool: str) -> FillerChoice | None:
        """The phrase to speak now for ``tool``; call it only when it is spoken, since it moves the rotation.

        Generic and per-tool phrases share one counter.
        """
        phrases = self._phrases(tool)
        if not self.settings.config.enabled or not phrases:
            return None
        phrase = phrases[self._spoken % len(phrases)]
        self._spoken += 1
        clip = phrase.clip
        if clip is not None and (self._clips is None or not self._clips.has(clip)):
            clip = None
        return FillerChoice(phrase.text, clip)

    def _phrases(self, tool: str) -> tuple[PhraseSettings, ...]:
        return self.settings.tool_phrases.get(tool, self.settings.phrases)
