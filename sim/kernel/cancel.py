"""Cancellation tokens: a tree of them, each cancelled at most once and for a stated cause.

A turn owns a token; what it starts gets the token or a child of it and looks at it where a reader can see:
when it begins, and when it comes back from a wait. Cancelling runs the listeners in the order in which they
were registered, then the children. Left out: stopping anything by force; a token only tells.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

__all__ = ["CancelToken", "Cause"]


class Cause(StrEnum):
    """Why something was cancelled; the set is closed."""

    BARGE_IN = "barge_in"
    HANG_UP = "hang_up"
    DEADLINE = "deadline"
    REPLACED = "replaced"
    DISCARDED = "discarded"


class CancelToken:
    """A one-way switch.

    Invariant: ``cause`` is set exactly when ``cancelled`` is true, and never changes afterwards.
    """

    __slots__ = ("_children", "_listeners", "cause", "name")

    def __init__(self, name: str, parent: CancelToken | None = None) -> None:
        self.name = name
        self.cause: Cause | None = None
        self._listeners: dict[int, Callable[[Cause], object]] = {}
        self._children: list[CancelToken] = []
        if parent is not None:
            if parent.cause is not None:
                self.cause = parent.cause
            else:
                parent._children.append(self)

    @property
    def cancelled(self) -> bool:
        """Whether the switch was thrown."""
        return self.cause is not None

    def cancel(self, cause: Cause) -> bool:
        """Throw the switch for this token and all below it; the first cause stands.

        Returns:
            Whether this call was the one that did it.
        """
        if self.cause is not None:
            return False
        self.cause = cause
        while self._listeners:  # one at a time: a listener may take back another that has not been called yet
            self._listeners.pop(next(iter(self._listeners)))(cause)
        children, self._children = self._children, []
        for child in children:
            child.cancel(cause)
        return True

    def listen(self, listener: Callable[[Cause], object]) -> int:
        """Have ``listener(cause)`` called when the token is cancelled; at once if it already is.

        Returns:
            A number for `forget`.
        """
        if self.cause is not None:
            listener(self.cause)
            return -1
        number = len(self._listeners)
        while number in self._listeners:
            number += 1
        self._listeners[number] = listener
        return number

    def forget(self, number: int) -> None:
        """Take a listener back; harmless when it was called or taken back before."""
        self._listeners.pop(number, None)
