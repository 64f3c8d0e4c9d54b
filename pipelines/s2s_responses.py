"""A response of a live provider as far as it has come, and what the provider is told of how much was heard.

Positions count from the item's own beginning, in whole milliseconds of what was received of it (tool contract, item 8):
an item heard in part is truncated, one of which nothing was heard is deleted, because a cut at zero is refused.
Left out: when that is told (``s2s``).
"""

from __future__ import annotations

from bargein.pipelines.agent.live import AudioDelta, CallReady, DeleteItem, ResponseEnded, TruncateItem
from bargein.pipelines.s2s_voice import LiveSpeech
from bargein.sim.effects.bus import Effect
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ

__all__ = ["LiveResponse", "position_ms"]


def position_ms(samples: int) -> int:
    """A played position as live protocols want it: whole milliseconds that have passed, never more (rounds down)."""
    return samples * 1000 // SAMPLE_RATE_HZ


class LiveResponse:
    """One response.

    Attributes:
        id: the provider's. turn: of the user's, which it answers; 0 where it was asked for.
        effect: the round that has taken it up; held: what came before one had.
        calls: ids it asked for, as far as delivered.
        ended: its status at the provider, empty while more may come.
        dead: nothing of it counts any more.

    Invariant: the provider is told once of each item.
    """

    __slots__ = ("_told", "calls", "dead", "effect", "ended", "held", "id", "speech", "turn")

    def __init__(self, response: str, turn: int) -> None:
        self.id = response
        self.turn = turn
        self.effect: Effect | None = None
        self.held: list[AudioDelta | CallReady | ResponseEnded] = []
        self.calls: list[str] = []
        self.speech = LiveSpeech()
        self.ended = ""
        self.dead = False
        self._told = 0

    @property
    def held_calls(self) -> list[str]:
        """Calls that no round has seen."""
        return [event.call for event in self.held if type(event) is CallReady]

    def unheard(self) -> list[TruncateItem | DeleteItem]:
        """What the provider has to be told, once; nothing while the cut is still to come."""
        utterance = self.speech.utterance
        if utterance is not None and not utterance.over:
            return []
        items = self.speech.heard_of_items()
        fresh, self._told = items[self._told :], len(items)
        told: list[TruncateItem | DeleteItem] = []
        for item, heard, received in fresh:
            if heard == received and self.ended == "completed":
                continue
            at_ms = position_ms(heard)
            told.append(TruncateItem(item, at_ms) if at_ms else DeleteItem(item))
        return told
