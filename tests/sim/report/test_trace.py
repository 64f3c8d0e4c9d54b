"""The Chrome trace, held against the format's own description."""

from __future__ import annotations

import json

import jsonschema

from bargein.sim.lab.invariants import Violation
from bargein.sim.report.trace import trace

WHOLE = {"type": "integer", "minimum": 0}
ANY = {"ph": {"type": "string"}, "name": {"type": "string"}, "pid": WHOLE, "tid": WHOLE, "args": {"type": "object"}}
TIMED = {**ANY, "ts": WHOLE, "cat": {"type": "string"}}


def phase(letters, properties, *optional):
    return {
        "if": {"properties": {"ph": {"enum": list(letters)}}},
        "then": {
            "properties": properties,
            "required": sorted(properties.keys() - set(optional)),
            "additionalProperties": False,
        },
    }


FORMAT = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "properties": {"ph": {"enum": ["M", "X", "i", "b", "e"]}},
                "allOf": [
                    phase("M", {**ANY, "name": {"enum": ["process_name", "thread_name", "thread_sort_index"]}}),
                    phase("X", {**TIMED, "dur": WHOLE}, "args"),
                    phase("i", {**TIMED, "s": {"enum": ["g", "p", "t"]}}, "args"),
                    phase("be", {**TIMED, "id": {"type": "string"}}, "args"),
                ],
            },
        },
    },
}


def read(records, **more):
    found = json.loads(trace(records, **more))
    jsonschema.validate(found, FORMAT)
    return found["traceEvents"]


def tracks(events):
    return {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}


def test_each_lane_is_a_track_of_slices(interrupted_booking):
    events = read(interrupted_booking)
    names = tracks(events)
    assert list(names.values()) == ["caller", "VAD", "LLM", "tools", "filler", "bot", "waits", "timeline"]
    slices = [(names[e["tid"]], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert [each for each in slices if each[0] in ("tools", "bot")] == [
        ("bot", "Let me book that for you.", 3_160_000, 1_000_000),
        ("tools", "book_table", 3_100_000, 1_913_000),
        ("tools", "still running after its slot was answered", 5_013_000, 487_000),
        ("tools", "book_table", 6_500_000, 800_000),
        ("bot", "Sorry, for three then.", 6_520_000, 800_000),
        ("bot", "Done. For three.", 7_820_000, 1_000_000),
    ]


def test_slices_of_a_track_never_overlap(interrupted_booking, story):
    story.epoch = 1
    story.add("tool.started", "t1.0", "slow", False, 0).add("tool.started", "t1.1", "quick", False, 1)
    story.at(20).add("tool.finished", "t1.1", "quick", "ok").at(30).add("tool.finished", "t1.0", "slow", "ok")
    for records in (interrupted_booking, story.records):
        until = {}
        for event in sorted((e for e in read(records) if e["ph"] == "X"), key=lambda e: e["ts"]):
            assert event["ts"] >= until.get(event["tid"], 0)
            until[event["tid"]] = event["ts"] + event["dur"]
    assert list(tracks(read(story.records)).values())[3:5] == ["tools 1", "tools 2"]


def test_every_record_is_an_instant_with_its_fields(interrupted_booking):
    instants = [e for e in read(interrupted_booking) if e["ph"] == "i" and e["cat"] == "timeline"]
    found = [{"t": e["ts"], "kind": e["name"], **e["args"]} for e in instants]
    assert found == json.loads(json.dumps(interrupted_booking))


def test_waits_are_pairs_that_may_overlap(interrupted_booking):
    pairs = [(e["ph"], e["id"], e["name"], e["ts"]) for e in read(interrupted_booking) if e["ph"] in "be"]
    assert pairs == [
        ("b", "0", "response latency 1.06s", 2_100_000),
        ("e", "0", "response latency 1.06s", 3_160_000),
        ("b", "1", "filler delay 1.2s", 3_100_000),
        ("e", "1", "filler delay 1.2s", 4_300_000),
        ("b", "2", "stop latency 320ms", 4_700_000),
        ("e", "2", "stop latency 320ms", 5_020_000),
        ("b", "3", "response latency 920ms", 5_600_000),
        ("e", "3", "response latency 920ms", 6_520_000),
    ]


def test_a_violation_is_seen_across_all_tracks(interrupted_booking):
    events = read(interrupted_booking, title="booking", violations=[Violation("effect_once", 6_500_000, "twice", 60)])
    assert [(e["ts"], e["name"], e["args"]) for e in events if e.get("s") == "g"] == [
        (6_500_000, "violated: effect_once", {"message": "twice", "seq": 60})
    ]
    assert events[0]["args"] == {"name": "booking"}
