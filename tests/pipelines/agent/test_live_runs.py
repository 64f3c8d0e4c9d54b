"""Live delivery of a run's answers: observers are told before the run reads, and attempts are told apart."""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.reports import Report
from bargein.sim.effects.sources import PushHandler
from bargein.sim.effects.streams import Batch, LiveStreams
from tests.pipelines.agent.run_kit import BUSY, MS, Model, World, delta, output

MODEL = "golden/model:live"


class LiveWorld(World):
    """A world whose model is watched, and notes of what is told and done."""

    def __init__(self, *script: Any, **settings: Any) -> None:
        super().__init__(**settings)
        self.streams = LiveStreams(self.clock)
        self.watched = Model(self.clock, *script)
        handler = PushHandler(
            self.clock, self.streams, self.watched, streamed=lambda effect: bool(effect.payload.stream)
        )
        self.bus.serve(MODEL, handler)
        self.on(At.SELECT_MODEL, lambda moment: moment.select(MODEL))
        self.batches: list[Batch] = []
        self.notes: list[Any] = []
        self.streams.observe(self.batches.append)
        self.streams.observe(lambda batch: self.notes.append(("told", len(batch.items))))
        self.on(At.DELTA, lambda moment: self.notes.append("read"))


def round_of(world: World, batch: Batch) -> tuple[Run, int]:
    """The run and the number of the round that a batch belongs to."""
    for run in world.runs.live.values():
        for turn in run.turns:
            request = turn.request
            if request is not None and request.dispatch is not None and request.dispatch.effect is batch.effect:
                return run, turn.number
    raise LookupError(batch.id)


def test_observers_are_told_before_the_run_reads_and_it_settles_after_its_answer() -> None:
    world = LiveWorld(delta("One ", "two."))
    world.on(At.RUN_ENDED, lambda moment: world.notes.append("settled"))
    run = world.run(streamed=True)
    assert output(run) == "One two."
    assert world.notes == [("told", 1), "read", ("told", 1), "read", "settled"]
    assert [(batch.start, batch.items) for batch in world.batches] == [
        (0, (TextDelta("One "),)),
        (1, (TextDelta("two."),)),
    ]


def test_attempts_are_told_apart_and_lead_to_their_run_and_round() -> None:
    broken = [(50 * MS, TextDelta("Lost")), (90 * MS, Outcome(Status.FAILED, BUSY))]
    world = LiveWorld(broken, delta("Kept."), max_turns=1)
    run = world.run(streamed=True)
    assert [(batch.id, batch.start, batch.items) for batch in world.batches] == [
        (0, 0, (TextDelta("Lost"),)),
        (0, 1, (BUSY,)),
        (1, 0, (TextDelta("Kept."),)),
    ]
    assert isinstance(BUSY, Report)
    assert [round_of(world, batch) for batch in world.batches] == [(run, 1), (run, 1), (run, 1)]
    assert output(run) == "Kept."


def test_a_run_that_did_not_ask_for_a_stream_shows_none() -> None:
    world = LiveWorld(delta("One ", "two."))
    run = world.run()
    assert output(run) == "One two."
    assert world.batches == []


def test_a_call_that_is_half_delivered_is_told_and_not_run() -> None:
    half = [
        (10 * MS, CallDelta(0, "w1", "add", '{"x":')),
        (20 * MS, CallDelta(0, arguments="1}")),
        (30 * MS, StreamEnd("tool_calls")),
    ]
    world = LiveWorld(half, delta("Done."), max_turns=2)
    tool = world.tool("add")
    started: list[list[Any]] = []
    world.streams.observe(lambda _: started.append(list(tool.started)))
    run = world.run(streamed=True)
    assert started == [[], [], [(30 * MS, '{"x":1}')]]
    assert [item.id for item in world.batches[0].items] == ["w1"]
    assert output(run) == "Done."


def test_an_observer_that_removes_the_run_leaves_the_others_the_batch() -> None:
    world = LiveWorld(delta("One ", "two."))
    world.streams.observe(lambda _: world.runs.remove(run) if run.seq in world.runs.live else None)
    late: list[int] = []
    world.streams.observe(lambda batch: late.append(len(batch.items)))
    run = world.runs.spawn(world.agent, "Hi.", streamed=True)
    world.clock.run()
    assert late == [1]
    assert world.runs.live == {}
    assert isinstance(world.bus, LayeredBus)
    assert world.streams.open_streams == ()
