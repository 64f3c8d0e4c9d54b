"""The scripted model behind a wire: each request is encoded and judged, each answer travels as bytes.

`ScriptedModel` hands its deltas over in place of delivering them. They become the vendor's bytes, arrive on the
virtual clock on the instants on which the deltas would have, cut into pieces of any size, and what the decoder makes
of them is delivered. A request that the provider would refuse is refused on the instant on which it is sent.
Left out: sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bargein.models.providers.adapter import EventDecoder
from bargein.models.providers.catalogue import adapter
from bargein.models.providers.errors import RequestError, WireError
from bargein.models.vendors.answer import Answer, Thought
from bargein.models.vendors.anthropic import AnthropicAnswer
from bargein.models.vendors.chat_completions import ChatAnswer
from bargein.models.vendors.gemini import GeminiAnswer
from bargein.models.vendors.quirks import with_quirks
from bargein.models.vendors.responses import ResponsesAnswer
from bargein.pipelines.agent.context import CharsPerToken
from bargein.pipelines.agent.deltas import CallDelta, Delta, StreamEnd, TextDelta
from bargein.pipelines.agent.request import Request
from bargein.pipelines.ports import RequestRefused
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order

__all__ = ["ScriptedWire", "answer_class", "spell"]


def answer_class(wire: str) -> type[Answer]:
    """The vendor's side of a wire of `bargein.models.providers.catalogue.WIRES`."""
    classes: dict[str, type[Answer]] = {
        "anthropic": AnthropicAnswer,
        "gemini": GeminiAnswer,
        "openai_responses": ResponsesAnswer,
        "xai_responses": ResponsesAnswer,
    }
    return classes.get(wire, ChatAnswer)


class ScriptedWire:
    """One session's wire.

    Args:
        wire: its name in the catalogue.
        model: what the requests call the model.
        quirks: what the vendor does, by name.
        chunking: ``event``: what is said on one instant arrives in one piece; ``answer``: everything arrives with
            the end, as through a proxy that buffers; or a number of bytes, in pieces of which it arrives.

    Attributes:
        bodies: every request that was taken, as it was encoded, in order.
    """

    def __init__(self, wire: str, model: str, quirks: Sequence[str] = (), chunking: str | int = "event") -> None:
        self._adapter = adapter(wire, model)
        self._wire = wire
        self._answer = answer_class(wire)
        self._quirks = frozenset(quirks)
        self._chunking = chunking
        self._model = model
        self._number = 0
        self.bodies: list[dict[str, Any]] = []

    def send(self, request: Request) -> RequestRefused | None:
        """Encode a request; why the provider refuses it, if it does."""
        provider = self._adapter.provider
        try:
            body = self._adapter.encode(request)
        except RequestError as error:
            return RequestRefused(provider, error.reason)
        reason = self._adapter.rules(body)
        if reason is not None:
            return RequestRefused(provider, reason)
        self.bodies.append(body)
        return None

    def fragments(self, wanted: str | int, piece_bytes: int) -> str | int:
        """How calls can stream here: a vendor that sends one call after another cannot interleave them.

        Args:
            wanted: as the script has it.
            piece_bytes: the length of a fragment where calls were to be interleaved.
        """
        finest = self._answer.FRAGMENTS
        if finest == "whole" or "zero_index" in self._quirks:
            return "whole"
        return piece_bytes if finest == "in_turn" and wanted == "interleaved" else wanted

    def play(
        self,
        clock: Clock,
        effect: Effect,
        thoughts: Sequence[str],
        deltas: Sequence[Delta],
        first_us: int,
        every_us: int,
        end: StreamEnd,
        failure: str | None,
    ) -> Callable[[Cause], object]:
        """Let an answer arrive: the first delta's bytes after ``first_us``, the next ones every ``every_us``.

        Args:
            thoughts: reasoning, which comes before the deltas.

        Returns:
            What stops it.
        """
        self._number += 1
        estimator = CharsPerToken()
        tokens = sum(estimator.tokens(message) for message in effect.payload.messages)
        answer = self._answer(self._wire, self._number, self._model, self._quirks, tokens)
        said = [*map(Thought, thoughts), *with_quirks(deltas, self._quirks)]
        steps = self._cut(spell(answer, said, end, failure))
        return _Arrival(clock, effect, self._adapter.decoder(), steps, first_us, every_us).stop

    def _cut(self, bodies: list[bytes]) -> list[Sequence[bytes]]:
        """The pieces that arrive on each instant."""
        if self._chunking == "event":
            return [[each] for each in bodies]
        if self._chunking == "answer":
            return [*([] for _ in bodies[1:]), [b"".join(bodies)]]
        size = int(self._chunking)
        return [[each[at : at + size] for at in range(0, len(each), size)] for each in bodies]


def spell(answer: Answer, said: Sequence[Delta | Thought], end: StreamEnd, failure: str | None = None) -> list[bytes]:
    """An answer's bytes, one entry a delta; its opening is in the first and its end, or its failure, in the last."""
    bodies = [
        answer.begin() + _bytes(answer, each) if at == 0 else _bytes(answer, each) for at, each in enumerate(said)
    ]
    bodies = bodies or [answer.begin()]
    bodies[-1] += answer.end(end) if failure is None else answer.error(failure)
    return bodies


def _bytes(answer: Answer, delta: Delta | Thought) -> bytes:
    if type(delta) is TextDelta:
        return answer.text(delta.text)
    if type(delta) is CallDelta:
        return answer.call(delta)
    return answer.thought(delta.text) if type(delta) is Thought else b""


class _Arrival:
    """An answer on its way; ``stop`` ends it."""

    __slots__ = ("_at", "_clock", "_decoder", "_effect", "_every_us", "_steps", "_timer")

    def __init__(
        self,
        clock: Clock,
        effect: Effect,
        decoder: EventDecoder,
        steps: Sequence[Sequence[bytes]],
        first_us: int,
        every_us: int,
    ) -> None:
        self._clock = clock
        self._effect = effect
        self._decoder = decoder
        self._steps = steps
        self._every_us = every_us
        self._at = 0
        self._timer = clock.call_in(first_us, Order.DELIVERY, self._step)

    def stop(self, _: Cause) -> None:
        """The request was cancelled: nothing more comes."""
        self._timer.cancel()

    def _step(self, _: object) -> None:
        effect, decoder = self._effect, self._decoder
        pieces = self._steps[self._at]
        self._at += 1
        last = self._at == len(self._steps)
        try:
            for piece in pieces:
                for item in decoder.feed(piece):
                    effect.deliver(item)
            if last:
                for item in decoder.finish():
                    effect.deliver(item)
        except WireError as error:
            effect.land(Outcome(Status.FAILED, str(error)))
            return
        if last:
            effect.land(Outcome(Status.OK))
        elif effect.running:
            self._timer = self._clock.call_in(self._every_us, Order.DELIVERY, self._step)
