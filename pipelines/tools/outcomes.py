"""How calls end, by name, and the ten counters of a session.

The engine writes an outcome with each settled call; invariants and reports read them (tool contract,
"Observability" and "Counters"). An outcome says what happened, an error kind (``results``) what the model is told;
they differ on purpose. Left out: timings, which the timeline has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ToolOutcome", "ToolStats"]


class ToolOutcome(StrEnum):
    """What became of a call; the set is closed."""

    OK = "ok"
    OK_TRUNCATED = "ok_truncated"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    TIMED_OUT_RUNNING = "timed_out_running"
    INTERRUPTED = "interrupted"
    INTERRUPTED_RUNNING = "interrupted_running"
    NOT_STARTED = "not_started"
    RECORDED = "recorded"
    DUPLICATE = "duplicate"
    REPEAT_REFUSED = "repeat_refused"
    LOST = "lost"
    STORE_FULL = "store_full"
    MALFORMED = "malformed"
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    ARGUMENTS_TOO_LARGE = "arguments_too_large"
    TOO_MANY_CALLS = "too_many_calls"
    BUDGET_EXHAUSTED = "budget_exhausted"
    STALE_TURN = "stale_turn"
    RESULT_TOO_LARGE = "result_too_large"
    HELD = "held"
    """Told by an event of its own; never the end of a call."""
    LATE_RESULT = "late_result"
    """Told by an event of its own; never the end of a call."""
    ORPHAN_REPLAYED = "orphan_replayed"
    ORPHAN_IN_FLIGHT = "orphan_in_flight"
    ORPHAN_LOST = "orphan_lost"
    ORPHAN_REPORTED = "orphan_reported"
    CONFIRMATION_REQUIRED = "confirmation_required"
    CONFIRMATION_REFUSED = "confirmation_refused"
    DENIED = "denied"
    """Steering or a layer did not let it be served, or a layer did not let its result through; its answer is the
    reason."""


@dataclass(slots=True)
class ToolStats:
    """Counters of one session's engine."""

    read_only_cancelled: int = 0
    not_started_cancelled: int = 0
    side_effect_interrupted: int = 0
    side_effect_late_results: int = 0
    side_effect_replays: int = 0
    side_effect_repeats: int = 0
    orphan_replays: int = 0
    orphan_in_flight: int = 0
    orphan_lost: int = 0
    orphan_reported: int = 0
