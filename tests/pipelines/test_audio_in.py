"""Audio in: the same edges by spans and per frame, whatever lies on top of whatever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.models.ear import EnergyEar
from bargein.models.room import NoisyRoom, ScaledEcho
from bargein.models.vad_energy import VadSettings
from bargein.models.voice import speak
from bargein.pipelines.audio_in import AudioIn
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Streams

MS = 1_000
TABLE = speak("caller", "A table for two on Friday, please.")
WAIT = speak("caller", "Wait.")


class Tone:
    """A square wave: loud for every detector, silent before and after, so that edges fall on known frames."""

    def __init__(self, ms, level=6000):
        self.length = ms * 16
        self.content = f"tone {ms} {level}"
        self._level = level

    def pcm(self):
        return np.full(self.length, self._level, dtype=np.int16)


def listen(script, per_frame=False, room=None, echo=None, until_ms=8000, order=Order.DELIVERY):
    """The edges, as (ms, kind, onset or last frame); the script is (ms, method, arguments), in order."""
    clock = Clock()
    edges = []

    def on_edge(edge):
        frame = edge.onset_frame if edge.kind == "start" else edge.last_frame
        edges.append((clock.now / MS, edge.kind, frame))

    ears = AudioIn(clock, EnergyEar(VadSettings()), on_edge, room, echo, per_frame=per_frame)
    ears.start()
    for at_ms, method, *arguments in script:
        act = getattr(ears, method)
        clock.call_at(round(at_ms * MS), order, lambda _, act=act, arguments=arguments: act(*arguments))
    clock.run(until=until_ms * MS)
    return edges


@pytest.fixture(params=[False, True], ids=["spans", "frames"])
def per_frame(request):
    return request.param


def test_an_edge_is_decided_on_the_end_of_its_frame(per_frame):
    # Two loud frames start speech; ten quiet ones, 200 ms, stop it. The tone lies on frames 5 to 14.
    edges = listen([(100, "hear", Tone(200), 1600)], per_frame)
    assert edges == [(140, "start", 5), (500, "stop", 14)]


def test_a_line_may_begin_inside_a_frame(per_frame):
    # It begins 10 ms into frame 5, which is loud enough all the same, and ends 10 ms into frame 15.
    assert listen([(110, "hear", Tone(200), 1760)], per_frame) == [(140, "start", 5), (520, "stop", 15)]


def test_a_line_that_comes_before_the_first_has_stopped_goes_on_with_it(per_frame):
    script = [(100, "hear", Tone(200), 1600), (480, "hear", Tone(100), 7680)]
    assert listen(script, per_frame) == [(140, "start", 5), (780, "stop", 28)]


@pytest.mark.parametrize("order", [Order.FRAME, Order.DELIVERY], ids=["line first", "edge first"])
def test_an_edge_on_the_instant_on_which_another_line_begins_is_not_lost(per_frame, order):
    script = [(100, "hear", Tone(200), 1600), (140, "hear", WAIT, 2240)]
    edges = listen(script, per_frame, order=order)
    assert edges[0] == (140, "start", 5)
    assert [kind for _, kind, _ in edges] == ["start", "stop"]


def test_a_line_that_begins_as_the_first_stops_is_speech_anew(per_frame):
    script = [(100, "hear", Tone(200), 1600), (500, "hear", Tone(100), 8000)]
    assert listen(script, per_frame) == [
        (140, "start", 5),
        (500, "stop", 14),
        (540, "start", 25),
        (800, "stop", 29),
    ]


def test_the_bot_comes_back_later_and_quieter_and_is_gone_after_its_cut(per_frame):
    echo = ScaledEcho(60 * MS, -6)
    script = [(100, "hear_bot", 1600, Tone(1000).pcm()), (400, "bot_cut", 6400)]
    # It returns from 160 ms (frame 8) to 460 ms (frame 22).
    assert listen(script, per_frame, echo=echo) == [(200, "start", 8), (660, "stop", 22)]


def test_without_an_echo_path_the_bot_is_not_heard(per_frame):
    assert listen([(100, "hear_bot", 1600, Tone(1000).pcm()), (400, "bot_cut", 6400)], per_frame) == []


def test_a_faint_echo_is_below_the_detector(per_frame):
    script = [(100, "hear_bot", 1600, speak("agent", "Your table is booked.").pcm())]
    assert listen(script, per_frame, echo=ScaledEcho(60 * MS, -30)) == []


def test_nothing_is_decided_once_it_has_stopped(per_frame):
    script = [(100, "hear", Tone(200), 1600), (300, "stop")]
    assert listen(script, per_frame) == [(140, "start", 5)]


ROOMS = {"quiet": None, "noisy": 30, "loud": 12}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    lines=st.lists(
        st.tuples(st.integers(0, 3_000_000), st.sampled_from([TABLE, WAIT, Tone(70), Tone(15, 3000)])), max_size=3
    ),
    bot=st.none() | st.tuples(st.integers(0, 100), st.integers(0, 100)),
    snr_db=st.sampled_from(list(ROOMS.values())),
)
def test_both_modes_decide_alike(lines, bot, snr_db):
    script = [(at_us / MS, "hear", line, -(-at_us * 2 // 125)) for at_us, line in lines]
    if bot is not None:
        frame, length = bot
        script.append((frame * 20, "hear_bot", frame * 320, speak("agent", "Let me book that for you.").pcm()))
        script.append((frame * 20 + length * 20, "bot_cut", (frame + length) * 320))
    script.sort(key=lambda step: step[0])

    def edges(per_frame):
        room = None if snr_db is None else NoisyRoom("pink", snr_db, Streams(1).stream("noise"))
        return listen(script, per_frame, room, ScaledEcho(45 * MS, -10), until_ms=6000)

    assert edges(False) == edges(True)
