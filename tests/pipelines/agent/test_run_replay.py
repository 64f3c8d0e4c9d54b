"""A recorded run comes out the same without its model and its tools, and another program is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer, CallDone, PartDone, StreamError, ToolReply
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import Base64
from bargein.pipelines.agent.parts import CallPart, ImagePart, JsonPart, ReasoningPart, TextPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_settings import Agent, Backoff
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.effects.sources import PushHandler
from bargein.sim.effects.streams import LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.pipelines.agent.log_kit import Again, Recorded, an_agent
from tests.pipelines.agent.run_kit import BUSY, MS, Model, S, Tool, call, calls, output

STREAM = [
    (100 * MS, TextDelta("let me ")),
    (200 * MS, PartDone(ReasoningPart("hm", "sealed"))),
    (300 * MS, CallDelta(0, "w1", "add", '{"x":')),
    (400 * MS, CallDelta(0, arguments="1}")),
    (500 * MS, CallDone(0)),
    (600 * MS, StreamEnd("tool_calls", {"total": 7})),
]
LAST = Answer((TextPart("done"),), raw={"id": 1})
DONE = [(100 * MS, TextDelta("done")), (200 * MS, StreamEnd("stop", {"total": 2}))]


def play(
    recorder: Recorder, *script: Any, streamed: bool = False, preamble: str = "P", value: Any = None
) -> tuple[AgentRuns, Run]:
    """One run on the recorder's bus; its handlers are asked only if the recorder lets them."""
    clock = Clock()
    bus = LayeredBus(recorder.open(clock))
    agent = Agent.named("golden", preamble=preamble, max_turns=4, backoff=Backoff(10 * S, 10 * S))
    grant = agent.grant("add")
    bus.serve("golden/model:default", Model(recorder.clock, *script))
    bus.serve(grant.key, Tool(recorder.clock, value, S))
    runs = AgentRuns(clock, bus)
    run = runs.spawn(agent, (TextPart("hello"), ImagePart(Base64("QQ"))), streamed=streamed)
    clock.run()
    return runs, run


def log_of(recorder: Recorder) -> EffectLog:
    """What was recorded, once through plain data and back."""
    records = [record.to_dict() for record in recorder.records(RunPlain())]
    read = [EffectRecord.from_dict(data, f"records[{at}]", at) for at, data in enumerate(records)]
    return EffectLog({"deliveries": batches_of(recorder.deliveries)}, read)


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize(
    ("script", "value"),
    [
        ((STREAM, BUSY, DONE), 42),
        (
            (calls(TextPart("x"), call("add", x=1)), Answer((TextPart("done"),), raw={"id": 1})),
            ToolReply((TextPart("t"), JsonPart(1)), "refused"),
        ),
        ((calls(call("add")), LAST), failed(ReportKind.OTHER, "broken")),
    ],
)
def test_a_replay_asks_nobody_and_comes_out_the_same(script: Any, value: Any, visible: bool) -> None:
    recorder = Recorder()
    streamed = type(script[-1]) is list
    runs, run = play(recorder, *script, streamed=streamed, value=value)
    log = log_of(recorder)
    replay = Replay(log, RunPlain(), visible=visible)
    again, second = play(replay.recorder, streamed=streamed)
    replay.finish()
    assert output(second) == output(run) == "done"
    assert (again.timeline.to_jsonl(), second.messages, second.usage) == (
        runs.timeline.to_jsonl(),
        run.messages,
        run.usage,
    )
    assert [record.to_dict() for record in replay.recorder.records(RunPlain())] == [
        record.to_dict() for record in log.records
    ]


def test_another_program_is_refused_with_the_place_that_differs() -> None:
    recorder = Recorder()
    play(recorder, Answer((TextPart("done"),)))
    replay = Replay(log_of(recorder), RunPlain(), visible=False)
    with pytest.raises(ReplayRefused, match=r"request\.chat_history\[0\]\.content: recorded was \"P\", found \"Q\""):
        play(replay.recorder, preamble="Q")


@pytest.mark.parametrize("item", [*(item for _, item in STREAM), StreamError(BUSY), PartDone(CallPart("c", "add", {}))])
def test_every_item_comes_back_from_plain_data(item: Any) -> None:
    assert RunPlain().item_of(RunPlain().item(item)) == item


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(Status.OK, Answer((TextPart("x"),), "length", {"total": None}, [1])),
        Outcome(Status.OK, ToolReply((JsonPart(1),), "error")),
        Outcome(Status.OK, TextPart("x")),
        Outcome(Status.OK, StreamEnd("stop", {"total": 1})),
        Outcome(Status.OK, {"answer": 1}),
        Outcome(Status.FAILED, BUSY),
        Outcome(Status.FAILED, "broken"),
        Outcome(Status.CANCELLED, Cause.BARGE_IN),
    ],
)
def test_every_outcome_comes_back_from_plain_data(outcome: Outcome) -> None:
    assert RunPlain().outcome_of(str(outcome.status), RunPlain().value(outcome)) == outcome


def test_what_is_no_plain_form_is_refused() -> None:
    with pytest.raises(ValueError, match="is no stream item"):
        RunPlain().item_of({"x": 1})
    with pytest.raises(ValueError, match="it is no outcome"):
        RunPlain().outcome_of("ok", {"x": 1})
    with pytest.raises(ValueError, match="it is no report"):
        RunPlain().outcome_of("failed", {"report": {"kind": "song"}})


# -- what a replayed run still has to ask ---------------------------------------------------------------------------

BOTH = calls(call("add"), call("spare", "c2"))
SPARE = "golden/tool:spare#1"


def recorded_calls() -> EffectLog:
    world = Recorded(BOTH, Answer((TextPart("done"),)), agent=an_agent(concurrency=2), delay_us=S)
    assert output(world.go()) == "done"
    return world.log()


def at_the_spare_call(act: Callable[[Again, Moment], object]) -> Again:
    """The same run again, with a hook that does something about the second call of its batch."""
    again = Again(recorded_calls(), an_agent(concurrency=2), visible=True)

    def gate(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.key == SPARE:
            act(again, moment)

    again.hooks.on(At.GATE, gate)
    again.runs.spawn(again.agent, "hello")
    return again


def test_a_call_that_is_left_out_is_missed_at_the_step_at_which_it_was_due() -> None:
    again = at_the_spare_call(lambda _, moment: moment.deny("not now"))
    with pytest.raises(
        ReplayRefused, match=r"effect 2 \(golden/tool:spare#1\) was recorded at 0 us, and now nobody has"
    ):
        again.clock.run()
    assert again.clock.now == 0


def test_a_call_that_comes_some_steps_later_on_its_instant_is_not_missed() -> None:
    def hold(again: Again, moment: Moment) -> None:
        effect = moment.effect
        assert effect is not None
        effect.hold("me")

        def think(left: int) -> None:
            again.runs.wake()
            if left:
                again.clock.call_in(0, Order.WORK, think, left - 1)
            else:
                effect.release("me")

        think(3)

    again = at_the_spare_call(hold)
    again.clock.run()
    again.world.finish()
    assert (again.clock.now, output(again.runs.live[1])) == (S, "done")


@pytest.mark.parametrize("nameless", [False, True])
def test_a_call_that_somebody_holds_waits_for_the_release_however_long(nameless: bool) -> None:
    held: list[Any] = []

    def hold(_: Again, moment: Moment) -> None:
        assert moment.effect is not None
        held.append(moment.effect)
        if nameless:
            moment.effect.bar()
        else:
            moment.effect.hold("me")

    again = at_the_spare_call(hold)
    again.clock.run()
    again.clock.call_at(9 * S, Order.TIMER, lambda _: held[0].approve())
    again.clock.run()
    again.world.finish()
    assert again.clock.now == 10 * S
    assert output(again.runs.live[1]) == "done"


def test_a_run_that_is_spawned_once_all_is_quiet_is_waited_for() -> None:
    world = Recorded(Answer((TextPart("one"),)), Answer((TextPart("two"),)))
    assert [output(world.go()), output(world.go())] == ["one", "two"]
    again = Again(world.log(), visible=True, instants=True)
    for said in ("one", "two"):
        run = again.runs.spawn(again.agent, "hello")
        again.clock.run()
        assert output(run) == said
    again.world.finish()


# -- live observers -------------------------------------------------------------------------------------------------


def test_observers_of_a_run_are_told_again_by_the_log() -> None:
    def told(streams: LiveStreams, clock: Clock) -> list[Any]:
        seen: list[Any] = []
        streams.observe(lambda batch: seen.append((clock.now, batch.id, batch.start, batch.items)))
        return seen

    world = Recorded(STREAM, DONE)
    streams = LiveStreams(world.recorder.clock)
    live = told(streams, world.clock)
    world.bus.bus.replace("golden/model:default", PushHandler(world.recorder.clock, streams, world.model))
    run = world.go(streamed=True)
    log = world.log()
    assert [each[:3] for each in live][:2] == [(100 * MS, 0, 0), (200 * MS, 0, 1)]
    for visible in (False, True):
        again = Again(log, visible=visible, instants=True, live=LiveStreams)
        assert again.world.streams is not None
        seen = told(again.world.streams, again.clock)
        second = again.go(streamed=True)
        assert (seen, second.messages) == (live, run.messages)
        assert again.runs.timeline.to_jsonl() == world.runs.timeline.to_jsonl()
