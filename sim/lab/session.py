"""Running one session of a scenario.

`run_plan` opens a session, lets it run and wraps what came of it. A script that has no answer to a request that was
really sent is a fault of the file, named with its place. A stage that raises has a fault of its own: the run is void
and says so, as a finding, because exploring may have led there. Left out: many sessions (``explore``, ``sweep``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bargein.models.llm_script import Choose, ScriptError
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.errors import SimulationStopped, VoidRun
from bargein.sim.lab.result import Result
from bargein.sim.scenario.build import Opened, Plan
from bargein.sim.scenario.callers import Line
from bargein.sim.scenario.places import Fault, ScenarioError
from bargein.sim.scenario.setting import parse_path

__all__ = ["judge", "run_plan"]


def run_plan(
    plan: Plan,
    seed: int | None = None,
    tie_seed: int | None = None,
    limits: Limits | None = None,
    more_lines: Sequence[Line] = (),
    choose: Choose | None = None,
) -> Result:
    """Run one session.

    Args:
        seed: of its random streams; the scenario's own where none is given.
        tie_seed: permutes what falls on the same instant; ``None`` keeps the written order.
        more_lines: what the caller says besides the script.
        choose: how the model answers, in place of its script.

    Raises:
        ScenarioError: the script has no answer to a request that was sent.
    """
    opened = plan.open(seed, tie_seed, limits, more_lines, choose)
    return judge(plan, opened, opened.session.run, seed, tie_seed)


def judge(plan: Plan, opened: Opened, go: Callable[[], object], seed: int | None, tie_seed: int | None) -> Result:
    """Let an opened session run, by ``go``, and wrap what came of it.

    Raises:
        ScenarioError: the script has no answer to a request that was sent.
        ReplayRefused: it is a replay, and what runs is not what was recorded.
    """
    scenario = plan.scenario
    stopped: SimulationStopped | VoidRun | None = None
    try:
        go()
    except SimulationStopped as report:
        stopped = report
    except ScriptError as error:
        problem, key = error.args
        raise scenario.place.error([Fault(parse_path(key) if key else (), problem)]) from None
    except (ReplayRefused, ScenarioError):
        raise
    except Exception as error:
        stopped = VoidRun(f"{type(error).__name__}: {error}")
        stopped.__cause__ = error
    return Result(scenario, scenario.seed if seed is None else seed, tie_seed, opened, stopped, tuple(plan.notes))
