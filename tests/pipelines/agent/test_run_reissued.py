"""An effect that was in flight where a log was cut goes out again, and takes its whole recorded time once more."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import log_of_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.playing import ReplayRefused
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of, tail_of
from bargein.sim.kernel.clock import Order
from tests.pipelines.agent.log_kit import Again, Recorded, an_agent, read_again
from tests.pipelines.agent.run_kit import S, call, calls, output, text


def cut_in_flight() -> tuple[LogCheckpoint[RunCheckpoint], EffectLog]:
    """A tool that takes a second, cut off in the middle of it; and the tail."""
    world = Recorded(calls(call("add", x=1)), text("done"), delay_us=S)
    world.runs.spawn(world.agent, "hello")
    world.clock.run(S // 2)
    saved = checkpoint_of(log_of_runs(world.runs, world.recorder), save_runs(world.runs))
    world.clock.run()
    checkpoint = LogCheckpoint.from_bytes(saved.to_bytes(RunCheckpoint.to_dict), "a.json", RunCheckpoint.from_dict)
    return checkpoint, read_again(tail_of(world.log(), checkpoint))


def gone_on(at_us: int, **more: bool) -> tuple[Again, EffectLog]:
    """The runs loaded at an instant, over the tail."""
    checkpoint, tail = cut_in_flight()
    assert [(each.id, each.dispatched_at_us, each.landed_at_us) for each in tail.records] == [(1, 0, S), (2, S, S)]
    again = Again(tail, an_agent(), after=checkpoint, **more)
    again.clock.call_at(at_us, Order.WORK, lambda _: None)
    again.clock.run()
    (run,) = load_runs(checkpoint.state, again.runs).runs
    again.clock.run()
    again.world.finish()
    assert output(run) == "done"
    return again, read_again(again.world.again(again.runs))


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize("at_us", [0, S // 2, 3 * S])
def test_it_takes_its_whole_time_from_where_it_goes_out_again(at_us: int, visible: bool) -> None:
    again, log = gone_on(at_us, visible=visible)
    found = [(each.id, each.dispatched_at_us, each.landed_at_us) for each in log.records]
    assert found == [(1, at_us, at_us + S), (2, at_us + S, at_us + S)]
    assert again.clock.now == at_us + S


def test_it_is_late_for_whoever_demands_the_recorded_instants() -> None:
    with pytest.raises(ReplayRefused) as refused:
        gone_on(S // 2, visible=True, instants=True)
    assert str(refused.value) == (
        "effect 1 (golden/tool:add#0) was recorded as effect 1 at 0 us, and was dispatched at 500000 us"
    )
