"""The speech-to-speech stage: one provider in the place of recogniser, model and voice.

To the runner it is the model (a handler of completions on the effect bus), it tells the session of the user's turns,
and what it receives reaches the ear through the speech stage like any other voice. So the rounds, the tool engine,
fillers, the playout and the context are those of every session. A round asks the provider to go on: results in call
order, then one request for a response, held back while another is active. The first response of a turn is the
provider's own where it answers by itself.

Ties: content that is there when a round begins is delivered on its instant, in order. Left out: the wire (a model's),
the user's turns (``s2s_turns``), the audio's way (``s2s_voice``), and which calls were answered (``s2s_calls``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CallsCancelled,
    CancelResponse,
    Configure,
    CreateResponse,
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
from bargein.pipelines.agent.live_ports import LiveProvider
from bargein.pipelines.agent.messages import Message, Role
from bargein.pipelines.agent.request import Request
from bargein.pipelines.s2s_calls import WireCalls
from bargein.pipelines.s2s_responses import LiveResponse
from bargein.pipelines.s2s_turns import LiveSession, UserTurns
from bargein.pipelines.s2s_voice import LiveVoice
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

__all__ = ["ALREADY_ACTIVE", "S2sStage", "S2sStats"]

ALREADY_ACTIVE = "conversation_already_has_active_response"
"""The code of the refusal of a second response."""


@dataclass(slots=True)
class S2sStats:
    """Counters of the stage.

    Attributes:
        requests_deferred: requests that waited for another response to end.
        calls_given_up: calls that were answered because their response was over.
        refused: what the provider did not take; a race may lead to it, and none ends the session.
    """

    responses_requested: int = 0
    requests_deferred: int = 0
    calls_given_up: int = 0
    truncated: int = 0
    deleted: int = 0
    refused: int = 0


class S2sStage:
    """One live session, from the agent's side.

    Args:
        provider: the other end.
        voice: takes the audio.
        session: is told of the user's turns.
        on_idle: called whenever the stage may have come to rest.

    Attributes:
        users: the user's turns.

    Invariant: a response is requested only while none is active and no other request is under way.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        provider: LiveProvider,
        voice: LiveVoice,
        session: LiveSession,
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._provider = provider
        self._voice = voice
        self._session = session
        self._on_idle = on_idle
        self._calls = WireCalls()
        self._responses: dict[str, LiveResponse] = {}
        self._active: LiveResponse | None = None  # the provider generates it, as far as is known
        self._own: LiveResponse | None = None  # the provider's own answer to the newest turn, not taken up yet
        self._wanted: tuple[Effect, str] | None = None  # a round that waits for its response; the tag it is asked with
        self._requested = ""  # the tag of the request that is under way
        self._asked = 0
        self._extra: list[CallReady] = []  # calls that came while earlier ones of their turn were running
        self._stopped_by_provider = False
        self.users = UserTurns(clock, timeline, session, self._interrupt, on_idle)
        self.stats = S2sStats()

    def start(self, configure: Configure) -> None:
        """Connect and set the session up."""
        self._provider.start(self)
        self._provider.send(configure)

    # -- the wire, on the timeline ------------------------------------------------------------------------

    def on_sent(self, what: str, item: str | None, calls: Sequence[str], at_ms: int | None) -> None:
        """A message went out (``live_ports.LiveListener``)."""
        self._timeline.add("s2s.sent", self._session.epoch, what, item, list(calls), at_ms)

    def on_received(
        self,
        what: str,
        response: str | None,
        item: str | None,
        calls: Sequence[str],
        at_ms: int | None,
        samples: int | None,
    ) -> None:
        """A message came in."""
        self._timeline.add("s2s.received", self._session.epoch, what, response, item, list(calls), at_ms, samples)

    def on_quiet(self) -> None:
        """The provider may have come to rest."""
        self._on_idle()

    def on_event(self, event: LiveEvent) -> None:
        """Take what a message means, on its instant."""
        match event:
            case AudioDelta() | CallReady():
                self._on_content(event)
            case ResponseStarted():
                self._on_started(event)
            case ResponseEnded():
                self._on_ended(event)
            case SpeechStarted():
                self.users.speech_started(event)
            case SpeechStopped():
                self.users.speech_stopped(event)
            case Transcript():
                self.users.transcribed(event)
            case CallsCancelled():
                for text in self._calls.withdrawn(event.calls):
                    self._provider.send(Note(text))
            case Refused():
                self._on_refused(event)

    def _interrupt(self, onset_us: int) -> None:
        """The provider has heard the user over the agent; where turns are its own, it has stopped already."""
        self._stopped_by_provider = self._provider.answers_turns
        self._session.barge_in(onset_us, "provider")
        self._stopped_by_provider = False

    # -- rounds: the stage as the model -------------------------------------------------------------------

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        """Begin a round (``effects.Handler``): adopt the provider's own answer, or tell it what is new and ask."""
        request: Request = effect.payload
        own = request.messages[-1].role is Role.USER and self._provider.answers_turns
        self._asked += 1
        self._wanted = (effect, "" if own else f"{effect.scope}.{self._asked}")
        extra, self._extra = self._extra, []
        self._tell(request.messages, quiet=own or bool(extra))
        if extra:
            self._wanted = None
            self._clock.call_in(0, Order.DELIVERY, self._give_calls, (effect, extra))
        elif own:
            self._take_own()
        else:
            self._request()
        return lambda _: self._abandon(effect)

    def _request(self) -> None:
        """Ask for the response that is wanted, if this is a time for it."""
        if self._wanted is None or not self._wanted[1]:
            return
        if self._active is not None or self._requested:
            self.stats.requests_deferred += 1
            return
        self._requested = self._wanted[1]
        self.stats.responses_requested += 1
        self._provider.send(CreateResponse(self._requested))

    def _take_own(self) -> None:
        """A round that waits for the provider's own answer takes it up; what has come of it follows on this instant."""
        response = self._own
        if response is None or self._wanted is None or self._wanted[1] or response.turn != self.users.opened:
            return
        response.effect, self._own, self._wanted = self._wanted[0], None, None
        self._clock.call_in(0, Order.DELIVERY, self._replay, response)

    def _replay(self, response: LiveResponse) -> None:
        held, response.held = response.held, []
        for event in held:
            self._deliver(response, event)

    def _give_calls(self, given: tuple[Effect, list[CallReady]]) -> None:
        """Calls that came before their round did are a response of their own."""
        effect, calls = given
        if effect.running:
            for index, call in enumerate(calls):
                effect.deliver(CallDelta(index, call.call, call.name, call.arguments))
            effect.deliver(StreamEnd("tool_calls"))
            effect.land(Outcome(Status.OK))

    def _tell(self, messages: Sequence[Message], *, quiet: bool) -> None:
        """Send the answers and notes that the provider has not been told."""
        results, notes = self._calls.untold(messages)
        if not self._provider.continues:
            self._send_results(results, quiet)
        for text in notes:
            self._provider.send(Note(text))
        if self._provider.continues:  # the last answer starts it, so that a note has to stand before it
            self._send_results(results, quiet)

    def _send_results(self, results: Sequence[CallResult], quiet: bool) -> None:
        if results:
            self._provider.send(Results(tuple(results), quiet))

    def _abandon(self, effect: Effect) -> None:
        """The round was interrupted: drop its request, or stop its response."""
        if self._wanted is not None and self._wanted[0] is effect:
            self._wanted = None
        for response in self._responses.values():
            if response.effect is effect:
                self._kill(response)

    def _kill(self, response: LiveResponse) -> None:
        """Nothing more of this response counts; stop it, unless the provider has done so itself."""
        response.dead = True
        response.effect = None
        if not response.ended and not self._stopped_by_provider:
            self._provider.send(CancelResponse(response.id))

    # -- responses, as they come in -----------------------------------------------------------------------

    def _on_started(self, event: ResponseStarted) -> None:
        response = self._active = self._responses[event.response] = LiveResponse(event.response, event.turn)
        if not event.asked:
            if self._own is not None:
                self._bury(self._own)
            self._own = response
            self._take_own()
            self.users.open(event.turn)
            return
        self._requested = ""
        if self._wanted is not None and self._wanted[1] == event.asked:
            response.effect = self._wanted[0]
            self._wanted = None
        else:
            self._kill(response)  # asked for by a round that was interrupted meanwhile

    def _on_content(self, event: AudioDelta | CallReady) -> None:
        response = self._responses[event.response]
        if type(event) is CallReady:
            self._calls.asked(event)
        if response.dead:
            self._bury_one(response, event)
        elif response.ended:
            if type(event) is CallReady:
                self._extra.append(event)
        else:
            self._pass_on(response, event)

    def _pass_on(self, response: LiveResponse, event: AudioDelta | CallReady | ResponseEnded) -> None:
        """Deliver an event, or hold it in order until a round has taken the response up."""
        if response.effect is None or response.held:
            response.held.append(event)
        else:
            self._deliver(response, event)

    def _deliver(self, response: LiveResponse, event: AudioDelta | CallReady | ResponseEnded) -> None:
        effect = response.effect
        if effect is None or not effect.running:
            return
        if type(event) is AudioDelta:
            if not response.speech.items:
                self._voice.announce(response.speech)
            effect.deliver(TextDelta(event.text))
            response.speech.receive(event.item, event.speech)
        elif type(event) is CallReady:
            effect.deliver(CallDelta(len(response.calls), event.call, event.name, event.arguments))
            response.calls.append(event.call)
        elif type(event) is ResponseEnded:
            if event.status == "completed":
                effect.deliver(StreamEnd("tool_calls" if response.calls else "stop"))
                effect.land(Outcome(Status.OK))
            else:
                effect.land(Outcome(Status.FAILED, event.reason or event.status))

    def _on_ended(self, event: ResponseEnded) -> None:
        response = self._responses[event.response]
        response.ended = event.status
        if self._active is response:
            self._active = None
        if event.status == "cancelled" and not response.dead and self._session.active:
            self._interrupt(self._clock.now)  # it heard the user and stopped; its word of that is still on the way
        if response.dead:
            self._tell_heard(response)
        else:
            self._pass_on(response, event)
        if not self._requested:
            self._request()
        self._on_idle()

    def _on_refused(self, event: Refused) -> None:
        """Whatever else it was, a request for a response that came too early is made again when that one has ended."""
        self.stats.refused += 1
        if event.code == ALREADY_ACTIVE:
            self._requested = ""
            if self._active is None:
                self._request()

    # -- what nobody will hear ----------------------------------------------------------------------------

    def _bury(self, response: LiveResponse) -> None:
        """An answer that no round took up: its turn has gone on."""
        response.dead = True
        held, response.held = response.held, []
        for event in held:
            if type(event) is not ResponseEnded:
                self._bury_one(response, event)
        if response.ended:
            self._tell_heard(response)

    def _bury_one(self, response: LiveResponse, event: AudioDelta | CallReady | ResponseEnded) -> None:
        """What comes of a response that is over: a call is answered, audio is not heard."""
        if type(event) is CallReady:
            self._give_up([event.call])
        elif type(event) is AudioDelta:
            response.speech.close()
            response.speech.receive(event.item, event.speech)

    def interrupted(self, messages: Sequence[Message]) -> None:
        """The epoch is over: drop what has not been opened, and answer every call that is left (tool contract, item 8).

        Args:
            messages: the context, in which the interrupted calls are closed.
        """
        self._voice.drop()
        self._extra.clear()
        if self._provider.continues:
            self._requested = ""  # what it was to go on with is over, and no response will say so
        results, _ = self._calls.untold([message for message in messages if not message.tells])
        self._send_results(results, quiet=True)
        fresh = () if self._own is None else self._own.held_calls
        self._give_up([call for call in self._calls.open if call not in fresh])

    def _give_up(self, calls: Sequence[str]) -> None:
        """Calls of a response that is over, which never reached the context: the provider still waits for them."""
        answers = self._calls.give_up(calls)
        self.stats.calls_given_up += len(answers)
        self._send_results(answers, quiet=True)

    def tell_rest(self, messages: Sequence[Message]) -> None:
        """Nothing is asked any more: send answers and notes that were not told yet, without asking for a response."""
        self._tell(messages, quiet=True)

    def cut(self) -> None:
        """The playout is silent: tell the provider how much of each item was heard (tool contract, item 8)."""
        for response in self._responses.values():
            if response is not self._own:
                self._tell_heard(response)

    def _tell_heard(self, response: LiveResponse) -> None:
        if not self._provider.truncates:
            return
        for command in response.unheard():
            if type(command) is TruncateItem:
                self.stats.truncated += 1
            else:
                self.stats.deleted += 1
            self._provider.send(command)

    def waits(self) -> list[str]:
        """What is waited for, in words; the report of a stuck session shows it."""
        if self._wanted is not None:
            return ["a round waits for the provider's response"]
        return [] if self._active is None else [f"response {self._active.id} is not complete"]
