"""Identical side effects in later responses of one turn."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import assistant


def test_a_success_of_the_same_turn_is_not_run_again(rig, kit):
    rig.delivered(kit.call("t1.0", people=2))
    execution = rig.delivered(kit.call("t1.1", people=2))
    assert kit.body(execution) == {
        "error": "already_done",
        "tool": "book",
        "detail": "an identical call already ran earlier in this turn and succeeded; its result is above; "
        "do not repeat this call, tell the caller what happened",
    }
    assert (rig.outcomes(), rig.stats(), len(rig.runs)) == (
        ["ok", "repeat_refused"], {"side_effect_repeats": 1}, 1
    )  # fmt: skip


def test_the_refusal_leaves_a_valid_context(rig, kit):
    context = Context()
    for n in range(2):
        calls = (kit.call(f"t1.{n}"),)
        context.push(assistant("", calls))
        execution = rig.execute(*calls)
        rig.to((n + 1) * kit.S)
        execution.append_to(context)
    context.validate()
    assert [m.result.is_error for m in context if m.result] == [False, True]


def test_a_cut_success_counts_as_success(kit):
    rig = kit.Rig(max_result_bytes=20).book(result="x" * 50)
    rig.delivered(kit.call("t1.0"))
    assert kit.kinds(rig.delivered(kit.call("t1.1"))) == ["already_done"]


@pytest.mark.parametrize(
    ("first", "second", "epoch", "runs"),
    [
        ({"people": 2}, {"people": 3}, 1, 2),
        ({"people": 2}, {"people": 2}, 2, 2),
        ({"people": 2}, {"people": 2.0}, 1, 2),
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, 1, 1),
        ({"a": 1, "b": [1, 2]}, {"b": [2, 1], "a": 1}, 1, 2),
    ],
)
def test_only_equal_arguments_in_the_same_turn_are_a_repeat(rig, kit, first, second, epoch, runs):
    rig.delivered(kit.call("t1.0", **first))
    rig.delivered(kit.call(f"t{epoch}.1", **second), epoch=epoch)
    assert len(rig.runs) == runs


def test_another_tool_with_the_same_arguments_is_not_a_repeat(kit):
    rig = kit.Rig().book().tool("cancel", kit.SIDE_EFFECT)
    rig.delivered(kit.call("t1.0", "book", n=1))
    rig.delivered(kit.call("t1.1", "cancel", n=1))
    assert len(rig.runs) == 2


@pytest.mark.parametrize("latency", [100_000, "now"])
def test_two_identical_calls_of_one_response_both_run(kit, latency):
    rig = kit.Rig().book(latency=latency)
    assert kit.kinds(rig.delivered(kit.call("t1.0"), kit.call("t1.1"))) == ["ok", "ok"]
    assert len(rig.runs) == 2


def test_a_failed_or_lost_call_may_be_tried_again(kit):
    rig = kit.Rig().book(result=[kit.failed("no"), kit.crashed(), "BK-1"])
    answers = [kit.kinds(rig.delivered(kit.call(f"t1.{n}"))) for n in range(3)]
    assert answers == [["tool_failed"], ["unknown_outcome"], ["ok"]]


def test_what_the_model_never_saw_is_the_orphan_rules_matter(kit):
    rig = kit.Rig().book(latency=6 * kit.S)
    rig.delivered(kit.call("t1.0"), after=5 * kit.S)
    rig.to(6 * kit.S)
    assert kit.contents(rig.execute(kit.call("t1.1"))) == ["BK-1001"]
    assert rig.engine.stats().side_effect_repeats == 0


def test_a_repeatable_tool_and_a_lookup_run_again(kit):
    rig = kit.Rig().book(repeatable=True).look()
    for n in range(2):
        rig.delivered(kit.call(f"t1.{n}"), kit.call(f"t1.{n + 2}", "look"))
    assert (len(rig.ran("book")), len(rig.ran("look"))) == (2, 2)


def test_the_look_back_covers_thirty_two_side_effects(kit):
    for others, kind in ((31, "already_done"), (32, "ok")):
        rig = kit.Rig().book(latency=10)
        rig.delivered(kit.call("t1.0"), after=10)
        for n in range(1, others + 1):
            rig.delivered(kit.call(f"t1.{n}", n=n), after=10)
        assert kit.kinds(rig.delivered(kit.call("t1.99"), after=10)) == [kind]


def test_the_first_rule_that_fits_decides_same_key_orphan_repeat_room(kit):
    rig = kit.Rig(idempotency_capacity=2).book(latency=[100 * kit.MS, 9 * kit.S])
    rig.delivered(kit.call("t1.0"))
    same_key = kit.call("t1.0")  # also a repeat
    assert rig.outcomes_of(rig.execute(same_key)) == ["recorded"]
    running = rig.execute(kit.call("t1.1", n=1))
    repeat = rig.execute(kit.call("t1.2"))  # before room
    assert rig.outcomes_of(repeat) == ["repeat_refused"]
    running.discard()
    rig.execute(kit.call("t1.3", n=3))  # evicts t1.0: the store is full of running calls from here on
    orphan = rig.execute(kit.call("t1.4", n=1))  # before room
    assert rig.outcomes_of(orphan) == ["orphan_in_flight"]
    assert rig.outcomes_of(rig.execute(kit.call("t1.5", n=5))) == ["store_full"]


def test_an_orphan_goes_before_a_repeat(kit):
    rig = kit.Rig().book()
    both = rig.execute(kit.call("t1.0"), kit.call("t1.1"))
    rig.to(kit.S)
    both.discard()
    rig.delivered(kit.call("t1.2"))  # replays t1.0, a success of this turn now, and tells the note of t1.1
    assert rig.outcomes_of(rig.execute(kit.call("t1.3"))) == ["orphan_reported"]
