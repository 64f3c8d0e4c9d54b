"""The turn-taking trace and the caller onsets."""

from __future__ import annotations

import json

import pytest

from bargein.sim.report.turns import caller_onsets, turn_trace


def read(records):
    """Each line as ``(time, caller audible, agent audible, what happened)``."""
    lines = [json.loads(line) for line in turn_trace(records).splitlines()]
    state = ("time", "caller_audio_active", "agent_audio_active")
    return [(*(each.pop(name) for name in state), each) for each in lines]


def test_it_says_who_was_audible_and_what_happened_meanwhile(interrupted_booking):
    book, cut = {"tool": "book_table"}, "interrupted_running"
    found = [line for line in read(interrupted_booking) if "agent_word" not in line[3]]
    assert found == [
        (0.0, False, False, {}),
        (0.5, True, False, {"caller_text": "A table for two on Friday, please."}),
        (2.1, False, False, {}),
        (2.6, False, False, {"end_of_turn": True}),
        (2.65, False, False, {"user_turn": {"epoch": 1, "text": "A table for two on Friday, please."}}),
        (3.1, False, False, {"tool_call": {"call": "t1.0", **book, "side_effect": True}}),
        (3.16, False, True, {}),
        (4.3, False, True, {"filler": "One moment, please."}),
        (4.7, True, True, {"caller_text": "Wait, make it three."}),
        (
            5.013,
            True,
            True,
            {"barge_in": True, "tool_result": {"call": "t1.0", **book, "outcome": cut}},
        ),
        (5.02, True, False, {}),
        (5.6, False, False, {}),
        (6.1, False, False, {"end_of_turn": True}),
        (6.15, False, False, {"user_turn": {"epoch": 2, "text": "Wait, make it three."}}),
        (6.5, False, False, {"tool_call": {"call": "t2.0", **book, "side_effect": True}}),
        (6.52, False, True, {}),
        (7.3, False, True, {"tool_result": {"call": "t2.0", **book, "outcome": "ok"}}),
        (7.82, False, True, {}),
        (9.5, False, False, {"session_end": "quiet"}),
    ]
    words = [line[3]["agent_word"] for line in read(interrupted_booking) if "agent_word" in line[3]]
    assert "".join(words) == "Let me book that for you.One moment,Sorry, for three then.Done. For three."


def test_sound_that_starts_between_two_records_starts_at_its_first_sample(story):
    story.add("playout.started", 0, "answer", 320).at(10).add("turn.ended", 0)
    story.at(40).add("playout.ended", 0, 320)
    assert read(story.records) == [
        (0.0, False, False, {}),
        (0.01, False, False, {"end_of_turn": True}),
        (0.02, False, True, {}),
        (0.04, False, False, {}),
    ]


def test_two_calls_at_one_instant_have_a_line_each(story):
    story.add("tool.started", "t1.0", "a", False, 0).add("tool.started", "t1.1", "b", False, 1)
    calls = [line[3]["tool_call"]["call"] for line in read(story.records)]
    assert calls == ["t1.0", "t1.1"]


def test_a_reader_of_onset_files_finds_the_caller_lines(interrupted_booking, tmp_path):
    io = pytest.importorskip("mir_eval.io", reason="mir_eval is not installed")
    path = tmp_path / "onsets.txt"
    path.write_text(caller_onsets(interrupted_booking), encoding="utf-8")
    assert io.load_events(str(path)).tolist() == [0.5, 4.7]
