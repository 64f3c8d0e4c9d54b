"""The first event of a call is one that a line can wait for."""

from __future__ import annotations

from bargein import sim


def test_a_line_can_follow_the_start_of_the_session() -> None:
    line = {"say": "Hi.", "after": {"event": "session.started", "by": "700ms"}, "level": "decision", "for": "300ms"}
    result = sim.run({"scenario": "first", "caller": [line], "llm": [{"text": "Hello."}]})
    assert [(row[0], row[1]) for row in result.timeline.rows[:2]] == [
        (0, "session.started"),
        (700_000, "caller.started"),
    ]
    assert result.ok
