"""Regeneration: an identical call of another response, after the first one's result went astray."""

from __future__ import annotations

import pytest

from bargein.pipelines.tools.orphans import ORPHAN_CAPACITY


@pytest.fixture
def slow(kit):
    """A booking of 2 s, interrupted at 1 s; it ends at 2 s."""
    return interrupted(kit.Rig().book(latency=[2 * kit.S, 100 * kit.MS], result=["BK-1001", "BK-1002"]), kit)


def interrupted(rig, kit, **arguments):
    rig.execute(kit.call("t1.0", **arguments)).on_complete(lambda execution: execution.mark_delivered())
    rig.to(kit.S)
    rig.barge_in(1)
    return rig


def timed_out(rig, kit):
    rig.delivered(kit.call("t1.0"), after=5 * kit.S)


def abandoned(rig, kit):
    execution = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    execution.discard()


def discarded(rig, kit):
    execution = rig.execute(kit.call("t1.0"))
    rig.to(6 * kit.S)
    assert execution.complete
    execution.discard()


@pytest.mark.parametrize("astray", [interrupted, timed_out, abandoned, discarded])
def test_a_result_goes_astray_in_four_ways_and_in_none_the_call_runs_again(kit, astray):
    rig = kit.Rig().book(latency=6 * kit.S, timeout_us=(5 if astray is timed_out else 9) * kit.S)
    astray(rig, kit)
    rig.to(7 * kit.S)
    execution = rig.execute(kit.call("t2.0"), epoch=2)
    assert (kit.contents(execution), rig.outcomes()[-1:], len(rig.runs)) == (["BK-1001"], ["orphan_replayed"], 1)


def test_a_finished_orphan_answers_with_its_record_under_the_new_id_and_is_used_up(slow, kit):
    slow.to(2 * kit.S)
    execution = slow.delivered(kit.call("t2.0"), epoch=2)
    [message] = execution.results
    assert (message.result.call_id, message.result.content, message.result.is_error) == ("t2.0", "BK-1001", False)
    assert slow.settled()[-1] == (2 * kit.S, "t2.0", "orphan_replayed", 0)
    assert (execution.late_notes, slow.notes(), len(slow.runs)) == ([], [], 1)
    assert slow.stats() == {"side_effect_interrupted": 1, "side_effect_late_results": 1, "orphan_replays": 1}


def test_after_a_delivered_replay_a_repeat_in_that_turn_is_refused_and_the_next_turn_is_free(slow, kit):
    slow.to(2 * kit.S)
    slow.delivered(kit.call("t2.0"), epoch=2)
    assert kit.kinds(slow.delivered(kit.call("t2.1"), epoch=2)) == ["already_done"]
    slow.to(5 * kit.S)
    assert kit.contents(slow.delivered(kit.call("t3.0"), epoch=3)) == ["BK-1002"]


def test_a_recorded_failure_is_replayed_as_that_failure(kit):
    rig = interrupted(kit.Rig().book(latency=2 * kit.S, result=kit.failed("no table")), kit)
    rig.to(2 * kit.S)
    execution = rig.delivered(kit.call("t2.0"), epoch=2)
    assert kit.body(execution) == {"error": "tool_failed", "tool": "book", "detail": "no table"}
    assert len(rig.runs) == 1


def test_a_replay_that_is_discarded_leaves_orphan_and_note_in_place(kit):
    rig = interrupted(kit.Rig().book(latency=2 * kit.S).look(latency=5 * kit.S), kit)
    rig.to(2 * kit.S)
    for epoch in (2, 3):
        cut_off = rig.execute(kit.call(f"t{epoch}.0"), kit.call(f"t{epoch}.1", "look"), epoch=epoch)
        assert kit.contents(cut_off) == ["BK-1001"]
        cut_off.discard()
    assert len(rig.engine._desk.mailbox) == 1
    rig.delivered(kit.call("t4.0"), epoch=4)
    assert (rig.notes(), rig.ran("book"), rig.engine.stats().orphan_replays) == ([], [0], 3)


def test_once_its_note_reached_the_context_the_orphan_is_reported_and_stays_so(slow, kit):
    slow.to(2 * kit.S)
    assert slow.notes() == [kit.note("BK-1001")]
    for n in range(2):
        execution = slow.delivered(kit.call(f"t2.{n}"), epoch=2)
        assert kit.body(execution) == {
            "error": "already_reported",
            "tool": "book",
            "detail": "an identical call was made before; its result is in the note above; do not repeat",
        }
    assert (slow.outcomes()[-2:], slow.engine.stats().orphan_reported, len(slow.runs)) == (
        ["orphan_reported"] * 2, 2, 1
    )  # fmt: skip


def test_a_note_carried_by_an_execution_counts_as_told_only_when_that_is_delivered(slow, kit):
    slow.to(2 * kit.S)
    carrier = slow.execute(epoch=2)
    assert len(carrier.late_notes) == 1
    carrier.discard()
    replay = slow.execute(kit.call("t2.0"), epoch=2)
    assert kit.contents(replay) == ["BK-1001"]
    replay.discard()
    slow.execute(epoch=2).mark_delivered()
    assert kit.kinds(slow.execute(kit.call("t2.1"), epoch=2)) == ["already_reported"]


def test_a_replay_and_a_note_in_two_open_executions_tell_the_result_once(slow, kit):
    slow.to(2 * kit.S)
    for replay_first in (True, False):
        carrier, replay = slow.execute(epoch=2), slow.execute(kit.call("t2.0"), epoch=2)
        assert carrier.late_notes == []
        if replay_first:
            replay.discard()
            assert [m.text for m in carrier.late_notes] == [kit.note("BK-1001")]
            carrier.discard()
        else:
            carrier.mark_delivered()
            replay.mark_delivered()
    assert (slow.notes(), carrier.late_notes) == ([], [])


def test_a_note_that_a_delivered_execution_left_out_for_a_replay_waits_again_when_that_is_discarded(slow, kit):
    slow.to(2 * kit.S)
    carrier = slow.execute(epoch=2)
    replay = slow.execute(kit.call("t2.0"), epoch=2)
    assert (kit.contents(replay), carrier.late_notes) == (["BK-1001"], [])
    carrier.mark_delivered()
    replay.discard()
    assert slow.notes() == [kit.note("BK-1001")]


def test_a_running_orphan_answers_duplicate_and_its_note_comes_once(kit):
    rig = interrupted(kit.Rig().book(latency=5 * kit.S), kit)
    rig.to(2 * kit.S)
    execution = rig.delivered(kit.call("t2.0"), epoch=2)
    assert kit.body(execution) == {
        "error": "duplicate_call",
        "tool": "book",
        "detail": "an identical call is still running; its result follows as a note; do not repeat",
    }
    assert (rig.outcomes()[-1], rig.engine.stats().orphan_in_flight) == ("orphan_in_flight", 1)
    rig.to(5 * kit.S)
    assert (rig.notes(), rig.notes(), len(rig.runs)) == ([kit.note("BK-1001")], [], 1)


def test_an_orphan_without_a_result_answers_unknown_outcome_and_is_used_up(kit):
    rig = interrupted(kit.Rig().book(latency=[2 * kit.S, 10], result=[kit.crashed(), "BK-1"]), kit)
    rig.to(2 * kit.S)
    execution = rig.delivered(kit.call("t2.0"), epoch=2)
    assert (kit.kinds(execution), rig.outcomes()[-1]) == (["unknown_outcome"], "orphan_lost")
    assert (rig.engine.stats().orphan_lost, rig.notes(), len(rig.runs)) == (1, [], 1)
    assert kit.contents(rig.delivered(kit.call("t2.1"), epoch=2)) == ["BK-1"]


def test_recognition_works_between_rounds_of_one_turn(kit):
    rig = kit.Rig().book(latency=6 * kit.S)
    timed_out(rig, kit)
    assert kit.kinds(rig.delivered(kit.call("t1.1"))) == ["duplicate_call"]
    rig.to(6 * kit.S)
    assert kit.contents(rig.delivered(kit.call("t1.2"))) == ["BK-1001"]
    assert rig.outcomes() == ["timed_out_running", "orphan_in_flight", "orphan_replayed"]


def test_a_delivered_result_is_no_orphan_and_other_arguments_are_another_call(kit):
    rig = kit.Rig().book()
    rig.delivered(kit.call("t1.0"))
    rig.delivered(kit.call("t2.0"), epoch=2)
    assert len(rig.runs) == 2
    rig = interrupted(kit.Rig().book(latency=2 * kit.S), kit, people=2)
    rig.delivered(kit.call("t2.0", people=3), epoch=2, after=2 * kit.S)
    assert len(rig.runs) == 2


def test_key_order_does_not_matter_but_values_do(kit):
    rig = interrupted(kit.Rig().book(latency=2 * kit.S), kit, a=1, b={"x": 1, "y": 2})
    same = kit.call("t2.0", b={"y": 2, "x": 1}, a=1)
    other = kit.call("t2.1", a=1.0, b={"x": 1, "y": 2})
    assert kit.kinds(rig.execute(same, other, epoch=2)) == ["duplicate_call"]
    assert len(rig.runs) == 2


@pytest.mark.parametrize(
    ("window_us", "later_us", "runs"),
    [(120_000_000, 119_000_000, 1), (120_000_000, 120_000_000, 1), (120_000_000, 120_000_001, 2), (0, 0, 2)],
)
def test_recognition_lasts_for_the_window_from_the_instant_the_result_went_astray(kit, window_us, later_us, runs):
    rig = interrupted(kit.Rig(orphan_window_us=window_us).book(latency=2 * kit.S), kit)
    rig.to(kit.S + later_us)
    rig.execute(kit.call("t2.0"), epoch=2)
    assert len(rig.runs) == runs


def test_the_thirty_two_last_side_effects_are_remembered(kit):
    for others, runs in ((ORPHAN_CAPACITY - 1, 1), (ORPHAN_CAPACITY, 2)):
        rig = interrupted(kit.Rig().book(latency=[2 * kit.S, 10]), kit)
        for n in range(others):
            rig.delivered(kit.call(f"t2.{n}", n=n), epoch=2, after=10)
        rig.execute(kit.call("t3.0"), epoch=3)
        assert len(rig.ran("book")) - others == runs
        assert len(rig.engine._desk.recent) == ORPHAN_CAPACITY


def test_identical_calls_of_one_response_are_not_each_others_orphans(kit):
    rig = kit.Rig().book(latency=2 * kit.S)
    execution = rig.execute(kit.call("t1.0"), kit.call("t1.1"))
    rig.to(2 * kit.S)
    assert (kit.kinds(execution), len(rig.runs)) == (["ok", "ok"], 2)
    execution.discard()
    again = rig.delivered(kit.call("t2.0"), kit.call("t2.1"), epoch=2)
    assert (rig.outcomes()[-2:], len(rig.runs), again.late_notes, rig.notes()) == (
        ["orphan_replayed"] * 2, 2, [], []
    )  # fmt: skip


def test_a_run_is_an_orphan_to_other_responses_only(rig, kit):
    rig.execute(kit.call("t1.0")).discard()
    [run] = rig.engine._desk.recent
    found = [rig.engine._desk.recent.orphan(run.digest, response, 0) for response in (run.response, run.response + 1)]
    assert found == [None, run]


def test_one_orphan_is_replayed_to_one_call_of_a_response_and_the_other_does_not_run(slow, kit):
    slow.to(2 * kit.S)
    execution = slow.delivered(kit.call("t2.0"), kit.call("t2.1"), epoch=2)
    assert (kit.kinds(execution), len(slow.runs)) == (["ok", "already_reported"], 1)


def test_a_lookup_is_never_an_orphan(kit):
    rig = kit.Rig().look(latency=2 * kit.S)
    rig.execute(kit.call("t1.0", "look")).discard()
    rig.execute(kit.call("t2.0", "look"), epoch=2)
    assert len(rig.runs) == 2
