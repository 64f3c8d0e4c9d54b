"""The time of day is the session's wall start and the virtual clock, in zones of a fixed table."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.apps.clock import ZONES, WallClock
from bargein.models.python_tools import ToolCallContext, ToolError
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.sim.kernel.cancel import CancelToken
from bargein.sim.kernel.clock import Clock, Order


def context(now_us: int) -> ToolCallContext:
    clock = Clock()
    clock.call_at(now_us, Order.WORK, lambda _: None)
    clock.run()
    return ToolCallContext("s", 1, "t1.0", CancelToken("t"), IdempotencyKey("s", 1, "t1.0"), clock)


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        ("UTC", "2026-03-01T23:00:01.500007+00:00"),
        ("Europe/Istanbul", "2026-03-02T02:00:01.500007+03:00"),
        ("Asia/Kolkata", "2026-03-02T04:30:01.500007+05:30"),
        ("America/Bogota", "2026-03-01T18:00:01.500007-05:00"),
    ],
)
def test_the_time_is_the_wall_start_and_what_has_passed_since(zone: str, time: str) -> None:
    app = WallClock("2026-03-01T23:00:00Z")
    assert app.get_time(zone, ctx=context(1_500_007)) == {"timezone": zone, "time": time}


def test_an_unknown_zone_is_an_error_that_says_what_to_try() -> None:
    with pytest.raises(ToolError) as refused:
        WallClock().get_time("Mars", ctx=context(1))
    assert str(refused.value) == (
        f"there is no time zone 'Mars'; ask the caller for a city, or try again with {', '.join(ZONES)}"
    )


def test_the_guidance_fits_into_what_the_model_is_shown() -> None:
    with pytest.raises(ToolError) as refused:
        WallClock().get_time("Europe/Somewhere_Far_Away", ctx=context(1))
    assert len(str(refused.value)) <= 512


@pytest.mark.parametrize("text", ["", "soon", "2026-03-01", "2026-03-01T23:00:00"])
def test_a_wall_start_needs_an_offset(text: str) -> None:
    with pytest.raises(ValueError, match="is no wall time; accepted is ISO 8601 with an offset, such as"):
        WallClock(text)


def test_asking_changes_nothing() -> None:
    (spec,) = WallClock().tools().specs
    properties: dict[str, Any] = spec.parameters["properties"]
    assert (spec.name, spec.side_effect, properties) == ("get_time", False, {"timezone": {"type": "string"}})
