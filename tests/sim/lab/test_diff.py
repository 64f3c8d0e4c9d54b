"""Where two timelines part, and what is said about it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bargein.sim.cli import main
from bargein.sim.lab.diff import Difference, Move, TimelineError, Verdict, compare, read_timeline, tell


@pytest.fixture
def call_a(story):
    """Eight events of a short call."""
    story.add("session.started").at(100).add("caller.started", 1, "Hi.", 300_000, "audio")
    story.at(140).add("vad.started", 100_000).at(400).add("caller.ended", 1).add("turn.ended", 380_000)
    story.at(500).add("playout.started", 0, "answer", 8_000).at(900).add("playout.ended", 0, 6_400)
    return story.add("session.ended", "quiet").records


def later(records, at, us):
    """The same events, those from ``at`` on later."""
    return [{**record, "t": record["t"] + us} if record["seq"] >= at else record for record in records]


def test_equal_timelines_have_no_difference(call_a):
    assert compare(call_a, [dict(record) for record in call_a]) is None
    assert tell(None, call_a, call_a) == ["equal: 8 events"]


def test_only_times_moved_says_which_first_and_which_most(call_a):
    call_b = later(later(call_a, 4, 20_000), 6, -50_000)
    difference = compare(call_a, call_b)
    assert difference == Difference(
        Verdict.TIMES, 4, None, (Move(4, 20_000), Move(5, 20_000), Move(6, -30_000), Move(7, -30_000))
    )
    assert tell(difference, call_a, call_b, ("golden", "now")) == [
        "only times moved: 4 of 8 events, first event 4 (turn.ended) by +20ms, most event 6 (playout.ended) by -30ms",
        "--- golden",
        "+++ now",
        "",
        "first difference: event 4, turn.ended: t 400000 -> 420000 (+20ms)",
        '     1    0.100000  caller.started   epoch=0 line=1 text="Hi." duration_us=300000 level="audio"',
        "     2    0.140000  vad.started      epoch=0 onset_us=100000",
        "     3    0.400000  caller.ended     epoch=0 line=1",
        "-    4    0.400000  turn.ended       epoch=0 speech_end_us=380000",
        '-    5    0.500000  playout.started  epoch=0 utterance=0 source="answer" at_sample=8000',
        "-    6    0.900000  playout.ended    epoch=0 utterance=0 samples=6400",
        '-    7    0.900000  session.ended    epoch=0 reason="quiet"',
        "+    4    0.420000  turn.ended       epoch=0 speech_end_us=380000",
        '+    5    0.520000  playout.started  epoch=0 utterance=0 source="answer" at_sample=8000',
        "+    6    0.870000  playout.ended    epoch=0 utterance=0 samples=6400",
        '+    7    0.870000  session.ended    epoch=0 reason="quiet"',
    ]


@pytest.mark.parametrize(
    ("kind", "change", "by_us"),
    [
        ("caller.started", {"duration_us": 299_000}, -1_000),
        ("turn.ended", {"speech_end_us": 400_000}, 20_000),
        ("turn.ended", {"t": 410_000, "speech_end_us": 400_000}, 10_000),
        ("playout.started", {"at_sample": 8_320}, 20_000),
        ("playout.started", {"at_sample": 7_680}, -20_000),
    ],
)
def test_an_instant_or_duration_inside_an_event_is_a_time_too(call_a, spoil, kind, change, by_us):
    call_b = spoil(call_a).change(kind, **change).records
    at = next(record["seq"] for record in call_a if record["kind"] == kind)
    assert compare(call_a, call_b) == Difference(Verdict.TIMES, at, None, (Move(at, by_us),))


def test_how_much_was_heard_is_more_than_a_time(call_a, spoil):
    call_b = spoil(call_a).change("playout.ended", samples=6_080).records
    difference = compare(call_a, call_b)
    assert difference == Difference(Verdict.EVENTS, 6, 6)
    assert tell(difference, call_a, call_b)[4] == "first difference: event 6, playout.ended: samples 6400 -> 6080"


def test_an_added_event_stands_alone_among_what_both_share(call_a, spoil):
    call_b = spoil(call_a).insert("filler.due", 140_000, 0, 0, "book").records
    difference = compare(call_a, call_b)
    assert difference == Difference(Verdict.EVENTS, 3, 3, (), {"filler.due": 1}, {})
    assert tell(difference, call_a, call_b) == [
        "other events: 8 in A, 9 in B; added: filler.due 1",
        "--- A",
        "+++ B",
        "",
        "first difference: event 3, caller.ended in -, filler.due in +",
        "     0    0.000000  session.started  epoch=0",
        '     1    0.100000  caller.started   epoch=0 line=1 text="Hi." duration_us=300000 level="audio"',
        "     2    0.140000  vad.started      epoch=0 onset_us=100000",
        '+    3    0.140000  filler.due       epoch=0 round=0 tool="book"',
        "     3    0.400000  caller.ended     epoch=0 line=1",
        "     4    0.400000  turn.ended       epoch=0 speech_end_us=380000",
        '     5    0.500000  playout.started  epoch=0 utterance=0 source="answer" at_sample=8000',
        "-    6    0.900000  playout.ended    epoch=0 utterance=0 samples=6400",
    ]


def test_where_times_moved_before_the_events_part_both_places_are_shown(call_a, spoil):
    call_b = spoil(later(call_a, 2, 10_000)).change("session.ended", reason="hang_up").records
    difference = compare(call_a, call_b)
    assert difference is not None
    assert (difference.verdict, difference.at, difference.parts_at) == (Verdict.EVENTS, 2, 7)
    assert [line for line in tell(difference, call_a, call_b) if line.startswith("first")] == [
        "first difference: event 2, vad.started: t 140000 -> 150000 (+10ms)",
        "first difference that is more than a time: event 7, session.ended: "
        'reason "quiet" -> "hang_up", t 900000 -> 910000 (+10ms)',
    ]


def test_the_same_events_in_another_order_are_called_so(call_a, spoil):
    call_b = spoil(call_a).swap(("caller.ended", 0), ("turn.ended", 0)).records
    difference = compare(call_a, call_b)
    assert difference == Difference(Verdict.ORDER, 3, 3)
    assert tell(difference, call_a, call_b)[0] == "the same events in another order: all 8 are in both"


def test_a_timeline_that_ends_early_is_shown_up_to_its_end(call_a):
    difference = compare(call_a, call_a[:7])
    assert difference == Difference(Verdict.EVENTS, 7, 7, (), {}, {"session.ended": 1})
    lines = tell(difference, call_a, call_a[:7])
    assert lines[4] == "first difference: event 7, where + ends and - goes on"
    assert lines[-1] == '-    7    0.900000  session.ended    epoch=0 reason="quiet"'
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "it is empty"),
        (b'{"t":0,"seq":0,"kind":"a"}\nnope\n', "line 2 is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]\n", "line 1 is not a timeline record: it needs t, seq and kind"),
        (b'{"t":0.5,"seq":0,"kind":"a"}\n', "line 1 has no whole microseconds in t or no name in kind"),
        (b"\xff\n", "found bytes that are no UTF-8"),
    ],
)
def test_a_file_that_is_no_timeline_is_refused(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(text)
    with pytest.raises(TimelineError) as caught:
        read_timeline(path)
    accepted = "accepted is a timeline in JSON lines, as `bargein run --out` writes it"
    assert caught.value.args == (f"{path}: {message}; {accepted}",)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(TimelineError, match=r"absent\.jsonl: no such file or directory; accepted is a timeline"):
        read_timeline(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    ("name", "status", "first"),
    [
        ("same", 0, "equal: 8 events"),
        ("later", 1, "only times moved: 1 of 8 events, first event 7 (session.ended) by +5ms, none by more"),
        ("empty", 2, "it is empty; accepted is a timeline in JSON lines, as `bargein run --out` writes it"),
    ],
)
def test_the_command_says_it_and_exits_by_it(call_a, tmp_path, name, status, first):
    files = {"a": call_a, "same": call_a, "later": later(call_a, 7, 5_000), "empty": []}
    for file, records in files.items():
        (tmp_path / file).write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = CliRunner().invoke(main, ["diff", str(tmp_path / "a"), str(tmp_path / name)])
    said = (ran.stdout or ran.stderr).splitlines()[0].removeprefix(f"{tmp_path / name}: ")
    assert (ran.exit_code, said) == (status, first)
    assert ran.stdout == "" or ran.stderr == ""
