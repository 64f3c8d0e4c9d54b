"""Declarations of tools and their defaults."""

from __future__ import annotations

import pytest

from bargein.pipelines.tools.spec import SpecError, ToolKind, ToolSpec

BASE = {"name": "book", "description": "books", "parameters": {"type": "object"}, "kind": "side_effect"}


def test_a_declaration_of_the_four_required_fields_has_the_documented_defaults():
    assert ToolSpec.from_dict(BASE) == ToolSpec(
        name="book",
        description="books",
        parameters={"type": "object"},
        kind=ToolKind.SIDE_EFFECT,
        timeout_us=5_000_000,
        filler_after_us=700_000,
        repeatable=False,
        confirm=False,
    )


def test_every_field_can_be_declared_and_durations_are_text_with_a_unit():
    spec = ToolSpec.from_dict(BASE | {"timeout": "250ms", "filler_after": None, "repeatable": True, "confirm": True})
    assert (spec.timeout_us, spec.filler_after_us, spec.repeatable, spec.confirm) == (250_000, None, True, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"retries": 3}, "'retries' is not a field of a tool; accepted are name, description, parameters, kind, "
         "timeout, filler_after, repeatable, confirm"),
        ({"kind": "both"}, "kind: 'both' is not a kind of tool; accepted are read_only and side_effect"),
        ({"confirm": 1}, "confirm: 1 is not a switch; accepted are true and false"),
        ({"name": 7}, "name: 7 is not text"),
        ({"parameters": True}, "parameters: True is not a JSON Schema object"),
        ({"timeout": "5"}, 'timeout: "5" is not a duration; accepted is a number with a unit: us, ms, s, min or h '
         '(such as "400ms" or "1.2s")'),
        ({"filler_after": 0.7}, "filler_after: 0.7 is not a duration; accepted is a number with a unit: us, ms, s, "
         'min or h (such as "400ms" or "1.2s") or an int of microseconds, zero or more'),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_read_is_refused_with_field_and_accepted_values(change, message):
    with pytest.raises(SpecError) as caught:
        ToolSpec.from_dict(BASE | change)
    assert str(caught.value) == message


def test_a_missing_field_is_named():
    with pytest.raises(SpecError, match="needs the field 'kind'; given are name, description, parameters"):
        ToolSpec.from_dict({name: value for name, value in BASE.items() if name != "kind"})
