"""The booking store: the guard on business data that the tool engine does not have."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.apps.booking import Bookings, business_key
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.sim import run

SCENARIO: dict[str, Any] = {
    "scenario": "book",
    "agent": {"filler": "off"},
    "caller": [{"say": "Please book a table for two on Friday.", "at": "500ms"}],
    "llm": [
        {"calls": [{"book_table": {"customer": "Ada", "slot": "friday 19:00"}}]},
        {"text": "Done."},
    ],
}


def result_in_session(bookings: Bookings, session: str) -> str:
    result = run(SCENARIO, tools=bookings.tools(), set={"session.id": session})
    assert result.ok
    (answer,) = [message for message in result.context if message["role"] == "tool"]
    return str(answer["content"])


def test_a_guarded_store_books_one_slot_once_whichever_session_asks() -> None:
    bookings = Bookings()
    answers = [result_in_session(bookings, session) for session in ("s1", "s2")]
    assert answers == [
        '{"status":"booked","booking":"BK-1001","slot":"friday 19:00","people":2}',
        '{"status":"already_done","booking":"BK-1001","slot":"friday 19:00","people":2}',
    ]
    assert [(made.id, made.key, made.call) for made in bookings.made] == [
        ("BK-1001", business_key("Ada", "friday 19:00"), IdempotencyKey("s1", 1, "t1.0"))
    ]


def test_a_plain_store_books_again_for_the_second_session() -> None:
    bookings = Bookings(guarded=False)
    answers = [result_in_session(bookings, session) for session in ("s1", "s2")]
    assert answers == [
        '{"status":"booked","booking":"BK-1001","slot":"friday 19:00","people":2}',
        '{"status":"booked","booking":"BK-1002","slot":"friday 19:00","people":2}',
    ]
    assert [(made.id, made.call.session) for made in bookings.made] == [("BK-1001", "s1"), ("BK-1002", "s2")]


@pytest.mark.parametrize(("customer", "slot"), [("Ada", "saturday 19:00"), ("Grace", "friday 19:00")])
def test_another_customer_or_slot_is_another_booking(customer: str, slot: str) -> None:
    bookings = Bookings()
    call = IdempotencyKey("s", 1, "t1.0")
    bookings.book("Ada", "friday 19:00", 2, call)
    assert bookings.book(customer, slot, 4, call)["booking"] == "BK-1002"


def test_a_business_key_tells_pairs_apart_that_read_alike() -> None:
    assert business_key("Ada", "9") != business_key("Ada9", "")
    assert business_key("Ada", "9") == "57dcfd7d61ae6b18632591df09a75ae8d95c8b5f8a170fdaaacaebeb92ba1efd"


def test_the_booking_falls_after_the_time_it_takes() -> None:
    bookings = Bookings(takes="250ms")
    result = run(SCENARIO, tools=bookings.tools())
    times = {record["kind"]: record["t"] for record in result.records if record["kind"].startswith("tool.")}
    assert times["tool.finished"] - times["tool.started"] == 250_000
