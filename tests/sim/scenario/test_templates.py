"""Results filled in for one run of a tool."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.sim.scenario.templates import fill


@pytest.mark.parametrize(
    ("result", "filled"),
    [
        ("no placeholder", "no placeholder"),
        ("{run}", 3),
        ("run {run}", "run 3"),
        ("{args.day}", "friday"),
        ("{args.people}", 2),
        ("for {args.people} on {args.day}", "for 2 on friday"),
        ("{args.guest.name}", "Ada"),
        ("{args.none} {other}", "{args.none} {other}"),
        ({"booking": {"counter": "BK", "from": 1001}}, {"booking": "BK-1003"}),
        ({"counter": "BK", "from": "x"}, {"counter": "BK", "from": "x"}),
        (["{run}", {"a": "{args.day}"}, None, 1.5], [3, {"a": "friday"}, None, 1.5]),
    ],
)
def test_placeholders_are_filled_in_and_all_else_stays(result: Any, filled: Any) -> None:
    assert fill(result, {"day": "friday", "people": 2, "guest": {"name": "Ada"}}, 3) == filled


def test_arguments_that_are_no_mapping_leave_placeholders_alone() -> None:
    assert fill("{args.day}", [1], 1) == "{args.day}"
