"""What a hook may ask of the world besides models, tools, memory and indexes: vectors of texts, an order of documents.

A hook dispatches one of these under whatever key the host serves it at (run contract, section 9.5). Left out: who
answers (``models.embedding`` and ``models.reranking`` are there to be served), and what is not text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Embed", "Rerank", "Texts"]


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts to be embedded, each by itself.

    Raises:
        ValueError: one of them is no text.
    """

    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", _texts("texts", self.texts))


@dataclass(frozen=True, slots=True)
class Embed:
    """A vector for each input is wanted, in their order."""

    inputs: Texts

    def to_dict(self) -> dict[str, Any]:
        """As a record holds it."""
        return {"inputs": {"texts": list(self.inputs.texts)}}


@dataclass(frozen=True, slots=True)
class Rerank:
    """The documents are wanted in the order of how well they fit the query.

    Raises:
        ValueError: the query or one of the documents is no text.
    """

    query: str
    documents: tuple[str, ...]

    def __post_init__(self) -> None:
        _texts("query", (self.query,))
        object.__setattr__(self, "documents", _texts("documents", self.documents))

    def to_dict(self) -> dict[str, Any]:
        """As a record holds it."""
        return {"query": self.query, "documents": list(self.documents)}


def _texts(name: str, found: Any) -> tuple[str, ...]:
    """A copy that nobody else holds."""
    texts = None if isinstance(found, str) else tuple(found)
    if texts is None or any(type(each) is not str for each in texts):
        raise ValueError(f"{name} is {found!r}; accepted is texts, one after another")
    return texts
