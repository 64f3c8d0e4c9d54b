"""Answers as bytes, and what a decoder makes of them."""

from __future__ import annotations

from json import dumps
from typing import Any

from bargein.models.providers.adapter import Adapter
from bargein.pipelines.agent.assembly import Response, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import StreamEnd

__all__ = ["answer", "stream"]


def stream(*events: Any) -> bytes:
    """Events as a stream; a text stands for itself."""
    return "".join(f"data: {each if type(each) is str else dumps(each)}\n\n" for each in events).encode()


def answer(adapter: Adapter, *events: Any) -> tuple[Response, StreamEnd]:
    """The response that a stream holds."""
    decoder, assembler = adapter.decoder(), ResponseAssembler()
    items = decoder.feed(stream(*events)) + decoder.finish()
    ends = [each for each in items if isinstance(each, StreamEnd)]
    for each in items:
        if not isinstance(each, StreamEnd):
            assembler.feed(each)
    assert items[-1:] == ends
    return assembler.finish(1, Context()), ends[0]
