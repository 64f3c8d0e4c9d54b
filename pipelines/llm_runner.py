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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bargein.pipelines.agent.assembly import InvalidCall, Response
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.playout_book import Source
from bargein.pipelines.response_stream import ModelPort, ResponseStream
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.settings import SessionSettings
from bargein.pipelines.speaker import Speaker, Steps
from bargein.pipelines.speculation import Guess, Guesses
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.execution import Execution
from bargein.pipelines.tools.fillers import ClipCache, FillerChoice, FillerPolicy
from bargein.pipelines.tools.speculation import Speculation
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.race import Race
from bargein.sim.kernel.timeline import Timeline

__all__ = ["LlmRunner", "LlmStats"]


@dataclass(slots=True)
class LlmStats:
    """Counters of the runner (tool contract, "Counters")."""

    fillers: int = 0
    filler_clips: int = 0
    interrupted_tool_calls: int = 0
    late_notes: int = 0
    fallbacks: int = 0


class _Waiting:
    """What a run that waits for its tools may be woken for, in order: the filler's delay, or a tool's progress."""

    __slots__ = ("_clock", "_label", "_moment", "came")

    def __init__(self, clock: Clock, label: str) -> None:
        self._clock = clock
        self._label = label
        self._moment: Race | None = None
        self.came: deque[tuple[str, str | None]] = deque()  # (tool, what it says; None when the filler is due)

    def moment(self) -> Race:
        """The next time something comes; at once if something has."""
        self._moment = Race(self._clock, self._label)
        if self.came:
            self._moment.win()
        return self._moment

    def wake(self, _: object = None) -> None:
        """The tools are done, or the turn is over."""
        if self._moment is not None:
            self._moment.win()

    def filler_due(self, tool: str) -> None:
        """The filler's delay has passed."""
        self.came.append((tool, None))
        self.wake()

    def progress(self, tool: str, text: str) -> None:
        """A tool says how far it is."""
        self.came.append((tool, text))
        self.wake()


class LlmRunner:
    """Runs the agent's turns.

    Args:
        model: sends the requests.
        speaker: speaks what is not streamed.
        on_idle: called when a run has ended.

    Attributes:
        active: whether a run is working on an answer.
        guesses: runs begun ahead of their turn.
        stats: its counters.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        settings: SessionSettings,
        conversation: Conversation,
        engine: ToolEngine,
        model: ModelPort,
        speaker: Speaker,
        fillers: FillerPolicy,
        recorder: TurnRecorder,
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._settings = settings
        self._conversation = conversation
        self._engine = engine
        self._model = model
        self._speaker = speaker
        self._fillers = fillers
        self._recorder = recorder
        self._on_idle = on_idle
        self._epoch = 0
        self._token = CancelToken("no turn")
        self._stream: ResponseStream | None = None
        self._execution: Execution | None = None
        self._withheld: frozenset[str] = frozenset()
        self._denied: Mapping[str, str] = {}
        self._speaking_filler = False
        self._round = 0
        self.active = False
        self.guesses = Guesses(timeline, model, conversation, engine)
        self.stats = LlmStats()

    def start(self, epoch: int, text: str) -> None:
        """Begin the run of the turn ``epoch``; its user message, ``text``, is in the context."""
        self._epoch = epoch
        guess = self.guesses.take(epoch, text)
        self._token = CancelToken(f"turn {epoch}") if guess is None else guess.token
        self.active = True
        self._clock.task(f"the run of turn {epoch}", self._turn(epoch, self._token, guess))

    def adopt(self, settings: SessionSettings, clips: ClipCache | None) -> None:
        """Go on under other settings; a filler that is timed already keeps its instant."""
        self._settings = settings
        self._model.agent = settings.agent
        self._model.steering = settings.steering
        self._fillers.adopt(settings.filler, clips)

    # -- a turn, top to bottom ----------------------------------------------------------------------------

    def _turn(self, epoch: int, token: CancelToken, guess: Guess | None) -> Steps:
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

    def _ask(self, epoch: int, token: CancelToken, number: int, guess: Guess | None) -> Steps:
        """One request: speak its text while it streams, then push its message.

        Returns:
            The response, or ``None`` when the model failed or the turn was cancelled.
        """
        if guess is None:
            stream = self._model.ask(epoch, number, self._conversation.context.messages, live=True)
        else:
            stream = guess.stream
            stream.go_live()
        self._stream = stream
        yield from stream.landed(token)
        if token.cancelled:
            return None
        self._stream = None
        failure = stream.failure
        if failure is not None:
            refusal = stream.refusal
            if refusal is not None:
                self._timeline.add("llm.request_refused", epoch, number, refusal.provider, refusal.reason)
            self._timeline.add("llm.failed", epoch, number, failure)
            yield from stream.end_speech(token)
            self._conversation.push_response(stream.ordinal, Response(stream.text, ()))
            return None
        response = guess.response if guess is not None else None
        if response is None:
            response = stream.response(self._conversation.context)
        self._withheld, self._denied = stream.withheld(response.calls), stream.denied
        self._conversation.push_response(stream.ordinal, response)
        yield from stream.end_speech(token)
        return response

    # -- speaking of its own ------------------------------------------------------------------------------

    def _speak_filler(
        self, epoch: int, token: CancelToken, number: int, choice: FillerChoice | None, tool: str
    ) -> Steps:
        """Say that it takes a moment, or how far it is; this is a round of its own for the playout."""
        if choice is None:
            return
        self._speaking_filler = True
        self.stats.fillers += 1
        if choice.clip is not None:
            self.stats.filler_clips += 1
        ordinal = self._speaker.begin(epoch, Source.FILLER, choice.clip)
        self._timeline.add("filler.spoken", epoch, number, tool, choice.text, choice.clip)
        self._conversation.filler_spoken(ordinal, choice.text)
        yield from self._speaker.say_whole(token, epoch, ordinal, Source.FILLER, choice.text)
        if not token.cancelled:
            self._speaking_filler = False

    def _speak_fallback(self, epoch: int, token: CancelToken, reason: str) -> Steps:
        """The fixed line that ends a turn gone wrong (tool contract, item 4)."""
        text = self._settings.fallback_text
        self.stats.fallbacks += 1
        ordinal = self._speaker.begin(epoch, Source.FALLBACK)
        self._timeline.add("fallback.spoken", epoch, text, reason)
        self._conversation.push_fallback(ordinal, text)
        yield from self._speaker.say_whole(token, epoch, ordinal, Source.FALLBACK, text)

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

        Calls to tools that were not on offer, or are denied, are answered so and spend no budget.

        Returns:
            The execution, complete and not delivered yet; of no use when the turn was cancelled.
        """
        self._timeline.add("tools.started", epoch, number, [call.id for call in calls])
        self._speaking_filler = False
        if speculation is None:
            execution = self._engine.execute(calls, epoch, token, withheld=self._withheld, denied=self._denied)
        else:
            execution = self._engine.commit(speculation, token)
        self._execution = execution
        waited_for = _Waiting(self._clock, f"the tools of round {number}")
        filler = None if execution.complete else self._fillers.delay_us(execution.running_specs)
        timer = None
        if filler is not None:
            due_at_us = self._clock.now + filler[0]
            timer = self._clock.call_at(due_at_us, Order.TIMER, waited_for.filler_due, filler[1])
        execution.on_complete(waited_for.wake)
        if self._settings.filler.speak_progress:
            execution.on_progress(waited_for.progress)
        while not execution.complete:
            listening = token.listen(waited_for.wake)
            yield waited_for.moment()
            if token.cancelled:
                return execution
            token.forget(listening)
            while waited_for.came and not execution.complete and not token.cancelled:
                tool, text = waited_for.came.popleft()
                if text is None:
                    self._timeline.add("filler.due", epoch, number, tool)
                    yield from self._speak_filler(epoch, token, number, self._fillers.choose(tool), tool)
                else:
                    yield from self._speak_filler(epoch, token, number, FillerChoice(text), tool)
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
            stream.cancel(cause)
            streaming = stream.ordinal
        if execution is not None:
            if landed:
                self._append(execution, self._round)  # the results came first on this instant
            else:
                execution.discard()
        closed = self._conversation.close_pending({} if execution is None else execution.never_ran)
        self.stats.interrupted_tool_calls += len(closed)
        self._timeline.add("run.ended", self._epoch, "cancelled", self._round + 1)
        self._recorder.finish(self._epoch)
        return streaming
