"""The time of day in a few places, read from the session's own clock.

A session begins at a wall time that is given, and its virtual clock does the rest, so the same call hears the same
time whenever it is run. Zones are a fixed table: the system's zone data differ from machine to machine, and a table
without daylight saving time needs no calendar. Left out: every zone that changes its clocks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from bargein.models.python_tools import ToolCallContext, ToolError, Tools

__all__ = ["DEFAULT_START", "ZONES", "WallClock", "parse_start"]

DEFAULT_START = "2026-01-05T09:00:00Z"

ZONES = {
    "UTC": 0,
    "Africa/Johannesburg": 120,
    "Africa/Lagos": 60,
    "Africa/Nairobi": 180,
    "America/Bogota": -300,
    "America/Phoenix": -420,
    "America/Sao_Paulo": -180,
    "Asia/Dubai": 240,
    "Asia/Kolkata": 330,
    "Asia/Shanghai": 480,
    "Asia/Singapore": 480,
    "Asia/Tokyo": 540,
    "Australia/Brisbane": 600,
    "Europe/Istanbul": 180,
    "Pacific/Honolulu": -600,
}
"""Minutes ahead of UTC of zones that keep one offset all year."""


def parse_start(text: str) -> datetime:
    """A wall time as ISO 8601 text with its offset.

    Raises:
        ValueError: it is none; the message says what is accepted.
    """
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        start = None
    if start is None or start.tzinfo is None:
        raise ValueError(f'"{text}" is no wall time; accepted is ISO 8601 with an offset, such as {DEFAULT_START}')
    return start.astimezone(UTC)


class WallClock:
    """Tells the time.

    Args:
        starts_at: the wall time at which each session begins, such as ``2026-01-05T09:00:00Z``.

    Raises:
        ValueError: ``starts_at`` cannot be read.
    """

    def __init__(self, starts_at: str = DEFAULT_START) -> None:
        self._start = parse_start(starts_at)

    def tools(self) -> Tools:
        """``get_time``, on this clock."""
        tools = Tools()
        tools.read_only(self.get_time)
        return tools

    def get_time(self, timezone: str, *, ctx: ToolCallContext) -> dict[str, Any]:
        """Tells the date and the time in a time zone, such as Europe/Istanbul."""
        minutes = ZONES.get(timezone)
        if minutes is None:
            known = ", ".join(ZONES)
            raise ToolError(f"there is no time zone {timezone!r}; ask the caller for a city, or try again with {known}")
        now = self._start + timedelta(microseconds=ctx.now_us)
        return {"timezone": timezone, "time": now.astimezone(_zone(minutes)).isoformat(timespec="microseconds")}


def _zone(minutes: int) -> timezone:
    return timezone(timedelta(minutes=minutes))
