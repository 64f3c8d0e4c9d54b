"""A LiveKit AgentSession on the virtual clock: the same call as ours, seen on the same kind of timeline."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bargein import sim
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.errors import Livelock
from bargein.sim.lab.session import run_plan
from bargein.sim.lab.stacks import run_stack
from bargein.sim.scenario.build import Plan

pytest.importorskip("livekit.agents", reason="needs the extra livekit")


def moments(records: list[dict[str, Any]], *kinds: str) -> list[tuple[int, str]]:
    return [(record["t"], record["kind"]) for record in records if record["kind"] in kinds]


def test_it_hears_asks_interrupts_and_speaks_on_the_instants_of_our_own_pipeline() -> None:
    plan = Plan(sim.load("barge_in_during_booking"))
    kinds = ("vad.started", "vad.stopped", "stt.final", "turn.user", "llm.request", "tool.started", "playout.cut")
    theirs = list(run_stack(plan, "livekit"))
    assert moments(theirs, *kinds) == moments(run_plan(plan).records, *kinds)


def test_it_cuts_on_the_frame_boundary_of_the_decision() -> None:
    timeline = run_stack(Plan(sim.load("barge_in_during_booking")), "livekit")
    assert [(each["t"], each["samples"], each["received"]) for each in timeline.of("playout.cut")] == [
        (4_660_000, 15_040, 21_179)
    ]


def test_parallel_calls_run_together_and_the_answer_is_heard_whole() -> None:
    timeline = run_stack(Plan(sim.load("parallel_lookups")), "livekit")
    assert [each["t"] for each in timeline.of("tool.started")] == [4_190_000] * 3
    assert [each["t"] for each in timeline.of("tool.finished")] == [4_290_000, 4_390_000, 4_490_000]
    assert [(each["t"], each["samples"]) for each in timeline.of("playout.ended")] == [(8_879_938, 59_199)]
    assert timeline.of("session.ended")[0]["reason"] == "quiet"


def test_it_says_the_same_each_time_and_leaves_pythons_time_alone() -> None:
    plan = Plan(sim.load("question_during_a_slow_lookup"))
    real = time.time
    assert run_stack(plan, "livekit").digest() == run_stack(plan, "livekit").digest()
    assert time.time is real


def test_a_bound_of_the_clock_ends_it() -> None:
    with pytest.raises(Livelock):
        run_stack(Plan(sim.load("parallel_lookups")), "livekit", limits=Limits(events=500))
