"""What an exploration has found: violations grouped by invariant, with where and how often each shows.

`Exploration` is what ``explore`` returns. Left out: running (``explore``) and the words on a terminal
(``sim.report.exploring``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bargein.sim.lab.invariants import INVARIANTS, Violation
from bargein.sim.lab.probes import Probe

__all__ = ["Exploration", "Failure", "Finding", "Outcome", "Reproduction", "failure_kind", "group"]

_STUCK = ("deadlock", "livelock", "eventstorm")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of an exploration: which variant of the scenario, which probe, what broke, where one may cut in next."""

    variant: str
    probe: Probe
    violations: tuple[Violation, ...]
    instants: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """One violation and the run that showed it."""

    variant: str
    probe: Probe
    violation: Violation


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The smallest scenario found that still fails, saved.

    Attributes:
        path: the file.
        command: the line that shows the failure.
        lines, tools: what is left of caller lines and tools.
        confirmed: whether the file, loaded afresh and run, fails in the same way.
    """

    path: str
    command: str
    lines: int
    tools: int
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One invariant that broke.

    Attributes:
        invariant: its name, or ``crash``, ``deadlock``, ``livelock`` or ``eventstorm``.
        kind: ``safety`` (something wrong happened), ``liveness`` (something right never did), ``stuck`` or ``crash``.
        first: the smallest failure, the one to look at.
        runs: how many runs broke it; ``after_runs``: how many had been made when the first did.
        first_at_us: the earliest instant at which cutting in breaks it; ``None`` where the plain call does.
        windows_us: from and to of each stretch of neighbouring instants that break it.
        flips: whether for some instant it holds in one order of ties and breaks in another.
        reproduction: the saved scenario, if one was asked for.
    """

    invariant: str
    kind: str
    first: Failure
    runs: int
    after_runs: int
    first_at_us: int | None
    windows_us: tuple[tuple[int, int], ...]
    flips: bool
    reproduction: Reproduction | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as ``bargein explore --json`` prints it."""
        probe = self.first.probe
        return {
            "invariant": self.invariant,
            "kind": self.kind,
            "count": self.runs,
            "after_runs": self.after_runs,
            "first_at_us": self.first_at_us,
            "windows_us": [list(window) for window in self.windows_us],
            "flips": self.flips,
            "t": self.first.violation.t,
            "message": self.first.violation.message,
            "variant": self.first.variant,
            "at_us": list(probe.at_us),
            "tie_seed": probe.tie_seed,
            "level": probe.level,
            "hang_up": probe.hang_up,
            "reproduction": None if self.reproduction is None else self.reproduction.command,
            "confirmed": None if self.reproduction is None else self.reproduction.confirmed,
        }


@dataclass(frozen=True, slots=True)
class Exploration:
    """What ``explore`` came to.

    Attributes:
        scenario: its name.
        instants: how many different instants were tried; ``known``: how many there were to try.
        runs: sessions that were run, shrinking left out.
        seconds: real time that they took.
        findings: by invariant, in the order in which they are checked, crashes and stuck sessions first.
        stopped: whether it was broken off; the findings are those of the runs before.
    """

    scenario: str
    instants: int
    known: int
    runs: int
    seconds: float
    findings: tuple[Finding, ...]
    stopped: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing was found, and everything was tried."""
        return not self.findings and not self.stopped

    def to_json(self) -> dict[str, Any]:
        """The object that ``bargein explore --json`` prints; the same for the same exploration."""
        return {
            "scenario": self.scenario,
            "instants": self.instants,
            "instants_known": self.known,
            "runs": self.runs,
            "stopped": self.stopped,
            "violations": [finding.to_json() for finding in self.findings],
            "reproductions": [finding.reproduction.path for finding in self.findings if finding.reproduction],
        }


def failure_kind(invariant: str) -> str:
    """What breaking it means: ``safety``, ``liveness``, ``stuck`` or ``crash``."""
    if invariant in INVARIANTS:
        return str(INVARIANTS[invariant].kind)
    return "stuck" if invariant in _STUCK else "crash"


def group(outcomes: Sequence[Outcome]) -> tuple[Finding, ...]:
    """The failures of these runs, in the order they were made, by invariant."""
    failures: dict[str, list[tuple[int, Failure]]] = {}
    for number, outcome in enumerate(outcomes, start=1):
        seen: dict[str, None] = {}
        for violation in outcome.violations:
            if violation.invariant not in seen:
                seen[violation.invariant] = None
                found = failures.setdefault(violation.invariant, [])
                found.append((number, Failure(outcome.variant, outcome.probe, violation)))
    order = {name: at for at, name in enumerate(("crash", *_STUCK, *INVARIANTS))}
    return tuple(_finding(name, failures[name], outcomes) for name in sorted(failures, key=lambda name: order[name]))


def _finding(name: str, failures: list[tuple[int, Failure]], outcomes: Sequence[Outcome]) -> Finding:
    first_number, _ = failures[0]
    smallest = min((failure for _, failure in failures), key=_size)
    at_us = [failure.probe.at_us[0] for _, failure in failures if failure.probe.at_us]
    return Finding(
        name,
        failure_kind(name),
        smallest,
        len(failures),
        first_number,
        min(at_us) if len(at_us) == len(failures) else None,
        _windows(dict.fromkeys(at_us), outcomes),
        _flips({(failure.variant, failure.probe): None for _, failure in failures}, outcomes),
    )


def _size(failure: Failure) -> tuple[int, bool, bool, bool]:
    """How much one has to know to see it; of equals the first that was found is taken."""
    probe = failure.probe
    return len(probe.at_us), probe.tie_seed is not None, bool(failure.variant), probe.hang_up


def _windows(failing: Mapping[int, None], outcomes: Sequence[Outcome]) -> tuple[tuple[int, int], ...]:
    """Stretches of failing instants that no tried instant between them interrupts."""
    windows: list[tuple[int, int]] = []
    inside = False
    for at_us in sorted({outcome.probe.at_us[0]: None for outcome in outcomes if outcome.probe.at_us}):
        if at_us in failing:
            windows.append((windows.pop()[0] if inside else at_us, at_us))
        inside = at_us in failing
    return tuple(windows)


def _flips(failing: Mapping[tuple[str, Probe], None], outcomes: Sequence[Outcome]) -> bool:
    verdicts: dict[tuple[Any, ...], bool] = {}
    for outcome in outcomes:
        probe = outcome.probe
        key = (outcome.variant, probe.at_us, probe.hang_up)
        fails = (outcome.variant, probe) in failing
        if verdicts.setdefault(key, fails) != fails:
            return True
    return False
