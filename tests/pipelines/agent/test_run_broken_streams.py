"""Calls named before their stream broke: each is acted on at the break, and nothing waits for what follows."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.answers import StreamError
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.parts import CallPart, TextPart
from bargein.pipelines.agent.run_settings import InvalidCalls
from bargein.pipelines.agent.run_state import Resolution, ResolutionKind
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import provider_response
from tests.pipelines.agent.run_kit import BUSY, MS, World, failure, named, output, report, text

GONE = provider_response(400, {"error": {"code": "gone"}})
TAIL = [
    (500 * MS, CallDelta(0, arguments="1}")),
    named("other", 600 * MS, 1),
    (700 * MS, StreamError(BUSY)),
    (900 * MS, StreamEnd("tool_calls", {"total": 7})),
]
DONE = [(0, TextDelta("done")), (0, StreamEnd())]


def breaking(error: Any, kind: ResolutionKind, said: str, *rest: Any, retries: int = 0) -> tuple[World, list[Any]]:
    """A stream that names a call nobody may make at 100 ms, breaks at 300 ms, and goes on; a hook resolves the call."""
    stream = [
        (50 * MS, TextDelta("Let me")),
        named("nope", 100 * MS),
        (200 * MS, CallDelta(0, arguments='{"x":')),
        (300 * MS, StreamError(error)),
        *TAIL,
    ]
    world = World(stream, *rest, max_turns=3, invalid_calls=InvalidCalls(retries=retries))
    world.tool("add")
    seen: list[Any] = []

    def resolve(moment: Any) -> None:
        seen.append((world.clock.now // MS, moment.invalid.call.name))
        moment.resolve(Resolution(kind, said))

    world.on(At.INVALID_CALL, resolve)
    return world, seen


def test_a_repair_does_not_wait_for_the_end_and_the_run_fails_as_its_provider_did() -> None:
    world, seen = breaking(GONE, ResolutionKind.REPAIR, "add")
    run = world.run(streamed=True)
    assert (failure(run), report(run), world.records) == ("Provider", GONE, "C✗")
    assert (seen, world.told("agent.run_ended")[0]["t"]) == ([(100, "nope")], 300 * MS)
    (turn,) = run.turns
    assert [(each.call.name, each.done) for each in turn.invalid] == [("add", True)]
    assert (len(run.messages), turn.batch) == (1, [])


def test_a_repair_whose_stream_breaks_in_passing_is_asked_again() -> None:
    world, seen = breaking(BUSY, ResolutionKind.REPAIR, "add", DONE)
    run = world.run(streamed=True)
    assert (output(run), world.records, world.bus.bus.log[1].dispatched_at_us) == ("done", "C✗ C", 300 * MS)
    assert seen == [(100, "nope")]


@pytest.mark.parametrize(("kind", "retries"), [(ResolutionKind.SKIP, 0), (ResolutionKind.RETRY, 1)])
def test_asking_again_takes_effect_at_the_break_with_what_had_come_by_then(kind: ResolutionKind, retries: int) -> None:
    world, seen = breaking(GONE, kind, "why", DONE, retries=retries)
    run = world.run(streamed=True)
    assert (output(run), world.records, world.bus.bus.log[1].dispatched_at_us) == ("done", "C✗ C", 300 * MS)
    assert run.messages[1].parts == (TextPart("Let me"), CallPart("r1.0", "nope", {}, "w1"))
    assert (world.said(2)[-1], run.usage, seen) == (
        ("user", "result why"),
        {},
        [(100, "nope")],
    )


def test_an_ignored_call_leaves_the_providers_failure() -> None:
    world, _ = breaking(GONE, ResolutionKind.IGNORE, "")
    run = world.run(streamed=True)
    assert (failure(run), world.told("agent.run_ended")[0]["t"]) == ("Provider", 300 * MS)


@pytest.mark.parametrize(
    ("end", "records"),
    [([], "C✗"), ([(300 * MS, StreamEnd())], "C"), ([(300 * MS, Outcome(Status.FAILED, GONE))], "C")],
)
def test_a_hook_judges_a_broken_stream_once_and_may_put_an_answer_in_its_place(end: Any, records: str) -> None:
    stream = [(100 * MS, TextDelta("Lost")), (300 * MS, StreamError(GONE)), *end, (400 * MS, TextDelta("late"))]
    world = World(stream)
    seen: list[Any] = []

    def judge(moment: Any) -> None:
        seen.append((world.clock.now, moment.effect.outcome))
        moment.replace_outcome(Outcome(Status.OK, text("mended", usage=3)))

    world.on(At.JUDGE_OUTCOME, judge)
    run = world.run(streamed=True)
    assert seen == [(300 * MS, Outcome(Status.FAILED, GONE))]
    assert (output(run), run.usage, world.records, len(run.messages)) == ("mended", {"total": 3}, records, 2)
    assert (run.turns[0].errors, run.turns[0].items) == ([(1, GONE)], [TextDelta("Lost"), StreamError(GONE)])
