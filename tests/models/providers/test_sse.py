"""Server-sent events out of bytes: line ends, comments, marks, pieces, and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.models.providers.errors import WireError
from bargein.models.providers.sse import SseEvent, SseParser


def _events(*pieces: bytes) -> list[tuple[int, int, str, str]]:
    parser = SseParser("P")
    found = [event for piece in pieces for event in parser.feed(piece)] + parser.finish()
    return [(event.number, event.offset, event.name, event.data) for event in found]


def test_an_event_has_its_number_its_first_byte_its_name_and_its_data() -> None:
    assert _events(b"event: a\ndata: 1\n\ndata: 2\n\n") == [(1, 0, "a", "1"), (2, 18, "", "2")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_counts(end: bytes) -> None:
    stream = b"event: a\ndata: 1\n\ndata: 2\n\n".replace(b"\n", end)

    assert [event[2:] for event in _events(*(bytes([each]) for each in stream))] == [("a", "1"), ("", "2")]


def test_comments_unknown_fields_and_a_byte_order_mark_are_skipped() -> None:
    stream = b"\xef\xbb\xbf: hello\nretry: 5\n\n: ping\n\ndata: 1\n\n"

    assert _events(stream) == [(1, stream.index(b"data"), "", "1")]


def test_several_data_lines_are_one_text() -> None:
    assert _events(b"data: a\ndata:b\ndata\n\n") == [(1, 0, "", "a\nb\n")]


def test_an_event_without_data_is_none() -> None:
    assert _events(b"event: a\n\ndata: 1\n\n") == [(1, 10, "", "1")]


def test_the_last_event_needs_no_blank_line() -> None:
    assert _events(b"data: 1") == [(1, 0, "", "1")]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), max_size=4), st.data())
def test_any_cut_gives_the_same_events(texts: list[str], data: st.DataObject) -> None:
    stream = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))

    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert _events(*pieces) == _events(stream)
    assert [event[3] for event in _events(*pieces)] == texts


def test_bytes_that_are_no_text_are_named_by_their_place() -> None:
    with pytest.raises(WireError) as caught:
        _events(b"data: 1\n\ndata: \xff\n\n")

    assert caught.value.args == ("P", 2, 9, "byte 15 is not UTF-8")


def test_an_event_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bargein.models.providers.sse.MAX_EVENT_BYTES", 10)

    with pytest.raises(WireError, match="an event holds more than 10 bytes"):
        _events(b"data: 12", b"345")
    assert SseParser("P").feed(b"data: 1\n\n") == [SseEvent(1, 0, "", "1")]
