"""Where a request parts from the recorded one: the first place, as a JSON pointer, with both values."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.request_match import first_difference

LONG = "x" * 200


@pytest.mark.parametrize(
    ("found", "recorded", "difference"),
    [
        ({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "c"}]}, None),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}, None),  # members have no order
        ({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "d"}]}, 'at /a/1/b: found "c", recorded "d"'),
        ({"a": 1}, {"a": 1.0}, "at /a: found 1, recorded 1.0"),
        ({"a": 1}, {"a": True}, "at /a: found 1, recorded true"),
        ({"a": 1}, {}, "at /a: found 1, recorded nothing"),
        ({}, {"a": None}, "at /a: found nothing, recorded null"),
        ([1], [1, 2], "at /1: found nothing, recorded 2"),
        ([1, 2], [1], "at /1: found 2, recorded nothing"),
        ({"a/b~c": 1}, {"a/b~c": 2}, "at /a~1b~0c: found 1, recorded 2"),
        (1, {}, "at the whole body: found 1, recorded {}"),
        ({"z": 1, "a": 1}, {"z": 2, "a": 2}, "at /z: found 1, recorded 2"),  # the first in the recording's order
        ("say 555-0100 twice", "say [redacted] twice", None),
        ("say 555-0100 thrice", "say [redacted] twice", 'at the whole body: found "say 555-0100 thrice", recorded'),
        ({"a": 5550100}, {"a": "[redacted]"}, None),
        ("a.b", "a?b", 'at the whole body: found "a.b", recorded "a?b"'),
        (LONG, "", f'at the whole body: found "{LONG[:99]}..., recorded ""'),
    ],
)
def test_the_first_difference_is_named(found: Any, recorded: Any, difference: str | None) -> None:
    named = first_difference(found, recorded)

    assert named is None if difference is None else str(named).startswith(difference)
