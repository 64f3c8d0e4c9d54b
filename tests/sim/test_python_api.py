"""bargein from Python: the names that users import, and what each takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bargein import sim
from bargein.sim.lab.result import Result
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError

HELLO: dict[str, Any] = {
    "scenario": "hello",
    "caller": [{"say": "Hello?", "at": "500ms"}],
    "llm": [{"text": "Hello there."}],
}


def test_a_built_in_runs_by_name() -> None:
    result = sim.run("barge_in_during_booking")
    assert isinstance(result, Result)
    assert (result.ok, result.seed, result.tie_seed, result.stopped) == (True, 7, None, None)
    assert result.heard[0] == "Let me book"
    assert result.tools["book_table"]["runs"] == 2


def test_a_scenario_may_be_a_name_a_file_plain_data_or_itself(tmp_path: Path) -> None:
    file = tmp_path / "hello.scenario.yaml"
    file.write_text("scenario: hello\ncaller: [{say: 'Hello?', at: 500ms}]\nllm: [{text: Hello there.}]\n")
    scenario = sim.load(HELLO)
    assert isinstance(scenario, Scenario)
    assert sim.load(scenario) is scenario
    digests = {sim.run(each).digest for each in (HELLO, scenario, file, str(file))}
    assert len(digests) == 1
    assert sim.load("slow_tool_filler").name == "slow_tool_filler"


def test_running_changes_nothing_of_the_data_that_was_given() -> None:
    given = {**HELLO, "caller": [dict(HELLO["caller"][0])]}
    sim.run(given, set={"caller.0.at": "600ms"})
    assert given == HELLO


def test_values_are_set_by_dotted_path_before_the_run() -> None:
    late = sim.run(HELLO, set={"caller.0.at": "600ms", "seed": 3})
    assert late.timeline.of("caller.started")[0]["t"] == 600_000
    assert late.seed == 3
    assert sim.run(HELLO, set={}).timeline.of("caller.started")[0]["t"] == 500_000


def test_a_seed_given_to_run_wins_over_the_scenarios() -> None:
    assert sim.run({**HELLO, "seed": 4}).seed == 4
    assert sim.run({**HELLO, "seed": 4}, seed=5).seed == 5
    assert sim.run(HELLO, tie_seed=6).tie_seed == 6


@pytest.mark.parametrize(
    "bad", ["nope", {"scenario": "x", "caller": 5}, {}, Path("nope.yaml")], ids=["name", "data", "empty", "file"]
)
def test_what_cannot_be_used_is_one_kind_of_error_with_sentences(bad: Any) -> None:
    with pytest.raises(ScenarioError) as caught:
        sim.run(bad)
    assert caught.value.sentences
    assert all(isinstance(sentence, str) and "\n" not in sentence for sentence in caught.value.sentences)


@pytest.mark.parametrize("seed", [True, 1.0, "3", np.int64(3)])
@pytest.mark.parametrize("name", ["seed", "tie_seed"])
def test_a_seed_that_is_no_whole_number_is_refused_before_a_log_holds_it(name: str, seed: Any, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as problem:
        sim.run("orphan_replay", record=tmp_path / "a.log", **{name: seed})
    assert problem.value.sentences == (f"{name}: found {seed!r}; accepted is a whole number",)
    assert list(tmp_path.iterdir()) == []


def test_the_built_ins_are_named_in_order_and_each_loads_by_its_name() -> None:
    names = sim.scenarios()
    assert list(names) == sorted(names)
    assert "barge_in_during_booking" in names
    assert [sim.load(name).name for name in names] == list(names)


def test_the_module_offers_what_it_says() -> None:
    assert {"load", "run", "scenarios"} <= set(sim.__all__)
    assert all(hasattr(sim, name) for name in sim.__all__)


def test_the_context_the_effects_and_the_json_of_a_result_are_plain_data() -> None:
    result = sim.run(HELLO)
    assert [message["role"] for message in result.context][-2:] == ["user", "assistant"]
    assert result.context[-1]["text"] == "Hello there."
    assert [(effect["kind"], effect["status"]) for effect in result.effects] == [("completion", "ok")]
    assert result.to_json()["digest"] == result.digest
    assert repr(result) == f"<hello, seed {result.seed}: ok, {len(result.records)} events, {result.digest[:12]}>"
