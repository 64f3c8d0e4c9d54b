"""Integer gains, mixing, noise and frame energies."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pytest

from bargein.models.acoustics import (
    SPEECH_RMS,
    Decibels,
    NoiseKind,
    decibels,
    frame_energies,
    gain_q16,
    looped,
    mix,
    noise_bed,
    noise_gain_for_snr,
    normalised,
    rms,
    scale,
)
from bargein.sim.kernel.streams import Streams


def pcm(*samples: int) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return np.array(samples, dtype=np.int16)


@pytest.mark.parametrize(
    ("db", "gain"),
    [
        (0, 65536),
        (-6, 32846),
        ("-6 dB", 32846),
        ("-6.0", 32846),
        (-6.0, 32846),
        (Decimal(20), 655360),
        (-120, 0),
    ],
)
def test_a_gain_is_a_whole_number_of_65536ths(db: Decibels, gain: int) -> None:
    assert gain_q16(db) == gain


@pytest.mark.parametrize("db", ["loud", "", "nan", "-inf", 121, True, "1e3"])
def test_what_is_no_level_is_refused_with_what_is_accepted(db: Decibels) -> None:
    with pytest.raises(ValueError, match=r"is no level: a number of decibels from -120 to 120$"):
        decibels(db)


def test_a_gain_does_not_depend_on_the_callers_decimal_context() -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        assert gain_q16(-6) == 32846
        assert noise_gain_for_snr(3277, 3277, 6) == 32846


def test_scaling_rounds_half_up_and_clips() -> None:
    assert scale(pcm(1, -1, 3, 30000, -30000), 32768).tolist() == [1, 0, 2, 15000, -15000]
    assert scale(pcm(30000, -30000), 131072).tolist() == [32767, -32768]


def test_a_mix_places_tracks_by_sample_and_clips_once_at_the_end() -> None:
    loud = pcm(30000, 30000, 30000)
    assert mix([(0, loud), (1, loud), (1, scale(loud, -65536))], 4).tolist() == [30000, 30000, 30000, 0]
    assert mix([(0, loud), (0, loud)], 1).tolist() == [32767]
    assert mix([(-2, pcm(1, 2, 3)), (2, pcm(4, 5)), (9, loud), (-9, loud)], 3).tolist() == [3, 0, 4]
    assert mix([], 2).tolist() == [0, 0]


def test_the_root_mean_square_is_rounded_down() -> None:
    assert [rms(pcm()), rms(pcm(3, -4)), rms(pcm(-32768))] == [0, 3, 32768]


def test_normalising_brings_sound_to_minus_20_dbfs_and_leaves_silence() -> None:
    assert rms(normalised(pcm(100, -100) * np.int16(3))) == SPEECH_RMS
    assert normalised(pcm(0, 0)).tolist() == [0, 0]
    assert normalised(pcm()).tolist() == []


def test_an_snr_puts_noise_below_speech() -> None:
    assert noise_gain_for_snr(3277, 3277, 0) == 65536
    assert noise_gain_for_snr(3277, 327, 20) == 65676  # 3277 / 327 / 10
    assert noise_gain_for_snr(0, 10, 20) == 0
    with pytest.raises(ValueError, match=r"^an SNR takes noise_rms > 0 and speech_rms >= 0, not 0 and 3277$"):
        noise_gain_for_snr(3277, 0, 20)


def test_frame_energies_follow_the_global_grid() -> None:
    ones = np.ones(640, dtype=np.int16)
    assert frame_energies(ones).tolist() == [320, 320]
    assert frame_energies(ones, 319).tolist() == [1, 320, 319]
    assert frame_energies(ones[:1], 319).tolist() == [1]
    assert frame_energies(ones[:0], 5).tolist() == []
    assert frame_energies(np.full(320, -32768, dtype=np.int16)).tolist() == [320 * 32768**2]
    with pytest.raises(ValueError, match=r"^an offset in a frame is 0 to 319, not 320$"):
        frame_energies(ones, 320)


@pytest.mark.parametrize(
    ("kind", "first", "slope_db"),
    [
        ("white", (-1807, 1712, 7146), 0),
        ("pink", (5395, 4249, 3678), -3),
        ("babble", (-6686, -7150, -3979), -3),
    ],
)
def test_a_noise_bed_is_the_same_everywhere_and_as_loud_as_speech(
    kind: NoiseKind, first: tuple[int, int, int], slope_db: int
) -> None:
    bed = noise_bed(kind, Streams(1).stream("noise"), 32000)
    assert abs(rms(bed) - SPEECH_RMS) <= 1
    assert tuple(bed[:3].tolist()) == first
    power = np.abs(np.fft.rfft(bed)) ** 2
    octaves = [10 * np.log10(power[hz * 2 : hz * 4].mean()) for hz in (125, 250, 500, 1000, 2000)]
    assert np.diff(octaves).mean() == pytest.approx(slope_db, abs=0.5)


def test_babble_comes_and_goes_where_noise_stays() -> None:
    swing = {}
    kinds: tuple[NoiseKind, ...] = ("pink", "babble")
    for kind in kinds:
        energies = frame_energies(noise_bed(kind, Streams(1).stream("noise"), 128000))
        blocks = energies.reshape(-1, 5).sum(axis=1)
        swing[kind] = int(blocks.max() // blocks.min())
    assert swing["pink"] < 4 < swing["babble"]


def test_a_noise_bed_takes_one_draw_whatever_its_length() -> None:
    stream = Streams(1).stream("noise")
    noise_bed("pink", stream, 100)
    noise_bed("pink", stream, 5000)
    assert stream.drawn == 2


def test_an_unknown_noise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of white, pink, babble over 1 sample or more, not 'brown' over 5$"):
        noise_bed("brown", Streams(1).stream("noise"), 5)  # type: ignore[arg-type]


def test_a_bed_is_played_round_and_round() -> None:
    assert looped(pcm(1, 2, 3), 4, 5).tolist() == [2, 3, 1, 2, 3]
