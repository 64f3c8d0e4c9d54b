"""Running calls: together, in order, within the engine's bounds."""

from __future__ import annotations

import json

import pytest

from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import assistant
from bargein.pipelines.settings import EngineConfig
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.outcomes import ToolStats


def test_the_defaults_are_those_of_the_contract():
    assert EngineConfig() == EngineConfig(2, 65_536, 256, 4_194_304, 16_384, 120_000_000, 120_000_000, 120_000_000)


def test_independent_calls_run_together_and_the_round_takes_as_long_as_the_slowest(kit):
    rig = kit.Rig().look(latency=[10 * kit.MS, 50 * kit.MS, 30 * kit.MS], result=["a", "b", "c"])
    ended = []
    execution = rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(3)])
    execution.on_complete(lambda done: ended.append((rig.clock.now, done)))
    assert (rig.ran("look"), execution.complete) == ([0, 0, 0], False)
    rig.clock.run(until=50 * kit.MS)
    assert (ended, kit.contents(execution)) == ([], ["a", "c"])
    rig.to(50 * kit.MS)
    assert (ended, kit.contents(execution)) == ([(50 * kit.MS, execution)], ["a", "b", "c"])


def test_results_stand_in_issue_order_whatever_the_order_of_completion(kit):
    rig = kit.Rig().look(latency=[50, 40, 30, 20, 10], result=list("abcde"))
    execution = rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(5)])
    rig.clock.run()
    assert [(m.result.call_id, m.result.content) for m in execution.results] == [
        ("t1.0", "a"), ("t1.1", "b"), ("t1.2", "c"), ("t1.3", "d"), ("t1.4", "e")
    ]  # fmt: skip
    assert [row["call"] for row in rig.timeline.of("tool.settled")] == ["t1.4", "t1.3", "t1.2", "t1.1", "t1.0"]


def test_a_round_without_running_calls_is_complete_at_once_and_says_so_at_once(rig, kit):
    told = []
    rig.execute(kit.call("t1.0", "nope")).on_complete(told.append)
    rig.execute().on_complete(told.append)
    assert len(told) == 2


def test_a_body_that_lands_while_it_is_asked_is_answered_too(kit):
    rig = kit.Rig().look(latency="now").book(latency="now")
    execution = rig.execute(kit.call("t1.0", "look"), kit.call("t1.1"))
    assert (execution.complete, kit.contents(execution)) == (True, ["sunny", "BK-1001"])
    assert [row["kind"] for row in rig.timeline] == ["tool.started", "tool.finished", "tool.settled"] * 2


def test_a_call_that_runs_is_one_effect_on_the_bus_under_its_tools_key(rig, kit):
    rig.engine.execute([kit.call("t1.0"), kit.call("t1.1", "nope")], 1, rig.token(1), parent=7)
    [effect] = rig.bus.log
    assert effect.as_dict() == {
        "id": 0, "key": "agent/tool:book#0", "kind": "tool_call", "parent": 7, "scope": "t1",
        "dispatched_at_us": 0, "landed_at_us": None, "items": 0, "status": None,
    }  # fmt: skip


def test_a_tool_is_called_with_its_place_in_the_session_and_the_turns_own_token(rig, kit):
    rig.to(5)
    rig.execute(kit.call("t3.0"), kit.call("t3.1", "look"), epoch=3)
    book, look = rig.contexts
    assert (book.session, book.epoch, book.call_id, book.now_us) == ("s", 3, "t3.0", 5)
    assert book.token is rig.token(3)
    assert look.token is rig.token(3)
    assert (book.key, look.key) == (("s", 3, "t3.0"), IdempotencyKey("s", 3, "t3.1"))


def test_read_only_crashes_are_answered_and_siblings_go_on(kit):
    rig = kit.Rig().look(latency=["now", 10 * kit.MS, 20 * kit.MS], result=[kit.crashed(), kit.crashed("x"), "fine"])
    execution = rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(3)])
    rig.clock.run()
    crash = {"error": "tool_failed", "tool": "look", "detail": "the tool panicked"}
    assert [json.loads(content) for content in kit.contents(execution)[:2]] == [crash, crash]
    assert kit.contents(execution)[2] == "fine"
    assert rig.outcomes() == ["failed", "failed", "ok"]


def test_a_side_effect_that_crashes_is_lost_and_its_outcome_unknown(kit):
    rig = kit.Rig().book(result=kit.crashed())
    execution = rig.delivered(kit.call("t1.0"))
    assert (kit.kinds(execution), rig.outcomes()) == (["unknown_outcome"], ["lost"])
    again = rig.execute(kit.call("t1.0"))
    assert (kit.kinds(again), rig.outcomes(), len(rig.runs)) == (["unknown_outcome"], ["lost", "lost"], 1)


def test_appending_pushes_results_then_notes_once(kit):
    rig = kit.Rig().book(latency=200 * kit.MS).look()
    rig.execute(kit.call("t1.0"))
    rig.to(0)
    rig.barge_in(1)
    rig.to(kit.S)
    context = Context()
    calls = (kit.call("t2.0", "look"), kit.call("t2.1", "look"))
    context.push(assistant("", calls))
    execution = rig.execute(*calls, epoch=2)
    with pytest.raises(RuntimeError, match="not complete"):
        execution.append_to(context)
    rig.to(2 * kit.S)
    execution.append_to(context)
    assert [str(message.role) for message in context] == ["assistant", "tool", "tool", "system"]
    with pytest.raises(RuntimeError, match="was delivered before"):
        execution.append_to(context)
    assert len(context) == 4
    context.validate()


def test_the_store_budget_is_raised_to_one_result_and_a_capacity_of_zero_counts_as_one(kit):
    rig = kit.Rig(max_result_bytes=1000, idempotency_max_bytes=10, idempotency_capacity=0).book(result="x" * 1000)
    rig.delivered(kit.call("t1.0"))
    again = rig.execute(kit.call("t1.0"))
    assert (kit.contents(again), rig.outcomes()) == (["x" * 1000], ["ok", "recorded"])
    assert rig.engine.idempotency_usage() == (1, 1000)
    rig = kit.Rig(max_result_bytes=1000, idempotency_max_bytes=10).book(result="x" * 400)
    rig.delivered(*[kit.call(f"t1.{n}", n=n) for n in range(3)])
    assert rig.engine.idempotency_usage() == (2, 800)


def test_every_entry_point_answers_on_a_session_with_one_call_of_each_kind(kit):
    rig = kit.Rig().look().book(result=["x" * 10, "x" * 20])
    rig.delivered(kit.call("t1.0", "look"), kit.call("t1.1", people=1), kit.call("t1.2", people=2))
    engine = rig.engine
    assert engine.idempotency_usage() == (2, 30)
    assert (engine.invalid_rounds(1), engine.take_late_notes(), engine.late_notes_dropped()) == (0, [], 0)
    assert engine.stats() == ToolStats()
    assert (engine.running_calls, engine.open_responses) == ((), 0)


def test_stats_are_a_copy_with_exactly_the_ten_counters(rig, kit):
    before = rig.engine.stats()
    rig.barge_in(1)
    rig.execute(kit.call("t1.0"))
    assert (before.not_started_cancelled, rig.engine.stats().not_started_cancelled) == (0, 1)
    assert ToolStats.__slots__ == (
        "read_only_cancelled", "not_started_cancelled", "side_effect_interrupted", "side_effect_late_results",
        "side_effect_replays", "side_effect_repeats", "orphan_replays", "orphan_in_flight", "orphan_lost",
        "orphan_reported",
    )  # fmt: skip


def test_sessions_on_one_registry_share_nothing_that_changes(rig, kit):
    other = kit.Rig(rig.registry, session="other")
    other.serve("book")
    rig.delivered(kit.call("t1.0"))
    other.delivered(kit.call("t1.0"))
    rig.execute(kit.call("t1.0"))
    assert (len(rig.runs), len(other.runs)) == (1, 1)
    assert (rig.stats(), other.stats()) == ({"side_effect_replays": 1}, {})


def test_running_calls_and_open_responses_show_what_a_session_still_has_to_settle(kit):
    rig = kit.Rig().book(latency=kit.S)
    execution = rig.execute(kit.call("t1.0"), kit.call("t1.1", people=2))
    assert (rig.engine.running_calls, rig.engine.open_responses) == (("t1.0", "t1.1"), 1)
    execution.discard()
    assert (rig.engine.running_calls, rig.engine.open_responses) == (("t1.0", "t1.1"), 0)
    rig.to(kit.S)
    assert rig.engine.running_calls == ()


# -- the end of the session -----------------------------------------------------------------------------------------


def test_closing_stops_what_runs_and_records_side_effects_as_lost(kit):
    rig = kit.Rig().book(latency=3 * kit.S).look(latency=3 * kit.S)
    rig.execute(kit.call("t1.0")).discard()
    waiting = rig.execute(kit.call("t1.1", people=2), kit.call("t1.2", "look"))
    rig.to(kit.S)
    rig.engine.close()
    rig.engine.close()
    at = kit.S
    assert rig.stops == [(at, "book", "hang_up"), (at, "book", "hang_up"), (at, "look", "hang_up")]
    assert kit.kinds(waiting) == ["unknown_outcome", "interrupted"]
    assert rig.stats() == {"read_only_cancelled": 1, "side_effect_late_results": 1}
    assert (rig.engine.running_calls, rig.bus.running) == ((), 0)
    unknown = "the call ended without a result; the outcome is unknown, do not repeat the call"
    assert rig.notes() == [kit.note(f'{{"error":"unknown_outcome","tool":"book","detail":"{unknown}"}}')]
    rig.clock.run()
    assert rig.ends == []


def test_nothing_starts_after_the_close(rig, kit):
    rig.engine.close()
    assert kit.kinds(rig.execute(kit.call("t1.0"), kit.call("t1.1", "look"))) == ["interrupted", "interrupted"]
    assert rig.runs == []
