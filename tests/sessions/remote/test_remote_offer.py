"""What a remote agent declares and offers, and how the session answers what it cannot take."""

from __future__ import annotations

import json

import pytest

from bargein.pipelines.tools.spec import ToolKind
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan

BOOK = {"kind": "side_effect", "latency": "1s", "result": "BK-1"}
LOOK = {"latency": "1s", "result": "sunny"}
SAY = {"text": "So be it."}


def offers(result):
    return [(record["t"] // 1_000, record["tools"]) for record in result.timeline.of("tools.offered")]


def refusals(result):
    return [(record["tool"], record["reason"]) for record in result.timeline.of("link.refused")]


def tool_counts(result):
    """How many tools each request was sent with."""
    return [(record["t"] // 1_000, record["tools"]) for record in result.timeline.of("llm.request")]


def test_declared_tools_join_the_offer_when_the_session_is_accepted(run):
    remote = {"accept_at": "3s"}
    caller = [{"say": "And now?", "at": "9s", "level": "decision", "for": "1s"}]
    result = run([SAY, SAY], {"look": LOOK}, tools={"here": LOOK}, remote=remote, caller=caller)
    assert offers(result) == [(3_100, ["here", "look"])]
    assert tool_counts(result) == [(1_000, 1), (10_000, 2)]


def test_a_declaration_carries_every_switch(run):
    tools = {
        "move": {**BOOK, "timeout": "30s", "filler_after": None, "confirm": True},
        "press": {**BOOK, "timeout": "250ms", "filler_after": "100ms", "repeatable": True},
        "look": LOOK,
    }
    result = run([SAY], tools)
    assert offers(result) == [(100, ["confirm_pending", "look", "move", "press"])]
    registry = result.opened.session.engine.registry
    facts = {
        spec.name: (spec.kind, spec.timeout_us, spec.filler_after_us, spec.repeatable, spec.confirm)
        for spec in registry.specs()
        if spec.name in tools
    }
    assert facts == {
        "look": (ToolKind.READ_ONLY, 5_000_000, 700_000, False, False),
        "move": (ToolKind.SIDE_EFFECT, 30_000_000, None, False, True),
        "press": (ToolKind.SIDE_EFFECT, 250_000, 100_000, True, False),
    }


def test_a_timeout_of_more_than_thirty_seconds_is_refused_with_the_limit(run):
    result = run([SAY], {"slow": {**LOOK, "timeout": "30001ms"}, "look": LOOK})
    reason = "timeout_ms: 30001 is too long; accepted is up to 30000"
    assert refusals(result) == [("slow", reason)]
    assert result.opened.remote.errors == [{"type": "error", "stage": "agent_link", "message": reason, "tool": "slow"}]
    assert offers(result) == [(100, ["look"])]


def test_a_name_that_is_taken_is_refused_and_the_local_tool_stays(run):
    result = run(
        [{"calls": [{"look": {}}]}, SAY], {"look": LOOK, "book": BOOK}, tools={"look": {**LOOK, "result": "local"}}
    )
    reason = "a tool named look is registered already; choose another name"
    assert refusals(result) == [("look", reason)]
    assert result.opened.remote.errors == [{"type": "error", "stage": "agent_link", "message": reason, "tool": "look"}]
    assert [message["content"] for message in result.context if message["role"] == "tool"] == ["local"]
    assert result.opened.remote.calls == []
    assert offers(result) == [(100, ["book", "look"])]


@pytest.mark.parametrize(("number", "offered"), [(64, 64), (65, 0)])
def test_sixty_four_tools_may_be_declared_and_no_more(run, number, offered):
    result = run([SAY], {f"t{n:02}": LOOK for n in range(number)})
    assert tool_counts(result) == [(1_000, offered)]
    assert refusals(result) == ([] if offered else [("", "65 tools are declared; accepted are up to 64")])


def test_a_schema_that_cannot_be_compiled_is_refused(run):
    broken = {**LOOK, "parameters": {"type": "array"}}
    result = run([SAY], {"broken": broken, "look": LOOK})
    assert [tool for tool, _ in refusals(result)] == ["broken"]
    assert offers(result) == [(100, ["look"])]


def test_the_link_declares_a_gate_like_a_local_tool(run, answers):
    caller = [{"say": "Yes.", "at": "20s", "level": "decision", "for": "1s"}]
    rounds = [{"calls": [{"book": {}}]}, SAY, {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]}, SAY]
    remote = run(rounds, {"book": {**BOOK, "confirm": True}}, caller=caller)
    local = run(rounds, {}, tools={"book": {**BOOK, "confirm": True}}, caller=caller)
    listed = run(rounds, {}, tools={"book": BOOK}, agent={"confirm_tools": ["book"]}, caller=caller)
    outcomes = [[(call, outcome) for _, call, outcome in answers(each)] for each in (remote, local, listed)]
    assert outcomes == [[("t1.0", "confirmation_required"), ("t2.0", "ok")]] * 3
    assert [[m["content"] for m in each.context if m["role"] == "tool"] for each in (remote, local, listed)] == [
        [remote.context[2]["content"], "BK-1"]
    ] * 3


def test_each_session_is_accepted_anew(run):
    plan = Plan(run([SAY], {"look": LOOK}).scenario)
    first, second = (run_plan(plan) for _ in range(2))
    assert offers(first) == offers(second) == [(100, ["look"])]
    assert (first.digest, refusals(second)) == (second.digest, [])


# -- tools.set ------------------------------------------------------------------------------------------------------


def test_a_response_that_was_asked_for_before_keeps_its_offer(run, answers):
    look = {"calls": [{"look": {}}]}
    result = run([look, look, SAY], {"look": LOOK}, remote={"set": [{"at": "1500ms", "offer": []}]})
    assert offers(result) == [(100, ["look"]), (1_600, [])]
    assert answers(result) == [(3_200, "t1.0", "ok"), (4_200, "t1.1", "unknown_tool")]
    assert [call for call, _ in result.opened.remote.calls] == ["t1.0"]
    assert [message["content"] for message in result.context if message["role"] == "tool"][1] == json.dumps(
        {"error": "unknown_tool", "tool": "look", "detail": "there is no tool of this name"}, separators=(",", ":")
    )


def test_a_withheld_call_spends_no_retry_budget_but_counts_as_a_round(run):
    look = {"calls": [{"look": {}}]}
    agent = {"engine": {"max_invalid_rounds": 0}, "max_tool_rounds": 3}
    result = run([look] * 3, {"look": LOOK}, remote={"set": [{"at": "0s", "offer": []}]}, agent=agent)
    assert [record["retries"] for record in result.timeline.of("tool.settled")] == [0, 0, 0]
    assert [record["reason"] for record in result.timeline.of("fallback.spoken")] == ["tool rounds"]


def test_withheld_and_offered_calls_of_one_response_are_answered_in_issue_order(run, answers):
    calls = {"calls": [{"book": {}}, {"look": {}}, {"book": {"n": 2}}]}
    result = run([calls, SAY], {"look": LOOK, "book": BOOK}, remote={"set": [{"at": "0s", "offer": ["look"]}]})
    assert answers(result) == [
        (2_040, "t1.0", "unknown_tool"),
        (2_040, "t1.2", "unknown_tool"),
        (3_240, "t1.1", "ok"),
    ]
    assert [message["call_id"] for message in result.context if message["role"] == "tool"] == ["t1.0", "t1.1", "t1.2"]


def test_local_tools_are_withheld_too_and_the_confirming_call_goes_with_its_tools(run):
    tools = {"book": {**BOOK, "confirm": True}, "here": LOOK}
    remote = {"set": [{"at": "1s", "offer": ["look"]}, {"at": "2s", "offer": ["book"]}]}
    result = run([SAY], {"look": LOOK}, tools=tools, remote=remote)
    assert offers(result) == [
        (100, ["book", "confirm_pending", "here", "look"]),
        (1_100, ["look"]),
        (2_100, ["book", "confirm_pending"]),
    ]


def test_a_speculated_response_is_screened_as_well(run, answers):
    caller = [{"say": "And this.", "after": {"event": "turn.user", "by": "30s"}}]
    result = run(
        [SAY, {"calls": [{"look": {}}], "ttft": "50ms"}, SAY],
        {"look": LOOK},
        caller=caller,
        agent={"speculation": True, "turn": {"min_silence": "1s"}},
        remote={"set": [{"at": "20s", "offer": []}]},
    )
    (committed,) = result.timeline.of("speculation.committed")
    ((settled_ms, _, outcome),) = answers(result)
    assert (settled_ms * 1_000 < committed["t"], outcome) == (True, "unknown_tool")


def test_what_the_agent_could_not_say_for_want_of_a_link_is_said_later(run):
    remote = {"accept_at": "1s", "set": [{"at": "2s", "offer": []}]}
    result = run([SAY], {"look": LOOK}, link={"down": [{"at": "500ms", "for": "5s"}]}, remote=remote)
    assert offers(result) == [(5_600, ["look"]), (5_600, [])]
