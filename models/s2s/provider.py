"""A live provider as the session sees it: a scripted server behind a vendor's wire, some milliseconds away.

Commands and events are spelled, travel, and are read at the other end; what the session gets is what the messages say
and nothing else. Left out: who decides what is said (``server``) and heard (``ears``).
"""

from __future__ import annotations

from collections.abc import Callable

from bargein.models.latency import Latency
from bargein.models.s2s.ears import Ears, Listening
from bargein.models.s2s.gemini_live import GeminiLiveWire
from bargein.models.s2s.link import Lane
from bargein.models.s2s.realtime import RealtimeWire
from bargein.models.s2s.server import LiveServer, ScriptedCalls
from bargein.models.s2s.wire import LiveWire, Message
from bargein.pipelines.agent.live import Command, LiveEvent
from bargein.pipelines.agent.live_ports import LiveListener
from bargein.pipelines.agent.request import Request
from bargein.pipelines.ports import Edge, Transcriber
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

__all__ = ["PROVIDERS", "ScriptedLive"]

PROVIDERS: dict[str, Callable[[], LiveWire]] = {"gemini_live": GeminiLiveWire, "realtime": RealtimeWire}
"""The wires there are, by the name of their provider."""


class ScriptedLive:
    """A provider (``live_ports.LiveProvider``).

    Args:
        wire: the vendor's.
        latency: of each message, either way.
        turn_delay_us: how much later than everything else its messages on the user's turns come.
        answers_turns: whether it answers and interrupts by itself.

    Attributes:
        server: its other end; wire: the vendor's.
    """

    def __init__(
        self,
        clock: Clock,
        wire: LiveWire,
        script: ScriptedCalls,
        listening: Listening,
        words: Transcriber,
        *,
        latency: Latency,
        stream: Stream,
        turn_delay_us: int,
        answers_turns: bool,
    ) -> None:
        self.answers_turns = answers_turns
        self.wire = wire
        self.continues = wire.continues
        self.truncates = wire.truncates
        self.server = LiveServer(clock, wire, script, self._tell, self._on_quiet)
        self._listener: LiveListener | None = None
        self._up = Lane(clock, latency, stream, self._arrive_up)
        self._down = Lane(clock, latency, stream, self._arrive_down)
        self._turns = Lane(clock, latency, stream, self._arrive_down, turn_delay_us)
        self._sound = Lane(clock, latency, stream, self._decide)
        self._ears = Ears(clock, listening, words, self._on_start, self._on_stop)

    @property
    def requests(self) -> list[Request]:
        """What the server held when it began each response."""
        return self.server.requests

    @property
    def idle(self) -> bool:
        """Whether it hears nobody, works on nothing, and no message is under way."""
        lanes = (self._up, self._down, self._turns, self._sound)
        return self._ears.idle and self.server.idle and not any(lane.under_way for lane in lanes)

    @property
    def hearing(self) -> bool:
        """Whether the caller is speaking."""
        return self._ears.hearing

    def start(self, listener: LiveListener) -> None:
        """Connect."""
        self._listener = listener

    def send(self, command: Command) -> None:
        """Send a command."""
        assert self._listener is not None
        for message in self.wire.encode(command):
            about = self.wire.about(message)
            self._listener.on_sent(about.what, about.item, about.calls, about.at_ms)
            self._up.send(message)

    def _arrive_up(self, message: Message) -> None:
        for command in self.wire.accept(message):
            self.server.take(command)
        self._on_quiet()

    def _tell(self, event: LiveEvent) -> None:
        for message in self.wire.spell(event):
            (self._turns if self.wire.of_turns(message) else self._down).send(message)

    def _arrive_down(self, message: Message) -> None:
        listener = self._listener
        assert listener is not None
        about = self.wire.about(message)
        listener.on_received(about.what, about.response, about.item, about.calls, about.at_ms, about.samples)
        for event in self.wire.decode(message):
            listener.on_event(event)
        self._on_quiet()

    def _on_quiet(self) -> None:
        if self._listener is not None:
            self._listener.on_quiet()

    # -- the caller's sound -------------------------------------------------------------------------------

    def hear(self, edge: Edge) -> None:
        """The caller's sound begins or ends."""
        self._ears.on_edge(edge)
        self._on_quiet()

    def place(self, text: str, duration_us: int) -> None:
        """The caller speaks without audio."""
        self._ears.place(text, duration_us)

    def stop(self) -> None:
        """The call is over."""
        self._ears.stop()

    def _on_start(self, onset_us: int) -> None:
        self._sound.send(("start", onset_us, ""))

    def _on_stop(self, end_us: int, text: str) -> None:
        self._sound.send(("stop", end_us, text))

    def _decide(self, heard: tuple[str, int, str]) -> None:
        """The sound on which the ears have decided is there."""
        kind, at_us, text = heard
        if kind == "start":
            self.server.speech_started(at_us)
        else:
            self.server.speech_stopped(at_us, text)
        self._on_quiet()
