"""The room: noise at its level, the same everywhere it is looked at, and the bot coming back as echo."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.models.acoustics import SPEECH_RMS, rms
from bargein.models.room import NoisyRoom, ScaledEcho
from bargein.sim.kernel.streams import Stream

BED = 8 * 16_000


@pytest.mark.parametrize("kind", ["white", "pink", "babble"])
@pytest.mark.parametrize(("snr_db", "divisor"), [(20, 10), (0, 1)])
def test_noise_lies_as_far_below_speech_as_was_asked(kind: str, snr_db: int, divisor: int) -> None:
    room = NoisyRoom(kind, snr_db, Stream(1, "noise"))  # type: ignore[arg-type]
    wanted = SPEECH_RMS / divisor
    assert abs(rms(room.slice(0, BED)) - wanted) < wanted / 50


def test_any_slice_is_cut_from_one_endless_noise() -> None:
    room = NoisyRoom("pink", 20, Stream(1, "noise"))
    whole = room.slice(0, 3_000)
    assert np.array_equal(np.concatenate([room.slice(0, 1), room.slice(1, 1_999), room.slice(2_000, 1_000)]), whole)
    assert np.array_equal(room.slice(BED, 3_000), whole)
    assert room.slice(5, 0).shape == (0,)


def test_a_room_draws_once_and_equal_streams_make_equal_rooms() -> None:
    stream = Stream(1, "noise")
    room = NoisyRoom("white", 20, stream)
    assert stream.drawn == 1
    same, other = NoisyRoom("white", 20, Stream(1, "noise")), NoisyRoom("white", 20, Stream(2, "noise"))
    assert np.array_equal(room.slice(0, 500), same.slice(0, 500))
    assert not np.array_equal(room.slice(0, 500), other.slice(0, 500))


@pytest.mark.parametrize(("delay_us", "samples"), [(0, 0), (62, 0), (63, 1), (120_000, 1_920)])
def test_an_echo_comes_back_after_whole_samples_rounded_down(delay_us: int, samples: int) -> None:
    assert ScaledEcho(delay_us, -30).delay_samples == samples


def test_an_echo_is_the_sound_at_its_gain() -> None:
    sound = np.array([0, 1_000, -1_000, 32_767], dtype=np.int16)
    assert list(ScaledEcho(0, -20).returned(sound)) == [0, 100, -100, 3_277]
    assert list(ScaledEcho(0, 0).returned(sound)) == [0, 1_000, -1_000, 32_767]
    assert list(ScaledEcho(0, 20).returned(sound)) == [0, 10_000, -10_000, 32_767]
