"""Tools that are ``async def``: they await on the virtual clock, and nothing of asyncio's own time gets in."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.python_tools import ToolError, Tools
from bargein.sim.kernel.cancel import Cause
from tests.models.test_python_tools import MS, Rig


@pytest.fixture
def tools() -> Tools:
    return Tools()


def test_it_takes_the_time_that_it_sleeps_to_the_microsecond(tools: Tools) -> None:
    @tools.read_only
    async def look_up(place: str) -> dict[str, str]:
        """Looks a place up."""
        await asyncio.sleep(0.3)
        await asyncio.gather(asyncio.sleep(0.000_001), asyncio.sleep(0.7))
        return {"found": place}

    rig = Rig(tools)
    assert rig.run(("look_up", {"place": "Bern"})) == [('{"found":"Bern"}', False)]
    assert rig.timeline.of("tool.finished")[0]["t"] == 1_000_000


def test_one_that_never_waits_answers_on_its_instant(tools: Tools) -> None:
    @tools.read_only
    async def now() -> str:
        return "at once"

    rig = Rig(tools)
    assert rig.run(("now", {})) == [("at once", False)]
    assert rig.timeline.of("tool.finished")[0]["t"] == 0


@pytest.mark.parametrize(("sleeps_s", "answer"), [(0.4, "done"), (0.400_001, None)])
def test_a_result_on_the_instant_of_its_timeout_wins(tools: Tools, sleeps_s: float, answer: str | None) -> None:
    @tools.read_only(timeout="400ms")
    async def slow() -> str:
        await asyncio.sleep(sleeps_s)
        return "done"

    [(content, failed)] = Rig(tools).run(("slow", {}))
    assert (failed, content == "done") == (answer is None, answer is not None)


def test_calls_of_one_session_share_a_loop_and_its_locks(tools: Tools) -> None:
    held: list[str] = []

    class Desk:
        lock: asyncio.Lock | None = None

    @tools.side_effect
    async def book(name: str) -> str:
        """Books; one at a time."""
        Desk.lock = Desk.lock or asyncio.Lock()
        async with Desk.lock:
            held.append(name)
            await asyncio.sleep(1)
        return name

    rig = Rig(tools)
    assert rig.run(*[("book", {"name": name}) for name in "abc"]) == [("a", False), ("b", False), ("c", False)]
    assert held == ["a", "b", "c"]
    assert [record["t"] for record in rig.timeline.of("tool.finished")] == [1_000_000, 2_000_000, 3_000_000]


def test_an_error_of_a_tool_is_reported_and_any_other_is_a_crash(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    @tools.read_only
    async def full() -> str:
        await asyncio.sleep(0.1)
        raise ToolError("we are full")

    @tools.read_only
    async def broken() -> str:
        await asyncio.sleep(0.1)
        raise KeyError("x")

    with caplog.at_level(logging.ERROR, "bargein.tools"):
        (said, one), (_, other) = Rig(tools).run(("full", {}), ("broken", {}))
    assert (one, other, "we are full" in said) == (True, True, True)
    assert [record.message for record in caplog.records] == [
        "tool broken crashed in call t1.1: it raised KeyError: 'x'",
    ]


def test_a_cancelled_call_is_told_where_it_waits_and_may_clean_up_on_that_instant(tools: Tools) -> None:
    told: list[tuple[int, str]] = []
    rig: Rig

    @tools.read_only
    async def slow() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            told.append((rig.clock.now, "cancelled"))
            await asyncio.sleep(0)
            told.append((rig.clock.now, "cleaned up"))
            raise
        return "done"

    rig = Rig(tools)
    rig.execute(("slow", {}))
    rig.clock.run(until=700 * MS)
    rig.token.cancel(Cause.BARGE_IN)
    rig.clock.run()
    assert told == [(700 * MS, "cancelled"), (700 * MS, "cleaned up")]


def test_one_that_waits_on_after_its_cancellation_is_closed(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    @tools.read_only
    async def stubborn() -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
            ended.append("went on")
        return "done"

    rig = Rig(tools)
    rig.execute(("stubborn", {}))
    rig.clock.run(until=700 * MS)
    rig.token.cancel(Cause.BARGE_IN)
    with caplog.at_level(logging.ERROR, "bargein.tools"):
        rig.clock.run()
    assert ended == []
    assert [record.message for record in caplog.records] == [
        "tool stubborn crashed in call t1.0: it went on after its cancellation, and was closed",
    ]


def test_a_simulation_may_run_inside_a_loop_that_runs_already(tools: Tools) -> None:
    @tools.side_effect(filler_after=None)
    async def book_table(day: str, people: int) -> dict[str, Any]:
        """Books a table."""
        await asyncio.sleep(2.4)
        return {"booking": f"BK-{people}"}

    async def notebook() -> tuple[str, asyncio.AbstractEventLoop]:
        around = asyncio.get_running_loop()
        result = sim.run("barge_in_during_booking", tools=tools)
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is around
        return result.digest, around

    inside, _ = asyncio.run(notebook())
    assert inside == sim.run("barge_in_during_booking", tools=tools).digest


def test_a_call_of_it_takes_part_as_a_scripted_one_of_the_same_latency_does(tools: Tools) -> None:
    @tools.side_effect(description="Books a table.", filler_after=None)
    async def book_table(day: str, people: int) -> dict[str, Any]:
        await asyncio.sleep(2.4)
        return {"booking": "BK"}

    times = [
        [(record["t"], record["kind"]) for record in result.records if record["kind"].startswith(("tool", "playout"))]
        for result in (
            sim.run("interrupted_booking", tools=tools),
            sim.run(
                "interrupted_booking", set={"tools.book_table.latency": "2.4s", "tools.book_table.filler_after": None}
            ),
        )
    ]
    assert times[0] == times[1]


@pytest.mark.parametrize("tie_seed", [None, 3])
def test_a_call_with_it_is_recorded_and_replayed_without_it(tools: Tools, tmp_path: Path, tie_seed: int | None) -> None:
    asked: list[int] = []

    @tools.side_effect(filler_after=None)
    async def book_table(day: str, people: int) -> dict[str, Any]:
        """Books a table."""
        asked.append(people)
        await asyncio.sleep(1.2)
        await asyncio.sleep(1.2)
        return {"booking": f"BK-{people}"}

    log = tmp_path / "call.jsonl"
    sim.run("barge_in_during_booking", tools=tools, record=log, tie_seed=tie_seed)
    assert asked == [2, 3]
    for visible in (False, True):
        assert sim.replay(log, tools=tools, visible=visible).equal
    assert asked == [2, 3]
