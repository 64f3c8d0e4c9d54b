"""The virtual clock: a ``simpy.Environment`` that counts whole microseconds and writes down the order of ties.

Every stage and every model schedules on it. What falls on one instant happens in the order of ``Order``:
deliveries, then interruptions, then playout boundaries, then timers, then the work they cause; first scheduled
first within each. A *tie seed* replaces that order by a reproducible permutation, so that a race can be tried
both ways. The clock reports a deadlock (nothing left to happen, tasks still waiting), a livelock (more events or
more virtual time than allowed) and an event storm (one instant that never ends).

Left out: real time. Nothing here sleeps, and nothing reads another clock.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import NORMAL, Timeout

from bargein.sim.kernel.errors import ClockError, Deadlock, EventStorm, Livelock
from bargein.sim.kernel.streams import Stream

__all__ = ["Clock", "Limits", "Order", "Task", "Timer"]


class Order(IntEnum):
    """Who goes first when several things fall on the same instant."""

    FRAME = 0
    """Deliveries, first of all the frame of caller audio that has just come in."""
    DELIVERY = 1
    """Deliveries: results, deltas, synthesised audio and transcripts that arrive from the world."""
    INTERRUPTION = 2
    """Barge-ins, cancellations and hang-ups."""
    PLAYOUT = 3
    """Boundaries of what is heard: a word's end, an utterance's end, a cut."""
    TIMER = 4
    """Timeouts, filler delays and expiries; also a plain SimPy timeout."""
    WORK = 5
    """What the above cause: a process that goes on, an event that was triggered."""


_LAST = 1 << 64
"""Behind every order, and behind every draw of a tie seed."""


class _Stop(Exception):
    """Ends the run loop from inside an event."""


class Limits:
    """Bounds on a run; reaching one stops it with a report instead of hanging.

    Args:
        events: events a run may process in all.
        same_instant: events that may fall on one instant.
        until_us: virtual time a run may last.
    """

    __slots__ = ("events", "same_instant", "until_us")

    def __init__(
        self, events: int = 5_000_000, same_instant: int = 100_000, until_us: int = 24 * 3_600_000_000
    ) -> None:
        self.events = events
        self.same_instant = same_instant
        self.until_us = until_us


class Timer:
    """A call that will be made at an instant, unless it is cancelled before."""

    __slots__ = ("argument", "at_us", "function")

    def __init__(self, at_us: int, function: Callable[[Any], object], argument: object) -> None:
        self.at_us = at_us
        self.function: Callable[[Any], object] | None = function
        self.argument = argument

    def cancel(self) -> None:
        """Withdraw the call; harmless once it was made."""
        self.function = None

    @property
    def armed(self) -> bool:
        """Whether the call is still to come."""
        return self.function is not None


class Task(simpy.Process):
    """A process with a name, listed by the clock while it lives so that a stuck one can be reported."""

    def __init__(self, clock: Clock, title: str, generator: Generator[Any, Any, Any]) -> None:
        self.title = title
        super().__init__(clock, generator)

    def waits_for(self) -> str:
        """What this task stands at, in words."""
        target = self.target
        return str(getattr(target, "label", None) or type(target).__name__)


class Clock(simpy.Environment):
    """A SimPy environment in whole microseconds.

    Args:
        tie_seed: permute what falls on the same instant, reproducibly; ``None`` keeps the written order.
        limits: bounds that stop a run which would not end.

    Invariant: ``now`` is an ``int`` and never goes back.
    """

    _now: int
    _queue: list[tuple[int, int, int, Any]]  # type: ignore[assignment]

    def __init__(self, tie_seed: int | None = None, limits: Limits | None = None) -> None:
        super().__init__(0)
        self.tie_seed = tie_seed
        self.limits = limits or Limits()
        self.tasks: dict[Task, None] = {}
        self.processed = 0
        self._ties = None if tie_seed is None else Stream(tie_seed, "clock/ties")
        self._serial = 0

    @property
    def now(self) -> int:
        """The instant, in microseconds since the session began."""
        return self._now

    # -- scheduling ---------------------------------------------------------------------------------------

    def call_at(self, at_us: int, order: Order, function: Callable[[Any], object], argument: object = None) -> Timer:
        """Call ``function(argument)`` at the instant ``at_us``, in the place ``order`` gives it there.

        Raises:
            ClockError: ``at_us`` is not an int, or lies in the past.
        """
        if type(at_us) is not int or at_us < self._now:
            raise ClockError(f"an instant is an int of microseconds, now ({self._now}) or later; got {at_us!r}")
        timer = Timer(at_us, function, argument)
        self._serial = serial = self._serial + 1
        rank = order if self._ties is None else self._ties.u64()
        heappush(self._queue, (at_us, rank, serial, timer))
        return timer

    def call_in(self, delay_us: int, order: Order, function: Callable[[Any], object], argument: object = None) -> Timer:
        """Call ``function(argument)`` after ``delay_us`` microseconds; see `call_at`."""
        if type(delay_us) is not int or delay_us < 0:
            raise ClockError(f"a delay is an int of microseconds, zero or more; got {delay_us!r}")
        timer = Timer(self._now + delay_us, function, argument)
        self._serial = serial = self._serial + 1
        rank = order if self._ties is None else self._ties.u64()
        heappush(self._queue, (self._now + delay_us, rank, serial, timer))
        return timer

    def call_last(self, at_us: int, function: Callable[[Any], object], argument: object = None) -> Timer:
        """Call ``function(argument)`` once nothing else is left to happen at the instant ``at_us``.

        It takes no part in the order of that instant, with a tie seed either; for those who look on.

        Raises:
            ClockError: ``at_us`` is not an int, or lies in the past.
        """
        if type(at_us) is not int or at_us < self._now:
            raise ClockError(f"an instant is an int of microseconds, now ({self._now}) or later; got {at_us!r}")
        timer = Timer(at_us, function, argument)
        self._serial = serial = self._serial + 1
        heappush(self._queue, (at_us, _LAST, serial, timer))
        return timer

    def schedule(self, event: simpy.Event, priority: int = NORMAL, delay: Any = 0) -> None:
        """SimPy's own door: a timeout counts as a timer, everything else as the work that was caused."""
        if type(delay) is not int or delay < 0:
            raise ClockError(f"a delay is an int of microseconds, zero or more; got {delay!r}")
        self._serial = serial = self._serial + 1
        if self._ties is not None:
            rank = self._ties.u64()
        else:
            rank = Order.TIMER if type(event) is Timeout and delay else Order.WORK
        heappush(self._queue, (self._now + delay, rank, serial, event))

    def task(self, name: str, generator: Generator[Any, Any, Any]) -> Task:
        """Start ``generator`` as a process that is known by ``name`` until it ends."""
        task = Task(self, name, generator)
        self.tasks[task] = None
        assert task.callbacks is not None
        task.callbacks.append(self._forget)
        return task

    def _forget(self, task: Any) -> None:
        self.tasks.pop(task, None)

    # -- running ------------------------------------------------------------------------------------------

    def run(self, until: Any = None) -> Any:
        """Run until nothing is left to happen, or to the instant ``until`` (events at it are not run).

        Raises:
            ClockError: ``until`` is not an int, or has passed.
            Livelock, EventStorm: a bound of ``limits`` was reached.
            Exception: what a process raised and nobody handled.
        """
        if until is not None and (type(until) is not int or until < self._now):
            raise ClockError(f"run(until=...) takes an int of microseconds, now ({self._now}) or later; got {until!r}")
        queue = self._queue
        limits = self.limits
        crowd = limits.same_instant
        room = limits.events - self.processed
        start_room = room
        instant, here = -1, 0
        pop, timer_type = heappop, Timer
        try:
            while queue:
                if until is not None and queue[0][0] >= until:
                    self._now = until
                    break
                at_us, _, _, event = pop(queue)
                if at_us != instant:
                    if at_us > limits.until_us:
                        raise Livelock(
                            f"the session is still going on at {at_us} us, past its bound of "
                            f"{limits.until_us} us; {self.report()}"
                        )
                    self._now = instant = at_us
                    here = 0
                here += 1
                room -= 1
                if here > crowd:
                    raise EventStorm(f"more than {crowd} events at {at_us} us; {self.report()}")
                if room < 0:
                    raise Livelock(f"more than {limits.events} events, now at {at_us} us; {self.report()}")
                if type(event) is timer_type:
                    function = event.function
                    if function is not None:
                        event.function = None
                        function(event.argument)
                else:
                    self._fire(event)
        except _Stop:
            pass
        finally:
            self.processed += start_room - room
        return None

    def run_while(self, going: Callable[[int], bool]) -> bool:
        """Run event by event, as long as ``going(instant of the next event)``, which is asked before each.

        For those who stop a session at a place; `run` is several times as fast.

        Returns:
            Whether something is left to happen; ``False`` also after `stop`.

        Raises:
            Livelock: a bound of ``limits`` was reached.
            Exception: what a process raised and nobody handled.
        """
        limits = self.limits
        try:
            while self._queue and going(self._queue[0][0]):
                self.step()
                if self.processed > limits.events or self._now > limits.until_us:
                    raise Livelock(f"more than {limits.events} events, now at {self._now} us; {self.report()}")
        except _Stop:
            return False
        return bool(self._queue)

    def stop(self) -> None:
        """End `run` now; called from inside an event, which does not come back."""
        raise _Stop

    def step(self) -> None:
        """Process one event; SimPy's own loop calls this when someone drives the clock by hand."""
        if not self._queue:
            raise simpy.core.EmptySchedule
        at_us, _, _, event = heappop(self._queue)
        self._now = at_us
        self.processed += 1
        if type(event) is Timer:
            function = event.function
            if function is not None:
                event.function = None
                function(event.argument)
        else:
            self._fire(event)

    @staticmethod
    def _fire(event: Any) -> None:
        callbacks, event.callbacks = event.callbacks, None
        if callbacks is None:
            return
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    @property
    def busy(self) -> bool:
        """Whether anything is still to happen."""
        return any(type(entry[3]) is not Timer or entry[3].armed for entry in self._queue)

    def finish(self) -> None:
        """Assert that nobody waits any more, after `run` came to its end.

        Raises:
            Deadlock: tasks are left, each named with what it waits for.
        """
        if self.tasks:
            raise Deadlock(f"nothing is left to happen at {self._now} us; {self.report()}")

    def report(self) -> str:
        """Who waits for what, in the order the tasks were started."""
        if not self.tasks:
            return "no task is waiting"
        return "; ".join(f"{task.title} waits for {task.waits_for()}" for task in self.tasks)
