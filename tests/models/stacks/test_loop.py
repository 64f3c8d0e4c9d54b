"""The virtual-time event loop: instants, order, and what it refuses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from bargein.models.stacks.loop import STARTED_AT_S, ClockLoop, clock_as_time
from bargein.sim.kernel.clock import Clock, Limits, Order
from bargein.sim.kernel.errors import Deadlock, Livelock


@pytest.fixture
def loop() -> Iterator[ClockLoop]:
    made = ClockLoop(Clock())
    yield made
    made.close()


def run(loop: ClockLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return loop.run_until_complete(work)


def test_sleeping_takes_virtual_time_only(loop: ClockLoop) -> None:
    async def work() -> list[int]:
        await asyncio.sleep(0.000_029)  # as a float of microseconds a little less
        seen = [loop.clock.now]
        await asyncio.sleep(3600)
        seen.append(loop.clock.now)
        await asyncio.sleep(0.000_001)
        return [*seen, loop.clock.now]

    assert run(loop, work()) == [29, 3_600_000_029, 3_600_000_030]


def test_callbacks_keep_their_order_and_timers_of_an_instant_go_first(loop: ClockLoop) -> None:
    seen: list[str] = []

    def second() -> None:
        loop.call_soon(seen.append, "soon")
        loop.call_soon(seen.append, "soon after")
        loop.call_at(loop.time(), seen.append, "timer of this instant")

    async def work() -> None:
        loop.call_later(1, second)
        loop.call_later(1, seen.append, "timer")
        loop.clock.call_at(1_000_000, Order.DELIVERY, seen.append, "delivery")
        await asyncio.sleep(2)

    run(loop, work())
    assert seen == ["delivery", "timer", "timer of this instant", "soon", "soon after"]


def test_a_cancelled_callback_is_not_made(loop: ClockLoop) -> None:
    seen: list[object] = []
    loop.set_exception_handler(lambda _, context: seen.append(context["message"]))

    async def work() -> None:
        loop.call_later(1, seen.append, "cancelled").cancel()
        loop.call_soon(seen.append, "cancelled").cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        seen.append(loop.clock.now)

    run(loop, work())
    assert seen == [5_000_000]


def test_work_for_a_pool_of_threads_is_done_in_place(loop: ClockLoop) -> None:
    async def work() -> tuple[int, int]:
        there = await asyncio.to_thread(threading.get_ident)
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, lambda: 1 // 0)
        return there, loop.clock.now

    assert run(loop, work()) == (threading.get_ident(), 0)


def test_another_thread_is_refused(loop: ClockLoop) -> None:
    refused: list[str] = []

    def elsewhere() -> None:
        try:
            loop.call_soon_threadsafe(print)
        except RuntimeError as error:
            refused.append(str(error))

    async def work() -> None:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    run(loop, work())
    assert refused == ["a virtual-time loop takes no calls from other threads: they would come at any instant"]


def test_waiting_for_nothing_is_a_deadlock(loop: ClockLoop) -> None:
    async def work() -> None:
        await asyncio.sleep(1)
        await loop.create_future()

    with pytest.raises(Deadlock, match="nothing is left to happen at 1000000 us, and the loop still waits"):
        run(loop, work())


def test_a_loop_that_never_ends_reaches_its_bound() -> None:
    loop = ClockLoop(Clock(limits=Limits(events=1000)))

    async def work() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match="more than 1000 events"):
        run(loop, work())
    loop.close()


def test_python_tells_the_clocks_time_inside_the_block_only(loop: ClockLoop) -> None:
    real = time.time, time.perf_counter_ns, time.process_time

    async def work() -> tuple[float, int]:
        await asyncio.sleep(1.5)
        return time.time(), time.perf_counter_ns()

    with clock_as_time(loop.clock):
        assert run(loop, work()) == (STARTED_AT_S + 1.5, STARTED_AT_S * 10**9 + 1_500_000_000)
        assert time.process_time is real[2]
    assert (time.time, time.perf_counter_ns, time.process_time) == real
