"""The idempotency store: what became of each side effect's key, within bounds.

One a session. A key is in flight, done (its answer is recorded) or lost (it ended without a result); a key that
is known is answered from here and never runs again (tool contract, item 6 and "Store states"). Left out: read-only
calls, which are not recorded.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from bargein.pipelines.tools.bounded import utf8_size
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.results import Answer

__all__ = ["Entry", "IdempotencyStore", "IdempotencyUsage", "KeyState"]


class KeyState(StrEnum):
    """What is known of a key."""

    IN_FLIGHT = "in_flight"
    DONE = "done"
    LOST = "lost"


class IdempotencyUsage(NamedTuple):
    """How full the store is: entries of any state, and bytes of recorded result text."""

    entries: int
    bytes: int


class Entry:
    """One key's record.

    Invariant: ``answer`` is there exactly when the state is done.
    """

    __slots__ = ("answer", "response", "size", "state")

    def __init__(self, response: int) -> None:
        self.response = response
        self.state = KeyState.IN_FLIGHT
        self.answer: Answer | None = None
        self.size = 0


class IdempotencyStore:
    """Keys and their records.

    Args:
        capacity: entries kept; zero counts as one.
        max_bytes: recorded result text kept.

    Invariant: an entry in flight is never evicted, nor is a record by its own recording.
    """

    __slots__ = ("_bytes", "_entries", "_settled", "capacity", "max_bytes")

    def __init__(self, capacity: int, max_bytes: int) -> None:
        self.capacity = max(capacity, 1)
        self.max_bytes = max_bytes
        self._entries: dict[IdempotencyKey, Entry] = {}
        self._settled: dict[IdempotencyKey, Entry] = {}
        self._bytes = 0

    def get(self, key: IdempotencyKey) -> Entry | None:
        """The record of ``key``, unless it was never seen or has been evicted."""
        return self._entries.get(key)

    def admit(self, key: IdempotencyKey, response: int) -> bool:
        """Open a record in flight, making room for it.

        Args:
            response: number of the response that asks.

        Returns:
            ``False``, with nothing changed, where every entry is in flight.
        """
        if len(self._entries) >= self.capacity and not self._evict():
            return False
        self._entries[key] = Entry(response)
        return True

    def record(self, key: IdempotencyKey, answer: Answer) -> None:
        """The call of ``key`` came to an end, well or not; replays get ``answer``."""
        entry = self._entries[key]
        entry.state = KeyState.DONE
        entry.answer = answer
        entry.size = utf8_size(answer.content)
        self._bytes += entry.size
        while self._bytes > self.max_bytes and self._evict():
            pass
        self._settled[key] = entry

    def lose(self, key: IdempotencyKey) -> None:
        """The call of ``key`` ended without a result; nobody knows what it did."""
        entry = self._entries[key]
        entry.state = KeyState.LOST
        self._settled[key] = entry

    def forget(self, key: IdempotencyKey) -> None:
        """The call of ``key``, in flight so far, never ran: it is as if it had not been asked for."""
        del self._entries[key]

    def _evict(self) -> bool:
        """Drop the entry that settled first; ``False`` where none has settled."""
        for key, entry in self._settled.items():
            del self._settled[key], self._entries[key]
            self._bytes -= entry.size
            return True
        return False

    def usage(self) -> IdempotencyUsage:
        """How full it is."""
        return IdempotencyUsage(len(self._entries), self._bytes)
