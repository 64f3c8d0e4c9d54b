"""One response of the model on its way in: asked for, timed, assembled, and spoken while it streams.

The runner opens one for each request. Text is spoken as it comes, call fragments go to the assembler only (tool
contract, "Tools in the production pipeline"); a speculative response keeps its text until its turn commits. Left out:
what is done with the response once it is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from logging import INFO, getLogger
from typing import Any

from bargein.pipelines.agent.assembly import AssembleError, InvalidCall, Response, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.messages import Message, ToolCall
from bargein.pipelines.agent.request import AgentSettings, Request, derive_request
from bargein.pipelines.asked import Asked
from bargein.pipelines.playout_book import Source
from bargein.pipelines.ports import RequestRefused
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.speaker import Speaker, Steps
from bargein.pipelines.steering import Steering
from bargein.pipelines.tools.offer import Offer, Offered
from bargein.pipelines.tts_stage import SpeechItem
from bargein.sim.effects.bus import EffectBus, EffectKind, Status
from bargein.sim.effects.reports import Report
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.race import Race
from bargein.sim.kernel.timeline import Timeline

__all__ = ["ModelPort", "ResponseStream", "model_key"]


_log = getLogger("bargein.timeline")
_UNSTEERED = Steering()


def model_key(label: str) -> str:
    """The handler key of the agent's model, or of another of its session's (run contract, section 7)."""
    return f"agent/model:{label}"


class ModelPort:
    """Sends the agent's requests.

    Args:
        agent: its settings, which each request is derived from.
        offer: says which tools each request is sent with.
        steering: how single requests differ from what these say, and which go to another model.
    """

    def __init__(
        self,
        timeline: Timeline,
        bus: EffectBus,
        agent: AgentSettings,
        offer: Offer,
        recorder: TurnRecorder,
        speaker: Speaker,
        steering: Steering = _UNSTEERED,
    ) -> None:
        self.timeline = timeline
        self.bus = bus
        self.agent = agent
        self.offer = offer
        self.recorder = recorder
        self.speaker = speaker
        self.steering = steering

    def ask(self, epoch: int, round: int, messages: Sequence[Message], *, live: bool) -> ResponseStream:
        """Send one request; its deltas come in from now on.

        Args:
            live: whether its text is spoken as it comes.
        """
        steer = self.steering.at(epoch, round + 1)
        offered = self.offer.current if steer.tools is None else self.offer.among(steer.tools)
        request = derive_request(steer.agent(self.agent), steer.messages(messages), offered.adverts)
        stream = ResponseStream(self, epoch, round, live, offered, steer.denied)
        model = self.agent.model if steer.model is None else steer.model
        if model != self.agent.model:
            self.timeline.add("llm.routed", epoch, round, model)
        stream.effect = self._send(stream, model_key(model), request)
        return stream

    def _send(self, stream: ResponseStream, key: str, request: Request) -> Asked:
        self._sent(stream, request)
        return self.bus.dispatch(
            EffectKind.COMPLETION,
            key,
            request,
            scope=f"t{stream.epoch}",
            on_item=stream.on_delta,
            on_landed=_nobody,
        )

    def _sent(self, stream: ResponseStream, request: Request) -> None:
        """The request goes on the bus next: its effect has the number that the log has reached."""
        counts = len(request.messages), len(request.tools)
        self.timeline.add("llm.request", stream.epoch, stream.round, len(self.bus.log), *counts)
        stream.sent()


def _nobody(_: Asked) -> None:
    """Whoever waits for the response says so later."""


class ResponseStream:
    """A response as far as it has come.

    Attributes:
        ordinal: its number for the playout, once it has begun to be spoken.
        effect: the completion on the bus.
        offered: the tools that its request was sent with.
        denied: tools whose calls it may not have served, and why.
    """

    __slots__ = (
        "_assembler",
        "_backlog",
        "_begun",
        "_held",
        "_live",
        "_model",
        "_timed",
        "denied",
        "effect",
        "epoch",
        "offered",
        "ordinal",
        "round",
    )

    effect: Asked

    def __init__(
        self, model: ModelPort, epoch: int, round: int, live: bool, offered: Offered, denied: Mapping[str, str]
    ) -> None:
        self._model = model
        self.epoch = epoch
        self.round = round
        self.offered = offered
        self.denied = denied
        self.ordinal: int | None = None
        self._live = live
        self._timed: int | None = None
        self._assembler = ResponseAssembler()
        self._begun = False
        self._backlog: deque[SpeechItem] = deque()  # text for which the speech stage has no room yet
        self._held: list[str] = []  # text of a response that is not live

    # -- coming in ----------------------------------------------------------------------------------------

    def sent(self) -> None:
        """The request is on its way; its round is timed from now."""
        model = self._model
        self._timed = model.recorder.llm_request(self.epoch, model.bus.clock.now)

    def on_delta(self, delta: Any) -> None:
        """A piece of the response, on its instant."""
        if type(delta) is StreamEnd:
            self._done(delta)
            return
        model = self._model
        if not self._begun:
            self._begun = True
            model.recorder.llm_first_token(self.epoch, self._timed, model.bus.clock.now)
            model.timeline.add("llm.first_token", self.epoch, self.round)
        try:
            self._assembler.feed(delta)
        except AssembleError as refusal:
            reason = f"{type(refusal).__name__}: {refusal}"
            model.timeline.add("llm.refused_delta", self.epoch, self.round, reason)
            return
        if type(delta) is TextDelta and delta.text:
            if self._live:
                self._say(delta.text)
            else:
                self._held.append(delta.text)

    def _done(self, end: StreamEnd) -> None:
        model, epoch, assembler = self._model, self.epoch, self._assembler
        model.timeline.add("llm.done", epoch, self.round, end.reason, assembler.call_count, len(assembler.text))
        model.recorder.llm_done(epoch, self._timed, model.bus.clock.now)
        if self._timed is not None:
            timed = model.recorder.turns[epoch].rounds[self._timed]
            model.timeline.add(
                "llm.request_finished", epoch, timed.round, timed.time_to_first_token_us, timed.duration_us
            )
            if _log.isEnabledFor(INFO):
                _log.info(
                    "llm request finished: turn %d, round %d, first token after %s us, done after %s us",
                    epoch,
                    timed.round,
                    timed.time_to_first_token_us,
                    timed.duration_us,
                )

    # -- going out ----------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        """Pass text on, or keep it in order while the speech stage has no room."""
        if self.ordinal is None:
            self.ordinal = self._model.speaker.begin(self.epoch, Source.ANSWER)
        item = (self.epoch, self.ordinal, Source.ANSWER, text)
        if self._backlog or not self._model.speaker.offer(item):
            self._backlog.append(item)

    def go_live(self) -> None:
        """The turn has committed: speak what was held, and what comes as it comes."""
        self._live = True
        held, self._held = self._held, []
        for text in held:
            self._say(text)

    def landed(self, token: CancelToken) -> Steps:
        """Wait until the response is complete and all its text is with the speech stage, or ``token`` is cancelled."""
        if self.effect.running:
            landed = Race(self._model.bus.clock, f"the model's answer, round {self.round}")
            listening = token.listen(landed.win)
            self.effect.on_landed(landed.win)
            yield landed
            if token.cancelled:
                return
            token.forget(listening)
        while self._backlog and not token.cancelled:
            item = self._backlog.popleft()
            yield from self._model.speaker.put(token, item)

    def end_speech(self, token: CancelToken) -> Steps:
        """The response's text is complete: let all of it be spoken."""
        if self.ordinal is not None:
            yield from self._model.speaker.put(token, (self.epoch, self.ordinal, Source.ANSWER, None))

    # -- what it came to ----------------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """Why the model failed, or ``None`` where it did not."""
        outcome = self.effect.outcome
        if outcome is None or outcome.status is Status.OK:
            return None
        return outcome.value.message if type(outcome.value) is Report else str(outcome.value)

    @property
    def refusal(self) -> RequestRefused | None:
        """Who would not take the request, and why, where that is the failure."""
        value = None if self.effect.outcome is None else self.effect.outcome.value
        return value if type(value) is RequestRefused else None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._assembler.text

    def response(self, context: Context) -> Response:
        """The complete response; its calls get their ids from ``context``. Asked for once."""
        return self._assembler.finish(self.epoch, context)

    def withheld(self, calls: Sequence[ToolCall | InvalidCall]) -> frozenset[str]:
        """The tools that its calls ask for although they were not on offer."""
        return self._model.offer.withheld(calls, self.offered)

    def cancel(self, cause: Cause) -> None:
        """Stop it and throw away what came of it; no call of it was ever more than fragments."""
        self.effect.cancel(cause)
        self._assembler.cancel()

    def watch(self, listener: Callable[[Asked], object]) -> None:
        """Have ``listener`` called when the completion lands."""
        self.effect.on_landed(listener)
