"""A model whose answers were recorded, or are fetched while the clock stands still, played on the virtual clock.

It serves completions on the effect bus: a request is encoded for the recording's wire, an `Answers` gives the exchange
for it, and its bytes arrive at the delays at which they came. `FromCassette` gives recorded exchanges in their order;
the recorder (``bargein.sim.live``) gives fresh ones. Left out: sending anything.

Ties: pieces are deliveries, so one that falls on the instant of an interruption comes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import loads
from typing import Any, Protocol

from bargein.models.cassettes import Cassette, Exchange
from bargein.models.llm_script import ScriptError
from bargein.models.providers.adapter import Adapter, compact_json
from bargein.models.providers.catalogue import adapter
from bargein.models.providers.errors import RequestError, WireError
from bargein.models.request_match import first_difference
from bargein.pipelines.agent.deltas import CallDelta, TextDelta
from bargein.pipelines.agent.request import Request
from bargein.pipelines.ports import RequestRefused
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order

__all__ = ["Answers", "FromCassette", "PlayedModel", "RoundTrip"]

_OK = 200
_SHOWN = 300


class Answers(Protocol):
    """Where the answers of one session come from."""

    @property
    def adapter(self) -> Adapter:
        """Encodes the requests and decodes the answers."""
        ...

    def exchange(self, body: dict[str, Any], scope: str) -> Exchange:
        """The answer to a request.

        Args:
            body: as JSON values.
            scope: the turn it belongs to, such as ``t2``.

        Raises:
            ScriptError: there is none.
        """
        ...


class FromCassette:
    """The exchanges of a cassette in their order, each only for the request that it was recorded for."""

    def __init__(self, cassette: Cassette) -> None:
        self.adapter = adapter(cassette.provider, cassette.model)
        self._exchanges = cassette.exchanges
        self._taken = 0

    def exchange(self, body: dict[str, Any], scope: str) -> Exchange:
        """The next exchange.

        Raises:
            ScriptError: its request is another one (with the JSON pointer of the first difference, what was found
                and what was recorded), or all have been played.
        """
        number = self._taken + 1
        if number > len(self._exchanges):
            raise ScriptError(
                f"the model was sent request {number} (turn {scope[1:]}), and the recording holds "
                f"{len(self._exchanges)}; accepted is a call that asks no more often",
                "llm.cassette",
            )
        exchange = self._exchanges[self._taken]
        difference = first_difference(body, exchange.request)
        if difference is not None:
            raise ScriptError(
                f"request {number} (turn {scope[1:]}) no longer matches the recording {difference}", "llm.cassette"
            )
        self._taken = number
        return exchange


@dataclass(slots=True)
class RoundTrip:
    """How one request went.

    Attributes:
        first_event_us, first_text_us: from the request to the first delta and to the first text, or ``None``.
        total_us: to the end of the answer; ``None`` while it comes, and where the request was cancelled.
        calls: tool calls in it; ``text_bytes``: of its text, as UTF-8.
        failure: why it failed, if it did.
    """

    scope: str
    first_event_us: int | None = None
    first_text_us: int | None = None
    total_us: int | None = None
    calls: int = 0
    text_bytes: int = 0
    failure: str | None = None


class PlayedModel:
    """The model of one session, as a handler of completions.

    Args:
        answers: gives an exchange for each request.

    Attributes:
        requests: every request it was sent, in order.
        round_trips: how each went, those included that could not be said on the wire.
    """

    def __init__(self, clock: Clock, answers: Answers) -> None:
        self._clock = clock
        self._answers = answers
        self.requests: list[Request] = []
        self.round_trips: list[RoundTrip] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Answer one request (``effects.Handler``).

        Raises:
            ScriptError: there is no answer to it.
        """
        request: Request = effect.payload
        self.requests.append(request)
        trip = RoundTrip(effect.scope)
        self.round_trips.append(trip)
        wire = self._answers.adapter
        try:
            body: dict[str, Any] = loads(compact_json(wire.encode(request)))
        except RequestError as error:
            trip.failure = str(error)
            effect.land(Outcome(Status.FAILED, RequestRefused(error.provider, error.reason)))
            return None
        exchange = self._answers.exchange(body, effect.scope)
        return _Answer(self._clock, effect, wire, exchange, trip).stop


class _Answer:
    """An answer on its way; ``stop`` ends it."""

    __slots__ = ("_at", "_calls", "_clock", "_decoder", "_effect", "_exchange", "_timer", "_trip", "_wire")

    def __init__(self, clock: Clock, effect: Effect, wire: Adapter, exchange: Exchange, trip: RoundTrip) -> None:
        self._clock = clock
        self._effect = effect
        self._wire = wire
        self._exchange = exchange
        self._trip = trip
        self._decoder = wire.decoder()
        self._calls: dict[int, None] = {}
        self._at = 0
        self._timer = clock.call_in(self._due_us, Order.DELIVERY, self._step)

    def stop(self, _: Cause) -> None:
        """The request was cancelled: nothing more comes."""
        self._timer.cancel()

    @property
    def _due_us(self) -> int:
        """When the next piece comes, or the end, from the request."""
        pieces = self._exchange.pieces
        return pieces[self._at][0] if self._at < len(pieces) else self._exchange.end_us

    @property
    def _since_us(self) -> int:
        return self._clock.now - self._effect.dispatched_at_us

    def _step(self, _: object) -> None:
        """What comes on this instant: pieces, and the end."""
        exchange = self._exchange
        due_us = self._due_us
        try:
            while self._at < len(exchange.pieces) and self._due_us == due_us:
                piece = exchange.pieces[self._at][1]
                self._at += 1
                if exchange.status == _OK:
                    self._deliver(self._decoder.feed(piece))
            if self._decoder.over:
                self._land(None)
                return
            if self._at == len(exchange.pieces) and self._due_us == due_us:
                self._end()
                return
        except WireError as error:
            self._land(str(error))
            return
        if self._effect.running:
            self._timer = self._clock.call_in(self._due_us - due_us, Order.DELIVERY, self._step)

    def _end(self) -> None:
        """The answer has ended, and it was not complete before."""
        exchange = self._exchange
        if exchange.status != _OK:
            self._land(f"{self._wire.provider} answered {exchange.status}: {_message(exchange.body)}")
        elif exchange.broken:
            self._land(f"{self._wire.provider}: the connection was lost after {len(exchange.body)} bytes")
        else:
            self._deliver(self._decoder.finish())
            self._land(None)

    def _deliver(self, items: list[Any]) -> None:
        trip = self._trip
        for item in items:
            if type(item) in (TextDelta, CallDelta) and trip.first_event_us is None:
                trip.first_event_us = self._since_us
            if type(item) is TextDelta:
                if trip.first_text_us is None:
                    trip.first_text_us = self._since_us
                trip.text_bytes += len(item.text.encode("utf-8", "surrogatepass"))
            elif type(item) is CallDelta:
                self._calls[item.index] = None
                trip.calls = len(self._calls)
            self._effect.deliver(item)

    def _land(self, failure: str | None) -> None:
        self._trip.total_us = self._since_us
        self._trip.failure = failure
        self._effect.land(Outcome(Status.OK) if failure is None else Outcome(Status.FAILED, failure))


def _message(body: bytes) -> str:
    """What an error body says, shortened."""
    text = body.decode("utf-8", "replace").strip()
    try:
        error = loads(text)
        while type(error) in (dict, list) and error:
            error = error[0] if type(error) is list else error.get("error") or error.get("message")
        text = error if type(error) is str else text
    except (ValueError, RecursionError):
        pass
    return " ".join(text.split())[:_SHOWN] or "without a message"
