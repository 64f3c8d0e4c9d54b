"""What can stop a simulation: it is stuck, it spins, or it was misused.

These are findings about the simulated program or about a mistake of ours, not about the world: what the world
does wrong (a timeout, a lost packet) is a record on the timeline, never one of these. Exceptions carry
positional arguments only, so that they survive being rebuilt in another process.
"""

from __future__ import annotations

__all__ = ["ClockError", "Deadlock", "EventStorm", "Livelock", "SimulationStopped", "VoidRun"]


class ClockError(TypeError):
    """The clock was given an instant or a delay that is not a whole, non-negative number of microseconds."""


class VoidRun(RuntimeError):
    """A fault of the simulator itself: what this run showed means nothing."""


class SimulationStopped(RuntimeError):
    """The simulated program cannot make progress; the message says who waits for whom."""


class Deadlock(SimulationStopped):
    """Nothing is left to happen, and tasks still wait."""


class Livelock(SimulationStopped):
    """The session goes on past its bound of events or of virtual time."""


class EventStorm(SimulationStopped):
    """Too many events on one instant: the clock would never move again."""
