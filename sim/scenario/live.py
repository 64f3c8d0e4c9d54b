"""From a scenario's ``s2s`` to the live provider around its session.

``build`` asks it where a scenario speaks through one provider. Left out: the session (``pipelines.s2s_session``).
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from bargein.models.llm_script import Choose
from bargein.models.s2s.provider import PROVIDERS, ScriptedLive
from bargein.models.s2s.server import ScriptedCalls
from bargein.pipelines.ports import Transcriber
from bargein.pipelines.s2s_session import LiveWorld
from bargein.pipelines.session import World
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.model import Scenario

__all__ = ["live_provider", "live_world"]


def live_provider(
    scenario: Scenario, clock: Clock, streams: Streams, choose: Choose, words: Transcriber
) -> ScriptedLive:
    """The scenario's provider for one session.

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
    return ScriptedLive(
        clock,
        PROVIDERS[s2s.provider](),
        script,
        scenario.agent.turn,
        words,
        latency=s2s.latency,
        stream=streams.stream("s2s"),
        turn_delay_us=s2s.turn_delay_us,
        answers_turns=s2s.turns == "provider",
    )


def live_world(world: World, provider: ScriptedLive) -> LiveWorld:
    """The world with the provider in it."""
    return LiveWorld(**{each.name: getattr(world, each.name) for each in fields(World)}, provider=provider)
