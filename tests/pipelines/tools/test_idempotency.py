"""Keys, their digests, and the store."""

from __future__ import annotations

import pytest

from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.results import Answer
from bargein.pipelines.tools.store import IdempotencyStore


def test_the_digest_is_pinned_and_depends_on_all_three_parts():
    keys = [("s", 1, "t1.0"), ("r", 1, "t1.0"), ("s", 2, "t1.0"), ("s", 1, "t1.1"), ("st", 1, "1.0")]
    digests = [IdempotencyKey(*key).digest() for key in keys]
    assert digests[0] == "677a1321f2ae2721"
    assert len(set(digests)) == 5


def reference(session, epoch, call_id):
    data = b""
    for part in (session.encode(), epoch, call_id.encode()):
        if isinstance(part, bytes):
            data += len(part).to_bytes(8, "little") + part
        else:
            data += part.to_bytes(8, "little")
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) % 2**64
    return f"{value:016x}"


def test_the_digest_is_fnv_1a_over_length_prefixed_parts():
    assert IdempotencyKey("sé", 7, "t7.3").digest() == reference("sé", 7, "t7.3")


def test_a_seen_key_is_answered_from_its_record_in_each_state(kit):
    rig = kit.Rig().book(latency=[3 * kit.S, 100 * kit.MS], result=["BK-1001", kit.crashed()])
    first = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    running = rig.execute(kit.call("t1.0"))
    assert kit.body(running) == {
        "error": "duplicate_call",
        "tool": "book",
        "detail": "this call is already running; do not repeat it",
    }
    rig.to(3 * kit.S)
    done = rig.execute(kit.call("t1.0"))
    assert kit.contents(first) == kit.contents(done) == ["BK-1001"]
    rig.delivered(kit.call("t1.1", people=2))
    lost = rig.execute(kit.call("t1.1", people=2))
    assert kit.kinds(lost) == ["unknown_outcome"]
    assert rig.outcomes() == ["duplicate", "ok", "recorded", "lost", "lost"]
    assert (len(rig.runs), rig.stats()) == (2, {"side_effect_replays": 1})


def test_any_part_of_the_key_makes_another_call(rig, kit):
    rig.delivered(kit.call("t1.0", n=0))
    rig.delivered(kit.call("t1.1", n=1))
    rig.delivered(kit.call("t1.0", n=2), epoch=2)
    assert len(rig.runs) == 3


def test_a_failed_side_effect_is_recorded_and_only_a_new_call_tries_again(kit):
    rig = kit.Rig().book(result=kit.failed("no table"))
    first = rig.delivered(kit.call("t1.0"))
    replay = rig.execute(kit.call("t1.0"))
    assert kit.body(first) == {"error": "tool_failed", "tool": "book", "detail": "no table"}
    assert (kit.contents(replay), len(rig.runs)) == (kit.contents(first), 1)
    rig.delivered(kit.call("t1.1"))
    assert (len(rig.runs), rig.outcomes()) == (2, ["failed", "recorded", "failed"])


def test_the_record_is_made_when_the_body_ends_whoever_waits(kit):
    rig = kit.Rig().book(latency=3 * kit.S)
    execution = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    execution.discard()
    rig.to(4 * kit.S)
    assert kit.contents(rig.execute(kit.call("t1.0"))) == ["BK-1001"]


def test_read_only_calls_are_not_stored(rig, kit):
    rig.delivered(kit.call("t1.0", "look"))
    rig.delivered(kit.call("t1.0", "look"))
    assert (len(rig.runs), rig.engine.idempotency_usage()) == (2, (0, 0))


def test_a_store_full_of_running_calls_refuses_and_evicts_none(kit):
    rig = kit.Rig(idempotency_capacity=2).book(latency=3 * kit.S)
    running = rig.execute(kit.call("t1.0", n=0), kit.call("t1.1", n=1))
    refused = rig.execute(kit.call("t1.2", n=2))
    assert kit.body(refused) == {
        "error": "store_full",
        "tool": "book",
        "detail": "too many calls are still running; this one was not run",
    }
    rig.to(3 * kit.S)
    assert (kit.kinds(running), len(rig.runs), rig.outcomes()) == (["ok", "ok"], 2, ["store_full", "ok", "ok"])


def test_many_finished_calls_beside_a_running_one_do_not_push_it_out(kit):
    rig = kit.Rig(idempotency_capacity=3).book(latency=[4 * kit.S, 10], result=["slow", "quick"])
    slow = rig.execute(kit.call("t1.0", n=0))
    for n in range(1, 20):
        rig.delivered(kit.call(f"t1.{n}", n=n), after=20)
    rig.to(4 * kit.S)
    assert kit.contents(slow) == kit.contents(rig.execute(kit.call("t1.0", n=0))) == ["slow"]


def test_the_oldest_settled_entry_goes_and_its_call_then_runs_anew(kit):
    rig = kit.Rig().book(latency=10)
    for n in range(257):
        rig.delivered(kit.call(f"t1.{n}", n=n), after=20)
    assert rig.engine.idempotency_usage().entries == 256
    rig.delivered(kit.call("t1.1", n=1), kit.call("t1.256", n=256), after=20)
    assert len(rig.runs) == 257
    rig.delivered(kit.call("t1.0", n=0), after=20)
    assert len(rig.runs) == 258


def test_recorded_text_stays_within_its_bytes():
    store = IdempotencyStore(256, 4 * 1024 * 1024)
    keys = [IdempotencyKey("s", 1, f"t1.{n}") for n in range(65)]
    for key in keys:
        assert store.admit(key, 1)
        store.record(key, Answer("x" * 65_536))
    assert store.usage() == (64, 4 * 1024 * 1024)
    assert [store.get(key) is None for key in keys] == [True] + [False] * 64


def test_a_record_is_never_evicted_by_its_own_recording():
    store = IdempotencyStore(4, 10)
    store.admit("running", 1)
    for key in ("a", "b"):
        store.admit(key, 1)
        store.record(key, Answer("é" * 50))
    assert (store.get("a"), store.get("b").answer, store.usage()) == (None, Answer("é" * 50), (2, 100))
    store.lose("running")
    store.admit("c", 1)
    store.record("c", Answer("x" * 11))
    assert (store.get("running"), store.get("b"), store.usage()) == (None, None, (1, 11))


def test_keys_that_share_a_digest_are_two_records(kit, monkeypatch):
    monkeypatch.setattr(IdempotencyKey, "digest", lambda key: "0" * 16)
    rig = kit.Rig().book()
    rig.delivered(kit.call("t1.0", n=0), kit.call("t1.1", n=1))
    assert (len(rig.runs), rig.engine.idempotency_usage().entries) == (2, 2)


def later_turn(rig, kit):
    rig.delivered(kit.call("t1.0"))
    rig.delivered(kit.call("t2.0"), epoch=2)


def other_arguments(rig, kit):
    rig.delivered(kit.call("t1.0", people=2))
    rig.delivered(kit.call("t1.1", people=3))


def one_response(rig, kit):
    rig.delivered(kit.call("t1.0"), kit.call("t1.1"))


def retry_of_a_failure(rig, kit):
    rig.bus._handlers["agent/tool:book#0"].result = kit.failed("no")
    rig.delivered(kit.call("t1.0"))
    rig.delivered(kit.call("t1.1"))


def past_the_window(rig, kit):
    rig.execute(kit.call("t1.0")).discard()
    rig.to(121 * kit.S)
    rig.delivered(kit.call("t1.1"))


def evicted(rig, kit):
    rig.delivered(kit.call("t1.0"))
    del rig.engine._desk.store._entries[IdempotencyKey("s", 1, "t1.0")]
    rig.engine._desk.recent._runs.clear()
    rig.delivered(kit.call("t1.0"))


@pytest.mark.parametrize(
    "situation", [later_turn, other_arguments, one_response, retry_of_a_failure, past_the_window, evicted]
)
def test_what_the_guarantee_does_not_cover_runs_twice(rig, kit, situation):
    situation(rig, kit)
    assert len(rig.runs) == 2
