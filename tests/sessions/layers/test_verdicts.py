"""Results that a layer keeps back until somebody has judged them: the body has run, and nothing undoes that."""

from __future__ import annotations

from typing import Any

from tests.sessions.layers.layers_kit import (
    BOOK,
    LOOK,
    MS,
    Judge,
    MakeLayers,
    S,
    answers,
    log,
    notes,
    remembered,
    run,
    told,
)

AGAIN: list[dict[str, Any]] = [{"calls": [{"book": {"people": 2}}]}] * 2 + [{"text": "Done."}]
NOTE = "Result of an earlier call that had not finished in time: book (call t1.0): "


def judged_after(after_us: int | None, around: str = "book", denial: str | None = None) -> MakeLayers:
    return lambda clock: {around: [Judge(clock, after_us, denial)]}


def cutting_in(at: str, say: str = "Stop.") -> dict[str, Any]:
    return {"at": at, "level": "decision", "for": "100ms", "say": say}


def test_the_timeline_tells_the_bodys_end_and_the_call_is_answered_with_the_verdict() -> None:
    result = run(judged_after(300 * MS))
    assert told(result, "tool.") == [
        (450 * MS, "tool.started", "t1.0"),
        (950 * MS, "tool.finished", "t1.0", "ok"),
        (950 * MS, "tool.withheld", "t1.0", "judge"),
        (1250 * MS, "tool.settled", "t1.0", "ok"),
    ]
    assert log(result)[1] == (BOOK, "ok", 450 * MS, 950 * MS)
    assert answers(result) == [("t1.0", '{"booked":true}')]


def test_a_result_that_is_not_let_through_was_brought_about_and_is_a_repeat_when_asked_for_again() -> None:
    result = run(judged_after(300 * MS, denial="Do not tell."), llm=AGAIN)
    assert told(result, "tool.")[2:] == [
        (950 * MS, "tool.withheld", "t1.0", "judge"),
        (1250 * MS, "tool.settled", "t1.0", "denied"),
        (1600 * MS, "tool.settled", "t1.1", "repeat_refused"),
    ]
    assert answers(result)[0] == ("t1.0", "Do not tell.")
    assert result.tools["book"]["runs"] == 1
    assert result.opened.session.bus.log[1].outcome.value == {"booked": True}
    assert remembered(result) == (1, 1)


def test_an_interruption_makes_it_an_orphan_whose_note_is_the_verdict() -> None:
    result = run(judged_after(2 * S), caller=[cutting_in("1500ms")])
    assert told(result, "tool.", "turn.interrupted", "session") == [
        (450 * MS, "tool.started", "t1.0"),
        (950 * MS, "tool.finished", "t1.0", "ok"),
        (950 * MS, "tool.withheld", "t1.0", "judge"),
        (1500 * MS, "turn.interrupted", "barge_in"),
        (1500 * MS, "tool.settled", "t1.0", "interrupted_running"),
        (2950 * MS, "tool.late_result", "t1.0", "ok"),
        (2950 * MS, "session.ended", "quiet"),
    ]
    assert notes(result) == [NOTE + '{"booked":true}']


def test_the_same_call_is_in_flight_until_the_verdict_is_there() -> None:
    result = run(judged_after(2 * S), caller=[cutting_in("1500ms", "Again.")], llm=AGAIN)
    assert (1950 * MS, "tool.settled", "t2.0", "orphan_in_flight") in told(result, "tool.settled")
    assert (result.tools["book"]["runs"], notes(result)) == (1, [NOTE + '{"booked":true}'])


def test_a_denial_may_come_as_a_note() -> None:
    result = run(judged_after(2 * S, denial="Do not tell."), caller=[cutting_in("1500ms")])
    assert told(result, "tool.late_result") == [(2950 * MS, "tool.late_result", "t1.0", "denied")]
    assert notes(result) == [NOTE + "Do not tell."]


def test_its_time_limit_ends_the_wait_and_the_verdict_comes_late() -> None:
    result = run(judged_after(2 * S), tools={"book": {"timeout": "1s"}})
    assert told(result, "tool.")[3:] == [
        (1450 * MS, "tool.settled", "t1.0", "timed_out_running"),
        (2950 * MS, "tool.late_result", "t1.0", "ok"),
    ]


def test_a_verdict_that_never_comes_leaves_the_effect_lost_at_the_backstop() -> None:
    engine = {"max_side_effect_runtime": "3s"}
    result = run(judged_after(None), tools={"book": {"timeout": "1s"}}, agent={"engine": engine})
    assert told(result, "tool.", "session")[3:] == [
        (1450 * MS, "tool.settled", "t1.0", "timed_out_running"),
        (3450 * MS, "tool.late_result", "t1.0", "lost"),
        (3450 * MS, "session.ended", "quiet"),
    ]
    assert log(result)[1] == (BOOK, "ok", 450 * MS, 950 * MS)  # the record keeps what the handler answered
    assert '"error":"unknown_outcome"' in notes(result)[0]


def test_at_the_end_of_the_call_nobody_knows_the_verdict() -> None:
    result = run(judged_after(9 * S), caller=[{"at": "1500ms", "hang_up": True}])
    assert told(result, "tool.", "session")[3:] == [
        (1500 * MS, "tool.settled", "t1.0", "interrupted_running"),
        (1500 * MS, "tool.late_result", "t1.0", "lost"),
        (1500 * MS, "session.ended", "hang_up"),
    ]


def test_a_lookup_is_given_up_with_its_verdict() -> None:
    look = [{"calls": [{"look": {}}]}, {"text": "Well."}]
    result = run(judged_after(9 * S, "look"), caller=[cutting_in("1500ms")], llm=look)
    assert told(result, "tool.") == [
        (450 * MS, "tool.started", "t1.0"),
        (550 * MS, "tool.finished", "t1.0", "ok"),
        (550 * MS, "tool.withheld", "t1.0", "judge"),
        (1500 * MS, "tool.settled", "t1.0", "interrupted"),
    ]
    assert log(result)[1] == (LOOK, "ok", 450 * MS, 550 * MS)
    assert {name: n for name, n in result.counters["tools"].items() if n} == {"read_only_cancelled": 1}
