"""Answers: error bodies, result texts and their limits."""

from __future__ import annotations

import json

import pytest

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.tools.results import ErrorKind, error, interrupted_message, result_text


def test_the_kinds_are_the_sixteen_and_the_refused_confirmation():
    assert sorted(ErrorKind) == [
        "already_done", "already_reported", "arguments_too_large", "budget_exhausted", "confirmation_refused",
        "duplicate_call", "interrupted", "invalid tool call", "invalid_arguments", "result_too_large", "stale_turn",
        "store_full", "timeout", "too_many_calls", "tool_failed", "unknown_outcome", "unknown_tool",
    ]  # fmt: skip


def test_tool_and_detail_are_cut_within_their_bytes_and_the_body_stays_json():
    answer = error(ErrorKind.TOOL_FAILED, "ü" * 100, "ß" * 2000)
    assert json.loads(answer.content) == {
        "error": "tool_failed",
        "tool": "ü" * 30 + "…",
        "detail": "ß" * 254 + "…",
    }
    assert answer.is_error


def test_a_call_that_could_not_be_read_says_why(kit, rig):
    execution = rig.execute(InvalidCall("t1.0", "book", '{"a":', "the arguments are not JSON: cut off"))
    assert kit.body(execution) == {
        "error": "invalid tool call",
        "tool": "book",
        "detail": "the arguments are not JSON: cut off",
    }


def test_an_unknown_tool_is_named(kit, rig):
    assert kit.body(rig.execute(kit.call("t1.0", "nope"))) == {
        "error": "unknown_tool",
        "tool": "nope",
        "detail": "there is no tool of this name",
    }


def test_a_call_closed_from_outside_is_answered_interrupted(kit):
    message = interrupted_message(kit.call("t1.0"))
    assert json.loads(message.result.content) == {
        "error": "interrupted",
        "tool": "book",
        "detail": "the user interrupted before the result arrived",
    }
    assert (message.result.call_id, message.result.is_error) == ("t1.0", True)


@pytest.mark.parametrize(
    ("value", "text"),
    [("hi", "hi"), ({"a": 1}, '{"a":1}'), (["é", None], '["é",null]'), (None, "null"), ("", ""), (2, "2")],
)
def test_text_stays_as_it_is_and_anything_else_is_compact_json(value, text):
    assert result_text(value, 100) == (text, True)


def test_a_cut_result_is_exactly_the_limit_marker_included():
    assert result_text("a" * 150, 100) == ("a" * 86 + "...[truncated]", False)
    assert result_text("a" * 100, 100) == ("a" * 100, True)
    assert result_text("é" * 51, 100) == ("é" * 43 + "...[truncated]", False)
    assert result_text("a" + "é" * 50, 100) == ("a" + "é" * 42 + "...[truncated]", False)
    assert result_text(["a" * 200], 100) == ('["' + "a" * 84 + "...[truncated]", False)


def test_a_tool_returns_json_or_text_or_fails_with_a_message(kit):
    rig = kit.Rig().look(result=[{"a": 1}, "hi", kit.failed("no")])
    execution = rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(3)])
    rig.clock.run()
    assert kit.contents(execution) == ['{"a":1}', "hi", '{"error":"tool_failed","tool":"look","detail":"no"}']
    assert [message.result.is_error for message in execution.results] == [False, False, True]


@pytest.mark.parametrize("value", ["x" * 65_536, {"v": "x" * (65_536 - 8)}])
def test_exactly_the_result_limit_passes_for_both_kinds(kit, value):
    rig = kit.Rig().look(result=value).book(result=value)
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1", "book"))
    rig.clock.run()
    assert [len(content) for content in kit.contents(execution)] == [65_536, 65_536]
    assert rig.outcomes() == ["ok", "ok"]


@pytest.mark.parametrize("value", ["x" * 65_537, {"v": "x" * (65_536 - 7)}])
def test_a_larger_result_is_an_error_when_read_only_and_cut_when_a_side_effect(kit, value):
    rig = kit.Rig().look(result=value).book(result=value)
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1", "book"))
    rig.clock.run()
    assert rig.outcomes() == ["result_too_large", "ok_truncated"]
    assert kit.kinds(execution) == ["result_too_large", "ok"]
    assert kit.body(execution)["detail"] == "the result takes more than 65536 bytes"
    assert len(kit.contents(execution)[1].encode()) == 65_536
    assert kit.contents(execution)[1].endswith("...[truncated]")


def test_store_and_late_note_hold_the_same_cut_text(kit):
    rig = kit.Rig(max_result_bytes=100).book(latency=3 * kit.S, result="a" * 150)
    cut = "a" * 86 + "...[truncated]"
    rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    rig.barge_in(1)
    rig.to(4 * kit.S)
    assert rig.notes() == [kit.note(cut)]
    assert kit.contents(rig.engine.execute([kit.call("t1.0")], 1, rig.token(9))) == [cut]


def test_a_value_without_json_text_counts_as_a_crash(kit):
    rig = kit.Rig().look(result=object()).book(result=object())
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1"))
    rig.clock.run()
    assert [(kit.body(execution, n)["error"], kit.body(execution, n)["detail"]) for n in (0, 1)] == [
        ("tool_failed", "the tool panicked"),
        ("unknown_outcome", "the call ended without a result; the outcome is unknown, do not repeat the call"),
    ]
