"""An index to retrieve from: what is nearest in meaning, played by what shares the most letters.

A text becomes a vector of whole numbers: every run of three letters of its words is hashed to a place and a sign. The
likeness of two texts is the cosine of their vectors, in whole millionths, computed without a float: the same on every
machine. Equal scores keep the order in which entries were added. `IndexHandler` serves it under a retrieval key of
the effect bus. Left out: meaning; two words that share no letters are strangers.

Ties: results land as a delivery; a cancellation on that instant comes after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from math import isqrt
from typing import Any

from bargein.models.answering import AnsweringHandler
from bargein.models.latency import Latency
from bargein.pipelines.agent.retrieval import Retrieve, What
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

__all__ = ["DIMENSIONS", "MAX_TERMS", "ONE", "Index", "IndexHandler", "cosine", "embed"]

DIMENSIONS = 1_024
"""Places of a vector: few enough to be quick, enough that the runs of a sentence seldom meet."""

MAX_TERMS = 20_000
"""Runs of letters that are looked at of one text; what comes after them does not count."""

ONE = 1_000_000
"""The score of two texts with the same runs of letters in the same shares."""

_WORD = re.compile(r"\w+")
_RUN = 3

Vector = dict[int, int]
"""The places that are not zero."""


def embed(text: str) -> Vector:
    """The vector of a text; empty where it has no words."""
    vector: Vector = {}
    terms = 0
    for word in _WORD.findall(text.casefold()):
        padded = f" {word} "
        for at in range(len(padded) - _RUN + 1):
            if terms == MAX_TERMS:
                return vector
            terms += 1
            digest = blake2b(padded[at : at + _RUN].encode("utf-8", "surrogatepass"), digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            place = number % DIMENSIONS
            vector[place] = vector.get(place, 0) + (1 if number >> 63 else -1)
    return vector


def cosine(one: Vector, other: Vector) -> int:
    """The cosine of two vectors in millionths, towards zero; 0 where one is empty."""
    dot = sum(value * other.get(place, 0) for place, value in one.items())
    squares = _square(one) * _square(other)
    if not dot or not squares:
        return 0
    size = isqrt(dot * dot * ONE * ONE // squares)
    return size if dot > 0 else -size


def _square(vector: Vector) -> int:
    return sum(value * value for value in vector.values())


class Index:
    """Entries and their vectors.

    Args:
        entries: id, text that is searched, and value that is found, one after another.

    Raises:
        ValueError: an id stands twice.
    """

    def __init__(self, entries: Iterable[tuple[str, str, Any]] = ()) -> None:
        self._entries: list[tuple[str, Vector, Any]] = []
        seen: set[str] = set()
        for id, text, value in entries:
            if id in seen:
                raise ValueError(f"id {id!r} stands twice in the index; an id names one entry")
            seen.add(id)
            self._entries.append((id, embed(text), value))

    def __len__(self) -> int:
        return len(self._entries)

    def top(self, query: str, samples: int, threshold: int | None = None) -> list[tuple[int, str, Any]]:
        """The entries nearest to ``query``: score in millionths, id and value, best first.

        Args:
            samples: how many at most.
            threshold: the least score in millionths that counts; without it every entry does.
        """
        asked = embed(query)
        scored = [(cosine(asked, vector), id, value) for id, vector, value in self._entries]
        if threshold is not None:
            scored = [result for result in scored if result[0] >= threshold]
        scored.sort(key=lambda result: -result[0])  # a stable sort: equal scores stay in the order of the entries
        return scored[:samples]


class IndexHandler(AnsweringHandler):
    """Serves a retrieval key from an index (``effects.Handler``).

    Args:
        latency: how long a query takes.
        stream: the random stream that the latency draws from.
        fails: the words with which every query fails, where it does.
    """

    def __init__(
        self, clock: Clock, index: Index, stream: Stream, latency: Latency | None = None, fails: str | None = None
    ) -> None:
        super().__init__(clock, stream, latency, fails)
        self._index = index

    def _answer(self, query: Any) -> Outcome:
        if type(query) is not Retrieve:
            return failed(ReportKind.REQUEST, f"an index serves Retrieve, not {type(query).__name__}")
        if query.filter is not None or query.additional_params is not None:
            return failed(ReportKind.REQUEST, "this index knows no filter and no additional parameters")
        if query.threshold is not None and type(query.threshold) is not int:
            return failed(ReportKind.REQUEST, f"a threshold is a whole number of millionths, not {query.threshold!r}")
        found = self._index.top(query.query, query.samples, query.threshold)
        if query.what is What.TOOLS:
            return Outcome(Status.OK, [[score, id] for score, id, _ in found])
        return Outcome(Status.OK, [[score, id, value] for score, id, value in found])
