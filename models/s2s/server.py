"""A live provider, scripted: it keeps a conversation of items, answers turns and speaks, whatever its wire looks like.

The rounds of the script decide what it says, on the conversation that it really holds: what it was told of what was
heard, and nothing more. It refuses what real ones refuse: a second response while one is active, a position beyond what
it sent or at zero, an answer to a call that it does not wait for. Left out: spelling (each wire's), the way (``link``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from json import loads
from typing import Protocol

from bargein.models.latency import Latency
from bargein.models.llm_reading import Reading
from bargein.models.llm_script import Choose
from bargein.models.s2s.generation import Step, steps_of
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallsCancelled,
    CancelResponse,
    Command,
    Configure,
    CreateResponse,
    DeleteItem,
    LiveEvent,
    Note,
    Refused,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
    TruncateItem,
)
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Advert, Request
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ
from bargein.sim.kernel.streams import Stream

__all__ = ["Habits", "LiveServer", "ScriptedCalls"]


class Habits(Protocol):
    """What is a vendor's own way.

    Attributes:
        continues: it goes on once every call is answered, without being asked.
        calls_last: a call ends what is said.
        withdraws: an interruption withdraws the calls that wait for an answer.
    """

    @property
    def continues(self) -> bool: ...
    @property
    def calls_last(self) -> bool: ...
    @property
    def withdraws(self) -> bool: ...


@dataclass(slots=True)
class ScriptedCalls:
    """How the script answers.

    Attributes:
        ttft: from a request to the first of a response.
        transcript: from the end of a turn to its transcript.
    """

    choose: Choose
    ttft: Latency
    transcript: Latency
    stream: Stream
    voice: str
    speed: Fraction


@dataclass(slots=True)
class _Spoken:
    """An audio item of the provider's: its words with their ends, as far as it has sent them."""

    samples: int = 0
    words: list[tuple[str, int]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(word for word, _ in self.words)


class LiveServer:
    """One session at a provider.

    Args:
        send: takes each event that goes to the client.
        on_quiet: called when a response has ended.

    Attributes:
        requests: what it held when it began each response, in order.
        refusals: codes of what it refused.

    Invariant: at most one response is active.
    """

    def __init__(
        self,
        clock: Clock,
        habits: Habits,
        script: ScriptedCalls,
        send: Callable[[LiveEvent], object],
        on_quiet: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._habits = habits
        self._script = script
        self._send = send
        self._on_quiet = on_quiet
        self._items: dict[str, Message | _Spoken] = {}  # the conversation, in order
        self._system = ""
        self._tools: tuple[Advert, ...] = ()
        self._answers_turns = True
        self._waiting: dict[str, None] = {}  # calls without an answer
        self._withdrawn: set[str] = set()
        self._active = ""
        self._steps: list[Step] = []
        self._timer: Timer | None = None
        self._numbers: dict[str, int] = {}
        self._turns = self._round = self._calls = self._transcripts = 0
        self._said: list[str] = []
        self.requests: list[Request] = []
        self.refusals: list[str] = []

    @property
    def idle(self) -> bool:
        """Whether it generates nothing and owes no transcript."""
        return not self._active and not self._transcripts

    # -- the user -----------------------------------------------------------------------------------------

    def speech_started(self, onset_us: int) -> None:
        """The user speaks: where turns are the provider's, whatever it says stops."""
        if self._answers_turns and self._habits.withdraws and self._waiting:
            self._send(CallsCancelled(tuple(self._waiting)))
            self._withdrawn.update(self._waiting)
            self._waiting.clear()
        self._send(SpeechStarted(self._turns + 1, onset_us, interrupts=self._answers_turns and self._turns > 0))
        if self._answers_turns:
            self._cut_off("turn_detected")

    def speech_stopped(self, end_us: int, text: str) -> None:
        """The user's turn has ended."""
        self._turns += 1
        self._items[self._name("user")] = user(text)
        self._round = 0
        delay_us = self._script.transcript.draw(self._script.stream)
        self._send(SpeechStopped(self._turns, end_us))
        if delay_us is not None:
            self._transcripts += 1
            self._clock.call_in(delay_us, Order.DELIVERY, self._transcribed, Transcript(self._turns, text))
        if self._answers_turns:
            self._cut_off("turn_detected")
            self._begin("")

    def _transcribed(self, transcript: Transcript) -> None:
        self._transcripts -= 1
        self._send(transcript)
        self._on_quiet()

    # -- the client ---------------------------------------------------------------------------------------

    def take(self, command: Command) -> None:
        """Do as the client says, or refuse it."""
        match command:
            case Configure():
                self._system, self._tools = command.system, command.tools
                self._answers_turns = command.answers_turns
            case Results():
                self._take_results(command)
            case Note():
                self._items[self._name("note")] = system(command.text)
            case CreateResponse():
                if self._active:
                    text = f"response {self._active} is in progress"
                    self._refuse("conversation_already_has_active_response", text)
                else:
                    self._begin(command.tag)
            case CancelResponse():
                if command.response == self._active:
                    self._cut_off("client_cancelled")
                else:
                    self._refuse("response_cancel_not_active", f"response {command.response} is not in progress")
            case TruncateItem():
                self._truncate(command)
            case DeleteItem():
                if self._items.pop(command.item, None) is None:
                    self._refuse("item_delete_invalid_item_id", f"there is no item {command.item}")

    def _take_results(self, command: Results) -> None:
        taken = 0
        for result in command.results:
            if result.call in self._withdrawn:
                continue  # the answer was on its way already
            if result.call not in self._waiting:
                self._refuse("invalid_tool_call_id", f"no call {result.call} waits for an answer")
                continue
            del self._waiting[result.call]
            self._items[self._name("result")] = tool_answer(result.call, result.content, result.is_error)
            taken += 1
        if self._habits.continues and taken and not command.quiet and not self._waiting and not self._active:
            self._begin("")

    def _truncate(self, command: TruncateItem) -> None:
        item = self._items.get(command.item)
        if not isinstance(item, _Spoken):
            self._refuse("item_truncate_invalid_item_id", f"there is no audio item {command.item}")
            return
        sent_ms = item.samples * 1000 // SAMPLE_RATE_HZ
        if not 0 < command.audio_end_ms <= sent_ms:
            text = f"audio of {sent_ms} ms cannot be cut at {command.audio_end_ms} ms"
            self._refuse("invalid_value", text)
            return
        item.samples = command.audio_end_ms * SAMPLE_RATE_HZ // 1000
        item.words = [(word, end) for word, end in item.words if end <= item.samples]

    def _refuse(self, code: str, message: str) -> None:
        self.refusals.append(code)
        self._send(Refused(code, message))

    def _name(self, kind: str) -> str:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}_{number}"

    # -- answering ----------------------------------------------------------------------------------------

    def _begin(self, asked: str) -> None:
        """Begin a response to the conversation as it stands.

        Raises:
            ScriptError: the script has no answer to it.
        """
        script = self._script
        self._active = self._name("resp")
        self._round += 1
        request = Request(self._messages(), self._tools)
        self.requests.append(request)
        self._send(ResponseStarted(self._active, asked, self._turns))
        plan = script.choose(Reading(request, self._said, self._turns, self._round))
        first_us = (plan.ttft or script.ttft).draw(script.stream)
        if plan.text or plan.text_after:
            self._said.append(plan.text + plan.text_after)
        if first_us is None:
            return  # a provider that hangs
        self._steps = steps_of(
            plan,
            self._active,
            voice=script.voice,
            speed=script.speed,
            first_us=first_us,
            first_call=self._calls,
            calls_last=self._habits.calls_last,
        )
        self._calls += len(plan.calls)
        self._wait()

    def _messages(self) -> tuple[Message, ...]:
        """The conversation as messages; of what it said, only what it believes was heard."""
        head = (system(self._system),) if self._system else ()
        said = [assistant(each.text) if isinstance(each, _Spoken) else each for each in self._items.values()]
        return (*head, *[each for each in said if each.parts])

    def _wait(self) -> None:
        self._timer = self._clock.call_in(self._steps[0][0], Order.DELIVERY, self._step)

    def _step(self, _: object) -> None:
        """Send the next event, and whatever comes with it at once."""
        while True:
            _, event = self._steps.pop(0)
            if type(event) is AudioDelta:
                self._speak(event)
            elif type(event) is CallReady:
                self._ask(event)
            else:
                self._end(event)  # type: ignore[arg-type]
                return
            self._send(event)
            if self._steps[0][0]:
                self._wait()
                return

    def _speak(self, delta: AudioDelta) -> None:
        item = self._items.setdefault(delta.item, _Spoken())
        assert isinstance(item, _Spoken)
        item.words += [(word, item.samples + end) for word, end in delta.speech.words]
        item.samples += delta.speech.length

    def _ask(self, call: CallReady) -> None:
        self._waiting[call.call] = None
        try:
            arguments = loads(call.arguments)
        except ValueError:
            arguments = {}
        asked = ToolCall(call.call, call.name, arguments if type(arguments) is dict else {})
        self._items[self._name("call")] = assistant("", (asked,))

    def _cut_off(self, reason: str) -> None:
        """Stop the active response, if there is one."""
        if self._active:
            if self._timer is not None:
                self._timer.cancel()
            self._steps = []
            self._end(ResponseEnded(self._active, "cancelled", reason))

    def _end(self, event: ResponseEnded) -> None:
        self._active = ""
        self._timer = None
        self._send(event)
        self._on_quiet()
