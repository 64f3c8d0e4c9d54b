"""What a sweep varies: any values of a scenario, by dotted path, every combination of them.

A key's values are a list, a grid from one value to another, or one value, which may be a latency distribution. The
command line's ``key=a,b,c`` is read here too. Left out: which seeds run (``sweep.run``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from bargein.sim.kernel.durations import DurationError, as_us, format_us
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError

__all__ = ["MAX_VARIANTS", "Variant", "expand", "label", "read_vary"]

MAX_VARIANTS = 10_000
_GRID = ("from", "to", "steps")


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination: its values as labels, in the order of the keys, and the scenario with them."""

    labels: tuple[Any, ...]
    scenario: Scenario


def expand(scenario: Scenario, vary: Mapping[str, Any]) -> list[Variant]:
    """Every combination of the values, the last key's changing fastest.

    Args:
        vary: by dotted path a list of values, ``{from:, to:, steps:}`` (both ends included), or one value.

    Raises:
        ScenarioError: a path is none of a scenario's, a value does not fit, or there is nothing to try.
    """
    lists = [_values(path, given) for path, given in vary.items()]
    count = 1
    for values in lists:
        count *= len(values)
    if count > MAX_VARIANTS:
        raise ScenarioError(f"the values make {count} combinations; accepted is up to {MAX_VARIANTS}")
    variants = []
    for combination in product(*lists):
        changed = scenario
        for path, value in zip(vary, combination, strict=True):
            changed = changed.with_value(path, value)
        variants.append(Variant(tuple(label(value) for value in combination), changed))
    return variants


def label(value: Any) -> Any:
    """A value as a table shows it: itself, or ``lognorm(median=800ms, p95=3s)`` for a distribution."""
    if isinstance(value, Mapping):
        rest = ", ".join(f"{key}={label(each)}" for key, each in value.items() if key != "dist")
        return f"{value['dist']}({rest})" if "dist" in value else f"{{{rest}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(str(label(each)) for each in value)}]"
    return value


def read_vary(text: str) -> tuple[str, Any]:
    """``key=a,b,c``, ``key=200ms..2s/10`` (ten values, both ends included) or ``key={dist: ...}`` as path and values.

    Raises:
        ScenarioError: it is none of these.
    """
    from bargein.sim.scenario.texts import parse_yaml

    path, equals, values = text.partition("=")
    if not equals or not path.strip() or not values.strip():
        raise ScenarioError(f'"{text}" varies nothing; accepted is key=a,b,c or key=from..to/steps')
    low, dots, rest = values.partition("..")
    high, slash, steps = rest.partition("/")
    if dots and slash and steps.strip().isdecimal():
        ends = [parse_yaml(end, text)[0] for end in (low, high)]
        return path.strip(), {"from": ends[0], "to": ends[1], "steps": int(steps)}
    return path.strip(), parse_yaml(f"[{values}]", text)[0]


def _values(path: str, given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        return _grid(path, given) if "from" in given or "steps" in given else [dict(given)]
    if isinstance(given, str) or not isinstance(given, Sequence | range):
        return [given]
    if not given:
        raise ScenarioError(f"{path}: no values are given; accepted is one or more")
    return list(given)


def _grid(path: str, given: Mapping[str, Any]) -> list[Any]:
    steps = given.get("steps")
    if set(given) != set(_GRID) or type(steps) is not int or steps < 2:
        raise ScenarioError(f"{path}: a grid has {dict(given)}; accepted is from, to and steps, of which 2 or more")
    low, high = given["from"], given["to"]
    if type(low) is int and type(high) is int:
        return list(dict.fromkeys(low + (high - low) * step // (steps - 1) for step in range(steps)))
    try:
        low_us, high_us = as_us(low), as_us(high)
    except DurationError as error:
        raise ScenarioError(f"{path}: {error}") from None
    found = (low_us + (high_us - low_us) * step // (steps - 1) for step in range(steps))
    return [format_us(each) for each in dict.fromkeys(found)]
