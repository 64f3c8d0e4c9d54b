"""Faults of tools that are ``async def``: when they go on, on which loop, and how they are stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bargein.models import async_tools
from bargein.models.async_tools import ToolLoop
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

TOOLS = "tests/models/test_async_tools.py::"


@mutant(tests=(TOOLS + "test_a_result_on_the_instant_of_its_timeout_wins",))
def a_coroutine_goes_on_as_work(patch: Patch) -> None:
    """What it returns on the instant of its timeout comes too late."""

    def late(self: ToolLoop, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = asyncio.Handle(callback, args, self, context)
        self.clock.call_in(0, async_tools.Order.WORK, self._step, handle)
        return handle

    patch.setattr(ToolLoop, "call_soon", late)


@mutant(tests=(TOOLS + "test_calls_of_one_session_share_a_loop_and_its_locks",))
def every_call_has_a_loop_of_its_own(patch: Patch) -> None:
    """A lock that two calls share belongs to neither."""

    class Forgetful(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            return None

    patch.setattr(async_tools, "_loops", Forgetful())


@mutant(tests=(TOOLS + "test_a_simulation_may_run_inside_a_loop_that_runs_already",))
def the_loop_around_is_forgotten(patch: Patch) -> None:
    """A notebook's own loop is gone after the first simulation."""

    def step(self: ToolLoop, handle: Any) -> None:
        if not handle.cancelled():
            asyncio._set_running_loop(self)
            handle._run()
            asyncio._set_running_loop(None)

    patch.setattr(ToolLoop, "_step", step)


@mutant(tests=(TOOLS + "test_one_that_waits_on_after_its_cancellation_is_closed",))
def a_cancelled_coroutine_may_go_on(patch: Patch) -> None:
    """A call that nobody waits for books all the same."""
    patch.setattr("bargein.sim.kernel.clock.Clock.call_last", lambda self, at_us, function, argument=None: None)
