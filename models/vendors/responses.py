"""OpenAI Responses, as `bargein.models.providers.responses` reads it: item after item, each said again when done."""

from __future__ import annotations

from typing import Any

from bargein.models.vendors.answer import Answer, sse
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd

__all__ = ["ResponsesAnswer"]


class ResponsesAnswer(Answer):
    """One response."""

    SUPPORTED = frozenset({"same_ids", "no_arguments", "text_after_call"})
    FRAGMENTS = "in_turn"

    def __init__(self, wire: str, number: int, model: str, quirks: frozenset[str], prompt_tokens: int) -> None:
        super().__init__(wire, number, model, quirks, prompt_tokens)
        self._sequence = 0
        self._kind: Any = None
        self._item: dict[str, Any] = {}
        self._said = ""
        self._output: list[dict[str, Any]] = []

    def begin(self) -> bytes:
        response = self._response("in_progress")
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def thought(self, text: str) -> bytes:
        self.chars += len(text)
        id = f"rs_{self.number}_{len(self._output)}"
        head = self._open("reasoning", {"type": "reasoning", "id": id, "summary": []})
        self._said += text
        return head + self._event("response.reasoning_summary_text.delta", delta=text, summary_index=0)

    def text(self, text: str) -> bytes:
        self.chars += len(text)
        id = f"msg_{self.number}_{len(self._output)}"
        item = {"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []}
        head = self._open("message", item)
        self._said += text
        return head + self._event("response.output_text.delta", delta=text, content_index=0)

    def call(self, delta: CallDelta) -> bytes:
        self.chars += len(delta.arguments)
        head = b""
        if delta.name is not None:
            item = {
                "type": "function_call",
                "id": f"fc_{self.number}_{delta.index}",
                "call_id": delta.id or "",
                "name": delta.name,
                "arguments": "",
                "status": "in_progress",
            }
            head = self._open(delta.index, item)
        if not delta.arguments:
            return head
        self._said += delta.arguments
        return head + self._event("response.function_call_arguments.delta", delta=delta.arguments)

    def end(self, end: StreamEnd) -> bytes:
        closed = self._close()
        if end.reason in ("stop", "tool_calls"):
            return closed + self._event("response.completed", response=self._response("completed"))
        reason = "max_output_tokens" if end.reason == "length" else end.reason
        response = {**self._response("incomplete"), "incomplete_details": {"reason": reason}}
        return closed + self._event("response.incomplete", response=response)

    def error(self, message: str) -> bytes:
        response = {**self._response("failed"), "error": {"code": "server_error", "message": message}}
        return self._event("response.failed", response=response)

    def _open(self, kind: Any, item: dict[str, Any]) -> bytes:
        if kind == self._kind:
            return b""
        closed = self._close()
        self._kind, self._item, self._said = kind, item, ""
        return closed + self._event("response.output_item.added", item=item)

    def _close(self) -> bytes:
        kind, self._kind = self._kind, None
        if kind is None:
            return b""
        said, item = self._said, dict(self._item)
        if kind == "reasoning":
            item.update(summary=[{"type": "summary_text", "text": said}], encrypted_content=f"sealed_{self.number}")
        elif kind == "message":
            item.update(status="completed", content=[{"type": "output_text", "text": said, "annotations": []}])
        else:
            item.update(status="completed", arguments=said)
        event = self._event("response.output_item.done", item=item)
        self._output.append(item)
        return event

    def _response(self, status: str) -> dict[str, Any]:
        usage = {"input_tokens": self.prompt_tokens, "output_tokens": self.output_tokens}
        head = {"id": f"resp_{self.number}", "object": "response", "created_at": 0, "model": self.model}
        done = status != "in_progress"
        return {**head, "status": status, "output": list(self._output), "usage": usage if done else None}

    def _event(self, kind: str, **data: Any) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        place = {} if "response" in data else {"output_index": len(self._output)}
        return sse({"type": kind, "sequence_number": number, **place, **data}, kind)
