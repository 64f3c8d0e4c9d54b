"""Which rounds may run: the newest turn only, and only while its retry budget lasts.

The engine admits every round here after planning it (tool contract, item 4, "Rounds" and "Stale turns"). Left out:
what makes a call malformed (planning).
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Admission", "RetryBudget"]


class Admission(StrEnum):
    """What a round may do."""

    ADMITTED = "admitted"
    STALE = "stale"
    """A newer turn has been seen; nothing of it runs and no budget changes."""
    EXHAUSTED = "exhausted"
    """The turn has spent its budget; nothing more of it runs."""


class RetryBudget:
    """Malformed rounds of the newest turn.

    Args:
        max_invalid_rounds: malformed rounds a turn may make; the next one is exhausted.

    Invariant: the count of a turn never goes down.
    """

    __slots__ = ("_count", "_newest", "max_invalid_rounds")

    def __init__(self, max_invalid_rounds: int) -> None:
        self.max_invalid_rounds = max_invalid_rounds
        self._newest: int | None = None
        self._count = 0

    def admit(self, epoch: int, malformed: bool) -> Admission:
        """Take a planned round into account and say what it may do.

        Args:
            malformed: whether the round holds a malformed call; it spends one however many it holds. Committing
                a speculation spends nothing: its round was counted when it was made.
        """
        if self._newest is None or epoch > self._newest:
            self._newest = epoch
            self._count = 0
        elif self._is_stale(epoch):
            return Admission.STALE
        if malformed:
            self._count += 1
        return Admission.EXHAUSTED if self._is_exhausted() else Admission.ADMITTED

    def _is_stale(self, epoch: int) -> bool:
        return self._newest is not None and epoch < self._newest

    def _is_exhausted(self) -> bool:
        return self._count > self.max_invalid_rounds

    def spent(self, epoch: int) -> int:
        """Malformed rounds of the turn so far; zero for any but the newest turn."""
        return self._count if epoch == self._newest else 0
