"""One scripted answer as a vendor's bytes: what every wire's `Answer` has to say, and the quirks by name.

`ScriptedWire` makes one for each request and asks it for bytes step by step. Left out: when they arrive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from json import dumps
from typing import Any, ClassVar

from bargein.pipelines.agent.deltas import CallDelta, StreamEnd

__all__ = ["QUIRKS", "Answer", "Thought", "sse"]

QUIRKS: Mapping[str, str] = {
    "empty_ids": "calls have an empty id",
    "split_head": "a call's id, its name and its arguments come in fragments of their own, each once",
    "repeated_ids": "every fragment of a call repeats its id and its name",
    "same_ids": "all calls of an answer have one id",
    "index_gaps": "calls are numbered 0, 2, 4",
    "zero_index": "every call has the index 0",
    "no_arguments": "a call without arguments has no arguments member",
    "usage_chunk": "usage comes in a chunk of its own, without choices, after the finish reason",
    "text_after_call": "what is said with calls comes after them",
}
"""What real providers do, by name; an `Answer` class says which of them its wire can do."""


@dataclass(slots=True)
class Thought:
    """A piece of reasoning, which is streamed and never spoken."""

    text: str


class Answer(ABC):
    """The bytes of one answer, in order.

    Args:
        wire: its name in the catalogue.
        number: which answer of the session, for ids.
        prompt_tokens: what the request cost.

    Attributes:
        quirks: those of ``QUIRKS`` that it does.
    """

    SUPPORTED: ClassVar[frozenset[str]] = frozenset()
    FRAGMENTS: ClassVar[str] = "interleaved"
    """How finely calls can stream: ``interleaved``, ``in_turn`` (fragments of one call after another), ``whole``."""

    def __init__(self, wire: str, number: int, model: str, quirks: frozenset[str], prompt_tokens: int) -> None:
        self.wire = wire
        self.number = number
        self.model = model
        self.quirks = quirks
        self.prompt_tokens = prompt_tokens
        self.chars = 0

    @property
    def output_tokens(self) -> int:
        """A guess from what was said so far."""
        return self.chars // 4 + 1

    def begin(self) -> bytes:
        """What comes before everything else."""
        return b""

    def thought(self, text: str) -> bytes:
        """A piece of reasoning; nothing where the wire does not show any."""
        return b""

    @abstractmethod
    def text(self, text: str) -> bytes:
        """A piece of text."""

    @abstractmethod
    def call(self, delta: CallDelta) -> bytes:
        """A fragment of a call."""

    @abstractmethod
    def end(self, end: StreamEnd) -> bytes:
        """The answer is complete."""

    @abstractmethod
    def error(self, message: str) -> bytes:
        """The provider fails in mid-stream."""


def sse(data: Mapping[str, Any], name: str = "") -> bytes:
    """One server-sent event; text is not escaped, so that a piece may end inside a character."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode("utf-8", "surrogatepass")
