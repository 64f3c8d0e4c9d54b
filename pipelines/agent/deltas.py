"""The one form in which a response streams in, whatever provider it comes from.

Provider adapters and scripted models produce these; the runner speaks the text and feeds all of it to the
assembler (tool contract, "Assembly"). Not frozen, because dozens are made a second of speech.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CallDelta", "Delta", "ResponseData", "StreamEnd", "TextDelta"]


@dataclass(slots=True)
class TextDelta:
    """A piece of text, in order."""

    text: str


@dataclass(slots=True)
class CallDelta:
    """A fragment of the tool call at ``index``; anything but the index may be missing."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    provider_data: Any = None


@dataclass(slots=True)
class ResponseData:
    """Opaque provider data of the whole response, to be sent back verbatim."""

    value: Any


@dataclass(slots=True)
class StreamEnd:
    """The response is complete: why it stopped, and what it cost where that is known."""

    reason: str = "stop"
    usage: dict[str, int] = field(default_factory=dict)


Delta = TextDelta | CallDelta | ResponseData
