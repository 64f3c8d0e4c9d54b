"""The log of agent runs: what its header says of them, and that it comes out the same when it is replayed."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import ToolReply
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.parts import TextPart, user_message
from bargein.pipelines.agent.run_logs import log_of_runs
from bargein.pipelines.agent.run_replay import replay_runs
from bargein.pipelines.agent.run_settings import Settings, ToolAccess
from bargein.sim.effects.bus import Effect, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Layer
from bargein.sim.effects.playing import ReplayRefused
from bargein.sim.kernel.clock import Order
from tests.pipelines.agent.log_kit import MODEL, Again, Recorded, an_agent, read_again, with_links
from tests.pipelines.agent.run_kit import MS, S, Tool, call, calls, output, text

ADD, SPARE = "golden/tool:add#0", "golden/tool:spare#1"


class Wary(Layer):
    name = "wary"


# -- the header -------------------------------------------------------------------------------------------------


def test_a_header_says_what_the_runs_needed_used_and_came_to() -> None:
    world = Recorded(calls(call("add", x=1)), text("done"), text("no"))
    world.bus.wrap(ADD, Wary())
    world.go()
    world.go(max_turns=1, streamed=False)
    header = world.log().header
    row = {MODEL: "completion", ADD: "tool_call", SPARE: "tool_call"}
    assert header["required"] == row
    assert header["signature"] == {MODEL: "completion", ADD: "tool_call"}
    assert header["handlers"] == {
        MODEL: {"key": MODEL, "family": "completion", "label": "m-1", "capabilities": {"vision": True}, "layers": []},
        ADD: {"key": ADD, "family": "tool_call", "label": "", "capabilities": {}, "layers": ["wary"]},
        SPARE: {"key": SPARE, "family": "tool_call", "label": "", "capabilities": {}, "layers": []},
    }
    assert header["tools"][ADD] == {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
    assert list(header["programs"]) == ["r1", "r2"]
    assert [each["required"] for each in header["programs"].values()] == [row, row]
    assert len({each["policy"] for each in header["programs"].values()}) == 2
    assert header["result"]["endings"] == {"r1": ["Settled", "done"], "r2": ["Settled", "no"]}
    assert "run_spec" not in header


def test_hooks_are_those_that_are_declared_and_then_the_layers() -> None:
    world = Recorded(text("done"))
    world.hooks.on(At.GATE, lambda _: None)
    world.go()
    assert world.log().header["hooks"] == []
    assert world.log(hooks=["DynamicContext"]).header["hooks"] == ["DynamicContext"]
    assert world.log(hooks=["h1"], layers=["l1"]).header["hooks"] == ["h1", "l1"]


def test_memory_and_links_stand_in_the_row_by_their_families() -> None:
    world = Recorded(text("done"), agent=with_links(an_agent()))
    run = world.runs.create(world.agent)
    assert world.log().header["programs"][run.scope]["required"] == {
        MODEL: "completion",
        ADD: "tool_call",
        SPARE: "tool_call",
        "golden/memory": "memory",
        "golden/retrieve:context#0": "retrieve",
        "golden/retrieve:tools#0": "retrieve",
    }


def test_what_a_round_could_call_stays_in_the_row_when_access_has_changed_since() -> None:
    agent = an_agent(tool_access=ToolAccess({"add": "other/tool:add#7"}))
    world = Recorded(calls(call("add")), text("done"), agent=agent)
    world.bus.serve("other/tool:add#7", Tool(world.recorder.clock, 42))
    run = world.go()
    assert output(run) == "done"
    before = world.log().header["programs"]["r1"]
    agent.settings.tool_access = ToolAccess({"add": ADD})
    after = world.log().header["programs"]["r1"]
    assert before["required"]["other/tool:add#7"] == after["required"]["other/tool:add#7"] == "tool_call"
    assert before["policy"] != after["policy"]


def test_a_run_that_was_taken_out_is_still_named() -> None:
    world = Recorded(text("done"), text("no"))
    run = world.go()
    there = world.log().header["programs"]
    assert world.runs.despawn(run) is None
    assert world.log().header["programs"] == there
    world.go()
    assert list(world.log().header["programs"]) == ["r1", "r2"]


# -- replays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visible", [False, True])
def test_every_kind_of_effect_is_answered_by_the_log(visible: bool) -> None:
    def note(moment: Moment) -> None:
        moment.dispatch(EffectKind.CUSTOM, "golden:note", {"of": "it"})

    class Said(Tool):
        def __init__(self, clock: Any, value: Any) -> None:
            super().__init__(clock, lambda _: Outcome(Status.OK, value), 10 * MS)

    agent = with_links(an_agent())
    agent.retrievable = ("spare",)
    world = Recorded(calls(call("add", x=1)), text("done"), agent=agent)
    message = user_message("I am Ann.").to_dict()
    for key, value in (
        ("golden:note", "noted"),
        ("golden/memory", [message]),
        ("golden/retrieve:context#0", [[9, "doc", {"b": 1, "a": 2}]]),
        ("golden/retrieve:tools#0", [[9, "spare"]]),
    ):
        world.bus.serve(key, Said(world.recorder.clock, value))
    world.hooks.on(At.RUN_STARTED, note)
    run = world.go()
    log = world.log()
    assert output(run) == "done"
    kinds = sorted({record.kind for record in log.records})
    assert kinds == ["completion", "custom", "memory", "retrieval", "tool_call"]
    linked = with_links(an_agent())
    linked.retrievable = ("spare",)
    again = Again(log, linked, (At.RUN_STARTED, note), visible=visible, instants=True)
    second = again.go()
    assert (output(second), second.messages) == ("done", run.messages)
    assert again.runs.timeline.to_jsonl() == world.runs.timeline.to_jsonl()
    assert read_again(again.world.again(again.runs)).to_bytes() == log.to_bytes()


def test_replayers_keep_what_is_known_of_the_handlers_and_serve_what_was_never_called() -> None:
    world = Recorded(text("done"))
    world.bus.wrap(MODEL, Wary())
    world.go()
    again = Again(world.log())
    assert again.bus.serves(SPARE)
    known = again.bus.descriptor(MODEL)
    assert (known.label, known.capabilities, known.layers) == ("m-1", {"vision": True}, ())
    again.bus.wrap(MODEL, Wary())
    assert again.bus.descriptor(MODEL) == world.bus.descriptor(MODEL)


# -- what a tool hands back beside its reply ----------------------------------------------------------------------


@pytest.mark.parametrize("visible", [False, True])
def test_what_a_tool_published_is_kept_apart_and_comes_back_without_the_tool(visible: bool) -> None:
    def answer(request: Any) -> Any:
        request.publish("seat", 4)
        return "here"

    world = Recorded(calls(call("add")), text("done"), value=answer, delay_us=S)
    world.go()
    log = world.log()
    assert [record.published for record in log.records] == [{}, {"seat": 4}, {}]
    assert log.records[1].value == {"value": "here"}
    assert b"published" not in log.to_bytes().splitlines()[1]
    seen: list[Any] = []

    def look(moment: Moment) -> None:
        effect = moment.effect
        assert effect is not None
        seen.append((again.clock.now, effect.key, dict(effect.outputs)))

    again = Again(log, hook=(At.JUDGE_OUTCOME, look), visible=visible)
    again.hooks.on(At.GATE, look)
    run = again.go()
    assert output(run) == "done"
    assert [each for each in seen if each[1] == ADD] == [(0, ADD, {}), (S, ADD, {"seat": 4})]


def test_what_has_no_plain_form_cannot_be_published_into_a_log() -> None:
    def answer(request: Any) -> Any:
        request.publish("seat", object())
        return "here"

    world = Recorded(calls(call("add")), text("done"), value=answer)
    world.go()
    with pytest.raises(TypeError, match=r"what effect 1 \(golden/tool:add#0\) published has no plain form"):
        world.log()


# -- outcomes that are put past a handler -------------------------------------------------------------------------


def overruled(moment: Moment) -> None:
    if type(moment.item) is TextDelta and moment.item.text == "b":
        moment.replace_outcome(Outcome(Status.OK, StreamEnd("stop")))


def streaming(hook: Any = None) -> Recorded:
    world = Recorded([(S, TextDelta("a")), (2 * S, TextDelta("b")), (3 * S, StreamEnd("stop", {"total": 9}))])
    if hook is not None:
        world.hooks.on(*hook)
    return world


def test_an_outcome_that_is_set_in_flight_is_noted_and_policy_replay_refuses_the_log() -> None:
    world = streaming((At.DELTA, overruled))
    run = world.go(streamed=True)
    assert output(run) == "ab"
    log = world.log()
    assert [each for each in log.header["deliveries"] if each[3] == "direct"] == [[2 * S, 0, 0, "direct"]]
    with pytest.raises(
        ReplayRefused, match=r"effect 0 \(golden/model:default\): at 2000000 us the program put an outc"
    ):
        replay_runs(log, visible=True)
    assert output(Again(log, hook=(At.DELTA, overruled)).go(streamed=True)) == "ab"


def test_denials_at_the_gate_and_replacements_once_it_has_landed_are_no_such_thing() -> None:
    def deny(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.key == ADD:
            moment.deny("not now")

    def replace(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.key == SPARE:
            moment.replace_outcome(Outcome(Status.OK, ToolReply((TextPart("other"),))))

    def steered(world: Any) -> None:
        world.hooks.on(At.GATE, deny)
        world.hooks.on(At.JUDGE_OUTCOME, replace)

    script = calls(call("add"), call("spare", "c2")), text("done")
    world = Recorded(*script, agent=an_agent(concurrency=2), delay_us=S)
    steered(world)
    run = world.go()
    log = world.log()
    assert [record.key for record in log.records] == [MODEL, SPARE, MODEL]
    assert all(batch[3] in ("", "land") for batch in log.header["deliveries"])
    again = Again(log, an_agent(concurrency=2), visible=True)
    steered(again)
    assert again.go().messages == run.messages


# -- steps of one instant -----------------------------------------------------------------------------------------


class Twice:
    """Two items on one instant: the second one because of the step that the first one caused."""

    def __init__(self, clock: Any, plain: Any, *, timed: bool) -> None:
        self.clock = clock if timed else plain

    def serve(self, effect: Effect) -> None:
        def second(_: object) -> None:
            effect.deliver(TextDelta("b"))
            effect.land(Outcome(Status.OK, StreamEnd()))

        def first(_: object) -> None:
            effect.deliver(TextDelta("a"))
            self.clock.call_in(0, Order.WORK, second)

        self.clock.call_in(S, Order.DELIVERY, first)


@pytest.mark.parametrize("timed", [True, False], ids=["by the handlers' clock", "by another"])
def test_what_was_apart_on_one_instant_is_apart_in_the_log_and_in_a_replay(timed: bool) -> None:
    seen: list[Any] = []

    def steps(moment: Moment) -> None:
        turn = moment.run.turn
        if turn is not None and turn.fold is not None:
            seen.append([block.text for block in turn.fold.blocks])

    world = Recorded(text("unused"))
    world.bus.bus.replace(MODEL, Twice(world.recorder.clock, world.clock, timed=timed))
    world.hooks.on(At.CHECKPOINT, steps)
    run = world.go(streamed=True)
    live, seen[:] = seen[:], []
    log = world.log()
    assert output(run) == "ab"
    assert live[0] == ["a"]
    assert log.header["deliveries"] == [[S, 0, 1, ""], [S, 0, 1, "land"]]
    again = Again(log, hook=(At.CHECKPOINT, steps), visible=True, instants=True)
    again.go(streamed=True)
    assert seen == live


def test_batches_that_come_together_in_a_replay_although_they_were_apart_are_refused() -> None:
    world = Recorded(text("unused"))
    world.bus.bus.replace(MODEL, Twice(world.recorder.clock, world.clock, timed=True))
    world.go(streamed=True)
    log = world.log()
    log.header["deliveries"] = [[S, 0, 2, "land"]]
    with pytest.raises(
        ReplayRefused, match="recorded was 2 items and the outcome of effect 0 at 1000000 us; now it wa"
    ):
        Again(log, visible=True).go(streamed=True)


def test_a_log_can_be_made_on_the_way() -> None:
    world = Recorded(calls(call("add")), text("done"), delay_us=S)
    world.runs.spawn(world.agent, "hello")
    world.clock.run(S // 2)
    log = read_again(log_of_runs(world.runs, world.recorder))
    assert [(record.key, record.status) for record in log.records] == [(MODEL, "ok"), (ADD, None)]
    assert log.header["result"]["endings"] == {}
    assert Settings().policy_version is None
