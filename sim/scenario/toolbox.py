"""The tools of a scenario: what the model is told of each, and what each run of it does.

Part of the scenario model; ``model`` gathers it. Left out: running; the scripted tool in ``bargein.models`` does, or
one of the packaged applications.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bargein.models.latency import Constant, Latency
from bargein.pipelines.tools.spec import ToolKind, ToolSpec
from bargein.sim.kernel.durations import format_us
from bargein.sim.scenario.codec import ABSENT, Absent, key_of, read_fields, write_fields
from bargein.sim.scenario.places import Path

__all__ = ["Progress", "Tool", "ToolRun"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The tool reports ``text``, ``at_us`` after its start."""

    at_us: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What one run comes to: a result, an error that the tool reports, or a crash; and how long it takes."""

    result: Any = ABSENT
    error: str | None = None
    crash: str | None = None
    latency: Latency | None = None
    progress: tuple[Progress, ...] | None = None

    @property
    def decided(self) -> bool:
        """Whether it says what the run comes to, and not only how long it takes."""
        return self.result is not ABSENT or self.error is not None or self.crash is not None


_OFFER = ("description", "timeout_us", "filler_after_us", "repeatable", "confirm")
"""What a scenario may change about a packaged tool."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        kind: ``read_only`` or ``side_effect``.
        timeout_us, filler_after_us, repeatable, confirm: as the tool engine takes them.
        latency: how long a run takes.
        result: what a run returns; strings in it may hold ``{run}`` and ``{args.NAME}``.
        error: the tool reports this failure instead; ``crash``: it raises.
        results: what single runs come to, in the order in which they start; once they are used up, ``result``,
            ``error`` or ``crash`` where one is given, else the last of them again.
        builtin: the packaged tool that does it instead; `built_in` makes one.
    """

    kind: str = "read_only"
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    timeout_us: int = 5_000_000
    filler_after_us: int | None = 700_000
    repeatable: bool = False
    confirm: bool = False
    latency: Latency = field(default=Constant(100_000))
    result: Any | Absent = ABSENT
    error: str | None = None
    crash: str | None = None
    progress: tuple[Progress, ...] = ()
    results: tuple[ToolRun, ...] = ()
    builtin: str | None = None

    @classmethod
    def built_in(cls, builtin: str) -> Self:
        """A packaged tool as it declares itself; ``dataclasses.replace`` gives it another timeout, say.

        Raises:
            KeyError: there is none of this name.
        """
        from bargein.models.apps.builtin import builtin_specs

        spec = builtin_specs()[builtin]
        return cls(
            str(spec.kind),
            spec.description,
            spec.parameters,
            spec.timeout_us,
            spec.filler_after_us,
            spec.repeatable,
            spec.confirm,
            builtin=builtin,
        )

    @classmethod
    def from_value(cls, data: Mapping[str, Any], path: Path = ()) -> Self:
        """Read the mapping; a packaged tool takes from it only how it is offered."""
        read = read_fields(cls, data, path)
        if read.builtin is None:
            return read
        given = {name: getattr(read, name) for name in _OFFER if key_of(name) in data}
        return replace(cls.built_in(read.builtin), **given)

    def to_value(self) -> Any:
        if self.builtin is None:
            return write_fields(self)
        data: dict[str, Any] = {"builtin": self.builtin}
        packaged = self.built_in(self.builtin)
        for name in _OFFER:
            value = getattr(self, name)
            if value != getattr(packaged, name):
                data[key_of(name)] = format_us(value) if type(value) is int else value
        return data

    def spec(self, name: str) -> ToolSpec:
        """Its declaration under ``name``, as the tool engine takes it."""
        return ToolSpec(
            name,
            self.description,
            self.parameters,
            ToolKind(self.kind),
            self.timeout_us,
            self.filler_after_us,
            self.repeatable,
            self.confirm,
        )

    @property
    def side_effect(self) -> bool:
        """Whether it changes the world."""
        return self.kind == "side_effect"

    def run(self, number: int) -> ToolRun:
        """What the run with this number, from 1, does; every field but the outcome's is filled in."""
        own = ToolRun(self.result, self.error, self.crash)
        if number <= len(self.results):
            chosen = self.results[number - 1]
        elif own.decided or not self.results:
            chosen = ToolRun()
        else:
            chosen = self.results[-1]
        outcome = chosen if chosen.decided else own
        return ToolRun(
            {"ok": True} if not outcome.decided else outcome.result,
            outcome.error,
            outcome.crash,
            chosen.latency or self.latency,
            self.progress if chosen.progress is None else chosen.progress,
        )
