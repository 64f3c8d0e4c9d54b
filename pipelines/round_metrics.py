"""Per-request metrics: one record for each request of a turn, from its own marks.

A tool loop asks the model several times; each request is a round with its own time to first token and duration
(tool contract, "Per-request LLM metrics"). First marks win; marks of a finished turn are late and change nothing;
at most 32 rounds of a turn are timed. Left out: latencies outside the model (``bargein.sim.lab.metrics``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["MAX_LLM_ROUNDS", "RoundMetrics", "TimelineStats", "TurnMarks", "TurnRecorder"]

MAX_LLM_ROUNDS = 32


@dataclass(slots=True)
class TimelineStats:
    """How the marks were taken: each counts exactly once."""

    recorded: int = 0
    repeated: int = 0
    late: int = 0
    llm_rounds_dropped: int = 0


@dataclass(slots=True)
class RoundMetrics:
    """One request: its number in the turn and the instants of its marks; derived times are ``None`` without them."""

    round: int
    requested_at_us: int
    first_token_at_us: int | None = None
    done_at_us: int | None = None

    @property
    def time_to_first_token_us(self) -> int | None:
        """From the request to its first token."""
        return None if self.first_token_at_us is None else self.first_token_at_us - self.requested_at_us

    @property
    def duration_us(self) -> int | None:
        """From the request to its completion."""
        return None if self.done_at_us is None else self.done_at_us - self.requested_at_us


@dataclass(slots=True)
class TurnMarks:
    """The marks of one turn; the turn's own keep the first instant only."""

    epoch: int
    llm_request_at_us: int | None = None
    llm_first_token_at_us: int | None = None
    finished: bool = False
    rounds: list[RoundMetrics] = field(default_factory=list)

    def llm_round(self, number: int) -> RoundMetrics | None:
        """The round with this number, if it was timed."""
        return self.rounds[number] if 0 <= number < len(self.rounds) else None


class TurnRecorder:
    """Takes the marks of a session's turns.

    Attributes:
        turns: by epoch, in order.
    """

    def __init__(self) -> None:
        self.turns: dict[int, TurnMarks] = {}
        self.stats = TimelineStats()

    def _turn(self, epoch: int) -> TurnMarks:
        turn = self.turns.get(epoch)
        if turn is None:
            turn = self.turns[epoch] = TurnMarks(epoch)
        return turn

    def llm_request(self, epoch: int, at_us: int) -> int | None:
        """Open the next round of a turn.

        Returns:
            Its number, or ``None`` when the turn is finished or has its 32 timed rounds.
        """
        turn = self._turn(epoch)
        if turn.finished:
            self.stats.late += 1
            return None
        if len(turn.rounds) >= MAX_LLM_ROUNDS:
            self.stats.llm_rounds_dropped += 1
            self.stats.repeated += 1
            return None
        if turn.llm_request_at_us is None:
            turn.llm_request_at_us = at_us
        turn.rounds.append(RoundMetrics(len(turn.rounds), at_us))
        self.stats.recorded += 1
        return len(turn.rounds) - 1

    def llm_first_token(self, epoch: int, number: int | None, at_us: int) -> bool:
        """Mark a round's first token; the first mark wins."""
        turn = self._turn(epoch)
        if turn.finished:
            self.stats.late += 1
            return False
        found = None if number is None else turn.llm_round(number)
        changed = False
        if turn.llm_first_token_at_us is None:
            turn.llm_first_token_at_us = at_us
            changed = True
        if found is not None and found.first_token_at_us is None:
            found.first_token_at_us = at_us
            changed = True
        self._count(changed)
        return changed

    def llm_done(self, epoch: int, number: int | None, at_us: int) -> bool:
        """Mark a round's completion; the first mark wins."""
        turn = self._turn(epoch)
        if turn.finished:
            self.stats.late += 1
            return False
        found = None if number is None else turn.llm_round(number)
        changed = found is not None and found.done_at_us is None
        if found is not None and changed:
            found.done_at_us = at_us
        self._count(changed)
        return changed

    def finish(self, epoch: int) -> None:
        """The turn is over: later marks for it are late."""
        self._turn(epoch).finished = True

    def _count(self, changed: bool) -> None:
        if changed:
            self.stats.recorded += 1
        else:
            self.stats.repeated += 1
