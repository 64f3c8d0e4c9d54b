"""Results that missed their slot: the mailbox, its order and its bound."""

from __future__ import annotations


def test_notes_come_with_the_next_execution_in_the_order_of_the_results(kit):
    rig = kit.Rig().book(latency=[3 * kit.S, 2 * kit.S], result=["three", "two"]).look()
    rig.execute(kit.call("t1.0", n=0), kit.call("t1.1", n=1))
    rig.to(kit.S)
    rig.barge_in(1)
    rig.to(3 * kit.S)
    execution = rig.execute(kit.call("t2.0", "look"), epoch=2)
    assert execution.late_notes == []
    rig.to(4 * kit.S)
    assert [m.text for m in execution.late_notes] == [kit.note("two", "t1.1"), kit.note("three", "t1.0")]
    assert rig.notes() == []


def test_a_result_that_nobody_read_when_its_round_was_abandoned_becomes_a_note(rig, kit):
    execution = rig.execute(kit.call("t1.0"))
    rig.to(100 * kit.MS)
    assert execution.complete
    execution.discard()
    assert rig.notes() == [kit.note("BK-1001")]


def test_a_result_in_the_slot_of_a_round_abandoned_for_its_sibling_becomes_a_note(kit):
    rig = kit.Rig().book().look(latency=5 * kit.S)
    execution = rig.execute(kit.call("t1.0"), kit.call("t1.1", "look"))
    rig.to(kit.S)
    execution.discard()
    assert [(r["t"], r["call"]) for r in rig.timeline.of("tool.late_result")] == [(kit.S, "t1.0")]
    assert rig.notes() == [kit.note("BK-1001")]
    assert rig.stats() == {"read_only_cancelled": 1, "side_effect_late_results": 1}


def test_the_mailbox_keeps_sixty_four_and_counts_the_rest(kit):
    rig = kit.Rig().book(latency=kit.S)
    for n in range(65):
        rig.execute(kit.call(f"t1.{n}", n=n)).discard()
    rig.to(kit.S)
    assert [(r["call"], r["tool"]) for r in rig.timeline.of("note.dropped")] == [("t1.64", "book")]
    assert (rig.engine.late_notes_dropped(), rig.engine.idempotency_usage().entries) == (1, 65)
    assert rig.stats() == {"side_effect_late_results": 65}
    assert len(rig.notes()) == 64


def test_a_dropped_note_leaves_an_orphan_that_is_replayed(kit):
    rig = kit.Rig().book(latency=kit.S)
    for n in range(65):
        rig.execute(kit.call(f"t1.{n}", n=n)).discard()
    rig.to(kit.S)
    replay = rig.delivered(kit.call("t2.0", n=64), epoch=2)
    assert (kit.contents(replay), len(rig.runs)) == (["BK-1001"], 65)
