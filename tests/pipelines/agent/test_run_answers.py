"""How an answer is read, what a run costs, how it is retried and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.endings import Failed, Failure, Settled
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.materialise import CHAIN
from bargein.pipelines.agent.parts import CallPart, JsonPart, ReasoningPart, ResultPart, TextPart
from bargein.pipelines.agent.run_settings import Backoff, Settings
from bargein.pipelines.agent.run_state import BACKOFF_OWNER
from bargein.sim.effects.reports import ReportKind, blocked_prompt, provider_response
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Order
from tests.pipelines.agent.run_kit import BUSY, MS, S, World, call, calls, delta, failure, output, report, text


def test_the_chain_stands_in_its_order() -> None:
    assert [link.__name__ for link in CHAIN] == [
        "land_memory",
        "resolve_invalid_defaults",
        "land_batch",
        "record_usage",
        "judge_invalid_calls",
        "read_turn",
        "materialise_assistant",
        "materialise_batch",
        "materialise_reprompt",
        "materialise_answer",
    ]


def test_runs_answered_on_one_instant_settle_in_the_order_of_their_spawning() -> None:
    world = World([(2 * MS, StreamEnd())], [(MS, TextDelta("b")), (2 * MS, StreamEnd())])
    first = world.runs.spawn(world.agent, "a", streamed=True)
    second = world.run("b", streamed=True)
    ended = world.told("agent.run_ended")
    assert [(each["t"], each["scope"]) for each in ended] == [(2 * MS, "r1"), (2 * MS, "r2")]
    assert (output(first), output(second)) == ("", "b")


def test_usage_is_counted_once_a_round() -> None:
    world = World(calls(call("add"), usage=10), text("done", 5), max_turns=2)
    world.tool("add", delay_us=S)
    run = world.run()
    assert (run.usage, len(run.messages)) == ({"total": 15}, 4)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_a_hook_replaces_costs_what_the_models_did_and_its_calls_are_numbered(streamed: bool) -> None:
    said = [(0, TextDelta("no")), (0, StreamEnd("stop", {"total": 7}))] if streamed else text("no", 7)
    world = World(said, delta("done") if streamed else text("done"), max_turns=2)
    world.tool("add", lambda request: request.arguments["of"])
    mine = calls(call("add", "", of=1), call("add", "", of=2), usage=100)

    def judge(moment: Any) -> None:
        if moment.turn.number == 1:
            moment.replace_answer(mine)

    world.on(At.JUDGE_ROUND, judge)
    run = world.run(streamed=streamed)
    assert (output(run), run.usage) == ("done", {"total": 7})
    asked, answered = run.messages[1].parts, run.messages[2].parts
    assert [part.id for part in asked if isinstance(part, CallPart)] == ["r1.0", "r1.1"]
    results = [(part.call_id, part.items) for part in answered if isinstance(part, ResultPart)]
    assert results == [("r1.0", (JsonPart(1),)), ("r1.1", (JsonPart(2),))]


def test_a_counter_no_wire_sent_is_none_and_not_zero() -> None:
    world = World(Answer((TextPart("x"),), usage={"reasoning": None, "total": 3}))
    assert world.run().usage == {"reasoning": None, "total": 3}


def test_a_providers_error_fails_the_run_with_its_report() -> None:
    error = provider_response(401, {"error": {"type": "auth"}})
    world = World(error)
    run = world.run()
    assert (failure(run), report(run), world.records) == ("Provider", error, "C")
    assert (error.http_status, error.code, error.kind) == (401, "auth", ReportKind.PROVIDER_RESPONSE)


def test_a_completion_removed_while_it_streams_fails_the_run_as_cancelled() -> None:
    world = World(delta("a", "b", "c"), provider_retries=3)
    run = world.run(streamed=True, until_us=250 * MS)
    run.turn.request.dispatch.cancel(Cause.DISCARDED)
    world.clock.run()
    assert (failure(run), world.records, world.bus.bus.log[0].items) == ("Cancelled", "C✗", 2)


@pytest.mark.parametrize("parts", [(), (TextPart(""),)])
def test_an_empty_answer_settles_as_empty_and_is_not_kept(parts: Any) -> None:
    run = World(Answer(parts)).run()
    assert (output(run), len(run.messages)) == ("", 1)


def test_an_empty_text_with_annotations_is_kept() -> None:
    run = World(Answer((TextPart("", ("cite",)),))).run()
    assert (output(run), run.messages[1].parts) == ("", (TextPart("", ("cite",)),))


def test_thoughts_are_kept_and_are_no_part_of_the_result() -> None:
    thought = ReasoningPart("", "sealed", "r1", {"k": 1})
    run = World(Answer((thought, TextPart("x")))).run()
    assert (output(run), run.messages[1].parts[0]) == ("x", thought)


@pytest.mark.parametrize(
    ("finish", "said"),
    [
        ("length", "the model stopped at its length limit before it gave an answer"),
        ("content_filter", "the provider's content filter stopped the model before it gave an answer"),
    ],
)
def test_an_answer_cut_off_before_it_began_fails_and_keeps_nothing(finish: str, said: str) -> None:
    run = World(Answer((ReasoningPart("hm"),), finish)).run()
    assert (failure(run), report(run).kind, report(run).message) == ("Provider", "response", said)
    assert len(run.messages) == 1
    assert output(World(Answer((TextPart("half"),), finish)).run()) == "half"
    assert output(World(Answer((ReasoningPart("hm"),), "stop")).run()) == ""


def test_a_blocked_prompt_is_not_asked_again() -> None:
    world = World(blocked_prompt("SAFETY"), provider_retries=3)
    run = world.run()
    found = report(run)
    assert (world.records, found.kind, found.refusal, found.retryable, found.code, found.http_status) == (
        "C",
        "provider_response",
        True,
        False,
        "SAFETY",
        None,
    )


# -- budgets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "run", "records", "limit"),
    [(None, None, "C T", 1), (2, None, "C T C T", 2), (5, 2, "C T C T", 2)],
)
def test_turns_are_the_runs_or_the_agents_or_one(agent: Any, run: Any, records: str, limit: int) -> None:
    world = World(*(calls(call("add", f"c{at}")) for at in range(9)), max_turns=agent)
    world.tool("add")
    ended = world.run(max_turns=run)
    assert (world.records, ended.ending) == (records, Failed(Failure.MAX_TURNS, limit=limit))
    assert all(str(effect.outcome.status) == "ok" for effect in world.bus.bus.log)
    assert len(ended.messages) == 1 + 2 * limit


def test_a_run_has_one_ending() -> None:
    world = World(text("hi"), BUSY, provider_retries=0)
    settled, failed = world.run(), world.run()
    for run in (settled, failed):
        world.runs.cancel(run, "late")
    world.clock.run()
    assert (settled.ending, failure(failed)) == (Settled("hi"), "Provider")
    assert len(world.told("agent.run_ended")) == 2


# -- retries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "run", "asked"), [(None, None, 4), (1, None, 2), (1, 0, 1)])
def test_retries_are_the_runs_or_the_agents_or_three(agent: Any, run: Any, asked: int) -> None:
    world = World(*[BUSY] * 9, provider_retries=agent)
    ended = world.run(settings=Settings(provider_retries=run))
    assert (world.records, failure(ended), report(ended)) == (" ".join("C" * asked), "Provider", BUSY)
    assert all(request == world.request(1) for request in world.model.requests)


def test_a_lost_round_leaves_no_message_and_costs_no_turn() -> None:
    world = World(BUSY, text("hi"))
    run = world.run(max_turns=1)
    assert (output(run), run.cursor, run.provider_retried, len(run.messages)) == ("hi", 1, 1, 2)
    assert world.told("agent.provider_retry") == [
        {
            "t": 0,
            "seq": 2,
            "kind": "agent.provider_retry",
            "epoch": 1,
            "scope": "r1",
            "attempt": 1,
            "budget": 3,
            "reason": BUSY.message,
        }
    ]


def test_a_retry_runs_no_tool_again() -> None:
    world = World(calls(call("add")), BUSY, text("done"), max_turns=2)
    tool = world.tool("add")
    assert (output(world.run()), world.records, len(tool.started)) == ("done", "C T C C", 1)


def test_a_report_that_is_not_retryable_ends_the_run_at_once() -> None:
    error = provider_response(400, "no")
    world = World(error)
    assert (report(world.run()), world.records) == (error, "C")


def test_backoff_doubles_up_to_its_maximum_on_the_virtual_clock() -> None:
    world = World(BUSY, BUSY, BUSY, text("hi"), backoff=Backoff(100 * MS, 350 * MS))
    seen: list[Any] = []
    world.on(At.REQUEST_FOLDED, lambda moment: seen.append((moment.turn.attempt, moment.effect.held)))
    run = world.run()
    assert [effect.dispatched_at_us // MS for effect in world.bus.bus.log] == [0, 100, 300, 650]
    assert (seen, output(run)) == ([(0, False), (1, False), (2, False), (3, False)], "hi")


def test_the_runs_backoff_goes_before_the_agents_and_is_held_by_its_owner() -> None:
    world = World(BUSY, text("hi"), backoff=Backoff(100 * MS, S))
    held: list[Any] = []
    world.on(At.GATE, lambda moment: held.append(tuple(moment.effect.holds)))
    world.run(settings=Settings(backoff=Backoff(50 * MS, S)))
    assert [effect.dispatched_at_us for effect in world.bus.bus.log] == [0, 50 * MS]
    assert held == [(), (BACKOFF_OWNER,)]
    assert BACKOFF_OWNER == "rig-ecs/backoff"


def test_a_large_attempt_waits_the_maximum() -> None:
    assert [Backoff(100, 250).delay_us(attempt) for attempt in (1, 2, 3, 4000)] == [100, 200, 250, 250]


def test_without_a_backoff_the_retry_is_on_the_same_instant() -> None:
    world = World(BUSY, text("hi"), delay_us=7)
    world.run()
    assert [effect.dispatched_at_us for effect in world.bus.bus.log] == [0, 7]


def test_a_gate_may_hold_a_retry_and_release_it_when_it_likes() -> None:
    world = World(BUSY, text("hi"), delay_us=7)

    def hold(moment: Any) -> None:
        if moment.turn.attempt == 1:
            moment.effect.hold("host")
            world.clock.call_in(S, Order.TIMER, moment.effect.release, "host")

    world.on(At.GATE, hold)
    world.run()
    assert [effect.dispatched_at_us for effect in world.bus.bus.log] == [0, 7 + S]
