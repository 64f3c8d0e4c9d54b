"""The timeline: the ordered record of everything that happened in a session, with virtual times.

Stages append cheap tuples ``(t, kind, epoch, values...)``; a record is given its field names when it is read.
The text form is JSON lines, canonical (sorted keys, no spaces, integers only), and its SHA-256 is the session's
*digest*. Others may watch a kind and are called as it is appended. Left out: what the kinds mean; the floor that
appends them brings a table of kinds and field names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from json import JSONEncoder
from json.encoder import encode_basestring
from typing import Any

import simpy

__all__ = ["Record", "Timeline", "read_jsonl"]

Record = dict[str, Any]
_encode = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_SHORT: dict[type, Callable[[Any], str]] = {
    int: str,
    str: encode_basestring,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}
"""How the values that most records hold are written; anything else goes through the library's encoder."""


@lru_cache(maxsize=1024)
def _form(kind: str, fields: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
    """A kind's line with gaps for its values in the order of the keys, and where these stand in (seq, *row)."""
    places = {"seq": 0, "t": 1, "kind": 2, "epoch": 3}
    places.update({name: at for at, name in enumerate(fields, start=4)})
    keys = sorted(places)
    shape = ",".join(f"{_encode(key)}:%s" for key in keys)
    return f"{{{shape}}}\n", tuple(places[key] for key in keys)


class Timeline:
    """An append-only list of what happened.

    Args:
        clock: gives the instant of each record.
        kinds: field names by kind; a record's values stand in this order.

    Invariant: instants never decrease, and ``seq`` is the position.
    """

    __slots__ = ("_clock", "_watchers", "kinds", "rows")

    def __init__(self, clock: simpy.Environment, kinds: Mapping[str, tuple[str, ...]]) -> None:
        self._clock = clock
        self.kinds = kinds
        self.rows: list[tuple[Any, ...]] = []
        self._watchers: dict[str, list[Callable[[tuple[Any, ...]], object]]] = {}

    def add(self, kind: str, epoch: int, *values: Any) -> None:
        """Append what happens now. The values stand in the order of the kind's field names."""
        row = (self._clock._now, kind, epoch, *values)
        self.rows.append(row)
        watchers = self._watchers.get(kind)
        if watchers is not None:
            for watcher in tuple(watchers):
                watcher(row)

    def watch(self, kind: str, watcher: Callable[[tuple[Any, ...]], object]) -> None:
        """Call ``watcher(row)`` for each record of ``kind`` from now on, as it is appended.

        Raises:
            LookupError: there is no such kind.
        """
        if kind not in self.kinds:
            raise LookupError(f"no timeline event is called {kind}")
        self._watchers.setdefault(kind, []).append(watcher)

    # -- reading ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Record]:
        return (self.record(seq) for seq in range(len(self.rows)))

    def __getitem__(self, seq: int) -> Record:
        return self.record(range(len(self.rows))[seq])

    def record(self, seq: int) -> Record:
        """The record at position ``seq``: ``{t, seq, kind, epoch, ...}``."""
        t, kind, epoch, *values = self.rows[seq]
        record: Record = {"t": t, "seq": seq, "kind": kind, "epoch": epoch}
        record.update(zip(self.kinds[kind], values, strict=True))
        return record

    def of(self, *kinds: str) -> list[Record]:
        """The records of these kinds, in order."""
        return [self.record(seq) for seq, row in enumerate(self.rows) if row[1] in kinds]

    def to_jsonl(self) -> str:
        """The canonical text: one JSON object a line, each line ended; it always is valid UTF-8."""
        kinds, short, encode = self.kinds, _SHORT, _encode
        lines = []
        for seq, row in enumerate(self.rows):
            shape, order = _form(row[1], kinds[row[1]])
            values = (seq, *row)
            if len(values) != len(order):
                raise ValueError(f"record {seq}: {row[1]} has {len(order) - 4} values of its own, not {len(row) - 3}")
            lines.append(shape % tuple([short.get(type(values[at]), encode)(values[at]) for at in order]))
        # Half a surrogate pair has no UTF-8; a backslash escape of it is JSON's own spelling.
        return "".join(lines).encode("utf-8", "backslashreplace").decode()

    def digest(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal."""
        return sha256(self.to_jsonl().encode()).hexdigest()


def read_jsonl(text: str) -> list[Record]:
    """Read timeline text back into records.

    Raises:
        ValueError: a line is not a JSON object with ``t``, ``seq`` and ``kind``; the message names the line.
    """
    from json import loads

    lines = text.split("\n")  # splitlines() would also cut at U+2028 and the like, inside a text that somebody said
    if lines[-1] == "":
        lines.pop()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} is not JSON: {error}") from None
        if not isinstance(record, dict) or not {"t", "seq", "kind"} <= record.keys():
            raise ValueError(f"line {number} is not a timeline record: it needs t, seq and kind")
        records.append(record)
    return records
