"""Recent side effects, and the two rules that keep a model from doing the same thing twice.

A run is an *orphan* once its result can no longer be its own tool result; an identical call of another response is
then answered from the record (tool contract, "Regeneration"). A *repeat* is a call that succeeded earlier in the
same turn, in another response (tool contract, "Repeats within a turn"). Both compare one digest of tool and
arguments. Left out: what such a call is answered with (``side_effects``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from bargein.pipelines.tools.bounded import canonical_json
from bargein.pipelines.tools.outcomes import ToolOutcome

if TYPE_CHECKING:
    from bargein.pipelines.asked import Asked
    from bargein.pipelines.tools.execution import Execution, Slot
    from bargein.pipelines.tools.invocation import IdempotencyKey
    from bargein.pipelines.tools.mailbox import Note
    from bargein.pipelines.tools.registry import RegisteredTool
    from bargein.pipelines.tools.results import Answer
    from bargein.sim.kernel.clock import Timer

__all__ = ["ORPHAN_CAPACITY", "RecentCalls", "SideEffectRun", "call_digest"]

ORPHAN_CAPACITY = 32
_TOOK_PLACE = (ToolOutcome.OK, ToolOutcome.OK_TRUNCATED, ToolOutcome.DENIED)


def call_digest(tool: str, arguments: dict[str, Any]) -> bytes:
    """Equal for the same tool with the same arguments; key order does not matter, ``1`` and ``1.0`` differ."""
    text = f"{tool}\0{canonical_json(arguments)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class SideEffectRun:
    """One side effect that runs or ran.

    Attributes:
        tool: the tool that runs (for a confirmation, the gated one).
        epoch, response: the turn and the response whose tool result it is, or was replayed as.
        digest: of tool and arguments; empty for a confirmed run, which neither rule concerns.
        slot: where its result goes or lies undelivered; ``None`` once that is no longer its way.
        outcome, answer: how it ended; ``None`` while it runs.
        orphaned_at_us: since when it is an orphan.
        note: its late note.
        reported: the note reached the context.
        claimed_by: the execution that replays it and is neither delivered nor discarded.
        in_doubt: whoever ran it can no longer say whether the effect took place.

    Invariant: the result goes one way: in the slot, or else as the note or as a replay.
    """

    __slots__ = (
        "answer",
        "call_id",
        "claimed_by",
        "digest",
        "effect",
        "epoch",
        "in_doubt",
        "key",
        "note",
        "orphaned_at_us",
        "outcome",
        "reported",
        "response",
        "slot",
        "started_at_us",
        "timer",
        "tool",
    )

    def __init__(self, slot: Slot, tool: RegisteredTool, key: IdempotencyKey, digest: bytes, now_us: int) -> None:
        self.slot: Slot | None = slot
        self.tool = tool
        self.key = key
        self.call_id = key.call_id
        self.epoch = key.epoch
        self.response = slot.execution.response
        self.digest = digest
        self.started_at_us = now_us
        self.effect: Asked | None = None
        self.timer: Timer | None = None
        self.outcome: ToolOutcome | None = None
        self.answer: Answer | None = None
        self.orphaned_at_us: int | None = None
        self.note: Note | None = None
        self.reported = False
        self.claimed_by: Execution | None = None
        self.in_doubt = False

    @property
    def succeeded(self) -> bool:
        """Whether the effect took place and said so; a cut result counts, and one that a layer kept for itself."""
        return self.outcome in _TOOK_PLACE


class RecentCalls:
    """The last side effects of a session, oldest first.

    Args:
        window_us: how long an orphan is recognised; zero switches that off.
    """

    __slots__ = ("_runs", "window_us")

    def __init__(self, window_us: int) -> None:
        self.window_us = window_us
        self._runs: deque[SideEffectRun] = deque(maxlen=ORPHAN_CAPACITY)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[SideEffectRun]:
        return iter(self._runs)

    def remember(self, run: SideEffectRun) -> None:
        """Add a run; the oldest one is forgotten beyond `ORPHAN_CAPACITY`."""
        self._runs.append(run)

    def orphan(self, digest: bytes, response: int, now_us: int) -> SideEffectRun | None:
        """The orphan that answers a call of ``response``: the oldest that fits, unclaimed ones first."""
        claimed = None
        for run in self._runs:
            if run.digest == digest and self._is_orphan(run, response, now_us):
                if run.claimed_by is None:
                    return run
                claimed = claimed or run
        return claimed

    def repeated(self, digest: bytes, epoch: int, response: int) -> SideEffectRun | None:
        """The run that a call of ``response`` in turn ``epoch`` would repeat."""
        for run in self._runs:
            if run.digest == digest and self._is_repeat(run, epoch, response):
                return run
        return None

    def in_doubt(self, digest: bytes, epoch: int, response: int) -> bool:
        """Whether a call of ``response`` in turn ``epoch`` asks for what this turn may have brought about already."""
        return any(
            run.in_doubt and run.digest == digest and run.epoch == epoch and run.response != response
            for run in self._runs
        )

    def _is_orphan(self, run: SideEffectRun, response: int, now_us: int) -> bool:
        since = run.orphaned_at_us
        return since is not None and run.response != response and self._in_window(now_us - since)

    def _in_window(self, age_us: int) -> bool:
        """The window counts from the instant the run became an orphan, its last instant included."""
        return self.window_us > 0 and age_us <= self.window_us

    def _is_repeat(self, run: SideEffectRun, epoch: int, response: int) -> bool:
        return run.succeeded and run.epoch == epoch and run.response != response and run.orphaned_at_us is None
