"""Long results of tools, cut for the request: the head and the tail stay, a marker stands between them.

Part of shaping a request; what is stored keeps its full length (run contract, section 8.1). Left out: the limits of
a voice session's tools, which cut before anything is stored (``tools.results``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from bargein.pipelines.agent.parts import ResultPart, RunMessage, TextPart
from bargein.pipelines.wordings import RESULT_LIMIT_MARKER

__all__ = ["ResultLimit", "cut_results", "cut_text"]

_OMITTED = "{omitted}"


@dataclass(frozen=True, slots=True)
class ResultLimit:
    """How many bytes of each text of a result are sent, and what stands for the rest.

    Attributes:
        max_bytes: of head and tail together, in UTF-8, without the marker.
        marker: with ``{omitted}`` where the number of bytes left out goes.
    """

    max_bytes: int
    marker: str = RESULT_LIMIT_MARKER


def cut_text(text: str, limit: ResultLimit) -> str:
    """``text`` within ``limit``; cuts fall between characters, and of an odd number the tail has the byte more."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit.max_bytes:
        return text
    head = limit.max_bytes // 2
    tail = len(data) - (limit.max_bytes - head)
    while head > 0 and _inside(data, head):
        head -= 1
    while tail < len(data) and _inside(data, tail):
        tail += 1
    marker = limit.marker.replace(_OMITTED, str(tail - head))
    return _text(data[:head]) + marker + _text(data[tail:])


def cut_results(messages: Iterable[RunMessage], limit: ResultLimit | None) -> list[RunMessage]:
    """``messages`` with every text of every tool's result within ``limit``; nothing else is touched."""
    if limit is None:
        return list(messages)
    return [_cut(message, limit) for message in messages]


def _cut(message: RunMessage, limit: ResultLimit) -> RunMessage:
    if not any(type(part) is ResultPart for part in message.parts):
        return message
    parts: list[Any] = []
    for part in message.parts:
        if type(part) is ResultPart:
            items = [
                replace(item, text=cut_text(item.text, limit)) if type(item) is TextPart else item
                for item in part.items
            ]
            parts.append(replace(part, items=tuple(items)))
        else:
            parts.append(part)
    return RunMessage(message.role, tuple(parts), message.head)


def _inside(data: bytes, at: int) -> bool:
    """Whether a character goes on at ``at``."""
    return at < len(data) and data[at] & 0xC0 == 0x80


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
