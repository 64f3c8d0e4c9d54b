"""An asyncio event loop whose only queue is the heap of the virtual clock, and that clock as Python's own time.

A framework written for asyncio runs on it unchanged: a callback is an event of the instant, a sleep is a timer, and
hours pass as fast as the work in them allows. Deliberately absent: selectors, sockets, signals, subprocesses and
threads. What would go to a pool of threads runs at once, in place, on its instant; a call from another thread is
refused.

Ties: on one instant timers go before callbacks, as everywhere on this clock, and first scheduled first in each.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.errors import Deadlock

__all__ = ["STARTED_AT_S", "ClockLoop", "clock_as_time"]

STARTED_AT_S = 1_000_000
"""What ``time.time()`` says at instant zero: not 0, which frameworks take for "unknown", and small enough that a float
of seconds still tells microseconds apart."""

_FLOATS = ("time", "monotonic", "perf_counter")
_NANOSECONDS = tuple(f"{name}_ns" for name in _FLOATS)


class ClockLoop(asyncio.BaseEventLoop):
    """An event loop in virtual time.

    Args:
        clock: whose heap it shares; others may schedule on it too.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def time(self) -> float:
        """Seconds of virtual time since the session began."""
        return self.clock.now / 1_000_000

    # -- scheduling ---------------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call ``callback(*args)`` on this instant, after what is due on it already."""
        self._check_here()
        handle = asyncio.Handle(callback, args, self, context)
        self.clock.call_in(0, Order.WORK, _run, handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call ``callback(*args)`` at ``when`` seconds, to the nearest microsecond; now where that has passed."""
        self._check_here()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.clock.call_at(max(self.clock.now, round(when * 1_000_000)), Order.TIMER, _run, handle)
        return handle

    def _check_here(self) -> None:
        self._check_closed()  # type: ignore[attr-defined]
        running: int | None = self._thread_id  # type: ignore[attr-defined]
        if running is not None and running != threading.get_ident():
            raise RuntimeError("a virtual-time loop takes no calls from other threads: they would come at any instant")

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call ``func(*args)`` at once: it takes no virtual time, and there are no threads."""
        self._check_here()
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    # -- running ------------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Run until somebody stops the loop; `run_forever` calls this in a circle."""
        self.clock.run_while(self._going)
        if not self._stopping:  # type: ignore[attr-defined]
            raise Deadlock(f"nothing is left to happen at {self.clock.now} us, and the loop still waits")

    def _going(self, _: int) -> bool:
        return not self._stopping  # type: ignore[attr-defined]


def _run(handle: asyncio.Handle) -> None:
    if not handle.cancelled():
        handle._run()


@contextmanager
def clock_as_time(clock: Clock) -> Iterator[None]:
    """While the block runs, the functions of the ``time`` module that tell the time tell the clock's.

    For frameworks that measure silences with them. Processor time stays what it is. A function that was imported
    by its name before is not reached.
    """

    def seconds() -> float:
        return STARTED_AT_S + clock.now / 1_000_000

    def nanoseconds() -> int:
        return STARTED_AT_S * 1_000_000_000 + clock.now * 1_000

    kept = {name: getattr(time, name) for name in (*_FLOATS, *_NANOSECONDS)}
    try:
        for name in kept:
            setattr(time, name, seconds if name in _FLOATS else nanoseconds)
        yield
    finally:
        for name, function in kept.items():
            setattr(time, name, function)
