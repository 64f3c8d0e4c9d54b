"""The TTS provider: sentence by sentence, first byte, speed, and contexts that know nothing of each other."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.models.latency import NEVER, Constant, Latency, Uniform
from bargein.models.tts import Piece, ScriptedTts, spoken
from bargein.models.voice import speak
from bargein.pipelines.ports import Synthesis
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.streams import Stream

FIRST, SECOND = "Zebras wander home.", " Quokkas laugh."  # no fixtures: the plain voice says them


class Provider:
    """A provider, and what it delivered: (instant, utterance, text or ``end``)."""

    def __init__(self, ttfb: Latency | None = None, speed: float = 1.0) -> None:
        self.clock = Clock()
        self.stream = Stream(1, "tts")
        self.tts = ScriptedTts(self.clock, ttfb or Constant(100_000), self.stream, speed, "agent")
        self.log: list[tuple[int, int, str]] = []

    def open(self, utterance: int = 1) -> Synthesis:
        return self.tts.open(utterance, self._audio, lambda number: self.log.append((self.clock.now, number, "end")))

    def _audio(self, utterance: int, piece: Piece) -> None:
        self.log.append((self.clock.now, utterance, "".join(text for text, _ in piece.words)))

    def run(self) -> list[tuple[int, int, str]]:
        self.clock.run()
        return self.log


def length_us(text: str) -> int:
    return samples_to_us(speak("agent", text).length)


def test_a_sentence_comes_whole_after_the_time_to_first_byte_and_the_context_ends_with_it() -> None:
    provider = Provider()
    context = provider.open()
    context.say(FIRST)
    context.flush()
    assert provider.run() == [(100_000, 1, FIRST), (100_000, 1, "end")]


def test_a_sentence_begins_once_the_next_one_has_begun() -> None:
    provider = Provider()
    context = provider.open()
    context.say(FIRST)
    provider.clock.call_at(7_000, Order.DELIVERY, lambda _: context.say(SECOND))
    assert provider.run() == [(107_000, 1, FIRST)]


def test_a_later_sentence_follows_when_the_one_before_was_delivered() -> None:
    provider = Provider()
    context = provider.open()
    context.say(FIRST + SECOND)
    context.flush()
    second_at_us = 100_000 + length_us(FIRST)
    assert provider.run() == [(100_000, 1, FIRST), (second_at_us, 1, SECOND), (second_at_us, 1, "end")]
    assert provider.stream.drawn == 0


def test_faster_delivery_brings_the_later_sentence_sooner_rounded_up_to_the_microsecond() -> None:
    provider = Provider(speed=3)
    context = provider.open()
    context.say(FIRST + SECOND)
    context.flush()
    assert provider.run()[1] == (100_000 + -(-length_us(FIRST) // 3), 1, SECOND)


def test_slow_delivery_brings_words_one_by_one_each_as_late_as_it_is_long() -> None:
    provider = Provider(speed=0.5)
    context = provider.open()
    context.say(FIRST)
    context.flush()
    first, second, third = speak("agent", FIRST).words
    wander_at_us = 100_000 + 2 * samples_to_us(first.end)
    home_at_us = wander_at_us + 2 * samples_to_us(second.end - first.end)
    assert third.text == " home."
    assert provider.run() == [
        (100_000, 1, "Zebras"),
        (wander_at_us, 1, " wander"),
        (home_at_us, 1, " home."),
        (home_at_us, 1, "end"),
    ]


def test_a_context_that_is_flushed_empty_ends_at_once_and_draws_nothing() -> None:
    provider = Provider(Uniform(1, 9))
    provider.open().flush()
    assert (provider.run(), provider.stream.drawn) == ([(0, 1, "end")], 0)


def test_a_provider_that_never_answers_leaves_the_context_open() -> None:
    provider = Provider(NEVER)
    context = provider.open()
    context.say(FIRST)
    context.flush()
    assert provider.run() == []


def test_a_context_draws_one_time_to_first_byte() -> None:
    provider = Provider(Uniform(1, 99))
    for utterance in (1, 2):
        context = provider.open(utterance)
        context.say(FIRST + SECOND)
        context.flush()
    assert provider.stream.drawn == 2
    drawn = Stream(1, "tts")
    firsts = sorted((Uniform(1, 99).draw(drawn), utterance, FIRST) for utterance in (1, 2))
    assert provider.run()[:2] == firsts


def test_cancelling_stops_what_has_not_been_sent() -> None:
    provider = Provider()
    context = provider.open()
    context.say(FIRST + SECOND)
    context.flush()
    provider.open(2).flush()
    provider.clock.call_at(100_001, Order.INTERRUPTION, lambda _: context.cancel())
    assert provider.run() == [(0, 2, "end"), (100_000, 1, FIRST)]
    assert (provider.tts.opened, provider.tts.cancelled) == ([1, 2], [1])


def test_a_cancelled_word_by_word_delivery_stops_too() -> None:
    provider = Provider(speed=0.5)
    context = provider.open()
    context.say(FIRST)
    context.flush()
    provider.clock.call_at(100_001, Order.INTERRUPTION, lambda _: context.cancel())
    assert provider.run() == [(100_000, 1, "Zebras")]


def test_contexts_stream_side_by_side() -> None:
    provider = Provider()
    for utterance in (1, 2):
        context = provider.open(utterance)
        context.say(FIRST)
        context.flush()
    assert provider.run() == [(100_000, 1, FIRST), (100_000, 1, "end"), (100_000, 2, FIRST), (100_000, 2, "end")]


@pytest.mark.parametrize("speed", [1.0, 0.5])
def test_the_pieces_of_a_sentence_are_its_recording(speed: float) -> None:
    pieces: list[Piece] = []
    provider = Provider(speed=speed)
    context = provider.tts.open(1, lambda _, piece: pieces.append(piece), lambda _: None)
    context.say(FIRST)
    context.flush()
    provider.clock.run()
    recording = speak("agent", FIRST)
    assert np.array_equal(np.concatenate([piece.pcm() for piece in pieces]), recording.pcm())
    assert [piece.length for piece in pieces] == [len(piece.pcm()) for piece in pieces]
    at, ends = 0, []
    for piece in pieces:
        ends += [at + end for _, end in piece.words]
        at += piece.length
    assert ends == [word.end for word in recording.words]


def test_a_text_is_rendered_once_for_all_sessions() -> None:
    assert spoken("agent", FIRST) is spoken("agent", FIRST)
