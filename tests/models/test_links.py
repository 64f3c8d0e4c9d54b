"""A link between two ends that write down what they get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bargein.models.latency import NEVER, Constant, Latency
from bargein.models.links import Link, Sending, Side
from bargein.pipelines.events import KINDS
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Streams
from bargein.sim.kernel.timeline import Timeline


@dataclass
class Outage:
    at_us: int
    for_us: int | None = None


@dataclass
class Plan:
    transport: str = "stream"
    latency: Latency = field(default_factory=lambda: Constant(100))
    jitter_us: int = 0
    loss: float = 0
    retransmit_us: int = 1_000
    reorder: float = 0
    pace_us: int = 0
    queue: int = 8
    down: tuple[Outage, ...] = ()


class Draws:
    """A stream whose draws are given; it repeats the last."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)

    def below(self, bound: int) -> int:
        return self.draws.pop(0) if len(self.draws) > 1 else self.draws[0]


class End:
    def __init__(self, line: Line, name: str) -> None:
        self.line, self.name = line, name

    def receive(self, message: dict[str, Any]) -> None:
        self.line.seen.append((self.line.clock.now, self.name, message["type"]))

    def link_down(self) -> None:
        self.line.seen.append((self.line.clock.now, self.name, "DOWN"))

    def link_up(self) -> None:
        self.line.seen.append((self.line.clock.now, self.name, "UP"))


class Line:
    """A link with its ends."""

    def __init__(self, plan: Plan, draws: Draws | None = None) -> None:
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        streams = Streams(1)
        self.link = Link(self.clock, self.timeline, plan, streams.stream if draws is None else lambda _: draws)  # type: ignore[arg-type, return-value]
        self.seen: list[tuple[int, str, str]] = []
        self.results: list[Sending] = []
        self.link.start(End(self, "session"), End(self, "agent"))

    def send(self, at_us: int, what: str, sender: Side = Side.SESSION) -> Line:
        message = {"type": what, "call_id": "t1.0"}
        self.clock.call_at(at_us, Order.WORK, lambda _: self.results.append(self.link.send(sender, message)))
        return self

    def run(self) -> list[tuple[int, str, str]]:
        self.clock.run()
        return self.seen

    def lost(self) -> list[tuple[int, str, str]]:
        return [(r["t"], r["what"], r["reason"]) for r in self.timeline.of("link.lost")]


def test_a_message_arrives_after_the_latency_at_the_other_end():
    line = Line(Plan()).send(0, "a").send(10, "b", Side.AGENT)
    assert line.run() == [(100, "agent", "a"), (110, "session", "b")]


def test_what_arrives_is_a_copy_of_what_was_sent():
    line = Line(Plan())
    message = {"type": "a", "arguments": {"n": [1]}}
    got: list[Any] = []
    line.link._ends[Side.AGENT].receive = got.append  # type: ignore[method-assign]
    line.link.send(Side.SESSION, message)
    message["arguments"] = {}
    line.run()
    assert got == [{"type": "a", "arguments": {"n": [1]}}]


def test_the_timeline_tells_of_every_message_and_of_nothing_in_it():
    line = Line(Plan()).send(0, "tool.call")
    line.run()
    common = {"epoch": 0, "message": 1, "sender": "session", "what": "tool.call", "call": "t1.0"}
    assert list(line.timeline) == [
        {"t": 0, "seq": 0, "kind": "link.sent", **common},
        {"t": 100, "seq": 1, "kind": "link.received", **common},
    ]


def test_jitter_adds_up_to_its_bound():
    class Most:
        def below(self, bound: int) -> int:
            return bound - 1

    line = Line(Plan(jitter_us=30), Most()).send(0, "a")  # type: ignore[arg-type]
    assert line.run() == [(130, "agent", "a")]


def test_a_stream_keeps_its_order_where_jitter_would_swap_messages():
    stream = Line(Plan(jitter_us=50), Draws(50, 0)).send(0, "a").send(10, "b")
    datagram = Line(Plan(transport="datagram", jitter_us=50), Draws(50, 0)).send(0, "a").send(10, "b")
    assert stream.run() == [(150, "agent", "a"), (150, "agent", "b")]
    assert datagram.run() == [(110, "agent", "b"), (150, "agent", "a")]


def test_directions_do_not_hold_each_other_up():
    line = Line(Plan(jitter_us=50), Draws(50, 0)).send(0, "a").send(10, "b", Side.AGENT)
    assert line.run() == [(110, "session", "b"), (150, "agent", "a")]


def test_a_loss_on_a_stream_costs_a_retransmission_each_time():
    line = Line(Plan(loss=0.5), Draws(499_999, 499_999, 500_000)).send(0, "a")
    assert line.run() == [(2_100, "agent", "a")]
    assert line.lost() == []


def test_a_stream_that_loses_everything_still_ends():
    assert Line(Plan(loss=1)).send(0, "a").run() == [(16_100, "agent", "a")]


def test_a_loss_of_a_datagram_is_a_loss():
    line = Line(Plan(transport="datagram", loss=0.5), Draws(499_999, 500_000)).send(0, "a").send(10, "b")
    assert line.run() == [(110, "agent", "b")]
    assert line.lost() == [(0, "a", "lost")]
    assert line.results == [Sending.SENT, Sending.SENT]


def test_a_datagram_that_is_held_back_is_passed():
    line = Line(Plan(transport="datagram", reorder=0.5), Draws(0, 999_999)).send(0, "a").send(10, "b")
    assert line.run() == [(110, "agent", "b"), (200, "agent", "a")]


def test_a_latency_without_end_loses_the_message():
    line = Line(Plan(latency=NEVER)).send(0, "a")
    assert (line.run(), line.lost()) == ([], [(0, "a", "lost")])


def test_messages_leave_one_after_another_and_few_may_wait():
    line = Line(Plan(pace_us=40, queue=2)).send(0, "a").send(0, "b").send(0, "c").send(39, "d").send(40, "e")
    assert line.run() == [(140, "agent", "a"), (180, "agent", "b"), (220, "agent", "e")]
    assert line.lost() == [(0, "c", "queue_full"), (39, "d", "queue_full")]
    assert line.results == [Sending.SENT, Sending.SENT, Sending.QUEUE_FULL, Sending.QUEUE_FULL, Sending.SENT]


def test_what_is_on_its_way_when_the_link_breaks_is_lost_and_both_ends_are_told():
    line = Line(Plan(down=(Outage(50, 100),))).send(0, "a").send(10, "b", Side.AGENT).send(149, "c").send(150, "d")
    assert line.run() == [
        (50, "session", "DOWN"),
        (50, "agent", "DOWN"),
        (150, "session", "UP"),
        (150, "agent", "UP"),
        (250, "agent", "d"),
    ]
    assert line.lost() == [(50, "a", "link_down"), (50, "b", "link_down"), (149, "c", "link_down")]
    assert [(r["t"], r["kind"], r.get("for_us")) for r in line.timeline.of("link.down", "link.up")] == [
        (50, "link.down", 100),
        (150, "link.up", None),
    ]


def test_a_message_that_arrives_on_the_instant_of_the_break_has_arrived():
    line = Line(Plan(down=(Outage(100),))).send(0, "a")
    assert line.run() == [(100, "agent", "a"), (100, "session", "DOWN"), (100, "agent", "DOWN")]


def test_a_message_held_up_before_the_break_does_not_hold_up_the_next_connection():
    line = Line(Plan(pace_us=500, down=(Outage(50, 50),))).send(0, "a").send(100, "b")
    assert line.run()[-1] == (700, "agent", "b")
