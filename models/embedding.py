"""A model that turns texts into vectors, played by what letters they have.

Each text becomes a row of whole numbers, the same everywhere: its runs of three letters are counted at the places to
which they hash (``index.embed``), folded into so many dimensions. Texts that share words lie near one another.
`EmbeddingHandler` serves it under a key of the effect bus. Left out: meaning, and vectors of length one, which would
need fractions.

Ties: vectors land as a delivery; a cancellation on that instant comes after them.
"""

from __future__ import annotations

from typing import Any

from bargein.models.answering import AnsweringHandler
from bargein.models.index import embed
from bargein.models.latency import Latency
from bargein.pipelines.agent.asked import Embed
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

__all__ = ["EMBEDDING_DIMENSIONS", "EmbeddingHandler", "vector"]

EMBEDDING_DIMENSIONS = 64
"""Few enough that a log with some hundred vectors stays readable."""


def vector(text: str, dimensions: int = EMBEDDING_DIMENSIONS) -> list[int]:
    """The vector of a text; nothing but zeros where it has no words."""
    numbers = [0] * dimensions
    for place, value in embed(text).items():
        numbers[place % dimensions] += value
    return numbers


class EmbeddingHandler(AnsweringHandler):
    """Serves embeddings (``effects.Handler``).

    Args:
        stream: the random stream that the latency draws from.
        latency: how long a request takes.
        dimensions: of each vector.
        fails: the words with which every request fails, where it does.

    Raises:
        ValueError: there are no dimensions.
    """

    def __init__(
        self,
        clock: Clock,
        stream: Stream,
        latency: Latency | None = None,
        *,
        dimensions: int = EMBEDDING_DIMENSIONS,
        fails: str | None = None,
    ) -> None:
        if type(dimensions) is not int or dimensions < 1:
            raise ValueError(f"dimensions is {dimensions!r}; accepted is a whole number from 1")
        super().__init__(clock, stream, latency, fails)
        self._dimensions = dimensions

    def _answer(self, asked: Any) -> Outcome:
        """A vector for each text, in their order."""
        if type(asked) is not Embed:
            return failed(ReportKind.REQUEST, f"an embedding model serves Embed, not {type(asked).__name__}")
        return Outcome(Status.OK, [vector(text, self._dimensions) for text in asked.inputs.texts])
