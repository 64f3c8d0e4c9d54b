"""The way between a client and a live provider: each message takes a latency, and none overtakes another of its lane.

A live provider sends what it says on one connection; what it makes of the caller's turns comes from another part of it,
which is a lane of its own and may be late. Left out: loss; these wires run on a transport that repeats what is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from bargein.models.latency import Latency
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Stream

__all__ = ["Lane"]


class Lane:
    """One direction of one kind of message.

    Args:
        latency: of each message; its draws of "never" count as none.
        deliver: takes a message when it arrives.
        extra_us: on top of the latency.

    Invariant: messages arrive in the order in which they were sent.
    """

    def __init__(
        self, clock: Clock, latency: Latency, stream: Stream, deliver: Callable[[Any], object], extra_us: int = 0
    ) -> None:
        self._clock = clock
        self._latency = latency
        self._stream = stream
        self._deliver = deliver
        self._extra_us = extra_us
        self._free_at_us = 0
        self._messages: deque[Any] = deque()

    def send(self, message: Any) -> None:
        """Put a message on its way."""
        at_us = self._clock.now + (self._latency.draw(self._stream) or 0) + self._extra_us
        self._free_at_us = at_us = max(at_us, self._free_at_us)
        self._messages.append(message)
        self._clock.call_at(at_us, Order.DELIVERY, self._arrive)

    @property
    def under_way(self) -> int:
        """Messages that have not arrived."""
        return len(self._messages)

    def _arrive(self, _: object) -> None:
        """The oldest one arrives, in whatever order the ties of this instant are taken."""
        self._deliver(self._messages.popleft())
