"""Layers that take their time over a verdict: what is recorded, what the asker is told, and what a replay repeats."""

from __future__ import annotations

from collections.abc import Callable
from json import dumps, loads
from typing import Any

import pytest

from bargein.pipelines.agent.run_plain import RunPlain
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Approval, Ask, Deny, Dispatch, Later, Layer, LayeredBus, Suspend
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.effects.sources import Pause, SourceHandler
from bargein.sim.effects.streams import LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.pipelines.agent.run_kit import S, World, call, calls, failure, output, text

ANSWER = Outcome(Status.OK, 42)
GIVEN_UP = Outcome(Status.CANCELLED, Cause.HANG_UP)


class Judging(Layer):
    """Takes its time over every verdict."""

    def __init__(self) -> None:
        self.approval = Approval()
        self.seen: list[Outcome] = []

    def after(self, ask: Ask, outcome: Outcome) -> Later:
        self.seen.append(outcome)
        return Later(self.approval)


class Answering:
    """Answers after a while, and is told when it is stopped."""

    def __init__(self, clock: Clock, outcome: Outcome = ANSWER, delay_us: int = S) -> None:
        self.clock, self.outcome, self.delay_us = clock, outcome, delay_us
        self.started: list[int] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        self.started.append(self.clock.now)
        timer = self.clock.call_in(self.delay_us, Order.DELIVERY, effect.land, self.outcome)
        return lambda _: timer.cancel()


class Desk:
    """A recorded bus with one handler that answers at 1 s, and what the asker is told."""

    def __init__(self, *layers: Layer, recorder: Recorder | None = None, **more: Any) -> None:
        self.clock = Clock()
        self.recorder = recorder or Recorder()
        self.bus = LayeredBus(self.recorder.open(self.clock))
        self.handler = Answering(self.recorder.clock)
        self.bus.serve("desk", self.handler, *layers, **more)
        self.told: list[tuple[int, Outcome]] = []

    def ask(self, parent: int | None = None, key: str = "desk") -> Dispatch:
        return self.bus.dispatch(EffectKind.CUSTOM, key, {}, scope="s", on_landed=self.hear, parent=parent)

    def hear(self, dispatch: Dispatch) -> None:
        assert dispatch.outcome is not None
        self.told.append((self.clock.now, dispatch.outcome))

    def at(self, at_us: int, act: Callable[..., object], *args: Any) -> None:
        self.clock.call_at(at_us, Order.INTERRUPTION, lambda _: act(*args))

    def log(self) -> EffectLog:
        """What was recorded, once through plain data and back."""
        data = [record.to_dict() for record in self.recorder.records(RunPlain())]
        read = [EffectRecord.from_dict(each, f"records[{at}]", at) for at, each in enumerate(data)]
        return EffectLog({"deliveries": batches_of(self.recorder.deliveries)}, read)


def kept(log: EffectLog) -> list[tuple[str | None, Any, int | None]]:
    return [(record.status, record.value, record.landed_at_us) for record in log.records]


# -- what is told -----------------------------------------------------------------------------------------------


def test_the_asker_is_told_when_the_verdict_is_given_and_the_record_says_when_the_handler_answered() -> None:
    layer = Judging()
    desk = Desk(layer)
    dispatch = desk.ask()
    seen: list[tuple[bool, bool]] = []
    desk.at(S + 1, lambda: seen.append((dispatch.running, dispatch.withheld)))
    desk.at(2 * S, layer.approval.approve)
    desk.clock.run()
    assert (desk.told, seen, dispatch.withheld) == ([(2 * S, ANSWER)], [(True, True)], False)
    assert kept(desk.log()) == [("ok", {"value": 42}, S)]
    assert desk.recorder.deliveries == [(2 * S, 0, "land")]


def test_a_verdict_may_be_a_denial_and_the_record_keeps_the_answer() -> None:
    layer = Judging()
    desk = Desk(layer)
    desk.ask()
    desk.at(2 * S, layer.approval.deny, "not this")
    desk.clock.run()
    assert desk.told == [(2 * S, failed(ReportKind.DENIED, "not this"))]
    assert kept(desk.log()) == [("ok", {"value": 42}, S)]


def test_a_verdict_that_was_given_before_takes_no_time() -> None:
    layer = Judging()
    layer.approval.approve()
    desk = Desk(layer)
    dispatch = desk.ask()
    desk.clock.run()
    assert (desk.told, dispatch.withheld) == ([(S, ANSWER)], False)
    assert desk.recorder.deliveries == [(S, 0, "land")]


def test_outer_layers_judge_when_the_inner_ones_have() -> None:
    inner, outer = Judging(), Judging()
    desk = Desk(outer, inner)
    desk.ask()
    desk.at(2 * S, inner.approval.approve)
    desk.at(3 * S, outer.approval.approve)
    desk.clock.run(2 * S - 1)
    assert (inner.seen, outer.seen) == ([ANSWER], [])
    desk.clock.run()
    assert (outer.seen, desk.told) == ([ANSWER], [(3 * S, ANSWER)])
    assert desk.recorder.deliveries == [(3 * S, 0, "land")]


def test_one_approval_may_keep_several_waiting_and_lets_them_go_in_order() -> None:
    layer = Judging()
    desk = Desk(layer)
    asked = [desk.ask(), desk.ask(), desk.ask()]
    order: list[int] = []
    for at, dispatch in enumerate(asked):
        dispatch._on_landed = lambda _, at=at: order.append(at)
    desk.at(2 * S, asked[1].cancel, Cause.HANG_UP)
    desk.at(3 * S, layer.approval.approve)
    desk.clock.run()
    assert order == [1, 0, 2]


def test_a_denial_further_in_can_be_thought_over_too_and_leaves_no_record() -> None:
    class Denying(Layer):
        def before(self, ask: Ask) -> Deny:
            return Deny("no")

    layer = Judging()
    desk = Desk(layer, Denying())
    desk.ask()
    dispatch = desk.ask()
    desk.at(2 * S, dispatch.cancel, Cause.HANG_UP)
    desk.at(3 * S, layer.approval.approve)
    desk.clock.run()
    assert desk.told == [(2 * S, GIVEN_UP), (3 * S, failed(ReportKind.DENIED, "no"))]
    assert (desk.bus.bus.log, desk.recorder.deliveries) == ([], [])


# -- giving up ----------------------------------------------------------------------------------------------------


def given_up(recorder: Recorder | None = None) -> Desk:
    """Answered at 1 s, a layer waiting, cancelled at 2 s."""
    desk = Desk(Judging(), recorder=recorder)
    dispatch = desk.ask()
    desk.at(2 * S, dispatch.cancel, Cause.HANG_UP)
    desk.clock.run()
    return desk


def test_a_cancellation_during_a_verdict_is_told_and_leaves_the_answer_in_the_record() -> None:
    desk = given_up()
    assert desk.told == [(2 * S, GIVEN_UP)]
    assert kept(desk.log()) == [("ok", {"value": 42}, S)]
    assert desk.log().header["deliveries"] == [[2 * S, 0, 0, "cancelled"]]
    assert not desk.clock.busy


def test_an_approval_that_comes_after_that_changes_nothing() -> None:
    layer = Judging()
    desk = Desk(layer)
    dispatch = desk.ask()
    desk.at(2 * S, dispatch.cancel, Cause.HANG_UP)
    desk.clock.run()
    assert (layer.approval.approve(), dispatch.cancel(Cause.HANG_UP), len(desk.told)) == (False, False, 1)


def test_nobody_thinks_over_a_cancellation() -> None:
    layer = Judging()
    desk = Desk(layer)
    dispatch = desk.ask()
    desk.at(500, dispatch.cancel, Cause.HANG_UP)
    desk.clock.run()
    assert (desk.told, layer.seen) == ([(500, GIVEN_UP)], [GIVEN_UP])
    assert desk.recorder.deliveries == [(500, 0, "cancelled")]


def test_what_is_given_up_before_it_was_approved_is_recorded_under_the_id_that_it_had() -> None:
    class Approving(Layer):
        def before(self, ask: Ask) -> Suspend:
            return Suspend(Approval())

    bus = LayeredBus(EffectBus(Clock()))
    bus.serve("desk", Answering(bus.bus.clock), Approving())
    for id in (7, None):
        dispatch = bus.dispatch(EffectKind.CUSTOM, "desk", {}, scope="s", on_landed=lambda _: None, id=id)
        dispatch.cancel(Cause.HANG_UP)
    assert [(effect.id, effect.outcome) for effect in bus.bus.log] == [(7, GIVEN_UP), (8, GIVEN_UP)]


def test_giving_up_takes_what_was_asked_on_its_behalf_along() -> None:
    desk = Desk(Judging())
    desk.bus.serve("slow", Answering(desk.clock, delay_us=9 * S))
    dispatch = desk.ask()
    desk.ask(parent=0, key="slow")
    desk.at(2 * S, dispatch.cancel, Cause.HANG_UP)
    desk.clock.run()
    assert desk.told == [(2 * S, GIVEN_UP), (2 * S, Outcome(Status.CANCELLED, Cause.DISCARDED))]
    assert desk.bus.bus.running == 0


def test_a_place_is_kept_until_the_verdict() -> None:
    layer = Judging()
    desk = Desk(layer, serial=True)
    desk.ask()
    desk.ask()
    desk.at(3 * S, layer.approval.approve)
    desk.clock.run()
    assert desk.handler.started == [0, 3 * S]


def test_what_is_asked_from_within_it_during_the_verdict_does_not_wait_for_its_place() -> None:
    desk = Desk(Judging(), serial=True)
    desk.ask()
    desk.at(2 * S, desk.ask, 0)
    desk.clock.run()
    assert [outcome.value.kind for _, outcome in desk.told] == [ReportKind.REQUEST]


# -- agent runs ---------------------------------------------------------------------------------------------------


def test_a_run_reads_its_tools_result_when_the_verdict_is_given() -> None:
    layer = Judging()
    world = World(calls(call("add")), text("done"), max_turns=2)
    world.tool("add", 42, S, (layer,))
    world.clock.call_in(3 * S, Order.TIMER, lambda _: layer.approval.approve())
    run = world.run()
    assert (output(run), world.records, world.bus.bus.log[2].dispatched_at_us) == ("done", "C T C", 3 * S)


def test_a_run_that_is_removed_meanwhile_leaves_the_tools_answer_in_its_record() -> None:
    world = World(calls(call("add")), text("done"), max_turns=2)
    world.tool("add", 42, S, (Judging(),))
    run = world.run(until_us=2 * S)
    world.runs.remove(run)
    world.clock.run()
    effect = world.bus.bus.log[1]
    assert (failure(run), effect.outcome, effect.landed_at_us) == ("Cancelled", ANSWER, S)


# -- replays ------------------------------------------------------------------------------------------------------


def test_the_policy_that_gives_it_up_again_is_replayed_in_both_modes() -> None:
    log = given_up().log()
    replay = Replay(log, RunPlain(), visible=True)
    again = given_up(replay.recorder)
    replay.finish()
    assert (again.told, again.handler.started) == ([(2 * S, GIVEN_UP)], [])
    assert kept(again.log()) == kept(log)
    replay = Replay(log, RunPlain(), visible=False)
    again = given_up(replay.recorder)
    replay.finish()
    assert again.told == [(2 * S, GIVEN_UP)]


@pytest.mark.parametrize("layered", [True, False])
def test_a_policy_that_does_not_is_refused_in_policy_visible_mode(layered: bool) -> None:
    replay = Replay(given_up().log(), RunPlain(), visible=True)
    desk = Desk(*([Judging()] if layered else []), recorder=replay.recorder)
    desk.ask()
    with pytest.raises(ReplayRefused, match=r"effect 0 \(desk\) was cancelled at 2000000 us in the recording, and now"):
        desk.clock.run()


@pytest.mark.parametrize("layered", [True, False])
def test_a_policy_that_does_not_is_told_the_cancellation_in_exchange_mode_and_never_the_answer(layered: bool) -> None:
    layers = [Judging()] if layered else []
    replay = Replay(given_up().log(), RunPlain(), visible=False)
    desk = Desk(*layers, recorder=replay.recorder)
    desk.ask()
    desk.clock.run()
    replay.finish()
    cancelled = Outcome(Status.CANCELLED, Cause.DISCARDED)
    assert desk.told == [(2 * S, cancelled)]
    assert [layer.seen for layer in layers] == [[cancelled]] * len(layers)


def test_a_verdict_that_comes_at_another_time_is_refused_in_policy_visible_mode() -> None:
    def judged(at_us: int, recorder: Recorder | None = None) -> Desk:
        layer = Judging()
        desk = Desk(layer, recorder=recorder)
        desk.ask()
        desk.at(at_us, layer.approval.approve)
        desk.clock.run()
        return desk

    log = judged(2 * S).log()
    replay = Replay(log, RunPlain(), visible=True)
    judged(2 * S, replay.recorder)
    replay.finish()
    replay = Replay(log, RunPlain(), visible=True)
    judged(3 * S, replay.recorder)
    with pytest.raises(ReplayRefused, match="recorded was the outcome of effect 0 at 2000000 us; now it was the out"):
        replay.finish()


# -- answers that nobody had collected ----------------------------------------------------------------------------


def uncollected(recorder: Recorder) -> tuple[Clock, list[Any]]:
    """A stream of which one item was collected when it is cancelled; by then it had ended."""
    clock = Clock()
    bus = recorder.open(clock)
    streams = LiveStreams(recorder.clock, by_hand=True)

    def source(_: Effect) -> Any:
        yield "a"
        yield Pause(S)
        yield "b"
        return Outcome(Status.OK, "done")

    bus.register("desk", SourceHandler(recorder.clock, streams, source))
    told: list[Any] = []
    effect = bus.dispatch(
        EffectKind.CUSTOM, "desk", {}, scope="s", on_item=told.append, on_landed=lambda each: told.append(each.outcome)
    )
    streams.step()
    clock.call_at(2 * S, Order.INTERRUPTION, effect.cancel, Cause.HANG_UP)
    clock.run()
    return clock, told


class AsTheyAre(RunPlain):
    """Items that are texts."""

    def item(self, item: Any) -> Any:
        return item

    def item_of(self, data: Any) -> Any:
        return data


def test_an_answer_that_was_not_collected_yet_is_kept_in_the_record_and_shown_to_nobody() -> None:
    recorder = Recorder()
    _, told = uncollected(recorder)
    (record,) = recorder.records(AsTheyAre())
    assert told == ["a", GIVEN_UP]
    assert (record.items, record.delivered, record.status, record.value) == (["a", "b"], 1, "ok", {"value": "done"})
    assert [each[:4] for each in batches_of(recorder.deliveries)] == [[0, 0, 1, ""], [2 * S, 0, 0, "cancelled"]]


@pytest.mark.parametrize("visible", [True, False])
def test_and_a_replay_of_it_hides_the_rest_again(visible: bool) -> None:
    recorder = Recorder()
    uncollected(recorder)
    data = loads(dumps(recorder.records(AsTheyAre())[0].to_dict()))
    log = EffectLog({"deliveries": batches_of(recorder.deliveries)}, [EffectRecord.from_dict(data, "records[0]", 0)])
    replay = Replay(log, AsTheyAre(), visible=visible)
    _, told = uncollected(replay.recorder)
    replay.finish()
    assert told == ["a", GIVEN_UP]
    assert replay.recorder.records(AsTheyAre())[0].to_dict() == data


def test_a_bus_that_does_not_record_takes_no_notice() -> None:
    clock = Clock()
    bus = EffectBus(clock)
    effect = bus.effect_class(bus, 0, EffectKind.CUSTOM, "desk", {}, "s", None, None, lambda _: None)
    effect.keep(["b"], ANSWER)
    effect.withhold()
    effect.told(cancelled=True)
    assert (effect.items, effect.outcome) == (0, None)
