"""A provider of Chat Completions, as `bargein.models.providers.chat_completions` reads it.

Left out: what its presets differ in beyond the member that shows reasoning.
"""

from __future__ import annotations

from typing import Any

from bargein.models.vendors.answer import QUIRKS, Answer, sse
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd

__all__ = ["ChatAnswer"]


class ChatAnswer(Answer):
    """One completion."""

    SUPPORTED = frozenset(QUIRKS)

    def begin(self) -> bytes:
        opening = b": OPENROUTER PROCESSING\n\n" if self.wire == "openrouter" else b""
        return opening + self._chunk({"role": "assistant", "content": ""})

    def thought(self, text: str) -> bytes:
        self.chars += len(text)
        if self.wire in ("deepseek", "llamacpp"):
            return self._chunk({"reasoning_content": text})
        if self.wire == "groq":
            return self._chunk({"reasoning": text})
        if self.wire == "openrouter":
            detail = {"type": "reasoning.text", "text": text, "format": "plain", "index": 0}
            signed = {"type": "reasoning.text", "signature": f"signature_{self.number}", "format": "plain", "index": 0}
            return self._chunk({"reasoning": text, "reasoning_details": [detail]}) + self._chunk(
                {"reasoning_details": [signed]}
            )
        return b""

    def text(self, text: str) -> bytes:
        self.chars += len(text)
        return self._chunk({"content": text})

    def call(self, delta: CallDelta) -> bytes:
        self.chars += len(delta.arguments)
        function: dict[str, Any] = {}
        if delta.name is not None:
            function["name"] = delta.name
        if delta.arguments or ("no_arguments" not in self.quirks and "split_head" not in self.quirks):
            function["arguments"] = delta.arguments
        call: dict[str, Any] = {"index": 0 if "zero_index" in self.quirks else delta.index}
        if delta.id is not None:
            call.update(id=delta.id, type="function")
        return self._chunk({"tool_calls": [{**call, "function": function} if function else call]})

    def end(self, end: StreamEnd) -> bytes:
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
        }
        if "usage_chunk" in self.quirks:
            return self._chunk({}, end.reason) + sse({**self._head(), "choices": [], "usage": usage}) + _DONE
        return self._chunk({}, end.reason, usage=usage) + _DONE

    def error(self, message: str) -> bytes:
        return sse({"error": {"message": message, "type": "server_error", "code": 500}})

    def _head(self) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number}", "object": "chat.completion.chunk", "created": 0, "model": self.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        return sse({**self._head(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


_DONE = b"data: [DONE]\n\n"
