"""Where the bytes of a medium are: elsewhere, here, or in the store.

Each use of a medium keeps how it came, so that it goes out unchanged (run contract, section 1). Left out: keeping the
bytes (``assets``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = [
    "Base64",
    "ContentError",
    "FileId",
    "Literal",
    "Raw",
    "Source",
    "Stored",
    "Unknown",
    "Url",
    "source_from_dict",
    "source_to_dict",
]


class ContentError(ValueError):
    """Content that cannot be stored or sent: one sentence with the place, what was found and what is accepted."""


@dataclass(frozen=True, slots=True)
class Url:
    """They are at an address."""

    url: str


@dataclass(frozen=True, slots=True)
class FileId:
    """The provider has them under this name."""

    id: str


@dataclass(frozen=True, slots=True)
class Literal:
    """They are this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is known that nobody knows; ``note`` says what is."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Here they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Base64:
    """Here they are, spelled in base64."""

    text: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The store has them under their digest.

    Attributes:
        sha256: of the bytes.
        spelled: whether they came in base64, and ``tail`` how its last group was written.
    """

    sha256: str
    spelled: bool = False
    tail: str = ""


Source = Url | FileId | Literal | Unknown | Raw | Base64 | Stored

_SOURCES: dict[str, type[Any]] = {
    "url": Url,
    "file_id": FileId,
    "literal": Literal,
    "unknown": Unknown,
    "base64": Base64,
    "stored": Stored,
}


def source_to_dict(source: Source) -> dict[str, Any]:
    if isinstance(source, Raw):
        return {"from": "raw", "data": source.data.hex()}
    tag = next(tag for tag, kind in _SOURCES.items() if type(source) is kind)
    return {"from": tag, **{field.name: getattr(source, field.name) for field in fields(source)}}


def source_from_dict(data: Any, place: str) -> Source:
    tag = data.get("from") if type(data) is dict else None
    rest = {name: value for name, value in data.items() if name != "from"} if type(data) is dict else {}
    try:
        if tag == "raw":
            return Raw(bytes.fromhex(rest["data"]))
        source: Source = _SOURCES[str(tag)](**rest)
    except (KeyError, TypeError, ValueError):
        raise ContentError(f"{place}: found {data!r}; accepted is from: raw, {', '.join(_SOURCES)}") from None
    return source
