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
from functools import partial
from typing import Any

from bargein.pipelines.agent.assembly import AssembleError, InvalidCall, Response, ResponseAssembler
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.messages import Message, ToolCall, user
from bargein.pipelines.agent.request import Advert, derive_request
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.playout_book import PlayoutBook, Source
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.settings import SessionSettings
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.execution import Execution
from bargein.pipelines.tools.fillers import FillerPolicy
from bargein.pipelines.tools.speculation import Speculation
from bargein.pipelines.tts_stage import SpeechItem
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.channel import Channel
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.race import Race
from bargein.sim.kernel.timeline import Timeline

__all__ = ["LlmRunner", "LlmStats", "model_key"]

Steps = Generator[Any, Any, Any]


def _nobody(_: Effect) -> None:
    """Whoever waits for the response says so later."""


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
    """One response on its way in.

    Attributes:
        live: whether its text is spoken as it comes; a speculative one keeps it in ``held`` until its turn commits.
        backlog: text for which the speech stage has no room yet.
        ordinal: its number for the playout, once it has begun to be spoken.
    """

    __slots__ = ("assembler", "backlog", "begun", "effect", "epoch", "held", "live", "ordinal", "round", "timed")

    def __init__(self, epoch: int, round: int, timed: int | None, live: bool) -> None:
        self.epoch = epoch
        self.round = round
        self.timed = timed
        self.live = live
        self.assembler = ResponseAssembler()
        self.begun = False
        self.backlog: deque[SpeechItem] = deque()
        self.held: list[str] = []
        self.ordinal: int | None = None
        self.effect: Effect | None = None


class _Guess:
    """A run begun before its turn: what the user seems to have said, and what the model makes of it."""

    __slots__ = ("epoch", "response", "speculation", "stream", "text", "token")

    def __init__(self, epoch: int, text: str, token: CancelToken) -> None:
        self.epoch = epoch
        self.text = text
        self.token = token
        self.stream: _Stream | None = None
        self.response: Response | None = None
        self.speculation: Speculation | None = None


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
        self._guess: _Guess | None = None
        self.active = False
        self.stats = LlmStats()

    def start(self, epoch: int, text: str) -> None:
        """Begin the run of the turn ``epoch``; its user message, ``text``, is in the context.

        A speculative run of the same words is taken up; one of other words was in vain.
        """
        self._epoch = epoch
        guess, self._guess = self._guess, None
        if guess is not None and (guess.text != text or guess.epoch != epoch):
            self._drop_guess(guess, "other words")
            guess = None
        self._token = CancelToken(f"turn {epoch}") if guess is None else guess.token
        self.active = True
        if guess is not None:
            self._timeline.add("speculation.committed", epoch)
        self._clock.task(f"the run of turn {epoch}", self._turn(epoch, self._token, guess))

    # -- a turn, top to bottom ----------------------------------------------------------------------------

    def _turn(self, epoch: int, token: CancelToken, guess: _Guess | None) -> Steps:
        reason = "tool rounds"
        if token.cancelled:
            return  # interrupted on the instant on which it was started
        for number in range(self._settings.max_tool_rounds):
            self._round = number
            adopted, guess = guess, None
            response = yield from self._ask(epoch, token, number, adopted)
            if token.cancelled:
                return
            if response is None:
                reason = "model failed"
                break
            if not response.calls:
                self._end("answered" if response.text else "empty", number + 1)
                return
            speculation = None if adopted is None else adopted.speculation
            execution = yield from self._run_tools(epoch, token, number, response.calls, speculation)
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

    def _ask(self, epoch: int, token: CancelToken, number: int, guess: _Guess | None) -> Steps:
        """One request: speak its text while it streams, then push its message.

        Returns:
            The response, or ``None`` when the model failed or the turn was cancelled.
        """
        if guess is None:
            stream = self._stream = self._request(epoch, number, self._conversation.context.messages, live=True)
        else:
            stream = self._stream = self._adopt(guess)
        assert stream.effect is not None
        if stream.effect.running:
            landed = Race(self._clock, f"the model's answer, round {number}")
            listening = token.listen(landed.win)
            stream.effect.on_landed(landed.win)
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
            yield from self._finish_speech(epoch, token, stream)
            self._conversation.push_response(stream.ordinal, Response(stream.assembler.text, ()))
            return None
        response = guess.response if guess is not None else None
        if response is None:
            response = stream.assembler.finish(epoch, self._conversation.context)
        self._conversation.push_response(stream.ordinal, response)
        yield from self._finish_speech(epoch, token, stream)
        return response

    def _request(self, epoch: int, number: int, messages: Sequence[Message], live: bool) -> _Stream:
        """Send one request; its deltas come in from now on."""
        request = derive_request(self._settings.agent, messages, self._adverts)
        stream = _Stream(epoch, number, self._recorder.llm_request(epoch, self._clock.now), live)
        self._timeline.add("llm.request", epoch, number, len(self._bus.log), len(request.messages), len(request.tools))
        stream.effect = self._bus.dispatch(
            EffectKind.COMPLETION,
            self._model,
            request,
            scope=f"t{epoch}",
            on_item=partial(self._on_delta, stream),
            on_landed=_nobody,
        )
        return stream

    def _on_delta(self, stream: _Stream, delta: Any) -> None:
        """A piece of the response, on its instant: text is spoken, all of it is assembled."""
        if type(delta) is StreamEnd:
            self._done(stream, delta)
            return
        if not stream.begun:
            stream.begun = True
            self._recorder.llm_first_token(stream.epoch, stream.timed, self._clock.now)
            self._timeline.add("llm.first_token", stream.epoch, stream.round)
        try:
            stream.assembler.feed(delta)
        except AssembleError as refusal:
            reason = f"{type(refusal).__name__}: {refusal}"
            self._timeline.add("llm.refused_delta", stream.epoch, stream.round, reason)
            return
        if type(delta) is TextDelta and delta.text:
            if stream.live:
                self._say(stream, delta.text)
            else:
                stream.held.append(delta.text)

    def _done(self, stream: _Stream, end: StreamEnd) -> None:
        epoch, assembler = stream.epoch, stream.assembler
        self._timeline.add("llm.done", epoch, stream.round, end.reason, assembler.call_count, len(assembler.text))
        self._recorder.llm_done(epoch, stream.timed, self._clock.now)
        timed = None if stream.timed is None else self._recorder.turns[epoch].rounds[stream.timed]
        if timed is not None:
            self._timeline.add(
                "llm.request_finished", epoch, timed.round, timed.time_to_first_token_us, timed.duration_us
            )

    # -- before the turn ----------------------------------------------------------------------------------

    def speculate(self, epoch: int, text: str) -> None:
        """Ask the model ahead of the turn ``epoch``, on the guess that the user has finished with ``text``.

        Nothing is spoken and the context is not touched. Read-only calls of the response run, side effects are held
        until the turn commits (tool contract, item 7).
        """
        self.withdraw("other words")
        guess = self._guess = _Guess(epoch, text, CancelToken(f"speculation for turn {epoch}"))
        self._timeline.add("speculation.started", epoch, text)
        guess.stream = self._request(epoch, 0, [*self._conversation.context.messages, user(text)], live=False)
        assert guess.stream.effect is not None
        guess.stream.effect.on_landed(partial(self._guess_landed, guess))

    def _guess_landed(self, guess: _Guess, effect: Effect) -> None:
        """The speculative response is complete before its turn is: carry out what may be carried out."""
        stream = guess.stream
        if guess is not self._guess or stream is None or effect.outcome is None:
            return
        if effect.outcome.status is Status.OK:
            guess.response = stream.assembler.finish(guess.epoch, self._conversation.context)
            if guess.response.calls:
                guess.speculation = self._engine.speculate(guess.response.calls, guess.epoch, guess.token)

    def withdraw(self, reason: str) -> None:
        """The user goes on speaking, or the context has changed: the speculative run was in vain."""
        guess, self._guess = self._guess, None
        if guess is not None:
            self._drop_guess(guess, reason)

    def _drop_guess(self, guess: _Guess, reason: str) -> None:
        self._timeline.add("speculation.discarded", guess.epoch, reason)
        if guess.speculation is not None:
            guess.speculation.discard()
        if guess.stream is not None and guess.stream.effect is not None:
            guess.stream.effect.cancel(Cause.DISCARDED)
        guess.token.cancel(Cause.DISCARDED)

    def _adopt(self, guess: _Guess) -> _Stream:
        """The turn is what was guessed: speak what was held, and go on live."""
        stream = guess.stream
        assert stream is not None
        stream.live = True
        for text in stream.held:
            self._say(stream, text)
        stream.held.clear()
        return stream

    # -- speaking -----------------------------------------------------------------------------------------

    def _begin_response(self, source: Source, clip: str | None = None) -> int:
        """Announce a response to the playout book, with the clip that can say it."""
        ordinal = self._book.next_ordinal()
        if clip is not None:
            self._book.cue_clip(ordinal, clip)
            self._timeline.add("clip.cued", self._epoch, ordinal, clip)
        self._timeline.add("response.started", self._epoch, ordinal, source)
        return ordinal

    def _say(self, stream: _Stream, text: str) -> None:
        """Pass text on, or keep it in order while the speech stage has no room."""
        if stream.ordinal is None:
            stream.ordinal = self._begin_response(Source.ANSWER)
        item = (stream.epoch, stream.ordinal, Source.ANSWER, text)
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

    def _run_tools(
        self,
        epoch: int,
        token: CancelToken,
        number: int,
        calls: Sequence[ToolCall | InvalidCall],
        speculation: Speculation | None,
    ) -> Steps:
        """Run one batch to its end, with a filler if it takes long; what was speculated is committed.

        Returns:
            The execution, complete and not delivered yet; of no use when the turn was cancelled.
        """
        self._timeline.add("tools.started", epoch, number, [call.id for call in calls])
        self._speaking_filler = False
        if speculation is None:
            execution = self._engine.execute(calls, epoch, token)
        else:
            execution = self._engine.commit(speculation, token)
        self._execution = execution
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
