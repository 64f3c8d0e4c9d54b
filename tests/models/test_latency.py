"""Latencies: what is drawn, how little of the stream it takes, and what is no latency."""

from __future__ import annotations

import subprocess
import sys
from statistics import median, quantiles

import pytest

from bargein.models.latency import (
    NEVER,
    Constant,
    Empirical,
    Gamma,
    Latency,
    LatencyError,
    Lognorm,
    Uniform,
    parse_latency,
)
from bargein.sim.kernel.streams import Stream

WRITTEN = [
    ("2.4s", Constant(2_400_000)),
    ("never", NEVER),
    ({"dist": "lognorm", "median": "800ms", "p95": "3s"}, Lognorm(800_000, 3_000_000)),
    ({"dist": "gamma", "mean": "900ms", "sd": "300ms"}, Gamma(900_000, 300_000)),
    ({"dist": "uniform", "low": "100ms", "high": "200ms"}, Uniform(100_000, 200_000)),
    ({"dist": "empirical", "values": ["90ms", "1s", "90ms"]}, Empirical((90_000, 1_000_000, 90_000))),
]


@pytest.mark.parametrize(("value", "latency"), WRITTEN)
def test_each_written_form_is_read_and_written_back(value: object, latency: Latency) -> None:
    assert parse_latency(value) == latency
    assert latency.to_value() == value


def test_an_int_given_in_python_is_microseconds() -> None:
    assert parse_latency(20) == Constant(20)


@pytest.mark.parametrize(
    ("latency", "drawn"),
    [
        (Constant(5), [5, 5, 5, 5]),
        (NEVER, [None, None, None, None]),
        (Lognorm(800_000, 3_000_000), [2212177, 850058, 2437550, 420596]),
        (Gamma(900_000, 300_000), [1293429, 889251, 1340062, 652851]),
        (Uniform(100_000, 200_000), [189720, 153010, 191720, 121182]),
        (Empirical((1, 2, 3)), [3, 2, 3, 1]),
    ],
)
def test_the_draws_of_a_seed_are_these_and_no_others(latency: Latency, drawn: list[int | None]) -> None:
    stream = Stream(7, "tool/book_table")
    assert [latency.draw(stream) for _ in range(4)] == drawn


@pytest.mark.parametrize(("latency", "uses"), [(Constant(5), 0), (NEVER, 0), (Lognorm(1, 2), 1), (Uniform(1, 9), 1)])
def test_a_draw_takes_at_most_one_number_of_the_stream(latency: Latency, uses: int) -> None:
    stream = Stream(7, "x")
    latency.draw(stream)
    assert stream.drawn == uses


def test_a_lognormal_has_the_median_and_the_95th_percentile_it_was_given() -> None:
    stream = Stream(1, "x")
    values = [Lognorm(800_000, 3_000_000).draw(stream) for _ in range(20_000)]
    assert abs(median(values) - 800_000) < 20_000
    assert abs(quantiles(values, n=20)[-1] - 3_000_000) < 120_000


def test_a_gamma_has_the_mean_and_the_deviation_it_was_given() -> None:
    stream = Stream(1, "x")
    values = [Gamma(900_000, 300_000).draw(stream) for _ in range(5_000)]
    mean = sum(values) / len(values)
    assert abs(mean - 900_000) < 15_000
    assert abs((sum((each - mean) ** 2 for each in values) / len(values)) ** 0.5 - 300_000) < 15_000


def test_a_uniform_reaches_both_of_its_ends() -> None:
    stream = Stream(1, "x")
    assert {Uniform(3, 5).draw(stream) for _ in range(100)} == {3, 4, 5}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "400",
            '"400" is not a duration; accepted is a number with a unit: us, ms, s, min or h (such as "400ms" or '
            '"1.2s"), "never" or {dist: ...}',
        ),
        ("-1s", '"-1s" is negative; accepted is zero or more, "never" or {dist: ...}'),
        ({"dist": "normal"}, "dist is 'normal'; accepted is one of lognorm, gamma, uniform, empirical"),
        ({"dist": "gamma", "mean": "1s"}, "gamma has mean; accepted is mean and sd"),
        (
            {"dist": "uniform", "low": "1s", "high": "5"},
            '"5" is not a duration; accepted is a number with a unit: us, ms, s, min or h (such as "400ms" or "1.2s")',
        ),
        (
            {"dist": "uniform", "low": "2s", "high": "1s"},
            "low 2s is above high 1s; accepted is a low no greater than the high",
        ),
        (
            {"dist": "lognorm", "median": "3s", "p95": "1s"},
            "median 3s and p95 1s fit no lognormal; accepted is a median above zero and a p95 no smaller",
        ),
        (
            {"dist": "gamma", "mean": "0s", "sd": "1s"},
            "mean 0us and sd 1s fit no gamma; accepted is a mean and an sd above zero",
        ),
        ({"dist": "empirical", "values": []}, "values is empty; accepted is a list of one duration or more"),
    ],
)
def test_what_is_no_latency_is_refused_with_what_would_be_one(value: object, message: str) -> None:
    with pytest.raises(LatencyError) as caught:
        parse_latency(value)
    assert str(caught.value) == message


def test_scipy_is_not_imported_until_a_gamma_is_drawn() -> None:
    code = (
        "import sys; from bargein.models.latency import Gamma, Lognorm; from bargein.sim.kernel.streams import Stream\n"
        "Lognorm(1, 2).draw(Stream(1, 'x')); Gamma(1, 2)\n"
        "sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
