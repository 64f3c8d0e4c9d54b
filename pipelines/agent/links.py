"""What an agent is linked to beside its model and its tools: a memory, and handlers that look things up.

A link is data that stands on the agent; its runs ask by it (run contract, sections 11 and 12). Left out: what is asked
(``memory``, ``retrieval``) and who answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bargein.sim.effects.kinds import EffectKind

__all__ = ["RETRIEVE", "Remembers", "Retrieves", "What", "retrieve_key"]

RETRIEVE = "retrieve"
"""The family of a retrieval handler in the row of what a program needs served."""


@dataclass(frozen=True, slots=True)
class Remembers:
    """That an agent remembers: by which handler, and which conversation. A run keeps what it was spawned with."""

    key: str
    conversation: str

    def required(self) -> dict[str, str]:
        """The row of what the program needs served; the memory stands in it whether or not a run asks it."""
        return {self.key: str(EffectKind.MEMORY)}


class What(StrEnum):
    """What is looked up."""

    DOCUMENTS = "documents"
    TOOLS = "tools"

    @property
    def in_key(self) -> str:
        """How a handler's key says it."""
        return "context" if self is What.DOCUMENTS else "tools"

    @property
    def in_query(self) -> str:
        """How a query says it: documents whole, tools by their ids."""
        return "TopN" if self is What.DOCUMENTS else "TopNIds"


def retrieve_key(owner: str, what: What, number: int) -> str:
    """The key of the ``number``-th retrieval handler of its sort, from 0."""
    return f"{owner}/retrieve:{what.in_key}#{number}"


@dataclass(frozen=True, slots=True)
class Retrieves:
    """An agent's link to one retrieval handler.

    Attributes:
        samples: how many results are asked for, 1 or more.
    """

    key: str
    samples: int
    what: What = What.DOCUMENTS

    def __post_init__(self) -> None:
        if type(self.samples) is not int or self.samples < 1:
            raise ValueError(f"samples of {self.key} is a whole number, 1 or more, not {self.samples!r}")
