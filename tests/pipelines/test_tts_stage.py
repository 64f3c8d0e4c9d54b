"""The speech stage: order of clips and answers, bounds, waits, fallbacks and interruptions.

The provider is a fake whose audio comes when the test says so; a clip of 1 s plays on a real playout.
"""

from __future__ import annotations

import numpy as np
import pytest

from bargein.pipelines.events import KINDS
from bargein.pipelines.playout import Playout
from bargein.pipelines.playout_book import PlayoutBook, Source, UtteranceState
from bargein.pipelines.settings import TtsSettings
from bargein.pipelines.tts_stage import TtsStage, TtsStats
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

MS = 1_000


class Sound:
    def __init__(self, ms, *words):
        self.length = ms * 16
        self.words = [(word, end * 16) for word, end in words]

    def pcm(self):
        return np.zeros(self.length, dtype=np.int16)


class Provider:
    def __init__(self):
        self.opened, self.texts, self.flushed, self.cancelled, self.callbacks = [], {}, [], [], {}

    def open(self, utterance, on_audio, on_end):
        self.opened.append(utterance)
        self.callbacks[utterance] = on_audio, on_end
        provider = self

        class Context:
            def say(self, text):
                provider.texts[utterance] = provider.texts.get(utterance, "") + text

            def flush(self):
                provider.flushed.append(utterance)

            def cancel(self):
                provider.cancelled.append(utterance)

        return Context()


class Store:
    def __init__(self, **clips):
        self.clips = clips

    def has(self, key):
        return key in self.clips

    def clip(self, key):
        return self.clips.get(key)


CLIP = Sound(1000, ("One", 0), (" moment,", 300), (" please.", 1000))
STORE = Store(wait=(CLIP, 16_000), slow=(CLIP, 8_000))


class Rig:
    def __init__(self, store=STORE, **settings):
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.book = PlayoutBook()
        self.provider = Provider()
        self.playout = Playout(self.clock, self.timeline, lambda utterance: self.stage.on_over(utterance))
        self.idle = 0
        self.stage = TtsStage(
            self.clock,
            self.timeline,
            self.book,
            self.playout,
            self.provider,
            store,
            TtsSettings(**settings),
            self._idle,
        )

    def _idle(self):
        self.idle += 1

    def at(self, ms, function, *arguments, order=Order.DELIVERY):
        self.clock.call_at(int(ms * MS), order, lambda _: function(*arguments))

    def answer(self, ms, text, epoch=1, flush=True):
        ordinal = self.book.next_ordinal()
        self.at(ms, self.stage.inbox.offer, (epoch, ordinal, Source.ANSWER, text))
        if flush:
            self.at(ms, self.stage.inbox.offer, (epoch, ordinal, Source.ANSWER, None))
        return ordinal

    def filler(self, ms, key, epoch=1):
        ordinal = self.book.next_ordinal()
        self.book.cue_clip(ordinal, key)
        self.at(ms, self.stage.inbox.offer, (epoch, ordinal, Source.FILLER, "One moment, please."))
        self.at(ms, self.stage.inbox.offer, (epoch, ordinal, Source.FILLER, None))
        return ordinal

    def audio(self, ms, utterance, sound, last=True):
        self.at(ms, lambda: self.provider.callbacks[utterance][0](utterance, sound))
        if last:
            self.at(ms, lambda: self.provider.callbacks[utterance][1](utterance))

    def interrupt(self, ms, epoch=2):
        def act():
            self.stage.interrupt(epoch)
            self.playout.cut(lambda: None)

        self.at(ms, act, order=Order.INTERRUPTION)

    def run(self, *kinds):
        self.clock.run()
        kinds = kinds or ("playout.started", "playout.ended", "playout.cut")
        return [(row[0] / MS, row[1], row[3]) for row in self.timeline.rows if row[1] in kinds]


def test_text_goes_to_the_provider_as_it_comes_one_context_a_response():
    rig = Rig()
    rig.answer(0, "One ", flush=False)
    rig.at(5, rig.stage.inbox.offer, (1, 0, Source.ANSWER, "two."))
    rig.at(9, rig.stage.inbox.offer, (1, 0, Source.ANSWER, None))
    rig.answer(10, "Three.")
    rig.run()
    assert rig.provider.texts == {0: "One two.", 1: "Three."}
    assert rig.provider.flushed == [0, 1]


def test_contexts_reach_the_playout_in_the_order_of_opening_whoever_is_quicker():
    rig = Rig()
    rig.answer(0, "One.")
    rig.answer(0, "Two.")
    rig.audio(20, 1, Sound(100, ("Two.", 100)))
    rig.audio(60, 0, Sound(100, ("One.", 100)), last=False)
    rig.audio(100, 0, Sound(100, (" More.", 100)))
    assert rig.run("tts.first_byte", "playout.started", "playout.ended", "tts.ended") == [
        (20, "tts.first_byte", 1),
        (60, "tts.first_byte", 0),
        (60, "playout.started", 0),
        (100, "tts.ended", 0),
        (100, "tts.ended", 1),
        (260, "playout.ended", 0),
        (260, "playout.started", 1),
        (360, "playout.ended", 1),
    ]
    assert rig.stage.idle


def test_the_provider_never_hears_of_a_clip_and_the_book_has_its_words():
    rig = Rig()
    ordinal = rig.filler(0, "wait")
    rig.run()
    assert rig.provider.opened == []
    utterance = rig.book.of_response(ordinal)
    assert (utterance.sent_text, utterance.clip) == ("One moment, please.", "wait")
    assert rig.stage.stats == TtsStats()


def test_a_clip_plays_after_everything_before_it_and_the_answer_waits_for_it():
    # Speech to 500 ms, the clip is flushed at 100 ms; the answer's text comes at 200 ms while the clip is pending.
    rig = Rig()
    rig.answer(0, "Before.")
    rig.audio(0, 0, Sound(500, ("Before.", 500)))
    rig.filler(100, "wait")
    rig.answer(200, "After.")
    rig.at(500, lambda: rig.audio(500, 2, Sound(200, ("After.", 200))), order=Order.WORK)
    assert rig.run("tts.opened", "clip.queued", "tts.waiting", "playout.started", "playout.ended") == [
        (0, "tts.opened", 0),
        (0, "playout.started", 0),
        (100, "tts.opened", 1),
        (100, "clip.queued", 1),
        (200, "tts.waiting", 2),
        (500, "playout.ended", 0),
        (500, "tts.opened", 2),
        (500, "playout.started", 1),
        (1500, "playout.ended", 1),
        (1500, "playout.started", 2),
        (1700, "playout.ended", 2),
    ]
    assert rig.stage.stats == TtsStats(clip_waits=1)


def test_a_clip_does_not_pass_speech_whose_audio_has_not_come():
    rig = Rig()
    rig.answer(0, "Before.")
    rig.filler(10, "wait")
    rig.audio(300, 0, Sound(100, ("Before.", 100)))
    assert rig.run() == [
        (300, "playout.started", 0),
        (400, "playout.ended", 0),
        (400, "playout.started", 1),
        (1400, "playout.ended", 1),
    ]


def test_the_words_of_a_clip_come_between_its_start_and_its_end():
    rig = Rig()
    rig.filler(0, "wait")
    rig.clock.run()
    assert [(row[0] / MS, row[1], row[5]) for row in rig.timeline.rows if row[1] == "playout.word"] == [
        (0, "playout.word", "One"),
        (300, "playout.word", " moment,"),
        (1000, "playout.word", " please."),
    ]
    assert [row[1] for row in rig.timeline.rows][-1] == "playout.ended"


@pytest.mark.parametrize(
    ("store", "key", "reason"),
    [(None, "wait", "no store"), (STORE, "unheard_of", "unknown clip"), (STORE, "slow", "other sample rate")],
)
def test_a_clip_that_cannot_be_played_is_spoken_by_the_provider(store, key, reason):
    rig = Rig(store)
    ordinal = rig.filler(0, key)
    rig.clock.run()
    assert [row[3:] for row in rig.timeline.rows if row[1] == "clip.fallback"] == [(ordinal, key, reason)]
    assert rig.provider.texts == {0: "One moment, please."}
    assert rig.stage.stats == TtsStats(clip_fallbacks=1)


def test_the_fifth_waiting_clip_is_dropped_and_its_utterance_lost():
    rig = Rig()
    rig.answer(0, "Before.", flush=False)
    ordinals = [rig.filler(10, "wait") for _ in range(5)]
    rig.audio(100, 0, Sound(100, ("Before.", 100)))
    started = [number for _, kind, number in rig.run() if kind == "playout.started"]
    assert started == [0, 1, 2, 3, 4]
    assert [row[3:] for row in rig.timeline.rows if row[1] == "tts.dropped"] == [(5, "clip queue full")]
    lost = rig.book.of_response(ordinals[-1])
    assert (lost.state, lost.heard_text()) == (UtteranceState.LOST, "")
    assert rig.stage.stats == TtsStats(clips_dropped=1)
    assert rig.stage.idle


def test_a_context_waits_thirty_seconds_for_a_clip_and_its_audio_still_follows_the_clip():
    rig = Rig()
    rig.answer(0, "Before.", flush=False)  # the provider says nothing, so the clip behind it cannot play
    rig.filler(1000, "wait")
    rig.answer(2000, "After.")
    rig.at(32_000, lambda: rig.audio(33_000, 2, Sound(100, ("After.", 100))), order=Order.WORK)
    rig.audio(40_000, 0, Sound(100, ("Before.", 100)))
    assert rig.run("tts.opened", "playout.started", "playout.ended") == [
        (0, "tts.opened", 0),
        (1000, "tts.opened", 1),
        (32_000, "tts.opened", 2),
        (40_000, "playout.started", 0),
        (40_100, "playout.ended", 0),
        (40_100, "playout.started", 1),
        (41_100, "playout.ended", 1),
        (41_100, "playout.started", 2),
        (41_200, "playout.ended", 2),
    ]


def test_text_behind_a_waiting_context_fills_the_inbox_up_to_its_bound():
    rig = Rig(inbox=2)
    rig.answer(0, "Before.", flush=False)
    rig.filler(10, "wait")
    ordinal = rig.answer(20, "After", flush=False)
    offers = []
    for ms, text in ((21, " one"), (22, " two"), (23, " three")):
        item = (1, ordinal, Source.ANSWER, text)
        rig.at(ms, lambda item=item: offers.append(rig.stage.inbox.offer(item)))
    rig.audio(100, 0, Sound(100, ("Before.", 100)))
    rig.run()
    assert offers == [True, True, False]
    assert rig.provider.texts[2] == "After one two"


def test_an_interruption_ends_the_wait_and_drops_the_clip_without_telling_the_provider():
    rig = Rig()
    rig.answer(0, "Before.")
    rig.audio(0, 0, Sound(500, ("Before.", 500)))
    rig.filler(100, "wait")
    rig.answer(200, "After.")
    rig.interrupt(250)
    rig.answer(300, "Anew.", epoch=2)
    assert rig.run("tts.opened", "tts.dropped", "playout.started", "playout.cut") == [
        (0, "tts.opened", 0),
        (0, "playout.started", 0),
        (100, "tts.opened", 1),
        (250, "tts.dropped", 1),
        (260, "playout.cut", 0),
        (300, "tts.opened", 2),
    ]
    assert rig.provider.cancelled == []  # the first context had delivered all, the second never was one
    assert rig.stage.stats == TtsStats(clips_dropped=1, clip_waits=1)


def test_an_interruption_in_the_middle_of_a_clip_keeps_the_words_heard():
    rig = Rig()
    ordinal = rig.filler(0, "wait")
    rig.interrupt(501)
    assert rig.run() == [(0, "playout.started", 0), (520, "playout.cut", 0)]
    assert rig.book.heard_of_response(ordinal) == "One moment,"
    assert rig.provider.cancelled == []


def test_an_interruption_cancels_what_the_provider_still_works_on():
    rig = Rig()
    rig.answer(0, "One.")
    rig.answer(0, "Two.")
    rig.audio(20, 0, Sound(100, ("One.", 100)))
    rig.audio(60, 1, Sound(100, ("Two.", 100)), last=False)  # under way: it may still arrive
    rig.interrupt(50)
    assert rig.run("tts.dropped", "playout.started", "playout.cut") == [
        (20, "playout.started", 0),
        (50, "tts.dropped", 1),
        (60, "playout.cut", 0),
    ]
    assert rig.provider.cancelled == [1]
    assert rig.stage.idle


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        (Order.DELIVERY, [(40, "tts.first_byte", 0), (40, "playout.cut", 0)]),
        (Order.TIMER, [(40, "tts.dropped", 0)]),
    ],
    ids=["audio first", "interruption first"],
)
def test_audio_on_the_instant_of_an_interruption_is_never_heard(order, rows):
    rig = Rig()
    ordinal = rig.answer(0, "One.")
    rig.at(40, lambda: rig.provider.callbacks[0][0](0, Sound(100, ("One.", 100))), order=order)
    rig.interrupt(40)
    assert rig.run("tts.first_byte", "tts.dropped", "playout.started", "playout.cut") == rows
    assert rig.book.heard_of_response(ordinal) == ""


def test_text_of_an_epoch_that_is_over_is_dropped():
    rig = Rig()
    rig.interrupt(0)
    rig.answer(10, "Old.", epoch=1)
    rig.answer(10, "New.", epoch=2)
    rig.run()
    assert rig.provider.texts == {0: "New."}


def test_a_response_of_which_no_text_came_opens_nothing():
    rig = Rig()
    rig.at(0, rig.stage.inbox.offer, (1, 0, Source.ANSWER, None))
    assert rig.run("tts.opened") == []
    assert rig.stage.idle
