"""The agent's end of a live connection: the provider as the stages see it, and one effect as the bus does.

The session opens it when the call begins and closes it when the call is over. Whatever the provider is told, the
caller's sound included, is said on it, and whatever is known of the provider has come down on it; so whoever serves
the effect, a model or a log, is the whole of the provider (run contract, section 10). It is a custom effect: it
outlives every response, and the rounds of the agent are completions of their own, which ``s2s`` serves from it.

Left out: what a message means for the session (``s2s``).
"""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.live import Command
from bargein.pipelines.agent.live_line import Close, Connect, Heard, Placed, Quiet, Received, Sent, SoundOver, Standing
from bargein.pipelines.agent.live_ports import LiveListener
from bargein.pipelines.ports import Edge
from bargein.pipelines.session_memory import SCOPE
from bargein.sim.effects.bus import Effect, EffectBus

__all__ = ["LiveConnection", "live_key"]


def live_key(label: str) -> str:
    """The handler key of the live provider that speaks for the model ``label``."""
    return f"agent/live:{label}"


class LiveConnection:
    """A provider at the other end of an effect (``live_ports.LiveProvider``).

    Args:
        key: who serves it.
        connect: what is asked for, and so what its habits are.

    Attributes:
        idle, hearing: as the provider said last.

    Invariant: between two calls into the session, ``idle`` and ``hearing`` are what the provider would say.
    """

    def __init__(self, bus: EffectBus, key: str, connect: Connect) -> None:
        self.answers_turns = connect.answers_turns
        self.continues = connect.continues
        self.truncates = connect.truncates
        self.idle = True
        self.hearing = False
        self._bus = bus
        self._key = key
        self._connect = connect
        self._listener: LiveListener
        self._effect: Effect

    def start(self, listener: LiveListener) -> None:
        """Open it; events come to ``listener`` from now on."""
        self._listener = listener
        connect, key = self._bus.connect, self._key
        self._effect = connect(key, self._connect, scope=SCOPE, on_item=self._on_item, on_landed=_nobody)

    def send(self, command: Command) -> None:
        """Send a command."""
        self._effect.say(command)

    def hear(self, edge: Edge) -> None:
        """The caller's sound begins or ends."""
        self._effect.say(Heard(edge.kind, edge.onset_frame, edge.last_frame))

    def place(self, text: str, duration_us: int) -> None:
        """The caller speaks without audio."""
        self._effect.say(Placed(text, duration_us))

    def stop(self) -> None:
        """Nothing more is heard of the caller."""
        self._effect.say(SoundOver())

    def close(self) -> None:
        """The call is over, and so is what goes over the connection."""
        self._effect.say(Close())

    def _on_item(self, item: Any) -> None:
        kind, listener = type(item), self._listener
        if kind is Quiet:
            listener.on_quiet()
        elif kind is Standing:
            self.idle, self.hearing = item.idle, item.hearing
        elif kind is Received:
            listener.on_received(item.what, item.response, item.item, item.calls, item.at_ms, item.samples)
        elif kind is Sent:
            listener.on_sent(item.what, item.item, item.calls, item.at_ms)
        else:
            listener.on_event(item)


def _nobody(_: Effect) -> None:
    """It lands when the session closes it."""
