"""Anthropic, as `bargein.models.providers.anthropic` reads it: block after block, with pings between."""

from __future__ import annotations

from typing import Any

from bargein.models.vendors.answer import Answer, sse
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd

__all__ = ["AnthropicAnswer"]

_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


class AnthropicAnswer(Answer):
    """One message."""

    SUPPORTED = frozenset({"same_ids", "index_gaps", "no_arguments", "text_after_call"})
    FRAGMENTS = "in_turn"

    def __init__(self, wire: str, number: int, model: str, quirks: frozenset[str], prompt_tokens: int) -> None:
        super().__init__(wire, number, model, quirks, prompt_tokens)
        self._kind: Any = None
        self._index = -1

    def begin(self) -> bytes:
        message: dict[str, Any] = {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": self.prompt_tokens, "output_tokens": 1},
        }
        return _event("message_start", message=message) + _event("ping")

    def thought(self, text: str) -> bytes:
        self.chars += len(text)
        head = self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return head + self._delta({"type": "thinking_delta", "thinking": text})

    def text(self, text: str) -> bytes:
        self.chars += len(text)
        return self._block("text", {"type": "text", "text": ""}) + self._delta({"type": "text_delta", "text": text})

    def call(self, delta: CallDelta) -> bytes:
        self.chars += len(delta.arguments)
        head = b""
        if delta.name is not None:
            block = {"type": "tool_use", "id": delta.id or "", "name": delta.name, "input": {}}
            head = self._block(delta.index, block)
            if not delta.arguments and "no_arguments" in self.quirks:
                return head
        return head + self._delta({"type": "input_json_delta", "partial_json": delta.arguments})

    def end(self, end: StreamEnd) -> bytes:
        delta = {"stop_reason": _REASONS.get(end.reason, end.reason), "stop_sequence": None}
        usage = {"input_tokens": self.prompt_tokens, "output_tokens": self.output_tokens}
        return self._close() + _event("message_delta", delta=delta, usage=usage) + _event("message_stop")

    def error(self, message: str) -> bytes:
        return _event("error", error={"type": "overloaded_error", "message": message})

    def _block(self, kind: Any, block: dict[str, Any]) -> bytes:
        """Open a block of this kind where it is not the one that is open."""
        if kind == self._kind:
            return b""
        closed = self._close()
        self._kind = kind
        self._index += 2 if "index_gaps" in self.quirks else 1
        return closed + _event("content_block_start", index=self._index, content_block=block)

    def _close(self) -> bytes:
        kind, self._kind = self._kind, None
        if kind is None:
            return b""
        signed = b""
        if kind == "thinking":
            signed = self._delta({"type": "signature_delta", "signature": f"signature_{self.number}"})
        return signed + _event("content_block_stop", index=self._index)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)


def _event(kind: str, **data: Any) -> bytes:
    return sse({"type": kind, **data}, kind)
