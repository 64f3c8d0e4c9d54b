"""Durations as people write them (``1.2s``, ``400ms``, ``20us``, ``2min``) to whole microseconds and back.

Parsed at the edges: scenario files, the command line, settings given in Python. Inside, a duration is an int.
Left out: durations without a unit; "400" is refused, because nobody knows what it meant.
"""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["DurationError", "as_us", "format_us", "parse_duration"]

_FORM = re.compile(r"(-?)([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(us|ms|s|min|h)")
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_ACCEPTED = 'a number with a unit: us, ms, s, min or h (such as "400ms" or "1.2s")'


class DurationError(ValueError):
    """The text is not a duration; the message names what was found and what is accepted."""


def parse_duration(text: str) -> int:
    """Read a duration in text as whole microseconds.

    Raises:
        DurationError: no unit, an unknown one, a negative amount, or a fraction of a microsecond.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise DurationError(f'"{text}" is not a duration; accepted is {_ACCEPTED}')
    sign, number, unit = match.groups()
    if sign:
        raise DurationError(f'"{text}" is negative; accepted is zero or more')
    exact = Fraction(number) * _UNIT_US[unit]
    if exact.denominator != 1:
        raise DurationError(f'"{text}" is not a whole number of microseconds; the clock counts whole ones')
    return int(exact)


def as_us(value: int | str) -> int:
    """A duration given in Python: an int of microseconds or a text with a unit.

    Raises:
        DurationError: the text is not a duration, or the value is neither (a bool or float is refused).
    """
    if isinstance(value, str):
        return parse_duration(value)
    if type(value) is not int or value < 0:
        raise DurationError(
            f"{value!r} is not a duration; accepted is {_ACCEPTED} or an int of microseconds, zero or more"
        )
    return value


def format_us(us: int) -> str:
    """The shortest exact text for a duration: 1200000 is ``1.2s``, 400000 is ``400ms``, 20 is ``20us``."""
    if us and us % 1_000 == 0:
        if us < 1_000_000:
            return f"{us // 1_000}ms"
        whole, rest = divmod(us, 1_000_000)
        return f"{whole}.{rest:06d}".rstrip("0").rstrip(".") + "s"
    if us >= 1_000_000:
        whole, rest = divmod(us, 1_000_000)
        return f"{whole}.{rest:06d}".rstrip("0").rstrip(".") + "s"
    if us >= 1_000:
        whole, rest = divmod(us, 1_000)
        return f"{whole}.{rest:03d}".rstrip("0").rstrip(".") + "ms"
    return f"{us}us"
