"""Identity as data: one canonical text, one stable hash, and the keys that handlers go by.

Logs, replays and checkpoints compare programs and requests with it (run contract, sections 6, 7 and 10).

The *canonical form* of plain data is JSON with sorted keys, no spaces, every character as itself, and no NaN or
infinity; an int and a float are different values, ``1`` and ``1.0``, and a float is written as the shortest text that
reads back to it. Half a surrogate pair is written as its escape, since UTF-8 has no bytes for it. The *stable hash*
is the first 64 bits of the SHA-256 of that text, written as 16 hex digits, because many readers of JSON lose the last
bits of so large a number. Neither depends on the order of insertion, the process or ``PYTHONHASHSEED``.

Left out: what belongs to a program; whoever writes a log's header knows that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from json import JSONEncoder
from typing import Any, NamedTuple

__all__ = [
    "NOTHING",
    "Change",
    "KeyParts",
    "canonical",
    "changes",
    "content_digest",
    "differences",
    "key_parts",
    "memory_key",
    "model_key",
    "stable_hash",
    "tool_key",
    "written",
]

_encode = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_encode_as_it_stands = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_SHOWN = 60
_KEY = re.compile(r"(?P<owner>[^/]+)/(?:(?P<memory>memory)|(?P<family>model|tool|retrieve):(?P<rest>.+))", re.DOTALL)
_NUMBERED = re.compile(r"(?P<name>.+)#(?P<number>0|[1-9][0-9]{0,8})", re.DOTALL)


def canonical(value: Any) -> bytes:
    """The canonical form, in UTF-8.

    Raises:
        ValueError, TypeError, RecursionError: it is not plain data.
    """
    return _encode(value).encode("utf-8", "backslashreplace")


def written(value: Any) -> bytes:
    """The form in which documents hold plain data: canonical, except that keys keep their order.

    The order of a result's keys is in the text that the model reads, so a document must not lose it.

    Raises:
        ValueError, TypeError, RecursionError: it is not plain data.
    """
    return _encode_as_it_stands(value).encode("utf-8", "backslashreplace")


def stable_hash(value: Any) -> str:
    """The stable hash of plain data: 16 hex digits.

    Raises:
        ValueError, TypeError, RecursionError: it is not plain data.
    """
    return sha256(canonical(value)).hexdigest()[:16]


def content_digest(data: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal."""
    return sha256(data).hexdigest()


# -- keys -----------------------------------------------------------------------------------------------------


class KeyParts(NamedTuple):
    """What a handler key says: ``family`` is ``model``, ``tool``, ``memory`` or ``retrieve``."""

    owner: str
    family: str
    name: str
    number: int | None


def model_key(owner: str, label: str) -> str:
    """The key of a model's handler."""
    return f"{owner}/model:{label}"


def tool_key(owner: str, name: str, number: int) -> str:
    """The key of a tool's handler."""
    return f"{owner}/tool:{name}#{number}"


def memory_key(owner: str) -> str:
    """The key of a memory's handler."""
    return f"{owner}/memory"


def key_parts(key: str) -> KeyParts:
    """Read a key back into its parts.

    Raises:
        ValueError: it is no handler key.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        raise _no_key(key)
    if found["memory"]:
        return KeyParts(found["owner"], "memory", "", None)
    if found["family"] == "model":
        return KeyParts(found["owner"], "model", found["rest"], None)
    numbered = _NUMBERED.fullmatch(found["rest"])
    if numbered is None:
        raise _no_key(key)
    return KeyParts(found["owner"], found["family"], numbered["name"], int(numbered["number"]))


def _no_key(key: str) -> ValueError:
    return ValueError(
        f"{key!r} is no handler key; accepted are owner/model:label, owner/tool:name#0, owner/memory and "
        "owner/retrieve:name#0"
    )


# -- what differs ---------------------------------------------------------------------------------------------


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING: Any = _Nothing()
"""What stands on the side of a change on which there is nothing."""


def changes(recorded: Any, found: Any, path: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Where two pieces of plain data differ, in the order of the first one's keys."""
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        for key in [*recorded, *(key for key in found if key not in recorded)]:
            yield from changes(recorded.get(key, NOTHING), found.get(key, NOTHING), (*path, key))
    elif _is_list(recorded) and _is_list(found):
        for at in range(max(len(recorded), len(found))):
            one = recorded[at] if at < len(recorded) else NOTHING
            yield from changes(one, found[at] if at < len(found) else NOTHING, (*path, at))
    elif type(recorded) is not type(found) or recorded != found:
        yield Change(path, recorded, found)


class Change(NamedTuple):
    """One place at which plain data differs; ``NOTHING`` is on the side on which there is nothing."""

    path: tuple[str | int, ...]
    recorded: Any
    found: Any

    @property
    def place(self) -> str:
        """The path as people write it: ``tools.book.latency``, ``messages[3].text``."""
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return "".join(steps).removeprefix(".")


def differences(recorded: Any, found: Any, path: str = "") -> Iterator[str]:
    """A sentence for each place at which two pieces of plain data differ."""
    for change in changes(recorded, found, (path,) if path else ()):
        yield f"{change.place}: recorded was {_shown(change.recorded)}, found {_shown(change.found)}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _shown(value: Any) -> str:
    text = "nothing" if value is NOTHING else _encode(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
