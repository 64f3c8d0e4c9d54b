"""The caller's lines: what they say, when, and at which level.

Part of the scenario model; ``model`` gathers it. Left out: the audio; ``bargein.models`` finds or makes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from bargein.sim.scenario.moments import After

__all__ = ["Line"]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that the caller says, or their hanging up.

    Attributes:
        say: the text.
        wav: a recording of it, a path inside the scenario's folder.
        transcript: what the recogniser makes of it, where that is not the text.
        at_us: when it begins; or ``after`` an event.
        level: ``audio`` (real samples, detected), or ``decision`` (no audio: the decisions fall exactly on its
            beginning and its end, for questions that are not about audio).
        for_us: how long a line at decision level lasts.
        hang_up: the caller hangs up, after saying the line if there is one.
    """

    say: str = ""
    wav: str | None = None
    transcript: str | None = None
    at_us: int | None = None
    after: After | None = None
    level: str = "audio"
    for_us: int | None = None
    hang_up: bool = False

    @property
    def speaks(self) -> bool:
        """Whether there is anything to hear or to read."""
        return bool(self.say or self.wav)
