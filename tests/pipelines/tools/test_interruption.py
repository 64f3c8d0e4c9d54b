"""The turn's token fires while calls run, or before they start."""

from __future__ import annotations

import json

import pytest

from bargein.sim.kernel.clock import Order


@pytest.fixture
def slow(kit):
    """A booking and a lookup that take 3 s each."""
    return kit.Rig().book(latency=3 * kit.S).look(latency=3 * kit.S)


def test_a_call_that_has_not_begun_is_answered_and_never_runs_whatever_its_kind(rig, kit):
    rig.barge_in(1)
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1"))
    assert execution.complete
    assert kit.body(execution) == {
        "error": "interrupted",
        "tool": "look",
        "detail": "the user interrupted before the call was started; it did not run",
    }
    assert (kit.kinds(execution), rig.outcomes()) == (["interrupted"] * 2, ["not_started"] * 2)
    assert (rig.runs, rig.stats()) == ([], {"not_started_cancelled": 2})


def test_a_running_lookup_is_dropped_answered_and_counted(slow, kit):
    execution = slow.execute(kit.call("t1.0", "look"))
    slow.clock.call_at(kit.S, Order.INTERRUPTION, lambda _: slow.barge_in(1))
    slow.clock.run()
    assert slow.stops == [(kit.S, "look", "barge_in")]
    assert slow.settled() == [(kit.S, "t1.0", "interrupted", kit.S)]
    assert kit.body(execution)["detail"] == "the user interrupted before the result arrived"
    assert (slow.stats(), slow.notes()) == ({"read_only_cancelled": 1}, [])


def test_an_abandoned_lookup_is_dropped_and_counted_alike(slow, kit):
    execution = slow.execute(kit.call("t1.0", "look"))
    slow.to(kit.S)
    execution.discard()
    slow.clock.run()
    assert slow.stops == [(kit.S, "look", "discarded")]
    assert (slow.settled(), slow.stats(), slow.notes()) == ([], {"read_only_cancelled": 1}, [])
    assert [(r["t"], r["cause"]) for r in slow.timeline.of("tool.dropped")] == [(kit.S, "discarded")]


def test_a_running_booking_is_answered_at_once_runs_on_and_is_noted_once(slow, kit):
    execution = slow.execute(kit.call("t1.0"))
    slow.clock.call_at(kit.S, Order.INTERRUPTION, lambda _: slow.barge_in(1))
    slow.to(3 * kit.S)
    assert slow.settled() == [(kit.S, "t1.0", "interrupted_running", kit.S)]
    assert kit.body(execution) == {
        "error": "interrupted",
        "tool": "book",
        "detail": "the user interrupted; the call keeps running, its result will follow as a note, "
        "do not repeat the call",
    }
    assert (slow.ends, slow.stops) == ([(3 * kit.S, "book")], [])
    assert [(r["t"], r["call"], r["outcome"]) for r in slow.timeline.of("tool.late_result")] == [
        (3 * kit.S, "t1.0", "ok")
    ]
    assert slow.notes() == [kit.note("BK-1001")]
    assert slow.notes() == []
    assert slow.stats() == {"side_effect_interrupted": 1, "side_effect_late_results": 1}
    replay = slow.engine.execute([kit.call("t1.0")], 1, slow.token(9))
    assert (kit.contents(replay), len(slow.runs)) == (["BK-1001"], 1)


def test_an_interruption_never_waits_for_a_side_effect(kit):
    rig = kit.Rig().book(latency=60 * kit.S, timeout_us=90 * kit.S)
    execution = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    rig.barge_in(1)
    assert execution.complete


def test_only_the_turns_own_token_interrupts(slow, kit):
    execution = slow.execute(kit.call("t1.0", "look"))
    slow.to(kit.S)
    slow.barge_in(2)
    slow.clock.run()
    assert kit.kinds(execution) == ["ok"]


def test_an_interrupted_lookup_runs_again_in_the_next_turn_and_is_never_a_repeat(slow, kit):
    slow.execute(kit.call("t1.0", "look"))
    slow.to(kit.S)
    slow.barge_in(1)
    slow.delivered(kit.call("t2.0", "look"), epoch=2, after=4 * kit.S)
    slow.delivered(kit.call("t2.1", "look"), epoch=2, after=4 * kit.S)
    assert (len(slow.runs), slow.outcomes()) == (3, ["interrupted", "ok", "ok"])


def test_a_result_on_the_instant_of_the_interruption_stands_in_the_slot(slow, kit):
    execution = slow.execute(kit.call("t1.0"), kit.call("t1.1", "look"))
    slow.clock.call_at(3 * kit.S, Order.INTERRUPTION, lambda _: slow.barge_in(1))
    slow.clock.run()
    assert (kit.kinds(execution), slow.notes()) == (["ok", "ok"], [])


def test_under_every_order_of_that_tie_the_result_is_in_the_slot_or_in_one_note(kit):
    seen = set()
    for seed in range(20):
        rig = kit.Rig(tie_seed=seed).book(latency=kit.S)
        execution = rig.execute(kit.call("t1.0"))
        rig.clock.call_at(kit.S, Order.INTERRUPTION, lambda _, rig=rig: rig.barge_in(1))
        rig.to(kit.S)
        seen.add((kit.kinds(execution)[0], len(rig.notes())))
    assert seen == {("ok", 0), ("interrupted", 1)}


def test_a_side_effect_is_stopped_by_no_cause_but_the_backstop_and_the_close(kit):
    rig = kit.Rig().book(latency=60 * kit.S)
    first = rig.execute(kit.call("t1.0", n=0))
    rig.execute(kit.call("t1.1", n=1)).discard()
    rig.to(kit.S)
    rig.barge_in(1)
    first.discard()
    rig.to(10 * kit.S)
    rig.execute(kit.call("t2.0", n=2), epoch=2)
    rig.to(70 * kit.S)
    assert (rig.stops, [at for at, _ in rig.ends]) == ([], [60 * kit.S, 60 * kit.S, 70 * kit.S])


class Rude:
    """A handler that interrupts, or ends, the session while it is being asked."""

    def __init__(self, act):
        self.act, self.stops = act, []

    def serve(self, effect):
        self.act()
        return self.stops.append


@pytest.mark.parametrize("cause", ["barge_in", "hang_up"])
def test_a_lookup_interrupted_while_its_handler_is_asked_is_stopped_too(kit, cause):
    rig = kit.Rig().look()
    handler = Rude(rig.engine.close if cause == "hang_up" else lambda: rig.barge_in(1))
    rig.bus._handlers["agent/tool:look#0"] = handler
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1", "look"))
    assert (rig.outcomes(), execution.complete) == (["interrupted", "not_started"], True)
    assert (handler.stops, rig.bus.running) == ([cause], 0)


def test_a_booking_is_stopped_too_when_the_session_ends_while_its_handler_is_asked(kit):
    rig = kit.Rig().book()
    handler = rig.bus._handlers["agent/tool:book#0"] = Rude(rig.engine.close)
    execution = rig.execute(kit.call("t1.0"))
    assert (rig.outcomes(), execution.complete) == (["interrupted_running"], True)
    assert (handler.stops, rig.engine.running_calls, rig.bus.running) == (["hang_up"], (), 0)
    assert len(rig.notes()) == 1


def test_the_late_note_is_worded_alike_whether_interrupted_or_timed_out(kit):
    rig = kit.Rig().book(latency=6 * kit.S)
    rig.execute(kit.call("t1.0", people=2))
    rig.execute(kit.call("t2.0", people=3), epoch=2)
    rig.to(kit.S)
    rig.barge_in(2)
    rig.to(7 * kit.S)
    assert rig.outcomes() == ["interrupted_running", "timed_out_running"]
    assert rig.notes() == [kit.note("BK-1001"), kit.note("BK-1001", "t2.0")]


def test_a_late_note_tells_what_happened(kit):
    results = ["fine", kit.failed("no table"), "x" * 200, None]
    rig = kit.Rig(max_result_bytes=100).book(latency=[2 * kit.S, 3 * kit.S, 4 * kit.S, None], result=results)
    rig.execute(*[kit.call(f"t1.{n}", n=n) for n in range(4)])
    rig.to(kit.S)
    rig.barge_in(1)
    rig.to(121 * kit.S)
    unknown = "the call ended without a result; the outcome is unknown, do not repeat the call"
    assert rig.notes() == [
        kit.note("fine"),
        kit.note(json.dumps({"error": "tool_failed", "tool": "book", "detail": "no table"}, separators=(",", ":")),
                 "t1.1"),
        kit.note("x" * 86 + "...[truncated]", "t1.2"),
        kit.note(f'{{"error":"unknown_outcome","tool":"book","detail":"{unknown}"}}', "t1.3"),
    ]  # fmt: skip
    assert [r["outcome"] for r in rig.timeline.of("tool.late_result")] == ["ok", "failed", "ok_truncated", "lost"]
