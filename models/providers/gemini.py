"""Gemini generateContent.

A call comes whole, often without an id, and is answered by name; its signature has to come back on the very part it
came with. The stream has no end of its own: the answer is complete when the connection closes after a finish reason.
Left out: code execution and grounding, whose parts are carried and never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import loads
from math import isfinite
from typing import Any, NoReturn

from bargein.models.providers.adapter import Adapter, EventDecoder, checked, compact_json, counts, merge, split_head
from bargein.models.providers.provider_data import Order, Piece, call_data, pieces_of
from bargein.models.providers.schemas import openapi_subset
from bargein.pipelines.agent.messages import Media, Message, Role, Text, ToolCall, ToolResult
from bargein.pipelines.agent.request import Advert, Request

__all__ = ["GeminiContent"]

WIRE = "gemini"
SIGNATURE = "thoughtSignature"

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
}


class GeminiContent(Adapter):
    """The adapter."""

    provider = "Gemini"
    wire = WIRE

    def encode(self, request: Request) -> dict[str, Any]:
        head, rest = split_head(request.messages)
        body: dict[str, Any] = {"contents": self._contents(rest)}
        if head:
            body["systemInstruction"] = {"parts": [{"text": text} for text in head]}
        if request.tools:
            self.tool_faults(request.tools)
            body["tools"] = [{"functionDeclarations": [_declaration(advert) for advert in request.tools]}]
        generation: dict[str, Any] = {}
        if request.temperature is not None:
            generation["temperature"] = request.temperature
        if request.max_tokens is not None:
            generation["maxOutputTokens"] = request.max_tokens
        if generation:
            body["generationConfig"] = generation
        return merge(body, request.additional_params)

    def _contents(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Messages as contents; neighbours of one role are merged, and results stand in a content of their own."""
        contents: list[dict[str, Any]] = []
        calls: dict[str, ToolCall] = {}
        before = None
        for message in messages:
            role = "model" if message.role is Role.ASSISTANT else "user"
            parts = self._parts(message, calls)
            kind = (role, message.role is Role.TOOL)
            if kind == before:
                contents[-1]["parts"] += parts
            else:
                contents.append({"role": role, "parts": parts})
            before = kind
        return contents

    def _parts(self, message: Message, calls: dict[str, ToolCall]) -> list[dict[str, Any]]:
        if message.role is Role.TOOL:
            assert message.result is not None
            return [{"functionResponse": self._response(message.result, calls)}]
        if message.role is not Role.ASSISTANT:
            return [self._part(part) for part in message.parts if type(part) is not Text or part.text]
        calls.update({call.id: call for call in message.calls})
        return [self._said(piece) for piece in pieces_of(self.provider, WIRE, message)]

    def _said(self, piece: Piece) -> dict[str, Any]:
        if piece.item is not None:
            return dict(piece.item)
        if piece.call is None:
            return {"text": piece.text, **({} if piece.cut else piece.data)}
        call = piece.call
        asked: dict[str, Any] = {"name": call.name, "args": self.arguments(call)}
        if call.provider_id:
            asked["id"] = call.provider_id
        signed = call_data(self.provider, WIRE, call).get("members", {})
        if type(signed) is not dict:
            raise self.refuse(f"the provider data of call {call.id} is not what this wire gives")
        return {"functionCall": asked, **signed}

    def _response(self, result: ToolResult, calls: Mapping[str, ToolCall]) -> dict[str, Any]:
        call = calls.get(result.call_id)
        if call is None:
            raise self.refuse(f"a result answers call {result.call_id}, which does not stand before it")
        response = {"error" if result.is_error else "result": _value(result.content)}
        answer: dict[str, Any] = {"name": call.name, "response": response}
        return {**answer, "id": call.provider_id} if call.provider_id else answer

    def _part(self, part: Any) -> dict[str, Any]:
        if type(part) is Text:
            return {"text": part.text}
        if type(part) is Media and part.url:
            kind = {"mimeType": part.media_type} if part.media_type else {}
            return {"fileData": {**kind, "fileUri": part.url}}
        if type(part) is Media:
            return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        raise self.refuse(f"a message holds a part of the kind {type(part).__name__}, which this wire does not take")

    def rules(self, body: Mapping[str, Any]) -> str | None:
        contents = body["contents"]
        if not contents:
            return "it holds no content"
        if contents[0]["role"] != "user":
            return "its first content is not the user's"
        asked: list[str] = []
        for number, content in enumerate(contents):
            if not content["parts"]:
                return f"content {number} is empty"
            answered = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
            if answered != asked:
                return (
                    f"content {number} answers {', '.join(answered) or 'no call'}, where the turn before it asks for "
                    f"{', '.join(asked) or 'none'}"
                )
            asked = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
            if asked and number and contents[number - 1]["role"] != "user":
                return f"content {number} calls a function, and a turn of the user does not stand before it"
        if asked:
            return f"the call of {asked[0]} has no response"
        return "it ends on a turn of the model" if contents[-1]["role"] == "model" else None

    def decoder(self) -> EventDecoder:
        return _GeminiDecoder()


def _declaration(advert: Advert) -> dict[str, Any]:
    """A tool; the older field where its OpenAPI subset says the same, the one for JSON Schema otherwise.

    A tool without arguments has neither: an object without properties is refused.
    """
    if not advert.parameters.get("properties") and set(advert.parameters) <= {"type", "properties", "required"}:
        return {"name": advert.name, "description": advert.description}
    subset = openapi_subset(advert.parameters)
    schema = {"parametersJsonSchema": advert.parameters} if subset is None else {"parameters": subset}
    return {"name": advert.name, "description": advert.description, **schema}


def _value(content: str) -> Any:
    """A result as the value that its text spells, or as its text."""
    try:
        return loads(content, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _refuse(number)


class _GeminiDecoder(EventDecoder):
    provider = "Gemini"

    def __init__(self) -> None:
        super().__init__()
        self._order = Order(WIRE)
        self._calls = 0
        self._reason = ""
        self._usage: dict[str, int] = {}

    def _handle(self, data: dict[str, Any]) -> None:
        usage = data.get("usageMetadata")
        self._usage.update(counts(usage, input_tokens="promptTokenCount", output_tokens="candidatesTokenCount"))
        blocked = (data.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            self._reason = "PROHIBITED_CONTENT"
        for candidate in data.get("candidates") or ():
            if candidate.get("index", 0) != 0:
                continue
            for part in (candidate.get("content") or {}).get("parts") or ():
                self._part(part)
            self._reason = checked(candidate.get("finishReason") or self._reason)

    def _part(self, part: dict[str, Any]) -> None:
        signed = {SIGNATURE: part[SIGNATURE]} if part.get(SIGNATURE) else {}
        if "functionCall" in part:
            call = part["functionCall"]
            number = self._calls
            self._calls += 1
            self._order.call(number)
            arguments = call.get("args") or {}
            if type(arguments) is not dict:
                raise TypeError("arguments are an object")
            data = {"wire": WIRE, "members": signed} if signed else None
            self.call(number, call.get("id") or "", call["name"], compact_json(arguments), data)
        elif part.get("thought"):
            self._thought(checked(part.get("text") or ""), signed)
        elif "text" in part:
            entry = self._order.text(len(part["text"]))
            if signed:
                entry["with"] = signed
            self.text(part["text"])
        elif part:
            self._order.item(part)

    def _thought(self, text: str, signed: dict[str, Any]) -> None:
        """Pieces of a thought are one part, until a signature ends it."""
        entries = self._order.entries
        last = entries[-1].get("item") if entries else None
        if last is not None and last.get("thought") is True and SIGNATURE not in last:
            last["text"] += text
            last.update(signed)
        else:
            self._order.item({"text": text, "thought": True, **signed})

    def _end_of_stream(self) -> None:
        if self._reason:
            reason = _REASONS.get(self._reason, "content_filter")
            if reason == "stop" and self._calls:
                reason = "tool_calls"
            self.end(reason, self._usage, self._order.packed())
