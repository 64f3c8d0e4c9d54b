"""A live provider's ears and its link: when a turn is told, and that no message overtakes another of its lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bargein.models.latency import Empirical
from bargein.models.s2s.ears import Ears
from bargein.models.s2s.link import Lane
from bargein.pipelines.settings import TurnSettings
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Streams


@dataclass
class Edge:
    kind: str
    onset_frame: int
    last_frame: int


class Words:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def transcribe(self, segment: int, onset_us: int, end_us: int, on_final: Any) -> None:
        self.clock.call_in(0, Order.DELIVERY, lambda _: on_final(segment, f"words {segment}", False))


def _ears() -> tuple[Clock, Ears, list[Any]]:
    clock = Clock()
    told: list[Any] = []
    ears = Ears(
        clock,
        TurnSettings(min_speech_us=200_000, min_silence_us=500_000),
        Words(clock),
        lambda onset_us: told.append((clock.now, "start", onset_us)),
        lambda end_us, text: told.append((clock.now, "stop", end_us, text)),
    )
    return clock, ears, told


def _edges(clock: Clock, ears: Ears, *frames: tuple[str, int]) -> None:
    for kind, frame in frames:
        edge = Edge(kind, frame, frame)
        clock.call_at(frame * 20_000, Order.FRAME, ears.on_edge, edge)
    clock.run()


def test_a_turn_is_told_after_the_minimum_speech_and_ends_after_the_minimum_silence() -> None:
    clock, ears, told = _ears()
    _edges(clock, ears, ("start", 10), ("stop", 49))
    assert told == [(400_000, "start", 200_000), (1_500_000, "stop", 1_000_000, "words 1")]
    assert ears.idle


def test_a_pause_inside_a_turn_does_not_end_it() -> None:
    clock, ears, told = _ears()
    _edges(clock, ears, ("start", 10), ("stop", 49), ("start", 60), ("stop", 79))
    assert told == [(400_000, "start", 200_000), (2_100_000, "stop", 1_600_000, "words 1 words 2")]


def test_what_is_too_short_is_not_told_at_all() -> None:
    clock, ears, told = _ears()
    _edges(clock, ears, ("start", 10), ("stop", 15))
    assert told == []
    assert ears.idle


def test_a_placed_line_is_heard_exactly_so() -> None:
    clock, ears, told = _ears()
    clock.call_at(123, Order.INTERRUPTION, lambda _: ears.place("Wait.", 1_000))
    clock.run()
    assert told == [(123, "start", 123), (1_123, "stop", 1_123, "Wait.")]


def test_no_message_overtakes_another_of_its_lane() -> None:
    clock = Clock()
    arrived: list[Any] = []
    latency = Empirical((300_000, 100_000))
    lane = Lane(clock, latency, Streams(3).stream("s2s"), lambda it: arrived.append((clock.now, it)))
    for number in range(20):
        clock.call_at(number * 10_000, Order.WORK, lane.send, number)
    clock.run()
    assert [number for _, number in arrived] == list(range(20))
    assert len({t for t, _ in arrived}) < 20  # some had to wait for the one before
    assert lane.under_way == 0
