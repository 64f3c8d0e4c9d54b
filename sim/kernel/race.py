"""One event, several who may trigger it: the first wins and the others are ignored.

A process that waits for "the result or the interruption" makes a `Race`, hands its `win` to both sides and
yields it. Used instead of ``simpy.AnyOf``, which costs more than half a session again because it builds a
condition and a dictionary for each wait.

Tie: whoever calls `win` first on the instant, which the clock's written order decides.
"""

from __future__ import annotations

from typing import Any

import simpy

__all__ = ["Race"]


class Race(simpy.Event):
    """An event that takes the first of several outcomes as its value.

    Args:
        env: the clock.
        label: what is waited for, in words; a deadlock report shows it.
    """

    def __init__(self, env: simpy.Environment, label: str) -> None:
        super().__init__(env)
        self.label = label

    def win(self, side: Any = None) -> bool:
        """Trigger the race with ``side`` as its value.

        Returns:
            Whether this call decided it; ``False`` when it was decided before.
        """
        if self.triggered:
            return False
        self.succeed(side)
        return True
