"""The frame grid: one rule of rounding for each conversion, held as properties."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.sim.kernel.frames import (
    FRAME_SAMPLES,
    FRAME_US,
    SAMPLE_RATE_HZ,
    frame_at_or_after,
    next_boundary_us,
    samples_to_us,
    us_to_samples,
)

counts = st.integers(0, 10**12)


def test_a_frame_is_320_samples_of_16_khz_in_20_ms() -> None:
    assert (SAMPLE_RATE_HZ, FRAME_SAMPLES, FRAME_US) == (16_000, 320, 20_000)
    assert samples_to_us(FRAME_SAMPLES) == FRAME_US
    assert us_to_samples(FRAME_US) == FRAME_SAMPLES


@pytest.mark.parametrize(("samples", "us"), [(0, 0), (1, 63), (2, 125), (3, 188), (319, 19_938), (16_000, 1_000_000)])
def test_a_half_microsecond_is_rounded_up_to_the_instant_by_which_the_samples_have_passed(
    samples: int, us: int
) -> None:
    assert samples_to_us(samples) == us


@pytest.mark.parametrize(("us", "samples"), [(0, 0), (62, 0), (63, 1), (124, 1), (125, 2), (187, 2), (188, 3)])
def test_a_sample_that_is_not_over_does_not_count(us: int, samples: int) -> None:
    assert us_to_samples(us) == samples


@settings(deadline=None)
@given(counts)
def test_samples_to_an_instant_and_back_are_the_same_samples(samples: int) -> None:
    assert us_to_samples(samples_to_us(samples)) == samples


@settings(deadline=None)
@given(counts)
def test_the_instant_of_some_samples_is_the_first_by_which_they_have_passed(samples: int) -> None:
    at_us = samples_to_us(samples)
    assert at_us * 2 >= samples * 125 > (at_us - 1) * 2


@settings(deadline=None)
@given(counts)
def test_the_samples_of_an_instant_are_the_most_that_have_passed(us: int) -> None:
    samples = us_to_samples(us)
    assert samples * 125 <= us * 2 < (samples + 1) * 125


@settings(deadline=None)
@given(counts)
def test_the_next_boundary_lies_on_the_grid_and_less_than_a_frame_ahead(us: int) -> None:
    boundary = next_boundary_us(us)
    assert boundary % FRAME_US == 0
    assert us <= boundary < us + FRAME_US
    assert boundary == frame_at_or_after(us) * FRAME_US


@pytest.mark.parametrize(("us", "frame"), [(0, 0), (1, 1), (19_999, 1), (20_000, 1), (20_001, 2)])
def test_an_instant_on_a_boundary_is_its_own_next_boundary(us: int, frame: int) -> None:
    assert (frame_at_or_after(us), next_boundary_us(us)) == (frame, frame * FRAME_US)
