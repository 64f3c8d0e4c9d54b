"""Shrinking and saving: what is left of a failing call still fails, from its file, in a fresh scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from bargein import sim
from bargein.sim.lab.explore import Options, explore
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.probes import Probe
from bargein.sim.lab.reproductions import Case, fails_alike
from bargein.sim.lab.shrink import shrink
from tests.mutants import stages
from tests.mutants.catalogue import MUTANTS

assert stages

SPOKEN_TWICE = Violation("one_reply", 0, "", 0)


def test_everything_that_the_failure_does_not_need_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["final_starts_a_run_of_its_own"].plant(monkeypatch)
    small = shrink(Case(sim.load("slow_tool_filler"), Probe(())), SPOKEN_TWICE)
    assert small.scenario.to_dict() == {
        "scenario": "slow_tool_filler",
        "seed": 5,
        "caller": [{"say": "Is", "at": "500ms"}],
        "llm": {"rules": [{"when": {}}]},
    }


def test_needless_interjections_tie_seeds_and_words_go(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["final_starts_a_run_of_its_own"].plant(monkeypatch)
    case = Case(sim.load("slow_tool_filler"), Probe((2_000_000, 3_000_000), tie_seed=3, hang_up=True))
    assert shrink(case, SPOKEN_TWICE).probe == Probe(())


def test_the_interjection_moves_along_with_the_event_it_was_found_at(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["speech_stage_not_told_of_the_interruption"].plant(monkeypatch)
    case = Case(sim.load("barge_in_during_booking"), Probe((3_450_000,)))
    small = shrink(case, Violation("deadlock", 0, "", 0))
    assert small.scenario.to_dict()["caller"] == [{"say": "A", "at": "500ms"}]
    assert small.probe.at_us == (1_470_000,)  # the line before it has lost its words, and the instant has moved


def test_shrinking_stops_when_its_runs_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["final_starts_a_run_of_its_own"].plant(monkeypatch)
    case = Case(sim.load("slow_tool_filler"), Probe(()))
    assert len(shrink(case, SPOKEN_TWICE, max_runs=2).scenario.to_dict()) > 4


def test_a_crash_has_to_be_the_same_exception() -> None:
    wanted = Violation("crash", 0, "ValueError: one", 0)
    assert fails_alike([Violation("crash", 5, "ValueError: two", 1)], wanted)
    assert not fails_alike([Violation("crash", 5, "KeyError: one", 1)], wanted)
    assert not fails_alike([Violation("stop_bound", 5, "ValueError: one", 1)], wanted)


@pytest.mark.parametrize("mutant", ["cut_one_frame_late", "answer_overtakes_a_clip", "stale_audio_after_the_cut"])
def test_the_saved_file_fails_in_the_same_way_and_holds_without_the_fault(
    mutant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        MUTANTS[mutant].plant(patch)
        found = explore(sim.load("clip_overtaking"), Options(budget=140), out=tmp_path)
        assert found.findings
        for finding in found.findings:
            small = finding.reproduction
            assert small is not None
            assert small.confirmed
            assert small.command == f"bargein run {small.path}"
            result = sim.run(small.path)
            assert finding.invariant in [each.invariant for each in result.violations]
    for finding in found.findings:
        assert finding.reproduction is not None
        assert sim.run(finding.reproduction.path).ok
