"""Durations in text: read, written, and refused with one sentence."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.sim.kernel.durations import DurationError, as_us, format_us, parse_duration

ACCEPTED = 'a number with a unit: us, ms, s, min or h (such as "400ms" or "1.2s")'


@settings(deadline=None)
@given(st.integers(0, 10**13))
def test_what_is_written_reads_back_as_the_same_number(us: int) -> None:
    assert parse_duration(format_us(us)) == us


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([("us", 1), ("ms", 10**3), ("s", 10**6), ("min", 60 * 10**6)]))
def test_a_whole_number_of_any_unit_is_that_many_times_the_unit(number: int, unit: tuple[str, int]) -> None:
    assert parse_duration(f"{number}{unit[0]}") == number * unit[1]


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("20us", 20),
        ("400ms", 400_000),
        ("1.2s", 1_200_000),
        ("2min", 120_000_000),
        ("1.5h", 5_400_000_000),
        ("0.000001s", 1),
        (" 5 ms ", 5_000),
        ("0s", 0),
        ("007ms", 7_000),
    ],
)
def test_each_unit_is_read_exactly(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0us"),
        (20, "20us"),
        (999, "999us"),
        (1_000, "1ms"),
        (1_001, "1.001ms"),
        (400_000, "400ms"),
        (999_999, "999.999ms"),
        (1_000_000, "1s"),
        (1_200_000, "1.2s"),
        (2_614_188, "2.614188s"),
        (120_000_000, "120s"),
    ],
)
def test_the_shortest_exact_text_is_written(us: int, text: str) -> None:
    assert format_us(us) == text


@pytest.mark.parametrize(
    "text", ["400", "", "ms", "1.2.3s", ".5s", "1,5s", "1e3ms", "5 sec", "5ms 3us", "+5ms", "٣s", "9" * 19 + "s"]
)
def test_what_is_no_duration_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == f'"{text}" is not a duration; accepted is {ACCEPTED}'


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration("-5ms")
    assert str(caught.value) == '"-5ms" is negative; accepted is zero or more'


@pytest.mark.parametrize("text", ["0.5us", "0.0001ms", "1.0000001s"])
def test_a_fraction_of_a_microsecond_is_refused_rather_than_rounded(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == f'"{text}" is not a whole number of microseconds; the clock counts whole ones'


def test_python_may_give_an_int_of_microseconds_or_a_text() -> None:
    assert [as_us(20), as_us(0), as_us("1.2s")] == [20, 0, 1_200_000]


@pytest.mark.parametrize("value", [1.0, True, -1, None, np.int64(5), [5]])
def test_python_may_give_nothing_else(value: Any) -> None:
    with pytest.raises(DurationError) as caught:
        as_us(value)
    assert str(caught.value) == (
        f"{value!r} is not a duration; accepted is {ACCEPTED} or an int of microseconds, zero or more"
    )


def test_the_error_survives_another_process() -> None:
    error = pickle.loads(pickle.dumps(DurationError("what was found")))
    assert (type(error), str(error)) == (DurationError, "what was found")
