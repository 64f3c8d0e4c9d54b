"""Runs whose tools ask for something themselves, replayed: the program serves such a tool again, the log the rest."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import log_of_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.run_state import Run
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import Effect, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Dispatch
from bargein.sim.effects.playing import ReplayRefused
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of, tail_of
from tests.pipelines.agent.checkpoint_kit import reread
from tests.pipelines.agent.log_kit import Again, Recorded, an_agent
from tests.pipelines.agent.run_kit import S, Tool, call, calls, output, text

LOOKUP, NOTE = "golden/tool:lookup#2", "x:note"
SCRIPT = (calls(call("add")), calls(call("lookup")), text("done"))


class Asking:
    """A tool that answers with what another handler says, and ``more``."""

    def __init__(self, bus: Any, more: str = "") -> None:
        self.bus = bus
        self.more = more

    def serve(self, effect: Effect) -> None:
        def landed(dispatch: Dispatch) -> None:
            assert dispatch.outcome is not None
            effect.land(Outcome(Status.OK, dispatch.outcome.value + self.more))

        self.bus.dispatch(EffectKind.CUSTOM, NOTE, "look", scope=effect.scope, on_landed=landed, parent=effect.id)


def an_asking_agent() -> Any:
    agent = an_agent()
    assert agent.grant("lookup", "", {"type": "object"}).key == LOOKUP
    return agent


def recorded() -> Recorded:
    world = Recorded(*SCRIPT, agent=an_asking_agent())
    world.bus.replace(LOOKUP, Asking(world.bus))
    world.bus.serve(NOTE, Tool(world.recorder.clock, "noted", S))
    return world


def again(log: Any, answers: str = "", **more: Any) -> Again:
    world = Again(log, an_asking_agent(), own=(LOOKUP,), **more)
    assert (world.bus.serves(NOTE), world.bus.serves(LOOKUP)) == (True, False)
    world.bus.serve(LOOKUP, Asking(world.bus, answers))
    return world


@pytest.mark.parametrize("visible", [False, True])
def test_what_a_tool_asked_for_itself_is_replayed_where_the_program_serves_the_tool(visible: bool) -> None:
    world = recorded()
    run = world.go()
    log = world.log()
    assert [(record.key, record.parent) for record in log.records][3:5] == [(LOOKUP, None), (NOTE, 3)]
    second = again(log, visible=visible, instants=visible)
    assert second.go().ending == run.ending
    assert second.runs.timeline.to_jsonl() == world.runs.timeline.to_jsonl()
    found = second.world.again(second.runs)
    assert (found.header, found.records) == (log.header, log.records)


def test_a_tool_that_answers_otherwise_is_refused_by_name() -> None:
    world = recorded()
    world.go()
    second = again(world.log(), "!")
    with pytest.raises(
        ReplayRefused, match=r'effect 5 \(golden/model:default\) at 1000000 us: .* recorded was "noted", found "noted!"'
    ):
        second.go()


def cut() -> tuple[Recorded, LogCheckpoint[RunCheckpoint]]:
    """A world at its end, and where it was once its first turn was committed."""
    world = recorded()
    made: list[LogCheckpoint[RunCheckpoint]] = []

    def save(moment: Moment) -> None:
        if moment.run.committed and not made:
            so_far = log_of_runs(moment.runs, world.recorder)
            made.append(checkpoint_of(so_far, reread(save_runs(moment.runs)), moment.runs.bus.bus.next_id))

    world.hooks.on(At.CHECKPOINT, save)
    world.go()
    return world, made[0]


def over_the_tail(answers: str = "") -> tuple[Again, Run]:
    world, checkpoint = cut()
    second = again(tail_of(world.log(), checkpoint), answers, after=checkpoint)
    second.clock.run(checkpoint.state.at_us)
    (run,) = load_runs(checkpoint.state, second.runs).runs
    second.clock.run()
    return second, run


def test_in_a_tail_it_is_compared_with_the_record_of_its_id() -> None:
    second, run = over_the_tail()
    second.world.finish()
    assert (output(run), [effect.id for effect in second.bus.bus.log]) == ("done", [2, 3, 4, 5])


def test_in_a_tail_too_a_tool_that_answers_otherwise_is_refused() -> None:
    with pytest.raises(ReplayRefused, match="noted!"):
        over_the_tail("!")
