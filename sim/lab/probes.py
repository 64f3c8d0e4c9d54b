"""Probes: the same call again, with the caller cutting in at one more instant.

Exploration, its shrinking and the proof that planted faults are found use these. An instant matters if something of
the agent's activity happens there: each is tried one microsecond before, at and after. What a probe adds is plain
caller lines, so that any of them can be saved as a scenario. Left out: judging (``explore``) and making a call
smaller (``shrink``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bargein.models.llm_script import Choose, by_rules
from bargein.models.voice import speak
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.matching import matched
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.callers import Line
from bargein.sim.scenario.calls import line_duration_us
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.moments import After

__all__ = ["INTERJECTION", "LEVELS", "Probe", "Prober", "instants", "interjections"]

INTERJECTION = "Stop, stop."
LEVELS = ("decision", "audio")
_LASTS_US = 600_000  # about what the words take to say
_WORLD = ("session.", "caller.")


@dataclass(frozen=True, slots=True)
class Probe:
    """One variation of a call.

    Attributes:
        at_us: instants at which the caller cuts in, in order.
        tie_seed: of the order of ties, or ``None``.
        level: ``decision`` places the barge-in exactly there; ``audio`` lets real speech begin there.
        hang_up: the caller hangs up instead of speaking, at the last of the instants.
        for_us: how long interjected words last at decision level.
    """

    at_us: tuple[int, ...]
    tie_seed: int | None = None
    level: str = "decision"
    hang_up: bool = False
    for_us: int = _LASTS_US


def instants(records: Sequence[Record], grid_us: int | None = None) -> list[int]:
    """Every instant that matters of a run, in order: each event of the agent's, one microsecond either side.

    Args:
        grid_us: this often, from 0 to the end of the run, there is one more.
    """
    found: dict[int, None] = {}
    for record in records:
        if not record["kind"].startswith(_WORLD):
            for at_us in (record["t"] - 1, record["t"], record["t"] + 1):
                if at_us >= 0:
                    found[at_us] = None
    if grid_us is not None and records:
        found.update(dict.fromkeys(range(0, records[-1]["t"] + 1, grid_us)))
    return sorted(found)


def interjections(scenario: Scenario, probe: Probe) -> list[Line]:
    """What the caller does in a probe besides the script, as lines that may follow it in the file.

    A line inside another one is placed by the start of that one, since a file has no two lines at fixed instants
    that overlap; a line at decision level ends where the next one at a fixed instant begins.
    """
    lead_us = samples_to_us(speak("caller", INTERJECTION).words[0].start) if probe.level == "audio" else 0
    spoken = list(_fixed(scenario))
    lines: list[Line] = []
    for position, at_us in enumerate(probe.at_us):
        if probe.hang_up and position == len(probe.at_us) - 1:
            lines.append(Line(at_us=at_us, hang_up=True))
            continue
        begin_us = max(0, at_us - lead_us)
        line = Line(say=INTERJECTION, at_us=begin_us, level=probe.level)
        if probe.level == "decision":
            ahead = [start_us - begin_us for start_us, _, _ in spoken if start_us > begin_us]
            line = replace(line, for_us=min([probe.for_us, *ahead]))
        number = len(scenario.caller) + len(lines) + 1
        lasts_us = line_duration_us(line, None) or 0
        around = [(start_us, of) for start_us, end_us, of in spoken if start_us <= begin_us < end_us]
        if around:
            start_us, of = around[-1]
            line = replace(line, at_us=None, after=After("caller.started", begin_us - start_us, 1, {"line": of}))
        spoken.append((begin_us, begin_us + lasts_us, number))
        lines.append(line)
    return lines


def _fixed(scenario: Scenario) -> Iterator[tuple[int, int, int]]:
    """Beginning, end and number of each line that is spoken at a fixed instant."""
    for number, line in enumerate(scenario.caller, start=1):
        if line.at_us is not None and line.speaks:
            lasts_us = line_duration_us(line, scenario.folder)
            yield line.at_us, line.at_us + (lasts_us or 0), number


class Prober:
    """Runs probes of one scenario.

    Args:
        plan: the scenario, built.
        seed: of the random streams; the scenario's own where none is given.

    Attributes:
        scenario: what is run: the plan's, its rounds matched to the requests they fit.

    Raises:
        ScenarioError: its rounds cannot be matched (`matching.matched`).
    """

    def __init__(self, plan: Plan, seed: int | None = None) -> None:
        self.plan = plan
        self.seed = seed
        self.scenario = matched(plan.scenario)
        llm = self.scenario.llm
        self._choose: Choose | None = None if self.scenario is plan.scenario else by_rules(llm.rules, llm.else_)

    def base(self, tie_seed: int | None = None) -> Result:
        """The call as its scenario has it."""
        return self.run(Probe((), tie_seed))

    def fits(self, at_us: int, level: str) -> bool:
        """Whether a caller could begin to speak there: real speech needs the mouth that says the script."""
        if level == "decision":
            return True
        lasts_us = samples_to_us(speak("caller", INTERJECTION).length)
        return all(at_us + lasts_us <= start_us or at_us >= end_us for start_us, end_us, _ in _fixed(self.scenario))

    def run(self, probe: Probe, limits: Limits | None = None) -> Result:
        """The call with the probe."""
        lines = interjections(self.scenario, probe) if probe.at_us else ()
        return run_plan(self.plan, self.seed, probe.tie_seed, limits, lines, self._choose)
