"""What else goes over a live connection: up, the caller's sound; down, what the wire does and how the provider stands.

A connection is one long effect. What a client says on it is a command (``live``) or what the provider hears; its items
are events (``live``), the messages behind them, and whether the provider is at rest. Left out: who tells what to whom
(``s2s_connection`` at one end, a model at the other).
"""

from __future__ import annotations

from dataclasses import dataclass

from bargein.pipelines.agent.live import Command, LiveEvent

__all__ = ["Close", "Connect", "Down", "Heard", "Placed", "Quiet", "Received", "Sent", "SoundOver", "Standing", "Up"]


@dataclass(frozen=True, slots=True)
class Connect:
    """What is asked for: a session with a provider of these habits (``live_ports.LiveProvider``)."""

    answers_turns: bool
    continues: bool
    truncates: bool


# -- up, besides commands ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard:
    """The caller's sound begins or ends (``ports.Edge``)."""

    kind: str
    onset_frame: int
    last_frame: int


@dataclass(frozen=True, slots=True)
class Placed:
    """The caller says ``text`` from now on for ``duration_us``, without audio."""

    text: str
    duration_us: int


@dataclass(frozen=True, slots=True)
class SoundOver:
    """Nothing more is heard of the caller."""


@dataclass(frozen=True, slots=True)
class Close:
    """The connection is closed, and lands."""


Up = Command | Heard | Placed | SoundOver | Close


# -- down, besides events ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A message went out, by the provider's own name for it."""

    what: str
    item: str | None
    calls: tuple[str, ...]
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Received:
    """A message came in; the events that it means follow."""

    what: str
    response: str | None
    item: str | None
    calls: tuple[str, ...]
    at_ms: int | None
    samples: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How the provider stands from now on: ``idle`` and ``hearing`` as in ``live_ports.LiveProvider``."""

    idle: bool
    hearing: bool


@dataclass(frozen=True, slots=True)
class Quiet:
    """It may have come to rest."""


Down = LiveEvent | Sent | Received | Standing | Quiet
