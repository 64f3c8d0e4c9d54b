"""The recogniser: which words a stretch holds, when they come, and that each comes once."""

from __future__ import annotations

import pytest

from bargein.models.latency import NEVER, Constant, Latency, Uniform
from bargein.models.stt import LateWords, ScriptedStt
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

# "Is my order ready?": 100 ms a word, 1600 samples each, from the session's second second.
WORDS = [("Is", 0, 1600), (" my", 1600, 3200), (" order", 3200, 4800), (" ready?", 4800, 6400)]
BEGINS = 1_000_000


class Line:
    """A recogniser that knows one line, and the finals that it sent."""

    def __init__(self, latency: Latency | None = None, late: LateWords | None = None) -> None:
        self.clock = Clock()
        self.stream = Stream(1, "stt")
        self.stt = ScriptedStt(self.clock, latency or Constant(200), self.stream, late)
        self.stt.will_say(16_000, WORDS)
        self.finals: list[tuple[int, int, str, bool]] = []

    def hear(self, segment: int, onset_us: int, end_us: int) -> None:
        self.stt.transcribe(
            segment,
            onset_us,
            end_us,
            lambda number, text, more: self.finals.append((self.clock.now, number, text, more)),
        )

    def run(self) -> list[tuple[int, int, str, bool]]:
        self.clock.run()
        return self.finals


def test_a_stretch_gives_its_words_after_the_latency() -> None:
    line = Line()
    line.hear(7, BEGINS, BEGINS + 400_000)
    assert line.run() == [(200, 7, "Is my order ready?", False)]


def test_each_word_belongs_to_one_stretch_the_one_in_which_it_began() -> None:
    line = Line()
    line.hear(0, BEGINS, BEGINS + 150_000)
    line.hear(1, BEGINS + 150_000, BEGINS + 300_000)
    line.hear(2, BEGINS, BEGINS + 400_000)
    assert line.run() == [(200, 0, "Is my", False), (200, 1, "order", False), (200, 2, "ready?", False)]


@pytest.mark.parametrize(
    ("onset_us", "end_us", "text"),
    [
        (BEGINS + 99_999, BEGINS + 400_000, "Is my order ready?"),
        (BEGINS + 100_000, BEGINS + 400_000, "my order ready?"),
        (BEGINS, BEGINS + 300_000, "Is my order"),
        (BEGINS, BEGINS + 300_001, "Is my order ready?"),
        (BEGINS - 500_000, BEGINS, ""),
    ],
)
def test_a_word_counts_from_its_first_microsecond_to_its_last(onset_us: int, end_us: int, text: str) -> None:
    line = Line()
    line.hear(0, onset_us, end_us)
    assert line.run() == [(200, 0, text, False)]


def test_a_word_that_was_too_quiet_to_be_noticed_is_lost() -> None:
    line = Line()
    line.hear(0, BEGINS + 250_000, BEGINS + 400_000)
    line.hear(1, BEGINS, BEGINS + 400_000)
    assert line.run() == [(200, 0, "order ready?", False), (200, 1, "", False)]


def test_the_last_words_may_come_late_in_a_second_final() -> None:
    line = Line(late=LateWords(50, 1))
    line.hear(3, BEGINS, BEGINS + 400_000)
    assert line.run() == [(200, 3, "Is my order", True), (250, 3, "ready?", False)]


@pytest.mark.parametrize("words", [4, 5])
def test_a_stretch_with_no_more_words_than_come_late_is_one_final(words: int) -> None:
    line = Line(late=LateWords(50, words))
    line.hear(3, BEGINS, BEGINS + 400_000)
    assert line.run() == [(200, 3, "Is my order ready?", False)]


def test_a_recogniser_that_never_answers_sends_nothing() -> None:
    line = Line(NEVER)
    line.hear(0, BEGINS, BEGINS + 400_000)
    assert line.run() == []


def test_a_stretch_draws_its_latency_once_from_the_recognisers_own_stream() -> None:
    line = Line(Uniform(100, 300), LateWords(50, 1))
    line.hear(0, BEGINS, BEGINS + 400_000)
    assert line.stream.drawn == 1
    drawn = Uniform(100, 300).draw(Stream(1, "stt"))
    assert [final[0] for final in line.run()] == [drawn, drawn + 50]
