"""What a stage holds of something that it has asked for: an effect, or a dispatch on its way through layers.

The engine and the model port wait on one without knowing which of the two it is. Left out: asking
(``sim.effects.bus`` and ``sim.effects.layers``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bargein.sim.effects.bus import Outcome
from bargein.sim.kernel.cancel import Cause

__all__ = ["Asked"]


class Asked(Protocol):
    """Something that was asked of the world."""

    @property
    def outcome(self) -> Outcome | None:
        """What came of it; ``None`` while it runs."""
        ...

    @property
    def running(self) -> bool:
        """Whether whoever asked has not been told an outcome yet."""
        ...

    def on_landed(self, listener: Callable[[Any], object]) -> None:
        """Have ``listener`` called with it when its outcome is there, in place of whoever was to be told so far."""
        ...

    def detach(self) -> None:
        """Leave it running, with nobody to be told what comes of it."""
        ...

    def cancel(self, cause: Cause) -> bool:
        """Stop it; it lands as cancelled. Returns whether it had not landed before."""
        ...
