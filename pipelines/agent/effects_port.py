"""The door through which a session asks its memory.

A plain effect bus and one with layers both fit. Left out: what is asked, and who serves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bargein.sim.effects.bus import EffectKind, Outcome
from bargein.sim.kernel.cancel import Cause

__all__ = ["Asked", "Effects"]


class Asked(Protocol):
    """Something that was asked for."""

    @property
    def outcome(self) -> Outcome | None:
        """What came of it; ``None`` while it runs."""
        ...

    def cancel(self, cause: Cause) -> bool:
        """Stop it; it lands as cancelled. Returns whether it had not landed before."""
        ...


class Effects(Protocol):
    """Where a run asks."""

    def dispatch(
        self,
        kind: EffectKind,
        key: str,
        payload: Any,
        *,
        scope: str,
        on_landed: Callable[[Any], object],
    ) -> Asked:
        """Ask the handler under ``key`` for ``payload``.

        Args:
            scope: the run on whose behalf it is asked.
            on_landed: called once with what was asked, when its outcome is there (perhaps before this returns).
        """
        ...
