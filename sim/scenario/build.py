"""From a scenario to a session that can run: models made of its script, the agent of its settings.

`Plan` does once what all sessions of a scenario share: schemas compiled, recordings read, clips and thresholds
made. `Plan.open` then builds one session for one seed. Left out: running it and judging the result (``sim.lab``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from bargein.models.callers import ScriptedCaller
from bargein.models.ear import EnergyEar, SileroEar
from bargein.models.latency import Constant
from bargein.models.llm_course import Course
from bargein.models.llm_script import Choose, ScriptedModel, by_behaviour, by_rounds, by_rules, by_turns
from bargein.models.python_tools import Tools
from bargein.models.recordings import AudioError, Recording, load
from bargein.models.remote_agent import RemoteAgent
from bargein.models.room import NoisyRoom, ScaledEcho
from bargein.models.s2s.handler import LiveHandler
from bargein.models.stt import LateWords, ScriptedStt
from bargein.models.tools import ScriptedTool
from bargein.models.tts import ScriptedTts
from bargein.models.vad_energy import VadSettings
from bargein.models.vad_silero import SileroDecisions, SileroError, SileroSettings
from bargein.models.voice import speak
from bargein.pipelines.response_stream import model_key
from bargein.pipelines.s2s_connection import live_key
from bargein.pipelines.s2s_session import S2sSession
from bargein.pipelines.session import VoiceSession, World
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.sim.effects.bus import EffectBus, Handler
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.clock import Clock, Limits
from bargein.sim.kernel.frames import FRAME_US
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.agent_settings import clips_of, settings_of
from bargein.sim.scenario.bodies import Bodies
from bargein.sim.scenario.contents import contents_of
from bargein.sim.scenario.layering import Layering, MakeLayers
from bargein.sim.scenario.linking import connect
from bargein.sim.scenario.live import live_handler, live_world
from bargein.sim.scenario.model import Line, Scenario
from bargein.sim.scenario.places import Fault
from bargein.sim.scenario.remembering import memory_handler, remembers
from bargein.sim.scenario.script import Llm
from bargein.sim.scenario.sources import cassette_of, ends_turns, profiled_choice, with_profiled_rounds

if TYPE_CHECKING:
    from bargein.models.cassettes import Cassette
    from bargein.models.llm_played import Answers, PlayedModel
    from bargein.models.vendors.wire import ScriptedWire

__all__ = ["Opened", "Plan"]

CLOSING = "All right."
"""What a model says whose turn ended otherwise than its script has it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session with the models around it, before or after its run.

    Attributes:
        model: the agent's own; others: those that steering routes requests to, by label.
    """

    session: VoiceSession
    caller: ScriptedCaller
    model: ScriptedModel | PlayedModel | LiveHandler
    tools: dict[str, Handler]
    tts: ScriptedTts
    streams: Streams
    remote: RemoteAgent | None = None
    others: Mapping[str, ScriptedModel | PlayedModel] = field(default_factory=dict)

    def adopt(self, plan: Plan) -> None:
        """Go on by another plan's settings, tools and scripts, from this instant; timers that are set stay.

        For a session that was resumed; whether the plan differs only in what can be changed was seen before.
        """
        scenario = plan.scenario
        self.session.adopt(plan.settings, plan._clips)
        self.caller.adopt(scenario.caller, plan._recordings)
        for name, body in self.tools.items():
            if isinstance(body, ScriptedTool):
                body.adopt(scenario.tools[name].run)
        models = {scenario.agent.model: self.model, **self.others}
        for label, model in models.items():
            if isinstance(model, ScriptedModel):
                script, asked = scenario.scripts[label], len(model.requests)
                model.adopt(
                    profiled_choice(script, plan.choose(label, asked), asked),
                    ttft=script.ttft,
                    every_us=script.delta.every_us,
                    words=script.delta.words,
                    fragments=script.fragments,
                )
            elif isinstance(model, LiveHandler):
                script, asked = scenario.llm, len(model.requests)
                model.adopt(profiled_choice(script, plan.choose(label, asked), asked), script.ttft)

    def replace_tools(self, plan: Plan, recorder: Recorder) -> None:
        """Have another plan's own tools serve from this instant on, and be declared as they are there.

        For a session that was resumed, with ``recorder``; what runs keeps its declaration and who serves it.
        """
        own = [spec.name for spec in plan.scenario.own_tools]
        for spec in plan.scenario.specs:
            if spec.name in own:
                self.session.offer.redeclare(spec)
        self.tools.update(plan._bodies.replace(self.session, recorder))


class Plan:
    """Everything about a scenario that does not depend on the seed.

    Args:
        scenario: valid, as the loader gives it.
        tools: tools that the program brings; they replace the scenario's of the same name and add to the others.
        layers: makes the layers around the handlers of each session.

    Attributes:
        layering: what is known of those layers; ``None`` where there are none.
        notes: what was converted on the way in, such as a recording's rate.

    Raises:
        ScenarioError: a recording cannot be used, or the scenario does not fit the tools.
    """

    def __init__(self, scenario: Scenario, tools: Tools | None = None, layers: MakeLayers | None = None) -> None:
        if tools is not None:
            scenario = scenario.with_tools(tools.specs)
        elif scenario.own_tools:
            names = ", ".join(spec.name for spec in scenario.own_tools)
            raise scenario.place.error([Fault(("tools",), f"it was loaded for the tools {names}; run it with them")])
        self.scenario = scenario = with_profiled_rounds(scenario)
        self.layering = None if layers is None else Layering(scenario, layers)
        self._cassette = cassette_of(scenario)
        self.notes: list[str] = []
        self.settings = settings_of(scenario)
        self.registry = ToolRegistry()
        keys = {spec.name: self.registry.register(spec).handler_key for spec in scenario.specs}
        self._bodies = Bodies(scenario, tools, keys)
        self._recordings = [self._recording(number, line) for number, line in enumerate(scenario.caller)]
        self._clips = clips_of(scenario)
        vad = scenario.vad
        hangover_frames = max(1, -(-vad.hangover_us // FRAME_US))
        self._vad = VadSettings(vad.on_db, vad.off_db, vad.onset_frames, hangover_frames)
        self._silero: tuple[SileroSettings, SileroDecisions] | None = None
        if vad.engine == "silero":
            settings = SileroSettings(onset_frames=vad.onset_frames, hangover_frames=hangover_frames)
            self._silero = settings, self._silero_decisions()

    def under(self, layers: MakeLayers | None) -> Plan:
        """The same plan, whose sessions have these layers."""
        plan = copy(self)
        plan.layering = None if layers is None else Layering(self.scenario, layers)
        return plan

    def _recording(self, number: int, line: Line) -> Recording | None:
        if not line.speaks:
            return None
        if line.wav is None:
            return speak("caller", line.say)
        assert self.scenario.folder is not None
        try:
            recording, notes = load(self.scenario.folder / line.wav, line.say)
        except AudioError as error:
            problem = str(error).removeprefix(f"{self.scenario.folder / line.wav}: ")
            raise self.scenario.place.error([Fault(("caller", number, "wav"), f"{line.wav}: {problem}")]) from None
        self.notes += [f"{line.wav}: {note}" for note in notes]
        return recording

    def _silero_decisions(self) -> SileroDecisions:
        """The neural detector's decisions on every line, kept beside the audio; made now where they are missing."""
        scenario = self.scenario
        for key in ("noise", "echo"):
            if getattr(scenario.acoustics, key) is not None:
                problem = "the Silero detector decides on clean lines only; accepted is vad.engine energy, or no " + key
                raise scenario.place.error([Fault(("acoustics", key), problem)])
        try:
            decisions = SileroDecisions.load()
            spoken = [each for each in self._recordings if each is not None]
            missing = [each for each in spoken if not decisions.knows(each)]
            if missing and scenario.folder is not None:
                beside = SileroDecisions.load(scenario.folder)
                for each in missing:
                    beside.compute(each)
                beside.save()
                decisions.absorb(beside)
            for each in missing:
                decisions.compute(each)
        except SileroError as error:
            raise scenario.place.error([Fault(("vad", "engine"), str(error))]) from None
        makers = dict.fromkeys(decisions.detector[each.content] for each in spoken)
        self.notes.append(f"vad: silero, decisions by {', '.join(makers) or 'nobody'}")
        return decisions

    @property
    def recordings(self) -> dict[str, str]:
        """The content key of each caller line that is audio, and of what else the call reads, by place."""
        spoken = {f"caller[{at}]": each.content for at, each in enumerate(self._recordings) if each is not None}
        lines = [each for each in self._recordings if each is not None]
        decisions = None if self._silero is None else self._silero[1]
        return {**spoken, **contents_of(self.scenario, self._cassette, decisions, lines)}

    def open(
        self,
        seed: int | None = None,
        tie_seed: int | None = None,
        limits: Limits | None = None,
        more_lines: Sequence[Line] = (),
        choose: Choose | None = None,
        recorder: Recorder | None = None,
        answers: Answers | None = None,
    ) -> Opened:
        """Build a session.

        Args:
            seed: of its random streams; the scenario's own where none is given.
            tie_seed: permutes what falls on the same instant.
            more_lines: what the caller says besides the script.
            choose: how every model answers, in place of its script; made anew for each session.
            recorder: records what goes over the bus; new for each session.
            answers: gives the model's answers as a provider's bytes, in place of its script or cassette.

        Raises:
            ScenarioError: a provider's answers are to stand for several models, or the layers are none.
        """
        scenario = self.scenario
        if answers is not None and scenario.models:
            raise scenario.place.error([Fault(("models",), "a provider answers for one model; accepted is llm alone")])
        streams = Streams(scenario.seed if seed is None else seed)
        clock = Clock(tie_seed, limits)
        bus = EffectBus(clock) if recorder is None else recorder.open(clock)
        agent = scenario.agent.model
        chosen = {
            label: profiled_choice(each, choose or self.choose(label)) for label, each in scenario.scripts.items()
        }
        late = scenario.stt.late_final
        live = scenario.s2s is not None  # then the provider hears words, not finals, and by what it serves
        stt = ScriptedStt(
            recorder.clock if live and recorder is not None else clock,
            Constant(0) if live else scenario.stt.latency,
            streams.stream("stt"),
            None if late is None else LateWords(late.after_us, late.words),
        )
        lines, recordings = scenario.caller, self._recordings
        if more_lines:
            lines = (*lines, *more_lines)
            recordings = [*recordings, *(speak("caller", line.say) if line.say else None for line in more_lines)]
        caller = ScriptedCaller(lines, recordings, stt)
        voice = scenario.tts
        tts = ScriptedTts(clock, voice.ttfb, streams.stream("tts"), voice.speed, voice.voice)
        noise, echo = scenario.acoustics.noise, scenario.acoustics.echo
        world = World(
            script=caller,
            detector=EnergyEar(self._vad) if self._silero is None else SileroEar(*self._silero),
            transcriber=stt,
            synthesizer=tts,
            clips=self._clips,
            room=None if noise is None else NoisyRoom(noise.kind, noise.snr_db, streams.stream("noise")),  # type: ignore[arg-type]
            echo=None if echo is None else ScaledEcho(echo.delay_us, echo.gain_db),
        )
        # What a session comes to declare is its own: a remote agent's tools, and others when it is resumed.
        shared = scenario.remote is None and recorder is None
        registry = self.registry if shared else self.registry.fork()
        course = Course()
        layered = None if self.layering is None else self.layering.around(bus)
        session, model = self._session(
            clock, bus, registry, world, streams, chosen[agent], recorder, answers, course, layered
        )
        served = clock if recorder is None else recorder.clock
        others = {label: self._model(label, served, streams, chosen[label], course) for label in scenario.models}
        for label, other in others.items():
            bus.register(model_key(label), other)
        bodies = self._bodies.serve(session, streams, recorder)
        if scenario.memory is not None:
            remembered = remembers(scenario.memory)
            bus.register(remembered.key, memory_handler(scenario, scenario.memory, served, streams.stream("memory")))
            session.remember(remembered)
        remote = None if scenario.remote is None else connect(scenario.remote, session, streams)
        return Opened(session, caller, model, bodies, tts, streams, remote, others)

    def _session(
        self,
        clock: Clock,
        bus: EffectBus,
        registry: ToolRegistry,
        world: World,
        streams: Streams,
        choose: Choose,
        recorder: Recorder | None,
        answers: Answers | None,
        course: Course,
        layered: LayeredBus | None,
    ) -> tuple[VoiceSession, ScriptedModel | PlayedModel | LiveHandler]:
        """The session, and what answers in it on the bus: a model, or a live provider's connection."""
        scenario, longest_us = self.scenario, self.scenario.session.max_duration_us
        if scenario.s2s is not None:
            served = clock if recorder is None else recorder.clock
            handler = live_handler(scenario, served, streams, choose, world.transcriber)
            bus.register(live_key(scenario.agent.model), handler)
            live = live_world(scenario, world)
            return S2sSession(clock, bus, registry, self.settings, live, longest_us, layered), handler
        served, own = clock if recorder is None else recorder.clock, scenario.agent.model
        model = self._model(own, served, streams, choose, course, answers)
        bus.register(model_key(own), model)
        return VoiceSession(clock, bus, registry, self.settings, world, longest_us, layered), model

    def choose(self, label: str = "", asked: int = 0) -> Choose:
        """How a model answers in one session, by its script.

        Args:
            label: which one; the agent's own unless given.
            asked: how many requests it has had before.
        """
        other = self.scenario.models.get(label)
        script, place = (self.scenario.llm, "llm") if other is None else (other, f"models.{label}")
        if script.behaviour is not None:
            return by_behaviour(script.behaviour)
        if script.rules or script.else_ is not None:
            return by_rules(script.rules, script.else_, place)
        if script.rounds and ends_turns(script):
            return by_turns(script.rounds, self.scenario.user_lines, CLOSING)
        return by_rounds(script.rounds, asked, place)

    def _model(
        self,
        label: str,
        clock: Clock,
        streams: Streams,
        choose: Choose,
        course: Course | None = None,
        answers: Answers | None = None,
    ) -> ScriptedModel | PlayedModel:
        script = self.scenario.scripts[label]
        if answers is not None or self._cassette is not None:
            from bargein.models.llm_played import FromCassette, PlayedModel

            return PlayedModel(clock, answers or FromCassette(cast("Cassette", self._cassette)))
        return ScriptedModel(
            clock,
            choose,
            ttft=script.ttft,
            every_us=script.delta.every_us,
            words=script.delta.words,
            fragments=script.fragments,
            stream=streams.stream("llm" if label == self.scenario.agent.model else f"llm/{label}"),
            wire=_wire(script, label),
            course=course,
        )


def _wire(script: Llm, model: str) -> ScriptedWire | None:
    if script.wire is None:
        return None
    from bargein.models.vendors.wire import ScriptedWire

    return ScriptedWire(script.wire, model, script.quirks, script.chunking)
