"""Redaction: in values, in texts that are streamed over several events, and without touching anything else."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.cassettes import Exchange
from bargein.models.redaction import Redactor

NUMBER = Redactor([r"555-\d{4}"])


def _pieces(redactor: Redactor, *pieces: tuple[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return redactor.exchange(Exchange({}, 200, 0, pieces, 99)).pieces


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ("call 555-0100 or 555-0101", "call [redacted] or [redacted]"),
        ({"a": ["555-0100", 1, None, True]}, {"a": ["[redacted]", 1, None, True]}),
        ({"555-0100": {}}, {"[redacted]": {}}),
        ("[redacted] 555-0100", "[redacted] [redacted]"),
    ],
)
def test_matches_are_taken_out_of_values(value: Any, clean: Any) -> None:
    assert NUMBER.value(value) == clean
    assert NUMBER.value(clean) == clean


def test_a_number_that_matches_is_redacted_as_a_whole() -> None:
    assert Redactor(["5550"]).value({"phone": 5550100, "people": 2}) == {"phone": "[redacted]", "people": 2}


def test_patterns_that_overlap_leave_one_mark_and_the_mark_itself_is_never_a_match() -> None:
    assert Redactor(["abc", "cde", "[a-z]+d"]).text("xabcdex") == "[redacted]x"
    assert Redactor(["red", "[a-z]+"]).text("[redacted] 12 red") == "[redacted] 12 [redacted]"


def test_a_text_over_several_events_is_found_where_it_reads_as_one() -> None:
    said = [
        (1, b'data: {"type":"delta","index":0,"text":"at 55"}\n\ndata: {"type":"delta","index":1,"text":"other"}\n'),
        (2, b'\ndata: {"type":"delta","index":0,"text":"5-01"}\n\n'),
        (3, b'data: {"type":"delta","index":0,"text":"00 now"}\n\ndata: [DONE]\n\n'),
    ]

    assert _pieces(NUMBER, *said) == (
        (1, b'data: {"type":"delta","index":0,"text":"at [redacted]"}\n\n'),
        (2, b'data: {"type":"delta","index":1,"text":"other"}\n\n'),
        (2, b'data: {"type":"delta","index":0,"text":""}\n\n'),
        (3, b'data: {"type":"delta","index":0,"text":" now"}\n\n'),
        (3, b"data: [DONE]\n\n"),
    )


def test_texts_of_two_calls_are_not_read_as_one() -> None:
    calls = [
        b'data: {"calls":[{"index":%d,"args":"%s"}]}\n\n' % (at, text) for at, text in ((0, b"555-"), (1, b"0100"))
    ]

    assert _pieces(NUMBER, (1, calls[0]), (2, calls[1])) == ((1, calls[0]), (2, calls[1]))
    assert _pieces(NUMBER, (1, calls[0]), (2, calls[1].replace(b":1", b":0")))[1][1].endswith(b'"args":""}]}\n\n')


def test_a_call_is_followed_by_its_index_wherever_it_stands_in_a_list() -> None:
    both = b'data: {"calls":[{"index":0,"args":"x"},{"index":1,"args":"555-"}]}\n\n'
    alone = b'data: {"calls":[{"index":1,"args":"0100"}]}\n\n'

    assert _pieces(NUMBER, (1, both), (2, alone)) == (
        (1, b'data: {"calls":[{"index":0,"args":"x"},{"index":1,"args":"[redacted]"}]}\n\n'),
        (2, b'data: {"calls":[{"index":1,"args":""}]}\n\n'),
    )


def test_an_answer_without_a_match_stays_as_it_is_to_the_byte() -> None:
    odd = (1, b'\xef\xbb\xbf: hi\r\ndata: {"a" : "b"}\r'), (4, b"\n\r\nda"), (4, b"ta: \xff")

    assert _pieces(NUMBER, *odd) == odd


def test_a_name_of_an_event_survives_and_the_rest_of_the_stream_is_not_touched() -> None:
    said = b'event: x\ndata: {"t":"555-0100"}\n\nevent: y\ndata: {"t" : 1}\n\n'

    assert _pieces(NUMBER, (5, said)) == (
        (5, b'event: x\ndata: {"t":"[redacted]"}\n\n'),
        (5, b'event: y\ndata: {"t" : 1}\n\n'),
    )


@pytest.mark.parametrize(
    ("body", "clean"),
    [
        (b'{"error": "555-0100"}', b'{"error":"[redacted]"}'),
        (b"no JSON: 555-0100", b"no JSON: [redacted]"),
        (b"", b""),
    ],
)
def test_a_body_that_is_no_stream_is_redacted_too(body: bytes, clean: bytes) -> None:
    assert b"".join(piece for _, piece in _pieces(NUMBER, (1, body[:3]), (2, body[3:]))) == clean


def test_a_secret_goes_also_where_no_text_stands() -> None:
    hidden = Redactor(secrets=["s.cret", ""])

    assert _pieces(hidden, (1, b': s.cret\n\ndata: {"a":1}\n\n')) == ((1, b': [redacted]\n\ndata: {"a":1}\n\n'),)
    assert hidden.text("secret s.cret") == "secret [redacted]"  # it is no pattern
