"""The confirmation gate speech to speech: a reply is speech that began after the question, whenever it is reported."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from tests.sessions.s2s.live import call, line

GATED = {"transfer": {"kind": "side_effect", "confirm": True, "latency": "50ms", "result": "sent"}}


def _gate(result: Any) -> list[tuple[Any, ...]]:
    kinds = ("confirm.requested", "confirm.taken", "tool.started")
    settled = [(r["t"], r["outcome"]) for r in result.records if r["kind"] == "tool.settled"]
    return [*((r["t"], r["kind"]) for r in result.records if r["kind"] in kinds), *settled]


def _script() -> dict[str, Any]:
    """The model asks, confirms at once of its own, asks the caller, and confirms when they have replied."""
    confirm = {"confirm_pending": {"call_id": "t1.0"}}
    return {
        "rules": [
            {"when": {"user": "Yes", "round": 1}, "calls": [confirm]},
            {"when": {"user": "Yes"}, "text": "Done."},
            {"when": {"round": 1}, "calls": [{"transfer": {}}]},
            {"when": {"round": 2}, "calls": [confirm]},
        ],
        "else": {"text": "Shall I?"},
    }


@pytest.mark.parametrize("provider", ["realtime", "gemini_live"])
@pytest.mark.parametrize("turn_delay_ms", [0, 400, 900])
def test_speech_that_was_going_on_when_the_request_was_made_is_not_the_reply(provider: str, turn_delay_ms: int) -> None:
    s2s = {"latency": "0ms", "turn_delay": f"{turn_delay_ms}ms"}
    lines = (line("Send it.", 100_000, 1_000_000), line("Yes.", 5_000_000, 5_500_000))
    result = sim.run(call(provider, _script(), *lines, s2s=s2s, tools=GATED))

    # The request is made 350 ms after the speech, and the word of its end comes up to 900 ms after it.
    asked_us, refused_us, confirmed_us = 1_350_000, 1_700_000, 5_850_000
    assert _gate(result) == [
        (asked_us, "confirm.requested"),
        (confirmed_us, "confirm.taken"),
        (confirmed_us, "tool.started"),
        (asked_us, "confirmation_required"),
        (refused_us, "confirmation_refused"),
        (confirmed_us + 50_000, "ok"),
    ]
    assert result.tools["transfer"]["runs"] == 1
    assert result.violations == []


def test_the_late_report_itself_stands_between_the_request_and_the_refusal() -> None:
    s2s = {"latency": "0ms", "turn_delay": "500ms"}
    result = sim.run(call("realtime", _script(), line("Send it.", 100_000, 1_000_000), s2s=s2s, tools=GATED))

    order = [
        r.get("what") or r["kind"]
        for r in result.records
        if r["kind"] in ("turn.user", "confirm.requested")
        or (r["kind"] == "tool.settled" and r["outcome"] == "confirmation_refused")
        or r.get("what") == "input_audio_buffer.speech_stopped"
    ]
    assert order == ["turn.user", "confirm.requested", "input_audio_buffer.speech_stopped", "tool.settled"]


def test_an_interruption_of_the_question_clears_the_request() -> None:
    lines = (line("Send it.", 100_000, 1_000_000), line("Yes.", 2_200_000, 2_500_000))
    result = sim.run(call("realtime", _script(), *lines, s2s={"latency": "0ms"}, tools=GATED))

    cleared = [(r["t"], r["reason"]) for r in result.records if r["kind"] == "confirm.cleared"]
    assert cleared == [(2_200_000, "barge_in")]
    assert result.tools["transfer"]["runs"] == 0
    assert result.violations == []
