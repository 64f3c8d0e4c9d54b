"""A model that puts documents in the order of how well they fit a query, played by the words that they share.

The score of a document is the share of the query's words that occur in it, in whole millionths; equal scores keep the
order in which the documents were given. `RerankingHandler` serves it under a key of the effect bus. Left out: meaning,
and how often or where a word occurs.

Ties: the order lands as a delivery; a cancellation on that instant comes after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bargein.models.answering import AnsweringHandler
from bargein.models.index import ONE
from bargein.models.latency import Latency
from bargein.pipelines.agent.asked import Rerank
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

__all__ = ["RerankingHandler", "overlap", "ranked"]

_WORD = re.compile(r"\w+")


def overlap(query: str, document: str) -> int:
    """The share of the query's words that the document has, in millionths; 0 where the query has none."""
    asked = dict.fromkeys(_WORD.findall(query.casefold()))
    found = frozenset(_WORD.findall(document.casefold()))
    return ONE * sum(word in found for word in asked) // len(asked) if asked else 0


def ranked(query: str, documents: Sequence[str]) -> list[list[int]]:
    """Position and score of each document, best first."""
    scored = [[at, overlap(query, document)] for at, document in enumerate(documents)]
    return sorted(scored, key=lambda each: -each[1])  # a stable sort: equal scores stay as they were given


class RerankingHandler(AnsweringHandler):
    """Serves a reranking model (``effects.Handler``).

    Args:
        stream: the random stream that the latency draws from.
        latency: how long a request takes.
        fails: the words with which every request fails, where it does.
    """

    def __init__(
        self, clock: Clock, stream: Stream, latency: Latency | None = None, *, fails: str | None = None
    ) -> None:
        super().__init__(clock, stream, latency, fails)

    def _answer(self, asked: Any) -> Outcome:
        """Position and score of every document, best first."""
        if type(asked) is not Rerank:
            return failed(ReportKind.REQUEST, f"a reranking model serves Rerank, not {type(asked).__name__}")
        return Outcome(Status.OK, ranked(asked.query, asked.documents))
