"""Layers around handlers, serial keys, and effects dispatched on behalf of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.agent.answers import ToolReply, render_args
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.parts import TextPart
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Approval, Ask, Deny, Dispatch, Layer, LayeredBus, Patch, Suspend
from bargein.sim.effects.reports import ReportKind, report_of
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.pipelines.agent.run_kit import MS, S, Tool, World, call, calls, delta, failure, output, report, text


class Denying(Layer):
    def __init__(self, reason: str = "not here") -> None:
        self.reason = reason

    def before(self, ask: Ask) -> Deny:
        return Deny(self.reason)


class Patching(Layer):
    def __init__(self, kind: EffectKind | None = None, **arguments: Any) -> None:
        self.arguments = arguments
        self.kind = kind

    def before(self, ask: Ask) -> Patch:
        return Patch(replace(ask.payload, args=render_args(self.arguments)), self.kind)


class Replacing(Layer):
    def __init__(self, value: Any) -> None:
        self.value = value

    def after(self, ask: Ask, outcome: Outcome) -> Outcome:
        return Outcome(Status.OK, self.value)


class Approving(Layer):
    def __init__(self) -> None:
        self.approval = Approval()

    def before(self, ask: Ask) -> Suspend:
        return Suspend(self.approval)


class Cutting(Layer):
    def keeps(self, ask: Ask, item: Any) -> bool:
        return item.text != "b"


class Noting(Layer):
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen

    def before(self, ask: Ask) -> None:
        self.seen.append(f"{self.name} in")

    def after(self, ask: Ask, outcome: Outcome) -> Outcome:
        self.seen.append(f"{self.name} out")
        return outcome


def with_layers(*layers: Layer, value: Any = 42, delay_us: int = 0) -> tuple[World, Tool]:
    world = World(calls(call("add", x=17)), text("done"), max_turns=2)
    return world, world.tool("add", value, delay_us, layers)


def test_layers_nest_in_the_order_given() -> None:
    seen: list[str] = []
    world, _ = with_layers(Noting("outer", seen), Noting("inner", seen), value=lambda _: seen.append("handler") or "ok")
    world.run()
    assert seen == ["outer in", "inner in", "handler", "inner out", "outer out"]


def test_a_denial_is_a_result_and_no_record() -> None:
    world, tool = with_layers(Denying("not here"))
    run = world.run()
    assert (world.records, world.said(2)[-1], tool.started) == ("C C", ("user", "result not here"), [])
    assert run.history.statuses(2) == ("Denied",)


def test_the_record_has_the_innermost_request_and_the_handlers_answer() -> None:
    world, tool = with_layers(Patching(x=1), Patching(x=2), Replacing(99))
    world.run()
    effect = world.bus.bus.log[1]
    assert (effect.payload.args, effect.outcome.value, world.said(2)[-1]) == ('{"x":2}', 42, ("user", "result 99"))
    assert tool.started[0][1] == '{"x":2}'


def test_a_layers_patch_works_beneath_a_hooks() -> None:
    world, _ = with_layers(Patching(x=30, y=12))
    world.on(At.GATE, lambda moment: moment.effect.call is not None and moment.patch_arguments({"x": 40}))
    run = world.run()
    assert world.bus.bus.log[1].payload.args == '{"x":30,"y":12}'
    assert run.messages[1].parts[0].arguments == {"x": 17}


def test_a_patch_into_another_family_is_an_internal_error_that_the_model_sees() -> None:
    world, _ = with_layers(Patching(EffectKind.CUSTOM))
    world.run()
    message = "result a layer turned a tool_call into a custom; the family has to stay"
    assert (world.records, world.said(2)[-1]) == ("C C", ("user", message))


def test_a_layer_can_cancel_a_models_stream() -> None:
    world = World(delta("a", "b", "c"), layers=(Cutting(),))
    run = world.run(streamed=True)
    assert (failure(run), world.records, world.bus.bus.log[0].items) == ("Cancelled", "C✗", 2)
    assert world.told("agent.run_ended")[0]["t"] == 200 * MS


def test_a_denied_model_leaves_no_record_and_fails_the_run() -> None:
    world = World(text("hi"), layers=(Denying(),))
    run = world.run()
    assert (failure(run), str(report(run).kind), world.records) == ("Provider", "denied", "")


def test_a_hooks_denied_effect_is_told_so_and_the_run_goes_on() -> None:
    world = World(text("hi"))
    world.bus.serve("notes", Tool(world.clock, "noted"), Denying())
    told: list[Any] = []
    world.on(
        At.RUN_STARTED,
        lambda moment: moment.dispatch(
            EffectKind.CUSTOM, "notes", {}, lambda effect: told.append(str(report_of(effect.outcome).kind))
        ),
    )
    run = world.run()
    assert (told, world.records, output(run)) == (["denied"], "C", "hi")


@pytest.mark.parametrize(("deny", "records", "said"), [(None, "C T C", "result 42"), ("no", "C C", "result no")])
def test_a_suspended_call_waits_for_its_answer(deny: str | None, records: str, said: str) -> None:
    layer = Approving()
    world, tool = with_layers(layer)
    answer = layer.approval.approve if deny is None else lambda: layer.approval.deny(deny)
    world.clock.call_in(3 * S, Order.TIMER, lambda _: answer())
    world.run()
    assert (world.records, world.said(2)[-1], world.clock.now) == (records, ("user", said), 3 * S)
    assert [at_us for at_us, _ in tool.started] == ([3 * S] if deny is None else [])


def test_removing_the_run_cancels_what_waits_for_approval_and_leaves_its_record() -> None:
    layer = Approving()
    world, tool = with_layers(layer)
    run = world.run(until_us=S)
    world.runs.remove(run)
    assert (world.records, layer.approval.approve(), tool.started) == ("C T✗", False, [])
    world.clock.run()
    assert (world.records, world.bus.bus.running) == ("C T✗", 0)


# -- serial keys and nesting ----------------------------------------------------------------------------------------


class Nesting:
    """A tool that asks for something else, and answers with what came of it."""

    def __init__(
        self, world: World, key: str, kind: EffectKind = EffectKind.CUSTOM, later_us: int | None = None
    ) -> None:
        self.world = world
        self.key = key
        self.kind = kind
        self.later_us = later_us
        self.asked: list[Dispatch] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        if self.later_us is None:
            self.ask(effect)
        else:
            self.world.clock.call_in(self.later_us, Order.WORK, self.ask, effect)
        return None

    def ask(self, effect: Effect) -> None:
        def landed(dispatch: Dispatch) -> None:
            assert dispatch.outcome is not None
            if dispatch.outcome.status is Status.OK:
                value = dispatch.outcome.value
                effect.land(Outcome(Status.OK, value if isinstance(value, str) else "answered"))
            elif dispatch.outcome.status is Status.FAILED:
                kind = str(report_of(dispatch.outcome).kind).capitalize()
                effect.land(Outcome(Status.OK, ToolReply((TextPart(f"refused:{kind}"),))))

        if len(self.asked) < 3:
            dispatch = self.world.bus.dispatch(
                self.kind, self.key, effect.payload, scope=effect.scope, on_landed=landed, parent=effect.id
            )
            self.asked.append(dispatch)


def nested(world: World, name: str, nesting: Nesting, **more: Any) -> str:
    grant = world.agent.grant(name)
    world.bus.serve(grant.key, nesting, **more)
    return grant.key


def shape(world: World) -> list[tuple[str, int | None, str]]:
    return [(effect.key.rpartition(":")[2], effect.parent, effect.scope) for effect in world.bus.bus.log]


def looking_up(*names: str) -> World:
    return World(calls(*(call(name, f"c{at}") for at, name in enumerate(names))), text("done"), max_turns=2)


def test_what_a_tool_asks_for_belongs_to_it_at_any_depth() -> None:
    world = looking_up("lookup")
    world.bus.serve("x:note", Tool(world.clock, "noted", S))
    world.bus.serve("x:relay", Nesting(world, "x:note"))
    nested(world, "lookup", Nesting(world, "x:relay"))
    world.run()
    assert shape(world) == [
        ("default", None, "r1"),
        ("lookup#0", None, "r1"),
        ("relay", 1, "r1"),
        ("note", 2, "r1"),
        ("default", None, "r1"),
    ]
    assert world.said(2)[-1] == ("user", "result noted")


def test_a_completion_may_be_nested_in_a_tool() -> None:
    world = World(calls(call("lookup")), text("inner"), text("done"), max_turns=2)

    class Asking(Nesting):
        def ask(self, effect: Effect) -> None:
            request = self.world.bus.bus.log[0].payload

            def landed(dispatch: Dispatch) -> None:
                effect.land(Outcome(Status.OK, "looked up"))

            self.world.bus.dispatch(
                EffectKind.COMPLETION, self.key, request, scope=effect.scope, on_landed=landed, parent=effect.id
            )

    nested(world, "lookup", Asking(world, "golden/model:default"))
    run = world.run()
    assert (world.records, shape(world)[2], output(run)) == ("C T C C", ("default", 1, "r1"), "done")


@pytest.mark.parametrize("later_us", [None, S])
def test_a_serial_key_is_not_nested_in_itself_from_wherever_it_is_asked(later_us: int | None) -> None:
    world = looking_up("lookup")
    nested(world, "lookup", Nesting(world, "golden/tool:lookup#0", EffectKind.TOOL_CALL, later_us), serial=True)
    world.run()
    assert (world.records, world.said(2)[-1]) == ("C T C", ("user", "result refused:Request"))


def test_a_concurrent_key_is_nested_in_itself() -> None:
    world = looking_up("lookup")

    class Once(Nesting):
        def ask(self, effect: Effect) -> None:
            if effect.parent is None:
                super().ask(effect)
            else:
                effect.land(Outcome(Status.OK, "inner"))

    nested(world, "lookup", Once(world, "golden/tool:lookup#0", EffectKind.TOOL_CALL))
    world.run()
    assert (world.records, shape(world)[2]) == ("C T T C", ("lookup#0", 1, "r1"))


def test_a_serial_key_serves_one_after_the_other() -> None:
    world = looking_up("add", "add")
    world.agent.settings.concurrency = 2
    tool = world.tool("add", "ok", S, serial=True)
    world.run()
    assert [at_us for at_us, _ in tool.started] == [0, S]


def test_removing_a_run_takes_what_its_tool_asked_for_along_and_the_queued_leaves_no_record() -> None:
    world = looking_up("lookup")
    world.bus.serve("x:slow", Tool(world.clock, None), serial=True)
    nesting = Nesting(world, "x:slow")
    nested(world, "lookup", nesting)
    run = world.run()
    nesting.ask(world.bus.bus.log[1])
    assert len(nesting.asked) == 2
    world.runs.remove(run)
    assert world.records == "C T✗ X✗"
    assert [str(dispatch.outcome.status) for dispatch in nesting.asked if dispatch.outcome] == ["cancelled"] * 2
    assert world.bus.bus.running == 0


def test_an_answer_may_come_from_elsewhere_later() -> None:
    world = looking_up("lookup")
    world.tool("lookup", None)
    world.clock.call_in(3 * S, Order.DELIVERY, lambda _: world.bus.bus.log[1].land(Outcome(Status.OK, "late")))
    world.run()
    assert (world.records, world.said(2)[-1], world.clock.now) == ("C T C", ("user", "result late"), 3 * S)


def test_a_key_nobody_serves_is_told_without_a_record() -> None:
    bus = LayeredBus(EffectBus(Clock()))
    told: list[Any] = []
    bus.dispatch(EffectKind.CUSTOM, "nobody", {}, scope="s", on_landed=lambda each: told.append(each.outcome.value))
    assert [each.kind for each in told] == [ReportKind.HANDLER_UNAVAILABLE]
    assert bus.bus.log == []


def test_a_late_answer_after_a_cancellation_changes_nothing() -> None:
    clock = Clock()
    bus = LayeredBus(EffectBus(clock))
    bus.serve("x", Tool(clock, None), Replacing("replaced"))
    told: list[Any] = []
    dispatch = bus.dispatch(EffectKind.CUSTOM, "x", {}, scope="s", on_landed=lambda each: told.append(each.outcome))
    assert (dispatch.cancel(Cause.HANG_UP), dispatch.cancel(Cause.HANG_UP)) == (True, False)
    assert dispatch.effect is not None
    dispatch.effect.land(Outcome(Status.OK, "late"))
    assert (len(told), dispatch.effect.outcome) == (1, Outcome(Status.CANCELLED, Cause.HANG_UP))
