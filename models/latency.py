"""How long something takes: a constant, a distribution, a list of measured values, or for ever.

Scenario files say it (``2.4s``, ``{dist: lognorm, median: 800ms, p95: 3s}``, ``never``); tools, recognisers, models
and voices draw from it. A draw takes one uniform number from the component's own stream, inverts it through the
distribution and rounds to a whole microsecond at once, so that no library version changes a run.
Left out: dependence between draws; each is made on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import Any, Protocol, cast, runtime_checkable

from bargein.sim.kernel.durations import DurationError, as_us, format_us
from bargein.sim.kernel.streams import Stream

__all__ = [
    "DISTRIBUTIONS",
    "NEVER",
    "Constant",
    "Empirical",
    "Gamma",
    "Latency",
    "LatencyError",
    "Lognorm",
    "Never",
    "Uniform",
    "parse_latency",
]

_NORMAL = NormalDist()
_Z95 = _NORMAL.inv_cdf(0.95)


class LatencyError(ValueError):
    """The value is not a latency; the message names what was found and what is accepted."""


@runtime_checkable
class Latency(Protocol):
    """Anything that says how long one run of something takes."""

    def draw(self, stream: Stream) -> int | None:
        """The next duration in microseconds, zero or more; ``None`` is never."""
        ...

    def to_value(self) -> Any:
        """The scenario file's form; ``parse_latency`` reads it back to an equal latency."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same duration; draws nothing from the stream."""

    us: int

    def draw(self, stream: Stream) -> int:
        return self.us

    def to_value(self) -> str:
        return format_us(self.us)


@dataclass(frozen=True, slots=True)
class Never:
    """It does not come: a request that hangs; draws nothing from the stream."""

    def draw(self, stream: Stream) -> None:
        return None

    def to_value(self) -> str:
        return "never"


NEVER = Never()


@dataclass(frozen=True, slots=True)
class Lognorm:
    """Lognormal, given as people know their services: by the median and the 95th percentile."""

    median_us: int
    p95_us: int

    def __post_init__(self) -> None:
        if not 0 < self.median_us <= self.p95_us:
            raise LatencyError(
                f"median {format_us(self.median_us)} and p95 {format_us(self.p95_us)} fit no lognormal; "
                "accepted is a median above zero and a p95 no smaller"
            )

    def draw(self, stream: Stream) -> int:
        sigma = log(self.p95_us / self.median_us) / _Z95
        return round(self.median_us * exp(sigma * _NORMAL.inv_cdf(stream.unit())))

    def to_value(self) -> dict[str, str]:
        return {"dist": "lognorm", "median": format_us(self.median_us), "p95": format_us(self.p95_us)}


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma, by its mean and standard deviation."""

    mean_us: int
    sd_us: int

    def __post_init__(self) -> None:
        if self.mean_us <= 0 or self.sd_us <= 0:
            raise LatencyError(
                f"mean {format_us(self.mean_us)} and sd {format_us(self.sd_us)} fit no gamma; "
                "accepted is a mean and an sd above zero"
            )

    def draw(self, stream: Stream) -> int:
        from scipy.special import gammaincinv

        shape = (self.mean_us / self.sd_us) ** 2
        return round(float(gammaincinv(shape, stream.unit())) * self.mean_us / shape)

    def to_value(self) -> dict[str, str]:
        return {"dist": "gamma", "mean": format_us(self.mean_us), "sd": format_us(self.sd_us)}


@dataclass(frozen=True, slots=True)
class Uniform:
    """Each whole microsecond from ``low_us`` to ``high_us``, both included, as likely as another."""

    low_us: int
    high_us: int

    def __post_init__(self) -> None:
        if self.low_us > self.high_us:
            raise LatencyError(
                f"low {format_us(self.low_us)} is above high {format_us(self.high_us)}; "
                "accepted is a low no greater than the high"
            )

    def draw(self, stream: Stream) -> int:
        return self.low_us + stream.below(self.high_us - self.low_us + 1)

    def to_value(self) -> dict[str, str]:
        return {"dist": "uniform", "low": format_us(self.low_us), "high": format_us(self.high_us)}


@dataclass(frozen=True, slots=True)
class Empirical:
    """One of the values, each as likely as another: measured latencies, resampled."""

    values_us: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.values_us:
            raise LatencyError("values is empty; accepted is a list of one duration or more")

    def draw(self, stream: Stream) -> int:
        return self.values_us[stream.below(len(self.values_us))]

    def to_value(self) -> dict[str, Any]:
        return {"dist": "empirical", "values": [format_us(value) for value in self.values_us]}


DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "lognorm": ("median", "p95"),
    "gamma": ("mean", "sd"),
    "uniform": ("low", "high"),
    "empirical": ("values",),
}
"""Each distribution and its parameters, in the order its class takes them."""

_CLASSES: dict[str, Callable[..., Latency]] = {"lognorm": Lognorm, "gamma": Gamma, "uniform": Uniform}


def parse_latency(value: object) -> Latency:
    """Read a latency: a duration (text with a unit, or an int of microseconds), ``never``, or ``{dist: ...}``.

    Raises:
        LatencyError: it is none of these; says what was found and what is accepted.
    """
    if isinstance(value, Mapping):
        return _distribution(cast(Mapping[str, Any], value))
    if value == "never":
        return NEVER
    try:
        return Constant(as_us(cast(Any, value)))
    except DurationError as error:
        raise LatencyError(f'{error}, "never" or {{dist: ...}}') from None


def _distribution(value: Mapping[str, Any]) -> Latency:
    name = value.get("dist")
    if not isinstance(name, str) or name not in DISTRIBUTIONS:
        raise LatencyError(f"dist is {name!r}; accepted is one of {', '.join(DISTRIBUTIONS)}")
    wanted = DISTRIBUTIONS[name]
    if set(value) != {"dist", *wanted}:
        found = ", ".join(str(key) for key in value if key != "dist") or "nothing"
        raise LatencyError(f"{name} has {found}; accepted is {' and '.join(wanted)}")
    try:
        if name == "empirical":
            return Empirical(tuple(as_us(item) for item in value["values"]))
        return _CLASSES[name](*(as_us(value[key]) for key in wanted))
    except DurationError as error:
        raise LatencyError(str(error)) from None
