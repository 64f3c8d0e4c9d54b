"""Spawning, cancelling and removing runs, and holding them at committed turns."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.endings import RunBusy
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.parts import user_message
from tests.pipelines.agent.run_kit import MS, S, World, call, calls, failure, output, report, text


def test_a_new_run_starts_from_nothing() -> None:
    world = World()
    runs = [world.runs.create(world.agent) for _ in range(3)]
    first = runs[0]
    counters = (first.cursor, first.output_retries, first.invalid_retries, first.provider_retried)
    assert (counters, first.output_tool, first.usage, first.streamed) == ((0, 0, 0, 0), None, {}, False)
    assert [(run.seq, run.scope, run.name) for run in runs] == [
        (1, "r1", "golden run 1"),
        (2, "r2", "golden run 2"),
        (3, "r3", "golden run 3"),
    ]


def test_a_queued_spawn_is_there_with_the_next_step() -> None:
    world = World(text("hi"))
    number = world.runs.queue_spawn(world.agent, "hello")
    assert world.runs.live == {}
    world.clock.run()
    assert (output(world.runs.live[number]), world.clock.now) == ("hi", 0)


def test_nothing_reads_a_run_before_it_is_ready() -> None:
    world = World(text("hi"))
    run = world.runs.create(world.agent)
    run.prompt = user_message("hello")
    world.runs.wake()
    world.clock.run()
    assert (run.phase, world.records) == (None, "")
    run.prior.append(user_message("before"))
    world.runs.make_ready(run)
    world.clock.run()
    assert (world.said(1), output(run)) == ([("user", "before"), ("user", "hello")], "hi")


def test_opening_reads_the_prompt_and_assembles_within_one_step() -> None:
    world = World(None)
    run = world.runs.spawn(world.agent, "hello", [user_message("before")])
    assert (run.phase, run.prompt, len(run.history)) == (None, user_message("hello"), 0)
    world.clock.step()
    assert (run.phase, run.prompt, run.messages[-1]) == ("AwaitingModel", None, user_message("hello"))


def test_a_run_that_waits_makes_no_further_round() -> None:
    world = World(calls(call("add")), max_turns=5)
    world.tool("add", delay_us=S)
    run = world.run(until_us=MS)
    for _ in range(3):
        world.runs.wake()
    world.clock.run(2 * MS)
    assert (len(run.turns), run.phase) == (1, "ResolvingTools")


def test_cancelling_ends_a_run_at_once_or_with_the_next_step() -> None:
    world = World(text("hi"))
    direct = world.runs.spawn(world.agent, "a")
    world.runs.cancel(direct, "why")
    assert (failure(direct), report(direct).message, direct.prompt) == ("Cancelled", "why", user_message("a"))
    number = world.runs.queue_spawn(world.agent, "b")
    world.runs.queue_cancel(number, "never mind")
    world.clock.run()
    assert (report(world.runs.live[number]).message, world.records) == ("never mind", "")


def test_cancelling_what_is_no_run_does_nothing() -> None:
    world = World(text("hi"))
    run = world.run()
    world.runs.cancel(world.agent, "x")
    world.runs.cancel(run, "x")
    assert output(run) == "hi"


def test_a_run_is_taken_out_once_it_has_ended_and_nothing_of_it_runs() -> None:
    world = World(calls(call("add")), text("x"), max_turns=3)
    world.tool("add", delay_us=S)
    run = world.run(until_us=MS)
    assert (world.runs.despawn(run), world.runs.despawn("nobody")) == (RunBusy.UNSETTLED, RunBusy.NOT_A_RUN)
    world.runs.cancel(run, "x")
    assert world.runs.despawn(run) is RunBusy.IN_FLIGHT
    assert world.runs.live == {1: run}
    world.clock.run()
    assert (world.runs.despawn(run), world.runs.live, world.records) == (None, {}, "C T")
    assert [str(each) for each in RunBusy] == ["NotARun", "Unsettled", "InFlight"]


def test_a_queued_removal_that_is_refused_is_told() -> None:
    world = World(text("hi"))
    run = world.run()
    world.runs.queue_despawn(run.seq)
    world.runs.queue_despawn(run.seq)
    world.clock.run()
    assert [(each["epoch"], each["reason"]) for each in world.told("agent.run_despawn_refused")] == [(1, "NotARun")]


def test_a_run_that_its_first_hook_takes_out_is_gone() -> None:
    world = World(text("hi"))
    world.on(At.RUN_STARTED, lambda moment: world.runs.remove(moment.run))
    run = world.run()
    assert (world.runs.live, run.prompt, run.messages, world.records) == ({}, None, (), "")


# -- holds --------------------------------------------------------------------------------------------------------


def rounds(number: int, **settings: Any) -> World:
    world = World(*(calls(call("add", f"c{at}")) for at in range(number)), text("done"), max_turns=number + 1)
    world.agent.settings.max_turns = settings.get("max_turns", number + 1)
    world.tool("add")
    return world


def held(world: World, *holds: tuple[str, int]) -> Any:
    run = world.runs.spawn(world.agent, "hello")
    for owner, turn in holds:
        world.runs.hold_after_tool_turn(run, owner, turn)
    world.clock.run()
    return run


def test_a_hold_blocks_after_its_turn_until_every_owner_has_released_it() -> None:
    world = rounds(2)
    run = held(world, ("A", 1), ("B", 1))
    assert (world.records, run.ending, run.committed) == ("C T", None, 1)
    for owner in ("x", "A", "A"):
        world.runs.release_tool_turn_hold(run, owner)
        world.clock.run()
        assert world.records == "C T"
    world.runs.release_tool_turn_hold(run, "B")
    world.clock.run()
    assert (world.records, output(run)) == ("C T C T C", "done")


@pytest.mark.parametrize("minimum", [0, -1])
def test_a_hold_waits_for_a_committed_turn_however_low_it_is(minimum: int) -> None:
    world = rounds(2)
    assert (held(world, ("me", minimum)).committed, world.records) == (1, "C T")
    none = World(text("hi"))
    assert output(held(none, ("me", minimum))) == "hi"


def test_a_hold_is_not_moved_later_by_its_owner() -> None:
    world = rounds(3)
    held(world, ("A", 1), ("A", 3))
    assert world.records == "C T"


def test_other_runs_go_on_and_a_request_that_is_out_is_not_taken_back() -> None:
    world = World(calls(call("add")), calls(call("add", "c2")), text("other"), delay_us=MS, max_turns=4)
    world.tool("add")
    run = world.runs.spawn(world.agent, "hello")
    world.clock.run(MS + 1)
    world.runs.hold_after_tool_turn(run, "A", 1)
    world.clock.run()
    assert (world.records, run.committed) == ("C T C T", 2)
    assert output(world.run()) == "other"


def test_spent_turns_and_cancelling_go_before_a_hold() -> None:
    world = rounds(1, max_turns=1)
    run = held(world, ("A", 1))
    assert failure(run) == "MaxTurns"
    world.runs.release_tool_turn_hold(run, "A")
    other = rounds(1)
    run = held(other, ("A", 1))
    other.runs.cancel(run, "x")
    assert failure(run) == "Cancelled"


def test_a_hold_changes_no_request() -> None:
    plain, kept = rounds(2), rounds(2)
    plain.run()
    run = held(kept, ("A", 1))
    kept.runs.release_tool_turn_hold(run, "A")
    kept.clock.run()
    assert kept.model.requests == plain.model.requests


def test_only_whole_batches_are_committed_and_each_is_told_to_everybody() -> None:
    world = World(calls(call("add")), text("half"), calls(call("add", "c2")), text("done"), max_turns=4)
    world.tool("add")
    world.on(At.JUDGE_ROUND, lambda moment: moment.run.cursor == 2 and moment.retry("more"))
    told: list[Any] = []
    for name in "ab":
        world.runs.watch_commits(
            lambda run, turn, name=name: told.append((name, turn, run.phase, len(run.history) - run.turn.results))
        )
    seen: list[Any] = []
    world.on(At.CHECKPOINT, lambda moment: seen.append((moment.run.committed, moment.run.ending)))
    run = world.run()
    assert [turn.commit for turn in run.turns] == [1, None, 3, None]
    assert told == [(name, turn, "Assembling", 1) for turn in (1, 3) for name in "ab"]
    first = run.turns[0]
    assert [str(run.messages[at].role) for at in (first.assistant, first.results)] == ["assistant", "user"]
    assert (seen[-1], [each["turn"] for each in world.told("agent.tool_turn_committed")]) == ((3, None), [1, 3])
