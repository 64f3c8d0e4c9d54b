"""Notes are keyed on their call, and belong to the application rather than to a session."""

from __future__ import annotations

from bargein.models.apps.notes import Notes
from bargein.models.python_tools import ToolCallContext
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.sim.kernel.cancel import CancelToken
from bargein.sim.kernel.clock import Clock


def context(session: str, call: str) -> ToolCallContext:
    return ToolCallContext(session, 1, call, CancelToken("t"), IdempotencyKey(session, 1, call), Clock())


def test_a_call_that_is_delivered_twice_gives_the_same_note() -> None:
    notes = Notes()
    answers = [notes.save_note("Buy milk.", ctx=context("s", "t1.0")) for _ in range(2)]
    assert answers == [{"note": "N-1"}, {"note": "N-1"}]
    assert list(notes.saved.values()) == [("N-1", "Buy milk.")]


def test_the_same_text_in_another_call_is_another_note() -> None:
    notes = Notes()
    answers = [notes.save_note("Buy milk.", ctx=context("s", call)) for call in ("t1.0", "t1.1")]
    assert answers == [{"note": "N-1"}, {"note": "N-2"}]


def test_one_application_holds_the_notes_of_all_sessions_and_each_reads_its_own() -> None:
    notes = Notes()
    notes.save_note("Buy milk.", ctx=context("s1", "t1.0"))
    notes.save_note("Call Ada.", ctx=context("s2", "t1.0"))
    assert notes.saved == {
        IdempotencyKey("s1", 1, "t1.0"): ("N-1", "Buy milk."),
        IdempotencyKey("s2", 1, "t1.0"): ("N-2", "Call Ada."),
    }
    assert notes.get_notes(ctx=context("s2", "t2.0")) == {"notes": [{"note": "N-2", "text": "Call Ada."}]}


def test_saving_is_a_side_effect_and_reading_is_not() -> None:
    assert {spec.name: spec.side_effect for spec in Notes().tools().specs} == {"save_note": True, "get_notes": False}
