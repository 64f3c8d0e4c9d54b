"""Probes: which instants matter, and what a probe adds as plain caller lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.probes import INTERJECTION, Probe, Prober, instants, interjections
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.callers import Line
from bargein.sim.scenario.moments import After


def test_each_event_of_the_agent_matters_and_one_microsecond_either_side() -> None:
    records: list[dict[str, Any]] = [
        {"t": 0, "kind": "session.started"},
        {"t": 0, "kind": "context.pushed"},
        {"t": 500, "kind": "caller.started"},
        {"t": 1_000, "kind": "turn.user"},
        {"t": 1_001, "kind": "llm.request"},
        {"t": 2_000, "kind": "session.ended"},
    ]
    assert instants(records) == [0, 1, 999, 1_000, 1_001, 1_002]


def test_a_grid_adds_even_instants_to_the_end_of_the_run() -> None:
    records: list[dict[str, Any]] = [{"t": 40, "kind": "turn.user"}, {"t": 100, "kind": "session.ended"}]
    assert instants(records, 50) == [0, 39, 40, 41, 50, 100]


def test_the_interjection_is_decided_exactly_there(call: Callable[..., dict[str, Any]]) -> None:
    prober = Prober(Plan(sim.load(call("Hello, how are you today?"))))
    result = prober.run(Probe((1_000_001,)))
    decided = [(row[0], row[3]) for row in result.timeline.rows if row[1] == "turn.barge_in"]
    assert decided == [(1_000_001, 1_000_001)]


def test_real_speech_begins_there(call: Callable[..., dict[str, Any]]) -> None:
    prober = Prober(Plan(sim.load(call("Hello, how are you today?"))))
    result = prober.run(Probe((1_000_000,), level="audio"))
    spoken = [row for row in result.timeline.rows if row[1] == "caller.started"][-1]
    heard = [row[3] for row in result.timeline.rows if row[1] == "vad.started"]
    assert (spoken[0], spoken[4], spoken[6]) == (1_000_000, INTERJECTION, "audio")
    assert heard == [1_000_000]


def test_a_hang_up_is_a_line_that_says_nothing(call: Callable[..., dict[str, Any]]) -> None:
    scenario = sim.load(call("Hello."))
    assert interjections(scenario, Probe((900_000,), hang_up=True)) == [Line(at_us=900_000, hang_up=True)]


def test_an_interjection_inside_a_line_is_placed_by_the_start_of_that_line() -> None:
    scenario = sim.load("slow_tool_filler")
    (line,) = interjections(scenario, Probe((540_000,)))
    assert (line.at_us, line.after) == (None, After("caller.started", 40_000, 1, {"line": 1}))
    again, other = interjections(scenario, Probe((5_000_000, 5_100_000)))
    assert again.at_us == 5_000_000
    assert other.after == After("caller.started", 100_000, 1, {"line": 2})


def test_an_interjection_ends_where_the_next_fixed_line_begins() -> None:
    scenario = sim.load("slow_tool_filler")
    assert [line.for_us for line in interjections(scenario, Probe((499_000,)))] == [1_000]
    assert [line.for_us for line in interjections(scenario, Probe((5_000_000,)))] == [600_000]


@pytest.mark.parametrize("at_us", [0, 1, 499_999, 500_000, 540_000, 3_500_000])
def test_every_probe_is_a_valid_scenario_with_the_same_course(at_us: int) -> None:
    prober = Prober(Plan(sim.load("slow_tool_filler")))
    probe = Probe((at_us, at_us + 50_000))
    scenario = prober.scenario
    whole = replace(scenario, caller=(*scenario.caller, *interjections(scenario, probe)))
    assert sim.run(whole.to_dict()).digest == prober.run(probe).digest


def test_real_speech_needs_the_mouth_that_says_the_script() -> None:
    prober = Prober(Plan(sim.load("slow_tool_filler")))
    assert [prober.fits(at_us, "audio") for at_us in (0, 600_000, 3_000_000)] == [False, False, True]
    assert prober.fits(600_000, "decision")
