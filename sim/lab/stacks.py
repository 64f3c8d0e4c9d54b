"""A scenario run through somebody else's stack: the same caller, script, voice and tools, on the same clock.

``bargein run --stack`` and the benchmarks call it. Only what a framework lets be seen is on the timeline, and only
invariants that can be read from that are judged: its tools, its audio and its turns, but not what it keeps in its
context. Left out: what a scenario expects, which is written for our own pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bargein.models.llm_script import ScriptError
from bargein.models.stacks.surroundings import Surroundings
from bargein.pipelines.tools.orphans import call_digest
from bargein.sim.effects.bus import EffectKind
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.errors import SimulationStopped
from bargein.sim.kernel.timeline import Record, Timeline
from bargein.sim.lab.invariants import INVARIANTS, CheckSettings, ToolFacts, Violation, check
from bargein.sim.scenario.around import surroundings
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError

__all__ = ["JUDGED", "STACKS", "StackRun", "run_stack"]

STACKS = ("livekit",)
"""Frameworks that can be run, by the name of their extra."""

JUDGED = ("effect_once", "playout_order", "gate_respected", "one_reply", "position_true")
"""Invariants that can be read from what a framework shows."""


@dataclass(frozen=True)
class StackRun:
    """One run of a scenario through a stack.

    Attributes:
        plan: what was run.
        stack: through what.
        around: the models, after the run.
        stopped: why the simulation could not go on, or ``None`` when the call came to its end.
    """

    plan: Plan
    stack: str
    around: Surroundings
    stopped: SimulationStopped | None = None

    @property
    def timeline(self) -> Timeline:
        """What happened, as far as the framework lets it be seen."""
        return self.around.timeline

    @cached_property
    def records(self) -> list[Record]:
        """The timeline as records."""
        return list(self.timeline)

    @cached_property
    def violations(self) -> list[Violation]:
        """Which of `JUDGED` do not hold; a simulation that could not go on is the first of them."""
        scenario = self.plan.scenario
        specs = scenario.specs
        calls = [each.payload for each in self.around.bus.log if each.kind is EffectKind.TOOL_CALL]
        settings = CheckSettings(
            fillers=False,
            tools={s.name: ToolFacts(s.side_effect, s.repeatable, s.confirm, s.filler_after_us) for s in specs},
            identities={call.call_id: call_digest(call.tool, call.arguments).hex() for call in calls},
            off=frozenset(INVARIANTS) - frozenset(JUDGED) | frozenset(scenario.invariants.off),
        )
        found = check(self.records, settings)
        if self.stopped is not None:
            name = type(self.stopped).__name__.lower()
            found.insert(0, Violation(name, self.records[-1]["t"], str(self.stopped), len(self.records) - 1))
        return found

    def to_json(self) -> dict[str, Any]:
        """The object that ``bargein run --stack --json`` prints."""
        return {
            "scenario": self.plan.scenario.name,
            "stack": self.stack,
            "digest": self.timeline.digest(),
            "virtual_us": self.timeline.rows[-1][0],
            "events": len(self.timeline),
            "judged": list(JUDGED),
            "violations": [
                {"invariant": each.invariant, "t": each.t, "message": each.message} for each in self.violations
            ],
        }


def run_stack(plan: Plan, stack: str, seed: int | None = None, limits: Limits | None = None) -> StackRun:
    """Run one session of a framework.

    Raises:
        ScenarioError: there is no such stack, it is not installed, the scenario has parts that it cannot run, or its
            script has no answer to a request that was sent.
    """
    hold = _stack(stack)
    around = surroundings(plan, seed, limits)
    stopped = None
    try:
        hold(around)
    except SimulationStopped as report:
        stopped = report
    if isinstance(around.fault, ScriptError):
        raise ScenarioError(f"{plan.scenario.name}: {around.fault.args[0]}")
    if around.fault is not None:
        raise around.fault
    return StackRun(plan, stack, around, stopped)


def _stack(name: str) -> Callable[[Surroundings], None]:
    if name not in STACKS:
        raise ScenarioError(f'there is no stack called "{name}"; accepted is {", ".join(STACKS)}')
    try:
        from bargein.models.stacks.livekit import hold
    except ImportError:
        raise ScenarioError(f"{name} is not installed; accepted is pip install 'bargein[{name}]'") from None
    return hold
