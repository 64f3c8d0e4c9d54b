"""The six verification scenarios, each written once: the call, and all that must come of it.

``SCENARIOS`` holds a builder for each; it is given the shape in which responses stream and returns the scenario as
plain data with what `seen` must read from its run, instant by instant. Speech is placed, so that every turn opens at
a round instant and the rest is arithmetic. Left out: running them (``test_scenarios``), and what must hold when a
real model decides (``loose``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from json import dumps
from typing import Any

from bargein.models.llm_stream import INTERLEAVED_BYTES

__all__ = ["SCENARIOS", "SHAPES", "Build", "Shape", "answered", "line", "seen"]

TTFT_US = 350_000
DELTA_US = 20_000
TURN_US = 1_000_000
"""The first turn: its line is placed from 100 ms to 1 s."""


@dataclass(frozen=True)
class Shape:
    """How the model's responses arrive: the keys of ``llm`` that say so, and the pieces that arguments come in."""

    name: str
    llm: dict[str, Any]
    piece_bytes: int | None

    def response_us(self, *arguments: dict[str, Any], words: int = 0, ttft_us: int = TTFT_US) -> int:
        """From a request to the end of its response: one delta a word, one a piece of arguments."""
        texts = [dumps(each, separators=(",", ":")) for each in arguments]
        pieces = [1 if self.piece_bytes is None else max(1, -(-len(text) // self.piece_bytes)) for text in texts]
        return ttft_us + (words + sum(pieces) - 1) * DELTA_US


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("plain", {"fragments": "whole"}, None),
        Shape("interleaved", {"fragments": "interleaved"}, INTERLEAVED_BYTES),
        Shape("openai", {"wire": "openai", "fragments": "interleaved"}, INTERLEAVED_BYTES),
        Shape("responses", {"wire": "openai_responses", "fragments": INTERLEAVED_BYTES}, INTERLEAVED_BYTES),
        Shape("anthropic", {"wire": "anthropic", "fragments": INTERLEAVED_BYTES}, INTERLEAVED_BYTES),
        Shape("gemini", {"wire": "gemini"}, None),
    )
}
"""The shapes in which every scenario runs: two of the plain model, and four vendors' bytes."""

Build = Callable[[Shape], tuple[dict[str, Any], dict[str, Any]]]
SCENARIOS: dict[str, Build] = {}


def _scenario(name: str) -> Callable[[Build], Build]:
    def enter(build: Build) -> Build:
        SCENARIOS[name] = build
        return build

    return enter


# -- reading a run ------------------------------------------------------------------------------------------------


def seen(result: Any) -> dict[str, Any]:
    """All that a scenario decides about a run, with exact instants; counters that are zero are left out."""
    records = result.records
    begun = {r["call"]: r["t"] for r in records if r["kind"] == "tool.started"}
    return {
        "requests": [r["t"] for r in records if r["kind"] == "llm.request"],
        "asked": len(result.opened.model.requests),
        "phases": list(
            zip(
                [r["t"] for r in records if r["kind"] == "tools.started"],
                [r["t"] for r in records if r["kind"] == "tools.ended"],
                strict=False,  # an interrupted phase has no end of its own
            )
        ),
        "runs": [(r["call"], begun[r["call"]], r["t"]) for r in records if r["kind"] == "tool.finished"],
        "outcomes": [(r["t"], r["call"], r["outcome"]) for r in records if r["kind"] == "tool.settled"],
        "fillers": [(r["t"], r["text"]) for r in records if r["kind"] == "filler.spoken"],
        "counters": {
            f"{stage}.{name}": value
            for stage, counters in result.counters.items()
            for name, value in counters.items()
            if value
        },
        "heard": result.heard,
        "context": [_message(each) for each in result.context],
        "violations": result.violations,
    }


def _message(message: dict[str, Any]) -> tuple[Any, ...]:
    if message["role"] == "tool":
        return ("tool", message["call_id"], message["content"])
    calls = [(call["id"], call["name"], call["arguments"]) for call in message.get("tool_calls", ())]
    return (message["role"], message["text"], calls) if calls else (message["role"], message["text"])


def answered(**keys: Any) -> dict[str, Any]:
    """What a run is expected to show; what is not named is empty."""
    empty: dict[str, Any] = {"phases": [], "runs": [], "outcomes": [], "fillers": [], "counters": {}, "violations": []}
    return {**empty, "asked": len(keys["requests"]), **keys}


def line(say: str, at_us: int = 100_000, until_us: int = TURN_US) -> dict[str, Any]:
    """The caller says so between two instants; the turn opens at the second."""
    return {"say": say, "at": f"{at_us}us", "level": "decision", "for": f"{until_us - at_us}us"}


def _json(value: Any) -> str:
    return dumps(value, separators=(",", ":"))


def _text(**properties: str) -> dict[str, Any]:
    fields = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": fields, "required": list(properties), "additionalProperties": False}


BOOKING = {"day": "friday", "people": 2}
_BOOK = {"kind": "side_effect", "parameters": _text(day="string", people="integer")}
_BOOKED = {"booking": {"counter": "BK", "from": 1001}}


def _error(kind: str, tool: str, detail: str, **more: Any) -> str:
    return _json({"error": kind, "tool": tool, "detail": detail, **more})


# -- the six ------------------------------------------------------------------------------------------------------


@_scenario("S1")
def parallel_lookups(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """One response asks for three cities; they run side by side and are answered in the order asked."""
    cities = [{"city": "Izmir"}, {"city": "Ankara"}, {"city": "Istanbul"}]
    text = "Sunny, cloudy, and rain."
    data = {
        "scenario": "s1",
        "caller": [line("What is the weather in the three cities?")],
        "tools": {
            "get_weather": {
                "parameters": _text(city="string"),
                "results": [
                    {"latency": "300ms", "result": {"city": "{args.city}", "sky": "sunny"}},
                    {"latency": "200ms", "result": {"city": "{args.city}", "sky": "cloudy"}},
                    {"latency": "100ms", "result": {"city": "{args.city}", "sky": "rain"}},
                ],
            }
        },
        "llm": {**shape.llm, "rounds": [{"calls": [{"get_weather": city} for city in cities]}, {"text": text}]},
    }
    begin = TURN_US + shape.response_us(*cities)
    skies = zip(cities, ("sunny", "cloudy", "rain"), strict=True)
    return data, answered(
        requests=[TURN_US, begin + 300_000],
        phases=[(begin, begin + 300_000)],  # the longest of the three, not their sum
        runs=[("t1.2", begin, begin + 100_000), ("t1.1", begin, begin + 200_000), ("t1.0", begin, begin + 300_000)],
        outcomes=[(begin + 100_000 * n, f"t1.{3 - n}", "ok") for n in (1, 2, 3)],
        counters={"timeline.recorded": 6},
        heard=[text],
        context=[
            ("user", "What is the weather in the three cities?"),
            ("assistant", "", [(f"t1.{n}", "get_weather", city) for n, city in enumerate(cities)]),
            *(("tool", f"t1.{n}", _json({**city, "sky": sky})) for n, (city, sky) in enumerate(skies)),
            ("assistant", text),
        ],
    )


@_scenario("S2")
def chained_lookups(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """Each lookup needs what the one before it found: three rounds of one call."""
    steps: list[tuple[str, dict[str, Any], int, dict[str, Any]]] = [
        ("get_customer", {"phone": "555-0100"}, 150_000, {"city_id": 35}),
        ("get_city", {"city_id": 35}, 120_000, {"city": "Izmir"}),
        ("get_weather", {"city": "Izmir"}, 180_000, {"sky": "sunny"}),
    ]
    text = "It is sunny in Izmir."
    kinds = {"phone": "string", "city_id": "integer", "city": "string"}
    data = {
        "scenario": "s2",
        "caller": [line("What is the weather where I live?")],
        "tools": {
            tool: {
                "parameters": _text(**{name: kinds[name] for name in args}),
                "latency": f"{latency_us}us",
                "result": result,
            }
            for tool, args, latency_us, result in steps
        },
        "llm": {**shape.llm, "rounds": [*({"calls": [{tool: args}]} for tool, args, _, _ in steps), {"text": text}]},
    }
    at_us, wanted = TURN_US, answered(requests=[TURN_US], asked=4, counters={"timeline.recorded": 12}, heard=[text])
    context: list[tuple[Any, ...]] = [("user", "What is the weather where I live?")]
    for number, (tool, args, latency_us, result) in enumerate(steps):
        call = f"t1.{number}"
        begin = at_us + shape.response_us(args)
        at_us = begin + latency_us
        wanted["phases"].append((begin, at_us))
        wanted["runs"].append((call, begin, at_us))
        wanted["outcomes"].append((at_us, call, "ok"))
        wanted["requests"].append(at_us)
        context += [("assistant", "", [(call, tool, args)]), ("tool", call, _json(result))]
    return data, {**wanted, "context": [*context, ("assistant", text)]}


@_scenario("S3")
def repeated_booking(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model reads the confirmation and asks for the same booking again: refused, and one booking exists."""
    text = "Your table is booked."
    data = {
        "scenario": "s3",
        "caller": [line("A table for two on Friday, please.")],
        "tools": {"book_table": {**_BOOK, "latency": "400ms", "result": _BOOKED}},
        "llm": {**shape.llm, "rounds": [*({"calls": [{"book_table": BOOKING}]} for _ in range(2)), {"text": text}]},
    }
    begin = TURN_US + shape.response_us(BOOKING)
    again = begin + 400_000 + shape.response_us(BOOKING)
    detail = (
        "an identical call already ran earlier in this turn and succeeded; its result is above; "
        "do not repeat this call, tell the caller what happened"
    )
    return data, answered(
        requests=[TURN_US, begin + 400_000, again],
        phases=[(begin, begin + 400_000), (again, again)],
        runs=[("t1.0", begin, begin + 400_000)],
        outcomes=[(begin + 400_000, "t1.0", "ok"), (again, "t1.1", "repeat_refused")],
        counters={"timeline.recorded": 9, "tools.side_effect_repeats": 1},
        heard=[text],
        context=[
            ("user", "A table for two on Friday, please."),
            ("assistant", "", [("t1.0", "book_table", BOOKING)]),
            ("tool", "t1.0", '{"booking":"BK-1001"}'),
            ("assistant", "", [("t1.1", "book_table", BOOKING)]),
            ("tool", "t1.1", _error("already_done", "book_table", detail)),
            ("assistant", text),
        ],
    )


@_scenario("S4")
def invalid_argument(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ten days where seven are allowed: the model reads what is wrong and asks for three."""
    text = "Three sunny days."
    days = {"type": "integer", "minimum": 1, "maximum": 7}
    data = {
        "scenario": "s4",
        "caller": [line("What is the forecast for ten days?")],
        "tools": {
            "get_forecast": {
                "parameters": {"type": "object", "properties": {"days": days}, "required": ["days"]},
                "latency": "200ms",
                "result": {"days": "{args.days}", "sky": "sunny"},
            }
        },
        "llm": {
            **shape.llm,
            "rounds": [*({"calls": [{"get_forecast": {"days": asked}}]} for asked in (10, 3)), {"text": text}],
        },
    }
    refused = TURN_US + shape.response_us({"days": 10})
    begin = refused + shape.response_us({"days": 3})
    issues = [{"path": "/days", "reason": "10 is greater than the maximum of 7"}]
    detail = "the arguments do not match the tool's schema"
    return data, answered(
        requests=[TURN_US, refused, begin + 200_000],
        phases=[(refused, refused), (begin, begin + 200_000)],
        runs=[("t1.1", begin, begin + 200_000)],
        outcomes=[(refused, "t1.0", "invalid_arguments"), (begin + 200_000, "t1.1", "ok")],
        counters={"timeline.recorded": 9},
        heard=[text],
        context=[
            ("user", "What is the forecast for ten days?"),
            ("assistant", "", [("t1.0", "get_forecast", {"days": 10})]),
            (
                "tool",
                "t1.0",
                _error("invalid_arguments", "get_forecast", detail, issues=issues, truncated=False),
            ),
            ("assistant", "", [("t1.1", "get_forecast", {"days": 3})]),
            ("tool", "t1.1", '{"days":3,"sky":"sunny"}'),
            ("assistant", text),
        ],
    )


@_scenario("S5")
def slow_tool_filler(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """A lookup of three seconds: one filler exactly 1.2 s after it began, then the answer."""
    text = "Yes, your order is ready."
    data = {
        "scenario": "s5",
        "caller": [line("Is my order ready?")],
        "tools": {"order_status": {"parameters": _text(order="string"), "latency": "3s", "result": "ready"}},
        "llm": {**shape.llm, "rounds": [{"calls": [{"order_status": {"order": "A-17"}}]}, {"text": text}]},
    }
    begin = TURN_US + shape.response_us({"order": "A-17"})
    filler = "One moment, please."
    return data, answered(
        requests=[TURN_US, begin + 3_000_000],
        phases=[(begin, begin + 3_000_000)],
        runs=[("t1.0", begin, begin + 3_000_000)],
        outcomes=[(begin + 3_000_000, "t1.0", "ok")],
        fillers=[(begin + 1_200_000, filler)],
        counters={"timeline.recorded": 6, "llm.fillers": 1, "llm.fillers_in_context": 1},
        heard=[filler, text],
        context=[
            ("user", "Is my order ready?"),
            ("assistant", "", [("t1.0", "order_status", {"order": "A-17"})]),
            ("tool", "t1.0", "ready"),
            ("assistant", filler),
            ("assistant", text),
        ],
    )


NOTE = 'Result of an earlier call that had not finished in time: book_table (call t1.0): {"booking":"BK-1001"}'
_CUT = _error("interrupted", "book_table", "the user interrupted before the result arrived")


def _interrupted(shape: Shape, again_us: int, ttft_us: int, last: str) -> tuple[dict[str, Any], int]:
    """A booking of 0.6 s with the caller cutting in 0.3 s into it, and asking the same ``again_us`` after its start."""
    begin = TURN_US + shape.response_us(BOOKING)
    book = {"calls": [{"book_table": BOOKING}]}
    data = {
        "scenario": "s6",
        "caller": [
            line("A table for two on Friday, please."),
            line("A table for two on Friday!", begin + 300_000, begin + again_us),
        ],
        "tools": {"book_table": {**_BOOK, "latency": "600ms", "result": _BOOKED}},
        "llm": {**shape.llm, "rounds": [book, {**book, "ttft": f"{ttft_us}us"}, {"text": last}]},
    }
    return data, begin


@_scenario("S6 after the booking")
def interrupted_booking_told(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """The next turn comes when the booking is done: the note opens it, and the same call is already reported."""
    text = "It is booked already."
    data, begin = _interrupted(shape, 2_000_000, TTFT_US, text)
    turn = begin + 2_000_000
    again = turn + shape.response_us(BOOKING)
    detail = "an identical call was made before; its result is in the note above; do not repeat"
    return data, answered(
        requests=[TURN_US, turn, again],
        phases=[(begin, again)],  # the first has no end of its own
        runs=[("t1.0", begin, begin + 600_000)],
        outcomes=[(begin + 300_000, "t1.0", "interrupted_running"), (again, "t2.0", "orphan_reported")],
        counters={
            "timeline.recorded": 9,
            "tools.side_effect_interrupted": 1,
            "tools.side_effect_late_results": 1,
            "tools.orphan_reported": 1,
            "llm.interrupted_tool_calls": 1,
            "llm.late_notes": 1,
        },
        heard=[text],
        context=[
            ("user", "A table for two on Friday, please."),
            ("assistant", "", [("t1.0", "book_table", BOOKING)]),
            ("tool", "t1.0", _CUT),
            ("system", NOTE),
            ("user", "A table for two on Friday!"),
            ("assistant", "", [("t2.0", "book_table", BOOKING)]),
            ("tool", "t2.0", _error("already_reported", "book_table", detail)),
            ("assistant", text),
        ],
    )


@_scenario("S6 during the booking")
def interrupted_booking_running(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """The next turn comes while it runs: the same call is a duplicate, and the note follows at the next occasion."""
    text = "Still working on it."
    ttft_us = 20_000  # so that the second call falls inside the 0.6 s, however its arguments are cut
    data, begin = _interrupted(shape, 500_000, ttft_us, text)
    turn = begin + 500_000
    again = turn + shape.response_us(BOOKING, ttft_us=ttft_us)
    detail = "an identical call is still running; its result follows as a note; do not repeat"
    return data, answered(
        requests=[TURN_US, turn, again],
        phases=[(begin, again)],
        runs=[("t1.0", begin, begin + 600_000)],
        outcomes=[(begin + 300_000, "t1.0", "interrupted_running"), (again, "t2.0", "orphan_in_flight")],
        counters={
            "timeline.recorded": 9,
            "tools.side_effect_interrupted": 1,
            "tools.side_effect_late_results": 1,
            "tools.orphan_in_flight": 1,
            "llm.interrupted_tool_calls": 1,
            "llm.late_notes": 1,
        },
        heard=[text],
        context=[
            ("user", "A table for two on Friday, please."),
            ("assistant", "", [("t1.0", "book_table", BOOKING)]),
            ("tool", "t1.0", _CUT),
            ("user", "A table for two on Friday!"),
            ("assistant", "", [("t2.0", "book_table", BOOKING)]),
            ("tool", "t2.0", _error("duplicate_call", "book_table", detail)),
            ("assistant", text),
            ("system", NOTE),
        ],
    )
