"""Declarations over the link and back."""

from __future__ import annotations

import pytest

from bargein.models.remote_protocol import accept, declaration, link_error, read_declaration
from bargein.pipelines.tools.spec import SpecError, ToolKind, ToolSpec

PLAIN = ToolSpec("look", "Looks.", {"type": "object"}, ToolKind.READ_ONLY)
FULL = ToolSpec("book", "Books.", {"type": "object"}, ToolKind.SIDE_EFFECT, 30_000_000, None, True, True)
FIELDS = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "kind": "read_only"}


@pytest.mark.parametrize("spec", [PLAIN, FULL])
def test_a_declaration_reads_back_to_an_equal_tool(spec):
    assert read_declaration(declaration(spec)) == spec


def test_a_declaration_says_only_what_is_not_as_usual():
    assert accept([PLAIN, FULL]) == {
        "type": "session.accept",
        "tools": [
            FIELDS,
            {
                "name": "book",
                "description": "Books.",
                "parameters": {"type": "object"},
                "kind": "side_effect",
                "timeout_ms": 30_000,
                "filler_after_ms": None,
                "repeatable": True,
                "confirm": True,
            },
        ],
    }


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"timeout_ms": 30_001}, "timeout_ms: 30001 is too long; accepted is up to 30000"),
        ({"timeout_ms": None}, "timeout_ms: null is no duration; accepted is a whole number of milliseconds"),
        ({"timeout_ms": True}, "timeout_ms: True is no duration; accepted is a whole number of milliseconds"),
        ({"filler_after_ms": -1}, "filler_after_ms: -1 is no duration; accepted is a whole number of milliseconds"),
        ({"timeout": "5s"}, "'timeout' is not a field of a remote tool; accepted is timeout_ms"),
        ({"confirm": 1}, "confirm: 1 is not a switch; accepted are true and false"),
    ],
)
def test_a_declaration_that_means_no_tool_is_refused(more, problem):
    with pytest.raises(SpecError) as refused:
        read_declaration({**FIELDS, **more})
    assert str(refused.value) == problem


def test_an_error_names_its_stage_and_the_tool_where_there_is_one():
    assert link_error("no") == {"type": "error", "stage": "agent_link", "message": "no"}
    assert link_error("no", "look")["tool"] == "look"
