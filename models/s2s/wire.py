"""What a live wire does: it spells commands and events as one vendor's messages, and reads them back at the other end.

One object stands for both ends of one session and keeps apart what each end knows. A message is plain data as the
vendor's JSON has it, but for audio, which travels as samples instead of base64. Left out: the way (``link``) and the
meaning (``server``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bargein.pipelines.agent.live import Command, LiveEvent

__all__ = ["About", "LiveWire", "Message"]

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """A message in brief, for the timeline: the vendor's name for it, and what it concerns."""

    what: str
    response: str | None = None
    item: str | None = None
    calls: Sequence[str] = ()
    at_ms: int | None = None
    samples: int | None = None


class LiveWire(Protocol):
    """A vendor's live protocol, and its habits (``server.Habits``).

    Attributes:
        truncates: there is a message for how much was heard.
    """

    @property
    def continues(self) -> bool: ...
    @property
    def calls_last(self) -> bool: ...
    @property
    def withdraws(self) -> bool: ...
    @property
    def truncates(self) -> bool: ...

    def encode(self, command: Command) -> list[Message]:
        """A command as the client sends it; a command that the protocol does without is no message."""
        ...

    def accept(self, message: Message) -> list[Command]:
        """What a client's message means to the provider.

        Raises:
            ValueError: the provider closes the connection on it; the text says why.
        """
        ...

    def spell(self, event: LiveEvent) -> list[Message]:
        """An event as the provider sends it; one that the protocol does without is no message."""
        ...

    def decode(self, message: Message) -> list[LiveEvent]:
        """What a provider's message means to the client."""
        ...

    def about(self, message: Message) -> About:
        """A message of either end in brief."""
        ...

    def of_turns(self, message: Message) -> bool:
        """Whether a provider's message tells of the user's turns, and may come late."""
        ...
