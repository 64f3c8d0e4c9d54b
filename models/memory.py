"""Memories that answer the effects of a run: a store behind a latency, with failures on request.

`MemoryHandler` serves one key of the effect bus from any `Store`; `MemoryStore` keeps conversations in this process
only (the SQLite one is ``memory_sqlite``). A store holds messages as text, so that what was appended cannot change
afterwards. Left out: what messages mean.

Ties: an operation takes effect and lands at one instant, as a delivery; a cancellation on that instant comes after it.
One that is cancelled before has left no trace in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json import dumps, loads
from typing import Any, Protocol

from bargein.models.latency import Constant, Latency
from bargein.pipelines.agent.memory import Append, Clear, Load, MemoryOp
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Stream

__all__ = ["MAX_MESSAGES", "MemoryHandler", "MemoryStore", "Store", "StoreError", "message_text"]

MAX_MESSAGES = 100_000
"""Messages that a store keeps of one conversation."""

Plain = Mapping[str, Any]


class StoreError(Exception):
    """A store cannot do what was asked of it; the message says why. Nothing was changed."""


class Store(Protocol):
    """Where conversations persist."""

    def load(self, conversation: str) -> list[Plain]:
        """The messages of a conversation, oldest first; none of one that was never appended to.

        Raises:
            StoreError: they cannot be read.
        """
        ...

    def append(self, conversation: str, messages: Sequence[Plain]) -> None:
        """Put messages after what is there, all or none.

        Raises:
            StoreError: they cannot be kept.
        """
        ...

    def clear(self, conversation: str) -> None:
        """Forget a conversation; harmless where there is none.

        Raises:
            StoreError: it cannot be forgotten.
        """
        ...


def message_text(message: Plain) -> str:
    """A message as the text a store keeps; the order of its keys stays, since a model may read it.

    Raises:
        StoreError: it is not plain data.
    """
    try:
        return dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"a message is not plain data: {error}") from None


class MemoryStore:
    """Conversations in this process.

    Args:
        max_messages: bound on one conversation.
    """

    def __init__(self, max_messages: int = MAX_MESSAGES) -> None:
        self._max_messages = max_messages
        self._conversations: dict[str, list[str]] = {}

    def load(self, conversation: str) -> list[Plain]:
        """See `Store.load`."""
        return [loads(text) for text in self._conversations.get(conversation, ())]

    def append(self, conversation: str, messages: Sequence[Plain]) -> None:
        """See `Store.append`."""
        texts = [message_text(message) for message in messages]
        kept = self._conversations.get(conversation, [])
        check_room(conversation, len(kept) + len(texts), self._max_messages)
        self._conversations[conversation] = [*kept, *texts]

    def clear(self, conversation: str) -> None:
        """See `Store.clear`."""
        self._conversations.pop(conversation, None)


def check_room(conversation: str, messages: int, max_messages: int) -> None:
    """That a conversation may grow to so many messages.

    Raises:
        StoreError: it may not.
    """
    if messages > max_messages:
        raise StoreError(f"conversation {conversation!r} would have {messages} messages; at most {max_messages} fit")


class MemoryHandler:
    """Serves a memory's key (``effects.Handler``).

    Args:
        store: where conversations persist.
        latency: how long an operation takes.
        stream: the random stream that the latency draws from.
        fails: for ``load``, ``append`` or ``clear`` the words with which every such operation fails.

    Attributes:
        done: by effect, what operations came to that were carried out before and must not be again.
    """

    def __init__(
        self,
        clock: Clock,
        store: Store,
        stream: Stream,
        latency: Latency | None = None,
        fails: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = clock
        self._store = store
        self._stream = stream
        self._latency = latency or Constant(0)
        self._fails = dict(fails or {})
        self.done: dict[int, Outcome] = {}

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Carry out one operation, after the latency."""
        delay = self._latency.draw(self._stream)
        if delay is None:
            return None
        timer = self._clock.call_in(delay, Order.DELIVERY, self._carry_out, effect)
        return lambda _: timer.cancel()

    def _carry_out(self, effect: Effect) -> None:
        done = self.done.pop(effect.id, None)
        effect.land(self.answer(effect.payload) if done is None else done)

    def answer(self, operation: MemoryOp) -> Outcome:
        """What an operation comes to; it is done when this returns."""
        if isinstance(operation, Load | Append | Clear):
            name = type(operation).__name__.lower()
            if name in self._fails:
                return failed(ReportKind.OTHER, self._fails[name])
        try:
            match operation:
                case Load(conversation):
                    return Outcome(Status.OK, self._store.load(conversation))
                case Append(conversation, messages):
                    self._store.append(conversation, messages)
                case Clear(conversation):
                    self._store.clear(conversation)
                case _:
                    found = type(operation).__name__
                    return failed(ReportKind.REQUEST, f"a memory serves Load, Append and Clear, not {found}")
        except StoreError as error:
            return failed(ReportKind.OTHER, str(error))
        return Outcome(Status.OK)
