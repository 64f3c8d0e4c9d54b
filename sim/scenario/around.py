"""From a scenario to the surroundings of somebody else's session: the same models as around our own.

``sim.lab.stacks`` calls it. What only our own pipeline knows (clips, fillers, speculation) is not made; what would
make it another call (speech to speech, a remote agent, a provider's bytes) is refused. Left out: the framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bargein.models.callers import ScriptedCaller
from bargein.models.ear import EnergyEar
from bargein.models.llm_script import by_turns
from bargein.models.stacks.surroundings import AgentPart, Surroundings, WorldPart
from bargein.models.stt import ScriptedStt
from bargein.models.tts import ScriptedTts
from bargein.pipelines.response_stream import model_key
from bargein.sim.effects.bus import EffectBus
from bargein.sim.kernel.clock import Clock, Limits
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.build import CLOSING, Plan
from bargein.sim.scenario.places import ScenarioError

if TYPE_CHECKING:
    from bargein.pipelines.session import VoiceSession

__all__ = ["surroundings"]


def surroundings(plan: Plan, seed: int | None = None, limits: Limits | None = None) -> Surroundings:
    """The scenario's models around a session that is not ours; rounds in order are matched to the turns they fit.

    Raises:
        ScenarioError: the scenario has parts that only our own pipeline runs.
    """
    scenario = plan.scenario
    script, agent = scenario.llm, scenario.agent
    apart = {
        "remote": scenario.remote,
        "s2s": scenario.s2s,
        "steering": scenario.steering or None,
        "models": scenario.models or None,
        "memory": scenario.memory,
        "layers": plan.layering,
        "llm.wire": script.wire,
        "llm.cassette": plan._cassette,
    }
    for name, given in apart.items():
        if given is not None:
            raise ScenarioError(f"{scenario.name} has {name}, which other stacks do not run")
    streams = Streams(scenario.seed if seed is None else seed)
    clock = Clock(limits=limits)
    bus = EffectBus(clock)
    choose = by_turns(script.rounds, scenario.user_lines, CLOSING) if script.rounds else plan.choose()
    bus.register(model_key(agent.model), plan._model(agent.model, clock, streams, choose))
    transcriber = ScriptedStt(clock, scenario.stt.latency, streams.stream("stt"))
    voice = scenario.tts
    world = WorldPart(
        bus=bus,
        caller=ScriptedCaller(scenario.caller, plan._recordings, transcriber),
        detector=EnergyEar(plan._vad),
        transcriber=transcriber,
        synthesizer=ScriptedTts(clock, voice.ttfb, streams.stream("tts"), voice.speed, voice.voice),
        longest_us=scenario.session.max_duration_us,
    )
    tools = tuple((spec, f"agent/tool:{spec.name}#0") for spec in scenario.specs)
    turn = agent.turn
    part = AgentPart(
        agent.system, model_key(agent.model), tools, turn.min_speech_us, turn.min_silence_us, agent.max_tool_rounds
    )
    around = Surroundings(clock, world, part)
    plan._bodies.serve(cast("VoiceSession", around), streams)  # asked for its clock, its bus and its hang-up
    return around
