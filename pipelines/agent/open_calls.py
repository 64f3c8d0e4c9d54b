"""Effects that are answered from outside their handler: by a person, another process, a hook at some later moment.

`Open` takes an effect and leaves it open; whoever has the answer gives it to `AgentRuns.submit`, and the next step
collects it (run contract, sections 8.3 and 10.1). Left out: who that is.
"""

from __future__ import annotations

from bargein.sim.effects.bus import Effect

__all__ = ["Open"]


class Open:
    """Serves a key by waiting (``effects.Handler``).

    Attributes:
        taken: what was asked, in order.
    """

    def __init__(self) -> None:
        self.taken: list[Effect] = []

    def serve(self, effect: Effect) -> None:
        """Leave it open; a cancellation ends it like any other."""
        self.taken.append(effect)
