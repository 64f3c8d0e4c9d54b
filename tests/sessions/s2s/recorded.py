"""Live calls to be recorded and resumed, a kind of trouble each, and how a log of one is edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bargein import sim
from bargein.sim.effects.identity import content_digest, stable_hash, written
from bargein.sim.effects.log import EffectLog
from bargein.sim.lab.replays import record
from bargein.sim.scenario.build import Plan
from tests.sessions.s2s.live import call, line, placed

__all__ = ["CALLS", "recorded", "resealed"]

BOOKING = {"book": {"kind": "side_effect", "latency": "900ms", "result": "BK-1"}}
FILLER = {"filler": {"delay": "300ms"}}
FIRST = line("A table for two on Friday, please.", 100_000, 400_000)
NAIVE = {"behaviour": "naive", "tool": "book", "done": "It is booked already. Bye for now."}
STORY = {"rules": [{"when": {"user": "Wait"}, "text": "Yes?"}], "else": {"text": "Well, here is a long story. " * 2}}
UNEVEN = {"transcript": "1s", "latency": {"dist": "lognorm", "median": "80ms", "p95": "300ms"}}


def _cut_in(provider: str, at_us: int, **s2s: Any) -> dict[str, Any]:
    lines = (FIRST, line("Wait.", at_us, at_us + 300_000))
    return call(provider, NAIVE, *lines, s2s=s2s, agent=FILLER, tools=BOOKING)


CALLS: dict[str, dict[str, Any]] = {
    "a barge-in that truncates": call("realtime", STORY, placed("Hi."), line("Wait.", 2_300_000, 2_700_000)),
    "a barge-in that nobody tells the provider of": _cut_in("gemini_live", 3_000_000),
    "tool calls at once": call(
        "realtime",
        [{"calls": [{"look": {"at": "Oslo"}}, {"look": {"at": "Rome"}}]}, {"text": "Sun and fog."}],
        tools={"look": {"results": [{"latency": "30ms", "result": "sun"}, {"latency": "20ms", "result": "fog"}]}},
    ),
    "tool calls one after the other": call(
        "gemini_live",
        [{"calls": [{"look": {}}]}, {"calls": [{"ask": {}}]}, {"text": "Sunny."}],
        tools={"look": {"latency": "15ms", "result": "x"}, "ask": {"latency": "12ms", "error": "closed"}},
    ),
    "calls that the provider withdraws": _cut_in("gemini_live", 1_400_000),
    "late turn events": _cut_in("realtime", 2_111_000, turn_delay="600ms"),
    "the client's turns": _cut_in("realtime", 1_403_000, turns="client"),
    "an uneven wire": _cut_in("realtime", 900_000, **UNEVEN),
    "real audio": call(
        "realtime", STORY, placed("Hi."), {"say": "Wait a moment, please, I have to tell you.", "at": "2s"}
    ),
    "an echo of the agent, which hears its own samples": call(
        "gemini_live",
        {"rules": [{"when": {}, "text": "Of course."}]},
        {"say": "A table for two.", "at": "500ms"},
        acoustics={"echo": {"delay": "80ms", "gain_db": -20}},
        session={"max_duration": "6s"},
    ),
    "a response that fails": call("realtime", [{"text": "Well,", "error": "overloaded"}]),
    "a provider that never answers": call(
        "realtime", [{"text": "Hello.", "ttft": "never"}], session={"max_duration": "20s"}
    ),
}


def recorded(name: str, **options: Any) -> EffectLog:
    """The log of a call, read back from its bytes."""
    return EffectLog.from_bytes(record(Plan(sim.load(CALLS[name])), **options)[1].to_bytes(), "a.log")


def resealed(log: EffectLog, change: Callable[[dict[str, Any], list[dict[str, Any]]], object]) -> EffectLog:
    """The log edited by somebody who knows how to make its checks fit."""
    header, *rest = [json.loads(text) for text in log.to_bytes().splitlines()][:-1]
    change(header, rest)
    body = b""
    for each in (header, *rest):
        if "request" in each:
            each["hash"] = stable_hash(each["request"])
        text = written({key: value for key, value in each.items() if key != "check"})
        body += b'{"check":"' + content_digest(text)[:16].encode() + b'",' + text[1:] + b"\n"
    end = written({"end": {"records": len(rest), "sha256": content_digest(body)}}) + b"\n"
    return EffectLog.from_bytes(body + end, "a.log")
