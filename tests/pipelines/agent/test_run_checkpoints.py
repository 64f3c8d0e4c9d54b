"""Runs of every sort, saved at every step and gone on from: the same ending, messages and records as in one go."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.saved_errors import UnfinishedStream
from tests.pipelines.agent import checkpoint_steering
from tests.pipelines.agent.checkpoint_kit import following, played, records, resumed, started, state, told
from tests.pipelines.agent.checkpoint_programs import PROGRAMS
from tests.pipelines.agent.memory_kit import GOLDEN, RememberingWorld

assert checkpoint_steering  # its programs are entered as it is imported
STREAMS = ("invalid_calls_in_a_stream", "streams", "a_stream_that_breaks")


@pytest.mark.parametrize("clock", ["its own", "that of the saved one"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_go_on_from_wherever_they_were_saved_as_if_nothing_had_been(name: str, clock: str) -> None:
    program = PROGRAMS[name]
    world, places = played(program)
    for place in places:
        if place.streaming:
            continue
        again = resumed(program, place, 0 if clock == "its own" else place.at_us)
        assert records(again.bus.bus.log, program) == records(following(world, place), program)
        assert told(again, program) == told(world, program, place.rows)
        assert state(again, program) == state(world, program)
        assert again.bus.bus.running == 0
        if isinstance(again, RememberingWorld) and isinstance(world, RememberingWorld):
            assert again.store.load(GOLDEN) == world.store.load(GOLDEN)


@pytest.mark.parametrize("name", PROGRAMS)
def test_where_an_answer_is_streaming_nobody_goes_on_and_the_refusal_names_it(name: str) -> None:
    program = PROGRAMS[name]
    _, places = played(program)
    streaming = [place for place in places if place.streaming]
    assert bool(streaming) is (name in STREAMS)
    for place in streaming:
        ((id_, key),) = place.streaming
        with pytest.raises(UnfinishedStream, match=rf"effect {id_} \({key}\) is in the middle of its stream"):
            resumed(program, place)


@pytest.mark.parametrize("name", PROGRAMS)
def test_saving_changes_nothing(name: str) -> None:
    program = PROGRAMS[name]
    alone = started(program)
    alone.clock.run()
    saved, _ = played(program)
    assert saved.runs.timeline.to_jsonl() == alone.runs.timeline.to_jsonl()
    assert records(saved.bus.bus.log, program) == records(alone.bus.bus.log, program)
