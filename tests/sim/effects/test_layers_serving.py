"""Keys with a number of places, and handlers that are replaced while they serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.layers import Approval, Ask, Dispatch, Layer, LayeredBus, Patch, Suspend
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.reports import ReportKind
from bargein.sim.effects.serving import Places
from bargein.sim.effects.sources import Pause, SourceHandler
from bargein.sim.effects.streams import LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.pipelines.agent.run_kit import S, Tool, World, call, calls, output, text

POLICIES: dict[str, tuple[dict[str, Any], int]] = {
    "serial, one at a time": ({"serial": True}, 1),
    "concurrent, one at a time": ({}, 1),
    "concurrent, two at a time": ({}, 2),
    "one place, two at a time": ({"capacity": 1}, 2),
}


class Desk:
    """A bus with one key, and what its askers are told."""

    def __init__(self, **more: Any) -> None:
        self.clock = Clock()
        self.bus = LayeredBus(EffectBus(self.clock))
        self.tool = Tool(self.clock, lambda payload: payload, S)
        self.bus.serve("desk", self.tool, **more)
        self.told: list[tuple[int, Any]] = []

    def ask(self, payload: Any = "said", **more: Any) -> Dispatch:
        return self.bus.dispatch(EffectKind.CUSTOM, "desk", payload, scope="s", on_landed=self.hear, **more)

    def hear(self, dispatch: Dispatch) -> None:
        assert dispatch.outcome is not None
        self.told.append((self.clock.now, dispatch.outcome.value))

    @property
    def started(self) -> list[tuple[int, str]]:
        return [(at_us // S, said) for at_us, said in self.tool.started]


# -- places -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_two_calls_leave_the_same_trace_under_every_policy(policy: str) -> None:
    serving, concurrency = POLICIES[policy]
    world = World(calls(call("add", "c0", x=3), call("add", "c1", x=1)), text("done"), max_turns=2)
    world.agent.settings.concurrency = concurrency
    grant = world.agent.grant("add")

    class Timed(Tool):
        """The first takes longer than the second."""

        def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
            self.delay_us = effect.payload.arguments["x"] * S
            return super().serve(effect)

    world.bus.serve(grant.key, Timed(world.clock, lambda request: request.args), **serving)
    assert output(world.run()) == "done"
    log = world.bus.bus.log
    assert [(effect.id, effect.key, getattr(effect.payload, "args", "")) for effect in log] == [
        (0, "golden/model:default", ""),
        (1, grant.key, '{"x":3}'),
        (2, grant.key, '{"x":1}'),
        (3, "golden/model:default", ""),
    ]
    assert world.said(2)[-1] == ("user", ['result {"x":3}', 'result {"x":1}'])
    assert log[3].dispatched_at_us == (3 * S if policy == "concurrent, two at a time" else 4 * S)


@pytest.mark.parametrize(("capacity", "starts"), [(1, [0, 1, 2, 3, 4]), (2, [0, 0, 1, 1, 2]), (5, [0] * 5)])
def test_as_many_are_served_at_a_time_as_there_are_places_in_the_order_of_coming(
    capacity: int, starts: list[int]
) -> None:
    desk = Desk(capacity=capacity)
    for name in "abcde":
        desk.ask(name)
    desk.clock.run()
    assert desk.started == list(zip(starts, "abcde", strict=True))
    assert [effect.payload for effect in desk.bus.bus.log] == list("abcde")


def test_who_gives_up_waiting_leaves_no_record_and_the_others_move_up() -> None:
    desk = Desk(capacity=1)
    desk.ask("a")
    second = desk.ask("b")
    desk.ask("c")
    desk.clock.call_in(1, Order.TIMER, lambda _: second.cancel(Cause.HANG_UP))
    desk.clock.run()
    assert desk.started == [(0, "a"), (1, "c")]
    assert desk.told == [(1, Cause.HANG_UP), (S, "a"), (2 * S, "c")]


def test_one_that_is_cancelled_gives_its_place_back() -> None:
    desk = Desk(capacity=1)
    first = desk.ask("a")
    desk.ask("b")
    desk.clock.call_in(S // 2, Order.TIMER, lambda _: first.cancel(Cause.HANG_UP))
    desk.clock.run()
    assert desk.tool.started == [(0, "a"), (S // 2, "b")]


def test_a_long_queue_that_is_answered_at_once_is_served_in_order() -> None:
    desk = Desk(capacity=1)

    class AtOnce:
        def serve(self, effect: Effect) -> None:
            effect.land(Outcome(Status.OK, effect.payload))

    desk.ask("first")
    desk.bus.replace("desk", AtOnce())
    for number in range(2_000):
        desk.ask(number)
    desk.clock.run()
    assert desk.told == [(S, "first"), *((S, number) for number in range(2_000))]


def test_who_comes_while_others_are_let_in_waits_behind_them() -> None:
    served: list[str] = []

    def serve(one: str) -> None:
        served.append(one)
        if one == "b":
            places.leave("b")  # its place is free, and c has been waiting for it
            places.enter("late")

    places: Places[str] = Places(1, serve)
    for one in "abc":
        places.enter(one)
    places.leave("a")
    assert (served, places.holders) == (["a", "b", "c"], ["c"])
    places.leave("nobody")
    places.leave("c")
    assert served == ["a", "b", "c", "late"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"capacity": 0}, "capacity is 0; accepted is a whole number from 1, or None for no bound"),
        ({"capacity": True}, "capacity is True; accepted is a whole number from 1, or None for no bound"),
        ({"capacity": 1.5}, "capacity is 1.5; accepted is a whole number from 1, or None for no bound"),
        ({"capacity": 2, "serial": True}, "serial, with a capacity of 2; accepted is one of the two"),
    ],
)
def test_what_is_no_capacity_is_refused_and_serves_nothing(more: dict[str, Any], told: str) -> None:
    bus = LayeredBus(EffectBus(Clock()))
    with pytest.raises(ValueError, match=f"^{told}$"):
        bus.serve("desk", Tool(bus.bus.clock, "x"), **more)
    assert not bus.serves("desk")


def test_a_key_keeps_the_capacity_it_has() -> None:
    desk = Desk(serial=True)
    desk.bus.wrap("desk", capacity=1)
    with pytest.raises(ValueError, match="desk is served 1 at a time; accepted is the same capacity, not 3"):
        desk.bus.wrap("desk", capacity=3)


# -- a key asked for from within itself ---------------------------------------------------------------------------


class Nesting:
    """Answers with what came of the same question, asked again on its behalf until it is so many deep."""

    def __init__(self, bus: LayeredBus, depth: int) -> None:
        self.bus, self.depth = bus, depth

    def serve(self, effect: Effect) -> None:
        def landed(dispatch: Dispatch) -> None:
            assert dispatch.outcome is not None
            failed = dispatch.outcome.status is Status.FAILED
            effect.land(Outcome(Status.OK, str(dispatch.outcome.value.kind) if failed else dispatch.outcome.value))

        if effect.payload == self.depth:
            effect.land(Outcome(Status.OK, "deep"))
        else:
            self.bus.dispatch(
                effect.kind, effect.key, effect.payload + 1, scope="s", on_landed=landed, parent=effect.id
            )


@pytest.mark.parametrize(("capacity", "said"), [(None, "deep"), (3, "deep"), (2, "request"), (1, "request")])
def test_a_key_is_nested_in_itself_while_there_is_a_place(capacity: int | None, said: str) -> None:
    bus = LayeredBus(EffectBus(Clock()))
    bus.serve("desk", Nesting(bus, 2), capacity=capacity)
    told: list[Any] = []
    bus.dispatch(EffectKind.CUSTOM, "desk", 0, scope="s", on_landed=lambda each: told.append(each.outcome.value))
    assert told == [said]
    assert [(effect.id, effect.parent) for effect in bus.bus.log] == [(0, None), (1, 0), (2, 1)][: capacity or 3]


def test_it_does_not_wait_for_a_place_that_somebody_else_holds_either() -> None:
    desk = Desk(capacity=2)
    desk.ask("a")
    desk.ask("b")
    desk.ask("c", parent=0)
    assert [value.kind for _, value in desk.told] == [ReportKind.REQUEST]
    assert [value.message for _, value in desk.told] == [
        "desk is served 2 at a time, and it is asked for from within itself"
    ]


def test_a_place_that_was_taken_while_it_waited_for_an_approval_is_not_waited_for() -> None:
    approval = Approval()

    class Approving(Layer):
        def before(self, ask: Ask) -> Suspend | None:
            return Suspend(approval) if ask.parent is not None else None

    desk = Desk(capacity=2)
    desk.bus.wrap("desk", Approving())
    desk.ask("a")
    desk.ask("nested", parent=0)
    desk.ask("b")
    approval.approve()
    assert [value.kind for _, value in desk.told] == [ReportKind.REQUEST]
    desk.clock.run()
    assert desk.started == [(0, "a"), (0, "b")]


def test_what_is_not_nested_waits_for_its_turn() -> None:
    desk = Desk(capacity=1)
    desk.bus.serve("other", Tool(desk.clock, None))
    desk.bus.dispatch(EffectKind.CUSTOM, "other", {}, scope="s", on_landed=lambda _: None)
    desk.ask("a")
    desk.ask("b", parent=0)
    desk.clock.run()
    assert desk.started == [(0, "a"), (1, "b")]


# -- handlers that are replaced -----------------------------------------------------------------------------------


def test_what_is_being_served_stays_with_whom_it_is_and_what_waits_goes_to_the_new_one() -> None:
    desk = Desk(capacity=1)
    desk.ask("a")
    desk.ask("b")
    new = Tool(desk.clock, lambda payload: f"new {payload}", S)
    desk.clock.call_in(S // 2, Order.TIMER, lambda _: desk.bus.replace("desk", new))
    desk.clock.run()
    assert desk.told == [(S, "a"), (2 * S, "new b")]
    assert (desk.started, new.started) == ([(0, "a")], [(S, "b")])


def test_the_layers_stay_and_what_was_asked_keeps_those_it_came_through() -> None:
    class Marking(Layer):
        def __init__(self, mark: str) -> None:
            self.mark = mark

        def before(self, ask: Ask) -> Patch:
            return Patch(ask.payload + self.mark)

        def after(self, ask: Ask, outcome: Outcome) -> Outcome:
            return Outcome(Status.OK, outcome.value + self.mark)

    desk = Desk()
    desk.bus.wrap("desk", Marking("1"))
    desk.ask("a")
    desk.bus.replace("desk", Tool(desk.clock, "new", S))
    desk.bus.wrap("desk", Marking("2"))
    desk.ask("b")
    desk.clock.run()
    assert desk.told == [(S, "a11"), (S, "new12")]
    assert [effect.payload for effect in desk.bus.bus.log] == ["a1", "b21"]


def test_a_stream_goes_on_from_the_source_that_it_began_with() -> None:
    clock = Clock()
    bus = LayeredBus(EffectBus(clock))
    streams = LiveStreams(clock)

    def says(*items: str) -> SourceHandler:
        def source(_: Effect) -> Any:
            for item in items:
                yield item
                yield Pause(S)
            return Outcome(Status.OK, items[-1])

        return SourceHandler(clock, streams, source)

    told: list[Any] = []

    def ask() -> None:
        bus.dispatch(
            EffectKind.COMPLETION,
            "desk",
            {},
            scope="s",
            on_item=lambda item: told.append((clock.now // S, item)),
            on_landed=lambda each: told.append((clock.now // S, each.outcome.value, "landed")),
        )

    bus.serve("desk", says("a", "b"), serial=True)
    ask()
    ask()
    clock.call_in(1, Order.TIMER, lambda _: bus.replace("desk", says("x")))
    clock.run()
    assert told == [(0, "a"), (1, "b"), (2, "b", "landed"), (2, "x"), (3, "x", "landed")]


@pytest.mark.parametrize("recorded", [True, False])
def test_the_bus_beneath_replaces_a_handler_from_the_next_dispatch_on(recorded: bool) -> None:
    clock = Clock()
    bus = Recorder().open(clock) if recorded else EffectBus(clock)
    bus.register("desk", Tool(clock, "old", S))
    told: list[tuple[int, Any]] = []

    def ask() -> Effect:
        return bus.dispatch(
            EffectKind.CUSTOM,
            "desk",
            {},
            scope="s",
            on_landed=lambda effect: told.append((effect.id, effect.outcome and effect.outcome.value)),
        )

    ask()
    cancelled = ask()
    bus.replace("desk", Tool(clock, "new", S), Descriptor("desk", "custom", "second"))
    ask()
    clock.call_in(S // 2, Order.TIMER, lambda _: cancelled.cancel(Cause.HANG_UP))
    clock.run()
    assert told == [(1, Cause.HANG_UP), (0, "old"), (2, "new")]
    assert (bus.descriptor("desk").label, bus.keys()) == ("second", ("desk",))


def test_a_key_that_nobody_serves_is_not_replaced() -> None:
    bus = LayeredBus(EffectBus(Clock()))
    with pytest.raises(ValueError, match="nobody serves handler key desk; served are none"):
        bus.replace("desk", Tool(bus.bus.clock, "x"))


@pytest.mark.parametrize("recorded", [True, False])
def test_what_a_handler_sends_past_its_end_is_neither_read_nor_recorded(recorded: bool) -> None:
    class Past:
        def serve(self, effect: Effect) -> None:
            effect.deliver("a")
            effect.land(Outcome(Status.OK, "done"))
            effect.deliver("late")
            effect.land(Outcome(Status.FAILED, "late"))

    clock = Clock()
    recorder = Recorder()
    bus = LayeredBus(recorder.open(clock) if recorded else EffectBus(clock))
    bus.serve("desk", Past(), serial=True)
    told: list[Any] = []
    for _ in range(2):
        bus.dispatch(
            EffectKind.CUSTOM,
            "desk",
            {},
            scope="s",
            on_item=told.append,
            on_landed=lambda each: told.append(each.outcome),
        )
    done = Outcome(Status.OK, "done")
    assert told == ["a", done, "a", done]
    assert [(effect.items, effect.outcome) for effect in bus.bus.log] == [(1, done)] * 2
    if recorded:
        assert [what for _, _, what in recorder.deliveries] == ["item", "land"] * 2
