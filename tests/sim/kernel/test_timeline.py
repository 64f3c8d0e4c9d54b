"""The timeline: named records, a canonical text, its digest, and reading it back."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline, read_jsonl

KINDS = {"word": ("text", "at_sample"), "cut": ("heard",), "tick": ()}


def short_story() -> Timeline:
    clock = Clock()
    timeline = Timeline(clock, KINDS)
    clock.call_at(10, Order.PLAYOUT, lambda _: timeline.add("word", 1, 'Ça va — "ok"?', 320))
    clock.call_at(25, Order.PLAYOUT, lambda _: timeline.add("cut", 1, [1, None, True]))
    clock.call_at(25, Order.WORK, lambda _: timeline.add("tick", 2))
    clock.run()
    return timeline


TEXT = (
    '{"at_sample":320,"epoch":1,"kind":"word","seq":0,"t":10,"text":"Ça va — \\"ok\\"?"}\n'
    '{"epoch":1,"heard":[1,null,true],"kind":"cut","seq":1,"t":25}\n'
    '{"epoch":2,"kind":"tick","seq":2,"t":25}\n'
)


def test_records_are_named_when_read() -> None:
    timeline = short_story()
    records = [
        {"t": 10, "seq": 0, "kind": "word", "epoch": 1, "text": 'Ça va — "ok"?', "at_sample": 320},
        {"t": 25, "seq": 1, "kind": "cut", "epoch": 1, "heard": [1, None, True]},
        {"t": 25, "seq": 2, "kind": "tick", "epoch": 2},
    ]
    assert list(timeline) == records
    assert (len(timeline), timeline[0], timeline[-1]) == (3, records[0], records[2])
    assert timeline.of("tick", "word") == [records[0], records[2]]
    with pytest.raises(IndexError):
        timeline[3]


def test_the_text_is_canonical_and_its_digest_is_pinned() -> None:
    timeline = short_story()
    assert timeline.to_jsonl() == TEXT
    assert timeline.digest() == sha256(TEXT.encode()).hexdigest()
    assert timeline.digest() == "b54035733820dc1e4f7e158a7407e37feb5cbf44ac6401dba001c724a41297bb"


def test_reading_the_text_gives_the_records_back() -> None:
    timeline = short_story()
    assert read_jsonl(timeline.to_jsonl()) == list(timeline)
    assert read_jsonl("") == []


@pytest.mark.parametrize(
    "said", ["two\u2028lines", "\x85", "\x0b\x1c", "a\r\nb", "half \ud83d of a pair", "\U0001f600"]
)
def test_whatever_is_said_is_one_line_of_utf_8_and_reads_back(said: str) -> None:
    timeline = Timeline(Clock(), KINDS)
    timeline.add("word", 1, said, 0)
    text = timeline.to_jsonl()
    assert text.count("\n") == 1
    assert read_jsonl(text.encode().decode()) == [
        {"t": 0, "seq": 0, "kind": "word", "epoch": 1, "text": said, "at_sample": 0}
    ]
    assert len(timeline.digest()) == 64


@pytest.mark.parametrize("values", [(), ("a",), ("a", 1, 2)])
def test_a_record_with_too_few_or_too_many_values_is_found_when_it_is_read(values: tuple[Any, ...]) -> None:
    timeline = Timeline(Clock(), KINDS)
    timeline.add("word", 0, *values)
    with pytest.raises(ValueError, match="zip"):
        timeline.record(0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold_is_refused(value: float) -> None:
    timeline = Timeline(Clock(), KINDS)
    timeline.add("cut", 0, value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        timeline.to_jsonl()


def test_a_watcher_sees_each_record_of_its_kind_as_it_is_appended() -> None:
    timeline = Timeline(Clock(), KINDS)
    seen: list[tuple[str, tuple[Any, ...], int]] = []
    timeline.add("cut", 0, 1)
    timeline.watch("cut", lambda row: seen.append(("first", row, len(timeline))))
    timeline.watch("cut", lambda row: seen.append(("second", row, len(timeline))))
    timeline.add("tick", 0)
    timeline.add("cut", 3, 2)
    row = (0, "cut", 3, 2)
    assert seen == [("first", row, 3), ("second", row, 3)]


def test_a_watcher_that_is_added_while_watchers_are_told_waits_for_the_next_record() -> None:
    timeline = Timeline(Clock(), KINDS)
    seen: list[int] = []
    timeline.watch("tick", lambda _: timeline.watch("tick", lambda row: seen.append(row[2])))
    timeline.add("tick", 1)
    timeline.add("tick", 2)
    assert seen == [2]


def test_nobody_can_watch_a_kind_that_is_not_there() -> None:
    with pytest.raises(LookupError, match=r"^no timeline event is called chime$"):
        Timeline(Clock(), KINDS).watch("chime", print)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"t":1,"seq":0,"kind":"x"}\n{', "line 2 is not JSON: "),
        ("[1]", "line 1 is not a timeline record: it needs t, seq and kind"),
        ('{"t":1,"kind":"x"}', "line 1 is not a timeline record: it needs t, seq and kind"),
        ("\n", "line 1 is not JSON: "),
    ],
)
def test_text_that_is_no_timeline_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_jsonl(text)
    assert str(caught.value).startswith(message)
