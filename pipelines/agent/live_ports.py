"""What a speech-to-speech session needs of its provider, and what it is told.

The counterpart of recogniser, model and voice in ``ports``: one provider hears, thinks and speaks. This is how the
stages see it; in a session it is the agent's end of a connection (``s2s_connection``), whoever serves that. Left out:
the commands and events themselves (``agent.live``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bargein.pipelines.agent.live import Command, LiveEvent
from bargein.pipelines.ports import Edge

__all__ = ["LiveListener", "LiveProvider"]


class LiveListener(Protocol):
    """The client's end of the wire."""

    def on_sent(self, what: str, item: str | None, calls: Sequence[str], at_ms: int | None) -> None:
        """A message went out, by the provider's own name for it."""

    def on_received(
        self,
        what: str,
        response: str | None,
        item: str | None,
        calls: Sequence[str],
        at_ms: int | None,
        samples: int | None,
    ) -> None:
        """A message came in; what it means follows."""

    def on_event(self, event: LiveEvent) -> None:
        """What a message means."""

    def on_quiet(self) -> None:
        """The provider may have come to rest."""


class LiveProvider(Protocol):
    """A live session at a provider.

    Attributes:
        answers_turns: it begins a response by itself when the user has finished, and stops one when they speak.
        continues: it goes on by itself once every call is answered; asking it to is no message of its own.
        truncates: it can be told how much of an item was heard.
    """

    @property
    def answers_turns(self) -> bool: ...
    @property
    def continues(self) -> bool: ...
    @property
    def truncates(self) -> bool: ...
    @property
    def idle(self) -> bool:
        """Whether it hears nobody, works on nothing, and no message is under way."""
        ...

    @property
    def hearing(self) -> bool:
        """Whether the caller is speaking, as far as it hears."""
        ...

    def start(self, listener: LiveListener) -> None:
        """Connect; events come to ``listener`` from now on."""

    def send(self, command: Command) -> None:
        """Send a command; it takes as long as the wire does."""

    def hear(self, edge: Edge) -> None:
        """The caller's sound begins or ends; the provider's own detector decided on it."""

    def place(self, text: str, duration_us: int) -> None:
        """The caller says ``text`` from now on for ``duration_us``, without audio."""

    def stop(self) -> None:
        """The call is over: nothing more is heard."""
