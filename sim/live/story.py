"""What a live run showed, as lines: each round, each tool, the counters, what was spoken, and whether it was right.

``bargein record`` and the live tests print them. Left out: judging; whoever ran it says what was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bargein.models.llm_played import PlayedModel
    from bargein.sim.lab.result import Result

__all__ = ["median_us", "result_line", "story_lines", "table_row"]


def story_lines(result: Result) -> list[str]:
    """A run with a provider for a model, a line for each thing; times in milliseconds of the virtual clock.

    Args:
        result: its model is a `PlayedModel`.
    """
    from bargein.models.llm_played import PlayedModel

    model = result.opened.model
    assert isinstance(model, PlayedModel)
    return [*_rounds(model), *_tools(result), *_counters(result), *(f"spoken: {text}" for text in result.heard)]


def _rounds(model: PlayedModel) -> list[str]:
    return [
        f"round {number} ({trip.scope}): first event {_ms(trip.first_event_us)}, first text {_ms(trip.first_text_us)}, "
        f"total {_ms(trip.total_us)}, calls {trip.calls}, text {trip.text_bytes} bytes"
        + ("" if trip.failure is None else f", failed: {trip.failure}")
        for number, trip in enumerate(model.round_trips, start=1)
    ]


def _tools(result: Result) -> list[str]:
    ended: dict[str, str] = {}
    for record in result.records:
        if record["kind"] == "tool.finished":
            ended[record["call"]] = f"finish {_ms(record['t'])}, {record['status']}"
        elif record["kind"] == "tool.dropped":
            ended[record["call"]] = f"dropped {_ms(record['t'])}, {record['cause']}"
    return [
        f"tool {record['tool']} ({record['call']}): start {_ms(record['t'])}, {ended.get(record['call'], 'no finish')}"
        for record in result.records
        if record["kind"] == "tool.started"
    ]


def _counters(result: Result) -> list[str]:
    counted = [
        f"{stage}.{name} {value}"
        for stage, counters in result.counters.items()
        for name, value in counters.items()
        if value
    ]
    return [f"counters: {', '.join(counted) or 'none'}"]


def result_line(provider: str, scenario: int, ok: bool, seconds: float) -> str:
    """The line that closes a live scenario (tool contract, "Running the live variants")."""
    return f"LIVE RESULT {provider} scenario {scenario}: {'ok' if ok else 'FAILED'} ({seconds:.1f} s)"


def table_row(result: Result, ok: bool) -> tuple[str, str, int]:
    """A cell of the table of live results: outcome, time to first event of the first round with calls, rounds."""
    model = result.opened.model
    trips = getattr(model, "round_trips", ())
    issuing = next((trip for trip in trips if trip.calls), trips[0] if trips else None)
    return ("ok" if ok else "FAILED", "-" if issuing is None else _ms(issuing.first_event_us), len(trips))


def median_us(values: Sequence[int]) -> int | None:
    """The lower median of some durations; ``None`` of none."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


def _ms(us: int | None) -> str:
    return "-" if us is None else f"{us // 1_000} ms"
