"""Calls a round may not make: five ways to resolve them, also before the stream has ended."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import CallDone, PartDone, StreamError
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.parts import CallPart, TextPart
from bargein.pipelines.agent.run_settings import (
    InvalidCalls,
    OutputMode,
    OutputSpec,
    OutputToolConfig,
    ToolAccess,
    Unhandled,
)
from bargein.pipelines.agent.run_state import Resolution, ResolutionKind
from tests.pipelines.agent.run_kit import BUSY, MS, SCHEMA, World, call, calls, failure, named, output, text

PEER = "Tool not executed because another tool call in the same assistant turn was invalid."
FAIL = Resolution(ResolutionKind.FAIL)
IGNORE = Resolution(ResolutionKind.IGNORE)


def retry(feedback: str = "F") -> Resolution:
    return Resolution(ResolutionKind.RETRY, feedback)


def repair(name: str) -> Resolution:
    return Resolution(ResolutionKind.REPAIR, name)


def skip(reason: str = "no such tool; skipped") -> Resolution:
    return Resolution(ResolutionKind.SKIP, reason)


def resolving(*script: Any, by: Resolution | None = None, retries: int = 0, **settings: Any) -> World:
    """A world with the tool ``add`` whose hook resolves every invalid call in this way."""
    world = World(*script, **({"max_turns": 3, "invalid_calls": InvalidCalls(retries=retries)} | settings))
    world.tool("add")
    if by is not None:
        world.on(At.INVALID_CALL, lambda moment: moment.resolve(by))
    return world


def test_what_a_hook_says_goes_before_the_settings() -> None:
    world = resolving(calls(call("nope")), text("done"), by=skip())
    assert output(world.run()) == "done"


def test_nobody_resolving_fails_and_the_round_shows_what_it_might_have_called() -> None:
    world = resolving(calls(call("nope")))
    run = world.run()
    assert (failure(run), run.ending.detail, world.records) == ("UnknownToolCall", "nope", "C")
    assert (dict(run.turn.access.bindings), run.turn.access.allowed) == ({"add": "golden/tool:add#0"}, ("add",))
    assert World().agent.settings.invalid_calls is None
    assert InvalidCalls() == InvalidCalls(Unhandled.FAIL, 0)


@pytest.mark.parametrize(("parts", "said"), [((call("nope"),), ""), ((TextPart("hi"), call("nope")), "hi")])
def test_ignoring_leaves_the_rest_as_the_answer(parts: Any, said: str) -> None:
    world = resolving(calls(*parts), invalid_calls=InvalidCalls(Unhandled.IGNORE))
    assert (output(world.run()), world.records) == (said, "C")


def test_ignoring_beside_a_valid_call_drops_only_the_invalid_one() -> None:
    world = resolving(calls(call("nope", "c1"), call("add", "c2")), text("done"), by=IGNORE)
    run = world.run()
    assert (world.said(2)[1], world.records, output(run)) == (("assistant", "call add"), "C T C", "done")


def test_failing_beside_a_valid_call_runs_nothing() -> None:
    world = resolving(calls(call("add", "c1"), call("nope", "c2")), by=FAIL)
    assert (failure(world.run()), world.records) == ("UnknownToolCall", "C")


def test_a_retry_answers_every_call_and_runs_none() -> None:
    world = resolving(calls(call("nope", "c1"), call("add", "c2")), text("done"), by=retry(), retries=1)
    run = world.run()
    assert world.said(2)[1:] == [("assistant", ["call nope", "call add"]), ("user", ["result F", f"result {PEER}"])]
    assert (world.records, run.invalid_retries, run.history.statuses(2)) == ("C C", 1, ("Skipped", "Skipped"))
    assert run.turns[0].commit is None


@pytest.mark.parametrize(
    ("retries", "records", "ends"), [(2, "C C C", "done"), (1, "C C", "UnknownToolCall"), (0, "C", "UnknownToolCall")]
)
def test_retries_are_counted_against_the_run(retries: int, records: str, ends: str) -> None:
    world = resolving(calls(call("nope")), calls(call("nope", "c2")), text("done"), by=retry(), retries=retries)
    run = world.run()
    assert (world.records, getattr(run.ending, "output", None) or failure(run)) == (records, ends)


def test_a_repaired_call_is_stored_and_run_under_its_new_name() -> None:
    world = resolving(calls(call("ad", x=2)), text("done"), by=repair("add"))
    world.run()
    assert world.said(2)[1] == ("assistant", "call add")
    assert world.bus.bus.log[1].payload.to_dict() == {"name": "add", "args": '{"x":2}'}


def test_a_repair_to_a_name_that_may_not_be_called_is_judged_again() -> None:
    world = resolving(calls(call("ad")))
    asked: list[str] = []

    def once(moment: Any) -> None:
        asked.append(moment.invalid.call.name)
        if len(asked) == 1:
            moment.resolve(repair("nope2"))

    world.on(At.INVALID_CALL, once)
    assert (failure(world.run()), asked) == ("UnknownToolCall", ["ad", "nope2"])


def test_skipping_tells_the_reason_and_runs_nothing() -> None:
    world = resolving(calls(call("nope", "c1"), call("add", "c2")), text("done"), by=skip())
    world.run()
    assert world.said(2)[2] == ("user", ["result no such tool; skipped", f"result {PEER}"])
    assert world.records == "C C"


def test_skipping_under_choice_none_fails() -> None:
    world = resolving(calls(call("nope")), by=skip(), tool_choice="none")
    assert (failure(world.run()), world.records) == ("UnknownToolCall", "C")


def test_a_retry_under_choice_required_goes_on_to_the_end_of_the_turns() -> None:
    script = (calls(call("nope")), calls(call("add", "c2")))
    world = resolving(*script, by=retry(), retries=1, tool_choice="required", max_turns=2)
    run = world.run()
    assert (world.records, failure(run), run.ending.limit) == ("C C T", "MaxTurns", 2)


@pytest.mark.parametrize(
    ("first", "second", "records"),
    [(FAIL, retry(), "C"), (retry(), skip(), "C C"), (skip(), IGNORE, "C C"), (IGNORE, repair("add"), "C T C")],
)
def test_of_several_failing_goes_first_then_retrying_then_skipping(first: Any, second: Any, records: str) -> None:
    world = resolving(calls(call("one", "c1"), call("two", "c2")), text("done"), retries=5)
    world.on(At.INVALID_CALL, lambda moment: moment.resolve(first if moment.invalid.call.name == "one" else second))
    run = world.run()
    assert (world.records, run.invalid_retries) == (records, 1 if records == "C C" and first == retry() else 0)


# -- access -------------------------------------------------------------------------------------------------------


def test_access_keeps_running_allowing_and_advertising_apart() -> None:
    world = resolving(calls(call("add")))
    world.tool("sub")
    world.agent.settings.tool_access = ToolAccess({"sub": "golden/tool:sub#1"}, ("sub", "add"))
    assert failure(world.run()) == "UnknownToolCall"
    assert [tool["name"] for tool in world.request(1)["tools"]] == ["add", "sub"]


def test_nothing_allowed_denies_every_tool_and_changes_no_request() -> None:
    world = resolving(calls(call("add")), tool_access=ToolAccess(allowed=()))
    assert (failure(world.run()), [tool["name"] for tool in world.request(1)["tools"]]) == ("UnknownToolCall", ["add"])


def test_a_binding_may_be_called_without_being_advertised() -> None:
    world = World(calls(call("b")), text("done"), max_turns=2, tool_access=ToolAccess({"b": "golden/tool:add#0"}))
    tool = world.tool("add")
    world.run()
    assert len(tool.started) == 1


def test_a_change_of_access_is_for_later_rounds() -> None:
    world = resolving(calls(call("add")), calls(call("add", "c2")))
    world.on(At.REQUEST_FOLDED, lambda moment: setattr(moment.run.settings, "tool_access", ToolAccess(allowed=())))
    assert (failure(world.run()), world.records) == ("UnknownToolCall", "C T C")


def test_the_output_tools_name_avoids_bindings_or_collides_with_them() -> None:
    spec = {
        "output": OutputSpec(SCHEMA, OutputMode.TOOL),
        "tool_access": ToolAccess({"final_result": "golden/tool:add#0"}),
    }
    world = resolving(calls(call("final_result_1", day=1, people=2)), **spec)
    assert output(world.run()) == '{"day":1,"people":2}'
    world = resolving(**spec, output_tool=OutputToolConfig("final_result"))
    assert (failure(world.run()), world.records) == ("OutputToolCollision", "")


# -- in mid-stream --------------------------------------------------------------------------------------------------

END = (900 * MS, StreamEnd("tool_calls", {"total": 7}))
STREAM = [(100 * MS, TextDelta("Let me")), named("nope", 200 * MS), (300 * MS, CallDelta(0, arguments='{"x":1}')), END]
DONE = [(0, TextDelta("done")), (0, StreamEnd())]


def watched(world: World) -> list[Any]:
    seen: list[Any] = []
    world.on(At.INVALID_CALL, lambda moment: seen.append((world.clock.now // MS, moment.invalid.call.name)))
    return seen


def test_a_streamed_call_is_found_by_its_name_and_failing_acts_there_and_then() -> None:
    world = resolving(STREAM)
    seen = watched(world)
    run = world.run(streamed=True)
    assert (seen, failure(run), world.records) == ([(200, "nope")], "UnknownToolCall", "C✗")
    assert world.told("agent.run_ended")[0]["t"] == 200 * MS
    invalid = run.turn.invalid[0]
    assert ([part.type for part in invalid.prefix], invalid.position) == (["text", "tool_call"], 1)


def test_a_unary_answer_is_judged_when_it_has_landed() -> None:
    world = resolving(STREAM)
    seen = watched(world)
    world.run()
    assert (seen, world.records) == ([(900, "nope")], "C")


def test_a_retry_without_budget_acts_there_and_then() -> None:
    world = resolving(STREAM, by=retry())
    world.run(streamed=True)
    assert world.told("agent.run_ended")[0]["t"] == 200 * MS


@pytest.mark.parametrize("by", [skip("why"), retry("why")])
def test_asking_again_waits_for_the_end_and_keeps_what_had_come(by: Resolution) -> None:
    world = resolving(STREAM, DONE, by=by, retries=1)
    run = world.run(streamed=True)
    assert world.bus.bus.log[1].dispatched_at_us == 900 * MS
    assert run.messages[1].parts == (TextPart("Let me"), CallPart("r1.0", "nope", {}, "w1"))
    assert (world.said(2)[2], run.usage, output(run)) == (("user", "result why"), {"total": 7}, "done")


def test_a_repair_uses_the_call_as_it_came_in_the_end() -> None:
    stream = [named("ad", 200 * MS, id=""), (300 * MS, CallDelta(0, "w9", arguments='{"x":1}')), END]
    world = resolving(stream, DONE, by=repair("add"))
    run = world.run(streamed=True)
    assert run.messages[1].parts == (CallPart("r1.0", "add", {"x": 1}, "w9"),)
    assert (world.bus.bus.log[1].payload.args, world.bus.bus.log[1].dispatched_at_us) == ('{"x":1}', 900 * MS)


def test_ignoring_is_for_the_open_call_and_not_for_one_that_uses_its_number_again() -> None:
    stream = [
        named("nope", 100 * MS),
        (200 * MS, CallDelta(0, name="nope")),
        (300 * MS, CallDone(0)),
        named("nope", 400 * MS, id="w2"),
        END,
    ]
    world = resolving(stream, by=IGNORE)
    seen = watched(world)
    assert (output(world.run(streamed=True)), seen) == ("", [(100, "nope"), (400, "nope")])


def test_whole_calls_and_names_that_come_with_the_end_are_found_too() -> None:
    world = resolving([(MS, PartDone(call("nope"))), (MS, StreamEnd())], DONE, by=skip())
    seen = watched(world)
    assert (output(world.run(streamed=True)), seen) == ("done", [(1, "nope")])


def test_a_broken_stream_ends_discovery() -> None:
    stream = [(100 * MS, StreamError(BUSY)), named("nope", 100 * MS), END]
    world = resolving(stream, provider_retries=0)
    seen = watched(world)
    run = world.run(streamed=True)
    assert (failure(run), seen, world.told("agent.run_ended")[0]["t"]) == ("Provider", [], 100 * MS)


def test_a_name_that_came_before_the_break_is_still_acted_on_at_the_break() -> None:
    stream = [named("nope", 100 * MS), (300 * MS, StreamError(BUSY)), END]
    world = resolving(stream, DONE, by=skip("why"))
    run = world.run(streamed=True)
    assert (output(run), world.said(2)[-1], world.bus.bus.log[1].dispatched_at_us) == (
        "done",
        ("user", "result why"),
        300 * MS,
    )
