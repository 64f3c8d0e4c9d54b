"""Any run ends, leaves a valid history and nothing running, and a replay of it is the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.answers import Answer, PartDone, StreamError
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.endings import Settled
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.parts import CallPart, ReasoningPart, ResultPart, TextPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_settings import Agent, InvalidCalls, OutputMode, OutputSpec, Unhandled
from bargein.pipelines.agent.run_state import Resolution, ResolutionKind, Run
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay
from bargein.sim.kernel.clock import Clock
from tests.pipelines.agent.run_kit import BUSY, MS, SCHEMA, Model, Tool

NAMES = st.sampled_from(["add", "final_result", "sub", "nope"])
ARGUMENTS = st.sampled_from([{}, {"day": 1}, {"day": 1, "people": 2}])
CALLS = st.builds(lambda name, arguments: CallPart("", name, arguments), NAMES, ARGUMENTS)
PARTS = st.one_of(
    CALLS,
    CALLS,
    st.builds(TextPart, st.sampled_from(["hi", "", '{"day":1,"people":2}'])),
    st.just(ReasoningPart("hm")),
)
SAID = st.integers(0, 9).flatmap(lambda size: st.lists(PARTS, min_size=size % 4, max_size=size % 4))
ANSWERS = st.builds(
    lambda parts, finish: Answer(tuple(parts), finish, {"total": 1}),
    SAID,
    st.sampled_from(["stop", "stop", "stop", "length"]),
)


@st.composite
def streams(draw: Any) -> list[Any]:
    """An answer as it streams, whole or broken, perhaps all on one instant."""
    gap = draw(st.sampled_from([0, 100 * MS]))
    items: list[Any] = []
    for index, part in enumerate(draw(SAID)):
        if isinstance(part, TextPart):
            items.append(TextDelta(part.text))
        elif isinstance(part, CallPart) and draw(st.booleans()):
            items += [CallDelta(index, f"w{index}", part.name, "{"), CallDelta(index, arguments="}")]
        else:
            items.append(PartDone(part))
    if draw(st.integers(0, 11)) == 7:
        items.append(StreamError(BUSY))
    items.append(draw(st.sampled_from([*[StreamEnd("stop", {"total": 1})] * 7, Outcome(Status.FAILED, BUSY)])))
    return [(gap * (at + 1), item) for at, item in enumerate(items)]


RESOLUTIONS = st.sampled_from(
    [
        None,
        Resolution(ResolutionKind.FAIL),
        Resolution(ResolutionKind.IGNORE),
        Resolution(ResolutionKind.RETRY, "again"),
        Resolution(ResolutionKind.REPAIR, "add"),
        Resolution(ResolutionKind.SKIP, "no"),
    ]
)

MODES = st.sampled_from([OutputMode.TOOL, OutputMode.AUTO, OutputMode.NATIVE, OutputMode.PROMPTED])


@st.composite
def programs(draw: Any) -> dict[str, Any]:
    streamed = draw(st.booleans())
    said = streams() if streamed else st.one_of(*[ANSWERS] * 6, st.just(BUSY))
    return {
        "streamed": streamed,
        "script": draw(st.lists(said, min_size=12, max_size=12)),
        "resolution": draw(RESOLUTIONS),
        "tie_seed": draw(st.sampled_from([None, 1, 2])),
        "settings": {
            "max_turns": draw(st.sampled_from([4, 3, 2, 1])),
            "concurrency": draw(st.integers(1, 2)),
            "provider_retries": draw(st.integers(0, 2)),
            "invalid_calls": InvalidCalls(draw(st.sampled_from(Unhandled)), draw(st.sampled_from([2, 0]))),
            "output": OutputSpec(draw(st.sampled_from([SCHEMA, SCHEMA, None])), draw(MODES)),
        },
    }


def play(recorder: Recorder, program: dict[str, Any], *script: Any) -> tuple[AgentRuns, Run]:
    clock = Clock(program["tie_seed"])
    bus = LayeredBus(recorder.open(clock))
    agent = Agent.named("golden", **program["settings"])
    bus.serve("golden/model:default", Model(recorder.clock, *script))
    for name in ("add", "sub"):
        bus.serve(agent.grant(name).key, Tool(recorder.clock, 42, 50 * MS))
    hooks = Hooks()

    def resolve(moment: Moment) -> None:
        if program["resolution"] is not None:
            moment.resolve(program["resolution"])

    hooks.on(At.INVALID_CALL, resolve)
    runs = AgentRuns(clock, bus, hooks)
    run = runs.spawn(agent, "hello", streamed=program["streamed"])
    clock.run()
    return runs, run


@settings(max_examples=60, deadline=None, derandomize=True)
@given(programs())
def test_any_run_ends_well_formed_and_replays_the_same(program: dict[str, Any]) -> None:
    recorder = Recorder()
    runs, run = play(recorder, program, *program["script"])
    assert run.ending is not None
    assert (recorder.bus.running, len(runs.timeline.of("agent.run_ended"))) == (0, 1)
    assert run.cursor <= program["settings"]["max_turns"]
    messages = run.messages
    for at, message in enumerate(messages):
        asked = [part.id for part in message.parts if isinstance(part, CallPart)]
        following = messages[at + 1].parts if at + 1 < len(messages) else ()
        answered = [part.call_id for part in following if isinstance(part, ResultPart)]
        if asked and not (at + 1 == len(messages) and not isinstance(run.ending, Settled)):
            assert sorted(answered) == sorted(asked), messages
    records = [record.to_dict() for record in recorder.records(RunPlain())]
    read = [EffectRecord.from_dict(data, f"records[{at}]", at) for at, data in enumerate(records)]
    replay = Replay(EffectLog({"deliveries": batches_of(recorder.deliveries)}, read), RunPlain(), visible=True)
    again, second = play(replay.recorder, program)
    replay.finish()
    assert (again.timeline.to_jsonl(), second.ending, second.messages) == (
        runs.timeline.to_jsonl(),
        run.ending,
        messages,
    )
