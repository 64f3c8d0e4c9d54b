"""The LLM runner: one run for each user turn, one round for each request of it.

`LlmRunner._turn` is the flow of a turn, top to bottom: ask the model and speak while it streams; push its message
once, before any call runs; run the calls against the filler timer; append the results in issue order, then late
notes; ask again. After six rounds of tools, or when the turn has spent its budget of invalid calls, a fixed line is
spoken (tool contract, "Tools in the production pipeline").

A barge-in comes from outside through `LlmRunner.halt`. It cancels the turn's token, which every wait below races
against, and the run touches nothing afterwards.

Ties: a result that lands on the instant of the filler delay or of the barge-in wins. Left out: whether a call may
run (``tools.engine``), and what was heard of what is said (``conversation``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from bargein.pipelines.agent.assembly import AssembleError, InvalidCall, Response, ResponseAssembler
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.agent.request import Advert, Request, derive_request
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.playout_book import PlayoutBook, Source
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.settings import SessionSettings
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.execution import Execution
from bargein.pipelines.tools.fillers import FillerPolicy
from bargein.pipelines.tts_stage import SpeechItem
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.channel import Channel
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.race import Race
from bargein.sim.kernel.timeline import Timeline

__all__ = ["LlmRunner", "LlmStats", "model_key"]

Steps = Generator[Any, Any, Any]


def model_key(label: str) -> str:
    """The handler key of the agent's model (run contract, section 7)."""
    return f"agent/model:{label}"


@dataclass(slots=True)
class LlmStats:
    """Counters of the runner (tool contract, "Counters")."""

    fillers: int = 0
    filler_clips: int = 0
    interrupted_tool_calls: int = 0
    late_notes: int = 0
    fallbacks: int = 0


class _Stream:
    """One response on its way in."""

    __slots__ = ("assembler", "backlog", "begun", "effect", "finish", "ordinal", "reason", "round", "timed")

    def __init__(self, round: int, timed: int | None) -> None:
        self.round = round
        self.timed = timed
        self.assembler = ResponseAssembler()
        self.begun = False
        self.backlog: deque[SpeechItem] = deque()
        self.ordinal: int | None = None
        self.effect: Effect | None = None
        self.finish = "stop"
        self.reason = ""


class LlmRunner:
    """Runs the agent's turns.

    Args:
        adverts: the tools on offer.
        speech: the inbox of the speech stage.
        on_idle: called when a run has ended.

    Attributes:
        active: whether a run is working on an answer.
        stats: its counters.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        bus: EffectBus,
        settings: SessionSettings,
        conversation: Conversation,
        book: PlayoutBook,
        engine: ToolEngine,
        adverts: Sequence[Advert],
        fillers: FillerPolicy,
        speech: Channel[SpeechItem],
        recorder: TurnRecorder,
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._bus = bus
        self._settings = settings
        self._conversation = conversation
        self._book = book
        self._engine = engine
        self._adverts = adverts
        self._fillers = fillers
        self._speech = speech
        self._recorder = recorder
        self._on_idle = on_idle
        self._model = model_key(settings.agent.model)
        self._epoch = 0
        self._token = CancelToken("no turn")
        self._stream: _Stream | None = None
        self._execution: Execution | None = None
        self._speaking_filler = False
        self._round = 0
        self.active = False
        self.stats = LlmStats()

    def start(self, epoch: int) -> None:
        """Begin the run of the turn ``epoch``; its user message is in the context."""
        self._epoch = epoch
        self._token = CancelToken(f"turn {epoch}")
        self.active = True
        self._clock.task(f"the run of turn {epoch}", self._turn(epoch, self._token))

    # -- a turn, top to bottom ----------------------------------------------------------------------------

    def _turn(self, epoch: int, token: CancelToken) -> Steps:
        reason = "tool rounds"
        if token.cancelled:
            return  # interrupted on the instant on which it was started
        for number in range(self._settings.max_tool_rounds):
            self._round = number
            response = yield from self._ask(epoch, token, number)
            if token.cancelled:
                return
            if response is None:
                reason = "model failed"
                break
            if not response.calls:
                self._end("answered" if response.text else "empty", number + 1)
                return
            execution = yield from self._run_tools(epoch, token, number, response.calls)
            if token.cancelled:
                return
            self._append(execution, number)
            if execution.budget_exhausted:
                reason = "invalid calls"
                break
        yield from self._speak_fallback(epoch, token, reason)
        if not token.cancelled:
            self._end("failed" if reason == "model failed" else "fallback", self._round + 1)

    def _end(self, ending: str, rounds: int) -> None:
        self.active = False
        self._timeline.add("run.ended", self._epoch, ending, rounds)
        self._recorder.finish(self._epoch)
        self._on_idle()

    # -- asking the model ---------------------------------------------------------------------------------

    def _ask(self, epoch: int, token: CancelToken, number: int) -> Steps:
        """One request: speak its text while it streams, then push its message.

        Returns:
            The response, or ``None`` when the model failed or the turn was cancelled.
        """
        request = self._derive()
        stream = self._stream = _Stream(number, self._recorder.llm_request(epoch, self._clock.now))
        self._timeline.add("llm.request", epoch, number, len(self._bus.log), len(request.messages), len(request.tools))
        landed = Race(self._clock, f"the model's answer, round {number}")
        listening = token.listen(landed.win)
        stream.effect = self._bus.dispatch(
            EffectKind.COMPLETION,
            self._model,
            request,
            scope=f"t{epoch}",
            on_item=self._on_delta,
            on_landed=landed.win,
        )
        yield landed
        if token.cancelled:
            return None
        token.forget(listening)
        yield from self._drain(token, stream)
        if token.cancelled:
            return None
        self._stream = None
        outcome = stream.effect.outcome
        assert outcome is not None
        if outcome.status is not Status.OK:
            self._timeline.add("llm.failed", epoch, number, str(outcome.value))
            self._conversation.push_response(stream.ordinal, Response(stream.assembler.text, ()))
            yield from self._finish_speech(epoch, token, stream)
            return None
        response = stream.assembler.finish(epoch, self._conversation.context)
        self._conversation.push_response(stream.ordinal, response)
        yield from self._finish_speech(epoch, token, stream)
        return response

    def _derive(self) -> Request:
        return derive_request(self._settings.agent, self._conversation.context.messages, self._adverts)

    def _on_delta(self, delta: Any) -> None:
        """A piece of the response, on its instant: text is spoken, all of it is assembled."""
        stream = self._stream
        assert stream is not None
        if type(delta) is StreamEnd:
            self._done(stream, delta)
            return
        if not stream.begun:
            stream.begun = True
            self._recorder.llm_first_token(self._epoch, stream.timed, self._clock.now)
            self._timeline.add("llm.first_token", self._epoch, stream.round)
        try:
            stream.assembler.feed(delta)
        except AssembleError as refusal:
            self._timeline.add("llm.refused_delta", self._epoch, stream.round, f"{type(refusal).__name__}: {refusal}")
            return
        if type(delta) is TextDelta and delta.text:
            if stream.ordinal is None:
                stream.ordinal = self._begin_response(Source.ANSWER)
            self._say(stream, (self._epoch, stream.ordinal, Source.ANSWER, delta.text))

    def _done(self, stream: _Stream, end: StreamEnd) -> None:
        stream.finish = end.reason
        self._timeline.add(
            "llm.done", self._epoch, stream.round, end.reason, stream.assembler.call_count, len(stream.assembler.text)
        )
        self._recorder.llm_done(self._epoch, stream.timed, self._clock.now)
        timed = None if stream.timed is None else self._recorder.turns[self._epoch].rounds[stream.timed]
        if timed is not None:
            self._timeline.add(
                "llm.request_finished", self._epoch, timed.round, timed.time_to_first_token_us, timed.duration_us
            )

    # -- speaking -----------------------------------------------------------------------------------------

    def _begin_response(self, source: Source, clip: str | None = None) -> int:
        """Announce a response to the playout book, with the clip that can say it."""
        ordinal = self._book.next_ordinal()
        if clip is not None:
            self._book.cue_clip(ordinal, clip)
            self._timeline.add("clip.cued", self._epoch, ordinal, clip)
        self._timeline.add("response.started", self._epoch, ordinal, source)
        return ordinal

    def _say(self, stream: _Stream, item: SpeechItem) -> None:
        """Pass text on, or keep it in order while the speech stage has no room."""
        if stream.backlog or not self._speech.offer(item):
            stream.backlog.append(item)

    def _drain(self, token: CancelToken, stream: _Stream) -> Steps:
        while stream.backlog and not token.cancelled:
            item = stream.backlog.popleft()
            yield from self._put(token, item)

    def _put(self, token: CancelToken, item: SpeechItem) -> Steps:
        """Put one item into the speech stage, waiting while it is full."""
        while not self._speech.offer(item):
            room = self._speech.room()
            listening = token.listen(room.win)
            yield room
            if token.cancelled:
                return
            token.forget(listening)

    def _finish_speech(self, epoch: int, token: CancelToken, stream: _Stream) -> Steps:
        """The response's text is complete: let all of it be spoken."""
        if stream.ordinal is not None:
            yield from self._put(token, (epoch, stream.ordinal, Source.ANSWER, None))

    def _speak_filler(self, epoch: int, token: CancelToken, number: int, tool: str) -> Steps:
        """Say that it takes a moment; the filler is a round of its own for the playout."""
        choice = self._fillers.choose(tool)
        if choice is None:
            return
        self._speaking_filler = True
        self.stats.fillers += 1
        if choice.clip is not None:
            self.stats.filler_clips += 1
        ordinal = self._begin_response(Source.FILLER, choice.clip)
        self._timeline.add("filler.spoken", epoch, number, tool, choice.text, choice.clip)
        self._conversation.filler_spoken(ordinal, choice.text)
        yield from self._put(token, (epoch, ordinal, Source.FILLER, choice.text))
        if not token.cancelled:
            yield from self._put(token, (epoch, ordinal, Source.FILLER, None))
            self._speaking_filler = False

    def _speak_fallback(self, epoch: int, token: CancelToken, reason: str) -> Steps:
        text = self._settings.fallback_text
        self.stats.fallbacks += 1
        ordinal = self._begin_response(Source.FALLBACK)
        self._timeline.add("fallback.spoken", epoch, text, reason)
        self._conversation.push_fallback(ordinal, text)
        yield from self._put(token, (epoch, ordinal, Source.FALLBACK, text))
        if not token.cancelled:
            yield from self._put(token, (epoch, ordinal, Source.FALLBACK, None))

    # -- running tools ------------------------------------------------------------------------------------

    def _run_tools(self, epoch: int, token: CancelToken, number: int, calls: Sequence[ToolCall | InvalidCall]) -> Steps:
        """Run one batch to its end, with a filler if it takes long.

        Returns:
            The execution, complete and not delivered yet; of no use when the turn was cancelled.
        """
        self._timeline.add("tools.started", epoch, number, [call.id for call in calls])
        self._speaking_filler = False
        execution = self._execution = self._engine.execute(calls, epoch, token)
        filler = None if execution.complete else self._fillers.delay_us(execution.running_specs)
        timer = None
        due_at_us = -1
        if filler is not None:
            due_at_us = self._clock.now + filler[0]
        while not execution.complete:
            moment = Race(self._clock, f"the tools of round {number}")
            if due_at_us >= 0:
                timer = self._clock.call_at(due_at_us, Order.TIMER, moment.win, "filler")
            execution.on_complete(moment.win)
            listening = token.listen(moment.win)
            what = yield moment
            token.forget(listening)
            if token.cancelled:
                return execution
            if what == "filler" and not execution.complete:
                assert filler is not None
                due_at_us = -1
                self._timeline.add("filler.due", epoch, number, filler[1])
                yield from self._speak_filler(epoch, token, number, filler[1])
                if token.cancelled:
                    return execution
        if timer is not None:
            timer.cancel()
        return execution

    def _append(self, execution: Execution, number: int) -> None:
        """Put results and late notes into the context; from here on they are delivered."""
        self._execution = None
        notes = [note.tells for note in execution.late_notes]
        self._timeline.add(
            "tools.ended", self._epoch, number, len(execution.results), len(notes), execution.budget_exhausted
        )
        execution.append_to(self._conversation.context)
        self.stats.late_notes += len(notes)
        delivered = [message.result.call_id for message in execution.results if message.result is not None]
        self._timeline.add("tool.committed", self._epoch, number, delivered, notes)

    # -- interruption -------------------------------------------------------------------------------------

    def halt(self, cause: Cause) -> int | None:
        """End the run now: cancel what it waits for and close the calls it leaves open (tool contract, item 8).

        Returns:
            The ordinal of the response that was still streaming and had begun to be spoken, if there was one.
        """
        if not self.active:
            return None
        self.active = False
        execution, self._execution = self._execution, None
        landed = execution is not None and execution.complete and not self._speaking_filler
        self._token.cancel(cause)
        streaming = None
        stream, self._stream = self._stream, None
        if stream is not None:
            assert stream.effect is not None
            stream.effect.cancel(cause)
            stream.assembler.cancel()
            streaming = stream.ordinal
        if execution is not None:
            if landed:
                self._append(execution, self._round)  # the results came first on this instant
            else:
                execution.discard()
        closed = self._conversation.close_pending()
        self.stats.interrupted_tool_calls += len(closed)
        self._timeline.add("run.ended", self._epoch, "cancelled", self._round + 1)
        self._recorder.finish(self._epoch)
        return streaming
