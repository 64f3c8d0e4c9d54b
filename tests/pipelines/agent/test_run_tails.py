"""Runs that go on from a checkpoint over the tail of a log: head and tail are the log of a run that was never cut."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import log_of_runs
from bargein.pipelines.agent.run_replay import replay_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.playing import ReplayRefused
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of, tail_of
from tests.pipelines.agent.log_kit import MODEL, Again, Recorded, an_agent, read_again
from tests.pipelines.agent.run_kit import S, Tool, call, calls, output, text

ADD, NOTE = "golden/tool:add#0", "golden:note"
SCRIPT = calls(call("add", x=1)), calls(call("add", "c2", x=2), call("spare", "c3")), text("done")

Saved = tuple[EffectLog, LogCheckpoint[RunCheckpoint], EffectLog]


def saved_at(committed: int, *, note: bool = False) -> Saved:
    """The whole log, the checkpoint once a tool turn is committed, and the tail; both once through their bytes."""
    world = Recorded(*SCRIPT, agent=an_agent(concurrency=2), delay_us=S)
    made: list[bytes] = []
    if note:
        world.bus.serve(NOTE, Tool(world.recorder.clock, "noted", S))
        world.hooks.on(At.JUDGE_OUTCOME, noting)

    def save(moment: Moment) -> None:
        if moment.run.committed == committed and not made:
            so_far = log_of_runs(moment.runs, world.recorder)
            checkpoint = checkpoint_of(so_far, save_runs(moment.runs), moment.runs.bus.bus.next_id)
            made.append(checkpoint.to_bytes(RunCheckpoint.to_dict))

    world.hooks.on(At.CHECKPOINT, save)
    assert output(world.go()) == "done"
    log = world.log()
    checkpoint = LogCheckpoint.from_bytes(made[0], "a.json", RunCheckpoint.from_dict)
    return log, checkpoint, read_again(tail_of(log, checkpoint))


def noting(moment: Moment) -> None:
    """A note of the first call's outcome, under way when the turn is committed."""
    if moment.effect is not None and moment.effect.key == ADD and moment.run.cursor == 1:
        moment.dispatch(EffectKind.CUSTOM, NOTE, {"of": "it"})


def resumed(checkpoint: LogCheckpoint[RunCheckpoint], tail: EffectLog, **more: Any) -> tuple[Again, Any]:
    again = Again(tail, an_agent(concurrency=2), after=checkpoint, **more)
    (run,) = load_runs(checkpoint.state, again.runs).runs
    again.clock.run()
    return again, run


def told(log: EffectLog) -> list[Any]:
    return [(each.id, each.key, each.request, each.items, each.status, each.value, each.scope) for each in log.records]


@pytest.mark.parametrize("committed", [1, 2])
def test_head_and_tail_are_the_whole_log(committed: int) -> None:
    log, checkpoint, tail = saved_at(committed)
    assert EffectLog.from_checkpoint(checkpoint, tail).to_bytes() == log.to_bytes()
    assert [each.id for each in checkpoint.head.records] == list(range(checkpoint.next_id))
    assert (checkpoint.open, checkpoint.next_id) == ((), 2 if committed == 1 else 5)
    assert tail.header["start"] == [checkpoint.next_id]


@pytest.mark.parametrize("committed", [1, 2])
@pytest.mark.parametrize("visible", [False, True])
def test_a_run_goes_on_over_the_tail_to_the_same_answer_without_any_handler(committed: int, visible: bool) -> None:
    log, checkpoint, tail = saved_at(committed)
    again, run = resumed(checkpoint, tail, visible=visible)
    again.world.finish()
    assert output(run) == "done"
    recorded = read_again(again.world.again(again.runs))
    assert told(recorded) == told(tail)
    assert told(EffectLog.from_checkpoint(checkpoint, recorded)) == told(log)
    assert recorded.header["start"] == tail.header["start"]
    assert again.clock.now == (S if committed == 1 else 0)


@pytest.mark.parametrize("visible", [False, True])
def test_what_a_hook_had_just_asked_for_is_the_tails_first_record(visible: bool) -> None:
    log, checkpoint, tail = saved_at(1, note=True)
    assert [(each.id, each.key) for each in log.records[:4]] == [(0, MODEL), (1, ADD), (2, NOTE), (3, MODEL)]
    assert [each.id for each in checkpoint.head.records] == [0, 1]
    assert (checkpoint.open, checkpoint.first_id) == ((), 2)
    again, run = resumed(checkpoint, tail, visible=visible)
    again.world.finish()
    assert output(run) == "done"
    recorded = read_again(again.world.again(again.runs))
    assert [(each.id, each.key) for each in recorded.records[:2]] == [(2, NOTE), (3, MODEL)]
    assert told(EffectLog.from_checkpoint(checkpoint, recorded)) == told(log)


def test_an_effect_that_was_dispatched_and_not_answered_is_open_and_the_tails() -> None:
    world = Recorded(*SCRIPT, agent=an_agent(concurrency=2), delay_us=S)
    world.runs.spawn(world.agent, "hello")
    world.clock.run(S // 2)
    saved = checkpoint_of(log_of_runs(world.runs, world.recorder), save_runs(world.runs))
    world.clock.run()
    log = world.log()
    checkpoint = LogCheckpoint.from_bytes(saved.to_bytes(RunCheckpoint.to_dict), "a.json", RunCheckpoint.from_dict)
    assert (checkpoint.open, checkpoint.next_id, len(checkpoint.head.records)) == ((1,), 2, 1)
    tail = read_again(tail_of(log, checkpoint))
    assert tail.records[0].id == 1
    again, run = resumed(checkpoint, tail, visible=True)
    again.world.finish()
    assert output(run) == "done"
    recorded = read_again(again.world.again(again.runs))
    assert told(EffectLog.from_checkpoint(checkpoint, recorded)) == told(log)


def test_the_whole_log_in_the_tails_place_is_refused_by_its_first_id() -> None:
    log, checkpoint, _ = saved_at(1)
    with pytest.raises(
        DocumentError, match=r"a\.log: it begins with effect 0; accepted is a tail that begins with effec"
    ):
        replay_runs(log, after=checkpoint)


def test_what_the_tail_does_not_have_is_refused() -> None:
    _, checkpoint, tail = saved_at(1)
    shorter = EffectLog(tail.header, tail.records[:-1], "a.log")
    with pytest.raises(ReplayRefused, match=r"effect 5 \(golden/model:default\) at 1000000 us was never recorded"):
        resumed(checkpoint, shorter)


def test_a_tail_is_played_by_key_and_position() -> None:
    _, checkpoint, tail = saved_at(1)
    world = replay_runs(tail, after=checkpoint)
    keys = [each.key for each in tail.records]
    assert keys == [MODEL, ADD, "golden/tool:spare#1", MODEL]
    assert all(world.bus.serves(key) for key in keys)
