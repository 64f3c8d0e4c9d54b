"""Retrieval: before each round, documents and tools are looked up for what the user said last.

An agent links to handlers; each round asks every one of them, in the order of the links, and waits for all before its
model is selected and its request is made (run contract, section 12). Documents follow the static ones of the round;
tools that were found are offered before the static grants. Left out: how an index finds (``models.index``), and the
request itself.

Ties: the round goes on, on the instant on which the last answer landed; one that was abandoned first does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from json import dumps
from typing import Any, Protocol

from bargein.pipelines.agent.effects_port import Asked, Effects
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.run_settings import Document
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind, report_of

__all__ = [
    "Documents",
    "Retrieve",
    "Retrieved",
    "Retrieves",
    "RoundRetrieval",
    "Spoken",
    "What",
    "offered",
    "pretty",
    "query_of",
    "required",
    "retrieve_key",
]

RETRIEVE = "retrieve"
"""The family of a retrieval handler in the row of what a program needs served."""


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


@dataclass(frozen=True, slots=True)
class Retrieve:
    """One query, as the handler gets it.

    Its outcome is a list, best first: ``[score, id, value]`` for documents, ``[score, id]`` for tools.
    """

    what: What
    query: str
    samples: int
    threshold: Any = None
    additional_params: Any = None
    filter: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The query as plain data."""
        names = ("query", "samples", "threshold", "additional_params", "filter")
        return {"query": {"kind": self.what.in_query, "req": {name: getattr(self, name) for name in names}}}


class Documents:
    """The documents of a run, by id; the first of an id stays.

    Invariant: two documents never share an id.
    """

    __slots__ = ("_by_id",)

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._by_id: dict[str, Document] = {}
        for document in documents:
            self._by_id.setdefault(document.id, document)

    def __len__(self) -> int:
        return len(self._by_id)

    def take(self, id: str, value: Any) -> Document:
        """The document ``id``; made of ``value`` where there is none yet."""
        found = self._by_id.get(id)
        if found is None:
            found = self._by_id[id] = Document(id, pretty(value))
        return found


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a round's links found, link by link, each best first."""

    documents: tuple[Document, ...] = ()
    tools: tuple[str, ...] = ()


def pretty(value: Any) -> str:
    """A value as the text of its document: JSON indented by two; a string keeps its quotes.

    Raises:
        ValueError, TypeError: it is not plain data.
    """
    return dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


class Spoken(Protocol):
    """A message, as far as it can be a query."""

    @property
    def role(self) -> Role: ...
    @property
    def text(self) -> str: ...


def query_of(messages: Sequence[Spoken]) -> str | None:
    """What is looked up: the text of the last user message that has any; ``None`` where none has.

    A tool's result and the assistant's own words are no query.
    """
    for message in reversed(messages):
        if message.role is Role.USER and message.text:
            return message.text
    return None


def offered(found: Sequence[str], grants: Sequence[str], retrievable: Collection[str]) -> tuple[str, ...]:
    """The tools that a round offers: those found, in the order of the results, then the static ones.

    An id that names no retrievable grant offers nothing, and one that was found twice offers once.

    Args:
        grants: all that the agent may use, by name.
        retrievable: those that are offered only when they were found.
    """
    first = dict.fromkeys(id for id in found if id in retrievable and id in grants)
    return (*first, *(name for name in grants if name not in retrievable))


def required(links: Sequence[Retrieves], retrievable_keys: Sequence[str] = ()) -> dict[str, str]:
    """The row of what a program needs served: its retrieval handlers, and the tools that may be found."""
    row = {link.key: RETRIEVE for link in links}
    return row | {key: str(EffectKind.TOOL_CALL) for key in retrievable_keys}


@dataclass(slots=True)
class RoundRetrieval:
    """The retrieval of one round.

    Args:
        effects: the bus.
        links: the agent's, in order.
        scope: the run.
        documents: of the run.
    """

    effects: Effects
    links: Sequence[Retrieves]
    scope: str
    documents: Documents
    _landed: dict[int, Asked] = field(default_factory=dict)
    _over: bool = False

    def begin(
        self,
        query: str | None,
        attached: Callable[[Retrieved], object],
        failed: Callable[[Report], object],
    ) -> None:
        """Ask every link.

        Args:
            query: what for (`query_of`); nobody is asked where there is none.
            attached: called once with what was found, when every link has answered (perhaps before this returns).
            failed: called once instead, at the first link that cannot answer.
        """
        if query is None or not self.links:
            self._over = True
            attached(Retrieved())
            return
        for at, link in enumerate(self.links):
            self._ask(at, link, query, attached, failed)

    def _ask(
        self,
        at: int,
        link: Retrieves,
        query: str,
        attached: Callable[[Retrieved], object],
        failed: Callable[[Report], object],
    ) -> None:
        def landed(asked: Asked) -> None:
            if self._over:
                return
            self._landed[at] = asked
            try:
                fault = _fault(link, asked.outcome)
            except (TypeError, ValueError) as error:
                fault = Report(ReportKind.RESPONSE, f"{link.key} gave a result that cannot be read: {error}")
            if fault is not None:
                self._over = True
                failed(fault)
            elif len(self._landed) == len(self.links):
                self._over = True
                attached(self._found())

        payload = Retrieve(link.what, query, link.samples)
        self.effects.dispatch(EffectKind.RETRIEVAL, link.key, payload, scope=self.scope, on_landed=landed)

    def _found(self) -> Retrieved:
        """What was found, in the order of the links, whichever answered first."""
        documents: list[Document] = []
        tools: list[str] = []
        for at, link in enumerate(self.links):
            outcome = self._landed[at].outcome
            assert outcome is not None
            for result in outcome.value:
                if link.what is What.DOCUMENTS:
                    documents.append(self.documents.take(result[1], result[2]))
                else:
                    tools.append(result[1])
        return Retrieved(tuple(documents), tuple(tools))

    def abandon(self) -> None:
        """The run was stopped; whatever is still found is for nobody."""
        self._over = True


def _fault(link: Retrieves, outcome: Outcome | None) -> Report | None:
    """Why an answer cannot be used, if it cannot; an index is somebody else's and is looked at first."""
    assert outcome is not None
    if outcome.status is not Status.OK:
        return report_of(outcome)
    width = 3 if link.what is What.DOCUMENTS else 2
    for at, result in enumerate(outcome.value):
        if not isinstance(result, list | tuple) or len(result) != width or type(result[1]) is not str:
            form = "[score, id, value]" if width == 3 else "[score, id]"
            return Report(ReportKind.RESPONSE, f"result {at} of {link.key} is not of the form {form}")
        if width == 3:
            pretty(result[2])
    return None
