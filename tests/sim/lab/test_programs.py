"""The identity of a session's program: the hooks that its scenario declares, and what it calls its own ways."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.programs import program_of, specification
from bargein.sim.lab.replays import record, replay
from bargein.sim.scenario.agent_file import read_agent
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.model import Scenario, ScenarioError

CALL: dict[str, Any] = {
    "scenario": "x",
    "tools": {"look": {"description": "Looks."}},
    "caller": [
        {"say": "Hi.", "at": "0s", "level": "decision"},
        {"say": "Bye.", "level": "decision", "after": {"event": "playout.ended", "by": "1s"}},
    ],
    "llm": [{"text": "Hello."}, {"text": "Bye."}],
}
RULES: list[dict[str, Any]] = [
    {"when": {"epoch": 2}, "patch": {"temperature": 0.5}},
    {"deny": "look", "reason": "Closed."},
    {"limit": {"max_bytes": 8}},
    {"when": {"epoch": 9}, "route": "fast"},
]


def scenario(policy_version: str = "", rules: list[dict[str, Any]] | None = None) -> Scenario:
    given: dict[str, Any] = {} if rules is None else {"steering": rules, "models": {"fast": []}}
    return Scenario.from_dict({**CALL, **given, "agent": {"policy_version": policy_version}})


def log_of(made: Scenario) -> EffectLog:
    return EffectLog.from_bytes(record(Plan(made))[1].to_bytes(), "a.log")


def refusals(log: EffectLog, now: Scenario) -> list[str]:
    with pytest.raises(ReplayRefused) as refused:
        replay(log, scenario=now)
    return list(refused.value.sentences)


# -- declared hooks ---------------------------------------------------------------------------------------------------


def test_the_rules_of_a_scenario_are_its_declared_hooks_in_their_order() -> None:
    assert program_of(Plan(scenario(rules=RULES)))["hooks"] == ["patch", "deny:look", "limit", "route:fast"]
    assert program_of(Plan(scenario(rules=RULES[::-1])))["hooks"] == ["route:fast", "limit", "deny:look", "patch"]
    assert program_of(Plan(scenario()))["hooks"] == []


def test_a_log_and_a_checkpoint_name_them() -> None:
    made = scenario(rules=RULES)
    saved = take_checkpoint(Plan(made), When.parse("run.ended"))[2]
    assert log_of(made).header["hooks"] == saved.header["hooks"] == ["patch", "deny:look", "limit", "route:fast"]


def test_a_hook_that_is_not_the_recorded_one_is_refused_by_name() -> None:
    log = log_of(scenario(rules=RULES))
    other = [RULES[0], RULES[2], RULES[1], RULES[3]]
    assert [each for each in refusals(log, scenario(rules=other)) if "hooks" in each] == [
        'a.log: hooks[1]: recorded was "deny:look", found "limit"',
        'a.log: hooks[2]: recorded was "limit", found "deny:look"',
    ]
    fewer = refusals(log, scenario(rules=RULES[:3]))
    assert 'a.log: hooks[3]: recorded was "route:fast", found nothing' in fewer


def test_a_checkpoint_whose_hooks_are_others_is_not_resumed() -> None:
    saved = take_checkpoint(Plan(scenario(rules=RULES)), When.parse("run.ended"))[2]
    saved.header["hooks"] = ["patch", "deny:look", "limit"]
    with pytest.raises(ReplayRefused, match=r'^the checkpoint: hooks\[3\]: recorded was nothing, found "route:fast"$'):
        sim.resume(saved)


# -- what a program calls its own ways --------------------------------------------------------------------------------


def policies(made: Scenario) -> list[str]:
    return [each["policy"] for each in log_of(made).header["programs"].values()]


def test_a_policy_version_is_in_the_hash_of_every_run_and_in_nothing_else() -> None:
    plain, first, second = (log_of(scenario(each)) for each in ("", "v1", "v2"))
    assert len({policies(scenario(each))[0] for each in ("", "v1", "v2")}) == 3
    assert len(set(policies(scenario("v1")))) == 1
    assert len(policies(scenario("v1"))) == 2
    differ = {key for key in first.header if first.header[key] != second.header[key]}
    assert differ == {"scenario", "programs"}
    assert plain.header["result"] == first.header["result"]
    assert sim.run(scenario("v1")).digest == sim.run(scenario()).digest


def test_a_program_that_calls_its_ways_nothing_is_specified_by_its_settings_alone() -> None:
    settings = Plan(scenario()).settings
    assert "policy_version" not in specification(settings)
    assert specification(settings, "v1") == {"policy_version": "v1", **specification(settings)}
    assert scenario().to_dict().get("agent") is None


def test_a_log_of_another_version_is_refused_and_the_version_is_named() -> None:
    told = 'a.log: scenario.agent.policy_version: recorded was "v1", found "v2"'
    assert refusals(log_of(scenario("v1")), scenario("v2")) == [told]
    assert replay(log_of(scenario("v1")), scenario=scenario("v1")).equal


def test_a_log_whose_runs_were_hashed_under_another_version_is_refused() -> None:
    log, other = log_of(scenario("v1")), policies(scenario("v2"))[0]
    log.header["programs"]["t2"]["policy"] = other
    with pytest.raises(ReplayRefused, match=rf"^a\.log: programs\.t2\.policy: recorded was '{other}', found"):
        replay(log)


def test_a_version_cannot_be_changed_in_the_middle_of_a_call() -> None:
    saved = take_checkpoint(Plan(scenario("v1")), When.parse("run.ended"))[2]
    with pytest.raises(ScenarioError, match=r"^agent\.policy_version: it cannot be changed in the middle of a call"):
        sim.resume(saved, set={"agent.policy_version": "v2"})


def test_an_agent_file_may_say_its_version() -> None:
    agent = read_agent('[agent]\nsystem = "Be brief."\npolicy_version = "v3"\n', "a.toml")
    assert agent.block == {"tools": [], "system": "Be brief.", "policy_version": "v3"}
