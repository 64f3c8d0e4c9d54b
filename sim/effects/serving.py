"""How many effects of one key are served at the same time, and who waits for a place.

A key is served concurrently unless it was given a number of places; with one it is serial. Whoever finds no place
waits, and is served in the order of coming. A streamed effect keeps its place until its reply has ended, and one whose
layers are still over their verdict until the asker has been told (run contract, section 8.3). `layers` keeps one
`Places` for each such key. Left out: who may not wait, because it is asked for by somebody who has a place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Places", "capacity_of"]

_T = TypeVar("_T")


def capacity_of(serial: bool, capacity: int | None) -> int | None:
    """The places of a key that is declared in one of these ways; ``None`` where there is no bound.

    Raises:
        ValueError: it is no number of places, or not the one that serial means.
    """
    if capacity is not None and (type(capacity) is not int or capacity < 1):
        raise ValueError(f"capacity is {capacity!r}; accepted is a whole number from 1, or None for no bound")
    if serial and capacity not in (None, 1):
        raise ValueError(f"serial, with a capacity of {capacity}; accepted is one of the two")
    return 1 if serial else capacity


class Places(Generic[_T]):
    """The places at one key.

    Args:
        capacity: how many there are.
        serve: begins to serve who has been given a place.

    Attributes:
        holders: who has a place, in the order of coming.

    Invariant: nobody waits while a place is free.
    """

    def __init__(self, capacity: int, serve: Callable[[_T], object]) -> None:
        self.capacity = capacity
        self.holders: list[_T] = []
        self._serve = serve
        self._waiting: deque[_T] = deque()
        self._letting_in = False

    @property
    def full(self) -> bool:
        """Whether whoever comes now has to wait."""
        return len(self.holders) >= self.capacity

    def enter(self, one: _T) -> None:
        """Be served now, or when a place is free."""
        if self.full or self._waiting:
            self._waiting.append(one)
        else:
            self._give(one)

    def leave(self, one: _T) -> None:
        """Give the place back and let in who is next; who has no place changes nothing."""
        if one not in self.holders:
            return
        self.holders.remove(one)
        if self._letting_in:
            return  # those who are answered at once leave while they are let in: the loop below goes on
        self._letting_in = True
        try:
            while self._waiting and not self.full:
                self._give(self._waiting.popleft())
        finally:
            self._letting_in = False

    def withdraw(self, one: _T) -> None:
        """Wait no more."""
        if one in self._waiting:
            self._waiting.remove(one)

    def _give(self, one: _T) -> None:
        self.holders.append(one)
        self._serve(one)
