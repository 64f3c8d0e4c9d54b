"""What a scenario expects of its run.

Part of the scenario model; ``model`` gathers it. Left out: looking; ``expectations`` does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from bargein.sim.kernel.durations import DurationError, as_us
from bargein.sim.scenario.codec import read_fields, write_fields
from bargein.sim.scenario.moments import EventExpectation, EventMatch
from bargein.sim.scenario.places import Fault, Path

__all__ = ["Expect", "MessageExpectation", "Range"]


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be; durations are microseconds."""

    min: int | None = None
    max: int | None = None
    is_: int | None = None

    def holds(self, value: int) -> bool:
        """Whether the value is inside."""
        if self.is_ is not None:
            return value == self.is_
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{min: ..., max: ...}``, ``{is: ...}`` or the value alone; each a number or a duration."""
        if not isinstance(data, dict):
            return cls(is_=_number(data, path))
        low, high, exact = (_number(data.get(key), (*path, key)) for key in ("min", "max", "is"))
        if low is not None and high is not None and low > high:
            raise Fault(path, "min is above max; accepted is a min no greater than the max")
        return cls(low, high, exact)

    def to_value(self) -> Any:
        return self.is_ if self.is_ is not None else write_fields(self)


@dataclass(frozen=True, slots=True)
class MessageExpectation:
    """One message of the final context; what is not given may be anything."""

    role: str
    text: str | None = None
    contains: str | None = None
    error: str | None = None
    calls: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """Everything that must be so at the end.

    Attributes:
        tool_runs: how often each tool ran; ``outcomes``: how its calls were answered, in order.
        events: events that are there; ``order``: events that occur in this order; ``counts``: how many of a kind.
        context: the messages of the context, all of them, in order, without the system's first.
        heard: what the caller heard of the agent: all of it as one text, or utterance by utterance.
        spoken: what the agent set out to say, response by response.
        metrics: bounds on the session's metrics.
        violations: the invariants that this scenario is expected to break, in name order; none where not given.
    """

    tool_runs: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[EventExpectation, ...] = ()
    order: tuple[EventMatch, ...] = ()
    counts: dict[str, Range] = field(default_factory=dict)
    context: tuple[MessageExpectation, ...] | None = None
    heard: tuple[str, ...] | str | None = None
    spoken: tuple[str, ...] | None = None
    metrics: dict[str, Range] = field(default_factory=dict)
    violations: tuple[str, ...] = ()

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read it; ``heard`` may be a text or a list."""
        if isinstance(data.get("heard"), list):
            data = {**data, "heard": tuple(data["heard"])}
        return read_fields(cls, data, path)


def _number(value: Any, path: Path) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return as_us(value)
    except DurationError as error:
        raise Fault(path, f"{error}, or a whole number") from None
