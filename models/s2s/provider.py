"""A live provider at its end of a connection: a scripted server behind a vendor's wire, some milliseconds away.

Commands and events are spelled, travel, and are read at the other end; what the session gets is what the messages say
and nothing else. Left out: who decides what is said (``server``) and heard (``ears``), and when it comes to be
(``handler``).

Ties: how it stands is told before whatever else the session gets, so that no stage sees it otherwise than it is.
"""

from __future__ import annotations

from bargein.models.latency import Latency
from bargein.models.s2s.ears import Ears, Listening
from bargein.models.s2s.gemini_live import GeminiLiveWire
from bargein.models.s2s.link import Lane
from bargein.models.s2s.realtime import RealtimeWire
from bargein.models.s2s.server import LiveServer, ScriptedCalls
from bargein.models.s2s.wire import LiveWire, Message
from bargein.pipelines.agent.live import Command, LiveEvent
from bargein.pipelines.agent.live_line import Close, Heard, Placed, Quiet, Received, Sent, SoundOver, Standing, Up
from bargein.pipelines.ports import Transcriber
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

__all__ = ["PROVIDERS", "ScriptedLive"]

PROVIDERS: dict[str, type[GeminiLiveWire] | type[RealtimeWire]] = {
    "gemini_live": GeminiLiveWire,
    "realtime": RealtimeWire,
}
"""The wires there are, by the name of their provider."""


_QUIET = Quiet()


class ScriptedLive:
    """One session at a provider.

    Args:
        effect: the connection; it is told what comes down, and says what goes up.
        wire: the vendor's.
        words: knows what the caller says.
        latency: of each message, either way.
        turn_delay_us: how much later than everything else its messages on the user's turns come.

    Attributes:
        server: its other end; wire: the vendor's.
    """

    def __init__(
        self,
        clock: Clock,
        effect: Effect,
        wire: LiveWire,
        script: ScriptedCalls,
        listening: Listening,
        words: Transcriber,
        *,
        latency: Latency,
        stream: Stream,
        turn_delay_us: int,
    ) -> None:
        self._effect = effect
        self.wire = wire
        self.server = LiveServer(clock, wire, script, self._tell, self._on_quiet)
        self._up = Lane(clock, latency, stream, self._arrive_up)
        self._down = Lane(clock, latency, stream, self._arrive_down)
        self._turns = Lane(clock, latency, stream, self._arrive_down, turn_delay_us)
        self._sound = Lane(clock, latency, stream, self._decide)
        self._ears = Ears(clock, listening, words, self._on_start, self._on_stop, self._stand)
        self._stands = Standing(True, False)  # as the session knows

    @property
    def idle(self) -> bool:
        """Whether it hears nobody, works on nothing, and no message is under way."""
        if self._down.under_way or self._up.under_way or self._turns.under_way or self._sound.under_way:
            return False
        return self.server.idle and self._ears.idle

    # -- the connection -----------------------------------------------------------------------------------

    def take(self, said: Up) -> None:
        """Something is said on the connection: a command goes out, or the caller is heard."""
        match said:
            case Heard():
                self._ears.on_edge(said)
                self._on_quiet()
            case Placed(text, duration_us):
                self._ears.place(text, duration_us)
            case SoundOver():
                self.stop()
            case Close():
                self._effect.land(Outcome(Status.OK))
            case _:
                self._send(said)
        self._stand()

    def stop(self) -> None:
        """Nothing more is heard."""
        self._ears.stop()

    def _stand(self) -> None:
        """Tell how it stands, where that is news."""
        idle, hearing, known = self.idle, self._ears.hearing, self._stands
        if idle is not known.idle or hearing is not known.hearing:
            self._stands = Standing(idle, hearing)
            self._effect.deliver(self._stands)

    def _on_quiet(self) -> None:
        self._stand()
        self._effect.deliver(_QUIET)

    # -- the wire -----------------------------------------------------------------------------------------

    def _send(self, command: Command) -> None:
        for message in self.wire.encode(command):
            about = self.wire.about(message)
            self._stand()
            self._effect.deliver(Sent(about.what, about.item, tuple(about.calls), about.at_ms))
            self._up.send(message)

    def _arrive_up(self, message: Message) -> None:
        for command in self.wire.accept(message):
            self.server.take(command)
        self._on_quiet()

    def _tell(self, event: LiveEvent) -> None:
        for message in self.wire.spell(event):
            (self._turns if self.wire.of_turns(message) else self._down).send(message)

    def _arrive_down(self, message: Message) -> None:
        about, deliver = self.wire.about(message), self._effect.deliver
        self._stand()  # what the session says on what follows is told of as it says it
        calls = tuple(about.calls)
        deliver(Received(about.what, about.response, about.item, calls, about.at_ms, about.samples))
        for event in self.wire.decode(message):
            deliver(event)
        deliver(_QUIET)

    # -- the caller's sound -------------------------------------------------------------------------------

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
