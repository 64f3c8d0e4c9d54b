"""Profiles: each is a way in which real models go wrong or are slow, laid over a script that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.models import profiles
from bargein.models.profiles import INVENTED, PROFILES, PROMISED
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.verification.loose import LOOSE
from tests.sessions.verification.scripts import SCENARIOS, SHAPES, TURN_US

Events = Callable[..., list[tuple[Any, ...]]]


def _run(name: str, profile: str | None, shape: str = "plain", **keys: Any) -> Any:
    data = SCENARIOS[name](SHAPES[shape])[0]
    llm = data["llm"] if profile is None else {**data["llm"], "profile": profile}
    return sim.run({**data, "llm": llm, **keys})


def _runs(result: Any) -> int:
    return sum(tool["runs"] for tool in result.tools.values())


def test_the_profiles_are_a_closed_set() -> None:
    assert list(PROFILES) == [
        "guessed_dependency",
        "unkept_promise",
        "invented_answer",
        "call_as_text",
        "empty_answer",
        "partial_offload",
        "cold_load",
        "thinking_medium",
    ]


# -- how they go wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_guessed_dependency_is_run_without_complaint_and_the_loose_check_finds_it(shape: str) -> None:
    result = _run("S2", "guessed_dependency", shape)

    calls = [[(call["name"], call["arguments"]) for call in m.get("tool_calls", ())] for m in result.context]
    assert calls[1] == [("get_customer", {"phone": "555-0100"}), ("get_city", {"city_id": 1})]
    assert [r["outcome"] for r in result.records if r["kind"] == "tool.settled"] == ["ok", "ok", "ok"]
    assert LOOSE["S2"](result) == [
        "get_city was asked before get_customer had answered",
        "get_city was asked for a city_id that get_customer did not find",
    ]
    assert result.violations == []


def test_a_guessed_text_is_another_city() -> None:
    llm = [
        {"calls": [{"get_customer": {}}]},
        {"calls": [{"get_weather": {"city": "Izmir", "metric": True}}]},
        {"text": "Sunny."},
    ]
    data = {**SCENARIOS["S1"](SHAPES["plain"])[0], "tools": {"get_customer": {}, "get_weather": {}}}

    result = sim.run({**data, "llm": {"profile": "guessed_dependency", "rounds": llm}})

    assert [call["arguments"] for call in result.context[1]["tool_calls"]] == [{}, {"city": "Rome", "metric": True}]


def test_an_unkept_promise_ends_the_turn_without_a_run() -> None:
    result = _run("S4", "unkept_promise")

    assert _runs(result) == 0
    assert result.heard == [PROMISED]
    assert LOOSE["S4"](result) == ["the forecast was never looked up"]
    assert result.violations == []


def test_a_promise_of_an_earlier_turn_does_not_hold_the_next_one_back() -> None:
    data = SCENARIOS["S4"](SHAPES["plain"])[0]
    later = {"say": "Three, then.", "at": "8s", "level": "decision", "for": "500ms"}
    rounds = [*data["llm"]["rounds"], {"calls": [{"get_forecast": {"days": 3}}]}, {"text": "All sunny."}]

    result = sim.run(
        {**data, "caller": [*data["caller"], later], "llm": {"profile": "unkept_promise", "rounds": rounds}}
    )

    assert result.heard == [PROMISED, "All sunny."]
    assert _runs(result) == 1


@pytest.mark.parametrize(
    ("name", "wrong"), [("S1", "0 cities were looked up; wanted 3"), ("S5", "the order was never looked up")]
)
def test_an_invented_answer_runs_nothing(name: str, wrong: str) -> None:
    result = _run(name, "invented_answer")

    assert _runs(result) == 0
    assert result.heard == [INVENTED]
    assert LOOSE[name](result) == [wrong]
    assert result.violations == []


def test_a_call_as_text_is_spoken_and_never_assembled() -> None:
    result = _run("S5", "call_as_text")

    text = '{"name":"order_status","arguments":{"order":"A-17"}}'
    assert _runs(result) == 0
    assert result.heard == [text]
    assert LOOSE["S5"](result) == [f"a call was read out: {text!r}", "the order was never looked up"]


def test_an_empty_answer_is_no_message_and_is_reported(events: Events) -> None:
    result = _run("S1", "empty_answer")

    assert result.context == [{"role": "user", "text": "What is the weather in the three cities?"}]
    assert events(result, "run.ended") == [(TURN_US + 350_000, "run.ended", "empty", 1)]
    assert LOOSE["S1"](result)[0] == "the caller was given no answer"
    assert result.stopped is None


def test_a_turn_that_ends_early_leaves_the_next_one_its_own_rounds() -> None:
    data = SCENARIOS["S1"](SHAPES["plain"])[0]
    later = {"say": "And a table?", "at": "8s", "level": "decision", "for": "500ms"}
    rounds = [*data["llm"]["rounds"], {"text": "Booked for you."}]

    result = sim.run(
        {**data, "caller": [*data["caller"], later], "llm": {"profile": "invented_answer", "rounds": rounds}}
    )

    assert result.heard == [INVENTED, "Booked for you."]


def test_a_script_that_behaves_is_not_changed_by_a_fault_it_gives_no_room(events: Events) -> None:
    plain, promising = _run("S1", None), _run("S1", "unkept_promise")

    assert promising.digest == plain.digest


# -- how slow they are --------------------------------------------------------------------------------------------


def _first_tokens(result: Any) -> list[int]:
    return [r["time_to_first_token_us"] for r in result.records if r["kind"] == "llm.request_finished"]


def test_partial_offload_says_its_first_token_and_first_sentence_when_reported(events: Events) -> None:
    sentence = " ".join(["word"] * 12) + " end."
    data = SCENARIOS["S1"](SHAPES["plain"])[0]

    result = sim.run({**data, "llm": {"profile": "partial_offload", "rounds": [{"text": sentence}]}})

    assert _first_tokens(result) == [376_000]
    assert [t - TURN_US for t, *_ in events(result, "llm.done")] == [1_660_000]


def test_a_cold_load_delays_the_first_answer_only() -> None:
    seeds = [sim.run(_cold(), seed=seed) for seed in range(20)]

    firsts = [_first_tokens(result) for result in seeds]
    assert all(7_000_000 <= first[0] <= 50_000_000 and first[1] == 350_000 for first in firsts)
    assert len({first[0] for first in firsts}) == 20


def _cold() -> dict[str, Any]:
    data = SCENARIOS["S5"](SHAPES["plain"])[0]
    return {**data, "llm": {**data["llm"], "profile": "cold_load"}}


def test_medium_thinking_is_a_silence_that_no_filler_covers_and_the_metrics_show() -> None:
    result = _run("S1", "thinking_medium")

    assert _first_tokens(result) == [22_000_000, 22_000_000]
    assert [r for r in result.records if r["kind"] == "filler.spoken"] == []
    silence = 2 * 22_000_000 + 560_000  # two requests; the lookups and the way to the ear are the rest
    assert (result.metrics["response_latency_us"], result.metrics["dead_air_us"]) == (silence, silence)


def test_a_rounds_own_pace_stands() -> None:
    data = SCENARIOS["S1"](SHAPES["plain"])[0]

    result = sim.run({**data, "llm": {"profile": "thinking_medium", "rounds": [{"text": "Sunny.", "ttft": "100ms"}]}})

    assert _first_tokens(result) == [100_000]


@pytest.mark.parametrize("wire", ["deepseek", "llamacpp", "anthropic", "openrouter"])
def test_a_budget_that_is_spent_on_thinking_says_nothing_and_is_reported(wire: str, events: Events) -> None:
    data = SCENARIOS["S1"](SHAPES["plain"])[0]
    rounds = [{"reasoning": "Three cities. " * 60, "finish": "length"}]

    result = sim.run({**data, "llm": {"wire": wire, "rounds": rounds}})

    assert result.heard == []
    spent_us = 350_000 + 119 * 20_000  # 120 words
    assert events(result, "run.ended") == [(TURN_US + spent_us, "run.ended", "empty", 1)]
    assert result.violations == []


def test_what_was_measured_elsewhere_is_said_to_be() -> None:
    said = " ".join((profiles.__doc__ or "").split())

    assert "reported elsewhere" in said
    assert "157 ms" in said
    assert "nothing here was measured by this project" in said


# -- in a scenario ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("llm", "sentence"),
    [
        (
            {"profile": "emty_answer", "rounds": [{"text": "Hi."}]},
            'llm.profile: unknown profile "emty_answer"; the nearest known one is "empty_answer"',
        ),
        (
            {"profile": "empty_answer"},
            "llm.profile: empty_answer has no script to change; accepted is rounds, rules or a behaviour",
        ),
        (
            {"profile": "guessed_dependency", "rules": [{"when": {"round": 1}, "text": "Hi."}]},
            "llm.profile: guessed_dependency changes the order of rounds; accepted is guessed_dependency beside rounds",
        ),
    ],
)
def test_a_profile_that_cannot_be_is_one_sentence(llm: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.load({"scenario": "x", "llm": llm})

    assert refused.value.sentences == (sentence,)


def test_a_profile_is_part_of_the_scenario_and_can_be_set() -> None:
    scenario = sim.load("parallel_lookups").with_value("llm", {"rounds": [{"text": "Hi."}], "profile": "cold_load"})

    assert scenario.to_dict()["llm"] == {"rounds": [{"text": "Hi."}], "profile": "cold_load"}


def test_exploring_a_profile_explores_the_model_that_it_makes() -> None:
    data = SCENARIOS["S5"](SHAPES["plain"])[0]

    found = sim.explore({**data, "llm": {**data["llm"], "profile": "invented_answer"}}, budget=5)

    assert found.findings == ()
