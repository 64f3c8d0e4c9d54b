"""The effect bus: every dispatch is one record, lands once, and nothing comes after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.errors import VoidRun

KEY = "agent/tool:lookup#0"


class Slow:
    """Delivers ``items`` a microsecond apart and lands with their number; stops when it is told to."""

    def __init__(self, clock: Clock, items: list[str]) -> None:
        self.clock = clock
        self.items = items
        self.stopped: list[tuple[int, Cause]] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        for number, item in enumerate(self.items, start=1):
            self.clock.call_in(number, Order.DELIVERY, effect.deliver, item)
        self.clock.call_in(10, Order.DELIVERY, effect.land, Outcome(Status.OK, len(self.items)))
        return lambda cause: self.stopped.append((self.clock.now, cause))


class Instant:
    """Delivers and lands before ``serve`` returns."""

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        effect.deliver("item")
        effect.land(Outcome(Status.FAILED, "no table"))
        return lambda cause: pytest.fail("there is nothing to stop")


class Desk:
    """A bus, and a log of all that comes back from it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bus = EffectBus(self.clock)
        self.log: list[tuple[int, str]] = []

    def dispatch(self, payload: Any = None, key: str = KEY, **more: Any) -> Effect:
        return self.bus.dispatch(
            EffectKind.TOOL_CALL,
            key,
            payload,
            scope="t1",
            on_item=lambda item: self.log.append((self.clock.now, f"item {item}")),
            on_landed=lambda effect: self.log.append((self.clock.now, f"landed {effect.outcome.status}")),
            **more,
        )


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def slow(desk: Desk) -> Slow:
    slow = Slow(desk.clock, ["a", "b"])
    desk.bus.register(KEY, slow)
    return slow


def test_items_and_the_outcome_come_back_on_their_instants(desk: Desk, slow: Slow) -> None:
    effect = desk.dispatch()
    assert (effect.running, desk.bus.running) == (True, 1)
    desk.clock.run()
    assert desk.log == [(1, "item a"), (2, "item b"), (10, "landed ok")]
    assert (effect.running, effect.outcome, desk.bus.running) == (False, Outcome(Status.OK, 2), 0)


def test_each_dispatch_is_one_record_in_order(desk: Desk, slow: Slow) -> None:
    first = desk.dispatch({"day": "friday"})
    desk.clock.call_at(5, Order.WORK, lambda _: desk.dispatch(parent=first.id))
    desk.clock.run(until=12)
    assert [effect.as_dict() for effect in desk.bus.log] == [
        {
            "id": 0,
            "key": KEY,
            "kind": "tool_call",
            "parent": None,
            "scope": "t1",
            "dispatched_at_us": 0,
            "landed_at_us": 10,
            "items": 2,
            "status": "ok",
        },
        {
            "id": 1,
            "key": KEY,
            "kind": "tool_call",
            "parent": 0,
            "scope": "t1",
            "dispatched_at_us": 5,
            "landed_at_us": None,
            "items": 2,
            "status": None,
        },
    ]
    assert [repr(effect) for effect in desk.bus.log] == [f"<effect 0 {KEY} ok>", f"<effect 1 {KEY} running>"]
    assert first.payload == {"day": "friday"}


def test_an_effect_lands_once_and_what_comes_after_is_dropped(desk: Desk, slow: Slow) -> None:
    effect = desk.dispatch()
    desk.clock.run()
    desk.log.clear()
    effect.land(Outcome(Status.CRASHED, "again"))
    effect.deliver("c")
    assert (effect.outcome, effect.items, effect.landed_at_us, desk.log) == (Outcome(Status.OK, 2), 2, 10, [])
    assert desk.bus.running == 0
    assert not effect.cancel(Cause.BARGE_IN)
    assert slow.stopped == []


def test_cancelling_stops_the_handler_once_and_lands_as_cancelled(desk: Desk, slow: Slow) -> None:
    effect = desk.dispatch()
    answers: list[bool] = []
    for _ in range(2):
        desk.clock.call_at(2, Order.INTERRUPTION, lambda _: answers.append(effect.cancel(Cause.BARGE_IN)))
    desk.clock.run()
    assert answers == [True, False]
    assert slow.stopped == [(2, Cause.BARGE_IN)]
    assert desk.log == [(1, "item a"), (2, "item b"), (2, "landed cancelled")]
    assert (effect.outcome, effect.landed_at_us) == (Outcome(Status.CANCELLED, Cause.BARGE_IN), 2)


@pytest.mark.parametrize("cancel_first", [True, False])
def test_an_outcome_on_the_instant_of_a_cancellation_stands(desk: Desk, slow: Slow, cancel_first: bool) -> None:
    def arm() -> None:
        desk.clock.call_at(10, Order.INTERRUPTION, lambda _: desk.bus.log[0].cancel(Cause.BARGE_IN))

    if cancel_first:
        arm()
    desk.dispatch()
    if not cancel_first:
        arm()
    desk.clock.run()
    assert desk.bus.log[0].outcome == Outcome(Status.OK, 2)
    assert slow.stopped == []


def test_a_detached_effect_runs_on_unheard_and_its_record_is_made(desk: Desk, slow: Slow) -> None:
    effect = desk.dispatch()
    desk.clock.call_at(1, Order.WORK, lambda _: effect.detach())
    desk.clock.run()
    assert desk.log == [(1, "item a")]
    assert (effect.outcome, effect.landed_at_us, effect.items, desk.bus.running) == (Outcome(Status.OK, 2), 10, 2, 0)
    assert slow.stopped == []


def test_an_outcome_may_land_inside_serve(desk: Desk) -> None:
    desk.bus.register(KEY, Instant())
    effect = desk.dispatch()
    assert desk.log == [(0, "item item"), (0, "landed failed")]
    assert (effect.outcome, effect.landed_at_us, desk.bus.running) == (Outcome(Status.FAILED, "no table"), 0, 0)
    assert not effect.cancel(Cause.HANG_UP)


def test_a_handler_with_nothing_to_stop_can_be_cancelled_too(desk: Desk) -> None:
    class Hangs:
        def serve(self, effect: Effect) -> None:
            return None

    desk.bus.register(KEY, Hangs())
    assert desk.dispatch().cancel(Cause.DEADLINE)
    assert desk.log == [(0, "landed cancelled")]


def test_nobody_has_to_listen_to_items(desk: Desk, slow: Slow) -> None:
    landed: list[int] = []
    effect = desk.bus.dispatch(
        EffectKind.COMPLETION, KEY, None, scope="t1", on_landed=lambda done: landed.append(done.items)
    )
    desk.clock.run()
    assert (landed, effect.items) == ([2], 2)


def test_a_key_that_nobody_serves_voids_the_run_and_leaves_no_record(desk: Desk) -> None:
    with pytest.raises(VoidRun) as caught:
        desk.dispatch(key="agent/memory")
    assert str(caught.value) == "no handler serves agent/memory; served are none"
    desk.bus.register(KEY, Instant())
    desk.bus.register("agent/model:default", Instant())
    with pytest.raises(VoidRun) as caught:
        desk.dispatch(key="agent/memory")
    assert str(caught.value) == f"no handler serves agent/memory; served are {KEY}, agent/model:default"
    assert (desk.bus.log, desk.bus.running, desk.log) == ([], 0, [])


def test_a_key_names_one_handler_and_the_first_stays(desk: Desk, slow: Slow) -> None:
    with pytest.raises(ValueError, match=f"^handler key {KEY} is taken; a key names one handler$"):
        desk.bus.register(KEY, Instant())
    assert desk.bus.keys() == (KEY,)
    assert desk.dispatch().running


def test_the_sets_of_kinds_and_statuses_are_closed() -> None:
    assert [str(kind) for kind in EffectKind] == [
        "completion",
        "tool_call",
        "memory",
        "retrieval",
        "embed",
        "rerank",
        "custom",
    ]
    assert [str(status) for status in Status] == ["ok", "failed", "crashed", "lost", "cancelled"]
