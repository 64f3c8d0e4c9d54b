"""Timeouts of the slot, and the backstop of a side effect's body."""

from __future__ import annotations

import pytest


def test_a_lookup_past_its_timeout_is_dropped_and_answered_on_the_instant(kit):
    rig = kit.Rig().look(latency=6 * kit.S)
    execution = rig.execute(kit.call("t1.0", "look"))
    rig.clock.run()
    assert rig.settled() == [(5 * kit.S, "t1.0", "timed_out", 5 * kit.S)]
    assert rig.stops == [(5 * kit.S, "look", "deadline")]
    assert kit.body(execution) == {"error": "timeout", "tool": "look", "detail": "no result within 5s"}
    assert (rig.notes(), rig.stats()) == ([], {})


def test_a_booking_past_its_timeout_is_answered_runs_on_and_is_noted(kit):
    rig = kit.Rig().book(latency=5_100 * kit.MS)
    execution = rig.execute(kit.call("t1.0"))
    rig.to(6 * kit.S)
    assert rig.settled() == [(5 * kit.S, "t1.0", "timed_out_running", 5 * kit.S)]
    assert kit.body(execution) == {
        "error": "timeout",
        "tool": "book",
        "detail": "no result within 5s; the call keeps running, its result will follow as a note, "
        "do not repeat the call",
    }
    assert (rig.stops, rig.ends) == ([], [(5_100 * kit.MS, "book")])
    assert rig.notes() == [kit.note("BK-1001")]


@pytest.mark.parametrize("kind", ["book", "look"])
def test_a_result_on_the_instant_of_its_timeout_wins(kit, kind):
    rig = kit.Rig().book(latency=5 * kit.S).look(latency=5 * kit.S)
    execution = rig.execute(kit.call("t1.0", kind))
    rig.clock.run()
    assert (kit.kinds(execution), rig.notes()) == (["ok"], [])


def test_under_every_order_of_that_tie_each_result_is_answered_or_noted_once(kit):
    shares = set()
    for seed in range(10):
        rig = kit.Rig(tie_seed=seed).book(latency=5 * kit.S)
        executions = [rig.execute(*[kit.call(f"t1.{10 * r + n}", n=10 * r + n) for n in range(10)]) for r in range(10)]
        rig.to(5 * kit.S)
        answered = sum(kit.kinds(execution).count("ok") for execution in executions)
        noted = len({note for execution in executions for note in map(str, execution.late_notes)}) + len(rig.notes())
        assert answered + noted == 100
        shares.add(answered)
    assert len(shares) > 1


def test_a_hung_side_effect_is_stopped_at_the_backstop_and_lost(kit):
    rig = kit.Rig().book(latency=None)
    rig.execute(kit.call("t1.0"))
    rig.to(119 * kit.S)
    assert rig.engine.running_calls == ("t1.0",)
    rig.to(120 * kit.S)
    assert rig.stops == [(120 * kit.S, "book", "deadline")]
    assert len(rig.notes()) == 1
    again = rig.execute(kit.call("t1.0"))
    assert (kit.kinds(again), rig.outcomes(), len(rig.runs)) == (
        ["unknown_outcome"], ["timed_out_running", "lost"], 1
    )  # fmt: skip


@pytest.mark.parametrize("interrupted_at_s", [1, 119])
def test_the_backstop_counts_from_the_start_of_the_body(kit, interrupted_at_s):
    rig = kit.Rig().book(latency=None, timeout_us=119 * kit.S)
    rig.execute(kit.call("t1.0"))
    rig.to(interrupted_at_s * kit.S)
    rig.barge_in(1)
    rig.clock.run()
    assert rig.stops == [(120 * kit.S, "book", "deadline")]


def test_the_backstop_is_raised_to_a_longer_timeout_and_the_slot_then_reads_unknown_outcome(kit):
    rig = kit.Rig().book(latency=None, timeout_us=200 * kit.S)
    execution = rig.execute(kit.call("t1.0"))
    rig.clock.run()
    assert rig.stops == [(200 * kit.S, "book", "deadline")]
    assert rig.settled() == [(200 * kit.S, "t1.0", "lost", 200 * kit.S)]
    assert (kit.kinds(execution), rig.notes()) == (["unknown_outcome"], [])


def test_a_tool_may_take_longer_than_the_backstop_when_its_timeout_says_so(kit):
    rig = kit.Rig(max_side_effect_runtime_us=kit.S).book(latency=2 * kit.S, timeout_us=3 * kit.S)
    assert kit.contents(rig.delivered(kit.call("t1.0"), after=2 * kit.S)) == ["BK-1001"]


def test_hung_calls_give_their_entries_back(kit):
    rig = kit.Rig(idempotency_capacity=4).book(latency=None)
    rig.execute(*[kit.call(f"t1.{n}", n=n) for n in range(4)])
    rig.to(10 * kit.S)
    assert kit.kinds(rig.execute(kit.call("t1.4", n=4))) == ["store_full"]
    rig.to(121 * kit.S)
    rig.execute(kit.call("t1.5", n=5))
    assert (len(rig.runs), rig.engine.running_calls) == (5, ("t1.5",))
