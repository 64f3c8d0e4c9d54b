"""Late notes on their way to the model: results of side effects that missed their own slot.

Bodies that end late, and executions that are discarded, put notes in; the next execution that completes takes them
out, or the runner does by hand (tool contract, "Late notes"). Left out: the wording, and the place in the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bargein.pipelines.agent.messages import Message
    from bargein.pipelines.tools.orphans import SideEffectRun

__all__ = ["MAILBOX_CAPACITY", "Mailbox", "Note"]

MAILBOX_CAPACITY = 64


class Note:
    """One result to report.

    Attributes:
        run: the side effect.
        message: the system message.
        withdrawn: the result reached the context in another way; the note must not follow it.
    """

    __slots__ = ("message", "run", "withdrawn")

    def __init__(self, run: SideEffectRun, message: Message) -> None:
        self.run = run
        self.message = message
        self.withdrawn = False


class Mailbox:
    """Notes that wait, in the order in which their results came in.

    Invariant: `put` never makes it hold more than `MAILBOX_CAPACITY`; notes that come back are not refused.
    """

    __slots__ = ("_waiting", "dropped")

    def __init__(self) -> None:
        self._waiting: list[Note] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, note: Note) -> bool:
        """Add a note.

        Returns:
            ``False``, counted in ``dropped``, where the mailbox is full.
        """
        if len(self._waiting) >= MAILBOX_CAPACITY:
            self.dropped += 1
            return False
        self._waiting.append(note)
        return True

    def take(self) -> list[Note]:
        """Take out all notes but those whose result an execution is just replaying."""
        if not self._waiting:
            return []
        taken = [note for note in self._waiting if note.run.claimed_by is None]
        self._waiting = [note for note in self._waiting if note.run.claimed_by is not None]
        return taken

    def give_back(self, notes: Sequence[Note]) -> None:
        """Put notes that were taken and never reported back in front, whatever the bound."""
        self._waiting[:0] = [note for note in notes if not note.withdrawn]

    def withdraw(self, note: Note) -> None:
        """The note's result has reached the context; wherever the note is, it is not reported."""
        note.withdrawn = True
        if note in self._waiting:
            self._waiting.remove(note)
