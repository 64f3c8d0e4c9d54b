"""Registration and its refusals."""

from __future__ import annotations

import socket
from itertools import permutations

import pytest

from bargein.pipelines.tools import validation
from bargein.pipelines.tools.registry import (
    ConfirmNeedsSideEffect,
    Duplicate,
    InvalidName,
    InvalidSchema,
    RepeatableNeedsSideEffect,
    ToolRegistry,
    ZeroTimeout,
)
from bargein.pipelines.tools.spec import ToolKind, ToolSpec

OBJECT = {"type": "object"}


def spec(name="x", parameters=OBJECT, kind=ToolKind.READ_ONLY, **more):
    return ToolSpec(name, f"does {name}", parameters, kind, **more)


@pytest.mark.parametrize("name", ["a", "a_b-9", "a" * 64])
def test_names_of_ascii_letters_digits_dashes_up_to_64_are_accepted(name):
    registry = ToolRegistry()
    registry.register(spec(name))
    assert registry.spec(name) == spec(name)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (spec(""), InvalidName),
        (spec("a" * 65), InvalidName),
        (spec("a b"), InvalidName),
        (spec("a.b"), InvalidName),
        (spec("hé"), InvalidName),
        (spec("a\n"), InvalidName),
        (spec("first"), Duplicate),
        (spec("confirm_pending"), Duplicate),
        (spec(timeout_us=0), ZeroTimeout),
        (spec(timeout_us=-1), ZeroTimeout),
        (spec(timeout_us=1.5), ZeroTimeout),
        (spec(confirm=True), ConfirmNeedsSideEffect),
        (spec(repeatable=True), RepeatableNeedsSideEffect),
        (spec(parameters={}), InvalidSchema),
        (spec(parameters={"type": "array"}), InvalidSchema),
        (spec(parameters=True), InvalidSchema),
        (spec(parameters={"type": "object", "properties": {"a": {"type": "wibble"}}}), InvalidSchema),
        (spec(parameters={"type": "object", "properties": {"a": {"pattern": "("}}}), InvalidSchema),
        (spec(parameters={"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}), InvalidSchema),
        (spec(parameters={"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}}), InvalidSchema),
        (spec(parameters={"type": "object", "$ref": "#"}), InvalidSchema),
    ],
)
def test_a_refused_registration_leaves_no_trace(refused, error, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    registry = ToolRegistry()
    first = registry.register(spec("first"))
    with pytest.raises(error):
        registry.register(refused)
    assert (len(registry), registry.specs(), registry.tool("first")) == (1, (first.spec,), first)


def test_a_timeout_of_one_microsecond_is_accepted():
    assert ToolRegistry().register(spec(timeout_us=1)).spec.timeout_us == 1


def test_an_empty_registry_says_so():
    registry = ToolRegistry()
    assert (len(registry), registry.is_empty(), registry.spec("zz"), registry.specs()) == (0, True, None, ())
    registry.register(spec())
    assert (len(registry), registry.is_empty()) == (1, False)


def test_specs_and_adverts_come_in_name_order_whatever_the_order_of_registration():
    for order in permutations("bac"):
        registry = ToolRegistry()
        for name in order:
            registry.register(spec(name))
        assert [each.name for each in registry.specs()] == ["a", "b", "c"]
        assert [each.name for each in registry.adverts()] == ["a", "b", "c"]
        assert registry.adverts()[0].description == "does a"


def test_the_first_gated_tool_brings_confirm_pending_and_none_brings_none():
    registry = ToolRegistry()
    registry.register(spec("plain", kind=ToolKind.SIDE_EFFECT))
    assert registry.spec("confirm_pending") is None
    for name in ("gated", "other"):
        registry.register(spec(name, kind=ToolKind.SIDE_EFFECT, confirm=True))
    assert [each.name for each in registry.specs()] == ["confirm_pending", "gated", "other", "plain"]
    built_in = registry.spec("confirm_pending")
    assert built_in.kind is ToolKind.SIDE_EFFECT
    assert built_in.parameters == {
        "type": "object",
        "properties": {"call_id": {"type": "string"}},
        "required": ["call_id"],
        "additionalProperties": False,
    }


def test_the_handler_key_is_the_tools_own_unless_another_is_given():
    registry = ToolRegistry()
    assert registry.register(spec("a")).handler_key == "agent/tool:a#0"
    assert registry.register(spec("b"), "link/tool:b#3").handler_key == "link/tool:b#3"


def test_a_schema_is_compiled_once_a_tool_however_many_sessions_and_calls(monkeypatch, kit):
    compiled = []
    compile_schema = validation._compile
    monkeypatch.setattr(validation, "_compile", lambda schema: compiled.append(schema) or compile_schema(schema))
    registry = ToolRegistry()
    registry.register(spec("look"))
    for _ in range(5):
        rig = kit.Rig(registry)
        rig.serve("look")
        for number in range(20):
            rig.execute(kit.call(f"t1.{number}", "look"))
    assert compiled == [OBJECT]


def test_after_a_duplicate_the_first_body_still_runs(rig, kit):
    with pytest.raises(Duplicate):
        rig.registry.register(spec("look"), "elsewhere")
    execution = rig.delivered(kit.call("t1.0", "look"))
    assert kit.contents(execution) == ["sunny"]
