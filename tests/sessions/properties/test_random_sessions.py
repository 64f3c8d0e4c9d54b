"""Random calls, cut into at instants that matter and under permuted ties: no invariant breaks, nothing crashes.

Each example is one scenario; it runs as it is and with each of its interjections, under several tie seeds. A
failure is shrunk by Hypothesis, written to a file and printed as the one line that runs it again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, note, settings

from bargein.sim.cli import main
from bargein.sim.lab.probes import INTERJECTION, instants
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.codec import read_fields
from bargein.sim.scenario.model import After, Line, Scenario, dump
from tests.mutants import engine_memory
from tests.mutants.catalogue import MUTANTS
from tests.sessions.properties.calls import FAMILIES, interjections

assert engine_memory  # enters its planted faults

TIES = (None, 1, 2, 3)
EXAMPLES = 75
SESSIONS = 1 + len(TIES) * 4  # of one example: the call as it is, and four interjections
QUIET = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
)


def _interjection(at_us: int, doing: str) -> Line:
    """Counted from the start, so that the line may fall into another; a file accepts it so as well."""
    after = After("session.started", at_us)
    if doing == "hang_up":
        return Line(after=after, hang_up=True)
    return Line(say=INTERJECTION, after=after, level=doing, for_us=600_000 if doing == "decision" else None)


def _must_hold(result: Result, more: Line | None, folder: Path) -> None:
    if not result.violations and result.stopped is None:
        return
    scenario = result.scenario
    if more is not None:
        scenario = replace(scenario, caller=(*scenario.caller, more))
    path = folder / "random_call.scenario.yaml"
    path.write_text(dump(scenario))
    ties = "" if result.tie_seed is None else f" --tie-seed {result.tie_seed}"
    note(f"bargein run {path}{ties}")
    raise AssertionError([f"{each.invariant} at {each.t} us: {each.message}" for each in result.violations])


def _explore(family: str, folder: Path) -> int:
    """Run the family; returns how many sessions held."""
    sessions = 0

    @QUIET
    @given(data=FAMILIES[family], cuts=interjections())
    def each(data: dict[str, Any], cuts: list[tuple[int, str]]) -> None:
        nonlocal sessions
        plan = Plan(read_fields(Scenario, data))  # unchecked, which is most of the time; see the test of that below
        base = run_plan(plan)
        _must_hold(base, None, folder)
        sessions += 1
        matters = instants(base.records) or [0]
        for place, doing in cuts:
            more = _interjection(matters[place * len(matters) // 1000], doing)
            for tie_seed in TIES:
                _must_hold(run_plan(plan, tie_seed=tie_seed, more_lines=(more,)), more, folder)
                sessions += 1

    each()
    return sessions


@pytest.mark.parametrize("family", FAMILIES)
def test_no_random_session_breaks_an_invariant(family: str, tmp_path: Path) -> None:
    assert _explore(family, tmp_path) >= EXAMPLES * SESSIONS


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_drawn_is_a_scenario_as_a_file_may_hold_it(family: str) -> None:
    @settings(QUIET, max_examples=15)
    @given(data=FAMILIES[family])
    def each(data: dict[str, Any]) -> None:
        assert Scenario.from_dict(data) == read_fields(Scenario, data)

    each()


def test_five_thousand_sessions_are_run() -> None:
    assert len(FAMILIES) * EXAMPLES * SESSIONS >= 5000


def test_a_failure_is_shrunk_to_a_file_and_one_line_that_runs_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS["repeat_is_not_checked"].plant(monkeypatch)

    with pytest.raises(AssertionError, match="effect_once") as caught:
        _explore("wanting", tmp_path)

    (command,) = (each for each in caught.value.__notes__ if each.startswith("bargein run"))
    assert len(Path(command.split()[2]).read_text().splitlines()) < 60
    ran = CliRunner().invoke(main, command.split()[1:])
    assert ran.exit_code == 1
    assert "effect_once" in ran.output
