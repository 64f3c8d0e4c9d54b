"""Arguments against the schema, and the bounded reports on what is wrong."""

from __future__ import annotations

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.tools import validation
from bargein.pipelines.tools.validation import ArgumentValidator, Issue, Report

SCHEMA = {
    "type": "object",
    "properties": {
        "day": {"$ref": "#/$defs/day"},
        "people": {"type": "integer"},
        "guests": {"type": "array", "items": {"type": "object", "properties": {"age": {"type": "integer"}}}},
        "a/b~c": {"type": "string"},
    },
    "required": ["people"],
    "additionalProperties": False,
    "$defs": {"day": {"enum": ["friday", "saturday"]}},
}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"people": 2, "day": "friday", "guests": [{"age": 7}]}, None),
        ({"day": "friday"}, "(root)"),
        ({"people": "two"}, "/people"),
        ({"people": 2, "pets": 1}, "(root)"),
        ({"people": 2, "guests": [{"age": "seven"}]}, "/guests/0/age"),
        ({"people": 2, "day": "monday"}, "/day"),
        ({"people": 2, "a/b~c": 1}, "/a~1b~0c"),
        ({"people": True}, "/people"),
    ],
)
def test_a_schema_is_enforced_and_each_fault_is_named_by_its_pointer(arguments, path):
    validator = ArgumentValidator(SCHEMA)
    assert validator.is_valid(arguments) is (path is None)
    assert [issue.path for issue in validator.report(arguments).issues] == ([] if path is None else [path])


def test_schemas_are_read_as_draft_2020_12_whatever_they_call_themselves_and_without_a_socket(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}},
    }
    validator = ArgumentValidator(schema)
    assert [validator.is_valid({"pair": pair}) for pair in (["a", 1], [1, "a"], ["a", 1, 2])] == [True, False, False]


def test_a_report_holds_five_issues_and_says_when_there_were_more():
    schema = {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(7)}}
    validator = ArgumentValidator(schema)
    seven = validator.report({f"p{n}": "x" for n in range(7)})
    five = validator.report({f"p{n}": "x" for n in range(5)})
    assert five == Report(tuple(Issue(f"/p{n}", "'x' is not of type 'integer'") for n in range(5)), False)
    assert seven == Report(five.issues, True)


def test_paths_and_reasons_are_cut_on_character_boundaries_within_their_bytes():
    validator = ArgumentValidator({"type": "object", "additionalProperties": {"type": "integer"}})
    [issue] = validator.report({"é" * 300: "ß" * 1000}).issues
    assert issue.path == "/" + "é" * 62 + "…"
    assert len(issue.path.encode()) == 128
    assert issue.reason == "'" + "ß" * 98 + "…"
    assert len(issue.reason.encode()) == 200


def test_endless_self_reference_is_an_issue_and_not_a_crash():
    validator = ArgumentValidator({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}})
    assert validator.is_valid({})
    assert not validator.is_valid({"a": 1})
    assert validator.report({"a": 1}) == Report(
        (Issue("(root)", "checking this refers back to itself without end"),), False
    )


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, 2, "1"], True),
        ([1, 1.0], False),
        ([1, True, 0, False], True),
        ([[1], [True]], True),
        ([{"a": 1, "b": [2]}, {"b": [2], "a": 1}], False),
        ([{"a": 1}, {"a": 2}, ["a", 1], None], True),
        ([None, None], False),
        ([], True),
    ],
)
def test_unique_items_compares_json_values(items, unique):
    validator = ArgumentValidator({"type": "object", "properties": {"list": {"uniqueItems": True}}})
    assert validator.is_valid({"list": items}) is unique
    assert len(validator.report({"list": items}).issues) == (0 if unique else 1)
    off = ArgumentValidator({"type": "object", "properties": {"list": {"uniqueItems": False}}})
    assert off.is_valid({"list": items})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@given(st.lists(JSON, max_size=5))
def test_our_unique_items_agrees_with_the_librarys(items):
    from jsonschema import Draft202012Validator

    schema = {"type": "object", "properties": {"list": {"uniqueItems": True}}}
    assert ArgumentValidator(schema).is_valid({"list": items}) == Draft202012Validator(schema).is_valid({"list": items})


def test_unique_items_looks_at_each_item_once(monkeypatch):
    looked_at = []
    identity = validation._identity
    monkeypatch.setattr(validation, "_identity", lambda value: looked_at.append(value) or identity(value))
    validator = ArgumentValidator({"type": "object", "properties": {"list": {"uniqueItems": True}}})
    assert validator.is_valid({"list": list(range(2_000))})
    assert looked_at == list(range(2_000))


# -- through the engine -------------------------------------------------------------------------------------------


def test_invalid_arguments_are_answered_at_once_and_run_nothing(kit):
    rig = kit.Rig().book(parameters=SCHEMA)
    execution = rig.execute(kit.call("t1.0", people="two"))
    assert execution.complete
    assert kit.body(execution) == {
        "error": "invalid_arguments",
        "tool": "book",
        "detail": "the arguments do not match the tool's schema",
        "issues": [{"path": "/people", "reason": "'two' is not of type 'integer'"}],
        "truncated": False,
    }
    assert (rig.runs, rig.clock.now) == ([], 0)


def test_exactly_the_argument_cap_runs_and_one_byte_more_does_not(kit):
    rig = kit.Rig().look()
    exact = {"text": "é" * ((16_384 - 11) // 2)}
    assert len(json.dumps(exact, ensure_ascii=False, separators=(",", ":")).encode()) == 16_383
    execution = rig.execute(
        ToolCall("t1.0", "look", {"text": exact["text"] + "a"}),
        ToolCall("t1.1", "look", {"text": exact["text"] + "ab"}),
    )
    rig.clock.run()
    assert kit.kinds(execution) == ["ok", "arguments_too_large"]
    assert kit.body(execution, 1)["detail"] == "the arguments take more than 16384 bytes"
    assert len(rig.runs) == 1


def test_oversized_arguments_never_reach_the_validator_and_spend_budget(kit, monkeypatch):
    rig = kit.Rig().look(parameters={"type": "object", "properties": {"list": {"uniqueItems": True}}})
    monkeypatch.setattr(ArgumentValidator, "is_valid", None)
    execution = rig.execute(kit.call("t1.0", "look", list=list(range(50_000))))
    assert kit.kinds(execution) == ["arguments_too_large"]
    assert rig.engine.invalid_rounds(1) == 1


def test_arguments_nested_too_deeply_are_invalid(kit):
    rig = kit.Rig().look()
    deep = []
    for _ in range(500):
        deep = [deep]
    assert kit.body(rig.execute(kit.call("t1.0", "look", list=deep)))["issues"] == [
        {"path": "(root)", "reason": "nested deeper than 128 levels"}
    ]


def test_each_of_the_six_causes_makes_a_round_malformed(kit):
    causes = [
        [InvalidCall("c", "look", '{"a":', "the arguments are not JSON: cut off")],
        [InvalidCall("c", "unknown_tool", "{}", "the call has no name")],
        [kit.call("c", "nope")],
        [kit.call("c", "look", n="x")],
        [kit.call("c", "look", n=1, text="x" * 20_000)],
        [kit.call(f"c{n}", "look", n=1) for n in range(33)],
    ]
    rig = kit.Rig(max_invalid_rounds=6).look(parameters={"type": "object", "properties": {"n": {"type": "integer"}}})
    answers = [kit.kinds(rig.execute(*calls)) for calls in causes[:5]]
    last = rig.execute(*causes[5])
    rig.clock.run()
    assert answers == [
        ["invalid tool call"], ["invalid tool call"], ["unknown_tool"], ["invalid_arguments"], ["arguments_too_large"]
    ]  # fmt: skip
    assert kit.kinds(last) == ["ok"] * 32 + ["too_many_calls"]
    assert rig.engine.invalid_rounds(1) == 6


def test_a_tool_gets_exactly_the_arguments_the_model_sent(kit):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "unit": {"default": "m"}}}
    rig = kit.Rig().look(parameters=schema)
    rig.execute(kit.call("t1.0", "look", n=3, s="3"))
    assert rig.runs == [(0, "look", {"n": 3, "s": "3"})]


@given(st.dictionaries(st.sampled_from(["people", "day", "pets"]), JSON, max_size=3))
def test_a_body_only_ever_sees_arguments_that_match(kit, arguments):
    rig = kit.Rig().book(parameters=SCHEMA)
    rig.execute(ToolCall("t1.0", "book", arguments))
    valid = type(arguments.get("people")) in (int, float) and arguments["people"] % 1 == 0 and len(arguments) == 1
    assert [run[2] for run in rig.runs] == ([arguments] if valid else [])


def test_valid_arguments_build_no_report(kit, monkeypatch):
    monkeypatch.setattr(validation, "Report", None)
    monkeypatch.setattr(validation, "_reason", None)
    rig = kit.Rig().book(parameters=SCHEMA)
    rig.execute(kit.call("t1.0", people=2, day="friday"))
    assert len(rig.runs) == 1
