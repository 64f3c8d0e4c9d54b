"""Bounded, closable FIFO channels between stages, with back-pressure.

One side puts, one side takes. The taker either waits in a process (`get`) or is called directly for each item
(`listen`), which costs no event; a listening taker may `pause`, and then items queue up to the bound and the
putter has to wait (`room`). Left out: several takers, and items that pass one another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import simpy

from bargein.sim.kernel.race import Race

__all__ = ["CLOSED", "Channel", "ChannelClosed"]

T = TypeVar("T")


class ChannelClosed(RuntimeError):
    """Something was put into a channel after it was closed."""


class _Closed:
    def __repr__(self) -> str:
        return "CLOSED"


CLOSED: Any = _Closed()
"""What `get` gives once a closed channel has been emptied."""


class Channel(Generic[T]):
    """A queue of at most ``capacity`` items.

    Invariant: items leave in the order in which they came, each once.
    """

    __slots__ = ("_env", "_getter", "_items", "_listener", "_paused", "_putters", "capacity", "closed", "name")

    def __init__(self, env: simpy.Environment, name: str, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"channel {name} takes a capacity of 1 or more, not {capacity}")
        self._env = env
        self.name = name
        self.capacity = capacity
        self.closed = False
        self._items: deque[T] = deque()
        self._listener: Callable[[T], object] | None = None
        self._paused = False
        self._getter: Race | None = None
        self._putters: deque[Race] = deque()

    def __len__(self) -> int:
        return len(self._items)

    # -- putting ------------------------------------------------------------------------------------------

    def offer(self, item: T) -> bool:
        """Put an item if there is room now.

        Returns:
            ``False`` when the channel is full; the item was not taken then.

        Raises:
            ChannelClosed: the channel is closed.
        """
        if self.closed:
            raise ChannelClosed(f"channel {self.name} is closed")
        if self._listener is not None and not self._paused and not self._items:
            self._listener(item)
            return True
        if len(self._items) >= self.capacity:
            return False
        self._items.append(item)
        if self._getter is not None:
            getter, self._getter = self._getter, None
            getter.win()
        return True

    def room(self) -> Race:
        """An event that fires when an `offer` may succeed again; first come, first served."""
        waiting = Race(self._env, f"room in channel {self.name}")
        if self.closed or len(self._items) < self.capacity:
            waiting.win()
        else:
            self._putters.append(waiting)
        return waiting

    def close(self) -> None:
        """End the channel: nothing more may be put, what is queued may still be taken."""
        if not self.closed:
            self.closed = True
            if self._getter is not None:
                getter, self._getter = self._getter, None
                getter.win()
            while self._putters:
                self._putters.popleft().win()

    # -- taking -------------------------------------------------------------------------------------------

    def get(self) -> Race:
        """An event that fires when `take` will give something (an item or ``CLOSED``)."""
        waiting = Race(self._env, f"an item in channel {self.name}")
        if self._items or self.closed:
            waiting.win()
        else:
            self._getter = waiting
        return waiting

    def take(self) -> T:
        """The next item, or ``CLOSED`` when the channel is closed and empty.

        Raises:
            LookupError: nothing is there and the channel is open; wait for `get` first.
        """
        if self._items:
            item = self._items.popleft()
            if self._putters:
                self._putters.popleft().win()
            return item
        if self.closed:
            return CLOSED  # type: ignore[no-any-return]
        raise LookupError(f"channel {self.name} is empty")

    def listen(self, listener: Callable[[T], object]) -> None:
        """Call ``listener(item)`` for each item, now and from now on, instead of queueing it."""
        self._listener = listener
        self._drain()

    def pause(self) -> None:
        """Let items queue up; back-pressure begins when the bound is reached."""
        self._paused = True

    def resume(self) -> None:
        """Take up listening again, first with what has queued."""
        self._paused = False
        self._drain()

    def clear(self, keep: Callable[[T], bool] | None = None) -> list[T]:
        """Drop what is queued (all, or what ``keep`` denies) and return it, in order."""
        kept = [item for item in self._items if keep is not None and keep(item)]
        dropped = [item for item in self._items if keep is None or not keep(item)]
        self._items = deque(kept)
        for _ in dropped:
            if self._putters:
                self._putters.popleft().win()
        return dropped

    def _drain(self) -> None:
        while self._items and self._listener is not None and not self._paused:
            self._listener(self.take())
