"""The caller: lines at instants and after events, spoken or decided, and the end of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from bargein.models.callers import ScriptedCaller
from bargein.models.recordings import Recording
from bargein.models.voice import speak
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Timeline

KINDS = {
    "caller.started": ("line", "text", "duration_us", "level"),
    "caller.ended": ("line",),
    "tool.started": ("call", "tool"),
}
SAY = "Zebras wander home."
LENGTH_US = samples_to_us(speak("caller", SAY).length)


@dataclass
class After:
    event: str
    by_us: int = 0
    nth: int = 1
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Line:
    say: str = SAY
    transcript: str | None = None
    at_us: int | None = None
    after: After | None = None
    level: str = "audio"
    for_us: int | None = None
    hang_up: bool = False


class Microphone:
    """A recogniser that writes down which words are coming."""

    def __init__(self) -> None:
        self.coming: list[tuple[int, list[tuple[str, int, int]]]] = []

    def will_say(self, first_sample: int, words: list[tuple[str, int, int]]) -> None:
        self.coming.append((first_sample, words))


class Call:
    """A session that does nothing but write down what the caller does to it."""

    def __init__(self, *lines: Line) -> None:
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.epoch = 0
        self.over = False
        self.log: list[tuple[int, str]] = []
        self.microphone = Microphone()
        recordings = [speak("caller", line.say) if line.say else None for line in lines]
        self.caller = ScriptedCaller(lines, recordings, self.microphone)  # type: ignore[arg-type]

    def caller_speaks(self, line: Recording, first_sample: int) -> None:
        self.log.append((self.clock.now, f"speaks at {first_sample}: {line.text}"))

    def caller_decides(self, text: str, duration_us: int) -> None:
        self.log.append((self.clock.now, f"decides {text!r} for {duration_us}"))

    def hang_up(self) -> None:
        self.log.append((self.clock.now, "hangs up"))

    def poke(self) -> None:
        self.log.append((self.clock.now, f"pokes, {'exhausted' if self.caller.exhausted else 'busy'}"))

    def happens(self, at_us: int, tool: str, epoch: int = 1) -> None:
        self.clock.call_at(at_us, Order.WORK, lambda _: self.timeline.add("tool.started", epoch, "t1.0", tool))

    def run(self) -> list[tuple[int, str]]:
        self.caller.start(self)
        self.clock.run()
        return self.log


def test_a_line_is_spoken_at_its_instant_and_ends_when_its_last_sample_has_passed() -> None:
    call = Call(Line(at_us=500_000))
    assert call.run() == [(500_000, f"speaks at 8000: {SAY}"), (500_000 + LENGTH_US, "pokes, exhausted")]
    assert list(call.timeline) == [
        {
            "t": 500_000,
            "seq": 0,
            "kind": "caller.started",
            "epoch": 0,
            "line": 1,
            "text": SAY,
            "duration_us": LENGTH_US,
            "level": "audio",
        },
        {"t": 500_000 + LENGTH_US, "seq": 1, "kind": "caller.ended", "epoch": 0, "line": 1},
    ]
    assert [(line, first) for line, first, _ in call.caller.said] == [(1, 8_000)]


def test_a_line_between_two_samples_begins_with_the_next_one() -> None:
    call = Call(Line(at_us=500_001))
    ends_at_us = samples_to_us(8_001 + speak("caller", SAY).length)
    assert call.run() == [(500_001, f"speaks at 8001: {SAY}"), (ends_at_us, "pokes, exhausted")]


def test_the_recogniser_is_told_the_words_and_where_they_lie() -> None:
    call = Call(Line(at_us=500_000), Line(at_us=9_000_000, transcript="Sheep."), Line(at_us=19_000_000, transcript=""))
    call.run()
    recording = speak("caller", SAY)
    assert call.microphone.coming == [
        (8_000, [(word.text, word.start, word.end) for word in recording.words]),
        (144_000, [("Sheep.", 0, recording.length)]),
        (304_000, []),
    ]


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        (Line(at_us=7, level="decision"), f"decides '{SAY}' for {LENGTH_US}"),
        (Line(at_us=7, level="decision", for_us=30), f"decides '{SAY}' for 30"),
        (Line(at_us=7, level="decision", for_us=30, transcript="Sheep."), "decides 'Sheep.' for 30"),
        (Line(at_us=7, level="decision", for_us=30, transcript=""), "decides '' for 30"),
    ],
)
def test_a_placed_decision_is_no_sound(line: Line, decided: str) -> None:
    call = Call(line)
    length_us = line.for_us or LENGTH_US
    assert call.run() == [(7, decided), (7 + length_us, "pokes, exhausted")]
    assert (call.microphone.coming, call.caller.said) == ([], [])


def test_a_line_follows_the_nth_event_that_fits() -> None:
    call = Call(Line(after=After("tool.started", by_us=900, nth=2, where={"tool": "book", "epoch": 1})))
    for at_us, tool, epoch in ((10, "book", 1), (20, "look", 1), (30, "book", 2), (40, "book", 1), (50, "book", 1)):
        call.happens(at_us, tool, epoch)
    assert call.run()[0] == (940, f"speaks at 16: {SAY}")
    assert (len(call.caller.said), call.caller.unsaid) == (1, {})


def test_a_line_whose_event_never_comes_stays_unsaid_and_keeps_nobody_waiting() -> None:
    call = Call(
        Line(after=After("tool.started", where={"tool": "book"})),
        Line(at_us=10, level="decision", for_us=5),
        Line(after=After("tool.started", nth=2)),
    )
    call.happens(20, "look")
    assert call.run() == [(10, f"decides '{SAY}' for 5"), (15, "pokes, exhausted")]
    assert list(call.caller.unsaid) == [1, 3]


def test_the_caller_is_busy_from_the_event_to_the_end_of_the_line() -> None:
    call = Call(
        Line(after=After("tool.started", by_us=100), level="decision", for_us=5),
        Line(at_us=50, level="decision", for_us=5),
    )
    call.happens(10, "book")
    assert call.run()[1] == (55, "pokes, busy")
    assert call.caller.exhausted


def test_a_line_may_end_the_call_after_it_was_spoken_or_without_a_word() -> None:
    call = Call(Line(at_us=10, level="decision", for_us=5, hang_up=True), Line(say="", at_us=90, hang_up=True))
    assert call.run() == [
        (10, f"decides '{SAY}' for 5"),
        (15, "pokes, busy"),
        (15, "hangs up"),
        (90, "hangs up"),
    ]
    assert call.caller.exhausted


@pytest.mark.parametrize(
    ("line", "order"),
    [
        (Line(at_us=10), ["frame", "delivery", "caller", "interruption"]),
        (Line(at_us=10, level="decision", for_us=5), ["frame", "delivery", "caller", "interruption"]),
        (Line(say="", at_us=10, hang_up=True), ["frame", "delivery", "caller", "interruption"]),
    ],
)
def test_sound_is_delivered_after_the_frame_that_came_in_and_decisions_interrupt_in_turn(
    line: Line, order: list[str]
) -> None:
    call = Call(line)
    call.clock.call_at(10, Order.DELIVERY, lambda _: call.log.append((10, "delivery")))
    call.caller.start(call)
    call.clock.call_at(10, Order.INTERRUPTION, lambda _: call.log.append((10, "interruption")))
    call.clock.call_at(10, Order.FRAME, lambda _: call.log.append((10, "frame")))
    call.clock.run(until=11)
    names = [what if what in order else "caller" for _, what in call.log]
    assert names == order
