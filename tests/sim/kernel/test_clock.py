"""The clock: what it refuses, who goes first at one instant, and what it says of a run that does not end."""

from __future__ import annotations

from collections.abc import Callable, Generator
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.sim.kernel.channel import Channel
from bargein.sim.kernel.clock import Clock, Limits, Order
from bargein.sim.kernel.errors import ClockError, Deadlock, EventStorm, Livelock, SimulationStopped
from bargein.sim.kernel.race import Race

Log = list[tuple[int, str]]


def noter(clock: Clock) -> tuple[Log, Callable[[Any], None]]:
    log: Log = []
    return log, lambda what: log.append((clock.now, str(what)))


# -- whole microseconds ---------------------------------------------------------------------------------------------

NO_INTS = [1.0, True, np.int64(5), np.uint8(5), Fraction(5), "5", None]


@pytest.mark.parametrize("value", [*NO_INTS, -1])
def test_only_a_plain_int_from_now_on_is_an_instant(value: Any) -> None:
    clock = Clock()
    with pytest.raises(ClockError) as caught:
        clock.call_at(value, Order.TIMER, print)
    assert str(caught.value) == f"an instant is an int of microseconds, now (0) or later; got {value!r}"
    assert not clock.busy


@pytest.mark.parametrize("value", [*NO_INTS, -1])
def test_only_a_plain_int_of_zero_or_more_is_a_delay(value: Any) -> None:
    clock = Clock()
    with pytest.raises(ClockError) as caught:
        clock.call_in(value, Order.TIMER, print)
    assert str(caught.value) == f"a delay is an int of microseconds, zero or more; got {value!r}"
    assert not clock.busy


@pytest.mark.parametrize("value", [1.0, True, np.int64(5), Fraction(5)])
def test_a_simpy_timeout_is_held_to_the_same_rule(value: Any) -> None:
    clock = Clock()
    with pytest.raises(ClockError, match=r"^a delay is an int of microseconds, zero or more; got "):
        clock.timeout(value)
    assert not clock.busy


@pytest.mark.parametrize("value", [9, 11.0, True, np.int64(11)])
def test_run_takes_an_int_from_now_on_to_run_until(value: Any) -> None:
    clock = Clock()
    clock.call_at(10, Order.TIMER, print)
    clock.call_at(20, Order.TIMER, print)
    clock.run(until=10)
    with pytest.raises(ClockError) as caught:
        clock.run(until=value)
    assert str(caught.value) == f"run(until=...) takes an int of microseconds, now (10) or later; got {value!r}"
    assert clock.now == 10


def test_an_instant_that_has_passed_is_refused() -> None:
    clock = Clock()
    clock.call_at(10, Order.TIMER, lambda _: clock.call_at(9, Order.TIMER, print))
    with pytest.raises(ClockError) as caught:
        clock.run()
    assert str(caught.value) == "an instant is an int of microseconds, now (10) or later; got 9"


# -- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1, -1])
def test_classes_go_in_the_written_order_however_they_were_scheduled(first: int) -> None:
    clock = Clock()
    log, note = noter(clock)
    for order in list(Order)[::first]:
        clock.call_at(10, order, note, order.name)
    clock.run()
    assert log == [
        (10, "FRAME"),
        (10, "DELIVERY"),
        (10, "INTERRUPTION"),
        (10, "PLAYOUT"),
        (10, "TIMER"),
        (10, "WORK"),
    ]


@pytest.mark.parametrize("order", list(Order))
def test_first_scheduled_goes_first_within_a_class(order: Order) -> None:
    clock = Clock()
    log, note = noter(clock)
    clock.call_at(20, order, note, "later instant")
    clock.call_at(10, order, note, "at")
    clock.call_in(10, order, note, "in")
    clock.call_at(10, order, note, "at again")
    clock.run()
    assert log == [(10, "at"), (10, "in"), (10, "at again"), (20, "later instant")]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(list(Order))), max_size=30))
def test_any_schedule_comes_out_sorted_by_instant_class_and_turn(plan: list[tuple[int, Order]]) -> None:
    clock = Clock()
    log: list[tuple[int, Order, int]] = []
    for number, (at_us, order) in enumerate(plan):
        clock.call_at(at_us, order, log.append, (at_us, order, number))
    clock.run()
    assert log == sorted((at_us, order, number) for number, (at_us, order) in enumerate(plan))


def test_work_that_an_event_causes_comes_after_all_that_was_scheduled_for_the_instant() -> None:
    clock = Clock()
    log, note = noter(clock)
    race = Race(clock, "a result")

    def waiter() -> Generator[simpy.Event, Any, None]:
        note("waits")
        note((yield race))

    clock.task("waiter", waiter())
    clock.call_at(10, Order.TIMER, note, "timer")
    clock.call_at(10, Order.DELIVERY, race.win, "result")
    clock.run()
    assert log == [(0, "waits"), (10, "timer"), (10, "result")]


def test_a_simpy_timeout_counts_as_a_timer() -> None:
    clock = Clock()
    log, note = noter(clock)
    clock.call_at(10, Order.WORK, note, "work")
    clock.call_at(10, Order.TIMER, note, "timer before")
    timeout = clock.timeout(10)
    assert timeout.callbacks is not None
    timeout.callbacks.append(lambda _: note("timeout"))
    clock.call_at(10, Order.TIMER, note, "timer after")
    clock.call_at(10, Order.PLAYOUT, note, "playout")
    clock.run()
    assert log == [(10, "playout"), (10, "timer before"), (10, "timeout"), (10, "timer after"), (10, "work")]


def test_a_timeout_of_nothing_is_work_of_this_instant_in_its_turn() -> None:
    clock = Clock()
    log, note = noter(clock)
    clock.call_at(0, Order.WORK, note, "work before")
    timeout = clock.timeout(0)
    assert timeout.callbacks is not None
    timeout.callbacks.append(lambda _: note("timeout"))
    clock.call_at(0, Order.WORK, note, "work after")
    clock.call_at(0, Order.TIMER, note, "timer")
    clock.run()
    assert log == [(0, "timer"), (0, "work before"), (0, "timeout"), (0, "work after")]


# -- ties -----------------------------------------------------------------------------------------------------------


def tied(tie_seed: int | None, count: int = 3) -> str:
    clock = Clock(tie_seed)
    said: list[str] = []
    for letter in "abcdefgh"[:count]:
        clock.call_at(5, Order.TIMER, said.append, letter)
    clock.run()
    return "".join(said)


def test_a_tie_seed_permutes_an_instant_the_same_way_each_time() -> None:
    assert [tied(seed, 8) for seed in range(20)] == [tied(seed, 8) for seed in range(20)]
    assert len({tied(seed, 8) for seed in range(20)}) == 20


def test_without_a_tie_seed_the_written_order_stands() -> None:
    assert tied(None, 8) == "abcdefgh"


def test_tie_seeds_reach_every_order_of_three_events() -> None:
    assert {tied(seed) for seed in range(50)} == {"".join(each) for each in permutations("abc")}


def test_a_tie_seed_moves_events_between_classes_but_not_between_instants() -> None:
    def run(tie_seed: int) -> Log:
        clock = Clock(tie_seed)
        log, note = noter(clock)
        for at_us in (2, 1):
            clock.call_at(at_us, Order.DELIVERY, note, "delivery")
            clock.call_at(at_us, Order.TIMER, note, "timer")
        clock.run()
        return log

    runs = [run(seed) for seed in range(20)]
    assert {tuple(at_us for at_us, _ in log) for log in runs} == {(1, 1, 2, 2)}
    assert {tuple(what for _, what in log[:2]) for log in runs} == {("delivery", "timer"), ("timer", "delivery")}


# -- timers, run and stop -------------------------------------------------------------------------------------------


def test_a_cancelled_timer_is_never_called_and_keeps_nothing_busy() -> None:
    clock = Clock()
    log, note = noter(clock)
    kept = clock.call_at(10, Order.TIMER, note, "kept")
    dropped = clock.call_at(10, Order.TIMER, note, "dropped")
    assert (kept.armed, dropped.armed, clock.busy) == (True, True, True)
    dropped.cancel()
    assert (kept.armed, dropped.armed, clock.busy) == (True, False, True)
    kept.cancel()
    assert not clock.busy
    clock.run()
    assert log == []


def test_a_timer_is_disarmed_once_called_and_cancelling_it_then_is_harmless() -> None:
    clock = Clock()
    log, note = noter(clock)
    timer = clock.call_at(10, Order.TIMER, note, "once")
    clock.run()
    timer.cancel()
    assert (log, timer.armed) == ([(10, "once")], False)


def test_an_event_may_withdraw_another_of_its_own_instant() -> None:
    clock = Clock()
    log, note = noter(clock)
    timeout = clock.call_at(10, Order.TIMER, note, "timeout")
    clock.call_at(10, Order.DELIVERY, lambda _: (note("result"), timeout.cancel()))
    clock.run()
    assert log == [(10, "result")]


def test_running_until_an_instant_stops_before_its_events_and_goes_on_later() -> None:
    clock = Clock()
    log, note = noter(clock)
    for at_us in (5, 10, 15):
        clock.call_at(at_us, Order.TIMER, note, at_us)
    clock.run(until=10)
    assert (log, clock.now, clock.processed) == ([(5, "5")], 10, 1)
    clock.run()
    assert (log, clock.now, clock.processed) == ([(5, "5"), (10, "10"), (15, "15")], 15, 3)


def test_stop_ends_the_run_inside_the_event_and_leaves_the_rest() -> None:
    clock = Clock()
    log, note = noter(clock)
    clock.call_at(5, Order.TIMER, lambda _: (note("stops"), clock.stop(), note("never")))
    clock.call_at(5, Order.TIMER, note, "left")
    clock.run()
    assert (log, clock.busy) == ([(5, "stops")], True)


def test_stepping_by_hand_does_what_run_does() -> None:
    def build() -> tuple[Clock, Log]:
        clock = Clock()
        log, note = noter(clock)

        def process() -> Generator[simpy.Event, Any, None]:
            yield clock.timeout(10)
            note("process")

        clock.task("process", process())
        clock.call_at(10, Order.DELIVERY, note, "delivery")
        clock.call_at(3, Order.TIMER, note, "cancelled").cancel()
        return clock, log

    stepped, by_hand = build()
    while stepped._queue:
        stepped.step()
    run, by_run = build()
    run.run()
    assert (by_hand, stepped.processed) == (by_run, run.processed)
    assert by_run == [(10, "delivery"), (10, "process")]
    with pytest.raises(simpy.core.EmptySchedule):
        stepped.step()


def test_what_a_process_raises_reaches_whoever_runs_the_clock() -> None:
    clock = Clock()

    def process() -> Generator[simpy.Event, Any, None]:
        yield clock.timeout(1)
        raise LookupError("no such table")

    clock.task("process", process())
    with pytest.raises(LookupError, match=r"^no such table$"):
        clock.run()


# -- runs that do not end -------------------------------------------------------------------------------------------


def test_a_deadlock_names_each_waiting_task_and_what_it_waits_for_in_the_order_of_their_start() -> None:
    clock = Clock()
    texts: Channel[str] = Channel(clock, "texts", 1)

    def waits(event: simpy.Event) -> Generator[simpy.Event, Any, None]:
        yield event

    clock.task("the speech stage", waits(texts.get()))
    clock.task("the runner", waits(Race(clock, "the model's first token")))
    clock.task("somebody", waits(clock.event()))
    clock.task("the clerk", waits(clock.timeout(7)))
    clock.run()
    with pytest.raises(Deadlock) as caught:
        clock.finish()
    assert str(caught.value) == (
        "nothing is left to happen at 7 us; the speech stage waits for an item in channel texts; "
        "the runner waits for the model's first token; somebody waits for Event"
    )


def test_a_run_in_which_every_task_has_ended_is_no_deadlock() -> None:
    clock = Clock()

    def short() -> Generator[simpy.Event, Any, None]:
        yield clock.timeout(7)

    clock.task("short", short())
    assert clock.report() == "short waits for Initialize"
    clock.run()
    clock.finish()
    assert clock.report() == "no task is waiting"


def again(clock: Clock, delay_us: int) -> None:
    def call(_: object) -> None:
        clock.call_in(delay_us, Order.TIMER, call)

    call(None)


def test_too_many_events_are_a_livelock() -> None:
    clock = Clock(limits=Limits(events=5))
    again(clock, 10)
    with pytest.raises(Livelock) as caught:
        clock.run()
    assert str(caught.value) == "more than 5 events, now at 60 us; no task is waiting"


def test_the_bound_on_events_holds_over_several_runs() -> None:
    clock = Clock(limits=Limits(events=5))
    again(clock, 10)
    clock.run(until=31)
    assert clock.processed == 3
    with pytest.raises(Livelock, match=r"^more than 5 events, now at 60 us; "):
        clock.run()


def test_too_much_virtual_time_is_a_livelock() -> None:
    clock = Clock(limits=Limits(until_us=25))
    again(clock, 10)
    with pytest.raises(Livelock) as caught:
        clock.run()
    assert str(caught.value) == "the session is still going on at 30 us, past its bound of 25 us; no task is waiting"


def test_an_instant_that_never_ends_is_an_event_storm() -> None:
    clock = Clock(limits=Limits(same_instant=4))
    clock.call_at(7, Order.TIMER, lambda _: again(clock, 0))
    with pytest.raises(EventStorm) as caught:
        clock.run()
    assert str(caught.value) == "more than 4 events at 7 us; no task is waiting"


def test_as_many_events_as_allowed_are_no_storm_and_no_livelock() -> None:
    clock = Clock(limits=Limits(events=8, same_instant=4, until_us=2))
    for number in range(8):
        clock.call_at(1 + number // 4, Order.TIMER, lambda _: None)
    clock.run()
    assert (clock.processed, clock.now) == (8, 2)


@pytest.mark.parametrize("kind", [Deadlock, Livelock, EventStorm])
def test_each_report_is_a_stopped_simulation_that_survives_being_rebuilt(kind: type[SimulationStopped]) -> None:
    error = kind("who waits for whom")
    rebuilt = type(error)(*error.args)
    assert isinstance(rebuilt, SimulationStopped)
    assert str(rebuilt) == "who waits for whom"
