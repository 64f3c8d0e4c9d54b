"""The guard on an execution: delivered, or discarded without losing anything."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.context import Context, ContextError


def test_marking_delivered_twice_or_discarding_afterwards_changes_nothing(rig, kit):
    execution = rig.delivered(kit.call("t1.0"))
    execution.mark_delivered()
    execution.discard()
    assert (execution.is_delivered, execution.is_discarded) == (True, False)
    assert (rig.notes(), rig.timeline.of("tool.late_result")) == ([], [])
    assert kit.kinds(rig.execute(kit.call("t1.1"))) == ["already_done"]


def test_a_discarded_execution_is_not_delivered_any_more_and_discards_once(rig, kit):
    execution = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    execution.discard()
    execution.discard()
    for deliver in (execution.mark_delivered, lambda: execution.append_to(Context())):
        with pytest.raises(RuntimeError, match="was discarded before"):
            deliver()
    assert rig.notes() == [kit.note("BK-1001")]


def test_an_append_that_the_context_refuses_delivers_nothing(rig, kit):
    execution = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    with pytest.raises(ContextError):
        execution.append_to(Context())
    execution.discard()
    assert rig.notes() == [kit.note("BK-1001")]


def test_discarding_notes_each_result_and_makes_each_side_effect_an_orphan(kit):
    rig = kit.Rig().book(latency=[kit.S, 9 * kit.S]).look(latency=6 * kit.S, timeout_us=7 * kit.S)
    execution = rig.execute(kit.call("t1.0", n=0), kit.call("t1.1", n=1), kit.call("t1.2", "look"))
    rig.to(6 * kit.S)
    assert kit.kinds(execution) == ["ok", "timeout", "ok"]
    execution.discard()
    again = rig.execute(kit.call("t2.0", n=0), kit.call("t2.1", n=1), epoch=2)
    assert (kit.kinds(again), len(rig.ran("book"))) == (["ok", "duplicate_call"], 2)
    again.discard()
    rig.to(9 * kit.S)
    assert rig.notes() == [kit.note("BK-1001"), kit.note("BK-1001", "t1.1")]


def test_notes_it_had_taken_go_back_to_the_front(kit):
    rig = kit.Rig().book(latency=[kit.S, 2 * kit.S], result=["one", "two"]).look(latency="now")
    rig.execute(kit.call("t1.0", n=0), kit.call("t1.1", n=1)).discard()
    rig.to(kit.S)
    carrier = rig.execute(kit.call("t2.0", "look"), epoch=2)
    assert [m.text for m in carrier.late_notes] == [kit.note("one")]
    rig.to(2 * kit.S)
    carrier.discard()
    assert rig.notes() == [kit.note("one"), kit.note("two", "t1.1")]


def test_notes_that_go_back_are_not_dropped_by_the_bound(kit):
    rig = kit.Rig().book(latency=[kit.S] * 64 + [2 * kit.S])
    for n in range(128):
        rig.execute(kit.call(f"t1.{n}", n=n)).discard()
    rig.to(kit.S)
    carrier = rig.execute(epoch=2)
    rig.to(2 * kit.S)
    carrier.discard()
    assert (len(rig.notes()), rig.engine.late_notes_dropped()) == (128, 0)


def test_a_booking_done_while_the_filler_is_spoken_and_then_discarded_is_told_once(kit):
    rig = kit.Rig().book(latency=1_500 * kit.MS)
    execution = rig.execute(kit.call("t1.0"))
    rig.to(1_800 * kit.MS)
    rig.barge_in(1)
    execution.discard()
    replay = rig.delivered(kit.call("t2.0"), epoch=2)
    assert (kit.contents(replay), replay.late_notes, rig.notes(), len(rig.runs)) == (["BK-1001"], [], [], 1)


def test_a_lookup_of_a_discarded_execution_is_gone_and_runs_again(rig, kit):
    execution = rig.execute(kit.call("t1.0", "look"))
    rig.to(kit.S)
    execution.discard()
    rig.delivered(kit.call("t2.0", "look"), epoch=2)
    assert (rig.notes(), len(rig.runs), rig.stats()) == ([], 2, {})


@pytest.mark.parametrize("cause", ["barge_in", "hang_up"])
def test_an_execution_discarded_while_others_are_interrupted_is_not_interrupted_too(rig, kit, cause):
    first, second = rig.execute(kit.call("t1.0", "look")), rig.execute(kit.call("t1.1", "look"))
    first.on_complete(lambda _: second.discard())
    if cause == "hang_up":
        rig.engine.close()
    else:
        rig.barge_in(1)
    assert [seen for _, _, seen in rig.stops] == [cause, "discarded"]
    assert (rig.outcomes(), rig.stats()) == (["interrupted"], {"read_only_cancelled": 2})


def test_listeners_of_a_discarded_execution_hear_nothing(rig, kit):
    told = []
    execution = rig.execute(kit.call("t1.0"), kit.call("t1.1", "look"))
    execution.on_complete(told.append)
    execution.discard()
    rig.barge_in(1)
    rig.clock.run()
    assert (told, execution.complete, rig.stats()) == (
        [], False, {"read_only_cancelled": 1, "side_effect_late_results": 1}
    )  # fmt: skip
