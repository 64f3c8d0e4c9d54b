"""Plan, admit, run: the retry budget, stale turns and the call cap."""

from __future__ import annotations

from bargein.pipelines.agent.assembly import InvalidCall


def bad(call_id="b"):
    return InvalidCall(call_id, "book", "{", "cut off")


def test_planning_answers_come_before_the_starts_and_no_time_passes(rig, kit):
    rig.execute(kit.call("t1.0"), bad("t1.1"), kit.call("t1.2", "look"))
    assert [(row["t"], row["kind"], row["call"]) for row in rig.timeline] == [
        (0, "tool.settled", "t1.1"),
        (0, "tool.started", "t1.0"),
        (0, "tool.started", "t1.2"),
    ]


def test_a_round_refused_at_admission_starts_nothing(rig, kit):
    rig.execute(epoch=2)
    rig.execute(kit.call("t1.0"), kit.call("t1.1", "look"))
    assert (rig.timeline.of("tool.started"), rig.bus.log) == ([], [])


def test_calls_past_the_thirty_second_are_refused_and_the_round_counts_once(rig, kit):
    execution = rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(34)])
    rig.clock.run()
    assert kit.kinds(execution) == ["ok"] * 32 + ["too_many_calls"] * 2
    assert kit.body(execution, 33)["detail"] == "a response may ask for 32 calls; this one was not run"
    assert (len(rig.runs), rig.engine.invalid_rounds(1)) == (32, 1)


def test_a_malformed_call_does_not_keep_its_valid_sibling_from_running(rig, kit):
    execution = rig.delivered(bad(), kit.call("t1.1"))
    assert kit.kinds(execution) == ["invalid tool call", "ok"]
    assert len(rig.runs) == 1


def test_the_third_malformed_round_and_every_later_one_of_the_turn_is_exhausted(rig, kit):
    rounds = [[bad()], [bad()], [bad(), kit.call("t1.3")], [kit.call("t1.4")]]
    seen = []
    for calls in rounds:
        execution = rig.execute(*calls)
        assert execution.complete
        seen.append((kit.kinds(execution), execution.budget_exhausted))
    assert seen == [
        (["invalid tool call"], False),
        (["invalid tool call"], False),
        (["budget_exhausted", "budget_exhausted"], True),
        (["budget_exhausted"], True),
    ]
    assert rig.runs == []


def test_a_round_counts_once_however_many_calls_are_malformed_and_valid_rounds_refund_nothing(rig, kit):
    rig.execute(*[bad(f"t1.{n}") for n in range(5)])
    assert rig.engine.invalid_rounds(1) == 1
    rig.delivered(kit.call("t1.5"))
    rig.execute(bad("t1.6"))
    rig.delivered(kit.call("t1.7", people=3))
    assert rig.engine.invalid_rounds(1) == 2
    assert rig.execute(bad("t1.8")).budget_exhausted


def test_a_newer_turn_begins_with_a_fresh_budget(rig, kit):
    for _ in range(3):
        rig.execute(bad())
    execution = rig.execute(bad(), epoch=2)
    assert (kit.kinds(execution), execution.budget_exhausted) == (["invalid tool call"], False)
    assert (rig.engine.invalid_rounds(1), rig.engine.invalid_rounds(2)) == (0, 1)


def test_a_superseded_turn_neither_renews_nor_spends_the_current_budget(rig, kit):
    rig.execute(bad(), epoch=2)
    execution = rig.execute(bad(), epoch=1)
    assert (kit.kinds(execution), rig.engine.invalid_rounds(2)) == (["stale_turn"], 1)


def test_a_stale_round_is_refused_whole(rig, kit):
    rig.execute(bad(), epoch=3)
    execution = rig.execute(kit.call("t2.0", "look"), kit.call("t2.1"), bad("t2.2"), epoch=2)
    assert kit.kinds(execution) == ["stale_turn"] * 3
    assert kit.body(execution)["detail"] == "a newer turn has begun; this call was not run"
    assert (rig.runs, rig.engine.invalid_rounds(3)) == ([], 1)


def test_speculate_and_commit_count_as_having_seen_a_turn(rig, kit):
    speculation = rig.speculate(kit.call("t4.0"), epoch=4)
    assert kit.kinds(rig.execute(kit.call("t3.0"), epoch=3)) == ["stale_turn"]
    rig.commit(speculation)
    assert kit.kinds(rig.execute(kit.call("t3.1"), epoch=3)) == ["stale_turn"]


def test_a_turn_without_calls_is_unknown_so_only_the_cancelled_token_holds_the_old_one(rig, kit):
    assert kit.kinds(rig.delivered(kit.call("t1.0", "look"))) == ["ok"]
    rig.barge_in(1)
    assert kit.kinds(rig.execute(kit.call("t1.1", "look"))) == ["interrupted"]


def test_being_superseded_does_not_stop_a_running_side_effect(kit):
    rig = kit.Rig().book(latency=3 * kit.S).look()
    first = rig.execute(kit.call("t1.0"))
    rig.to(kit.S)
    rig.execute(kit.call("t2.0", "look"), epoch=2)
    rig.to(2 * kit.S)
    first.discard()
    rig.to(3 * kit.S)
    assert rig.ends == [(kit.S + 100 * kit.MS, "look"), (3 * kit.S, "book")]
    assert rig.notes() == [kit.note("BK-1001")]


def test_two_side_effects_of_one_response_with_one_id_run_once(kit):
    for latency in (100 * kit.MS, "now"):
        rig = kit.Rig().book(latency=latency)
        execution = rig.execute(kit.call("t1.0", people=2), kit.call("t1.0", people=3))
        rig.clock.run()
        assert (kit.kinds(execution), len(rig.runs)) == (["ok", "duplicate_call"], 1)
