"""The turn detector: when the caller interrupts, when they have finished, and whose words are whose.

Speech is given as (onset, end) in milliseconds: its start is decided 40 ms after the onset, its stop 200 ms after the
end, as the built-in detector does. Finals come 200 ms after the stop.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bargein.pipelines.events import KINDS
from bargein.pipelines.settings import BargeInWhen, TurnSettings
from bargein.pipelines.turn_detector import TurnDetector
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

MS = 1_000


@dataclass
class Edge:
    kind: str
    onset_frame: int = -1
    last_frame: int = -1


class Bot:
    """Active and audible as the test says; a barge-in silences it."""

    epoch = 1
    active = audible = False
    first_sound_us = None

    def __init__(self, rig):
        self.rig = rig
        self.barge_ins, self.turns, self.expected = [], [], []

    def barge_in(self, onset_us, source):
        self.barge_ins.append((self.rig.clock.now / MS, onset_us / MS, source))
        self.active = self.audible = False

    def expect_turn(self, text):
        self.expected.append((self.rig.clock.now / MS, text))

    def expect_more(self):
        self.expected.append((self.rig.clock.now / MS, "more"))

    def take_turn(self, text, segments):
        self.turns.append((self.rig.clock.now / MS, text, segments))


class Rig:
    def __init__(self, **settings):
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.bot = Bot(self)
        self.finals = {}
        self.asked = []
        self.turns = TurnDetector(self.clock, self.timeline, TurnSettings(**settings), self, self.bot, lambda: None)

    def transcribe(self, segment, onset_us, end_us, on_final):
        self.asked.append((segment, onset_us / MS, end_us / MS))
        parts = self.finals.get(segment, [(200, f"words {segment}")])
        for at, (delay_ms, text) in enumerate(parts, start=1):
            more = at < len(parts)
            self.clock.call_in(
                delay_ms * MS, Order.DELIVERY, lambda _, text=text, more=more: on_final(segment, text, more)
            )

    def speech(self, onset_ms, end_ms):
        self.edge(onset_ms + 40, Edge("start", onset_frame=onset_ms // 20))
        self.edge(end_ms + 200, Edge("stop", last_frame=end_ms // 20 - 1))

    def edge(self, ms, edge):
        self.clock.call_at(ms * MS, Order.FRAME, lambda _: self.turns.on_edge(edge))

    def sets(self, ms, order=Order.DELIVERY, **state):
        def change(_):
            for name, value in state.items():
                setattr(self.bot, name, value)
            self.turns.bot_changed()

        self.clock.call_at(ms * MS, order, change)

    def run(self):
        self.clock.run()
        return self

    @property
    def ignored(self):
        return [(row[0] / MS, row[3] / MS, row[4]) for row in self.timeline.rows if row[1] == "turn.ignored"]


def test_a_turn_ends_after_the_minimum_silence_and_goes_over_with_its_final():
    rig = Rig()
    rig.speech(100, 1000)
    rig.run()
    # Last voiced sound at 1000 ms; the final at 1400 ms waits for 500 ms of silence, to 1500 ms.
    assert rig.bot.turns == [(1500, "words 1", [1])]
    assert rig.asked == [(1, 100, 1000)]
    assert rig.bot.barge_ins == []
    assert rig.turns.idle


def test_a_turn_waits_for_its_final():
    rig = Rig(min_silence_us=200 * MS)
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.turns == [(1400, "words 1", [1])]


def test_a_minimum_silence_shorter_than_the_detectors_ends_the_turn_with_the_stop():
    rig = Rig(min_silence_us=100 * MS)
    rig.finals[1] = [(0, "words 1")]
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.turns == [(1200, "words 1", [1])]


def test_speech_that_resumes_within_the_silence_is_one_turn():
    rig = Rig()
    rig.speech(100, 1000)
    rig.speech(1440, 2000)
    rig.run()
    assert rig.bot.turns == [(2500, "words 1 words 2", [1, 2])]


@pytest.mark.parametrize(("order", "turns"), [(Order.FRAME, 1), (Order.WORK, 2)], ids=["speech first", "end first"])
def test_speech_that_resumes_on_the_instant_of_the_turns_end_goes_on_if_heard_first(order, turns):
    rig = Rig()
    rig.speech(100, 1000)  # its turn ends at 1500 ms
    rig.clock.call_at(1500 * MS, order, lambda _: rig.turns.on_edge(Edge("start", onset_frame=73)))
    rig.edge(2200, Edge("stop", last_frame=99))
    rig.run()
    assert len(rig.bot.turns) == turns


@pytest.mark.parametrize(("min_speech_ms", "decided_ms"), [(0, 140), (40, 140), (200, 300), (899, 999), (1100, 1200)])
def test_a_barge_in_is_decided_the_minimum_speech_after_the_onset(min_speech_ms, decided_ms):
    rig = Rig(min_speech_us=min_speech_ms * MS)
    rig.bot.active = rig.bot.audible = True
    rig.speech(100, 1000)
    rig.run()
    expected = [] if decided_ms == 1200 else [(decided_ms, 100, "audio")]
    assert rig.bot.barge_ins == expected  # at 1200 ms the stop comes first: it had not outlasted the minimum


def test_a_backchannel_is_ignored_and_not_transcribed():
    rig = Rig(min_speech_us=500 * MS)
    rig.bot.active = True
    rig.speech(100, 300)
    rig.run()
    assert rig.bot.barge_ins == []
    assert rig.bot.turns == []
    assert rig.asked == []
    assert rig.ignored == [(500, 100, "too_short")]
    assert rig.turns.idle


def test_short_speech_counts_when_the_bot_has_finished_meanwhile():
    rig = Rig(min_speech_us=500 * MS)
    rig.bot.active = True
    rig.sets(250, active=False)
    rig.speech(100, 300)
    rig.run()
    assert rig.bot.turns == [(800, "words 1", [1])]


def test_a_second_barge_in_waits_for_the_cooldown():
    rig = Rig(cooldown_us=1000 * MS)
    rig.bot.active = True
    rig.speech(100, 400)  # decided at 300 ms: nothing more before 1300 ms
    rig.sets(650, active=True)
    rig.speech(700, 1600)
    rig.run()
    assert rig.bot.barge_ins == [(300, 100, "audio"), (1300, 700, "audio")]


def test_speech_that_ends_within_the_cooldown_is_ignored():
    rig = Rig(cooldown_us=2000 * MS)
    rig.bot.active = True
    rig.speech(100, 400)
    rig.sets(1000, active=True)
    rig.speech(1100, 1600)
    rig.run()
    assert rig.bot.barge_ins == [(300, 100, "audio")]
    assert rig.ignored == [(1800, 1100, "not_now")]
    assert rig.bot.turns == [(900, "words 1", [1])]


def test_the_warm_up_counts_from_the_bots_first_sound():
    rig = Rig(warm_up_us=600 * MS)
    rig.bot.active, rig.bot.first_sound_us = True, 50 * MS
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.barge_ins == [(650, 100, "audio")]


@pytest.mark.parametrize(
    ("when", "at_ms"),
    [(BargeInWhen.ALWAYS, 300), (BargeInWhen.ACTIVE, 500), (BargeInWhen.AUDIBLE, 800), (BargeInWhen.NEVER, None)],
)
def test_when_a_barge_in_may_be_decided(when, at_ms):
    # The caller speaks on from 100 ms; a run begins at 500 ms, and its answer is queued to be heard at 800 ms.
    rig = Rig(barge_in=when)
    rig.sets(500, active=True)
    rig.sets(800, active=True, audible=True)
    rig.speech(100, 2000)
    rig.run()
    assert [each[0] for each in rig.bot.barge_ins] == ([] if at_ms is None else [at_ms])


def test_without_barge_ins_the_turn_waits_until_the_bot_has_finished():
    rig = Rig(barge_in=BargeInWhen.NEVER)
    rig.bot.active = rig.bot.audible = True
    rig.speech(100, 1000)
    rig.sets(5000, active=False, audible=False)
    rig.run()
    assert rig.bot.barge_ins == []
    assert rig.bot.turns == [(5000, "words 1", [1])]


def test_what_is_said_while_a_turn_waits_for_the_bot_belongs_to_it():
    rig = Rig(barge_in=BargeInWhen.NEVER)
    rig.bot.active = True
    rig.speech(100, 1000)
    rig.speech(2000, 3000)
    rig.sets(2500, active=False)
    rig.run()
    assert rig.bot.turns == [(3500, "words 1 words 2", [1, 2])]


def test_a_second_final_within_the_turn_is_part_of_it():
    rig = Rig()
    rig.finals[1] = [(100, "a table"), (250, "for two")]
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.turns == [(1500, "a table for two", [1, 2])]


def test_a_late_second_final_is_a_turn_of_its_own_and_has_its_own_number():
    rig = Rig()
    rig.finals[1] = [(200, "a table"), (900, "for two")]
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.turns == [(1500, "a table", [1]), (2100, "for two", [2])]
    assert [row[3:] for row in rig.timeline.rows if row[1] == "stt.final"] == [(1, "a table"), (2, "for two")]


def test_a_late_final_that_comes_while_the_caller_speaks_again_joins_the_next_turn():
    rig = Rig()
    rig.finals[1] = [(200, "a table"), (900, "for two")]
    rig.speech(100, 1000)
    rig.speech(1900, 2400)
    rig.run()
    assert rig.bot.turns == [(1500, "a table", [1]), (2900, "for two words 3", [2, 3])]


def test_a_final_ahead_of_the_turns_end_makes_its_words_expected_and_resumed_speech_more_of_them():
    rig = Rig(min_silence_us=800 * MS)
    rig.speech(100, 1000)
    rig.speech(1600, 2200)
    rig.run()
    assert rig.bot.expected == [(140, "more"), (1400, "words 1"), (1640, "more"), (2600, "words 1 words 2")]
    assert rig.bot.turns == [(3000, "words 1 words 2", [1, 2])]


def test_silence_transcribed_as_nothing_opens_no_turn():
    rig = Rig()
    rig.finals[1] = [(200, "")]
    rig.speech(100, 1000)
    rig.run()
    assert rig.bot.turns == []
    assert rig.turns.idle


def test_a_placed_line_interrupts_on_its_beginning_and_is_a_turn_on_its_end():
    rig = Rig(barge_in=BargeInWhen.NEVER, cooldown_us=10_000 * MS)  # neither holds for what is placed
    rig.bot.active = True
    rig.clock.call_at(123_456, Order.INTERRUPTION, lambda _: rig.turns.place("Wait.", 300_001))
    rig.run()
    assert rig.bot.barge_ins == [(123.456, 123.456, "decision")]
    assert rig.bot.turns == [(423.457, "Wait.", [1])]


def test_a_placed_line_over_an_idle_bot_interrupts_nothing():
    rig = Rig()
    rig.clock.call_at(0, Order.INTERRUPTION, lambda _: rig.turns.place("Hi.", 300))
    rig.run()
    assert rig.bot.barge_ins == []
    assert rig.bot.turns == [(0.3, "Hi.", [1])]


def test_it_says_what_it_waits_for():
    rig = Rig()
    rig.finals[1] = []
    rig.speech(100, 1000)
    rig.run()
    assert rig.turns.waits() == ["segment 1 waits for its transcript"]
    assert not rig.turns.idle


def test_nothing_is_decided_once_it_is_stopped():
    rig = Rig()
    rig.bot.active = True
    rig.speech(100, 1000)
    rig.clock.call_at(250 * MS, Order.INTERRUPTION, lambda _: rig.turns.stop())
    rig.clock.run(until=900 * MS)
    assert rig.bot.barge_ins == []
    assert rig.turns.idle
