"""Playout: exact instants on the frame grid, cutting, starving, and its ties; each in both modes."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.pipelines.events import KINDS
from bargein.pipelines.playout import Playout
from bargein.pipelines.playout_book import PlayoutBook, Source, UtteranceState
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

MS = 1_000


class Sound:
    """Audio of so many milliseconds, with the words that end at the given ones."""

    def __init__(self, ms, *words):
        self.length = ms * 16
        self.words = [(word, end * 16) for word, end in words]

    def pcm(self):
        return np.zeros(self.length, dtype=np.int16)


class Rig:
    def __init__(self, per_frame):
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.book = PlayoutBook()
        self.over, self.silences, self.sounds, self.audible_at = [], [], [], []
        self.playout = Playout(
            self.clock,
            self.timeline,
            lambda utterance: self.over.append((self.clock.now, utterance.number)),
            on_sound=lambda sample, pcm: self.sounds.append((sample, len(pcm))),
            on_silence=self.silences.append,
            on_audible=lambda: self.audible_at.append(self.clock.now),
            per_frame=per_frame,
        )

    def utterance(self):
        return self.book.register(1, len(self.book.utterances), Source.ANSWER)

    def feed(self, at_ms, utterance, sound, last=False, order=Order.DELIVERY):
        def arrive(_):
            self.playout.feed(utterance, sound)
            if last:
                self.playout.finish(utterance)

        self.clock.call_at(int(at_ms * MS), order, arrive)

    def cut(self, at_ms, order=Order.INTERRUPTION):
        def decide(_):
            self.playout.cut(lambda: self.cuts.append(self.clock.now))

        self.cuts = []
        self.clock.call_at(int(at_ms * MS), order, decide)

    def run(self):
        self.clock.run()
        return [(row[0] / MS, row[1].removeprefix("playout."), *row[4:]) for row in self.timeline.rows]


@pytest.fixture(params=[False, True], ids=["spans", "frames"])
def rig(request):
    return Rig(request.param)


def test_it_begins_on_the_grid_and_runs_sample_by_sample(rig):
    rig.feed(5, rig.utterance(), Sound(50, ("One", 13), (" two", 50)), last=True)
    assert rig.run() == [
        (20, "started", Source.ANSWER, 320),
        (33, "word", 0, "One"),
        (70, "word", 1, " two"),
        (70, "ended", 800),
    ]
    assert rig.over == [(70 * MS, 0)]
    assert rig.audible_at == [5 * MS]


def test_audio_that_comes_on_a_boundary_begins_on_it(rig):
    rig.feed(40, rig.utterance(), Sound(20, ("One", 20)), last=True)
    assert rig.run()[0] == (40, "started", Source.ANSWER, 640)


def test_the_next_utterance_begins_on_the_boundary_after_the_one_before(rig):
    rig.feed(0, rig.utterance(), Sound(30, ("One", 30)), last=True)
    rig.feed(0, rig.utterance(), Sound(10, ("two", 10)), last=True)
    assert [each for each in rig.run() if each[1] in ("started", "ended")] == [
        (0, "started", Source.ANSWER, 0),
        (30, "ended", 480),
        (40, "started", Source.ANSWER, 640),
        (50, "ended", 160),
    ]


@pytest.mark.parametrize(
    ("decided_ms", "heard_ms", "words"),
    [(0, 0, []), (0.001, 20, []), (20, 20, []), (20.001, 40, ["One"]), (40, 40, ["One"]), (79.999, 80, ["One"])],
)
def test_a_cut_falls_on_the_next_frame_boundary(rig, decided_ms, heard_ms, words):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(200, ("One", 30), (" two", 150)), last=True)
    rig.cut(decided_ms)
    rows = rig.run()
    assert [row[3] for row in rows if row[1] == "word"] == words
    assert rows[-1] == (heard_ms, "cut", heard_ms * 16, 3200)
    assert rig.cuts == [heard_ms * MS]
    assert (utterance.heard, utterance.heard_text()) == (heard_ms * 16, "".join(words))
    assert rig.silences == [heard_ms * 16]


@pytest.mark.parametrize("decided_ms", [105, 112], ids=["cut first", "word first"])
def test_a_word_that_ends_on_the_boundary_of_the_cut_was_heard(rig, decided_ms):
    # By spans the timer of the word at 120 ms is set at 110 ms, so the cut at 120 ms stands before or behind it.
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(200, ("One", 110), (" two", 120), (" three", 121)), last=True)
    rig.cut(decided_ms)
    assert rig.run()[-2:] == [(120, "word", 1, " two"), (120, "cut", 1920, 3200)]
    assert utterance.heard_text() == "One two"


@pytest.mark.parametrize("decided_ms", [25, 35], ids=["cut first", "end first"])
def test_an_utterance_that_ends_on_the_boundary_of_the_cut_was_heard_whole(rig, decided_ms):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(40, ("One", 30), (" two", 40)), last=True)
    rig.cut(decided_ms)
    assert rig.run()[-2:] == [(40, "word", 1, " two"), (40, "ended", 640)]
    assert utterance.state is UtteranceState.ENDED
    assert rig.over == [(40 * MS, 0)]


def test_what_waits_behind_the_one_that_is_cut_is_not_heard(rig):
    rig.feed(0, rig.utterance(), Sound(100, ("One", 100)), last=True)
    waiting = rig.utterance()
    rig.feed(10, waiting, Sound(100, ("two", 100)), last=True)
    rig.cut(45)
    assert rig.run()[-2:] == [(60, "cut", 960, 1600), (60, "cut", 0, 1600)]
    assert waiting.heard_text() == ""
    assert not rig.playout.audible


@pytest.mark.parametrize("decided_ms", [21, 40], ids=["before its boundary", "on its boundary"])
def test_an_utterance_that_would_begin_on_the_boundary_of_the_cut_does_not(rig, decided_ms):
    rig.feed(21, rig.utterance(), Sound(100, ("One", 100)), last=True)
    rig.cut(decided_ms)
    assert rig.run() == [(40, "cut", 0, 1600)]


def test_one_that_begins_ahead_of_the_decision_on_its_instant_is_cut_there(rig):
    # The other way round than the clock's order: the decision comes after the boundary's events.
    rig.feed(21, rig.utterance(), Sound(100, ("One", 100)), last=True)
    rig.cut(40, order=Order.WORK)
    assert rig.run() == [(40, "started", Source.ANSWER, 640), (40, "cut", 0, 1600)]


def test_the_next_utterance_is_not_begun_between_a_decision_and_its_cut(rig):
    rig.feed(0, rig.utterance(), Sound(25, ("One", 25)), last=True)
    rig.feed(0, rig.utterance(), Sound(50, ("two", 50)), last=True)
    rig.cut(22)
    assert rig.run()[1:] == [(25, "word", 0, "One"), (25, "ended", 400), (40, "cut", 0, 800)]


def test_a_cut_of_silence_is_done_at_once(rig):
    rig.cut(7)
    assert rig.run() == []
    assert rig.cuts == [7 * MS]


def test_it_starves_and_goes_on_at_the_boundary_after_the_late_piece(rig):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(30, ("One", 30)))
    rig.feed(45, utterance, Sound(15, (" two", 15)), last=True)
    assert rig.run() == [
        (0, "started", Source.ANSWER, 0),
        (30, "word", 0, "One"),
        (30, "starved", 480),
        (60, "resumed", 960),
        (75, "word", 1, " two"),
        (75, "ended", 720),
    ]
    assert utterance.spans == [(0, 0, 480), (960, 480, 240)]
    assert rig.sounds == [(0, 480), (960, 240)]


@pytest.mark.parametrize("order", [Order.DELIVERY, Order.WORK], ids=["piece first", "end first"])
def test_a_piece_that_comes_as_the_last_sample_leaves_is_in_time_if_delivered_first(rig, order):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(30, ("One", 30)))
    rig.feed(30, utterance, Sound(20, (" two", 20)), last=True, order=order)
    tail = {
        Order.DELIVERY: [(50, "word", 1, " two"), (50, "ended", 800)],
        Order.WORK: [(30, "starved", 480), (40, "resumed", 640), (60, "word", 1, " two"), (60, "ended", 800)],
    }
    assert rig.run()[2:] == tail[order]


def test_pieces_that_come_in_time_play_without_a_gap(rig):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(30, ("One", 30)))
    rig.feed(10, utterance, Sound(33, (" two", 20)))
    rig.feed(62, utterance, Sound(20, (" three", 20)), last=True)
    assert rig.run()[1:] == [
        (30, "word", 0, "One"),
        (50, "word", 1, " two"),
        (83, "word", 2, " three"),
        (83, "ended", 1328),
    ]
    assert rig.sounds == [(0, 480), (480, 528), (1008, 320)]


def test_a_starved_utterance_ends_when_nothing_more_will_come(rig):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(30, ("One", 30)))
    rig.clock.call_at(47 * MS, Order.DELIVERY, lambda _: rig.playout.finish(utterance))
    assert rig.run()[-1] == (47, "ended", 480)


@pytest.mark.parametrize("fed_ms", [None, 41], ids=["nothing came", "a piece came just before"])
def test_a_starved_utterance_is_cut_at_what_was_heard(rig, fed_ms):
    utterance = rig.utterance()
    rig.feed(0, utterance, Sound(30, ("One", 30)))
    if fed_ms is not None:
        rig.feed(fed_ms, utterance, Sound(15, (" two", 15)))
    rig.cut(42)
    received = 480 if fed_ms is None else 720
    assert rig.run()[-2:] == [(30, "starved", 480), (60, "cut", 480, received)]
    assert utterance.heard_text() == "One"


@pytest.mark.parametrize("decided_ms", [25, 35])
def test_starving_on_the_boundary_of_a_cut_is_left_to_the_cut(rig, decided_ms):
    rig.feed(0, rig.utterance(), Sound(40, ("One", 30)))
    rig.cut(decided_ms)
    assert rig.run()[-1] == (40, "cut", 640, 640)
    assert "starved" not in [row[1] for row in rig.run()]


def test_an_utterance_without_audio_is_lost(rig):
    utterance = rig.utterance()
    rig.playout.finish(utterance)
    assert utterance.state is UtteranceState.LOST
    assert rig.over == [(0, 0)]
    assert rig.run() == []
