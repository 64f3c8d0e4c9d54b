"""The tools of a scenario: what the model is told of each, and what each run of it does.

Part of the scenario model; ``model`` gathers it. Left out: running; the scripted tool in ``bargein.models`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bargein.models.latency import Constant, Latency
from bargein.sim.scenario.codec import ABSENT, Absent

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
