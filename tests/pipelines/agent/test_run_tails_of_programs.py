"""Every program with tools, cut at its first tool turn: head and tail are its log, and it goes on to its end.

What it goes on to is the recorded end to the last record, line and instant, since the second world begins on the
instant of the cut.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_identity import Standing, identity_of
from bargein.pipelines.agent.run_replay import replay_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.tails import tail_of
from tests.pipelines.agent.checkpoint_kit import wait
from tests.pipelines.agent.tail_kit import PROGRAMS, Cut, cut_at_first_turn, endings, replaying, rows

WITHOUT_A_TURN = (
    "a_cancelled_outcome",
    "an_output_tool",
    "answers_that_are_asked_again",
    "an_invalid_call_that_fails",
    "a_stream_that_breaks",
)
"""Programs that never commit one: their calls fail the run, or they have none."""
NAMES = [name for name in PROGRAMS if name not in WITHOUT_A_TURN]


@cache
def cut(name: str) -> Cut:
    found = cut_at_first_turn(PROGRAMS[name])
    assert found is not None
    return found


@cache
def tail(name: str) -> EffectLog:
    """Once through its bytes."""
    found = cut(name)
    return EffectLog.from_bytes(tail_of(found.log, found.checkpoint).to_bytes(), "tail.log")


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 18
    assert [name for name in WITHOUT_A_TURN if cut_at_first_turn(PROGRAMS[name]) is not None] == []


@pytest.mark.parametrize("name", NAMES)
def test_head_and_tail_are_the_whole_log_and_nothing_is_open_between(name: str) -> None:
    found = cut(name)
    checkpoint, records = found.checkpoint, found.log.records
    assert EffectLog.from_checkpoint(checkpoint, tail(name)).to_bytes() == found.log.to_bytes()
    assert (checkpoint.open, checkpoint.first_id) == ((), checkpoint.next_id)
    assert checkpoint.head.records == records[: checkpoint.next_id]
    assert tail(name).records == records[checkpoint.next_id :]


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_over_the_tail_to_the_recorded_end(name: str, visible: bool) -> None:
    found = cut(name)
    replayed = replay_runs(tail(name), after=found.checkpoint, visible=visible, instants=visible)
    world = replaying(PROGRAMS[name], replayed)
    wait(world, found.checkpoint.state.at_us)
    load_runs(found.checkpoint.state, world.runs)
    world.clock.run()
    replayed.finish()
    assert endings(world) == endings(found.world)
    assert rows(world) == rows(found.world, found.rows)
    again = EffectLog.from_bytes(replayed.again(world.runs).to_bytes(), "again.log")
    assert again.records == tail(name).records
    assert again.header["deliveries"] == tail(name).header["deliveries"]
    joined = EffectLog.from_checkpoint(found.checkpoint, again)
    assert joined.records == found.log.records
    assert joined.header["deliveries"] == found.log.header["deliveries"]


@pytest.mark.parametrize("name", NAMES)
def test_the_state_of_a_checkpoint_is_what_was_saved_and_its_runs_are_the_recorded_ones(name: str) -> None:
    found = cut(name)
    state = found.checkpoint.state
    replayed = replay_runs(tail(name), after=found.checkpoint)
    world = replaying(PROGRAMS[name], replayed)
    wait(world, state.at_us)
    load_runs(state, world.runs)
    again = save_runs(world.runs)
    assert list(again.entities) == list(state.entities)
    assert (again.next_run, again.next_id, again.binaries) == (state.next_run, state.next_id, state.binaries)
    assert RunCheckpoint.from_bytes(state.to_bytes()).to_bytes() == state.to_bytes()
    for run in world.runs.live.values():
        assert identity_of(run) == found.log.header["programs"][run.scope]
        verdict = replayed.check(world.runs, run)
        assert verdict.standing is Standing.UNVERIFIED  # nothing differs, and it declares no version of its hooks
        assert len(verdict.reasons) == 1
    assert [each.hash for each in found.log.records] == [stable_hash(each.request) for each in found.log.records]


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_log_in_the_tails_place_is_refused_by_its_first_id(name: str) -> None:
    found = cut(name)
    first = found.checkpoint.first_id
    with pytest.raises(DocumentError) as refused:
        replay_runs(found.log, after=found.checkpoint)
    assert str(refused.value) == (
        f"whole.log: it begins with effect 0; accepted is a tail that begins with effect {first}, where a.json was made"
    )


def test_two_texts_are_all_that_has_to_be_left_of_a_world(tmp_path: Path) -> None:
    for name in NAMES:
        checkpoint = cut(name).checkpoint
        (tmp_path / f"{name}.head.log").write_bytes(checkpoint.head.to_bytes())
        (tmp_path / f"{name}.json").write_bytes(checkpoint.state.to_bytes())
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("durable.py")), str(tmp_path)],
        env={"PYTHONHASHSEED": "13"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = {each["name"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert list(told) == sorted(NAMES)
    for name, each in told.items():
        found = cut(name)
        assert each["endings"] == repr(endings(found.world)), name
        assert each["tail"] == [record.to_dict() for record in tail(name).records], name
        assert each["ids"] == [record.id for record in found.log.records], name
        assert each["deliveries"] == found.log.header["deliveries"], name
        assert each["rows"] == rows(found.world, found.rows), name
