"""What surrounds a session: the caller's plan, and everything through which the agent hears and speaks.

Whoever builds a session hands it a `World`; models make one of a scenario. Left out: what goes over the effect bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bargein.pipelines.ports import ClipStore, EchoPath, Room, SpeechDetector, Synthesizer, Transcriber

if TYPE_CHECKING:
    from bargein.pipelines.session import VoiceSession

__all__ = ["Script", "World"]


class Script(Protocol):
    """The caller's plan."""

    def start(self, session: VoiceSession) -> None:
        """Arrange everything the caller will do."""

    @property
    def exhausted(self) -> bool:
        """Whether the caller will do nothing more unless something else happens first."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """What surrounds the agent; everything a session needs that it does not build itself."""

    script: Script
    detector: SpeechDetector
    transcriber: Transcriber
    synthesizer: Synthesizer
    clips: ClipStore | None = None
    room: Room | None = None
    echo: EchoPath | None = None
