"""Retrieval: before each round, documents and tools are looked up for what the user said last.

An agent links to handlers; each round asks every one of them, in the order of the links, and waits for all before its
model is selected and its request is made (run contract, section 12). Documents follow the static ones of the round;
tools that were found are offered before the static grants. Left out: how an index finds (``models.index``), and the
request itself.

Ties: the round goes on, on the instant on which the last answer landed; one that was abandoned first does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any, Protocol

from bargein.pipelines.agent.links import RETRIEVE, Retrieves, What, retrieve_key
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.run_settings import Document
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind, report_of

__all__ = [
    "Retrieve",
    "Retrieved",
    "Retrieves",
    "Spoken",
    "What",
    "fault_of",
    "found_by",
    "offered",
    "pretty",
    "query_of",
    "required",
    "retrieve_key",
]


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


def found_by(
    links: Sequence[Retrieves], outcomes: Sequence[Outcome], documents: dict[str, Document]
) -> Retrieved | Report:
    """What a round's links found, in the order of the links, whichever answered first.

    Args:
        outcomes: of each link.
        documents: of the run, by id; what is found anew is put in, and the first of an id stays.

    Returns:
        Instead, why an answer cannot be used; then nothing is put in.
    """
    for link, outcome in zip(links, outcomes, strict=True):
        fault = fault_of(link, outcome)
        if fault is not None:
            return fault
    found: list[Document] = []
    tools: list[str] = []
    for link, outcome in zip(links, outcomes, strict=True):
        for result in outcome.value:
            if link.what is What.TOOLS:
                tools.append(result[1])
            else:
                id, value = result[1], result[2]
                found.append(documents.setdefault(id, documents.get(id) or Document(id, pretty(value))))
    return Retrieved(tuple(found), tuple(tools))


def fault_of(link: Retrieves, outcome: Outcome) -> Report | None:
    """Why an answer cannot be used, if it cannot."""
    try:
        return _fault(link, outcome)
    except (TypeError, ValueError) as error:
        return Report(ReportKind.RESPONSE, f"{link.key} gave a result that cannot be read: {error}")


def _fault(link: Retrieves, outcome: Outcome) -> Report | None:
    """An index is somebody else's and is looked at before it is believed."""
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
