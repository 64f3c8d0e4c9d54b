"""Rounds in order become rules that fit the same requests; a list that cannot is refused with a hint."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.lab.matching import matched
from bargein.sim.lab.probes import Prober
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.model import Round, Rule, When, dump
from bargein.sim.scenario.places import ScenarioError

HELLO = {"say": "Hello there.", "at": "100ms"}
BYE = {"say": "Bye then.", "at": "5s"}


def test_each_turn_answers_what_its_first_round_expects_or_what_the_caller_says_in_its_place() -> None:
    rounds = [{"calls": [{"look": {}}]}, {"text": "Found."}, {"expect_user": "Bye", "text": "Goodbye."}]
    scenario = sim.load(
        {"scenario": "s", "tools": {"look": {}}, "caller": [HELLO, BYE], "llm": rounds},
    )
    closing = Round(text="All right.")
    assert matched(scenario).llm.rules == (
        Rule(When(user="Hello there.", round=1), scenario.llm.rounds[0]),
        Rule(When(user="Hello there.", round=2), Round(text="Found.")),
        Rule(When(user="Hello there."), closing),
        Rule(When(user="Bye", round=1), Round(text="Goodbye.")),
        Rule(When(user="Bye"), closing),
    )
    assert matched(scenario).llm.else_ == closing


def test_a_script_of_rules_is_left_as_it_is() -> None:
    scenario = sim.load("interrupted_booking")
    assert matched(scenario) is scenario


@pytest.mark.parametrize("name", sim.scenarios())
def test_the_call_itself_takes_the_same_course(name: str) -> None:
    plan = Plan(sim.load(name))
    assert Prober(plan).base().digest == sim.run(name).digest


@pytest.mark.parametrize("name", sim.scenarios())
def test_the_matched_scenario_can_be_written_and_loaded(name: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    scenario = matched(sim.load(name))
    (tmp_path / "s.yaml").write_text(dump(scenario))
    assert sim.load(tmp_path / "s.yaml") == scenario


def test_a_turn_that_nobody_asks_for_is_refused_with_a_hint() -> None:
    scenario = sim.load({"scenario": "s", "caller": [HELLO], "llm": [{"text": "One."}, {"text": "Two."}]})
    with pytest.raises(ScenarioError) as refused:
        matched(scenario)
    assert str(refused.value) == (
        "llm[1]: nothing says which words of the caller it answers; accepted is expect_user on the first round of "
        "each turn, or llm.rules, which fit wherever the call is cut"
    )


def test_two_turns_for_the_same_words_are_refused_with_a_hint() -> None:
    again = {"say": "Hello there.", "at": "5s"}
    scenario = sim.load({"scenario": "s", "caller": [HELLO, again], "llm": [{"text": "One."}, {"text": "Two."}]})
    with pytest.raises(ScenarioError) as refused:
        matched(scenario)
    assert str(refused.value) == (
        'llm[1]: it answers "Hello there.", which llm[0] answers already; accepted is expect_user on the first '
        "round of each turn, or llm.rules, which fit wherever the call is cut"
    )
