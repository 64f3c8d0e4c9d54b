"""Events named in a scenario: by kind, by the values of their fields, and by how many-th they are.

``after:`` of a caller line waits for one, ``expect.events`` and ``expect.order`` look for them. A field is named as
on the timeline; a duration may be given with its unit, without the field's ``_us``.
Left out: waiting and searching; the session and ``expectations`` do these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bargein.pipelines.events import KINDS
from bargein.sim.kernel.durations import DurationError, as_us, format_us
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.suggest import either, unknown

__all__ = ["After", "EventExpectation", "EventMatch", "field_faults"]

_ALWAYS = ("t", "seq", "kind", "epoch")


@dataclass(frozen=True, slots=True)
class EventMatch:
    """Events of one kind whose fields have the given values."""

    kind: str
    where: dict[str, Any] = field(default_factory=dict)

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a timeline record is one of these events."""
        if record["kind"] != self.kind:
            return False
        return all(name in record and record[name] == value for name, value in self.where.items())

    def describe(self) -> str:
        """The event in words: ``tool.started with tool book_table``."""
        if not self.where:
            return self.kind
        return f"{self.kind} with {' and '.join(f'{name} {value}' for name, value in self.where.items())}"

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{kind: ..., <field>: <value>, ...}``, or a kind alone as text."""
        if isinstance(data, str):
            data = {"kind": data}
        return cls(data["kind"], _where(data, data["kind"], path, "kind"))

    def to_value(self) -> Any:
        return {"kind": self.kind, **self.where} if self.where else self.kind


@dataclass(frozen=True, slots=True)
class After:
    """``by_us`` after the ``nth`` event of this kind and these fields, counted from the start of the session."""

    event: str
    by_us: int = 0
    nth: int = 1
    where: dict[str, Any] = field(default_factory=dict)

    @property
    def match(self) -> EventMatch:
        """Which events count."""
        return EventMatch(self.event, self.where)

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{event: ..., by: ..., nth: ..., <field>: <value>, ...}``, or a kind alone as text."""
        if isinstance(data, str):
            data = {"event": data}
        by_us = _duration(data.get("by", 0), (*path, "by"))
        return cls(data["event"], by_us, data.get("nth", 1), _where(data, data["event"], path, "event", "by", "nth"))

    def to_value(self) -> Any:
        data: dict[str, Any] = {"event": self.event, **self.where}
        if self.by_us:
            data["by"] = format_us(self.by_us)
        if self.nth != 1:
            data["nth"] = self.nth
        return data


@dataclass(frozen=True, slots=True)
class EventExpectation:
    """The ``nth`` such event is there; at ``at_us`` exactly, or between two instants, both included, where given."""

    match: EventMatch
    nth: int = 1
    at_us: int | None = None
    between_us: tuple[int, int] | None = None

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{kind: ..., at: ..., between: [..., ...], nth: ..., <field>: <value>, ...}``, or a kind alone."""
        if isinstance(data, str):
            data = {"kind": data}
        at_us = _duration(data["at"], (*path, "at")) if "at" in data else None
        between_us = None
        if "between" in data:
            low, high = (_duration(each, (*path, "between", i)) for i, each in enumerate(data["between"]))
            if low > high:
                raise Fault(
                    (*path, "between"),
                    f"{format_us(low)} is after {format_us(high)}; accepted is the earlier instant first",
                )
            between_us = (low, high)
        match = EventMatch(data["kind"], _where(data, data["kind"], path, "kind", "at", "between", "nth"))
        return cls(match, data.get("nth", 1), at_us, between_us)

    def to_value(self) -> Any:
        data: dict[str, Any] = {"kind": self.match.kind, **self.match.where}
        if self.nth != 1:
            data["nth"] = self.nth
        if self.at_us is not None:
            data["at"] = format_us(self.at_us)
        if self.between_us is not None:
            data["between"] = [format_us(each) for each in self.between_us]
        return data if len(data) > 1 else self.match.kind


def _where(data: Mapping[str, Any], kind: str, path: Path, *own: str) -> dict[str, Any]:
    """The keys that are fields of the event, by their names on the timeline."""
    known = (*KINDS.get(kind, ()), *_ALWAYS)
    where: dict[str, Any] = {}
    for key, value in data.items():
        if key in own:
            continue
        if key not in known and f"{key}_us" in known:
            where[f"{key}_us"] = _duration(value, (*path, key))
        else:
            where[key] = value
    return where


def _duration(value: Any, path: Path) -> int:
    try:
        return as_us(value)
    except DurationError as error:
        raise Fault(path, str(error)) from None


def field_faults(match: EventMatch, kind_path: Path, path: Path) -> Iterator[Fault]:
    """What is wrong about the name of an event or of its fields."""
    if match.kind not in KINDS:
        yield Fault(kind_path, unknown("event", match.kind, KINDS))
        return
    known = (*KINDS[match.kind], "epoch")
    for name in match.where:
        if name not in known:
            yield Fault((*path, name), f"{match.kind} has no such field; accepted is {either(known)}")
