"""Gemini, as `bargein.models.providers.gemini` reads it: calls come whole, signed and without ids.

Arguments that are no JSON object cannot be said there; the model then ends as having made a malformed call.
"""

from __future__ import annotations

from json import loads
from typing import Any

from bargein.models.vendors.answer import Answer, sse
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd

__all__ = ["GeminiAnswer"]

_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


class GeminiAnswer(Answer):
    """One answer."""

    SUPPORTED = frozenset({"no_arguments", "text_after_call"})
    FRAGMENTS = "whole"

    def __init__(self, wire: str, number: int, model: str, quirks: frozenset[str], prompt_tokens: int) -> None:
        super().__init__(wire, number, model, quirks, prompt_tokens)
        self._signed = False
        self._malformed = False

    def thought(self, text: str) -> bytes:
        self.chars += len(text)
        return self._chunk({"text": text, "thought": True})

    def text(self, text: str) -> bytes:
        self.chars += len(text)
        return self._chunk({"text": text})

    def call(self, delta: CallDelta) -> bytes:
        self.chars += len(delta.arguments)
        call: dict[str, Any] = {"name": delta.name}
        if delta.arguments or "no_arguments" not in self.quirks:
            try:
                call["args"] = loads(delta.arguments or "{}")
            except ValueError:
                call["args"] = None
            if type(call["args"]) is not dict:
                self._malformed = True
                return b""
        part: dict[str, Any] = {"functionCall": call}
        if not self._signed:  # parallel calls share the signature of the first
            self._signed = True
            part["thoughtSignature"] = f"signature_{self.number}"
        return self._chunk(part)

    def end(self, end: StreamEnd) -> bytes:
        reason = "MALFORMED_FUNCTION_CALL" if self._malformed else _REASONS.get(end.reason, end.reason)
        return self._event([], {"finishReason": reason})

    def error(self, message: str) -> bytes:
        return sse({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}})

    def _chunk(self, part: dict[str, Any]) -> bytes:
        return self._event([part], {})

    def _event(self, parts: list[dict[str, Any]], more: dict[str, Any]) -> bytes:
        content: dict[str, Any] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
        usage = {"promptTokenCount": self.prompt_tokens, "candidatesTokenCount": self.output_tokens}
        data = {"candidates": [{"content": content, "index": 0, **more}], "usageMetadata": usage}
        # This wire ends its lines as HTTP does.
        return sse({**data, "modelVersion": self.model, "responseId": f"r{self.number}"}).replace(b"\n", b"\r\n")
