"""A LiveKit AgentSession on the virtual clock: the same call as ours, seen on the same kind of timeline."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bargein import sim
from bargein.sim.kernel.clock import Limits
from bargein.sim.lab.session import run_plan
from bargein.sim.lab.stacks import run_stack
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError

pytest.importorskip("livekit.agents", reason="needs the extra livekit")


def moments(records: list[dict[str, Any]], *kinds: str) -> list[tuple[int, str]]:
    return [(record["t"], record["kind"]) for record in records if record["kind"] in kinds]


def test_it_hears_asks_interrupts_and_speaks_on_the_instants_of_our_own_pipeline() -> None:
    plan = Plan(sim.load("barge_in_during_booking"))
    kinds = ("vad.started", "vad.stopped", "stt.final", "turn.user", "llm.request", "tool.started", "playout.cut")
    theirs = run_stack(plan, "livekit").records
    assert moments(theirs, *kinds) == moments(run_plan(plan).records, *kinds)


def test_it_cuts_on_the_frame_boundary_of_the_decision() -> None:
    timeline = run_stack(Plan(sim.load("barge_in_during_booking")), "livekit").timeline
    assert [(each["t"], each["samples"], each["received"]) for each in timeline.of("playout.cut")] == [
        (4_660_000, 15_040, 21_179)
    ]


def test_parallel_calls_run_together_and_the_answer_is_heard_whole() -> None:
    timeline = run_stack(Plan(sim.load("parallel_lookups")), "livekit").timeline
    assert [each["t"] for each in timeline.of("tool.started")] == [4_190_000] * 3
    assert [each["t"] for each in timeline.of("tool.finished")] == [4_290_000, 4_390_000, 4_490_000]
    assert [(each["t"], each["samples"]) for each in timeline.of("playout.ended")] == [(8_879_938, 59_199)]
    assert timeline.of("session.ended")[0]["reason"] == "quiet"


def test_it_says_the_same_each_time_and_leaves_pythons_time_alone() -> None:
    plan = Plan(sim.load("question_during_a_slow_lookup"))
    real = time.time
    assert run_stack(plan, "livekit").timeline.digest() == run_stack(plan, "livekit").timeline.digest()
    assert time.time is real


def test_a_bound_of_the_clock_ends_it_with_a_report() -> None:
    run = run_stack(Plan(sim.load("parallel_lookups")), "livekit", limits=Limits(events=500))
    assert [each.invariant for each in run.violations] == ["livelock"]


def test_a_tool_that_never_returns_ends_with_the_longest_call() -> None:
    scenario = sim.load("tool_that_never_returns").with_value("session.max_duration", "20s")
    run = run_stack(Plan(scenario), "livekit")
    assert run.records[-1] | {"seq": 0, "epoch": 0} == {
        "t": 30_000_000,
        "seq": 0,
        "kind": "session.ended",
        "epoch": 0,
        "reason": "time_limit",
    }


def test_a_tool_that_hangs_up_lets_the_agent_finish() -> None:
    run = run_stack(Plan(sim.load("farewell_cut_at_hang_up")), "livekit")
    assert run.records[-1]["reason"] == "agent_hung_up"


def test_what_it_does_is_judged() -> None:
    run = run_stack(Plan(sim.load("yes_to_another_question")), "livekit")
    assert [(each.invariant, each.t) for each in run.violations] == [("gate_respected", 1_850_000)]


def test_a_script_without_an_answer_is_a_fault_of_the_file() -> None:
    scenario = sim.load("parallel_lookups").to_dict()
    scenario["llm"] = {"rules": [{"when": {"user": "nothing of the kind"}, "text": "Hi."}]}
    with pytest.raises(ScenarioError, match="parallel_lookups: no rule fits the request of turn 1"):
        run_stack(Plan(sim.load(scenario)), "livekit")
