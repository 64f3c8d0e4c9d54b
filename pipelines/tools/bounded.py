"""JSON and text within byte limits: how large a value would be, its text or the start of it, and clean cuts.

Argument caps, result limits, error bodies and the digest of a call use it. Nothing here turns a value into text
before it knows that the text fits, or stops once it does not. Left out: which limits hold (settings) and what
an oversized value means (the engine).
"""

from __future__ import annotations

from json import JSONEncoder
from json.encoder import encode_basestring
from typing import Any

__all__ = [
    "ELLIPSIS",
    "MAX_DEPTH",
    "NotJson",
    "canonical_json",
    "cut",
    "json_prefix",
    "json_size",
    "to_json",
    "utf8_size",
]

ELLIPSIS = "…"
MAX_DEPTH = 128
"""Levels of lists and objects; deeper values are refused, so that no recursion depends on the interpreter's stack."""

_encoder = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_canonical = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)

to_json = _encoder.encode
"""The compact JSON text of a value."""
canonical_json = _canonical.encode
"""The compact JSON text with sorted keys: equal for equal JSON values, apart from numbers written differently."""


class NotJson(ValueError):
    """The value has no JSON text, or is nested too deeply."""


def utf8_size(text: str) -> int:
    """Bytes of ``text`` in UTF-8; a lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def json_size(value: Any, limit: int) -> int:
    """Bytes of the compact JSON text of ``value``, counted only as far as needed.

    Returns:
        The exact size where it is at most ``limit``, otherwise some number above ``limit``.

    Raises:
        NotJson: the value has no JSON text, or is nested deeper than `MAX_DEPTH`.
    """
    return _size(value, 0, limit, MAX_DEPTH)


def _size(value: Any, size: int, limit: int, depth: int) -> int:
    if isinstance(value, str):
        return size + _string_size(value, limit)
    if isinstance(value, dict):
        return _object_size(value, size, limit, depth)
    if isinstance(value, list | tuple):
        if not depth:
            raise NotJson(f"nested deeper than {MAX_DEPTH} levels")
        size += 1 + (len(value) or 1)
        for item in value:
            if size > limit:
                break
            size = _size(item, size, limit, depth - 1)
        return size
    return size + _scalar_size(value)


def _object_size(value: dict[Any, Any], size: int, limit: int, depth: int) -> int:
    if not depth:
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels")
    size += 1 + (2 * len(value) or 1)
    for key, item in value.items():
        if size > limit:
            break
        size += _string_size(key, limit) if isinstance(key, str) else _scalar_size(key) + 2
        size = _size(item, size, limit, depth - 1)
    return size


def _string_size(text: str, limit: int) -> int:
    if len(text) > limit:
        return limit + 1
    return utf8_size(encode_basestring(text))


def _scalar_size(value: Any) -> int:
    if type(value) is int:
        return len(str(value))
    if value is None or value is True:
        return 4
    if value is False:
        return 5
    if isinstance(value, int | float):
        try:
            return len(to_json(value))
        except ValueError as error:
            raise NotJson(str(error)) from None
    raise NotJson(f"a {type(value).__name__} has no JSON text")


def json_prefix(value: Any, limit: int) -> str:
    """The start of the compact JSON text, ended soon after ``limit`` bytes; the rest is never formed."""
    pieces = []
    size = 0
    for piece in _encoder.iterencode(value):
        pieces.append(piece)
        size += utf8_size(piece)
        if size > limit:
            break
    return "".join(pieces)


def cut(text: str, limit: int, marker: str = ELLIPSIS) -> str:
    """``text`` in at most ``limit`` bytes of UTF-8, the marker included where it had to be cut.

    The cut falls between characters; a lone surrogate, which UTF-8 cannot hold, becomes a question mark.
    """
    if len(text) <= limit and text.isascii():
        return text
    data = text[: limit + 1].encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode()
    room = limit - utf8_size(marker)
    if room < 0:
        return data[:limit].decode("utf-8", "ignore")
    return data[:room].decode("utf-8", "ignore") + marker
