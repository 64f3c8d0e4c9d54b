"""Saving at a particular place: while calls are held, answers submitted, turns committed, streams watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.open_calls import Open
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.run_settings import InvalidCalls
from bargein.pipelines.agent.run_state import BATCH_OWNER, PendingEffect, Resolution, ResolutionKind, Run
from bargein.pipelines.agent.saved_errors import UnfinishedStream
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.layers import Ask, Layer
from bargein.sim.effects.sources import PushHandler
from bargein.sim.effects.streams import Batch, LiveStreams
from tests.pipelines.agent.checkpoint_kit import MODEL, moved, of_kind, only_run, reread
from tests.pipelines.agent.run_kit import MS, Model, S, Tool, World, call, calls, delta, failure, output, text

ADD = "golden/tool:add#0"


def batch(*names: str, **settings: Any) -> World:
    world = World(calls(*(call("add", name) for name in names)), text("done"), max_turns=3, **settings)
    world.tool("add", delay_us=S)
    return world


def in_flight(world: World) -> list[str]:
    """Ids of the calls that are being carried out."""
    (run,) = world.runs.live.values()
    assert run.turn is not None
    return [each.call.id for each in run.turn.batch if each.in_flight and each.call is not None]


# -- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [PendingEffect.approve, lambda effect: effect.release(BATCH_OWNER)])
def test_right_after_a_call_was_approved_early_the_runs_can_be_saved_and_the_batch_goes_on(
    route: Callable[[PendingEffect], object],
) -> None:
    world = batch("a", "b", "c")
    run = world.run(until_us=MS)
    assert run.turn is not None
    route(run.turn.batch[1])
    other = moved(world, text("done"))
    other.bus.replace(ADD, tool := Tool(other.clock, 42, S))
    turn = only_run(other).turn
    assert turn is not None
    assert [sorted(each.holds) for each in turn.batch] == [[], [], [BATCH_OWNER]]
    other.clock.run(MS)
    assert in_flight(other) == ["a", "b"]
    other.clock.run()
    assert ([at_us for at_us, _ in tool.started], output(only_run(other))) == ([0, 0, S], "done")
    assert other.records == "T T T C"


def test_a_call_that_was_denied_while_its_batch_held_it_waits_for_nobody() -> None:
    world = batch("a", "b", "c")

    def gate(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.call is not None and moment.effect.call.id == "b":
            moment.deny("not b")

    world.on(At.GATE, gate)
    run = world.run(until_us=MS)
    assert run.turn is not None
    assert [sorted(each.holds) for each in run.turn.batch] == [[], [], [BATCH_OWNER]]
    other = moved(world, text("done"), add=42)
    other.clock.run()
    restored = only_run(other)
    assert restored.history.statuses(2) == ("Ok", "Denied", "Ok")


# -- answers from outside -------------------------------------------------------------------------------------------


def opened(*names: str) -> tuple[World, list[PendingEffect]]:
    """A world whose calls wait for somebody to answer them."""
    world = World(calls(*(call(name, name) for name in names)), text("done"), max_turns=2, concurrency=len(names))
    for name in names:
        world.bus.serve(world.agent.grant(name).key, Open())
    run = world.run()
    assert run.turn is not None
    return world, run.turn.batch


def answers(world: World) -> list[bool]:
    """Of each call that is saved, whether it was answered."""
    effects = of_kind(save_runs(world.runs), "effect")
    return ["outcome" in each for each in effects if each["asks"] == "tool_call"]


def test_an_answer_is_in_no_checkpoint_before_a_step_has_collected_it() -> None:
    world, (first, _) = opened("a", "b")
    world.runs.submit(first, Outcome(Status.OK, "yes"))
    assert (answers(world), first.outcome) == ([False, False], None)
    world.clock.run()
    assert (answers(world), first.outcome) == ([True, False], Outcome(Status.OK, "yes"))
    assert world.bus.bus.log[1].outcome == Outcome(Status.OK, "yes")


def test_an_answer_that_is_submitted_while_outcomes_are_judged_is_there_one_step_later_on_the_same_instant() -> None:
    world, (first, second) = opened("a", "b")
    seen: list[Any] = []

    def judge(moment: Moment) -> None:
        if moment.effect is first:
            world.runs.submit(second, Outcome(Status.OK, "two"))
        seen.append((world.clock.now, moment.effect is first, second.outcome is None))

    def look(moment: Moment) -> None:
        seen.append((world.clock.now, "step", second.outcome is None))

    world.on(At.JUDGE_OUTCOME, judge)
    world.on(At.CHECKPOINT, look)
    world.runs.submit(first, Outcome(Status.OK, "one"))
    world.clock.run(1)
    assert seen[:4] == [(0, True, True), (0, "step", True), (0, False, False), (0, "step", False)]


class Noting(Layer):
    """Notes what lands, in the order in which it does."""

    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes

    def after(self, ask: Ask, outcome: Outcome) -> Outcome:
        self.notes.append((ask.key, outcome.value))
        return outcome


def test_answers_are_collected_in_the_order_in_which_they_were_submitted() -> None:
    notes: list[Any] = []
    world = World(calls(call("a", "a"), call("b", "b")), text("done"), max_turns=2, concurrency=2)
    for name in ("a", "b"):
        world.bus.serve(world.agent.grant(name).key, Open(), Noting(notes))
    run = world.run()
    assert run.turn is not None
    first, second = run.turn.batch
    world.runs.submit(second, Outcome(Status.OK, "B"))
    world.runs.submit(first, Outcome(Status.OK, "A"))
    assert notes == []
    world.clock.run()
    assert notes == [("golden/tool:b#1", "B"), ("golden/tool:a#0", "A")]
    assert world.said(2)[-1] == ("user", ["result A", "result B"])


def test_what_waits_for_a_person_waits_for_one_again_after_a_load_and_is_answered_under_its_id() -> None:
    world, _ = opened("a")
    other = moved(world, text("done"))
    other.bus.replace("golden/tool:a#0", waiting := Open())
    other.clock.run()
    assert [each.id for each in waiting.taken] == [1]
    turn = only_run(other).turn
    assert turn is not None
    other.runs.submit(turn.batch[0], Outcome(Status.OK, "yes"))
    other.clock.run()
    assert (other.said(1)[-1], output(only_run(other))) == (("user", "result yes"), "done")


# -- committed turns ------------------------------------------------------------------------------------------------


def held(world: World, *owners: str) -> Run:
    run = world.runs.spawn(world.agent, "hello")
    for owner in owners:
        world.runs.hold_after_tool_turn(run, owner, 1)
    world.clock.run()
    return run


def commits(run: Run) -> list[tuple[int | None, int | None, int | None]]:
    return [(turn.commit, turn.assistant, turn.results) for turn in run.turns]


def test_a_held_run_is_held_again_by_every_owner_until_each_has_released_it() -> None:
    world = batch("a")
    held(world, "me", "you")
    other = moved(world, text("done"))
    run = only_run(other)
    for owner in ("me", "nobody", "me"):
        other.runs.release_tool_turn_hold(run, owner)
        other.clock.run()
        assert (other.records, run.phase, run.holds) == ("", "Assembling", {"you": 1})
    other.runs.release_tool_turn_hold(run, "you")
    other.clock.run()
    assert (other.records, output(run)) == ("C", "done")


def test_a_load_tells_of_no_commit_and_calls_no_hook_and_the_commits_stand_as_they_stood() -> None:
    world = batch("a")
    run = held(world, "me")
    other = World(text("done"))
    other.bus.serve(ADD, Tool(other.clock, None))
    called: list[Any] = []
    for at in At:
        other.on(at, lambda moment: called.append(str(moment.at)))
    other.runs.watch_commits(lambda run, turn: called.append(turn))
    load_runs(reread(save_runs(world.runs)), other.runs)
    restored = only_run(other)
    assert (called, len(other.runs.timeline), commits(restored)) == ([], 0, [(1, 1, 2)])
    assert (commits(restored), restored.committed) == (commits(run), 1)
    other.clock.run()
    assert (called, len(other.runs.timeline)) == (["checkpoint"], 0)
    other.runs.release_tool_turn_hold(restored, "me")
    other.clock.run()
    assert "run_started" not in called
    assert (1 in called, called[-1], other.told("agent.tool_turn_committed")) == (False, "run_ended", [])


def test_a_cancelled_round_and_one_that_was_skipped_commit_nothing_and_the_commit_before_stays() -> None:
    world = World(
        calls(call("add", "a")),
        calls(call("nope", "b")),
        calls(call("nope", "c")),
        calls(call("add", "d")),
        max_turns=5,
    )
    world.agent.settings.invalid_calls = InvalidCalls(retries=1)
    world.tool("add", delay_us=MS)

    def resolve(moment: Moment) -> None:
        assert moment.turn is not None
        kind = ResolutionKind.RETRY if moment.turn.number == 2 else ResolutionKind.SKIP
        moment.resolve(Resolution(kind, "no"))

    world.on(At.INVALID_CALL, resolve)

    def judge(moment: Moment) -> None:
        if moment.turn is not None and moment.turn.number == 4:
            moment.stop("enough")

    world.on(At.JUDGE_OUTCOME, judge)
    run = world.run()
    assert failure(run) == "Cancelled"
    assert [each["turn"] for each in world.told("agent.tool_turn_committed")] == [1]
    other = moved(world)
    other.clock.run()
    assert [turn.commit for turn in only_run(other).turns] == [1, None, None, None]
    assert (commits(only_run(other)), other.told("agent.tool_turn_committed")) == (commits(run), [])


def test_a_hook_that_takes_the_run_out_at_its_commit_reads_it_there_and_nobody_is_told() -> None:
    world = batch("a")
    seen: list[Any] = []

    def take_out(moment: Moment) -> None:
        assert moment.turn is not None
        seen.append((moment.turn.commit, moment.run.committed, moment.run.messages[2].parts[0].type))
        world.runs.remove(moment.run)

    world.on(At.COMMITTED, take_out)
    world.runs.watch_commits(lambda run, turn: seen.append("told"))
    world.run()
    assert seen == [(1, 1, "tool_result")]
    assert (world.told("agent.tool_turn_committed"), world.runs.live, world.records) == ([], {}, "C T")


class Till:
    """Books what it is asked, each under an id once: the store behind a side effect, which outlives a session."""

    def __init__(self) -> None:
        self.booked: dict[str, str] = {}
        self.asked: list[str] = []

    def serve(self, effect: Any) -> None:
        self.asked.append(f"{effect.scope}/{effect.id}")
        self.booked.setdefault(self.asked[-1], effect.payload.args)


def test_a_side_effect_without_an_answer_is_asked_once_more_under_its_id_by_which_its_store_knows_it() -> None:
    till = Till()
    world = World(calls(call("book", day="friday")), max_turns=2)
    world.bus.serve(world.agent.grant("book").key, till)
    world.run()
    other = World(text("done"))
    other.bus.serve("golden/tool:book#0", till)
    load_runs(reread(save_runs(world.runs)), other.runs)
    other.clock.run()
    assert (till.asked, till.booked) == (["r1/1", "r1/1"], {"r1/1": '{"day":"friday"}'})
    assert [str(each.kind) for each in other.bus.bus.log] == ["tool_call"]


# -- streams that are watched ---------------------------------------------------------------------------------------


def watched(*script: Any) -> tuple[World, list[Batch]]:
    """A world whose model's streams somebody watches."""
    world = World()
    streams, batches = LiveStreams(world.clock), list[Batch]()
    streams.observe(batches.append)
    model = Model(world.clock, *script)
    world.bus.replace(MODEL, PushHandler(world.clock, streams, model, streamed=lambda effect: True))
    return world, batches


def test_a_load_restores_what_had_streamed_and_tells_no_observer() -> None:
    world, batches = watched(delta("One ", "two ", "three."))
    plain = World(delta("One ", "two ", "three."))
    run = world.run(streamed=True)
    plain.run(streamed=True)
    assert [batch.start for batch in batches] == [0, 1, 2]
    assert save_runs(world.runs).to_bytes() == save_runs(plain.runs).to_bytes()
    other, told = watched()
    load_runs(reread(save_runs(world.runs)), other.runs)
    other.clock.run()
    turn = only_run(other).turn
    assert turn is not None
    assert run.turn is not None
    assert (turn.items, len(turn.items), told, other.records) == (run.turn.items, 3, [], "")


def test_a_watched_stream_that_has_brought_something_is_not_gone_on_from() -> None:
    world, batches = watched(delta("One ", "two."))
    world.run(streamed=True, until_us=150 * MS)
    assert len(batches) == 1
    with pytest.raises(UnfinishedStream, match=r"effect 0 \(golden/model:default\) is in the middle of its stream"):
        moved(world)
