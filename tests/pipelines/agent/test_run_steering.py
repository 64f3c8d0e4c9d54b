"""Hooks: when they are called, what each can write, and what the run makes of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.edits import RemoveEdit, RequestPatch, TextEdit
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import Url
from bargein.pipelines.agent.parts import ImagePart, JsonPart, ResultPart, TextPart, user_message
from bargein.pipelines.agent.run_settings import Document, OutputMode, OutputSpec
from bargein.sim.effects.bus import EffectKind, Status
from tests.pipelines.agent.run_kit import MS, SCHEMA, S, World, call, calls, delta, failure, output, report, text

LOOP = tuple(calls(call("add", f"c{at}")) for at in range(9))


def adding(*script: Any, **settings: Any) -> World:
    world = World(*(script or (calls(call("add")), text("done"))), **({"max_turns": 3} | settings))
    world.tool("add")
    return world


def on_turn(world: World, number: int, **patch: Any) -> None:
    world.on(At.BEFORE_REQUEST, lambda moment: moment.turn.number == number and moment.patch(RequestPatch(**patch)))


# -- moments ------------------------------------------------------------------------------------------------------


def test_the_moments_of_a_run_stand_in_their_order() -> None:
    world = World([(0, TextDelta("a")), (0, StreamEnd())], max_turns=1)
    seen: list[str] = []
    for at in At:
        world.on(at, lambda moment: seen.append(str(moment.at)))
    world.run(streamed=True)
    assert seen == [
        "run_started",
        "select_model",
        "before_request",
        "request_folded",
        "gate",
        "checkpoint",
        "judge_outcome",
        "delta",
        "judge_round",
        "checkpoint",
        "run_ended",
    ]


def test_hooks_of_one_moment_are_called_in_the_order_of_their_registration() -> None:
    world = World(text("hi"))
    seen: list[int] = []
    for number in range(3):
        world.on(At.GATE, lambda _, number=number: seen.append(number))
    world.run()
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("at", "records"),
    [
        (At.RUN_STARTED, ""),
        (At.SELECT_MODEL, ""),
        (At.BEFORE_REQUEST, ""),
        (At.REQUEST_FOLDED, ""),
        (At.GATE, ""),
        (At.DELTA, "C"),
        (At.JUDGE_OUTCOME, "C"),
        (At.JUDGE_ROUND, "C"),
        (At.CHECKPOINT, "C✗"),
    ],
)
def test_any_moment_can_stop_the_run_with_a_reason(at: At, records: str) -> None:
    world = World([(0, TextDelta("a")), (0, StreamEnd())])
    world.on(at, lambda moment: moment.stop("enough"))
    run = world.run(streamed=True)
    assert (failure(run), str(report(run).kind), report(run).message) == ("Cancelled", "cancelled", "enough")
    assert (world.records, len(run.messages) < 2, run.phase) == (records, True, None)
    assert run.turn is None or run.turn.read


def test_a_stop_after_the_end_changes_nothing() -> None:
    world = World(text("hi"))
    world.on(At.RUN_ENDED, lambda moment: moment.stop("late"))
    assert output(world.run()) == "hi"


def test_a_stop_at_a_tools_gate_never_issues_it() -> None:
    world = adding()
    world.on(At.GATE, lambda moment: moment.effect.call is not None and moment.stop("no"))
    run = world.run()
    assert (failure(run), world.records, len(run.messages)) == ("Cancelled", "C", 2)


def test_a_stop_on_a_tools_outcome_keeps_its_record_and_commits_nothing() -> None:
    world = adding()
    world.on(At.JUDGE_OUTCOME, lambda moment: moment.effect.call is not None and moment.stop("no"))
    run = world.run()
    assert (world.records, world.bus.bus.log[1].outcome.value, len(run.messages)) == ("C T", 42, 2)
    assert run.turns[0].commit is None


def test_a_stop_after_round_two_leaves_that_round_out() -> None:
    world = adding(*LOOP)
    world.on(At.JUDGE_ROUND, lambda moment: moment.run.cursor == 2 and moment.stop("two"))
    run = world.run()
    assert (world.records, len(run.messages)) == ("C T C", 3)


def test_a_stop_drops_what_was_not_issued_and_leaves_a_running_tool_to_its_handler() -> None:
    world = World(calls(*(call("add", f"c{at}") for at in range(3))), max_turns=3)
    tool = world.tool("add", delay_us=S)
    run = world.run(until_us=MS)
    world.runs.cancel(run, "enough")
    assert (failure(run), run.phase) == ("Cancelled", None)
    world.clock.run()
    assert (world.records, len(tool.started), world.bus.bus.log[1].outcome.value) == ("C T", 1, 42)
    assert len(run.messages) == 2


@pytest.mark.parametrize("kind", [TextDelta, CallDelta])
def test_a_delta_can_stop_the_run_on_its_instant_and_the_record_keeps_what_had_come(kind: type) -> None:
    stream = [(100 * MS, TextDelta("a")), (200 * MS, CallDelta(0, "w", "add", "{")), (300 * MS, StreamEnd())]
    world = adding(stream)
    world.on(At.DELTA, lambda moment: isinstance(moment.item, kind) and moment.stop("enough"))
    world.run(streamed=True)
    at_us = 100 * MS if kind is TextDelta else 200 * MS
    effect = world.bus.bus.log[0]
    assert (world.records, effect.landed_at_us, effect.items) == ("C✗", at_us, at_us // (100 * MS))


def test_a_delta_stop_finds_a_producer_that_had_finished_complete() -> None:
    world = World([(0, TextDelta("a")), (0, StreamEnd())])
    world.on(At.DELTA, lambda moment: moment.stop("enough"))
    world.run(streamed=True)
    assert world.bus.bus.log[0].outcome.status is Status.OK


# -- patches ------------------------------------------------------------------------------------------------------


def test_a_patch_is_for_its_round_alone() -> None:
    patched, plain = adding(*LOOP[:2], text("done")), adding(*LOOP[:2], text("done"))
    seen: list[int] = []
    patched.on(At.BEFORE_REQUEST, lambda moment: seen.append(moment.run.cursor))
    on_turn(patched, 2, preamble="pirate", temperature=1.0, max_tokens=5, tool_choice="required", active_tools=())
    runs = [patched.run(), plain.run()]
    assert failure(runs[0]) == "UnknownToolCall"
    for name, value in [("temperature", 1.0), ("max_tokens", 5), ("tool_choice", "required"), ("tools", [])]:
        assert patched.request(2)[name] == value
    assert (patched.said(2)[0], patched.request(1), seen) == (("system", "pirate"), plain.request(1), [1, 2])


def test_a_patched_run_stores_what_an_unpatched_one_does() -> None:
    patched, plain = adding(), adding()
    on_turn(patched, 1, preamble="x", extra_context=(Document("d", "t"),), max_tokens=5)
    assert patched.run().messages == plain.run().messages
    assert patched.request(2) == plain.request(2)


def test_an_augmentation_follows_a_patched_preamble() -> None:
    world = World(Answer((call("final_result", day=1, people=2),)), output=OutputSpec(SCHEMA, OutputMode.TOOL))
    on_turn(world, 1, preamble="P2")
    world.run()
    assert world.said(1)[0][1].startswith("P2\n\nWhen you have gathered")


def test_a_patched_history_takes_the_place_of_the_messages_uncut() -> None:
    world = adding(text("hi"), preamble="P")
    other = (user_message("u"), user_message([ResultPart("c", (TextPart("long"),))]))
    on_turn(world, 1, history=other)
    run = world.run()
    assert world.said(1) == [("system", "P"), ("user", "u"), ("user", "result long")]
    assert [message.text for message in run.messages] == ["hello", "hi"]


def test_extra_documents_come_after_the_rounds_own() -> None:
    world = World(text("hi"))
    world.agent.context.append(Document("s", "x"))
    on_turn(world, 1, extra_context=(Document("a", "y"),))
    on_turn(world, 1, extra_context=(Document("b", "z"),))
    world.run()
    assert [each["id"] for each in world.request(1)["documents"]] == ["s", "a", "b"]


@pytest.mark.parametrize(("patch", "sent"), [({"b": 3}, {"a": 1, "b": 3}), ("text", "text")])
def test_additional_params_merge_as_mappings_or_take_the_place(patch: Any, sent: Any) -> None:
    world = World(text("hi"), additional_params={"a": 1, "b": 2})
    on_turn(world, 1, additional_params=patch)
    world.run()
    assert world.request(1)["additional_params"] == sent


def test_active_tools_narrow_the_offer_and_what_may_run() -> None:
    world = World(calls(call("a")))
    for name in "abc":
        world.tool(name)
    on_turn(world, 1, active_tools=("b",))
    run = world.run()
    assert [tool["name"] for tool in world.request(1)["tools"]] == ["b"]
    assert failure(run) == "UnknownToolCall"


def test_a_minted_output_tool_stays_on_offer_whatever_the_choice() -> None:
    script = (calls(call("add")), text("x"), Answer((call("final_result", "c2", day=1, people=2),)))
    world = adding(*script, output=OutputSpec(SCHEMA, OutputMode.TOOL))
    on_turn(world, 2, tool_choice="none")
    world.run()
    assert [tool["name"] for tool in world.request(2)["tools"]] == ["add", "final_result"]
    assert world.request(2)["tool_choice"] == "none"


def test_three_hooks_are_in_one_request() -> None:
    world = World(text("hi"))
    on_turn(world, 1, preamble="pirate")
    on_turn(world, 1, extra_context=(Document("d", "t"),))
    on_turn(world, 1, tool_choice="required")
    world.run()
    request = world.request(1)
    assert (world.said(1)[0], request["documents"][0]["id"], request["tool_choice"]) == (
        ("system", "pirate"),
        "d",
        "required",
    )


def test_the_rule_of_merging_over_many_pairs() -> None:
    fields: dict[str, tuple[Any, ...]] = {
        "temperature": (None, 0.0, 1.0),
        "active_tools": (None, ("a", "b"), ("b", "c")),
        "additional_params": (None, {"k": 1, "l": 1}, {"k": 2}, "text"),
        "extra_context": ((), (Document("a", "x"),), (Document("b", "y"),)),
        "history": (None, (), (user_message("u"),)),
    }
    for name, values in fields.items():
        for one, two in product(values, values):
            merged = getattr(RequestPatch(**{name: one}).merge(RequestPatch(**{name: two})), name)
            if name == "extra_context":
                assert merged == (*one, *two)
            elif one is None or two is None:
                assert merged == (two if one is None else one)
            elif name == "active_tools":
                assert merged == tuple(each for each in one if each in two)
            elif isinstance(one, dict) and isinstance(two, dict):
                assert merged == {**one, **two}
            else:
                assert merged == two


# -- edits of parts -------------------------------------------------------------------------------------------------


def editing(number: int, make: Any, *script: Any) -> tuple[World, Any]:
    world = adding(*(script or (calls(call("add")), text("done"))))
    world.on(
        At.BEFORE_REQUEST,
        lambda moment: moment.turn.number == number and moment.edit(*make(moment.run.history)),
    )
    prompt = (TextPart("one", ("cite",)), ImagePart(Url("u")), TextPart("three"))
    return world, world.run(prompt)


def test_an_edit_is_in_its_round_alone_and_keeps_annotations_and_siblings() -> None:
    world, run = editing(2, lambda history: [TextEdit(history.ids(0)[0], "ONE")], *LOOP[:2], text("done"))
    said = [world.request(at)["chat_history"][0]["content"] for at in (1, 2, 3)]
    assert said[1][0] == {"type": "text", "text": "ONE", "annotations": ["cite"]}
    assert (said[0] == said[2], said[1][1:] == said[0][1:], run.messages[0].text) == (True, True, "onethree")
    assert run.turns[1].edits == []


def test_a_removed_result_takes_its_items_along_and_stays_stored() -> None:
    world, run = editing(
        2,
        lambda history: [
            TextEdit(history.ids(0)[0], "x"),
            TextEdit(history.ids(0)[0], "y"),
            RemoveEdit(history.ids(0)[2]),
            TextEdit(history.ids(0)[2], "back"),
            RemoveEdit(history.ids(2)[0]),
        ],
    )
    assert world.said(2) == [("user", ["y", "image", "back"]), ("assistant", "call add")]
    assert run.messages[2].parts[0].items == (JsonPart(42),)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda history: [TextEdit("r1:99", "x")], "edit of r1:99: r1 has no such part"),
        (lambda history: [TextEdit("r2:0", "x")], "edit of r2:0: r1 has no such part"),
        (
            lambda history: [TextEdit(history.ids(0)[1], "x")],
            "edit of r1:1: found image; only text can be given other words",
        ),
    ],
)
def test_an_edit_that_cannot_be_made_fails_the_run_before_its_request(make: Any, why: str) -> None:
    world, run = editing(1, make)
    assert (failure(run), run.ending.detail, world.records) == ("Content", why, "")


def test_an_edit_beside_a_replaced_history_fails_the_run() -> None:
    world = World(text("hi"))
    on_turn(world, 1, history=())
    world.on(At.BEFORE_REQUEST, lambda moment: moment.edit(RemoveEdit(moment.run.history.ids(0)[0])))
    assert (failure(world.run()), world.records) == ("Content", "")


def test_an_edit_for_good_at_the_gate_leaves_the_captured_request_alone() -> None:
    world = adding()

    def change(moment: Moment) -> None:
        if moment.effect is moment.run.turns[0].request:
            history = moment.run.history
            history.edit(history.ids(0)[0], TextPart("changed"))

    world.on(At.GATE, change)
    world.run()
    assert [world.said(1)[0], world.said(2)[0]] == [("user", "hello"), ("user", "changed")]


# -- the round ----------------------------------------------------------------------------------------------------


def once(act: Any) -> Any:
    return lambda moment: moment.turn.number == 1 and act(moment)


def test_a_retry_with_feedback_keeps_the_answer_and_the_feedback() -> None:
    world = World(text("half"), text("DONE"), max_turns=2)
    world.on(At.JUDGE_ROUND, once(lambda moment: moment.retry("say DONE")))
    run = world.run()
    assert world.said(2)[1:] == [("assistant", "half"), ("user", "say DONE")]
    assert (output(run), len(run.messages)) == ("DONE", 4)


def test_an_empty_answer_with_a_retry_is_asked_again() -> None:
    world = World(Answer(()), text("x"), max_turns=2)
    world.on(At.JUDGE_ROUND, once(lambda moment: moment.retry("say something")))
    run = world.run()
    assert (output(run), world.said(2)[1:]) == ("x", [("user", "say something")])


def test_a_retry_without_feedback_asks_the_same_again() -> None:
    world = World(text("a"), text("b"), max_turns=2)
    world.on(At.JUDGE_ROUND, once(lambda moment: moment.retry()))
    assert output(world.run()) == "b"
    assert world.request(1) == world.request(2)


def test_a_round_with_calls_cannot_be_asked_again() -> None:
    world = adding()
    world.on(At.JUDGE_ROUND, lambda moment: moment.retry("x"))
    assert (failure(world.run()), world.records) == ("Unsupported", "C")


def test_a_replaced_answer_is_read_and_the_record_keeps_the_models() -> None:
    world = World(text("original"))
    world.on(At.JUDGE_ROUND, lambda moment: moment.replace_answer(text("REPLACED")))
    run = world.run()
    assert (output(run), run.messages[1].text) == ("REPLACED", "REPLACED")
    assert world.bus.bus.log[0].outcome.value == text("original")


# -- a hook's own effects -----------------------------------------------------------------------------------------


def noting(world: World, at: At, when: Any = None, times: int = 1) -> None:
    def note(moment: Moment) -> None:
        if when is None or when(moment):
            for _ in range(times):
                moment.dispatch(EffectKind.CUSTOM, "notes", {"k": 1})

    world.on(at, note)


def with_notes(world: World) -> World:
    from tests.pipelines.agent.run_kit import Tool

    world.bus.serve("notes", Tool(world.clock, "noted"))
    return world


@pytest.mark.parametrize(
    ("moments", "records"),
    [
        ((At.RUN_STARTED,), "X C T C"),
        ((At.BEFORE_REQUEST,), "X C T X C"),
        ((At.JUDGE_OUTCOME,), "C T X C"),
        ((At.RUN_ENDED,), "C T C X"),
        ((At.RUN_STARTED, At.RUN_ENDED), "X C T C X"),
    ],
)
def test_a_hooks_effect_stands_where_its_moment_does(moments: tuple[At, ...], records: str) -> None:
    world = with_notes(adding())
    for at in moments:
        noting(world, at, lambda moment: moment.effect is None or moment.effect.call is not None)
    run = world.run()
    assert (world.records, output(run)) == (records, "done")
    notes = [effect for effect in world.bus.bus.log if effect.key == "notes"]
    assert {(effect.parent, effect.scope) for effect in notes} == {(None, "r1")}


def test_after_concurrent_tools_come_their_notes_and_then_the_next_request() -> None:
    world = with_notes(World(calls(call("add", "a"), call("add", "b")), text("done"), max_turns=2, concurrency=2))
    world.tool("add")
    noting(world, At.JUDGE_OUTCOME, lambda moment: moment.effect.call is not None)
    world.run()
    assert world.records == "C T T X X C"


def test_two_hundred_notes_keep_their_order() -> None:
    world = with_notes(World(text("hi")))
    noting(world, At.RUN_STARTED, times=200)
    world.run()
    assert world.records == "X " * 200 + "C"


def test_a_hook_may_call_a_tool_before_the_run_begins() -> None:
    from bargein.pipelines.agent.answers import ToolRequest

    world = adding()
    landed: list[Any] = []
    world.on(
        At.RUN_STARTED,
        lambda moment: moment.dispatch(
            EffectKind.TOOL_CALL,
            "golden/tool:add#0",
            ToolRequest("add", '{"x":1}'),
            lambda effect: landed.append(effect.outcome.value),
        ),
    )
    world.run()
    assert (world.records, landed) == ("T C T C", [42])


def test_a_key_nobody_serves_and_a_payload_without_a_plain_form_dispatch_nothing() -> None:
    world = with_notes(World(text("hi")))
    found: list[Any] = []

    def ask(moment: Moment) -> None:
        found.append(moment.dispatch(EffectKind.CUSTOM, "nobody", {}))
        with pytest.raises(ValueError, match=r"payload of notes: .*accepted is plain data"):
            moment.dispatch(EffectKind.CUSTOM, "notes", object())

    world.on(At.RUN_STARTED, ask)
    world.run()
    assert (found, world.records) == ([None], "C")


def test_a_slow_stream_is_folded_as_it_comes() -> None:
    world = World(delta("a", "b"))
    seen: list[Any] = []
    world.on(At.DELTA, lambda moment: seen.append((world.clock.now // MS, moment.item.text)))
    assert (output(world.run(streamed=True)), seen) == ("ab", [(100, "a"), (200, "b")])
