"""The agent's end of a live connection: one effect, on which everything is said and of which the stages are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bargein.pipelines.agent.live import Note, SpeechStopped
from bargein.pipelines.agent.live_line import Close, Connect, Heard, Placed, Quiet, Received, Sent, SoundOver, Standing
from bargein.pipelines.s2s_connection import LiveConnection, live_key
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind
from bargein.sim.kernel.clock import Clock


@dataclass
class Edge:
    kind: str
    onset_frame: int
    last_frame: int


class Provider:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def serve(self, effect: Effect) -> None:
        self.effect = effect
        effect.listen(self.said.append)


class Listener:
    """Keeps what it is told, and how the provider stood then."""

    def __init__(self, connection: LiveConnection) -> None:
        self.connection = connection
        self.told: list[Any] = []

    def on_sent(self, *message: Any) -> None:
        self._note("sent", *message)

    def on_received(self, *message: Any) -> None:
        self._note("received", *message)

    def on_event(self, event: Any) -> None:
        self._note("event", event)

    def on_quiet(self) -> None:
        self._note("quiet")

    def _note(self, *what: Any) -> None:
        self.told.append((*what, self.connection.idle, self.connection.hearing))


def _connected() -> tuple[LiveConnection, Provider, Listener, EffectBus]:
    bus, provider = EffectBus(Clock()), Provider()
    bus.register(live_key("default"), provider)
    connection = LiveConnection(bus, live_key("default"), Connect(True, False, True))
    listener = Listener(connection)
    connection.start(listener)
    return connection, provider, listener, bus


def test_it_is_one_custom_effect_that_says_what_is_asked_for() -> None:
    connection, provider, _, bus = _connected()
    assert bus.connections == [provider.effect]
    effect = provider.effect
    assert (effect.kind, effect.key, effect.scope) == (EffectKind.CUSTOM, "agent/live:default", "session")
    assert effect.payload == Connect(answers_turns=True, continues=False, truncates=True)
    assert (connection.answers_turns, connection.continues, connection.truncates) == (True, False, True)
    assert (connection.idle, connection.hearing) == (True, False)


def test_everything_that_the_provider_is_told_is_said_on_it_in_order() -> None:
    connection, provider, _, _ = _connected()
    connection.send(Note("One."))
    connection.hear(Edge("start", 3, 3))
    connection.place("Hi.", 400)
    connection.stop()
    connection.close()
    assert provider.said == [Note("One."), Heard("start", 3, 3), Placed("Hi.", 400), SoundOver(), Close()]


def test_the_stages_are_told_of_all_that_comes_down_and_find_the_provider_as_it_stands() -> None:
    _, provider, listener, _ = _connected()
    for item in (
        Sent("session.update", None, ("c1",), 5),
        Standing(False, True),
        Received("speech", "r1", "i1", (), None, 320),
        SpeechStopped(1, 7),
        Standing(True, False),
        Quiet(),
    ):
        provider.effect.deliver(item)
    assert listener.told == [
        ("sent", "session.update", None, ("c1",), 5, True, False),
        ("received", "speech", "r1", "i1", (), None, 320, False, True),
        ("event", SpeechStopped(1, 7), False, True),
        ("quiet", True, False),
    ]
