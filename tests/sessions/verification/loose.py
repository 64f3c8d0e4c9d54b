"""What must hold of each verification scenario whatever a real model says and however it words it.

Each check reads a finished run and returns what is wrong, as sentences; none compares a text or an instant.
``test_loose`` runs them on the scripts, where they must find nothing, and on scripted misbehaviour, where they must
find it. Left out: the exact course, which only a script decides (``scripts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from json import loads
from typing import Any

__all__ = ["LOOSE", "Check"]

Check = Callable[[Any], list[str]]


def _runs(result: Any, tool: str) -> list[dict[str, Any]]:
    """The runs of a tool: arguments, and the request and the instants around each."""
    calls = {call["id"]: call for message in result.context for call in message.get("tool_calls", ())}
    begun = {r["call"]: r["seq"] for r in result.records if r["kind"] == "tool.started" and r["tool"] == tool}
    ended = {r["call"]: r["seq"] for r in result.records if r["kind"] == "tool.finished" and r["tool"] == tool}
    return [
        {"call": call, "begun": seq, "ended": ended.get(call), "args": calls[call]["arguments"]}
        for call, seq in begun.items()
    ]


def _answer(result: Any) -> Iterator[str]:
    """The caller heard a last word of the model's own, which is no tool call read out."""
    last = result.context[-1] if result.context else {}
    if last.get("role") == "system":  # a note that came after everything was said
        last = result.context[-2]
    if last.get("role") != "assistant" or not last.get("text", "").strip():
        yield "the caller was given no answer"
    for text in result.heard:
        if text.lstrip().startswith(("{", "<tool_call")):
            yield f"a call was read out: {text!r}"


def _content(result: Any, call: str) -> Any:
    for message in result.context:
        if message.get("call_id") == call:
            try:
                return loads(message["content"])
            except ValueError:
                return message["content"]
    return None


def parallel(result: Any) -> list[str]:
    """S1: three cities were looked up, side by side or not, and an answer followed."""
    runs = _runs(result, "get_weather")
    found = list(_answer(result))
    cities = {str(run["args"].get("city")) for run in runs}
    if len(cities) != 3:
        found.append(f"{len(cities)} cities were looked up; wanted 3")
    return found


def chained(result: Any) -> list[str]:
    """S2: no lookup began before the one it needs had ended, and each asks for what that one found."""
    steps = [("get_customer", "city_id", "get_city"), ("get_city", "city", "get_weather")]
    found = list(_answer(result))
    for before, key, after in steps:
        first, second = _runs(result, before), _runs(result, after)
        if not first or not second:
            found.append(f"{before if not first else after} was never run")
            break
        if first[0]["ended"] is None or second[0]["begun"] < first[0]["ended"]:
            found.append(f"{after} was asked before {before} had answered")
        source = _content(result, first[0]["call"])
        if not isinstance(source, dict) or second[0]["args"].get(key) != source.get(key):
            found.append(f"{after} was asked for a {key} that {before} did not find")
    return found


def _one_booking(result: Any) -> list[str]:
    runs = _runs(result, "book_table")
    return [] if len(runs) == 1 else [f"the table was booked {len(runs)} times; wanted 1"]


def repeated(result: Any) -> list[str]:
    """S3: one booking exists, and the caller was told something."""
    return [*_answer(result), *_one_booking(result)]


def invalid(result: Any) -> list[str]:
    """S4: no run was outside the limit, and the promise to ask again was kept."""
    runs = _runs(result, "get_forecast")
    found = list(_answer(result))
    if not runs:
        found.append("the forecast was never looked up")
    if any(run["args"].get("days", 0) > 7 for run in runs):
        found.append("a forecast beyond the limit was looked up")
    return found


def slow(result: Any) -> list[str]:
    """S5: the lookup was made, and the caller was told to wait before it ended."""
    runs = _runs(result, "order_status")
    found = list(_answer(result))
    if not runs:
        found.append("the order was never looked up")
    fillers = [r["seq"] for r in result.records if r["kind"] == "filler.spoken"]
    if runs and not any(runs[0]["begun"] < seq < (runs[0]["ended"] or seq) for seq in fillers):
        found.append("the caller waited without a word")
    return found


def interrupted(result: Any) -> list[str]:
    """S6: the booking outlived the interruption, was made once, and its result is in the context once."""
    found = [*_answer(result), *_one_booking(result)]
    told = sum(
        "BK-" in (message.get("content") or "") or ("BK-" in message.get("text", "") and message["role"] == "system")
        for message in result.context
    )
    if told != 1:
        found.append(f"the booking is told {told} times; wanted 1")
    return found


LOOSE: dict[str, Check] = {
    "S1": parallel,
    "S2": chained,
    "S3": repeated,
    "S4": invalid,
    "S5": slow,
    "S6": interrupted,
}
"""The check of each scenario."""
