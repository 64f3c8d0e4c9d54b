"""Between the plain data of a scenario file and its dataclasses, by the dataclasses' own fields.

A key is the field's name; a field that ends in ``_us`` is a duration, written with its unit and without the ending
(``delay: 1.2s`` is ``delay_us=1_200_000``), and a trailing underscore only avoids a Python keyword. A class with
another written form, such as a shorthand, says so in ``from_value`` and ``to_value``. The model's ``from_dict`` and
``to_dict`` call it. Left out: checking; the JSON Schema has accepted the data before it comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bargein.models.latency import Latency, LatencyError, parse_latency
from bargein.sim.kernel.durations import DurationError, as_us, format_us
from bargein.sim.scenario.places import Fault, Path

__all__ = ["ABSENT", "Absent", "key_of", "read", "read_fields", "read_value", "write", "write_fields"]

T = TypeVar("T")


class Absent(Enum):
    """The type of ``ABSENT``: not given, where ``null`` is a value of its own."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent.ABSENT


def key_of(name: str) -> str:
    """The key in the file for a field's name."""
    return name.removesuffix("_us").removesuffix("_")


@cache
def _plan(cls: type) -> tuple[tuple[Field[Any], str, Any], ...]:
    hints = get_type_hints(cls)
    return tuple(
        (item, key_of(item.name), hints[item.name])
        for item in fields(cls)
        if item.init and not item.metadata.get("apart")
    )


def read(cls: type[T], data: Any, path: Path = ()) -> T:
    """Data of the file as an instance of ``cls``, through its ``from_value`` where it has one."""
    own = getattr(cls, "from_value", None)
    if own is not None:
        return cast(T, own(data, path))
    return read_fields(cls, data, path)


def read_fields(cls: type[T], data: Mapping[str, Any], path: Path = ()) -> T:
    """A mapping as an instance of ``cls``, field by field; keys that no field has are left alone.

    Raises:
        Fault: a value of the right form that makes no sense (such as a p95 below the median), with its path.
    """
    values: dict[str, Any] = {}
    for item, key, hint in _plan(cast(Any, cls)):
        if key not in data:
            continue
        here = (*path, key)
        if item.name.endswith("_us"):
            values[item.name] = _duration(data[key], here)
        else:
            values[item.name] = read_value(hint, data[key], here)
    return cls(**values)


def read_value(hint: Any, value: Any, path: Path) -> Any:
    """One value by its type hint."""
    if hint is Latency:
        try:
            return parse_latency(value)
        except LatencyError as error:
            raise Fault(path, str(error)) from None
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None:
            return None
        rest = [each for each in get_args(hint) if each not in (NoneType, Absent)]
        return read_value(rest[0], value, path) if len(rest) == 1 else value
    if origin is tuple:
        item = get_args(hint)[0]
        return tuple(read_value(item, each, (*path, index)) for index, each in enumerate(value))
    if origin is dict:
        item = get_args(hint)[1]
        return {key: read_value(item, each, (*path, key)) for key, each in value.items()}
    if isinstance(hint, type):
        if is_dataclass(hint) or hasattr(hint, "from_value"):
            return read(hint, value, path)
        if issubclass(hint, Enum):
            return hint(value)
    return value


def write(value: Any) -> Any:
    """A value of the model as plain data, defaults left out."""
    own = getattr(value, "to_value", None)
    if own is not None:
        return own()
    if is_dataclass(value):
        return write_fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [write(each) for each in value]
    if isinstance(value, Mapping):
        return {key: write(each) for key, each in value.items()}
    return value


def write_fields(value: Any) -> dict[str, Any]:
    """An instance as a mapping of those fields that differ from their defaults, in the order of the class."""
    data: dict[str, Any] = {}
    for item, key, _hint in _plan(cast(Any, type(value))):
        given = getattr(value, item.name)
        if given is ABSENT or (item.default is not MISSING and _same(given, item.default)):
            continue
        if item.default_factory is not MISSING and given == item.default_factory():
            continue
        data[key] = format_us(given) if item.name.endswith("_us") and given is not None else write(given)
    return data


def _same(left: Any, right: Any) -> bool:
    """Equal and of one type: 1 is not true, and 0 is not false."""
    return type(left) is type(right) and bool(left == right)


def _duration(value: Any, path: Path) -> int | None:
    if value is None:
        return None
    try:
        return as_us(value)
    except DurationError as error:
        raise Fault(path, str(error)) from None
