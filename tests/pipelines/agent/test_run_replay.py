"""A recorded run comes out the same without its model and its tools, and another program is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer, CallDone, PartDone, StreamError, ToolReply
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
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
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
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
