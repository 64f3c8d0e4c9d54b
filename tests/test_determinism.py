"""The promise: one file, one seed, the same bytes - whatever process, hash seed or order of runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from bargein import sim

# The built-ins leave nothing to chance, so this one does, in every model: each random stream is drawn from.
CHANCE: dict[str, Any] = {
    "scenario": "chance",
    "seed": 3,
    "acoustics": {"noise": {"kind": "babble", "snr_db": 25}},
    "stt": {"latency": {"dist": "uniform", "low": "100ms", "high": "300ms"}},
    "tts": {"ttfb": {"dist": "empirical", "values": ["90ms", "150ms", "400ms"]}},
    "tools": {
        "look": {
            "description": "Looks.",
            "parameters": {"type": "object"},
            "latency": {"dist": "lognorm", "median": "800ms", "p95": "2s"},
            "result": "sunny",
        }
    },
    "caller": [{"say": "What is the weather?", "at": "500ms"}],
    "llm": {
        "ttft": {"dist": "uniform", "low": "200ms", "high": "600ms"},
        "rounds": [{"calls": [{"look": {}}, {"look": {"city": "Oslo"}}]}, {"text": "It is sunny."}],
    },
}

CODE = """
import json, sys
from bargein import sim
chance, names = json.loads(sys.argv[1]), sim.scenarios()
if sys.argv[2] == "reversed":
    names = names[::-1]
digests = {name: sim.run(name).digest for name in names}
print(json.dumps({**digests, "chance": sim.run(chance).digest, "ties": sim.run(chance, tie_seed=5).digest}))
"""


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    built_in = {name: sim.run(name).digest for name in sim.scenarios()}
    return {**built_in, "chance": sim.run(CHANCE).digest, "ties": sim.run(CHANCE, tie_seed=5).digest}


def test_the_run_that_is_left_to_chance_draws_from_every_model() -> None:
    first, second = sim.run(CHANCE), sim.run(CHANCE, seed=4)
    assert first.ok
    drawn = {
        "stt": lambda result: result.timeline.of("stt.final")[0]["t"] - result.timeline.of("vad.stopped")[0]["t"],
        "llm": lambda result: result.metrics["llm_ttft_us"],
        "tool": lambda result: result.metrics["tool_duration_us"],
        "ties": lambda result: sim.run(CHANCE, seed=result.seed, tie_seed=5).digest,
    }
    assert [name for name, read in drawn.items() if read(first) == read(second)] == []


@pytest.mark.parametrize("group", range(4))
def test_every_built_in_gives_one_digest_in_twenty_processes_of_different_hash_seeds(
    digests: dict[str, str], group: int
) -> None:
    for number in range(5):
        hash_seed = str(1 + 7919 * (5 * group + number))
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
        order = "reversed" if number % 2 else "sorted"
        ran = subprocess.run(
            [sys.executable, "-c", CODE, json.dumps(CHANCE), order],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        assert json.loads(ran.stdout) == digests, f"PYTHONHASHSEED={hash_seed}"


@pytest.mark.parametrize("name", sim.scenarios())
def test_a_run_leaves_nothing_behind_for_the_next(digests: dict[str, str], name: str) -> None:
    assert sim.run(name).timeline.to_jsonl() == sim.run(name).timeline.to_jsonl()
    assert sim.run(name).digest == digests[name]


# -- seeds ----------------------------------------------------------------------------------------------------------

CALL: dict[str, Any] = {
    "scenario": "lookup",
    "seed": 1,
    "tools": {
        "look": {
            "description": "Looks.",
            "parameters": {"type": "object"},
            "latency": {"dist": "uniform", "low": "100ms", "high": "3s"},
            "result": "sunny",
        }
    },
    "caller": [{"say": "What is the weather?", "at": "500ms"}],
    "llm": [{"calls": [{"look": {}}]}, {"text": "It is sunny."}],
}


def test_the_seed_moves_what_is_drawn_and_nothing_before_it() -> None:
    first, second = sim.run(CALL), sim.run(CALL, seed=2)
    assert first.digest != second.digest
    started = first.timeline.of("tool.started")[0]["seq"]
    assert first.records[: started + 1] == second.records[: started + 1]
    assert first.timeline.of("tool.finished")[0]["t"] != second.timeline.of("tool.finished")[0]["t"]
    assert (first.ok, second.ok) == (True, True)


def test_the_seed_given_is_the_seed_written_in_the_file() -> None:
    assert sim.run(CALL, seed=2).digest == sim.run({**CALL, "seed": 2}).digest
    assert sim.run(CALL, seed=1).digest == sim.run(CALL).digest


@pytest.mark.parametrize("name", ["barge_in_during_booking", "parallel_lookups"])
def test_a_scenario_without_chance_is_the_same_for_every_seed(digests: dict[str, str], name: str) -> None:
    assert {sim.run(name, seed=seed).digest for seed in range(5)} == {digests[name]}


def test_a_tool_that_is_never_called_leaves_every_draw_alone() -> None:
    other = {**CALL["tools"]["look"], "description": "Books."}
    more = {**CALL, "tools": {"book": other, **CALL["tools"]}}

    def instants(scenario: dict[str, Any]) -> list[tuple[int, str]]:
        return [(record["t"], record["kind"]) for record in sim.run(scenario).records]

    assert instants(more) == instants(CALL)


# Two lookups of one latency land on one instant: the written order is that of their start, a tie seed shuffles it.
TIED: dict[str, Any] = {
    **CALL,
    "tools": {name: {**CALL["tools"]["look"], "latency": "1s"} for name in ("first", "second")},
    "llm": [{"calls": [{"first": {}}, {"second": {}}]}, {"text": "It is sunny."}],
}


def finishing_order(tie_seed: int | None) -> tuple[str, ...]:
    return tuple(record["tool"] for record in sim.run(TIED, tie_seed=tie_seed).timeline.of("tool.finished"))


def test_a_tie_seed_tries_a_race_both_ways_round_and_the_same_one_always_the_same_way() -> None:
    assert finishing_order(None) == ("first", "second")
    orders = [finishing_order(seed) for seed in range(12)]
    assert set(orders) == {("first", "second"), ("second", "first")}
    assert [finishing_order(seed) for seed in range(12)] == orders


def test_a_tie_seed_moves_no_instant_of_what_does_not_depend_on_the_order() -> None:
    written = sim.run(TIED)
    for seed in range(12):
        tied = sim.run(TIED, tie_seed=seed)
        assert tied.ok, tied.violations
        for kind in ("tool.started", "tool.finished"):
            assert [each["t"] for each in tied.timeline.of(kind)] == [each["t"] for each in written.timeline.of(kind)]


@pytest.mark.parametrize("name", sim.scenarios())
def test_every_built_in_holds_whatever_the_order_of_its_ties(name: str) -> None:
    for seed in range(6):
        result = sim.run(name, tie_seed=seed)
        assert result.violations == []
        assert result.digest == sim.run(name, tie_seed=seed).digest


@pytest.mark.parametrize("name", sim.scenarios())
def test_the_timeline_holds_no_float(name: str) -> None:
    def floats(value: object) -> bool:
        if isinstance(value, dict):
            return any(map(floats, value.values()))
        return any(map(floats, value)) if isinstance(value, list | tuple) else isinstance(value, float)

    assert not any(map(floats, sim.run(name).records))
