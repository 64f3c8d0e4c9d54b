"""Probes: the same call again, with the caller cutting in at one more instant.

Exploration, the sweeps over interruption instants and the proof that planted faults are found all use these. An
instant matters if something of the agent's activity happens there: each is tried one microsecond before, at and
after. A model that answers by rules goes on sensibly wherever it is cut; a fixed list of rounds is matched to the
requests that its rounds fit. Left out: judging and shrinking (``explore``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bargein.models.llm_script import Choose, by_turns
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.callers import Line

__all__ = ["INTERJECTION", "Probe", "Prober", "instants"]

INTERJECTION = "Stop, stop."
CLOSING = "All right."
"""What a model that has nothing fitting in its script answers."""
_WORLD = ("session.", "caller.")


@dataclass(frozen=True, slots=True)
class Probe:
    """One variation of a call.

    Attributes:
        at_us: instants at which the caller cuts in, in order.
        tie_seed: of the order of ties, or ``None``.
        level: ``decision`` places the barge-in exactly there; ``audio`` lets real speech begin there.
        hang_up: the caller hangs up instead of speaking.
    """

    at_us: tuple[int, ...]
    tie_seed: int | None = None
    level: str = "decision"
    hang_up: bool = False


def instants(records: Sequence[Record]) -> list[int]:
    """Every instant that matters of a run, in order: each event of the agent's, one microsecond either side."""
    found: dict[int, None] = {}
    for record in records:
        if not record["kind"].startswith(_WORLD):
            for at_us in (record["t"] - 1, record["t"], record["t"] + 1):
                if at_us >= 0:
                    found[at_us] = None
    return sorted(found)


class Prober:
    """Runs probes of one scenario.

    Args:
        plan: the scenario, built.
        duration_us: how long the interjected words last at decision level.
    """

    def __init__(self, plan: Plan, duration_us: int = 600_000) -> None:
        self.plan = plan
        self.duration_us = duration_us

    def base(self, tie_seed: int | None = None) -> Result:
        """The call as its scenario has it."""
        return run_plan(self.plan, tie_seed=tie_seed)

    def choose(self) -> Choose | None:
        """How the model answers under probes: by its own rules, or with the rounds that fit."""
        scenario = self.plan.scenario
        if not scenario.llm.rounds:
            return None
        return by_turns(scenario.llm.rounds, [line.say for line in scenario.caller if line.say], CLOSING)

    def lines(self, probe: Probe) -> list[Line]:
        """What the caller does besides the script."""
        if probe.hang_up:
            return [Line(at_us=at_us, hang_up=True) for at_us in probe.at_us]
        for_us = self.duration_us if probe.level == "decision" else None
        return [Line(say=INTERJECTION, at_us=at_us, level=probe.level, for_us=for_us) for at_us in probe.at_us]

    def run(self, probe: Probe, limits: Limits | None = None) -> Result:
        """The call with the probe."""
        return run_plan(
            self.plan, tie_seed=probe.tie_seed, limits=limits, more_lines=self.lines(probe), choose=self.choose()
        )
