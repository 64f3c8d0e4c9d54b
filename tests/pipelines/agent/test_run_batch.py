"""A round's batch of calls: who runs when, what becomes history, and what a record keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer, ToolReply
from bargein.pipelines.agent.edits import RemoveEdit, TextEdit
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.media_sources import Url
from bargein.pipelines.agent.parts import ImagePart, JsonPart, ResultPart, TextPart, user_message
from bargein.pipelines.agent.result_limit import ResultLimit, cut_text
from bargein.pipelines.agent.run_settings import Settings, specification
from bargein.pipelines.agent.run_state import BATCH_OWNER
from bargein.pipelines.wordings import RESULT_LIMIT_MARKER
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Order
from tests.pipelines.agent.run_kit import S, World, call, calls, failure, output, refused, report, text


def batch(*names: str, **settings: Any) -> World:
    """A model that asks for these tools at once, then is done."""
    parts = [call(name, f"c{at}") for at, name in enumerate(names)]
    return World(calls(*parts), text("done"), **({"max_turns": 2} | settings))


# -- who runs when ------------------------------------------------------------------------------------------------


def test_a_call_is_one_effect_under_its_tools_key_with_compact_arguments() -> None:
    world = World(calls(call("add", x=17, y="é")), text("done"), max_turns=2)
    world.tool("sub")
    world.tool("add")
    world.run()
    effect = world.bus.bus.log[1]
    assert (effect.key, str(effect.kind), effect.payload.to_dict()) == (
        "golden/tool:add#1",
        "tool_call",
        {"name": "add", "args": '{"x":17,"y":"é"}'},
    )


@pytest.mark.parametrize(("concurrency", "starts"), [(None, [0, 3, 4, 5]), (2, [0, 0, 1, 2]), (9, [0, 0, 0, 0])])
def test_calls_start_as_the_concurrency_allows_and_are_recorded_in_their_order(
    concurrency: int | None, starts: list[int]
) -> None:
    world = batch("a", "b", "c", "d", concurrency=concurrency)
    tools = [world.tool(name, name, seconds * S) for name, seconds in zip("abcd", (3, 1, 1, 1), strict=True)]
    world.run()
    assert [tool.started[0][0] // S for tool in tools] == starts
    assert [effect.key for effect in world.bus.bus.log[1:5]] == [
        f"golden/tool:{name}#{at}" for at, name in enumerate("abcd")
    ]
    assert world.said(2)[-1] == ("user", ["result a", "result b", "result c", "result d"])


def test_the_runs_concurrency_goes_before_the_agents() -> None:
    world = batch("a", "b", concurrency=2)
    for name in "ab":
        world.tool(name, delay_us=S)
    world.run(settings=Settings(concurrency=1))
    assert world.clock.now == 2 * S


def test_calls_beyond_the_concurrency_are_held_by_the_batch_when_the_gate_sees_them() -> None:
    world = batch("a", "b", "c")
    seen: list[Any] = []
    world.on(At.GATE, lambda moment: seen.append(tuple(moment.effect.holds)))
    for name in "abc":
        world.tool(name)
    world.run()
    assert seen == [(), (), (BATCH_OWNER,), (BATCH_OWNER,), ()]
    assert BATCH_OWNER == "rig-ecs/batch"


def at_gate(world: World, tool: str, act: Callable[[Any], object]) -> None:
    world.on(At.GATE, lambda moment: moment.effect.call is not None and moment.effect.call.name == tool and act(moment))


def test_an_effect_waits_for_every_owner_and_a_second_hold_of_one_is_the_same() -> None:
    world = batch("a")
    tool = world.tool("a")

    def hold(moment: Any) -> None:
        for owner in ("A", "A", "B"):
            moment.effect.hold(owner)
        world.clock.call_in(S, Order.TIMER, moment.effect.release, "A")
        world.clock.call_in(2 * S, Order.TIMER, moment.effect.release, "B")

    at_gate(world, "a", hold)
    world.run()
    assert tool.started[0][0] == 2 * S


def test_a_held_call_within_the_concurrency_keeps_its_slot() -> None:
    world = batch("a", "b")
    tools = [world.tool(name) for name in "ab"]

    def hold(moment: Any) -> None:
        moment.effect.hold("host")
        world.clock.call_in(S, Order.TIMER, moment.effect.release, "host")

    at_gate(world, "a", hold)
    world.run()
    assert [tool.started[0][0] for tool in tools] == [S, S]


@pytest.mark.parametrize("nameless", [False, True])
def test_another_hold_outlives_the_batches_release(nameless: bool) -> None:
    world = batch("a", "b")
    tools = [world.tool(name, delay_us=S) for name in "ab"]

    def hold(moment: Any) -> None:
        effect = moment.effect
        if nameless:
            effect.bar()
            world.clock.call_in(3 * S, Order.TIMER, lambda _: effect.unbar())
        else:
            effect.hold("host")
            world.clock.call_in(3 * S, Order.TIMER, effect.release, "host")

    at_gate(world, "b", hold)
    world.run()
    assert [tool.started[0][0] for tool in tools] == [0, 3 * S]


@pytest.mark.parametrize("route", ["release", "approve"])
def test_a_call_approved_early_runs_and_takes_a_slot(route: str) -> None:
    world = batch("a", "b", "c")
    tools = [world.tool(name, delay_us=S) for name in "abc"]

    def approve(moment: Any) -> None:
        effect = moment.effect
        if route == "release":
            effect.release(BATCH_OWNER)
        else:
            effect.approve()

    at_gate(world, "b", approve)
    run = world.run()
    assert [tool.started[0][0] for tool in tools] == [0, 0, S]
    assert all(not effect.holds for effect in run.turns[0].batch)


def test_a_run_resolves_its_tools_until_the_last_result() -> None:
    world = batch("a", "b", concurrency=2)
    world.tool("a", delay_us=2 * S)
    world.tool("b", delay_us=S)
    run = world.run(until_us=S)
    assert (run.phase, len(run.messages), run.turns[0].commit) == ("ResolvingTools", 2, None)
    world.clock.run()
    assert output(run) == "done"
    turn = run.turns[0]
    assert (turn.commit, turn.assistant, turn.results) == (1, 1, 2)


# -- what becomes of a result -------------------------------------------------------------------------------------

PICTURE = ImagePart(Url("http://x/y.png"))


@pytest.mark.parametrize(
    ("value", "items", "status"),
    [
        (42, (JsonPart(42),), "Ok"),
        ("fine", (TextPart("fine"),), "Ok"),
        (ToolReply((TextPart("a"), PICTURE, JsonPart([1]))), (TextPart("a"), PICTURE, JsonPart([1])), "Ok"),
        (Outcome(Status.FAILED, "the adder is broken"), (TextPart("the adder is broken"),), "Error"),
        (Outcome(Status.CRASHED, "KeyError: 1"), (TextPart("KeyError: 1"),), "Error"),
        (failed(ReportKind.INTERNAL, "boom"), (TextPart("boom"),), "Error"),
        (refused("not allowed"), (TextPart("not allowed"),), "Refused"),
        (ToolReply((TextPart("no need"),), "skipped"), (TextPart("no need"),), "Skipped"),
        (Answer(()), (TextPart("the tool handler answered with a completion outcome"),), "WrongFamily"),
    ],
)
def test_what_a_tool_answers_is_a_result_with_a_status_beside_it(value: Any, items: Any, status: str) -> None:
    world = batch("a")
    world.tool("a", value)
    run = world.run()
    assert run.messages[2].parts == (ResultPart("c0", items, "a", "p-c0"),)
    assert (run.history.statuses(2), output(run)) == ((ResultStatus(status),), "done")


def test_a_status_is_data_beside_the_message_and_nothing_that_is_sent() -> None:
    world = batch("a")
    world.tool("a")

    def change(moment: Any) -> None:
        if moment.turn.number == 2:
            held = moment.run.history.stored[2].parts[0]
            held.status = ResultStatus.DENIED

    world.on(At.BEFORE_REQUEST, change)
    plain = batch("a")
    plain.tool("a")
    prior = user_message([ResultPart("c9", (TextPart("x"),))])
    run = plain.run("hello", prior)
    world.run("hello", prior)
    assert world.model.requests == plain.model.requests
    assert run.history.statuses(0) == (None,)
    assert [str(each) for each in ResultStatus] == ["Ok", "Error", "Refused", "Skipped", "Denied", "WrongFamily"]


def test_a_denial_at_the_gate_is_a_result_without_a_record() -> None:
    world = batch("a")
    world.tool("a")
    at_gate(world, "a", lambda moment: moment.deny("denied by the host"))
    run = world.run()
    assert (world.said(2)[-1], world.records) == (("user", "result denied by the host"), "C C")
    assert run.history.statuses(2) == (ResultStatus.DENIED,)


def test_a_denial_at_the_gate_leaves_its_place_to_the_next_call() -> None:
    world = batch("a", "b", concurrency=1)
    world.tool("a")
    later = world.tool("b", delay_us=S)
    at_gate(world, "a", lambda moment: moment.deny("denied by the host"))
    run = world.run()
    assert (later.started, world.clock.now, world.records) == ([(0, "{}")], S, "C T C")
    assert run.history.statuses(2) == (ResultStatus.DENIED, ResultStatus.OK)


@pytest.mark.parametrize("kind", [ReportKind.BUS_CLOSED, ReportKind.HANDLER_UNAVAILABLE, ReportKind.DIVERGENCE])
def test_what_the_model_must_not_see_fails_the_run(kind: ReportKind) -> None:
    world = batch("a")
    world.tool("a", failed(kind, "gone"))
    run = world.run()
    assert (failure(run), report(run).kind, world.records) == ("Tool", kind, "C T")


def test_a_cancelled_outcome_fails_the_run_once_the_batch_has_landed() -> None:
    world = batch("a", "b", concurrency=2)
    world.tool("a")
    world.tool("b", delay_us=S)

    def rewrite(moment: Any) -> None:
        if moment.effect.call is not None and moment.effect.call.name == "a":
            moment.replace_outcome(Outcome(Status.CANCELLED, Cause.DISCARDED))

    world.on(At.JUDGE_OUTCOME, rewrite)
    run = world.run()
    assert (failure(run), world.records, len(run.messages), world.clock.now) == ("Cancelled", "C T T", 2, S)
    assert world.bus.bus.log[1].outcome == Outcome(Status.OK, 42)
    assert run.turns[0].commit is None


def test_a_replaced_result_is_history_and_the_record_keeps_the_handlers() -> None:
    world = batch("a")
    world.tool("a")
    world.on(At.JUDGE_OUTCOME, lambda moment: moment.effect.call and moment.replace_outcome(Outcome(Status.OK, 99)))
    world.run()
    assert (world.said(2)[-1], world.bus.bus.log[1].outcome.value) == (("user", "result 99"), 42)


def test_patched_arguments_are_the_record_and_history_keeps_the_models() -> None:
    world = World(calls(call("add", x=17)), text("done"), max_turns=2)
    tool = world.tool("add")
    at_gate(world, "add", lambda moment: moment.patch_arguments({"x": 40}))
    run = world.run()
    assert (tool.started[0][1], run.messages[1].parts[0].arguments) == ('{"x":40}', {"x": 17})
    assert world.bus.bus.log[1].payload.args == '{"x":40}'


# -- context --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "run", "seen"), [({"a": 2}, {"a": 1}, {"a": 1}), ({"a": 2}, None, {"a": 2}), (None, None, {})]
)
def test_a_tool_sees_the_runs_context_or_the_agents_and_no_record_has_it(agent: Any, run: Any, seen: Any) -> None:
    world = batch("a", tool_context=agent)
    found: list[Any] = []
    world.tool("a", lambda request: found.append(dict(request.context)) or "ok")
    world.run(settings=Settings(tool_context=run))
    assert found == [seen]
    assert world.bus.bus.log[1].payload.to_dict() == {"name": "a", "args": "{}"}


def test_what_a_tool_publishes_is_read_once_it_has_landed() -> None:
    world = batch("a")
    world.tool("a", lambda request: request.publish("seat", 4) or "ok", delay_us=S)
    run = world.run(until_us=1)
    effect = run.turns[0].batch[0]
    assert effect.outputs == {}
    world.clock.run()
    assert (effect.outputs, world.bus.bus.log[1].outcome.value) == ({"seat": 4}, "ok")


# -- the size limit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "limit", "cut"),
    [
        ("0123456789abcdefghijklmnopqrstuvwxyz", 10, "01234<26>vwxyz"),
        ("0123456789abcdefghijklmnopqrstuvwxyz", 11, "01234<25>uvwxyz"),
        ("0123456789abcdefghijklmnopqrstuvwxyz", 36, "0123456789abcdefghijklmnopqrstuvwxyz"),
        ("aéééé", 6, "aé<4>é"),
        ("éé", 0, "<4>"),
    ],
)
def test_a_long_text_keeps_head_and_tail_on_character_boundaries(said: str, limit: int, cut: str) -> None:
    assert cut_text(said, ResultLimit(limit, "<{omitted}>")) == cut


def test_the_default_marker_counts_and_other_braces_stay() -> None:
    assert RESULT_LIMIT_MARKER == "\n[… {omitted} bytes omitted …]\n"
    assert cut_text("abcd", ResultLimit(2)) == "a\n[… 2 bytes omitted …]\nd"
    assert cut_text("abcd", ResultLimit(2, "{x}{omitted}")) == "a{x}2d"


def test_only_texts_of_results_are_cut_and_only_in_the_request() -> None:
    long = "x" * 40
    reply = ToolReply((TextPart(long), JsonPart(long)))
    world = World(calls(TextPart(long), call("a")), text("done"), max_turns=2, result_limit=ResultLimit(100))
    world.tool("a", reply)
    run = world.run(long, settings=Settings(result_limit=ResultLimit(10, "~")))
    cut = "xxxxx~xxxxx"
    assert world.said(2) == [("user", long), ("assistant", [long, "call a"]), ("user", f"result {cut} {long}")]
    assert run.messages[2].parts[0].items == reply.items


def test_cutting_comes_after_edits_and_leaves_a_hosts_own_history_alone() -> None:
    world = World(*(calls(call("a", f"c{at}")) for at in range(3)), text("done"), max_turns=4)
    world.agent.settings.result_limit = ResultLimit(4, "~")
    world.tool("a", "abcdefgh")

    def edit(moment: Any) -> None:
        history = moment.run.history
        if moment.turn.number == 2:
            moment.edit(TextEdit(history.item_ids(history.ids(2)[0])[0], "ok"))
        if moment.turn.number == 3:
            moment.edit(TextEdit(history.item_ids(history.ids(2)[0])[0], "123456"), RemoveEdit(history.ids(4)[0]))

    world.on(At.BEFORE_REQUEST, edit)
    world.run()
    assert [world.said(2)[2], world.said(3)[2], world.said(4)[2]] == [
        ("user", "result ok"),
        ("user", "result 12~56"),
        ("user", "result ab~gh"),
    ]
    assert len(world.said(3)) == 4


def test_a_limit_that_changes_is_for_later_rounds_and_makes_no_other_program() -> None:
    world = World(calls(call("a")), calls(call("a", "c2")), text("done"), max_turns=3)
    world.tool("a", "abcdefgh")

    def narrow(moment: Any) -> None:
        if moment.turn.number == 2:
            moment.run.settings.result_limit = ResultLimit(4, "~")

    world.on(At.REQUEST_FOLDED, narrow)
    run = world.run()
    assert [world.said(2)[2], world.said(3)[2]] == [("user", "result abcdefgh"), ("user", "result ab~gh")]
    assert specification(world.agent, run.settings) == specification(world.agent)
