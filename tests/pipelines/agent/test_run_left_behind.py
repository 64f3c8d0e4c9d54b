"""What becomes of what a run has asked for once it has ended or was taken out, wherever that happens."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.endings import RunBusy
from bargein.pipelines.agent.run_identity import Standing
from bargein.sim.effects.bus import Effect, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Ask, Dispatch, Layer
from tests.pipelines.agent.log_kit import Again, Recorded
from tests.pipelines.agent.run_kit import MS, S, Tool, World, call, calls, delta, failure, output, text

NOTE = "x:note"


def adding(*names: str, **more: Any) -> tuple[World, Tool]:
    """A world whose model asks for a call of each name at once; one takes a second."""
    world = World(calls(*(call("add", name, of=name) for name in names)), text("done"), max_turns=2, concurrency=9)
    return world, world.tool("add", delay_us=S, **more)


# -- what waits for a place -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("removed", "records"), [(False, "C T"), (True, "C T✗")])
def test_calls_that_wait_for_a_place_are_never_served_and_leave_no_record(removed: bool, records: str) -> None:
    world, tool = adding("a", "b", "c", serial=True)
    run = world.run(until_us=MS)
    if removed:
        world.runs.remove(run)
    else:
        world.runs.cancel(run, "enough")
    world.clock.run()
    assert (tool.started, world.records, failure(run)) == ([(0, '{"of":"a"}')], records, "Cancelled")
    assert world.bus.bus.running == 0
    assert world.runs.despawn(run) == (RunBusy.NOT_A_RUN if removed else None)


def test_the_place_goes_to_the_next_run_that_waits() -> None:
    world, tool = adding("a", "b", serial=True)
    world.model.script.insert(1, calls(call("add", "c", of="c")))
    first = world.run(until_us=MS)
    second = world.run(until_us=MS)
    world.runs.cancel(first, "enough")
    world.clock.run()
    assert tool.started == [(0, '{"of":"a"}'), (S, '{"of":"c"}')]
    assert (failure(first), output(second), world.records) == ("Cancelled", "done", "C T C T C")


def test_a_stream_that_ends_with_its_run_does_not_let_in_what_the_run_has_waiting_at_the_same_model() -> None:
    world = World()
    world.model.script += [delta("never"), text("never either")]
    world.bus.wrap("golden/model:default", serial=True)
    run = world.run(until_us=MS, streamed=True)
    world.runs.ask(run, EffectKind.COMPLETION, "golden/model:default", run.effects[0].payload)
    world.clock.run(MS + 1)
    assert [(effect.in_flight, effect.queued) for effect in run.effects] == [(True, False), (True, True)]
    world.runs.cancel(run, "enough")
    world.clock.run()
    assert (world.records, [effect.queued for effect in run.effects]) == ("C✗", [False])


# -- ended by whoever serves it, or on the way there -----------------------------------------------------------------


class Ending(Layer):
    """Does something when the first call comes by."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def before(self, ask: Ask) -> None:
        self.act()


@pytest.mark.parametrize("by", ["handler", "layer"])
@pytest.mark.parametrize(("removed", "records"), [(False, "C T"), (True, "C T✗")])
def test_a_run_that_ends_while_its_first_call_goes_out_asks_for_no_other(by: str, removed: bool, records: str) -> None:
    world = World(calls(call("add", "a"), call("add", "b")), max_turns=2, concurrency=2)
    world.runs.spawn(world.agent, "hello")
    run = world.runs.live[1]

    def act(_: object = None) -> int:
        if removed:
            world.runs.remove(run)
        else:
            world.runs.cancel(run, "enough")
        return 42

    tool = world.tool("add", act if by == "handler" else 42, S, (Ending(act),) if by == "layer" else ())
    world.clock.run(MS)
    busy = RunBusy.NOT_A_RUN if removed else RunBusy.IN_FLIGHT
    assert (len(tool.started), failure(run), world.runs.despawn(run)) == (1, "Cancelled", busy)
    world.clock.run()
    assert (world.records, len(run.messages), world.bus.bus.running) == (records, 2, 0)
    assert world.runs.despawn(run) == (RunBusy.NOT_A_RUN if removed else None)


def test_a_model_that_ends_the_run_it_answers_has_its_stream_cancelled() -> None:
    world = World(delta("never"))
    world.runs.spawn(world.agent, "hello", streamed=True)
    run = world.runs.live[1]
    world.bus.wrap("golden/model:default", Ending(lambda: world.runs.cancel(run, "enough")))
    world.clock.run()
    assert (world.records, [effect.landed_at_us for effect in world.bus.bus.log]) == ("C✗", [0])


# -- what outlasts the effect it was asked for ------------------------------------------------------------------------


class Leaving:
    """Asks for notes on behalf of what it serves, and answers without waiting for them."""

    def __init__(self, world: World, notes: int) -> None:
        self.world = world
        self.notes = notes
        self.told: list[Dispatch] = []

    def serve(self, effect: Effect) -> None:
        for _ in range(self.notes):
            self.world.bus.dispatch(
                EffectKind.CUSTOM, NOTE, "look", scope=effect.scope, on_landed=self.told.append, parent=effect.id
            )
        effect.land(Outcome(Status.OK, "first"))


def outlasted(notes: int = 1) -> tuple[World, Leaving, Any]:
    world = World(calls(call("lookup")), text("done"), max_turns=2)
    world.bus.serve(NOTE, Tool(world.clock, "noted", S), serial=True)
    leaving = Leaving(world, notes)
    world.bus.serve(world.agent.grant("lookup").key, leaving)
    return world, leaving, world.run(until_us=MS)


def test_a_run_is_not_taken_out_while_something_runs_that_its_tool_has_left_behind() -> None:
    world, _, run = outlasted()
    assert (output(run), world.records, world.runs.despawn(run)) == ("done", "C T X C", RunBusy.IN_FLIGHT)
    world.clock.run()
    assert (world.runs.despawn(run), world.bus.nested("r1")) == (None, [])


def test_removing_a_run_cancels_what_its_tool_has_left_behind_and_the_queued_leaves_no_record() -> None:
    world, leaving, run = outlasted(notes=3)
    world.runs.remove(run)
    world.clock.run()
    assert (world.records, world.bus.bus.running) == ("C T X✗ C", 0)
    assert [str(each.outcome.status) for each in leaving.told if each.outcome] == ["cancelled"] * 3


# -- its log -------------------------------------------------------------------------------------------------------


def test_a_run_that_was_taken_out_as_it_stood_is_in_the_log_and_is_known_again() -> None:
    world = Recorded(calls(call("add")), delay_us=S)
    run = world.runs.spawn(world.agent, "hello")
    world.clock.run(MS)
    world.runs.remove(run)
    log = world.log()
    assert (list(log.header["programs"]), [record.status for record in log.records]) == (["r1"], ["ok", "cancelled"])
    again = Again(log, visible=True)
    second = again.runs.spawn(again.agent, "hello")
    assert again.world.check(again.runs, second).standing is Standing.FINE
    again.clock.run(MS)
    again.runs.remove(second)
    again.world.finish()
    assert again.world.again(again.runs).to_bytes() == log.to_bytes()
