"""The smallest call that still fails: everything that a scenario says is tried away, again and again.

Exploration calls it for each finding. A call that lost a line runs to another clock, so the instant of an
interjection is kept, or moved along with the event that it was found at, or looked for around events of that kind.
Left out: proof that nothing smaller exists; it stops where no single step helps, or when its runs are used up.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from bargein.models.llm_script import ScriptError
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.matching import matched
from bargein.sim.lab.probes import Probe, Prober
from bargein.sim.lab.reproductions import Case, fails_alike
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.model import Expect, Scenario
from bargein.sim.scenario.places import Path, ScenarioError

__all__ = ["MAX_RUNS", "shrink"]

MAX_RUNS = 3_000
_LIMITS = Limits(events=200_000, same_instant=10_000)
_ELSEWHERE = 24  # instants of the same kind that are tried where the moved one does not fail
_KEPT = ("scenario", "seed")


def shrink(case: Case, wanted: Violation, max_runs: int = MAX_RUNS) -> Case:
    """The smallest case found that breaks the same invariant.

    Args:
        case: fails; its scenario is not changed.
        wanted: how it fails.
        max_runs: sessions to run at most.

    Returns:
        The case; the one that was given, with its rounds matched, where nothing can go.
    """
    search = _Search(wanted, case, max_runs)
    scenario = matched(case.scenario)
    best = replace(case, scenario=replace(scenario, expect=Expect(violations=scenario.expect.violations)))
    while True:
        smaller = search.simpler_probe(best)
        smaller = search.smaller_scenario(smaller)
        if smaller == best or search.spent:
            return smaller
        best = smaller


class _Search:
    """One shrinking, with its budget of runs."""

    def __init__(self, wanted: Violation, case: Case, max_runs: int) -> None:
        self._wanted = wanted
        self._program = case.tools, case.layers
        self._left = max_runs

    @property
    def spent(self) -> bool:
        return self._left <= 0

    # -- whether a candidate fails ------------------------------------------------------------------------

    def _fails(self, prober: Prober, probe: Probe) -> bool:
        self._left -= 1
        try:
            violations = prober.run(probe, _LIMITS).unexpected_violations
        except (ScenarioError, ScriptError):
            return False
        return fails_alike(violations, self._wanted)

    def _prober(self, scenario: Scenario) -> Prober | None:
        try:
            return Prober(Plan(scenario, *self._program))
        except ScenarioError:
            return None

    # -- the probe ----------------------------------------------------------------------------------------

    def simpler_probe(self, case: Case) -> Case:
        """Fewer interjections, the written order of ties, shorter words."""
        prober = self._prober(case.scenario)
        if prober is None:
            return case
        probe = case.probe
        again = True
        while again and not self.spent:
            again = False
            for simpler in _simpler(probe):
                if self._fails(prober, simpler):
                    probe, again = simpler, True
                    break
        return replace(case, probe=probe)

    # -- the scenario -------------------------------------------------------------------------------------

    def smaller_scenario(self, case: Case) -> Case:
        """One pass over all that the scenario says."""
        data = case.scenario.to_dict()
        anchors = self._anchors(case)
        done: dict[str, None] = {}
        again = True
        while again and not self.spent:
            again = False
            for key, candidate in _smaller(data):
                if self.spent:
                    break
                if key in done:
                    continue
                found = self._still_fails(candidate, case, anchors)
                if found is None:
                    done[key] = None
                    continue
                case, data, again = found, candidate, True
                anchors = self._anchors(case)
                break
        return case

    def _still_fails(self, data: dict[str, Any], case: Case, anchors: list[_Anchor | None]) -> Case | None:
        try:
            scenario = Scenario.from_dict(data, folder=case.scenario.folder, tools=case.scenario.own_tools)
        except ScenarioError:
            return None
        prober = self._prober(scenario)
        if prober is None:
            return None
        for probe in self._places(prober, case.probe, anchors):
            if self._fails(prober, probe):
                return Case(scenario, probe, *self._program)
            if self.spent:
                break
        return None

    # -- where the interjections go -----------------------------------------------------------------------

    def _anchors(self, case: Case) -> list[_Anchor | None]:
        """For each interjection the event it was found at, in the course that the ones before it give."""
        prober = self._prober(case.scenario)
        if prober is None:
            return [None for _ in case.probe.at_us]
        return [
            _anchor(self._records(prober, case.probe, case.probe.at_us[:count]), at_us)
            for count, at_us in enumerate(case.probe.at_us)
        ]

    def _records(self, prober: Prober, probe: Probe, at_us: tuple[int, ...]) -> list[Record]:
        self._left -= 1
        try:
            return prober.run(replace(probe, at_us=at_us, hang_up=False), _LIMITS).records
        except (ScenarioError, ScriptError):
            return []

    def _places(self, prober: Prober, probe: Probe, anchors: list[_Anchor | None]) -> Iterator[Probe]:
        yield probe
        moved: list[int] = []
        records: list[Record] = []
        for anchor, at_us in zip(anchors, probe.at_us, strict=True):
            records = self._records(prober, probe, tuple(moved))
            moved.append(at_us if anchor is None else anchor.find(records, at_us))
        if moved and tuple(moved) != probe.at_us and moved == sorted(moved):
            yield replace(probe, at_us=tuple(moved))
        if anchors and anchors[-1] is not None:
            tried = dict.fromkeys((probe.at_us[-1], moved[-1]))
            for at_us in anchors[-1].all(records)[:_ELSEWHERE]:
                if at_us not in tried and all(at_us >= each for each in moved[:-1]):
                    yield replace(probe, at_us=(*moved[:-1], at_us))


class _Anchor:
    """The nth event of a kind and a distance of at most one microsecond from it."""

    def __init__(self, kind: str, nth: int, offset_us: int) -> None:
        self.kind = kind
        self.nth = nth
        self.offset_us = offset_us

    def all(self, records: list[Record]) -> list[int]:
        """Where it may be in another course of the call."""
        found = (record["t"] + self.offset_us for record in records if record["kind"] == self.kind)
        return list(dict.fromkeys(at_us for at_us in found if at_us >= 0))

    def find(self, records: list[Record], default_us: int) -> int:
        """Where it is in another course of the call."""
        seen = 0
        for record in records:
            if record["kind"] == self.kind:
                seen += 1
                if seen == self.nth:
                    return max(0, int(record["t"]) + self.offset_us)
        return default_us


def _anchor(records: list[Record], at_us: int) -> _Anchor | None:
    counts: dict[str, int] = {}
    for record in records:
        kind = record["kind"]
        counts[kind] = counts.get(kind, 0) + 1
        if abs(record["t"] - at_us) <= 1 and not kind.startswith(("session.", "caller.")):
            return _Anchor(kind, counts[kind], at_us - record["t"])
    return None


def _simpler(probe: Probe) -> Iterator[Probe]:
    """Probes that say less, the simplest first."""
    for gone in range(len(probe.at_us)):
        last = gone == len(probe.at_us) - 1
        yield replace(
            probe,
            at_us=(*probe.at_us[:gone], *probe.at_us[gone + 1 :]),
            hang_up=probe.hang_up and not last,
        )
    if probe.tie_seed is not None:
        yield replace(probe, tie_seed=None)
        for tie_seed in range(1, probe.tie_seed):
            yield replace(probe, tie_seed=tie_seed)
    if probe.level == "audio" and probe.at_us and not probe.hang_up:
        yield replace(probe, level="decision")
    if probe.level == "decision" and probe.for_us > 100_000 and probe.at_us:
        yield replace(probe, for_us=max(100_000, probe.for_us // 2))


def _smaller(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Copies of the data that say a little less, the largest steps first, each with a key that names what went."""
    places = sorted(_places_in(data), key=len)
    for path in places:
        if path[0] not in _KEPT:
            yield f"- {path} {_at(data, path)!r}", _without(data, path)
    for path in places:
        value = _at(data, path)
        if path[-1] in ("say", "text", "text_after") and isinstance(value, str):
            words = value.split()
            for fewer in dict.fromkeys((len(words) // 2, len(words) - 1)):
                if fewer:
                    yield f"< {path} {value!r} {fewer}", _with(data, path, " ".join(words[:fewer]))


def _places_in(value: Any, path: Path = ()) -> Iterator[Path]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        here = (*path, key)
        yield here
        yield from _places_in(inner, here)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _without(data: dict[str, Any], path: Path) -> dict[str, Any]:
    copied = deepcopy(data)
    del _at(copied, path[:-1])[path[-1]]
    return copied


def _with(data: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    copied = deepcopy(data)
    _at(copied, path[:-1])[path[-1]] = value
    return copied
