"""Tools that are ``async def``: coroutines on the virtual clock, with asyncio as their own time.

`PythonTool` starts one for each call of such a function. All of a session's run on one event loop, whose only queue is
the clock's heap: ``asyncio.sleep`` takes virtual time, and asyncio's locks, queues and tasks work as they do elsewhere.
What a thread or a socket would have to do is not there. A cancelled call gets ``CancelledError`` where it waits, and
has the rest of that instant to end; one that waits on is closed. What it does wrong then is logged and changes nothing.

Ties: a coroutine goes on as a delivery, like every tool, so what it returns on an instant comes before an interruption
or a timeout on the same one. Left out: asynchronous generators, and progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from bargein.models.stacks.loop import ClockLoop
from bargein.sim.effects.bus import Effect, Outcome
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order

__all__ = ["start"]

Ended = Callable[[Any, BaseException | None], Outcome]
"""What a call comes to, by what its function returned or raised."""


class ToolLoop(ClockLoop):
    """The event loop of one session's tools; it runs whenever the clock does, and nobody runs it."""

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call ``callback(*args)`` on this instant, after what is due on it already."""
        handle = asyncio.Handle(callback, args, self, context)
        self.clock.call_in(0, Order.DELIVERY, self._step, handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call ``callback(*args)`` at ``when`` seconds, to the nearest microsecond; now where that has passed."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.clock.call_in(max(0, round(when * 1_000_000) - self.clock.now), Order.DELIVERY, self._step, handle)
        return handle

    def _step(self, handle: asyncio.Handle) -> None:
        """Run one callback as this loop's; a loop around the whole simulation, as in a notebook, is put aside."""
        if handle.cancelled():
            return
        around = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(around)

    def __del__(self) -> None:
        """Nothing has to be closed."""


_loops: WeakKeyDictionary[Clock, ToolLoop] = WeakKeyDictionary()


def start(
    steps: Coroutine[Any, Any, Any], clock: Clock, effect: Effect, ended: Ended, log: Callable[[str], object]
) -> Callable[[Cause], object]:
    """Have a coroutine serve a call; it goes on by itself until the effect lands.

    Args:
        clock: of the session, as its handlers see it.
        ended: makes the outcome.
        log: told what a coroutine did wrong after it was cancelled.

    Returns:
        What cancels it.
    """
    loop = _loops.get(clock)
    if loop is None:
        loop = _loops[clock] = ToolLoop(clock)
    task = loop.create_task(steps)

    def done(task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            if effect.running:
                effect.land(ended(None, asyncio.CancelledError("nobody cancelled the call, and it ended as cancelled")))
            return
        problem = task.exception()
        if effect.running:
            effect.land(ended(None if problem is not None else task.result(), problem))
        elif problem is not None:
            log(f"it raised {type(problem).__name__} on its cancellation")

    def close(_: object) -> None:
        if not task.done():
            log("it went on after its cancellation, and was closed")
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            try:
                steps.close()
            except Exception as problem:
                log(f"it raised {type(problem).__name__} on closing")

    def stop(_: Cause) -> None:
        task.cancel()
        clock.call_last(clock.now, close)

    task.add_done_callback(done)
    return stop
