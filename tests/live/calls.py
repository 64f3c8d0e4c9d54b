"""The six verification scenarios for a real model: the same tools, a prompt, and no script.

Lines wait for events where the model's pace decides. Left out: what must come of them (``loose`` of the verification
scenarios), which holds whatever a real model says.
"""

from __future__ import annotations

from typing import Any

from tests.sessions.verification.loose import LOOSE, Check
from tests.sessions.verification.scripts import SCENARIOS, SHAPES

__all__ = ["CALLS", "S2S_CALLS", "SENTENCE", "check_of"]

SLOW_TOOL, FILLER, BOOKING = "1s", "400ms", "600ms"
"""The only three times of the live calls: the tool and the filler of S5, the booking of S6."""

LIMIT = "120s"
"""S6 ends there, whatever has not begun by then."""

_SPEAK = "You answer the telephone. Speak plainly, in one or two short sentences. "
_PROMPTS = {
    1: "Look up every city that the caller asks for, all at once, before you answer.",
    2: "The caller's phone number is 555-0100. Look up the customer, the city, then the weather, one by one.",
    3: "Book what the caller asks for, once.",
    4: "Ask for the forecast as the caller wants it. If the tool refuses, read why and call it again.",
    5: "The caller's order is A-17. Look its status up before you answer.",
    6: "Book what the caller asks for. Friday is written friday. Do not book the same again.",
}
_LINES = {1: "What is the weather in Izmir, Ankara and Istanbul?"}


def _call(number: int) -> dict[str, Any]:
    name = next(each for each in SCENARIOS if each.startswith(f"S{number}"))
    data = SCENARIOS[name](SHAPES["plain"])[0]
    del data["llm"]
    data["agent"] = {"system": _SPEAK + _PROMPTS[number]}
    data["caller"] = data["caller"][:1]
    if number in _LINES:
        data["caller"] = [{**data["caller"][0], "say": _LINES[number]}]
    if number == 5:
        data["tools"]["order_status"]["latency"] = SLOW_TOOL
        data["agent"]["filler"] = {"delay": FILLER}
    if number == 6:
        data["tools"]["book_table"]["latency"] = BOOKING
        begun = {"event": "tool.started", "tool": "book_table", "by": "300ms"}
        again = {"say": "A table for two on Friday!", "after": begun, "level": "decision", "for": "1700ms"}
        data["caller"] += [again, {"hang_up": True, "at": LIMIT}]
    return data


CALLS: dict[int, dict[str, Any]] = {number: _call(number) for number in range(1, 7)}


def check_of(number: int) -> Check:
    """The loose check of a scenario."""
    return LOOSE[f"S{number}"]


SENTENCE = "The East African Islands are in the Indian Ocean off the eastern coast of Africa."
"""What the caller says to a provider of speech to speech; the prompt makes one or the other of it."""


def _s2s(prompt: str, tools: tuple[str, ...]) -> dict[str, Any]:
    of = {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}
    tool = {"parameters": {**of, "additionalProperties": False}, "latency": "200ms", "result": {"found": "{args.of}"}}
    return {
        "scenario": "live_speech",
        "agent": {"system": _SPEAK + prompt},
        "s2s": {"provider": "gemini_live"},
        "caller": [{"say": SENTENCE, "at": "100ms"}],
        "tools": dict.fromkeys(tools, tool),
    }


S2S_CALLS: dict[int, dict[str, Any]] = {
    1: _s2s(
        "Whatever the caller says, look up the area, the population and the climate of the place, all at once.",
        ("get_area", "get_population", "get_climate"),
    ),
    2: _s2s(
        "Whatever the caller says, look up a country there, then its capital, then the weather in that.",
        ("get_country", "get_capital", "get_weather"),
    ),
}
