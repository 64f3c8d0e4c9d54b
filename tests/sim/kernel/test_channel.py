"""Channels: FIFO, bounded, closable; a taker that waits and one that listens."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.sim.kernel.channel import CLOSED, Channel, ChannelClosed
from bargein.sim.kernel.clock import Clock, Order

Log = list[tuple[int, str]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def filled(clock: Clock, items: str, capacity: int = 4) -> Channel[str]:
    channel: Channel[str] = Channel(clock, "texts", capacity)
    for item in items:
        assert channel.offer(item)
    return channel


def take_all(channel: Channel[str], log: Log, clock: Clock) -> Generator[simpy.Event, Any, None]:
    while True:
        yield channel.get()
        item = channel.take()
        log.append((clock.now, str(item)))
        if item is CLOSED:
            return


def test_a_waiting_taker_gets_items_in_order_on_their_instants_then_the_end(clock: Clock) -> None:
    channel, log = filled(clock, "a"), []
    clock.task("taker", take_all(channel, log, clock))
    clock.call_at(10, Order.DELIVERY, channel.offer, "b")
    clock.call_at(10, Order.DELIVERY, channel.offer, "c")
    clock.call_at(20, Order.DELIVERY, lambda _: channel.close())
    clock.run()
    clock.finish()
    assert log == [(0, "a"), (10, "b"), (10, "c"), (20, "CLOSED")]


def test_a_full_channel_refuses_and_takes_nothing(clock: Clock) -> None:
    channel = filled(clock, "ab", capacity=2)
    assert not channel.offer("c")
    assert (len(channel), channel.take(), channel.take()) == (2, "a", "b")
    with pytest.raises(LookupError, match=r"^channel texts is empty$"):
        channel.take()


def test_a_putter_waits_until_there_is_room_first_come_first_served(clock: Clock) -> None:
    channel = filled(clock, "a", capacity=1)
    log: Log = []

    def putter(item: str) -> Generator[simpy.Event, Any, None]:
        while not channel.offer(item):
            yield channel.room()
        log.append((clock.now, f"put {item}"))

    clock.task("first", putter("b"))
    clock.task("second", putter("c"))
    for at_us in (10, 20, 30):
        clock.call_at(at_us, Order.TIMER, lambda _: log.append((clock.now, f"took {channel.take()}")))
    clock.run()
    clock.finish()
    assert log == [(10, "took a"), (10, "put b"), (20, "took b"), (20, "put c"), (30, "took c")]


def test_room_that_is_there_is_given_at_once(clock: Clock) -> None:
    channel = filled(clock, "a", capacity=2)
    assert channel.room().triggered
    channel.offer("b")
    assert not channel.room().triggered


def test_a_closed_channel_is_emptied_and_then_gives_the_end_for_ever(clock: Clock) -> None:
    channel = filled(clock, "ab")
    channel.close()
    channel.close()
    assert [channel.take() for _ in range(4)] == ["a", "b", CLOSED, CLOSED]
    assert channel.get().triggered
    with pytest.raises(ChannelClosed, match=r"^channel texts is closed$"):
        channel.offer("c")


def test_closing_wakes_a_putter_that_waits(clock: Clock) -> None:
    channel = filled(clock, "a", capacity=1)
    room = channel.room()
    channel.close()
    assert room.triggered


def test_a_listener_is_called_with_what_is_there_and_with_what_comes(clock: Clock) -> None:
    channel, heard = filled(clock, "ab"), []
    channel.listen(heard.append)
    channel.offer("c")
    assert (heard, len(channel)) == (["a", "b", "c"], 0)


def test_a_paused_listener_lets_items_queue_to_the_bound_and_takes_them_up_again_in_order(clock: Clock) -> None:
    heard: list[str] = []
    channel: Channel[str] = Channel(clock, "texts", 2)
    channel.listen(heard.append)
    channel.pause()
    assert [channel.offer(item) for item in "abc"] == [True, True, False]
    room = channel.room()
    assert (heard, room.triggered) == ([], False)
    channel.resume()
    assert (heard, len(channel), room.triggered) == (["a", "b"], 0, True)
    channel.offer("d")
    assert heard == ["a", "b", "d"]


def test_a_listener_that_pauses_itself_keeps_what_has_not_been_heard(clock: Clock) -> None:
    channel, heard = filled(clock, "abc"), []

    def one(item: str) -> None:
        heard.append(item)
        channel.pause()

    channel.listen(one)
    assert (heard, len(channel)) == (["a"], 2)
    channel.resume()
    assert (heard, len(channel)) == (["a", "b"], 1)


def test_clearing_returns_what_was_dropped_keeps_the_rest_in_order_and_makes_room(clock: Clock) -> None:
    channel = filled(clock, "aBcD")
    rooms = [channel.room() for _ in range(3)]
    assert channel.clear(keep=str.isupper) == ["a", "c"]
    assert [room.triggered for room in rooms] == [True, True, False]
    assert channel.clear() == ["B", "D"]
    assert len(channel) == 0
    assert rooms[2].triggered


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_channel_holds_one_item_at_least(clock: Clock, capacity: int) -> None:
    with pytest.raises(ValueError, match=rf"^channel texts takes a capacity of 1 or more, not {capacity}$"):
        Channel(clock, "texts", capacity)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["offer", "take", "pause", "resume", "listen"]), max_size=40), st.integers(1, 4))
def test_whatever_is_done_items_leave_once_and_in_order(steps: list[str], capacity: int) -> None:
    channel: Channel[int] = Channel(Clock(), "numbers", capacity)
    came: list[int] = []
    accepted = 0
    for step in steps:
        if step == "offer":
            accepted += channel.offer(accepted)
        elif step == "take":
            if len(channel):
                came.append(channel.take())
        elif step == "listen":
            channel.listen(came.append)
        else:
            getattr(channel, step)()
        assert len(channel) <= capacity
    assert came == list(range(accepted - len(channel)))
