"""Expectations: each gets a verdict that says what was found and what was wanted."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.sim.scenario.expectations import Expectation, check_expectations
from bargein.sim.scenario.model import Scenario

RECORDS = [
    {"t": 0, "seq": 0, "kind": "session.started", "epoch": 0},
    {"t": 500_000, "seq": 1, "kind": "tool.started", "epoch": 1, "call": "t1.0", "tool": "book"},
    {"t": 700_000, "seq": 2, "kind": "context.pushed", "epoch": 1, "role": "assistant", "text": " Let me book."},
    {"t": 900_000, "seq": 3, "kind": "tool.finished", "epoch": 1, "call": "t1.0", "tool": "book"},
    {"t": 950_000, "seq": 4, "kind": "tool.started", "epoch": 2, "call": "t2.0", "tool": "look"},
]
CONTEXT = [
    {"role": "system", "text": "Be brief."},
    {"role": "user", "text": "A table."},
    {"role": "assistant", "text": "Let me", "calls": ["t1.0"]},
    {"role": "tool", "text": "late", "error": "timeout"},
]
TOOLS = {"book": {"runs": 1, "outcomes": ["ok"]}}
METRICS = {"stop_latency_us": 180_000, "rounds": 2, "response_latencies_us": [400_000, 900_000], "dead_air_us": None}


def verdicts(expect: dict[str, Any]) -> list[Expectation]:
    wanted = Scenario.from_dict({"scenario": "x", "tools": {"book": {}, "look": {}}, "expect": expect}).expect
    return check_expectations(
        wanted,
        RECORDS,
        context=CONTEXT,
        heard=[" Let me", "", "Sorry."],
        tools=TOOLS,
        metrics=METRICS,
        violations=["one_reply", "effect_once", "one_reply"],
    )


@pytest.mark.parametrize(
    ("expect", "name", "ok", "message"),
    [
        ({"tool_runs": {"book": 1}}, "tool_runs.book", True, "found 1; wanted 1"),
        ({"tool_runs": {"book": 2}}, "tool_runs.book", False, "found 1; wanted 2"),
        ({"tool_runs": {"look": 0}}, "tool_runs.look", True, "found 0; wanted 0"),
        ({"outcomes": {"book": ["ok"]}}, "outcomes.book", True, 'found ["ok"]; wanted ["ok"]'),
        ({"outcomes": {"book": ["ok", "failed"]}}, "outcomes.book", False, 'found ["ok"]; wanted ["ok", "failed"]'),
        (
            {"events": [{"kind": "tool.started", "tool": "book", "at": "500ms"}]},
            "events[0]",
            True,
            "found tool.started with tool book number 1 at 500ms; wanted at 500ms",
        ),
        (
            {"events": [{"kind": "tool.started", "nth": 2, "at": "500ms"}]},
            "events[0]",
            False,
            "found tool.started number 2 at 950ms; wanted at 500ms",
        ),
        (
            {"events": [{"kind": "tool.started", "nth": 2, "between": ["900ms", "950ms"]}]},
            "events[0]",
            True,
            "found tool.started number 2 at 950ms; wanted between 900ms and 950ms",
        ),
        (
            {"events": [{"kind": "tool.started", "between": ["501ms", "950ms"]}]},
            "events[0]",
            False,
            "found tool.started number 1 at 500ms; wanted between 501ms and 950ms",
        ),
        ({"events": ["tool.started"]}, "events[0]", True, "found tool.started number 1 at 500ms; wanted at any time"),
        (
            {"events": [{"kind": "tool.started", "epoch": 3}]},
            "events[0]",
            False,
            "found 0 of tool.started with epoch 3; wanted at least 1",
        ),
        (
            {"order": ["session.started", {"kind": "tool.finished", "tool": "book"}, "tool.started"]},
            "order",
            True,
            "found all 3 events in this order; wanted the same",
        ),
        (
            {"order": ["tool.finished", {"kind": "tool.started", "tool": "book"}]},
            "order",
            False,
            "found no tool.started with tool book after tool.finished; wanted it as number 2",
        ),
        ({"order": ["stt.final"]}, "order", False, "found no stt.final; wanted it as number 1"),
        ({"counts": {"tool.started": 2}}, "counts.tool.started", True, "found 2; wanted 2"),
        (
            {"counts": {"tool.started": {"min": 3, "max": 4}}},
            "counts.tool.started",
            False,
            "found 2; wanted at least 3 and at most 4",
        ),
        ({"heard": "Let me Sorry."}, "heard", True, 'found "Let me Sorry."; wanted "Let me Sorry."'),
        ({"heard": ["Let me", "Sorry."]}, "heard", True, 'found ["Let me", "Sorry."]; wanted ["Let me", "Sorry."]'),
        ({"heard": ["Let me"]}, "heard", False, 'found ["Let me", "Sorry."]; wanted ["Let me"]'),
        ({"spoken": ["Let me book."]}, "spoken", True, 'found ["Let me book."]; wanted ["Let me book."]'),
        ({"spoken": []}, "spoken", False, 'found ["Let me book."]; wanted []'),
        (
            {"metrics": {"stop_latency": {"max": "180ms"}}},
            "metrics.stop_latency",
            True,
            "found 180ms; wanted at most 180ms",
        ),
        (
            {"metrics": {"stop_latency_us": {"max": "179ms"}}},
            "metrics.stop_latency_us",
            False,
            "found 180ms; wanted at most 179ms",
        ),
        ({"metrics": {"rounds": 3}}, "metrics.rounds", False, "found 2; wanted 3"),
        (
            {"metrics": {"response_latencies": {"max": "800ms"}}},
            "metrics.response_latencies",
            False,
            "found 400ms, 900ms; wanted at most 800ms",
        ),
        (
            {"metrics": {"dead_air": {"max": "1s"}}},
            "metrics.dead_air",
            False,
            "found nothing measured; wanted at most 1s",
        ),
        (
            {"metrics": {"stop_latncy_us": 1}},
            "metrics.stop_latncy_us",
            False,
            'found none; unknown metric "stop_latncy_us"; the nearest known one is "stop_latency_us"',
        ),
        (
            {"violations": ["one_reply", "effect_once"]},
            "violations",
            True,
            'found ["effect_once", "one_reply"]; wanted ["effect_once", "one_reply"]',
        ),
        (
            {"violations": ["one_reply"]},
            "violations",
            False,
            'found ["effect_once", "one_reply"]; wanted ["one_reply"]',
        ),
    ],
)
def test_a_verdict_says_what_was_found_and_wanted(expect: dict[str, Any], name: str, ok: bool, message: str) -> None:
    assert verdicts(expect) == [Expectation(name, ok, message)]


def test_the_context_is_compared_message_by_message_without_the_system_one() -> None:
    assert verdicts(
        {
            "context": [
                {"role": "user", "text": "A table."},
                {"role": "assistant", "text": "Let me book.", "calls": ["t1.0"]},
                {"role": "tool", "error": "timeout", "contains": "soon"},
            ]
        }
    ) == [
        Expectation("context[0]", True, 'found user "A table."; wanted the same'),
        Expectation("context[1]", False, 'found text "Let me"; wanted "Let me book."'),
        Expectation("context[2]", False, 'found text "late"; wanted "soon" in it'),
    ]


def test_a_context_of_another_length_is_told_by_its_roles() -> None:
    assert verdicts({"context": [{"role": "user"}]}) == [
        Expectation("context", False, 'found 3 messages ["user", "assistant", "tool"]; wanted ["user"]')
    ]


def test_nothing_expected_is_nothing_to_judge() -> None:
    assert verdicts({}) == []
