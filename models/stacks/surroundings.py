"""What surrounds somebody else's session: the caller at a microphone, detector, recogniser, model, voice and tools.

The same models as around our own pipeline, made by whoever builds the session; a framework's file puts them behind
that framework's interfaces. What happens is on a timeline of the same kinds, as far as a framework lets it be seen.
Left out: clips, noise and echo, which are parts of our own pipeline's world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bargein.models.callers import ScriptedCaller
from bargein.models.ear import EnergyEar
from bargein.models.recordings import Recording
from bargein.models.stt import ScriptedStt
from bargein.models.tts import ScriptedTts
from bargein.models.vad_energy import VadEdge
from bargein.pipelines.events import KINDS
from bargein.pipelines.ports import Pcm
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.bus import EffectBus
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.frames import FRAME_SAMPLES, FRAME_US
from bargein.sim.kernel.timeline import Timeline

__all__ = ["AgentPart", "Listener", "Surroundings", "WorldPart"]


class Listener(Protocol):
    """The framework's detector; every call is on its instant."""

    def speech_started(self, onset_us: int) -> None:
        """The detector has decided that somebody speaks, since ``onset_us``."""

    def speech_stopped(self, onset_us: int, end_us: int) -> None:
        """The detector has decided that they have stopped, at ``end_us``."""


@dataclass(frozen=True, slots=True)
class AgentPart:
    """What the agent is told to be.

    Attributes:
        system: its instructions.
        model_key: where its completions go on the bus.
        tools: each with its key on the bus.
        min_speech_us: speech before it counts as an interruption.
        min_silence_us: silence before the user's turn has ended.
        max_tool_rounds: rounds of tools in one turn.
    """

    system: str
    model_key: str
    tools: tuple[tuple[ToolSpec, str], ...]
    min_speech_us: int
    min_silence_us: int
    max_tool_rounds: int


@dataclass(frozen=True, slots=True)
class WorldPart:
    """The models that stand in for everything outside; completions and tool calls go over the bus."""

    bus: EffectBus
    caller: ScriptedCaller
    detector: EnergyEar
    transcriber: ScriptedStt
    synthesizer: ScriptedTts
    longest_us: int


class Surroundings:
    """The world of one session of a framework; the caller's `CallerSession`.

    Args:
        clock: whose heap the framework's loop shares.
        world: the models.
        agent: what the framework's agent is made of.

    Attributes:
        epoch: user turns so far.
        listener: is told when speech starts and stops; the framework's newest detector sets it.
        on_final: is told each final transcript; the framework's newest recogniser sets it.
        ending: why the call is over, once it is.
        fault: what went wrong in a model, which the framework would take for a provider's failure.
    """

    def __init__(self, clock: Clock, world: WorldPart, agent: AgentPart) -> None:
        self.clock = clock
        self.world = world
        self.agent = agent
        self.bus = world.bus
        self.timeline = Timeline(clock, KINDS)
        self.epoch = 0
        self.listener: Listener | None = None
        self.on_final: Callable[[str], object] | None = None
        self.ending = ""
        self.fault: Exception | None = None
        self._lines: list[tuple[int, Pcm]] = []
        self._onset_us = 0
        self._segments = 0
        self._open: list[int] = []  # segments with a final that belong to no turn yet
        self._leaving = False  # the agent hangs up when it has nothing more to say
        self._turns: dict[str, None] = {}

    @property
    def over(self) -> bool:
        """Whether the call has ended; the caller says nothing more then."""
        return bool(self.ending)

    @over.setter
    def over(self, _: bool) -> None:
        raise AttributeError("a call is over when its ending says why")

    def start(self) -> None:
        """The call is connected."""
        self.world.caller.start(self)
        self.timeline.add("session.started", 0)

    def look(self, silent: bool) -> bool:
        """Whether the call is over: hung up, or nothing under way or to come, and the last of it was a while ago.

        Args:
            silent: whether the agent is heard no more.
        """
        now_us, last_us = self.clock.now, self.timeline.rows[-1][0]
        at_rest = silent and self.bus.running == 0
        if not self.ending:
            if self._leaving and at_rest:
                self.ending = "agent_hung_up"
            elif self.world.caller.exhausted and at_rest and now_us >= last_us + self.agent.min_silence_us + 1_000_000:
                self.ending = "quiet"
            elif now_us >= self.world.longest_us:
                self.ending = "time_limit"
        return bool(self.ending)

    # -- the caller (``models.callers.CallerSession``) ----------------------------------------------------

    def caller_speaks(self, line: Recording, first_sample: int) -> None:
        """The caller begins a line, as audio."""
        self._lines.append((first_sample, line.pcm()))
        for decided, edge in self.world.detector.edges_of(line, first_sample):
            self.clock.call_at((decided + 1) * FRAME_US, Order.FRAME, self._on_edge, edge)

    def caller_decides(self, text: str, duration_us: int) -> None:
        """The caller speaks without audio: the detector and the recogniser know at once."""
        self._started(self.clock.now)
        self.clock.call_in(duration_us, Order.DELIVERY, self._end_placed, text)

    def hang_up(self) -> None:
        """The call is over."""
        self.timeline.add("caller.hung_up", self.epoch)
        self.ending = self.ending or "hang_up"

    def hang_up_when_silent(self) -> None:
        """A tool of the agent's ends the call once the agent has nothing more to say; a new turn withdraws it."""
        self._leaving = True

    def poke(self) -> None:
        """The caller has fallen silent; `look` sees it."""

    # -- what is heard ------------------------------------------------------------------------------------

    def frame(self, number: int) -> bytes:
        """The microphone's frame ``number``: 20 ms of 16-bit mono at 16 kHz."""
        begin = number * FRAME_SAMPLES
        self._lines = [(first, pcm) for first, pcm in self._lines if first + len(pcm) > begin]
        if not self._lines:
            return _SILENCE
        mixed = np.zeros(FRAME_SAMPLES, dtype=np.int32)
        for first, pcm in self._lines:
            low, high = max(first, begin), min(first + len(pcm), begin + FRAME_SAMPLES)
            if low < high:
                mixed[low - begin : high - begin] += pcm[low - first : high - first]
        return np.clip(mixed, -32768, 32767).astype(np.int16).tobytes()

    def _on_edge(self, edge: VadEdge) -> None:
        if edge.kind == "start":
            self._started(edge.onset_frame * FRAME_US)
            return
        end_us = (edge.last_frame + 1) * FRAME_US
        self._segments += 1
        self.world.transcriber.transcribe(self._segments, self._onset_us, end_us, self._on_final)
        self._stopped(end_us)

    def _end_placed(self, text: str) -> None:
        self._segments += 1
        self._stopped(self.clock.now)
        self._on_final(self._segments, text, False)

    def _started(self, onset_us: int) -> None:
        self._onset_us = onset_us
        self.timeline.add("vad.started", self.epoch, onset_us)
        if self.listener is not None:
            self.listener.speech_started(onset_us)

    def _stopped(self, end_us: int) -> None:
        self.timeline.add("vad.stopped", self.epoch, end_us)
        if self.listener is not None:
            self.listener.speech_stopped(self._onset_us, end_us)

    def _on_final(self, segment: int, text: str, more: bool) -> None:
        self.timeline.add("stt.final", self.epoch, segment, text)
        if self.on_final is not None and text:
            self._open.append(segment)
            self.on_final(text)

    # -- what the framework does --------------------------------------------------------------------------

    def turn(self, name: str, text: str) -> None:
        """The framework has taken the user turn that it calls ``name``; it may say so more than once."""
        if name in self._turns:
            return
        self._turns[name] = None
        self.epoch += 1
        self._leaving = False
        segments, self._open = self._open, []
        self.timeline.add("turn.user", self.epoch, text, segments)

    def fail(self, fault: Exception) -> None:
        """A model cannot go on; the call is over."""
        self.fault = self.fault or fault
        self.ending = "fault"

    def end(self) -> None:
        """The framework's session has ended."""
        self.timeline.add("session.ended", self.epoch, self.ending)


_SILENCE = bytes(2 * FRAME_SAMPLES)
