"""What an adapter is: it encodes a request, decodes an answer, and knows what its provider refuses.

`Adapter` is the base of one class a wire, `EventDecoder` of their decoders. An adapter holds no state of a
conversation, so one serves any number of them. Left out: sending; an adapter never sees a socket or a key.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from json import JSONEncoder, loads
from typing import Any

from bargein.models.providers.errors import RequestError, WireError
from bargein.models.providers.sse import SseEvent, SseParser
from bargein.pipelines.agent.deltas import CallDelta, Delta, ResponseData, StreamEnd, TextDelta
from bargein.pipelines.agent.messages import Message, Role, ToolCall
from bargein.pipelines.agent.request import Advert, Request

__all__ = ["Adapter", "EventDecoder", "Item", "compact_json", "counts", "merge", "split_head"]

Item = Delta | StreamEnd
compact_json: Callable[[Any], str] = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""JSON without spaces, in the order of the keys: the spelling of arguments where a wire carries them as text."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Adapter(ABC):
    """One provider's wire.

    Args:
        model: the provider's own name of the model.

    Attributes:
        provider: its name in errors and on the timeline.
        wire: the name under which its data rides on messages; adapters of one wire share it.
        tool_name: what it accepts as a tool's name.
    """

    provider = ""
    wire = ""
    tool_name = _TOOL_NAME

    def __init__(self, model: str) -> None:
        self.model = model

    # -- to the provider ----------------------------------------------------------------------------------

    @abstractmethod
    def encode(self, request: Request) -> dict[str, Any]:
        """The body of the request, as JSON values.

        Raises:
            RequestError: it cannot be said on this wire: arguments that are no object, provider data of another
                shape, a schema or a medium that the provider does not take.
        """

    @abstractmethod
    def rules(self, body: Mapping[str, Any]) -> str | None:
        """Why the provider would refuse ``body``, or ``None``."""

    def refusal(self, request: Request) -> str | None:
        """Why the provider would refuse ``request``, or ``None`` where it would take it."""
        try:
            body = self.encode(request)
        except RequestError as error:
            return error.reason
        return self.rules(body)

    def refuse(self, reason: str) -> RequestError:
        """The error for a request that cannot be said."""
        return RequestError(self.provider, reason)

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """A call's arguments, which have to be an object (tool contract, "Internal representation")."""
        if type(call.arguments) is not dict:
            raise self.refuse(f"the arguments of call {call.id} are no JSON object")
        return call.arguments

    def tool_faults(self, adverts: Sequence[Advert]) -> None:
        """Refuse tools whose names or count the provider does not take."""
        seen: set[str] = set()
        for advert in adverts:
            if self.tool_name.fullmatch(advert.name) is None:
                raise self.refuse(f"the tool name {advert.name!r} does not match {self.tool_name.pattern}")
            if advert.name in seen:
                raise self.refuse(f"the tool {advert.name} is declared twice")
            seen.add(advert.name)

    # -- from the provider --------------------------------------------------------------------------------

    @abstractmethod
    def decoder(self) -> EventDecoder:
        """A decoder for one answer."""


class EventDecoder(ABC):
    """Turns the bytes of one answer into deltas and, where it is complete, one `StreamEnd`.

    Invariant: an answer that does not end as its wire says ends in a `WireError`, never in a `StreamEnd`; so a call
    whose arguments were cut off is never taken for whole.
    """

    provider = ""

    def __init__(self) -> None:
        self._sse = SseParser(self.provider)
        self._out: list[Item] = []
        self._event = SseEvent(0, 0, "", "")
        self._failed: WireError | None = None
        self.over = False
        """Whether the answer is complete."""

    def feed(self, piece: bytes) -> list[Item]:
        """Take the next bytes, of any length.

        Returns:
            What they complete, in order.

        Raises:
            WireError: the bytes are not what the wire allows, or the provider reports an error; what was returned
                before stands, and nothing more can be had.
        """
        return self._take(self._sse.feed, piece)

    def finish(self) -> list[Item]:
        """The connection has closed.

        Raises:
            WireError: the answer was not complete.
        """
        items = self._take(lambda _: self._sse.finish(), b"")
        if not self.over:
            self._end_of_stream()
        if not self.over:
            self._failed = WireError(
                self.provider, self._sse.events + 1, self._sse.offset, "the stream ended before the answer was complete"
            )
            raise self._failed
        items += self._out
        self._out = []
        return items

    def _take(self, read: Callable[[bytes], list[SseEvent]], piece: bytes) -> list[Item]:
        if self._failed is not None:
            raise self._failed
        try:
            for event in read(piece):
                self._event = event
                if not self.over:
                    self._read(event)
        except WireError as error:
            self._failed = error
            raise
        except RecursionError:
            self._failed = self.error("the data is nested too deeply")
            raise self._failed from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # One place for every event of the wrong shape; the handlers below read them as the wire promises.
            self._failed = self.error(f"the event has another shape than the wire promises ({type(error).__name__})")
            raise self._failed from None
        out, self._out = self._out, []
        return out

    def _read(self, event: SseEvent) -> None:
        data = loads_object(event.data, self)
        if type(data.get("error")) is dict or type(data.get("error")) is str:
            raise self.error(f"the provider reports {_message(data['error'])}")
        self._handle(data)

    @abstractmethod
    def _handle(self, data: dict[str, Any]) -> None:
        """One event's data."""

    def _end_of_stream(self) -> None:  # noqa: B027  (most wires need nothing here)
        """The stream has ended without the event that ends it; complete the answer if the wire allows that."""

    # -- for the handlers ---------------------------------------------------------------------------------

    def emit(self, item: Item) -> None:
        """Give something out."""
        self._out.append(item)

    def text(self, text: str) -> None:
        """Give out text."""
        if text:
            self.emit(TextDelta(checked(text)))

    def call(self, index: int, id: str = "", name: str = "", arguments: str = "", data: Any = None) -> None:
        """Give out a fragment of a call."""
        self.emit(CallDelta(index, checked(id) or None, checked(name) or None, checked(arguments), data))

    def end(self, reason: str, usage: dict[str, int], data: Any = None) -> None:
        """The answer is complete."""
        if data is not None:
            self.emit(ResponseData(data))
        self.emit(StreamEnd(reason, usage))
        self.over = True

    def error(self, what: str) -> WireError:
        """An error at the current event."""
        return WireError(self.provider, self._event.number, self._event.offset, what)


def checked(text: Any) -> str:
    """``text``, which has to be one."""
    if type(text) is not str:
        raise TypeError("not a text")
    return text


def loads_object(text: str, decoder: EventDecoder) -> dict[str, Any]:
    """Data of an event, which has to be a JSON object."""
    try:
        data = loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise decoder.error(f"the data is not JSON ({str(error).partition(':')[0]})") from None
    if type(data) is not dict:
        raise decoder.error("the data is no JSON object")
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _message(error: Any) -> str:
    if type(error) is str:
        return f"an error: {error}"
    kind = error.get("type") or error.get("status") or error.get("code") or "an error"
    return f"{kind}: {error.get('message') or 'without a message'}"


def counts(usage: Any, **names: str) -> dict[str, int]:
    """The counts of a usage object under our names; what is missing or no count is left out."""
    if type(usage) is not dict:
        return {}
    return {ours: usage[theirs] for ours, theirs in names.items() if type(usage.get(theirs)) is int}


def split_head(messages: Sequence[Message]) -> tuple[list[str], Sequence[Message]]:
    """The instructions at the head of a conversation, and the rest of it."""
    at = 0
    while at < len(messages) and messages[at].role is Role.SYSTEM:
        at += 1
    return [message.text for message in messages[:at] if message.text], messages[at:]


def merge(body: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with ``more`` laid over it, mappings member by member (run contract, section 1: sent as they are)."""
    for key, value in more.items():
        inner = body.get(key)
        body[key] = merge(dict(inner), value) if type(inner) is dict and isinstance(value, Mapping) else value
    return body
