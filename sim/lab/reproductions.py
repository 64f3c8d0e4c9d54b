"""A failure as a scenario file: saved, loaded again, run again.

Exploration hands over what it found; the file fails under plain ``bargein run``, or under ``sim.run`` where the program
brings layers, which no file holds. Left out: making it small first (``shrink``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from bargein.models.python_tools import Tools
from bargein.sim.lab.findings import Finding, Reproduction
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.matching import matched
from bargein.sim.lab.probes import Probe, interjections
from bargein.sim.lab.session import run_plan
from bargein.sim.report.atomic import write_whole
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.layering import MakeLayers
from bargein.sim.scenario.loading import load
from bargein.sim.scenario.model import Expect, Scenario, dump
from bargein.sim.scenario.places import ScenarioError

__all__ = ["Case", "fails_alike", "save"]


@dataclass(frozen=True, slots=True)
class Case:
    """A call and the probe under which it fails, with the tools and the layers that the program brings."""

    scenario: Scenario
    probe: Probe
    tools: Tools | None = None
    layers: MakeLayers | None = None

    def as_scenario(self) -> Scenario:
        """Both as one scenario, which expects nothing but what it announced to break.

        The order of ties is no part of a scenario; ``--tie-seed`` gives it.
        """
        scenario = matched(self.scenario)
        return replace(
            scenario,
            caller=(*scenario.caller, *interjections(scenario, self.probe)),
            expect=Expect(violations=scenario.expect.violations),
        )


def fails_alike(violations: Sequence[Violation], wanted: Violation) -> bool:
    """Whether one of them breaks the same invariant; a crash has to be one with the same exception."""
    return any(
        each.invariant == wanted.invariant
        and (each.invariant != "crash" or each.message.partition(":")[0] == wanted.message.partition(":")[0])
        for each in violations
    )


def save(case: Case, finding: Finding, folder: Path) -> Reproduction:
    """Write the case into ``folder`` as ``<scenario>.<invariant>.scenario.yaml``, and run the file.

    Raises:
        OSError: it cannot be written.
    """
    tie_seed = case.probe.tie_seed
    wanted = finding.first.violation
    named = replace(case.as_scenario(), scenario=f"{case.scenario.name[:60]}.{finding.invariant}")
    shown = [
        each
        for each in run_plan(Plan(named, case.tools, case.layers), tie_seed=tie_seed).violations
        if fails_alike([each], wanted)
    ]
    message = shown[0].message if shown else wanted.message
    scenario = replace(named, about=f"Breaks {finding.invariant}: {message}"[:500])
    folder.mkdir(parents=True, exist_ok=True)
    for line in scenario.caller:
        if line.wav is not None and scenario.folder is not None:
            copied = folder / line.wav
            if copied.resolve() != (scenario.folder / line.wav).resolve():
                copied.parent.mkdir(parents=True, exist_ok=True)
                write_whole(copied, (scenario.folder / line.wav).read_bytes())
    path = write_whole(folder / f"{scenario.name}.scenario.yaml", dump(scenario).encode())
    command = _command(case, path)
    own = () if case.tools is None else case.tools.specs
    try:
        result = run_plan(Plan(load(path, tools=own), case.tools, case.layers), tie_seed=tie_seed)
        confirmed = fails_alike(result.unexpected_violations, wanted)
    except ScenarioError:
        confirmed = False
    return Reproduction(str(path), command, len(scenario.caller), len(scenario.tools), confirmed)


def _command(case: Case, path: Path) -> str:
    """The line that shows the failure; what only the program has stands in capitals."""
    tie_seed = case.probe.tie_seed
    if case.layers is not None:
        given = "" if case.tools is None else ", tools=TOOLS"
        return f"sim.run({str(path)!r}{given}, layers=LAYERS{'' if tie_seed is None else f', tie_seed={tie_seed}'})"
    command = f"bargein run {quote(str(path))}" + ("" if tie_seed is None else f" --tie-seed {tie_seed}")
    return command + ("" if case.tools is None else " --tools MODULE:ATTRIBUTE")
