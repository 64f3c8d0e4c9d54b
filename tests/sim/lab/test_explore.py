"""Exploration: it finds what is planted without being told where, and nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from bargein import sim
from bargein.sim.cli import main
from bargein.sim.lab.explore import Options, explore
from bargein.sim.lab.findings import Outcome
from bargein.sim.lab.probes import Prober
from bargein.sim.scenario.places import ScenarioError
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.test_mutants import EXPLORED


@pytest.mark.parametrize("planted", EXPLORED, ids=lambda each: each.name)
def test_exploring_the_built_ins_finds_the_planted_fault(
    planted: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    started = perf_counter()
    planted.plant(monkeypatch)
    tried = runs = 0
    # A quick look at every call before a thorough one: most faults show almost anywhere, some in one call only.
    for budget, name in [(budget, name) for budget in (8, 150) for name in sim.scenarios()]:
        found = explore(sim.load(name), Options(budget=budget))
        caught = [finding for finding in found.findings if finding.invariant in planted.invariants]
        if caught:
            runs += caught[0].after_runs
            seconds = f"{perf_counter() - started:.2f}"
            record_property(
                "planted", [planted.name, str(tried + found.instants), str(runs), seconds, caught[0].invariant, name]
            )
            record_property("mutant", f"{planted.name}: {caught[0].invariant} after {runs} runs, {seconds} s")
            return
        tried += found.instants
        runs += found.runs
    pytest.fail(f"{planted.name}: {runs} runs found none of {planted.invariants}")


def test_without_a_planted_fault_nothing_is_found() -> None:
    for name in ("barge_in_during_booking", "clip_overtaking", "orphan_replay"):
        options = Options(ties=1, instant_tools=True, hung_tools=True, hang_up=True, depth=2, budget=120)
        found = explore(sim.load(name), options)
        assert (found.findings, found.runs > 100) == ((), True), name


def test_audio_finds_nothing_either() -> None:
    assert explore(sim.load("slow_tool_filler"), Options(level="audio")).ok


def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = explore(sim.load("clip_overtaking"), Options(ties=1, depth=2, budget=400))
    shared = explore(sim.load("clip_overtaking"), Options(ties=1, depth=2, budget=400), workers=2)
    assert alone.to_json() == shared.to_json()


def _tried(monkeypatch: pytest.MonkeyPatch, options: Options) -> list[Outcome]:
    import bargein.sim.lab.explore as module

    seen: list[Outcome] = []
    monkeypatch.setattr(module, "group", lambda outcomes: tuple(seen.extend(outcomes) or ()))
    explore(sim.load("slow_tool_filler"), options)
    return seen


def test_ties_variants_and_hang_ups_multiply_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _tried(monkeypatch, Options(ties=1, hang_up=True, hung_tools=True))
    bases = [(each.variant, each.probe.tie_seed) for each in seen if not each.probe.at_us]
    assert bases == [("", None), ("", 1), ("hung tools", None), ("hung tools", 1)]
    at_us = next(each.probe.at_us for each in seen if each.probe.at_us)
    alike = [(each.probe.hang_up, each.probe.tie_seed) for each in seen if each.probe.at_us == at_us]
    assert alike[:4] == [(False, None), (False, 1), (True, None), (True, 1)]


def test_a_second_interjection_follows_the_course_that_the_first_one_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _tried(monkeypatch, Options(depth=2, budget=300))
    pairs = [each.probe.at_us for each in seen if len(each.probe.at_us) == 2]
    assert len(seen) == 300
    assert len(pairs) == len(dict.fromkeys(pairs)) == 300 - 61
    assert all(first < second for first, second in pairs)
    assert any(second > first and first < 540_000 for first, second in pairs)


def test_the_sample_is_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def sampled(seed: int) -> list[tuple[int, ...]]:
        return [each.probe.at_us for each in _tried(monkeypatch, Options(budget=20, seed=seed))]

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)
    assert len(sampled(1)) == 20


def test_a_model_without_an_answer_is_bad_input(call: Callable[..., dict[str, Any]]) -> None:
    data = call("Hello.")
    del data["llm"]["else"]
    with pytest.raises(ScenarioError, match="no rule fits the request"):
        explore(sim.load(data))


def test_rounds_that_only_fit_in_their_order_are_refused_with_a_hint() -> None:
    data = sim.load("orphan_replay").to_dict()
    del data["llm"][1]["expect_user"]
    data["expect"] = {}
    assert sim.run(data).ok
    with pytest.raises(ScenarioError) as refused:
        explore(sim.load(data))
    assert str(refused.value) == (
        "llm: its rounds give another call in their order than matched to the requests they fit; accepted is "
        "expect_user on the first round of each turn, or llm.rules, which fit wherever the call is cut"
    )


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["final_starts_a_run_of_its_own"].plant(monkeypatch)
    run, left = Prober.run, [150]

    def stop(self: Prober, *args: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return run(self, *args)

    monkeypatch.setattr(Prober, "run", stop)
    found = explore(sim.load("clip_overtaking"), Options(ties=1), out=Path("nowhere"))
    assert (found.stopped, found.ok, found.runs) == (True, False, 102)
    assert [finding.invariant for finding in found.findings] == ["one_reply"]


def test_options_that_cannot_be_are_told_all_at_once() -> None:
    with pytest.raises(ScenarioError) as refused:
        explore(sim.load("slow_tool_filler"), Options("loud", 0, -1, budget=0, grid_us=0))
    assert refused.value.sentences == (
        'level is "loud"; accepted is decision or audio',
        "depth is 0; accepted is 1 or more",
        "ties is -1; accepted is 0 or more",
        "budget is 0; accepted is 1 or more",
        "grid is 0 us; accepted is 1 us or more",
    )


# -- the command ------------------------------------------------------------------------------------------


def _command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["explore", *arguments])
    code = left.value.code
    assert isinstance(code, int)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_prints_one_json_object(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = _command(capsys, "slow_tool_filler", "--json", "--out", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "scenario": "slow_tool_filler",
        "instants": 60,
        "instants_known": 60,
        "runs": 61,
        "stopped": False,
        "violations": [],
        "reproductions": [],
    }
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_how_to_reproduce(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS["cut_one_frame_late"].plant(monkeypatch)
    code, out, _ = _command(capsys, "slow_tool_filler", "--out", str(tmp_path))
    path = tmp_path / "slow_tool_filler.stop_bound.scenario.yaml"
    assert code == 1
    assert f"reproduce      bargein run {path}\n" in out
    assert "stop_bound (safety: something wrong happened)" in out
    assert out.splitlines()[-1].startswith("FAILED: 60 instants, 61 runs, ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["slow_tool_filler", "--grid", "5"], '--grid: "5" is not a duration; accepted is a number with a unit'),
        (["slow_tool_filler", "--level", "x"], 'level is "x"; accepted is decision or audio'),
        (["slow_tool_filler", "--workers", "0"], "--workers is 0; accepted is 1 or more"),
        (["slow_tool_fillr"], 'unknown scenario "slow_tool_fillr"; the nearest known one is "slow_tool_filler"'),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _command(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
