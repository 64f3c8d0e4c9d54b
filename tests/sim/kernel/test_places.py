"""Stopping the clock at a place, and looking on without taking part."""

from __future__ import annotations

import pytest

from bargein.sim.kernel.clock import Clock, Limits, Order
from bargein.sim.kernel.errors import ClockError, Livelock


def noted(clock: Clock) -> list[tuple[int, str]]:
    seen: list[tuple[int, str]] = []
    for at_us, order, name in ((10, Order.WORK, "work"), (10, Order.DELIVERY, "delivery"), (20, Order.TIMER, "timer")):
        clock.call_at(at_us, order, lambda name: seen.append((clock.now, name)), name)
    return seen


def test_the_clock_stops_right_after_the_event_that_ends_the_wish_to_go_on() -> None:
    clock = Clock()
    seen = noted(clock)
    assert clock.run_while(lambda _: not seen) is True
    assert (seen, clock.processed, clock.now) == ([(10, "delivery")], 1, 10)
    clock.run()
    assert (seen, clock.processed) == ([(10, "delivery"), (10, "work"), (20, "timer")], 3)


def test_the_clock_stops_before_an_instant() -> None:
    clock = Clock()
    seen = noted(clock)
    assert clock.run_while(lambda at_us: at_us < 20) is True
    assert (seen, clock.now) == ([(10, "delivery"), (10, "work")], 10)


def test_nothing_is_left_at_the_end_and_after_a_stop() -> None:
    clock = Clock()
    noted(clock)
    assert clock.run_while(lambda _: True) is False
    stopped = Clock()
    stopped.call_at(5, Order.WORK, lambda _: stopped.stop())
    stopped.call_at(6, Order.WORK, print)
    assert stopped.run_while(lambda _: True) is False
    assert stopped.processed == 1


def test_a_bound_ends_the_way_to_a_place_too() -> None:
    clock = Clock(limits=Limits(events=10))

    def again(_: object) -> None:
        clock.call_in(1, Order.WORK, again)

    again(None)
    with pytest.raises(Livelock, match="more than 10 events"):
        clock.run_while(lambda _: True)


@pytest.mark.parametrize("tie_seed", [None, 1, 2, 3])
def test_who_looks_on_is_called_last_and_takes_no_part_in_ties(tie_seed: int | None) -> None:
    alone, watched = Clock(tie_seed), Clock(tie_seed)
    order, same = noted(alone), noted(watched)
    watched.call_last(10, lambda _: same.append((watched.now, "last")))
    late: list[str] = []
    watched.call_at(10, Order.WORK, lambda _: watched.call_in(0, Order.WORK, lambda _: late.append("caused")))
    alone.call_at(10, Order.WORK, lambda _: alone.call_in(0, Order.WORK, print))
    alone.run()
    watched.run_while(lambda at_us: at_us <= 10)
    assert late == ["caused"]
    assert same[-1] == (10, "last")
    assert same[:-1] == [each for each in order if each[0] <= 10]


def test_who_looks_on_does_so_at_an_instant_to_come() -> None:
    with pytest.raises(ClockError):
        Clock().call_last(-1, print)
