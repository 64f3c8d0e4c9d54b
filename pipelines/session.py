"""One voice session: the stages, wired, and what happens between them.

Read `VoiceSession.take_turn`, `VoiceSession.barge_in` and `VoiceSession.hang_up` for the life of a call. A user turn
settles what came before, opens an epoch and starts a run. An interruption ends the run and the speech of its epoch
at once, cuts the playout on the next frame boundary, and then edits the context to what was heard; a turn that
comes in between waits for that. The session is over when the caller has hung up, when the agent has and its last
sample was heard, or when the caller has nothing more to say and nothing of the agent's is under way.

Left out: the world. It is handed in as ports, and drives the session through ``caller_speaks`` and the like.
"""

from __future__ import annotations

from bargein.pipelines.agent.memory import Remembers
from bargein.pipelines.audio_in import AudioIn
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.events import KINDS
from bargein.pipelines.layered_model import LayeredModelPort
from bargein.pipelines.llm_runner import LlmRunner
from bargein.pipelines.playout import Playout
from bargein.pipelines.playout_book import PlayoutBook, Utterance
from bargein.pipelines.ports import ClipStore, Heard
from bargein.pipelines.response_stream import ModelPort
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.session_memory import SessionMemory
from bargein.pipelines.settings import SessionSettings
from bargein.pipelines.speaker import Speaker
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.fillers import FillerPolicy
from bargein.pipelines.tools.offer import ToolOffer
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.tts_stage import TtsStage
from bargein.pipelines.turn_detector import TurnDetector, TurnTaking
from bargein.pipelines.world import Script, World
from bargein.sim.effects.bus import EffectBus
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.errors import Deadlock
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Script", "VoiceSession", "World"]

_OVER_IN_LAYERS = ("tool.finished", "tool.dropped", "tool.withdrawn", "tool.late_result")
"""A verdict may come when a body has long ended and nobody waits for its result any more."""


class VoiceSession:
    """A call from connect to hang-up.

    Args:
        clock: the virtual clock; the session schedules on it and stops it when it is over.
        bus: with a handler for the agent's model and one for each tool.
        registry: the tools, compiled; shared by sessions, unless a remote agent declares its own in this one.
        settings: everything about the agent.
        world: everything around it.
        max_duration_us: the session is ended after so long, whatever goes on.
        layered: the bus seen through its layers, where there are any; what the agent asks for goes through them.

    Invariant: ``epoch`` never decreases; a run belongs to the epoch in which it was started.
    """

    def __init__(
        self,
        clock: Clock,
        bus: EffectBus,
        registry: ToolRegistry,
        settings: SessionSettings,
        world: World,
        max_duration_us: int,
        layered: LayeredBus | None = None,
    ) -> None:
        self.clock = clock
        self.bus = bus
        self.layered = layered
        self.settings = settings
        self.timeline = Timeline(clock, KINDS)
        self.epoch = 0
        self.over = False
        self.book = PlayoutBook()
        self.recorder = TurnRecorder()
        self.conversation = Conversation(self.timeline, self.book)
        self.offer = ToolOffer(registry, bus, self.timeline)
        self.engine = ToolEngine(clock, bus, self.timeline, registry, settings.session_id, settings.engine, layered)
        self._script = world.script
        self._max_duration_us = max_duration_us
        self._has_user = True  # whether the epoch has its user message; epoch 0 never has one
        self._streaming: int | None = None
        self._halted = False  # an interruption was decided, and the context is not settled yet
        self._next_turn: tuple[str, list[int]] | None = None
        self._leaving = False  # the agent hangs up when it has nothing more to say
        self._ending = ""
        self._poke: Timer | None = None
        self.memory: SessionMemory | None = None
        self._build_stages(world)
        for ended in ("tool.finished", "tool.dropped") if layered is None else _OVER_IN_LAYERS:
            self.timeline.watch(ended, self._on_tool_over)

    def _build_stages(self, world: World) -> None:
        clock, timeline, settings = self.clock, self.timeline, self.settings
        self.audio_in = AudioIn(
            clock, world.detector, self._on_edge, world.room, world.echo, per_frame=settings.per_frame
        )
        echoes = world.echo is not None
        self.playout = Playout(
            clock,
            timeline,
            self._on_over,
            on_sound=self.audio_in.hear_bot if echoes else None,
            on_silence=self.audio_in.bot_cut if echoes else None,
            on_audible=self._on_audible,
            per_frame=settings.per_frame,
        )
        self.tts = TtsStage(
            clock, timeline, self.book, self.playout, world.synthesizer, world.clips, settings.tts, self.poke
        )
        self.turns = self._turn_taking(world)
        speaker = Speaker(timeline, self.book, self.tts.inbox)
        self.runner = LlmRunner(
            clock,
            timeline,
            settings,
            self.conversation,
            self.engine,
            self._model_port(speaker),
            speaker,
            FillerPolicy(settings.filler, world.clips),
            self.recorder,
            self.poke,
        )

    def _model_port(self, speaker: Speaker) -> ModelPort:
        settings = self.settings
        parts = self.timeline, self.bus, settings.agent, self.offer, self.recorder, speaker, settings.steering
        return ModelPort(*parts) if self.layered is None else LayeredModelPort(self.layered, *parts)

    def _turn_taking(self, world: World) -> TurnTaking:
        """Whoever decides on the user's turns."""
        return TurnDetector(self.clock, self.timeline, self.settings.turn, world.transcriber, self, self.poke)

    # -- the bot, as the turn detector sees it ------------------------------------------------------------

    @property
    def audible(self) -> bool:
        """Whether the bot is heard or queued to be heard, and was not interrupted."""
        return not self._halted and self.playout.audible

    @property
    def active(self) -> bool:
        """Whether it is audible or about to be: a run works on an answer, or one is being synthesised.

        Once it was interrupted there is nothing left to interrupt, although it may be heard up to the cut.
        """
        return not self._halted and (self.runner.active or self.playout.audible or not self.tts.idle)

    @property
    def first_sound_us(self) -> int | None:
        """When the bot was first heard."""
        return self.playout.first_sound_us

    # -- the life of a call -------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the session from connect to hang-up.

        Raises:
            SimulationStopped: it cannot make progress; the timeline up to there stands.
        """
        self.start()
        self.go_on()

    def remember(self, remembers: Remembers) -> None:
        """Have the call remember a conversation; before it starts."""
        effects = self.layered or self.bus
        self.memory = SessionMemory(self.clock, effects, self.timeline, self.conversation, remembers)

    def start(self) -> None:
        """Connect; nothing of what comes of it has happened yet."""
        self.clock.call_at(self._max_duration_us, Order.INTERRUPTION, self._time_out)
        self.audio_in.start()
        self._script.start(self)
        self.timeline.add("session.started", 0)
        if self.memory is not None:
            self.memory.begin(self._recalled)
        self.poke()

    def go_on(self) -> None:
        """Run on to hang-up, from wherever the session stands.

        Raises:
            SimulationStopped: it cannot make progress; the timeline up to there stands.
        """
        self.clock.run()
        if self.over:
            self.clock.finish()

    def take_turn(self, text: str, segments: list[int]) -> None:
        """The user has said ``text``: settle what came before and answer it."""
        if self._ending:
            return
        if self._next_turn is not None:
            text, segments = f"{self._next_turn[0]} {text}", self._next_turn[1] + segments
        self._next_turn = (text, segments)
        if self._halted or self._recalling:
            return  # the cut, or what was said in earlier calls, is on its way; the turn follows it
        if self.active:
            self._halt(Cause.REPLACED)
        else:
            self._begin_turn()

    @property
    def _recalling(self) -> bool:
        return self.memory is not None and self.memory.loading

    def _recalled(self) -> None:
        """What was said in earlier calls is there, or will not be; a turn that was waiting for it begins."""
        if self._next_turn is not None and not self._ending:
            self._begin_turn()
        self.poke()

    def _begin_turn(self) -> None:
        assert self._next_turn is not None
        (text, segments), self._next_turn = self._next_turn, None
        self.conversation.settle()
        if self._has_user:
            self._open_epoch()
        self._has_user = True
        self.conversation.epoch = self.epoch
        if self._tell_late_results():
            self.runner.guesses.drop("a late result")
        self.timeline.add("turn.user", self.epoch, text, segments)
        self.conversation.push_user(text)
        self.engine.confirmations.note_user_turn()
        self.runner.start(self.epoch, text)
        self.turns.bot_changed()

    def _open_epoch(self) -> None:
        self.epoch += 1
        self._has_user = False
        self._leaving = False

    def expect_turn(self, text: str) -> None:
        """The user seems to have finished: where speculation is on, ask the model ahead of the turn."""
        if self.settings.speculation and not (self.active or self._halted or self._recalling or self._ending):
            self.runner.guesses.make(self.epoch + 1 if self._has_user else self.epoch, text)

    def expect_more(self) -> None:
        """The user goes on: what was begun on that guess was in vain."""
        self.runner.guesses.drop("more speech")

    def _tell_late_results(self) -> int:
        """Results that missed their slot enter the context here at the latest; no call is open."""
        notes = self.engine.take_late_notes()
        self.runner.stats.late_notes += len(notes)
        self.conversation.push_notes(notes)
        return len(notes)

    # -- interruption -------------------------------------------------------------------------------------

    def barge_in(self, onset_us: int, source: str) -> None:
        """The caller interrupts, now: the bot's epoch is over, also where it had nothing under way."""
        if self._ending or self._halted:
            return
        self.timeline.add("turn.barge_in", self.epoch, onset_us, source)
        if self.active:
            self.engine.confirmations.clear("barge_in")
            self._halt(Cause.BARGE_IN)
        else:
            self._open_epoch()

    def _halt(self, cause: Cause) -> None:
        """End the run and the speech of this epoch, in the order a reader expects (tool contract, item 8)."""
        self._halted = True
        self.timeline.add("turn.interrupted", self.epoch, cause)
        self._streaming = self.runner.halt(cause)
        self._open_epoch()
        self.tts.interrupt(self.epoch)
        self.playout.cut(self._on_cut)

    def _on_cut(self) -> None:
        """Silence: edit the context to what was heard, then go on with what was waiting for it."""
        self.conversation.settle(self._streaming)
        self._streaming = None
        self._halted = False
        if self._ending:
            self._end_soon()
            return
        if self._next_turn is not None:
            self._begin_turn()
        self.poke()

    # -- other settings -----------------------------------------------------------------------------------

    def adopt(self, settings: SessionSettings, clips: ClipStore | None) -> None:
        """Go on under other settings from this instant; timers that are set keep their instants.

        For a session that was resumed. Its id, its tools and the way in which it moves audio stay what they are.
        """
        self.settings = settings
        if isinstance(self.turns, TurnDetector):
            self.turns.adopt(settings.turn)
        self.tts.adopt(settings.tts, clips)
        self.engine.adopt(settings.engine)
        self.runner.adopt(settings, clips)

    # -- what the caller does -----------------------------------------------------------------------------

    def caller_speaks(self, line: Heard, first_sample: int) -> None:
        """The caller begins a line, as audio."""
        self.audio_in.hear(line, first_sample)

    def caller_decides(self, text: str, duration_us: int) -> None:
        """The caller speaks without audio: the decisions are placed, not detected."""
        self.turns.place(text, duration_us)

    def hang_up(self, by: str = "hang_up") -> None:
        """The call ends now; what is audible is cut on the next frame boundary."""
        if self._ending:
            return
        if by == "hang_up":
            self.timeline.add("caller.hung_up", self.epoch)
        self._ending = by
        self.turns.stop()
        self.runner.guesses.drop("hang up")
        if self._halted:
            return
        if self.active:
            self._halt(Cause.HANG_UP)
        else:
            self._end_soon()

    def hang_up_when_silent(self) -> None:
        """The agent ends the call once its last sample was heard, what it still says in this epoch included.

        Whatever opens another epoch, an interruption or a new turn, withdraws it. An interruption on the instant of
        the last sample comes first.
        """
        self._leaving = True
        self.poke()

    def _time_out(self, _: object) -> None:
        self.audio_in.stop()  # listening to a noisy room is no progress
        if not self.clock.busy and not self.turns.hearing:
            raise Deadlock(
                f"nothing more happens after {self.timeline.rows[-1][0]} us, and the session is not over; "
                f"{self._who_waits()}"
            )
        self.hang_up("time_limit")

    def _who_waits(self) -> str:
        """Who is left waiting, and for what."""
        tasks = [self.clock.report()] if self.clock.tasks else []
        return "; ".join([*tasks, *self.turns.waits(), *self.tts.waits()]) or self.clock.report()

    # -- the end ------------------------------------------------------------------------------------------

    def poke(self) -> None:
        """Something came to rest: look, once this instant's work is done, whether everything has."""
        if self._poke is None and not self.runner.active and not self.playout.audible:  # what ends later pokes again
            self._poke = self.clock.call_in(0, Order.WORK, self._look)

    def _look(self, _: object) -> None:
        self._poke = None
        if self._ending or self._halted or self._recalling:
            return
        if self._leaving and not self.active:
            self.hang_up("agent_hung_up")
            return
        if not self.active:
            self.turns.bot_changed()
        if self.turns.idle and self._script.exhausted and not self.active and not self.engine.running_calls:
            self._ending = "quiet"
            self._end_soon()

    def _end_soon(self, _: object = None) -> None:
        """End once the tasks that were just told to stop have done so, on this instant."""
        if self.clock.tasks:
            self.clock.call_in(0, Order.WORK, self._end_soon)
        else:
            self._end()

    def _end(self) -> None:
        """Close the session: stop what runs, tell what is known, have it remembered, record the end."""
        self.over = True
        self.audio_in.stop()
        self.turns.stop()
        self.engine.close()
        self.conversation.settle()
        self._tell_late_results()
        if self.memory is None:
            self._ended()
        else:
            self.memory.settle(self._ended)

    def _ended(self) -> None:
        self.timeline.add("session.ended", self.epoch, self._ending)
        self.clock.stop()

    # -- between the stages -------------------------------------------------------------------------------

    def _on_edge(self, edge: object) -> None:
        self.turns.on_edge(edge)  # type: ignore[arg-type]

    def _on_tool_over(self, _: object) -> None:
        self.poke()

    def _on_audible(self) -> None:
        self.turns.bot_changed()

    def _on_over(self, utterance: Utterance) -> None:
        self.tts.on_over(utterance)
