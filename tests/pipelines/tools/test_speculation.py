"""Speculative responses: lookups run, bookings wait for the commit."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.assembly import InvalidCall


def bad(call_id="b"):
    return InvalidCall(call_id, "book", "{", "cut off")


def test_side_effects_wait_for_the_commit_and_lookups_run_at_once(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"), kit.call("t1.1", "look"))
    rig.to(10 * kit.S)
    assert (rig.ran("look"), rig.ran("book")) == ([0], [])
    execution = rig.commit(speculation)
    assert (rig.ran("book"), execution.complete) == ([10 * kit.S], False)
    rig.to(11 * kit.S)
    assert rig.settled() == [
        (100 * kit.MS, "t1.1", "ok", 100 * kit.MS),
        (10 * kit.S + 100 * kit.MS, "t1.0", "ok", 100 * kit.MS),
    ]
    assert kit.contents(execution) == ["BK-1001", "sunny"]


def test_a_speculation_shows_what_it_holds_and_what_is_settled(rig, kit):
    calls = kit.call("t1.0"), kit.call("t1.1", "look"), kit.call("t1.2", n=2), bad("t1.3")
    with rig.speculate(*calls) as speculation:
        assert (speculation.epoch, speculation.budget_exhausted) == (1, False)
        assert speculation.held_calls() == [calls[0], calls[2]]
        assert [m.result.call_id for m in speculation.answered()] == ["t1.3"]
        rig.to(100 * kit.MS)
        assert [m.result.call_id for m in speculation.answered()] == ["t1.1", "t1.3"]
    assert rig.engine.open_responses == 0


def test_the_whole_response_comes_in_issue_order(rig, kit):
    speculation = rig.speculate(kit.call("t1.0", n=0), kit.call("t1.1", "look"), kit.call("t1.2", n=2))
    execution = rig.commit(speculation)
    rig.clock.run()
    assert [m.result.call_id for m in execution.results] == ["t1.0", "t1.1", "t1.2"]
    assert [row["call"] for row in rig.timeline.of("tool.started")] == ["t1.1", "t1.0", "t1.2"]


def test_a_commit_spends_no_budget_and_a_discarded_speculation_has_spent_its_own(rig, kit):
    rig.commit(rig.speculate(kit.call("t1.0", "look")))
    assert rig.engine.invalid_rounds(1) == 0
    rig.commit(rig.speculate(bad("t1.1")))
    assert rig.engine.invalid_rounds(1) == 1
    rig.speculate(bad("t1.2")).discard()
    assert rig.engine.invalid_rounds(1) == 2
    assert rig.speculate(bad("t1.3")).budget_exhausted


def test_committing_after_a_newer_turn_answers_held_calls_stale_and_keeps_the_rest(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"), kit.call("t1.1", "look"))
    rig.to(kit.S)
    rig.execute(epoch=2)
    execution = rig.commit(speculation)
    assert (execution.complete, kit.kinds(execution), rig.ran("book")) == (True, ["stale_turn", "ok"], [])


def test_committing_after_the_budget_ran_out_runs_nothing(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"))
    for _ in range(3):
        rig.execute(bad())
    execution = rig.commit(speculation)
    assert (kit.kinds(execution), execution.budget_exhausted, rig.runs) == (["budget_exhausted"], True, [])


def test_a_speculation_under_an_exhausted_budget_stays_exhausted(rig, kit):
    for _ in range(3):
        rig.execute(bad())
    speculation = rig.speculate(kit.call("t1.0"))
    assert (speculation.budget_exhausted, speculation.held_calls()) == (True, [])
    execution = rig.commit(speculation)
    assert (kit.kinds(execution), execution.budget_exhausted, rig.runs) == (["budget_exhausted"], True, [])


def test_committing_with_a_cancelled_token_runs_nothing_and_drops_what_runs(rig, kit):
    speculation = rig.engine.speculate([kit.call("t1.0"), kit.call("t1.1", "look")], 1, rig.token(9))
    rig.barge_in(1)
    execution = rig.commit(speculation)
    assert (kit.kinds(execution), rig.ran("book")) == (["interrupted", "interrupted"], [])
    assert rig.outcomes() == ["interrupted", "not_started"]
    assert rig.stats() == {"read_only_cancelled": 1, "not_started_cancelled": 1}


def test_from_the_commit_on_its_token_alone_interrupts(rig, kit):
    speculation = rig.engine.speculate([kit.call("t1.0"), kit.call("t1.1", "look")], 1, rig.token(9))
    execution = rig.commit(speculation)
    rig.barge_in(9)
    assert not execution.results
    rig.barge_in(1)
    assert rig.outcomes() == ["interrupted_running", "interrupted"]


def test_a_held_call_whose_key_is_recorded_answers_the_record(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"))
    rig.delivered(kit.call("t1.0"))
    execution = rig.commit(speculation)
    assert (kit.contents(execution), rig.outcomes(), len(rig.runs)) == (["BK-1001"], ["ok", "recorded"], 1)


def test_what_a_discarded_speculation_held_never_runs(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"))
    speculation.discard()
    speculation.discard()
    with pytest.raises(RuntimeError, match="was discarded before"):
        rig.commit(speculation)
    rig.to(10 * kit.S)
    assert (rig.runs, rig.notes(), rig.stats(), rig.engine.open_responses) == ([], [], {}, 0)


def test_a_speculation_commits_once_and_discarding_it_then_has_no_effect(rig, kit):
    speculation = rig.speculate(kit.call("t1.0"))
    execution = rig.commit(speculation)
    speculation.discard()
    with pytest.raises(RuntimeError, match="was committed before"):
        rig.commit(speculation)
    rig.clock.run()
    assert kit.contents(execution) == ["BK-1001"]


def test_discarding_drops_and_counts_the_lookups_that_still_run(kit):
    rig = kit.Rig().look(latency=3 * kit.S)
    speculation = rig.speculate(kit.call("t1.0", "look"))
    rig.to(kit.S)
    speculation.discard()
    assert rig.stops == [(kit.S, "look", "discarded")]
    assert rig.stats() == {"read_only_cancelled": 1}


def test_a_speculation_takes_no_notes_before_its_commit(kit):
    rig = kit.Rig().book(latency=kit.S).look()
    rig.execute(kit.call("t1.0")).discard()
    rig.to(kit.S)
    speculation = rig.speculate(kit.call("t2.0", "look"), epoch=2)
    rig.to(2 * kit.S)
    execution = rig.commit(speculation)
    assert [m.text for m in execution.late_notes] == [kit.note("BK-1001")]


def test_holding_is_told_and_the_settle_follows_at_the_commit(rig, kit):
    execution = rig.commit(rig.speculate(kit.call("t1.0")))
    rig.clock.run()
    assert execution.complete
    assert [(row["kind"], row["call"]) for row in rig.timeline] == [
        ("tool.held", "t1.0"), ("tool.started", "t1.0"), ("tool.finished", "t1.0"), ("tool.settled", "t1.0")
    ]  # fmt: skip
