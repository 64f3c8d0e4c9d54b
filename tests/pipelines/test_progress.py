"""A long tool says how far it is: always on the timeline, aloud only where the session asks for it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.result import Result


def call(speak_progress: bool, filler: Any = None, progress: Any = None) -> Result:
    """One turn with a tool of 5 s that starts at 2 s: the words end at 1.5 s, the model takes 0.5 s."""
    return sim.run(
        {
            "scenario": "progress",
            "agent": {"filler": {"speak_progress": speak_progress, **(filler or {"delay": "20s"})}},
            "tools": {
                "report": {
                    "latency": "5s",
                    "timeout": "8s",
                    "progress": progress or [{"at": "2s", "text": "Halfway there."}],
                }
            },
            "caller": [{"say": "Run it.", "level": "decision", "at": "1s", "for": "500ms"}],
            "llm": {"rounds": [{"calls": [{"report": {}}]}, {"text": "Done."}], "ttft": "500ms"},
        }
    )


def test_progress_is_spoken_as_a_round_of_its_own_on_its_instant() -> None:
    result = call(True)
    assert [(r["t"], r["text"]) for r in result.timeline.of("tool.progress")] == [(4_000_000, "Halfway there.")]
    assert [(r["t"], r["text"], r["clip"]) for r in result.timeline.of("filler.spoken")] == [
        (4_000_000, "Halfway there.", None)
    ]
    assert result.heard == ["Halfway there.", "Done."]
    said = [(m["role"], m.get("text", "")) for m in result.context if m["role"] == "assistant"]
    assert said == [("assistant", ""), ("assistant", "Halfway there."), ("assistant", "Done.")]
    assert result.violations == []


def test_progress_is_never_a_result_and_is_silent_unless_asked_for() -> None:
    result = call(False)
    assert len(result.timeline.of("tool.progress")) == 1
    assert result.timeline.of("filler.spoken") == []
    assert result.heard == ["Done."]
    assert [m["content"] for m in result.context if m["role"] == "tool"] == ['{"ok":true}']


def test_the_filler_and_every_report_are_spoken_in_the_order_they_fell_due() -> None:
    reports = [{"at": "2s", "text": "Halfway there."}, {"at": "2s", "text": "Almost."}]
    result = call(True, {"delay": "2s"}, reports)
    assert [(r["t"], r["text"]) for r in result.timeline.of("filler.spoken")] == [
        (4_000_000, "Halfway there."),
        (4_000_000, "Almost."),
        (4_000_000, "One moment, please."),
    ]
    assert result.heard == ["Halfway there.", "Almost.", "One moment, please.", "Done."]
    assert result.violations == []


def test_each_timed_round_is_summed_up_on_the_timelines_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="bargein.timeline"):
        call(False)
    assert [record.getMessage() for record in caplog.records if record.name == "bargein.timeline"] == [
        "llm request finished: turn 1, round 0, first token after 500000 us, done after 500000 us",
        "llm request finished: turn 1, round 1, first token after 500000 us, done after 500000 us",
    ]
