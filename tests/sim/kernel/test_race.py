"""Races: the first side to win is the value, and ties follow the clock."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy

from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.race import Race


def raced(*sides: tuple[int, Order, str]) -> list[tuple[int, str]]:
    clock = Clock()
    race = Race(clock, "the result or the interruption")
    log: list[tuple[int, str]] = []

    def waiter() -> Generator[simpy.Event, Any, None]:
        winner = yield race
        log.append((clock.now, winner))

    clock.task("waiter", waiter())
    for at_us, order, side in sides:
        clock.call_at(at_us, order, race.win, side)
    clock.run()
    return log


def test_the_earlier_side_wins_and_the_later_is_ignored() -> None:
    late, early = (20, Order.DELIVERY, "result"), (10, Order.INTERRUPTION, "barge-in")
    assert raced(late, early) == [(10, "barge-in")]


@pytest.mark.parametrize("turn", [1, -1])
def test_on_one_instant_a_result_beats_an_interruption_whichever_was_scheduled_first(turn: int) -> None:
    sides = [(10, Order.DELIVERY, "result"), (10, Order.INTERRUPTION, "barge-in")]
    assert raced(*sides[::turn]) == [(10, "result")]


def test_within_a_class_the_first_scheduled_wins() -> None:
    assert raced((10, Order.DELIVERY, "one"), (10, Order.DELIVERY, "two")) == [(10, "one")]


def test_win_says_whether_it_decided() -> None:
    race = Race(Clock(), "a result")
    assert [race.win("first"), race.win("second"), race.value] == [True, False, "first"]
