"""What a sweep varies: lists, grids, distributions, every combination of them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.models.latency import Lognorm
from bargein.sim.lab.sweep.variants import expand, label, read_vary
from bargein.sim.scenario.places import ScenarioError

DELAY = "agent.filler.delay"
LATENCY = "tools.order_status.latency"
LOGNORM = {"dist": "lognorm", "median": "800ms", "p95": "3s"}


def _labels(vary: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [variant.labels for variant in expand(sim.load("slow_tool_filler"), vary)]


def test_every_combination_the_last_key_fastest() -> None:
    assert _labels({DELAY: ["1s", "2s"], LATENCY: ["1s", "never"]}) == [
        ("1s", "1s"),
        ("1s", "never"),
        ("2s", "1s"),
        ("2s", "never"),
    ]


def test_a_grid_has_both_ends() -> None:
    assert _labels({DELAY: {"from": "400ms", "to": "2s", "steps": 3}}) == [("400ms",), ("1.2s",), ("2s",)]
    assert _labels({"agent.max_tool_rounds": {"from": 1, "to": 4, "steps": 4}}) == [(1,), (2,), (3,), (4,)]


def test_a_latency_distribution_is_a_value() -> None:
    (variant,) = expand(sim.load("slow_tool_filler"), {LATENCY: LOGNORM})
    assert variant.labels == ("lognorm(median=800ms, p95=3s)",)
    assert variant.scenario.tools["order_status"].latency == Lognorm(800_000, 3_000_000)


def test_without_values_there_is_the_scenario_itself() -> None:
    scenario = sim.load("slow_tool_filler")
    assert [(each.labels, each.scenario) for each in expand(scenario, {})] == [((), scenario)]


@pytest.mark.parametrize(
    ("vary", "sentence"),
    [
        ({"agent.filler.dely": ["1s"]}, 'unknown key "dely"; the nearest known one is "delay"'),
        ({"tools.order.latency": ["1s"]}, 'tools.order.latency: unknown tool "order"'),
        ({DELAY: []}, f"{DELAY}: no values are given; accepted is one or more"),
        ({DELAY: ["soon"]}, '"soon" is not a duration'),
        (
            {DELAY: {"from": "1s", "to": "2s"}},
            f"{DELAY}: a grid has {{'from': '1s', 'to': '2s'}}; accepted is from, to",
        ),
        ({DELAY: {"from": "1s", "to": "x", "steps": 2}}, f'{DELAY}: "x" is not a duration'),
        ({"seed": range(10_001)}, "the values make 10001 combinations; accepted is up to 10000"),
    ],
)
def test_what_cannot_be_varied_is_one_sentence(vary: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        expand(sim.load("slow_tool_filler"), vary)
    assert len(refused.value.sentences) == 1
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("a.b=1s, 2s", "a.b", ["1s", "2s"]),
        ("a=3", "a", [3]),
        ("a=200ms..2s/10", "a", {"from": "200ms", "to": "2s", "steps": 10}),
        ("a={dist: lognorm, median: 800ms, p95: 3s}, never", "a", [LOGNORM, "never"]),
    ],
)
def test_the_command_lines_form(text: str, path: str, values: Any) -> None:
    assert read_vary(text) == (path, values)


@pytest.mark.parametrize("text", ["a", "=1", "a=", "a= "])
def test_a_form_that_varies_nothing_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="varies nothing; accepted is key=a,b,c or key=from"):
        read_vary(text)


def test_labels_are_short() -> None:
    assert [label(value) for value in ("1s", 3, LOGNORM, ["a", 1])] == [
        "1s",
        3,
        "lognorm(median=800ms, p95=3s)",
        "[a, 1]",
    ]
