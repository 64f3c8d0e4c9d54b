"""A speculative response: its read-only calls run, its side effects wait for the turn to commit.

Made by ``ToolEngine.speculate``, ended by ``ToolEngine.commit`` or `Speculation.discard` (tool contract, item 7 and
"Speculation"). Leaving its ``with`` block uncommitted discards it. Left out: closing the calls that a discarded
speculation leaves open in the context, which is its owner's duty.
"""

from __future__ import annotations

from types import TracebackType

from bargein.pipelines.agent.messages import Message, ToolCall
from bargein.pipelines.tools.execution import Execution, Slot

__all__ = ["Speculation"]


class Speculation:
    """A response that may never have happened.

    Invariant: a held call runs only through `take`, which works once and not after `discard`.
    """

    __slots__ = ("_execution", "_held", "_over")

    def __init__(self, execution: Execution, held: list[Slot]) -> None:
        self._execution = execution
        self._held = held
        self._over = ""

    @property
    def epoch(self) -> int:
        """The turn."""
        return self._execution.epoch

    @property
    def budget_exhausted(self) -> bool:
        """Whether the turn's retry budget is spent."""
        return self._execution.budget_exhausted

    def held_calls(self) -> list[ToolCall]:
        """The side effects that wait, in issue order."""
        return [slot.call for slot in self._held if isinstance(slot.call, ToolCall)]

    def answered(self) -> list[Message]:
        """The results settled so far, in issue order."""
        return self._execution.results

    def discard(self) -> None:
        """Throw it away: what it held never runs, what it runs is dropped. No effect once committed."""
        if not self._over:
            self._over = "discarded"
            self._execution.discard()

    def take(self) -> tuple[Execution, list[Slot]]:
        """Hand execution and held slots to the commit.

        Raises:
            RuntimeError: it was committed or discarded before.
        """
        if self._over:
            raise RuntimeError(f"this speculation was {self._over} before")
        self._over = "committed"
        return self._execution, self._held

    def __enter__(self) -> Speculation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()
