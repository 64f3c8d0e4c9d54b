"""Going on from a saved run: what is taken up, what is asked once more and what is not, and who is told."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import StreamError
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.memory import Append
from bargein.pipelines.agent.parts import user_message
from bargein.pipelines.agent.run_restore import RestoreMode, load_runs
from bargein.pipelines.agent.run_settings import Backoff, ToolAccess
from bargein.pipelines.agent.run_state import BACKOFF_OWNER, BATCH_OWNER, Run
from bargein.pipelines.agent.saved_errors import UnfinishedStream, UnknownHostState
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from tests.pipelines.agent.checkpoint_kit import MODEL, moved, of_kind, only_run, refusal, reread, said
from tests.pipelines.agent.checkpoint_programs import NOTE, Nesting
from tests.pipelines.agent.memory_kit import GOLDEN, MEMORY, OLD, RememberingWorld, memory_of, remembered
from tests.pipelines.agent.run_kit import BUSY, MS, S, Tool, World, call, calls, delta, failure, output, text


def batch(*names: str, until_us: int | None = None, **settings: Any) -> World:
    """A world that is running calls of ``add`` with these ids, a second each."""
    world = World(calls(*(call("add", name) for name in names)), text("done"), max_turns=3, **settings)
    world.tool("add", delay_us=S)
    world.run(until_us=until_us)
    return world


# -- opening --------------------------------------------------------------------------------------------------------


def test_a_ready_run_opens_a_running_one_goes_on_and_one_that_is_not_ready_never_advances() -> None:
    world = World(None)
    running = world.run("running")
    ready = world.runs.spawn(world.agent, "ready", [user_message("before")])
    bare = world.runs.create(world.agent)
    bare.prompt = user_message("bare")
    other = moved(world, text("one"), text("two"))
    first, second, third = other.runs.live.values()
    assert [(run.ready, run.phase, run.prompt) for run in (first, second, third)] == [
        (running.ready, "AwaitingModel", None),
        (True, None, ready.prompt),
        (False, None, bare.prompt),
    ]
    other.clock.step()
    assert [run.phase for run in (first, second, third)] == ["AwaitingModel", "AwaitingModel", None]
    other.clock.run()
    assert (output(first), output(second), third.ending) == ("one", "two", None)
    assert [message.text for message in second.messages] == ["before", "ready", "two"]
    assert [each["scope"] for each in other.told("agent.run_opened")] == ["r2"]
    assert world.runs.next_run == other.runs.next_run == 4


# -- what runs is not saved -----------------------------------------------------------------------------------------


def test_of_a_call_that_is_being_served_only_what_was_asked_is_saved() -> None:
    world = batch("a", until_us=MS)
    (_, effect) = of_kind(save_runs(world.runs), "effect")
    assert dict(effect) == {
        "kind": "effect",
        "parent": effect["parent"],
        "place": 1,
        "asks": "tool_call",
        "id": 1,
        "on_behalf_of": None,
        "held": False,
        "slot": 0,
        "release_in_us": None,
        "withheld": False,
        "key": "golden/tool:add#0",
        "payload": {"$": "ToolRequest", "name": "add", "args": "{}"},
        "call": {"$": "CallPart", "id": "a", "name": "add", "arguments": {}, "provider_id": "p-a"},
        "purpose": {"$": "Purpose", "is": "call"},
        "gated": True,
    }


def test_what_is_derived_is_made_again_on_load() -> None:
    world = batch("a", "b", until_us=MS)
    run = only_run(moved(world))
    assert run.turn is not None
    request, first, second = run.effects
    assert run.turn.request is request
    assert run.turn.batch == [first, second]
    assert (run.turn.lookups, [each.dispatch for each in run.effects]) == ([], [None] * 3)
    assert [each.turn for each in run.effects] == [run.turn] * 3
    assert [(each.reserved, sorted(each.holds)) for each in (first, second)] == [(1, []), (None, [BATCH_OWNER])]


class Counting:
    """A hook with a state of its own."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, moment: Moment) -> None:
        self.seen += 1
        moment.run.host["seen"] = {"$": self.seen}
        moment.run.host["secret"] = object()


def test_of_a_hosts_own_state_only_what_was_registered_is_saved() -> None:
    world = World(None)
    counting = Counting()
    world.on(At.GATE, counting)
    world.runs.host_state["seen"] = (lambda seen: (seen["$"],), lambda data: {"$": data[0]})
    world.run()
    checkpoint = reread(save_runs(world.runs))
    (entity,) = of_kind(checkpoint, "run")
    assert entity["host"] == {"seen": [1]}
    other = World()
    other.on(At.GATE, fresh := Counting())
    other.runs.host_state["seen"] = world.runs.host_state["seen"]
    load_runs(checkpoint, other.runs)
    assert (only_run(other).host, fresh.seen, counting.seen) == ({"seen": {"$": 1}}, 0, 1)
    before = save_runs(World().runs)
    bare = World()
    with pytest.raises(UnknownHostState, match=r"host\.seen: nobody registered it here; accepted is nothing"):
        load_runs(checkpoint, bare.runs)
    assert save_runs(bare.runs).to_bytes() == before.to_bytes()


def test_what_was_saved_does_not_change_afterwards_when_the_host_changes_its_state() -> None:
    world = World(None)
    world.runs.host_state["notes"] = (lambda notes: notes, lambda notes: notes)
    run = world.run()
    notes = run.host["notes"] = ["first"]
    checkpoint = save_runs(world.runs)
    notes.append("second")
    assert of_kind(checkpoint, "run")[0]["host"] == {"notes": ["first"]}


# -- what is asked again --------------------------------------------------------------------------------------------


def test_a_settled_run_appends_nothing_again() -> None:
    world = RememberingWorld(text("done"), old=OLD)
    world.run()
    assert world.ops == ["Load", "C", "Append"]
    other = moved(world)
    other.clock.run()
    assert (other.records, output(only_run(other)), memory_of(only_run(other)).phase) == ("", "done", "appended")


def test_an_append_that_was_not_answered_goes_out_once_more_under_its_id() -> None:
    world = RememberingWorld(text("done"), old=OLD)
    slow = Tool(world.clock, lambda _: Outcome(Status.OK, None), S)
    world.on(At.RUN_ENDED, lambda _: world.bus.replace(MEMORY, slow))
    world.run("hello", until_us=MS)
    assert world.log[-1].running
    other = RememberingWorld(old=OLD)
    load_runs(reread(save_runs(world.runs)), other.runs)
    other.clock.run()
    assert [(each.id, type(each.payload)) for each in other.log] == [(2, Append)]
    assert [each["role"] for each in other.store.load(GOLDEN)] == ["user", "assistant", "user", "assistant"]


def test_a_resumed_run_loads_no_memory_and_its_append_is_in_the_tail() -> None:
    world = RememberingWorld(calls(call("add")), max_turns=2, old=OLD)
    world.tool("add")
    run = world.runs.spawn(world.agent, "hello")
    world.runs.hold_after_tool_turn(run, "cut", 1)
    world.clock.run()
    other = RememberingWorld(text("done"), old=OLD)
    other.bus.serve("golden/tool:add#0", Tool(other.clock, 42))
    load_runs(reread(save_runs(world.runs)), other.runs)
    restored = only_run(other)
    assert remembered(restored) == [True, True, False, False, False]
    other.runs.release_tool_turn_hold(restored, "cut")
    other.clock.run()
    assert ([*world.ops, *other.ops], other.ops) == (["Load", "C", "T", "C", "Append"], ["C", "Append"])
    assert [[role for role, _ in each] for each in other.appended] == [["user", "assistant", "user", "assistant"]]


def test_a_note_of_a_hook_that_went_out_just_before_goes_out_again_first_under_its_id() -> None:
    world = World(calls(call("add")), text("done"), max_turns=2)
    world.tool("add")
    world.bus.serve(NOTE, Tool(world.clock, "noted", S))
    asked: list[Any] = []

    def note(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.kind is EffectKind.TOOL_CALL:
            asked.append(moment.dispatch(EffectKind.CUSTOM, NOTE, {"said": "it ran"}))

    world.on(At.JUDGE_OUTCOME, note)
    world.run(until_us=MS)
    (effect,) = asked
    assert (effect.id, effect.in_flight, output(only_run(world))) == (2, True, "done")
    other = moved(world, note="kept")
    other.clock.run()
    assert [(each.id, each.key, each.payload) for each in other.bus.bus.log] == [(2, NOTE, {"said": "it ran"})]
    assert other.bus.bus.log[0].outcome == Outcome(Status.OK, "kept")


def test_a_tool_that_answers_what_its_tools_ask_leaves_nothing_open_when_the_run_wants_its_next_round() -> None:
    world = World(calls(call("lookup")), text("done"), max_turns=2)
    world.bus.serve(NOTE, Tool(world.clock, "noted"))
    world.bus.serve("x:relay", Nesting(world, NOTE))
    world.bus.serve(world.agent.grant("lookup").key, Nesting(world, "x:relay"))
    saved: list[Any] = []

    def save(run: Run, turn: int) -> None:
        saved.append((save_runs(world.runs), [(each.key, each.parent, each.running) for each in world.bus.bus.log]))

    world.runs.watch_commits(save)
    world.run()
    ((checkpoint, log),) = saved
    assert log == [
        (MODEL, None, False),
        ("golden/tool:lookup#0", None, False),
        ("x:relay", 1, False),
        (NOTE, 2, False),
    ]
    assert [effect["outcome"]["status"]["is"] for effect in of_kind(checkpoint, "effect")] == ["ok", "ok"]
    other = moved_from(checkpoint, text("done"))
    other.clock.run()
    assert (other.records, output(only_run(other))) == ("C", "done")


def moved_from(checkpoint: Any, *script: Any) -> World:
    other = World(*script)
    for key in checkpoint.requirements():
        if key != MODEL:
            other.bus.serve(key, Tool(other.clock, None))
    load_runs(reread(checkpoint), other.runs)
    return other


def test_a_backoff_lasts_as_long_as_was_left_of_it() -> None:
    world = World(BUSY, text("done"), backoff=Backoff(20 * MS, S))
    world.run(until_us=12 * MS)
    other = moved(world, text("done"))
    assert list(only_run(other).effects[-1].holds) == [BACKOFF_OWNER]
    other.clock.run()
    assert [(each.id, each.dispatched_at_us) for each in other.bus.bus.log] == [(1, 8 * MS)]
    assert output(only_run(other)) == "done"


def test_a_restored_run_that_is_cancelled_before_it_moves_asks_nothing() -> None:
    other = moved(batch("a", until_us=MS))
    other.runs.cancel(only_run(other), "enough")
    other.clock.run()
    assert (failure(only_run(other)), other.records) == ("Cancelled", "")
    assert other.runs.despawn(only_run(other)) is None


def test_what_was_in_flight_goes_out_again_although_a_hook_ends_the_run_in_the_very_next_step() -> None:
    world = World(calls(call("add")), text("done"), max_turns=3)
    world.tool("add", delay_us=MS)
    world.bus.serve(NOTE, Tool(world.clock, "noted", S))
    world.on(At.COMMITTED, lambda moment: moment.dispatch(EffectKind.CUSTOM, NOTE, {}))

    def stop(moment: Moment) -> None:
        if moment.run.cursor == 2:
            moment.stop("enough")

    world.on(At.SELECT_MODEL, stop)
    world.runs.watch_commits(lambda run, turn: run.holds.setdefault("me", 1))
    world.run(until_us=500 * MS)
    assert world.records == "C T X"
    other = moved(world, text("done"), note="noted")
    other.on(At.SELECT_MODEL, stop)
    other.runs.release_tool_turn_hold(only_run(other), "me")
    other.clock.run()
    assert failure(only_run(other)) == "Cancelled"
    assert [(each.id, each.key) for each in other.bus.bus.log] == [(2, NOTE)]


@pytest.mark.parametrize("mode", RestoreMode)
def test_what_is_open_and_had_nobody_to_serve_it_is_saved_and_not_gone_on_from_whoever_is_there_now(
    mode: RestoreMode,
) -> None:
    world = World(calls(call("add", "a"), call("ghost", "b")), max_turns=2)
    world.tool("add", delay_us=S)
    world.agent.settings.tool_access = ToolAccess({"add": "golden/tool:add#0", "ghost": "x:ghost"})
    world.run(until_us=MS)
    checkpoint = reread(save_runs(world.runs))
    assert [each["key"] for each in of_kind(checkpoint, "effect")] == [MODEL, "golden/tool:add#0", "x:ghost"]
    other = World()
    other.tool("add")
    other.bus.serve("x:ghost", ghost := Tool(other.clock, "boo"))
    told = "MissingContract: the checkpoint: an effect for x:ghost is unfinished, and no handler of its key was saved"
    for given in ((), (("x:ghost", ghost),)):
        assert said(refusal(other, checkpoint, *given, mode=mode)).startswith(told)


def test_a_tool_of_a_run_that_had_ended_is_asked_once_more_and_changes_nothing() -> None:
    world = batch("a", until_us=MS)
    world.runs.cancel(only_run(world), "enough")
    other = moved(world, add=42)
    other.clock.run()
    run = only_run(other)
    assert (failure(run), other.records, len(run.messages), other.told("agent.run_ended")[0]["detail"]) == (
        "Cancelled",
        "T",
        2,
        "enough",
    )


# -- streams --------------------------------------------------------------------------------------------------------


def test_a_finished_stream_is_kept_whole_and_not_served_again() -> None:
    broken = [(MS, TextDelta("Lost")), (2 * MS, StreamError(BUSY)), (3 * MS, StreamEnd())]
    world = World(broken, delta("Kept ", "it.", every_us=MS))
    run = world.run(streamed=True)
    other = moved(world)
    other.clock.run()
    restored = only_run(other)
    assert (other.records, restored.ending, restored.messages) == ("", run.ending, run.messages)
    for was, now in zip(run.turns, restored.turns, strict=True):
        assert (now.items, now.errors, now.broken, now.answer) == (was.items, was.errors, was.broken, was.answer)
        assert was.fold is not None
        assert now.fold is not None
        assert (now.fold.parts(), now.fold.calls, now.fold.end) == (was.fold.parts(), was.fold.calls, was.fold.end)
        assert was.request is not None
        assert now.request is not None
        assert (now.request.outcome, now.request.id) == (was.request.outcome, was.request.id)
    assert restored.turns[0].errors == [(1, BUSY)]


def test_an_answer_that_nobody_sees_before_it_is_whole_is_asked_for_again() -> None:
    answer = [(MS, TextDelta("So ")), (2 * MS, TextDelta("it is.")), (3 * MS, StreamEnd())]
    world = World(answer)
    run = world.run(until_us=2 * MS + 1)
    world.runs.wake()
    world.clock.run(3 * MS)
    assert run.turn is not None
    assert run.turn.items == [TextDelta("So "), TextDelta("it is.")]
    other = moved(world, [(MS, TextDelta("Or not.")), (2 * MS, StreamEnd())])
    other.clock.run()
    assert ([each.id for each in other.bus.bus.log], output(only_run(other))) == ([0], "Or not.")


def test_a_run_at_its_committed_turn_does_not_make_another_runs_open_stream_safe() -> None:
    world = World(calls(call("add")), delta("never ", "done", every_us=10 * MS), max_turns=2)
    world.tool("add")
    held = world.runs.spawn(world.agent, "held")
    world.runs.hold_after_tool_turn(held, "me", 1)
    world.clock.run(MS)
    world.runs.spawn(world.agent, "streams", streamed=True)
    world.clock.run(15 * MS)
    assert held.committed == 1
    with pytest.raises(UnfinishedStream) as caught:
        moved(world)
    assert str(caught.value) == (
        f"the checkpoint: effect 2 ({MODEL}) is in the middle of its stream, after 1 items, and there is no cursor to "
        "go on from; accepted is a place where no answer is streaming"
    )
