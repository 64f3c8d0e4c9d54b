"""The three whole-pipeline cases: a clip heard whole, a barge-in inside a clip, and a note that opens a turn."""

from __future__ import annotations

from typing import Any

from bargein import sim
from bargein.models.voice import speak
from bargein.sim.kernel.frames import samples_to_us
from tests.sessions.verification.scripts import BOOKING, NOTE, TURN_US, line, seen

FILLER = "One moment, please."
CALL_US = TURN_US + 350_000
"""When the booking of the first turn begins: its response is one delta, the call."""
CLIP_US = CALL_US + 1_200_000 + 10_000
"""The clip is queued 1.2 s later, at 2.55 s, and begins with the next 20 ms frame."""


def _call(latency: str, *lines: dict[str, Any], last: str = "Your table is booked.") -> dict[str, Any]:
    return {
        "scenario": "booking_with_clip",
        "agent": {"filler": {"delay": "1.2s", "phrases": [FILLER], "clip": "one_moment"}},
        "caller": [line("A table for two on Friday, please."), *lines],
        "tools": {
            "book_table": {
                "kind": "side_effect",
                "latency": latency,
                "result": {"booking": {"counter": "BK", "from": 1001}},
            }
        },
        "llm": {
            "rules": [
                {"when": {"user": "Friday", "round": 1}, "calls": [{"book_table": BOOKING}]},
                {"when": {"round": 1}, "calls": [{"book_table": BOOKING}]},
            ],
            "else": {"text": last},
        },
    }


def _played(result: Any) -> list[tuple[int, str, int]]:
    """``(t, kind, samples or first sample)`` of everything that was played."""
    kinds = ("playout.started", "playout.ended", "playout.cut")
    return [(r["t"], r["kind"], r.get("at_sample", r.get("samples"))) for r in result.records if r["kind"] in kinds]


def test_a_clip_that_is_heard_whole_is_in_the_context_whole() -> None:
    result = sim.run(_call("2.8s"))

    clip = speak("agent", FILLER).length
    done = CALL_US + 2_800_000  # the clip is over by then
    first_audio_us = done + 350_000 + 3 * 20_000 + 150_000  # first token, three more words, first byte
    answer_us = -(-first_audio_us // 20_000) * 20_000
    run = seen(result)
    assert _played(result)[:3] == [
        (CLIP_US, "playout.started", CLIP_US * 2 // 125),
        (CLIP_US + samples_to_us(clip), "playout.ended", clip),
        (answer_us, "playout.started", answer_us * 2 // 125),
    ]
    assert run["heard"] == [FILLER, "Your table is booked."]
    assert run["context"] == [
        ("user", "A table for two on Friday, please."),
        ("assistant", "", [("t1.0", "book_table", BOOKING)]),
        ("tool", "t1.0", '{"booking":"BK-1001"}'),
        ("assistant", FILLER),
        ("assistant", "Your table is booked."),
    ]
    assert run["counters"] == {
        "llm.fillers": 1,
        "llm.filler_clips": 1,
        "llm.fillers_in_context": 1,
        "timeline.recorded": 6,
    }
    assert run["violations"] == []


def test_a_barge_in_inside_the_clip_keeps_the_heard_words_and_the_booking() -> None:
    first_word = speak("agent", FILLER).words[0]
    heard_us = samples_to_us(first_word.end)
    cut_us = CLIP_US + -(-heard_us // 20_000) * 20_000  # the first frame boundary after the first word
    turn_us = cut_us + 500_000
    result = sim.run(_call("5s", line("Hello?", cut_us, turn_us), last="Still working on it."))

    run = seen(result)
    assert _played(result)[:2] == [
        (CLIP_US, "playout.started", CLIP_US * 2 // 125),
        (cut_us, "playout.cut", (cut_us - CLIP_US) * 2 // 125),
    ]
    assert run["outcomes"] == [
        (cut_us, "t1.0", "interrupted_running"),
        (turn_us + 350_000, "t2.0", "orphan_in_flight"),
    ]
    assert run["runs"] == [("t1.0", CALL_US, CALL_US + 5_000_000)]
    assert [message[:2] for message in run["context"]] == [
        ("user", "A table for two on Friday, please."),
        ("assistant", ""),
        ("tool", "t1.0"),
        ("assistant", "One"),  # what was heard of the clip
        ("user", "Hello?"),
        ("assistant", ""),
        ("tool", "t2.0"),
        ("assistant", "Still working on it."),
        ("system", NOTE),  # once, when the booking is done
    ]
    assert '"error":"duplicate_call"' in run["context"][6][2]
    assert run["counters"] == {
        "llm.fillers": 1,
        "llm.filler_clips": 1,
        "llm.fillers_in_context": 1,
        "llm.interrupted_tool_calls": 1,
        "llm.late_notes": 1,
        "timeline.recorded": 9,
        "tools.orphan_in_flight": 1,
        "tools.side_effect_interrupted": 1,
        "tools.side_effect_late_results": 1,
    }
    assert run["violations"] == []


def test_a_note_opens_the_turn_in_which_the_same_call_is_already_reported() -> None:
    cut_us, turn_us = CALL_US + 1_000_000, CALL_US + 2_500_000  # the booking of 2 s ends in between
    result = sim.run(_call("2s", line("Hello?", cut_us, turn_us), last="It is booked already."))

    run = seen(result)
    assert run["fillers"] == []
    assert run["runs"] == [("t1.0", CALL_US, CALL_US + 2_000_000)]
    assert run["outcomes"] == [
        (cut_us, "t1.0", "interrupted_running"),
        (turn_us + 350_000, "t2.0", "orphan_reported"),
    ]
    assert [message[:2] for message in run["context"]] == [
        ("user", "A table for two on Friday, please."),
        ("assistant", ""),
        ("tool", "t1.0"),
        ("system", NOTE),
        ("user", "Hello?"),
        ("assistant", ""),
        ("tool", "t2.0"),
        ("assistant", "It is booked already."),
    ]
    assert '"error":"already_reported"' in run["context"][6][2]
    assert run["counters"] == {
        "llm.interrupted_tool_calls": 1,
        "llm.late_notes": 1,
        "timeline.recorded": 9,
        "tools.orphan_reported": 1,
        "tools.side_effect_interrupted": 1,
        "tools.side_effect_late_results": 1,
    }
    assert run["violations"] == []
