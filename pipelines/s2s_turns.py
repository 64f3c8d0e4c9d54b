"""The user's turns in a speech-to-speech session: opened once each, whatever tells of them first.

The provider counts them. The end of a turn, the response to it and its transcript may come in any order and late; the
end or the response opens it, whichever is first, and words that come after that are filled in. A beginning of speech
that comes after its turn was opened is old news, and is no reply to what was asked since (tool contract, "Confirmation
gate").

Ties: what arrives on the instant on which a turn opens still counts for it. Left out: responses (``s2s``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bargein.pipelines.agent.live import SpeechStarted, SpeechStopped, Transcript
from bargein.pipelines.agent.live_ports import LiveProvider
from bargein.pipelines.ports import Edge
from bargein.pipelines.settings import TurnSettings
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

__all__ = ["LiveSession", "ProviderTurns", "UserTurns"]


class LiveSession(Protocol):
    """The session, as it is told of the user."""

    epoch: int

    @property
    def active(self) -> bool:
        """Whether the agent is heard or works on an answer, and was not interrupted."""
        ...

    def user_speaks(self) -> None:
        """The user began to speak."""

    def barge_in(self, onset_us: int, source: str) -> None:
        """They interrupt the agent."""

    def open_turn(self, number: int) -> None:
        """Their turn ``number`` has ended; `UserTurns.words_of` has its words, as far as they are known."""

    def fill_turn(self, number: int) -> None:
        """The words of a turn that was opened have come."""


class UserTurns:
    """Tells the session of each turn.

    Args:
        interrupt: called with the onset of speech that falls on an active agent.
        on_idle: called when a turn was handed over.

    Attributes:
        opened: number of the newest turn that was opened.

    Invariant: ``opened`` never decreases, and a turn is handed over once.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        session: LiveSession,
        interrupt: Callable[[int], object],
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._session = session
        self._interrupt = interrupt
        self._on_idle = on_idle
        self._handed_over = 0
        self._words: dict[int, str] = {}
        self.opened = 0

    @property
    def opening(self) -> bool:
        """Whether a turn is opened once this instant's messages are in."""
        return self.opened > self._handed_over

    def words_of(self, number: int) -> str | None:
        """What was said in a turn, or ``None`` while that is not known."""
        return self._words.get(number)

    def speech_started(self, event: SpeechStarted) -> None:
        """The provider hears the user."""
        if event.turn <= self.opened:
            return
        self._session.user_speaks()
        if self._session.active:
            self._interrupt(self._clock.now if event.at_us is None else event.at_us)

    def speech_stopped(self, event: SpeechStopped) -> None:
        """The provider has decided that a turn has ended."""
        if event.turn > self.opened and event.at_us is not None:
            self._timeline.add("turn.ended", self._session.epoch, event.at_us)
        self.open(event.turn)

    def open(self, number: int) -> None:
        """Open a turn, unless something else has told of it before."""
        if number > self.opened:
            self.opened = number
            self._clock.call_in(0, Order.WORK, self._hand_over, number)

    def _hand_over(self, number: int) -> None:
        self._handed_over = number
        self._session.open_turn(number)
        self._on_idle()

    def transcribed(self, event: Transcript) -> None:
        """The words of a turn are known."""
        self._words[event.turn] = event.text
        if event.turn > self._handed_over:
            self._timeline.add("stt.final", self._session.epoch, event.turn, event.text)
        else:
            self._session.fill_turn(event.turn)


class ProviderTurns:
    """The provider in the place of the turn detector (``turn_detector.TurnTaking``): it hears the caller and decides.

    Args:
        waits: what is waited for, in words.
    """

    def __init__(self, provider: LiveProvider, users: UserTurns, waits: Callable[[], list[str]]) -> None:
        self._provider = provider
        self._users = users
        self.waits = waits

    @property
    def idle(self) -> bool:
        """Whether nobody is heard and nothing is under way."""
        return self._provider.idle and not self._users.opening

    @property
    def hearing(self) -> bool:
        """Whether the caller is speaking, as far as the provider hears."""
        return self._provider.hearing

    def on_edge(self, edge: Edge) -> None:
        """The caller's sound begins or ends; it is the provider who makes something of it."""
        self._provider.hear(edge)

    def place(self, text: str, duration_us: int) -> None:
        """The caller speaks without audio: the provider hears exactly so."""
        self._provider.place(text, duration_us)

    def bot_changed(self) -> None:
        """The provider hears for itself whom it interrupts."""

    def adopt(self, settings: TurnSettings) -> None:
        """The provider's detector keeps the settings that it was connected with."""

    def stop(self) -> None:
        """The session is over: nothing more is heard."""
        self._provider.stop()
