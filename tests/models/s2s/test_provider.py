"""A scripted provider on its connection: it comes to be when that is opened, and says how it stands before all else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from bargein.models.latency import Constant
from bargein.models.llm_script import by_rounds
from bargein.models.s2s.handler import LiveHandler
from bargein.models.s2s.provider import PROVIDERS, ScriptedLive
from bargein.models.s2s.server import ScriptedCalls
from bargein.pipelines.agent.live import Configure, Note
from bargein.pipelines.agent.live_line import Close, Connect, Heard, Placed, Quiet, Received, Sent, SoundOver, Standing
from bargein.pipelines.settings import TurnSettings
from bargein.sim.effects.bus import Effect, EffectBus, Outcome, Status
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.script import Round

KEY = "agent/live:default"
AWAY_US = 50_000


class Words:
    """A recogniser that takes its time."""

    def __init__(self, clock: Clock, takes_us: int) -> None:
        self.clock = clock
        self.takes_us = takes_us

    def transcribe(self, segment: int, onset_us: int, end_us: int, on_final: Any) -> None:
        self.clock.call_in(self.takes_us, Order.DELIVERY, lambda _: on_final(segment, "", False))


class Rig:
    """A connection to a provider that answers "Yes." to everything."""

    def __init__(self, provider: str = "realtime", takes_us: int = 0) -> None:
        self.clock = clock = Clock()
        self.bus = EffectBus(clock)
        script = ScriptedCalls(
            by_rounds([Round(text="Yes.")]),
            Constant(100_000),
            Constant(0),
            Streams(0).stream("llm"),
            "agent",
            Fraction(4),
        )

        def make(effect: Effect, script: ScriptedCalls) -> ScriptedLive:
            return ScriptedLive(
                clock,
                effect,
                PROVIDERS[provider](),
                script,
                TurnSettings(min_speech_us=100_000, min_silence_us=200_000),
                Words(clock, takes_us),
                latency=Constant(AWAY_US),
                stream=Streams(0).stream("s2s"),
                turn_delay_us=0,
            )

        self.handler = LiveHandler(make, script)
        self.bus.register(KEY, self.handler)
        self.items: list[tuple[int, Any]] = []

    def connect(self) -> Effect:
        return self.bus.connect(
            KEY,
            Connect(True, False, True),
            scope="session",
            on_item=lambda item: self.items.append((self.clock.now, item)),
            on_landed=lambda _: None,
        )

    def standings(self) -> list[tuple[int, bool, bool]]:
        return [(at_us, each.idle, each.hearing) for at_us, each in self.items if type(each) is Standing]


def test_there_is_no_provider_before_the_connection_is_opened() -> None:
    rig = Rig()
    assert (rig.handler.provider, rig.handler.requests) == (None, [])
    rig.connect()
    assert rig.handler.server is rig.handler.provider.server  # type: ignore[union-attr]


def test_a_command_is_a_message_that_is_under_way_until_it_has_arrived() -> None:
    rig = Rig()
    effect = rig.connect()
    effect.say(Note("One."))
    rig.clock.run()
    assert rig.items == [
        (0, Sent("conversation.item.create", None, (), None)),
        (0, Standing(False, False)),
        (AWAY_US, Standing(True, False)),
        (AWAY_US, Quiet()),
    ]


def test_what_it_was_told_reads_as_it_stands_with_every_message() -> None:
    rig = Rig()
    effect = rig.connect()
    effect.say(Configure("", (), True))
    rig.clock.call_at(200_000, Order.WORK, effect.say, Placed("Hi.", 300_000))
    rig.clock.run()
    answered_us = 500_000 + AWAY_US + 100_000
    assert rig.standings() == [
        (0, False, False),
        (AWAY_US, True, False),
        (200_000, False, False),
        (answered_us + AWAY_US, True, False),
    ]
    provider = rig.handler.provider
    assert provider is not None
    before = [type(each).__name__ for _, each in rig.items].index("ResponseEnded")
    assert [type(each) for _, each in rig.items[before - 2 : before]] == [Standing, Received]
    assert provider.idle


@pytest.mark.parametrize("takes_us", [0, 900_000])
def test_it_stands_as_it_is_also_where_its_recogniser_is_late(takes_us: int) -> None:
    """The words of the turn come when all else is over; nobody is told to look, and whoever looks finds it idle."""
    rig = Rig(takes_us=takes_us)
    effect = rig.connect()
    for at_us, edge in ((300_000, Heard("start", 10, 10)), (600_000, Heard("stop", 29, 29))):
        rig.clock.call_at(at_us, Order.FRAME, effect.say, edge)
    rig.clock.run()
    over_us = 600_000 + 200_000 + AWAY_US + 100_000 + AWAY_US
    assert rig.standings() == [
        (300_000, False, True),
        (600_000, False, False),
        (max(over_us, 600_000 + takes_us), True, False),
    ]


def test_it_lands_when_it_is_closed_and_hears_nothing_after_the_sound_is_over() -> None:
    rig = Rig()
    effect = rig.connect()
    effect.say(Placed("Hi.", 300_000))
    effect.say(SoundOver())
    effect.say(Close())
    assert effect.outcome == Outcome(Status.OK)
    heard = len(rig.items)
    rig.clock.run()
    assert len(rig.items) == heard
