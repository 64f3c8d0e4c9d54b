"""Effect logs: what they hold, and what is refused of one that others have touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects import documents
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import content_digest, stable_hash, written
from bargein.sim.effects.log import EffectLog, batches_of
from bargein.sim.lab.replays import read_log, record
from bargein.sim.scenario.build import Plan

TOOLS = {
    name: {"description": "Looks.", "parameters": {"type": "object"}, "latency": latency, "result": {"b": 1, "a": name}}
    for name, latency in (("slow", "900ms"), ("quick", "300ms"))
}
CALL = {
    "scenario": "two_lookups",
    "tools": TOOLS,
    "caller": [{"say": "Hi.", "at": "100ms", "level": "decision", "for": "300ms"}],
    "llm": [{"calls": [{"slow": {}}, {"quick": {"of": "it"}}]}, {"text": "It is so."}],
}


@pytest.fixture(scope="module")
def log() -> EffectLog:
    return record(Plan(sim.load(CALL)))[1]


def lines(log: EffectLog) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.to_bytes().splitlines()]


def sealed(data: list[dict[str, Any]]) -> bytes:
    """Lines with the checks that fit them, as somebody who knows how could write."""
    body = b""
    for each in data[:-1]:
        text = written({key: value for key, value in each.items() if key != "check"})
        body += b'{"check":"' + content_digest(text)[:16].encode() + b'",' + text[1:] + b"\n"
    return body + written({"end": {"records": len(data) - 2, "sha256": content_digest(body)}}) + b"\n"


def refused(raw: bytes) -> str:
    with pytest.raises(DocumentError) as problem:
        EffectLog.from_bytes(raw, "a.log")
    return str(problem.value)


# -- what it holds --------------------------------------------------------------------------------------------


def test_a_log_reads_back_to_an_equal_one_and_to_the_same_bytes(log: EffectLog) -> None:
    again = EffectLog.from_bytes(log.to_bytes(), "a.log")
    assert (again.header, again.records) == (json.loads(json.dumps(log.header)), log.records)
    assert again.to_bytes() == log.to_bytes()


def test_the_records_stand_in_the_order_of_dispatch_with_their_instants_and_outcomes(log: EffectLog) -> None:
    rows = [
        (each.id, each.key, each.kind, each.scope, each.dispatched_at_us, each.landed_at_us, each.status, each.value)
        for each in log.records
    ]
    assert rows == [
        (0, "agent/model:default", "completion", "t1", 400_000, 770_000, "ok", None),
        (1, "agent/tool:slow#0", "tool_call", "t1", 770_000, 1_670_000, "ok", {"b": 1, "a": "slow"}),
        (2, "agent/tool:quick#0", "tool_call", "t1", 770_000, 1_070_000, "ok", {"b": 1, "a": "quick"}),
        (3, "agent/model:default", "completion", "t1", 1_670_000, 2_060_000, "ok", None),
    ]
    assert [each.hash for each in log.records] == [stable_hash(each.request) for each in log.records]
    assert log.records[2].request["arguments"] == {"of": "it"}


def test_items_are_kept_with_the_instants_on_which_they_were_delivered(log: EffectLog) -> None:
    last = log.records[3]
    assert list(zip(last.item_instants(), last.items, strict=True)) == [
        (2_020_000, {"text": "It"}),
        (2_040_000, {"text": " is"}),
        (2_060_000, {"text": " so."}),
        (2_060_000, {"end": "stop", "usage": {}}),
    ]


def test_the_deliveries_stand_apart_in_the_order_in_which_they_became_visible(log: EffectLog) -> None:
    assert log.header["deliveries"] == [
        [750_000, 0, 1, ""],
        [770_000, 0, 2, "land"],
        [1_070_000, 2, 0, "land"],
        [1_670_000, 1, 0, "land"],
        [2_020_000, 3, 1, ""],
        [2_040_000, 3, 1, ""],
        [2_060_000, 3, 2, "land"],
    ]


def test_the_header_names_the_program_of_each_run_and_what_it_needed_and_used(log: EffectLog) -> None:
    program = log.header["programs"]["t1"]
    assert program["required"] == {
        "agent/model:default": "completion",
        "agent/tool:slow#0": "tool_call",
        "agent/tool:quick#0": "tool_call",
    }
    assert len(program["policy"]) == 16
    assert log.header["signature"] == program["required"]
    assert log.header["hooks"] == []
    assert {key: each["kind"] for key, each in log.header["handlers"].items()} == dict.fromkeys(
        program["required"], "scripted"
    )


def test_a_tool_that_was_never_called_is_required_and_not_in_the_signature() -> None:
    call = {**CALL, "llm": [{"text": "It is so."}]}
    header = record(Plan(sim.load(call)))[1].header
    assert "agent/tool:slow#0" in header["required"]
    assert header["signature"] == {"agent/model:default": "completion"}


def test_items_of_one_effect_on_one_instant_are_one_batch() -> None:
    made = [(1, 0, "item"), (1, 0, "item"), (1, 1, "item"), (1, 0, "item"), (2, 0, "item"), (2, 0, "cancelled")]
    assert batches_of(made) == [[1, 0, 2, ""], [1, 1, 1, ""], [1, 0, 1, ""], [2, 0, 1, "cancelled"]]


def test_recording_changes_nothing_of_the_session(log: EffectLog) -> None:
    assert log.header["result"]["digest"] == sim.run(CALL).digest


# -- what is refused ------------------------------------------------------------------------------------------


def test_a_log_that_was_cut_off_is_refused_wherever_it_was(log: EffectLog) -> None:
    raw = log.to_bytes()
    ends = [at for at, sign in enumerate(raw) if sign == 10]
    assert refused(raw[: ends[2] + 1]) == "a.log:3: the log is cut off; accepted is a log with its last line"
    assert refused(raw[:-1]) == "a.log:6: the log is cut off; accepted is a log with its last line"
    for length in (0, 1, 500, ends[0], ends[3] + 200, len(raw) - 5):
        assert refused(raw[:length]).startswith("a.log:")


def test_an_edited_line_is_refused_by_its_number(log: EffectLog) -> None:
    data = lines(log)
    data[3]["value"] = {"b": 2, "a": "quick"}
    raw = b"".join(written(each) + b"\n" for each in data)
    assert refused(raw) == f"a.log:4: the line does not fit its check '{data[3]['check']}'; it was edited"
    assert "a.log:1: the line does not fit its check" in refused(log.to_bytes().replace(b"two_lookups", b"one lookup!"))
    swapped = log.to_bytes().replace(b'"value":{"b":1,"a":"quick"}', b'"value":{"a":"quick","b":1}')
    assert "a.log:4: the line does not fit its check" in refused(swapped)  # the model would read another text
    del data[3]["check"]
    raw = b"".join(written(each) + b"\n" for each in data)
    assert refused(raw) == "a.log:4: the line has no check; it was edited, or is no line of a log"


def test_lines_that_are_missing_or_twice_are_noticed(log: EffectLog) -> None:
    first, *rest = log.to_bytes().splitlines(keepends=True)
    assert refused(first + b"".join(rest[1:])) == (
        "a.log:2: records[0].id: found 1; accepted is 0, the record's position"
    )
    without_last = first + b"".join(rest[:-2]) + rest[-1]
    assert refused(without_last) == "a.log: its lines are not those that were counted at its end; it was edited"


@pytest.mark.parametrize(
    ("number", "change", "told"),
    [
        (2, {"parent": 5}, "a.log:3: records[1].parent: found 5, which makes a circle; accepted is an earlier record"),
        (2, {"parent": 1}, "a.log:3: records[1].parent: found 1, which makes a circle"),
        (2, {"kind": "magic"}, 'a.log:3: records[1].kind: found "magic"; accepted is one of completion, tool_call'),
        (2, {"status": "fine"}, 'a.log:3: records[1].status: found "fine"; accepted is one of ok, failed'),
        (2, {"request": {}}, "a.log:3: records[1].request: it does not fit its hash"),
        (2, {"dispatched_at_us": 1.5}, "a.log:3: records[1].dispatched_at_us: found 1.5; accepted is a whole number"),
        (2, {"dispatched_at_us": True}, "a.log:3: records[1].dispatched_at_us: found true; accepted is a whole number"),
        (
            2,
            {"dispatched_at_us": -1},
            "a.log:3: records[1].dispatched_at_us: found -1; accepted is a whole number from 0",
        ),
        (2, {"landed_at_us": None}, "a.log:3: records[1].status: an outcome and its instant go together"),
        (2, {"items": [{"text": "x"}]}, "a.log:3: records[1].steps: they deliver 0 items; accepted is 1"),
        (2, {"more": 1}, "a.log:3: records[1].more: nothing of that name belongs here; accepted is id, key"),
        (2, {"steps": []}, "a.log:3: records[1].steps: each step after the first is timed once"),
        (2, {"steps": [[0, 0, [0]]]}, "a.log:3: records[1].steps[0]: it times step 0; accepted is a later step"),
        (2, {"steps": [[9, 0, [1]], [3, 0, []]]}, "a.log:3: records[1].steps[0]: it times step 1; accepted is a later"),
        (2, {"steps": [[0, 0, [1, 1]], [3, 0, []]]}, "a.log:3: records[1].steps: each step after the first is timed"),
        (2, {"steps": [[0, 9, []]]}, "a.log:3: records[1].steps[0]: accepted is [instant, order from 0 to 5"),
        (0, {"bargein_log": 2}, "a.log: it has format 2; accepted is format 1"),
        (0, {"bargein_log": "1"}, "a.log: it has format '1'; accepted is format 1"),
        (0, {"plugins": ["os"]}, "a.log:1.plugins: nothing of that name belongs here; accepted is bargein_log"),
        (0, {"seed": "7"}, 'a.log:1.seed: found "7"; accepted is a whole number'),
        (0, {"deliveries": {}}, "a.log:1.deliveries: found a mapping of 0; accepted is a list"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused_although_its_checks_fit(
    log: EffectLog, number: int, change: dict[str, Any], told: str
) -> None:
    data = lines(log)
    data[number].update(change)
    assert refused(sealed(data)).startswith(told)


def test_a_missing_field_is_named(log: EffectLog) -> None:
    data = lines(log)
    del data[1]["scope"]
    assert refused(sealed(data)) == "a.log:2: records[0]: scope is missing; it was cut off or edited"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "a.log:1, character 1: Expecting value; accepted is JSON"),
        (b"[1, 2]\n\n", "a.log: it is no effect log; accepted is an effect log, as run --record writes it"),
        (b'{"bargein_checkpoint": 1}\n', "a.log: it is a checkpoint of a session; accepted is an effect log"),
        (b'{"t":0,"seq":0,"kind":"x"}\n', "a.log: it is a timeline; accepted is an effect log"),
        (b'{"a": NaN}', "a.log:1: found NaN; accepted is JSON"),
        (b'{"a": 1e999}', "a.log:1: found the number 1e999, which is out of range; accepted is JSON"),
        (b'{"a": 1, "a": 2}', 'a.log:1: found the key "a" twice; accepted is JSON'),
        (b"[" * 100_000, "a.log:1: it is nested more than 100 deep; accepted is up to 100"),
        (b"[" * 101 + b"]" * 101, "a.log:1: it is nested more than 100 deep; accepted is up to 100"),
        (b'{"a": "\xff"}', "a.log:1: found bytes that are no UTF-8; accepted is JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a.log:1: Exceeds the limit (4300 digits)"),
        (b"\x80\x04cos\nsystem\n", "a.log:1: found bytes that are no UTF-8; accepted is JSON"),
    ],
)
def test_what_is_no_log_is_refused_with_the_place(text: bytes, told: str) -> None:
    assert refused(text).startswith(told)


def test_a_file_that_is_too_large_or_not_there_is_refused(
    tmp_path: Any, log: EffectLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    with pytest.raises(DocumentError, match="there is no such file; accepted is an effect log"):
        read_log(path)
    path.write_bytes(log.to_bytes())
    assert read_log(path).records == log.records
    monkeypatch.setattr(documents, "MAX_BYTES", 1_000)
    with pytest.raises(DocumentError, match="it has more than 1000 bytes; accepted is an effect log of up to 1000"):
        read_log(path)
