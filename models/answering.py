"""What simulated services have in common that answer each request in one piece: a latency, and a way to fail.

A service says in ``_answer`` what a request comes to, whatever was asked. Left out: services whose requests have
effects of their own, which may not be carried out before they land (``memory``).

Ties: an answer lands as a delivery; a cancellation on that instant comes after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bargein.models.latency import Constant, Latency
from bargein.sim.effects.bus import Effect, Outcome
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Stream

__all__ = ["AnsweringHandler"]


class AnsweringHandler(ABC):
    """Serves a key (``effects.Handler``).

    Args:
        stream: the random stream that the latency draws from.
        latency: how long a request takes.
        fails: the words with which every request fails, where it does.
    """

    def __init__(self, clock: Clock, stream: Stream, latency: Latency | None, fails: str | None) -> None:
        self._clock = clock
        self._stream = stream
        self._latency = latency or Constant(0)
        self._fails = fails

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Answer one request, after the latency."""
        delay = self._latency.draw(self._stream)
        if delay is None:
            return None
        timer = self._clock.call_in(delay, Order.DELIVERY, effect.land, self.answer(effect.payload))
        return lambda _: timer.cancel()

    def answer(self, asked: Any) -> Outcome:
        """What a request comes to."""
        return self._answer(asked) if self._fails is None else failed(ReportKind.OTHER, self._fails)

    @abstractmethod
    def _answer(self, asked: Any) -> Outcome: ...
