"""From a scenario's ``s2s`` to the live provider around its session.

``build`` asks it where a scenario speaks through one provider. Left out: the session (``pipelines.s2s_session``).
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from bargein.models.llm_script import Choose
from bargein.models.s2s.handler import LiveHandler
from bargein.models.s2s.provider import PROVIDERS, ScriptedLive
from bargein.models.s2s.server import ScriptedCalls
from bargein.pipelines.agent.live_line import Connect
from bargein.pipelines.ports import Transcriber
from bargein.pipelines.s2s_session import LiveWorld
from bargein.pipelines.session import World
from bargein.sim.effects.bus import Effect
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.model import Scenario

__all__ = ["live_handler", "live_world"]


def live_handler(scenario: Scenario, clock: Clock, streams: Streams, choose: Choose, words: Transcriber) -> LiveHandler:
    """Who serves the scenario's live connection in one session.

    Args:
        choose: how it answers.
        words: what the caller says, which it hears.
    """
    s2s = scenario.s2s
    assert s2s is not None
    script = ScriptedCalls(
        choose,
        scenario.llm.ttft,
        s2s.transcript,
        streams.stream("llm"),
        scenario.tts.voice,
        Fraction(str(s2s.audio_speed)),
    )
    stream = streams.stream("s2s")

    def make(effect: Effect, script: ScriptedCalls) -> ScriptedLive:
        return ScriptedLive(
            clock,
            effect,
            PROVIDERS[s2s.provider](),
            script,
            scenario.agent.turn,
            words,
            latency=s2s.latency,
            stream=stream,
            turn_delay_us=s2s.turn_delay_us,
        )

    return LiveHandler(make, script)


def live_world(scenario: Scenario, world: World) -> LiveWorld:
    """The world with the scenario's provider in it, as far as its client knows it beforehand."""
    s2s = scenario.s2s
    assert s2s is not None
    wire = PROVIDERS[s2s.provider]
    connect = Connect(s2s.turns == "provider", wire.continues, wire.truncates)
    return LiveWorld(**{each.name: getattr(world, each.name) for each in fields(World)}, connect=connect)
