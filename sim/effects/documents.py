"""Documents that others may have touched: JSON read within limits, refused with the place and the reason.

Effect logs and checkpoints are read with it. What comes out is plain data and nothing else: no reader imports,
constructs or runs anything that a document names. Left out: what the data means (``log``, ``checkpoint``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from bargein.sim.effects.document_sorts import sort_of

__all__ = ["MAX_BYTES", "MAX_DEPTH", "DocumentError", "Fields", "parse", "parse_first", "read_bytes"]

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 100
_SHOWN = 60


class DocumentError(ValueError):
    """A document that cannot be used: one sentence with the place, what was found and what is accepted."""


def read_bytes(path: str | Path, what: str, limit: int | None = None) -> bytes:
    """The bytes of a file.

    Args:
        what: what it should be, in words.
        limit: its size at most; ``MAX_BYTES`` unless given.

    Raises:
        DocumentError: it cannot be read, or is larger.
    """
    limit = MAX_BYTES if limit is None else limit
    place = Path(path)
    if not place.is_file():
        problem = "it is not a file" if place.exists() else "there is no such file"
        raise DocumentError(f"{path}: {problem}; accepted is {what}")
    try:
        with place.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise DocumentError(f"{path}: it cannot be read ({error.strerror}); accepted is {what}") from None
    if len(raw) > limit:
        raise DocumentError(f"{path}: it has more than {limit} bytes; accepted is {what} of up to {limit} bytes")
    return raw


def parse(text: bytes, place: str) -> Any:
    """Plain data of JSON in UTF-8: no NaN, no key twice, nothing nested deeper than ``MAX_DEPTH``.

    Raises:
        DocumentError: it is none.
    """
    try:
        data = json.loads(
            text.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_mapping
        )
    except UnicodeDecodeError:
        raise DocumentError(f"{place}: found bytes that are no UTF-8; accepted is JSON") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"{place}, character {error.pos + 1}: {error.msg}; accepted is JSON") from None
    except RecursionError:
        raise DocumentError(_too_deep(place)) from None
    except ValueError as error:
        raise DocumentError(f"{place}: {error}; accepted is JSON") from None
    if _deeper_than(data, MAX_DEPTH):
        raise DocumentError(_too_deep(place))
    return data


def parse_first(raw: bytes, place: str, name: str, accepted: str, *own: str) -> Any:
    """The first line of a document, of which one of another sort may have none that is JSON.

    Args:
        place: of the line; ``name``: what the user calls the document.
        accepted: what it should be, in words.
        own: the sorts that it may be, as `sort_of` calls them.

    Raises:
        DocumentError: it is no JSON; says what the document is, where it is one of our others.
    """
    try:
        return parse(raw.partition(b"\n")[0], place)
    except DocumentError:
        what = sort_of(raw)
        if what is None or what in own:
            raise
    raise DocumentError(f"{name}: it is {what}; accepted is {accepted}")


def _too_deep(place: str) -> str:
    return f"{place}: it is nested more than {MAX_DEPTH} deep; accepted is up to {MAX_DEPTH}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"found {name}")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"found the number {text[:_SHOWN]}, which is out of range")
    return number


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"found the key {json.dumps(twice)} twice")
    return data


def _deeper_than(data: Any, limit: int) -> bool:
    level = [data]
    for _ in range(limit):
        level = [
            inner
            for each in level
            for inner in (each.values() if type(each) is dict else each if type(each) is list else ())
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


class Fields:
    """The fields of one mapping, each asked for by its name and sort.

    Args:
        data: the mapping.
        place: where it stands, for errors.
        known: every key that it may have.

    Raises:
        DocumentError: it is no mapping, or has an unknown key.
    """

    __slots__ = ("data", "place")

    def __init__(self, data: Any, place: str, known: tuple[str, ...]) -> None:
        if type(data) is not dict:
            raise DocumentError(f"{place}: found {_shown(data)}; accepted is a mapping")
        for key in data:
            if key not in known:
                raise DocumentError(f"{place}.{key}: nothing of that name belongs here; accepted is {', '.join(known)}")
        self.data: dict[str, Any] = data
        self.place = place

    def get(self, key: str, *sorts: type) -> Any:
        """The value at ``key``, of exactly one of these types.

        Raises:
            DocumentError: it is missing, or of another sort.
        """
        if key not in self.data:
            raise DocumentError(f"{self.place}: {key} is missing; it was cut off or edited")
        value = self.data[key]
        if type(value) not in sorts:
            accepted = " or ".join(_SORTS[sort] for sort in sorts)
            raise DocumentError(f"{self.place}.{key}: found {_shown(value)}; accepted is {accepted}")
        return value

    def anything(self, key: str) -> Any:
        """The value at ``key``, of whatever type.

        Raises:
            DocumentError: it is missing.
        """
        return self.get(key, *_SORTS, float)

    def count(self, key: str) -> int:
        """An int of zero or more.

        Raises:
            DocumentError: it is none.
        """
        value: int = self.get(key, int)
        if value < 0:
            raise DocumentError(f"{self.place}.{key}: found {value}; accepted is a whole number from 0")
        return value

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping."""
        found: Mapping[str, Any] = self.get(key, dict)
        return found


_SORTS: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    type(None): "null",
}


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
