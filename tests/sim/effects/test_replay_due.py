"""What is due in a replay: an effect nobody asks for is missed on its instant, unless something may still bring it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein import sim
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.log import EffectLog, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.lab import replays
from bargein.sim.scenario.build import Plan
from tests.sim.effects.test_replay import resealed

S = 1_000_000


class Echo:
    """Answers after a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def serve(self, effect: Effect) -> Callable[[Any], object]:
        timer = self.clock.call_in(S, Order.DELIVERY, effect.land, Outcome(Status.OK, effect.payload))
        return lambda _: timer.cancel()


class Asking:
    """Asks at given instants, so many steps of the instant later."""

    def __init__(self, recorder: Recorder, *plan: tuple[int, str, int]) -> None:
        self.clock = Clock()
        self.bus: EffectBus = recorder.open(self.clock)
        self.bus.register("x:echo", Echo(recorder.clock))
        for at_us, scope, steps in plan:
            self.clock.call_at(at_us, Order.WORK, self.wait, (scope, steps, {"at": at_us}))

    def wait(self, bound: tuple[str, int, Any]) -> None:
        scope, steps, payload = bound
        if steps:
            self.clock.call_in(0, Order.TIMER, self.wait, (scope, steps - 1, payload))
        else:
            self.ask(scope, payload)

    def ask(self, scope: str, payload: Any) -> None:
        self.bus.dispatch(EffectKind.CUSTOM, "x:echo", payload, scope=scope, on_landed=lambda _: None)


FIRST, SECOND, THIRD = (0, "a", 0), (2 * S, "a", 0), (5 * S, "b", 0)


@pytest.fixture(scope="module")
def log() -> EffectLog:
    recorder = Recorder()
    Asking(recorder, FIRST, SECOND, THIRD).clock.run()
    return EffectLog({"deliveries": batches_of(recorder.deliveries)}, recorder.records(RunPlain()))


def missing(id: int, at_us: int, by_us: int) -> str:
    return rf"effect {id} \(x:echo\) was recorded at {at_us} us, and now nobody has asked for it by {by_us} us"


def test_what_is_left_out_is_missed_at_the_end_of_its_instant(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=True)
    again = Asking(playing.recorder, FIRST, THIRD)
    with pytest.raises(ReplayRefused, match=missing(1, 2 * S, 2 * S)):
        again.clock.run()
    assert again.clock.now == 2 * S


def test_the_very_first_is_missed_too(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=True)
    with pytest.raises(ReplayRefused, match=missing(0, 0, 0)):
        Asking(playing.recorder).clock.run()


def test_in_exchange_mode_it_is_missed_when_all_is_over(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=False)
    last = (2 * S, "a", 0)
    Asking(playing.recorder, FIRST, last).clock.run()
    with pytest.raises(ReplayRefused, match=r"effect 2 \(x:echo\), recorded at 5000000 us, was never asked for"):
        playing.finish()


@pytest.mark.parametrize("steps", [1, 3])
def test_steps_that_follow_on_the_instant_may_still_bring_it(log: EffectLog, steps: int) -> None:
    playing = Replay(log, RunPlain(), visible=True)
    Asking(playing.recorder, FIRST, (2 * S, "a", steps), THIRD).clock.run()
    playing.finish()


def test_it_waits_for_somebody_outside_and_for_nobody_else(log: EffectLog) -> None:
    def held(recorder: Recorder, *, until_us: int) -> Asking:
        again = Asking(recorder, FIRST)
        again.clock.call_at(until_us, Order.WORK, again.wait, ("a", 0, {"at": 2 * S}))
        again.clock.call_at(until_us + 3 * S, Order.WORK, again.wait, ("b", 0, {"at": 5 * S}))
        return again

    playing = Replay(log, RunPlain(), visible=True, instants=False)
    playing.may_come(lambda scope: scope == "a")
    held(playing.recorder, until_us=4 * S).clock.run()
    playing.finish()
    for still, by_us in ((lambda scope: scope == "b", 2 * S), (lambda scope: False, 2 * S)):
        playing = Replay(log, RunPlain(), visible=True, instants=False)
        playing.may_come(still)
        with pytest.raises(ReplayRefused, match=missing(1, 2 * S, by_us)):
            held(playing.recorder, until_us=4 * S).clock.run()


def test_what_comes_late_makes_what_follows_due_as_much_later(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=True, instants=False)
    playing.may_come(lambda scope: scope == "a")
    again = Asking(playing.recorder, FIRST)
    again.clock.call_at(4 * S, Order.WORK, again.wait, ("a", 0, {"at": 2 * S}))
    with pytest.raises(ReplayRefused, match=missing(2, 5 * S, 7 * S)):
        again.clock.run()


def test_instants_are_kept_unless_that_is_not_asked_for(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=True)
    playing.may_come(lambda _: True)
    again = Asking(playing.recorder, FIRST)
    again.clock.call_at(4 * S, Order.WORK, again.wait, ("a", 0, {"at": 2 * S}))
    with pytest.raises(ReplayRefused, match=r"recorded as effect 1 at 2000000 us, and was dispatched at 4000000 us"):
        again.clock.run()


def test_batches_in_another_order_are_refused_whatever_the_instants(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=True, instants=False)
    playing.may_come(lambda _: True)
    again = Asking(playing.recorder, FIRST)
    again.clock.call_at(S // 2, Order.WORK, again.wait, ("a", 0, {"at": 2 * S}))
    again.clock.call_at(S // 2, Order.WORK, again.wait, ("b", 0, {"at": 5 * S}))
    again.clock.run()
    playing.finish()
    other = EffectLog({"deliveries": [[*each] for each in log.header["deliveries"]]}, log.records)
    first, second, _ = other.header["deliveries"]
    first[1], second[1] = 1, 0
    playing = Replay(other, RunPlain(), visible=True, instants=False)
    Asking(playing.recorder, FIRST, SECOND, THIRD).clock.run()
    with pytest.raises(
        ReplayRefused, match="recorded was the outcome of effect 1 at 1000000 us; now it was the outcome"
    ):
        playing.finish()


def test_once_something_was_refused_nothing_is_answered_any_more(log: EffectLog) -> None:
    playing = Replay(log, RunPlain(), visible=False)
    again = Asking(playing.recorder, FIRST)
    again.clock.call_at(S // 2, Order.WORK, again.wait, ("other", 0, {"at": 2 * S}))
    with pytest.raises(ReplayRefused, match="recorded as a custom of a, found a custom of other") as first:
        again.clock.run()
    with pytest.raises(ReplayRefused) as later:
        again.ask("b", {"at": 5 * S})
    assert later.value is first.value is playing.failure
    again.clock.run()
    assert [effect.outcome for effect in again.bus.log] == [None] * 3
    with pytest.raises(ReplayRefused, match="found a custom of other"):
        playing.finish()


def test_what_is_refused_while_it_is_answered_ends_all_answers_too(log: EffectLog) -> None:
    wrong = EffectLog(log.header, [replace(log.records[0], published={"seat": 4}), *log.records[1:]])
    playing = Replay(wrong, RunPlain(), visible=False)
    again = Asking(playing.recorder, FIRST)
    with pytest.raises(ReplayRefused, match=r"effect 0 \(x:echo\) at 1000000 us: recorded was that it published seat"):
        again.clock.run()
    with pytest.raises(ReplayRefused, match="published seat"):
        again.ask("a", {"at": 2 * S})
    assert again.bus.log[0].outcome is None


def test_a_session_that_leaves_a_call_out_is_refused_on_its_instant() -> None:
    log = EffectLog.from_bytes(replays.record(Plan(sim.load("chained_lookups")))[1].to_bytes(), "a.log")
    last = log.records[-1]

    def sooner(_: Any, records: list[dict[str, Any]]) -> None:
        records[-1]["dispatched_at_us"] -= 1

    with pytest.raises(ReplayRefused) as refused:
        replays.replay(resealed(log, sooner), visible=True)
    assert refused.value.sentences == (
        f"a.log: effect {last.id} ({last.key}) was recorded at {last.dispatched_at_us - 1} us, and now nobody has "
        f"asked for it by {last.dispatched_at_us - 1} us",
    )
