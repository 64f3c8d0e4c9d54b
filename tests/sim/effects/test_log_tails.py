"""A log that is cut in two: head and tail are documents of their own, and together the log that was cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of, cut, start_of, tail_of
from bargein.sim.lab.replays import record
from bargein.sim.scenario.build import Plan
from tests.sim.effects.test_log import CALL, sealed


@pytest.fixture(scope="module")
def log() -> EffectLog:
    return EffectLog.from_bytes(record(Plan(sim.load(CALL)))[1].to_bytes(), "a.log")


def instants(log: EffectLog) -> list[int]:
    return sorted({at for each in log.records for at in (each.dispatched_at_us, each.landed_at_us) if at is not None})


def test_a_whole_log_says_nothing_of_a_start(log: EffectLog) -> None:
    assert "start" not in log.header
    assert b'"start"' not in log.to_bytes().splitlines()[0]


@pytest.mark.parametrize("name", ["interrupted_booking", "question_during_a_slow_lookup", "chained_lookups"])
def test_head_and_tail_are_the_log_wherever_it_was_cut(name: str) -> None:
    log = EffectLog.from_bytes(record(Plan(sim.load(name)))[1].to_bytes(), "a.log")
    raw = log.to_bytes()
    for at_us in [0, *(at + more for at in instants(log) for more in (-1, 0))]:
        saved, tail = cut(log, at_us, {"at": at_us})
        saved = LogCheckpoint.from_bytes(saved.to_bytes(), "a.json")
        tail = EffectLog.from_bytes(tail.to_bytes(), "tail.log")
        assert saved.state == {"at": at_us}
        assert EffectLog.from_checkpoint(saved, tail).to_bytes() == raw
        assert all(each.status is not None and each.landed_at_us <= at_us for each in saved.head.records)
        assert sorted([each.id for part in (saved.head, tail) for each in part.records]) == list(
            range(len(log.records))
        )
        assert EffectLog.from_bytes(saved.head.to_bytes(), "head.log").records == saved.head.records


def test_what_was_in_flight_is_the_tails_under_its_id(log: EffectLog) -> None:
    saved, tail = cut(log, 1_100_000, None)  # the quick lookup has landed, and the slow one has not
    assert [each.id for each in saved.head.records] == [0, 2]
    assert (saved.open, saved.next_id, saved.first_id) == ((1,), 3, 1)
    assert [each.id for each in tail.records] == [1, 3]
    assert (saved.head.header["start"], tail.header["start"]) == ([0, 2], [1, 3])
    assert [each[1] for each in saved.head.header["deliveries"]] == [0, 0, 2]
    assert [each[1] for each in tail.header["deliveries"]] == [1, 3, 3, 3]


def test_a_stream_that_was_cut_through_is_whole_in_the_tail(log: EffectLog) -> None:
    saved, tail = cut(log, 2_030_000, None)
    assert (saved.open, [each.id for each in tail.records]) == ((3,), [3])
    assert [each[:3] for each in saved.deliveries if each[1] == 3] == [[2_020_000, 3, 1]]
    assert [each[:3] for each in tail.header["deliveries"]] == [[2_020_000, 3, 1], [2_040_000, 3, 1], [2_060_000, 3, 2]]
    assert EffectLog.from_checkpoint(saved, tail).to_bytes() == log.to_bytes()


def test_a_log_that_is_made_at_the_place_is_the_same_head(log: EffectLog) -> None:
    whole, _ = cut(log, 1_100_000, None)
    so_far = EffectLog(
        {**log.header, "deliveries": whole.deliveries},
        [each for each in log.records if each.dispatched_at_us <= 1_100_000],
    )
    so_far.records[1] = EffectLog.from_bytes(log.to_bytes(), "").records[1]
    so_far.records[1].status = so_far.records[1].landed_at_us = None
    saved = checkpoint_of(so_far, None)
    assert (saved.open, saved.next_id) == ((1,), 3)
    assert saved.head.records == whole.head.records
    assert EffectLog.from_checkpoint(saved, tail_of(log, saved)).to_bytes() == log.to_bytes()


@pytest.mark.parametrize(
    ("ids", "next_id", "start"),
    [([0, 1, 2], 3, [0]), ([], 0, [0]), ([], 7, [7]), ([3, 4, 5], 6, [3]), ([1, 4, 6, 7], 8, [1, 4, 6]), ([2], 9, [2])],
)
def test_a_start_names_the_ids_until_they_go_on_in_turn(ids: list[int], next_id: int, start: list[int]) -> None:
    assert start_of(ids, next_id) == start


# -- what is refused ----------------------------------------------------------------------------------------------


def refused(checkpoint: LogCheckpoint[Any], tail: EffectLog) -> str:
    with pytest.raises(DocumentError) as problem:
        EffectLog.from_checkpoint(checkpoint, tail)
    return str(problem.value)


def test_a_whole_log_in_the_tails_place_is_refused_by_its_first_id(log: EffectLog) -> None:
    for at_us, first in ((800_000, 1), (1_100_000, 1), (1_700_000, 3)):
        saved, _ = cut(log, at_us, None)
        assert refused(saved, log) == (
            f"a.log: it begins with effect 0; accepted is a tail that begins with effect {first}, where the checkpoint "
            "was made"
        )


def test_another_tail_is_refused(log: EffectLog) -> None:
    saved, tail = cut(log, 1_100_000, None)
    _, later = cut(log, 1_700_000, None)
    assert refused(saved, later).startswith(
        "a.log: it begins with effect 3; accepted is a tail that begins with effect 1"
    )
    twice = EffectLog(tail.header, [tail.records[0], log.records[2], tail.records[1]], "t")
    assert refused(saved, twice) == "t: effect 2 is in the head; accepted is a tail without it"
    both, rest = cut(log, 800_000, None)
    assert both.open == (1, 2)
    missing = EffectLog(rest.header, [rest.records[0], rest.records[2]], "t")
    assert refused(both, missing).startswith(
        "t: effect 2 was in flight where the checkpoint was made, and is not in it"
    )
    streamed, last = cut(log, 2_030_000, None)
    last.header["deliveries"] = last.header["deliveries"][1:]
    assert refused(streamed, last) == ("a.log: it does not show what had become visible of its effects before the cut")
    with pytest.raises(DocumentError, match="other: its deliveries do not begin with those of the checkpoint"):
        tail_of(EffectLog({**log.header, "deliveries": []}, log.records, "other"), saved)


@pytest.mark.parametrize("start", [[], [2, 1], [-1], [1, 1], ["1"], 1, [True]])
def test_a_start_that_is_none_is_refused(log: EffectLog, start: Any) -> None:
    data = [json.loads(line) for line in log.to_bytes().splitlines()]
    data[0]["start"] = start
    with pytest.raises(DocumentError, match=r"a.log:1\.start: found .*; accepted is a list of ids, each larger"):
        EffectLog.from_bytes(sealed(data), "a.log")


def test_ids_that_are_not_those_of_the_start_are_refused(log: EffectLog) -> None:
    data = [json.loads(line) for line in cut(log, 1_100_000, None)[1].to_bytes().splitlines()]
    data[0]["start"] = [1, 4]
    with pytest.raises(DocumentError, match=r"a.log:3: records\[1\]\.id: found 3; accepted is 4"):
        EffectLog.from_bytes(sealed(data), "a.log")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"bargein_log_checkpoint": 2}, "a.json: it has format 2; accepted is format 1"),
        ({"open": [2, 1]}, "a.json.open: found [2, 1]; accepted is a list of ids"),
        ({"open": ["1"]}, "a.json.open: found ['1']; accepted is a list of ids"),
        ({"open": [True]}, "a.json.open: found [True]; accepted is a list of ids"),
        ({"open": [-1]}, "a.json.open: found [-1]; accepted is a list of ids"),
        ({"next_id": -1}, "a.json.next_id: found -1; accepted is a whole number from 0"),
        ({"bargein_log_checkpoint": True}, "a.json: it has format True; accepted is format 1"),
        ({"deliveries": [[1, 2]]}, "a.json.deliveries[0]: accepted is [instant, effect, items, end]"),
        ({"more": 1}, "a.json.more: nothing of that name belongs here"),
        ({"head": "x"}, "a.json: head:1, character 1: Expecting value"),
        ({"state": ...}, "a.json: state is missing"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused_with_the_place(log: EffectLog, change: dict[str, Any], told: str) -> None:
    data = json.loads(cut(log, 1_100_000, None)[0].to_bytes())
    del data["check"]
    data = {key: value for key, value in {**data, **change}.items() if value is not ...}
    data["check"] = content_digest(written(data))
    with pytest.raises(DocumentError) as problem:
        LogCheckpoint.from_bytes(written(data), "a.json")
    assert str(problem.value).startswith(told)


def test_an_edited_checkpoint_is_refused(log: EffectLog) -> None:
    raw = cut(log, 1_100_000, {"a": 1})[0].to_bytes()
    with pytest.raises(DocumentError, match=r"a\.json: the document does not fit its check; it was edited"):
        LogCheckpoint.from_bytes(raw.replace(b'{"a":1}', b'{"a":2}'), "a.json")
    with pytest.raises(DocumentError, match=r"a\.json: it is no checkpoint of a log; accepted is a log's head"):
        LogCheckpoint.from_bytes(b"{}", "a.json")


def test_a_state_of_any_kind_is_written_and_read_by_whoever_brings_it(log: EffectLog) -> None:
    saved, _ = cut(log, 1_100_000, (1, 2))
    raw = saved.to_bytes(lambda state: {"of": list(state)})
    assert LogCheckpoint.from_bytes(raw, "a.json", lambda data: tuple(data["of"])).state == (1, 2)
