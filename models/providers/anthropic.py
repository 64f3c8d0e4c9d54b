"""Anthropic Messages.

Content is a list of blocks; results are blocks of a user message, and turns alternate, so neighbours are merged. An
answer streams block by block and ends with ``message_stop``. Thinking comes back verbatim with its signature. Left
out: prompt caching and tools that Anthropic runs itself, whose blocks are carried and never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import loads
from typing import Any

from bargein.models.providers.adapter import Adapter, EventDecoder, checked, compact_json, counts, merge, split_head
from bargein.models.providers.provider_data import Order, Piece, call_data, pieces_of
from bargein.models.providers.schemas import top_level_fault
from bargein.models.providers.wire_ids import WireIds
from bargein.pipelines.agent.messages import Media, MediaKind, Message, Role, Text
from bargein.pipelines.agent.request import Advert, Request

__all__ = ["AnthropicMessages"]

WIRE = "anthropic"
DEFAULT_MAX_TOKENS = 1024
"""The wire demands a bound; a spoken answer is far shorter."""

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class AnthropicMessages(Adapter):
    """The adapter."""

    provider = "Anthropic"
    wire = WIRE

    def encode(self, request: Request) -> dict[str, Any]:
        head, rest = split_head(request.messages)
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens,
            "messages": self._turns(rest),
            "stream": True,
        }
        if head:
            body["system"] = [{"type": "text", "text": text} for text in head]
        if request.tools:
            self.tool_faults(request.tools)
            body["tools"] = [self._tool(advert) for advert in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return merge(body, request.additional_params)

    def _tool(self, advert: Advert) -> dict[str, Any]:
        fault = top_level_fault(advert.parameters)
        if fault is not None:
            raise self.refuse(f"of the tool {advert.name}: {fault}")
        return {"name": advert.name, "description": advert.description, "input_schema": advert.parameters}

    def _turns(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Messages as alternating turns; a note in mid-conversation is said in the user's turn."""
        ids = WireIds()
        turns: list[dict[str, Any]] = []
        for message in messages:
            role = "assistant" if message.role is Role.ASSISTANT else "user"
            blocks = self._blocks(message, ids)
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += blocks
            else:
                turns.append({"role": role, "content": blocks})
        return turns

    def _blocks(self, message: Message, ids: WireIds) -> list[dict[str, Any]]:
        if message.role is Role.TOOL:
            result = message.result
            assert result is not None
            content = [{"type": "text", "text": result.content}] if result.content else []
            block = {"type": "tool_result", "tool_use_id": ids.of(result.call_id), "content": content}
            return [{**block, "is_error": True} if result.is_error else block]
        if message.role is Role.ASSISTANT:
            return [self._said(piece, ids) for piece in pieces_of(self.provider, WIRE, message)]
        return [self._part(part) for part in message.parts if type(part) is not Text or part.text]

    def _said(self, piece: Piece, ids: WireIds) -> dict[str, Any]:
        if piece.item is not None:
            return dict(piece.item)
        if piece.call is None:
            return {"type": "text", "text": piece.text}
        call = piece.call
        extra = call_data(self.provider, WIRE, call).get("members", {})
        if type(extra) is not dict:
            raise self.refuse(f"the provider data of call {call.id} is not what this wire gives")
        block = {"type": "tool_use", "id": ids.give(call), "name": call.name, "input": self.arguments(call)}
        return {**block, **extra}

    def _part(self, part: Any) -> dict[str, Any]:
        if type(part) is Text:
            return {"type": "text", "text": part.text}
        if type(part) is Media and part.kind in (MediaKind.IMAGE, MediaKind.DOCUMENT):
            source = (
                {"type": "url", "url": part.url}
                if part.url
                else {"type": "base64", "media_type": part.media_type, "data": part.data}
            )
            return {"type": str(part.kind), "source": source}
        kind = part.kind if type(part) is Media else type(part).__name__
        raise self.refuse(f"a message holds a part of the kind {kind}, which this wire does not take")

    def rules(self, body: Mapping[str, Any]) -> str | None:
        turns = body["messages"]
        if not turns:
            return "it holds no message"
        if turns[0]["role"] != "user":
            return "its first message is not the user's"
        if turns[-1]["role"] == "assistant":
            return "it ends on an assistant message"
        asked: list[str] = []
        seen: set[str] = set()
        for number, turn in enumerate(turns):
            if not turn["content"]:
                return f"message {number} is empty"
            answered = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
            for call in answered:
                if call not in asked:
                    return f"message {number} answers call {call}, which the message before does not ask"
                asked.remove(call)
            if asked:
                return f"call {asked[0]} has no result in the message after it"
            kinds = [block["type"] == "tool_result" for block in turn["content"]]
            if kinds != sorted(kinds, reverse=True):
                return f"results do not stand first in message {number}"
            for block in turn["content"]:
                if block["type"] == "text" and not block["text"].strip():
                    return f"message {number} holds a text without words"
            asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
            for call in asked:
                if call in seen or not call:
                    return f"message {number} holds a call whose id {call!r} is taken or empty"
                seen.add(call)
        return None

    def decoder(self) -> EventDecoder:
        return _AnthropicDecoder()


class _AnthropicDecoder(EventDecoder):
    provider = "Anthropic"

    def __init__(self) -> None:
        super().__init__()
        self._order = Order(WIRE)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, dict[str, Any]] = {}
        self._json: dict[int, list[str]] = {}
        self._numbers: dict[int, int] = {}
        self._reason = ""
        self._usage: dict[str, int] = {}

    def _handle(self, data: dict[str, Any]) -> None:
        match data.get("type"):
            case "message_start":
                self._count(data["message"].get("usage"))
            case "content_block_start":
                self._start(data["index"], dict(data["content_block"]))
            case "content_block_delta":
                self._delta(data["index"], self._blocks[data["index"]], data["delta"])
            case "content_block_stop":
                self._stop(data["index"], self._blocks.pop(data["index"]))
            case "message_delta":
                self._reason = checked(data["delta"].get("stop_reason") or self._reason)
                self._count(data.get("usage"))
            case "message_stop":
                self._complete()
            case _:
                pass  # pings, and events that were not there when this was written

    def _count(self, usage: Any) -> None:
        self._usage.update(counts(usage, input_tokens="input_tokens", output_tokens="output_tokens"))

    def _start(self, index: int, block: dict[str, Any]) -> None:
        self._blocks[index] = block
        self._json[index] = []
        if block["type"] == "tool_use":
            number = self._numbers[index] = len(self._numbers)
            self._order.call(number)
            extra = {name: block[name] for name in block if name not in ("type", "id", "name", "input")}
            if extra.get("caller") == {"type": "direct"}:
                del extra["caller"]  # says only that the model itself asks, which a call without it says too
            data = {"wire": WIRE, "members": extra} if extra else None
            self.call(number, block["id"], block["name"], data=data)
        elif block["type"] == "text":
            self._texts[index] = self._order.text(len(block["text"]), join=False)
            self.text(block["text"])
        else:
            self._order.item(block)

    def _delta(self, index: int, block: dict[str, Any], delta: dict[str, Any]) -> None:
        match delta["type"]:
            case "text_delta":
                self._texts[index]["text"] += len(delta["text"])
                self.text(delta["text"])
            case "input_json_delta":
                self._json[index].append(checked(delta["partial_json"]))
                if index in self._numbers:
                    self.call(self._numbers[index], arguments=delta["partial_json"])
            case "thinking_delta":
                block["thinking"] = checked(block["thinking"]) + checked(delta["thinking"])
            case "signature_delta":
                block["signature"] = checked(block.get("signature", "")) + checked(delta["signature"])
            case _:
                pass

    def _stop(self, index: int, block: dict[str, Any]) -> None:
        given = "".join(self._json.pop(index))
        if given and index not in self._numbers:
            block["input"] = loads(given)
        elif not given and block.get("input") and index in self._numbers:
            self.call(self._numbers[index], arguments=compact_json(block["input"]))

    def _complete(self) -> None:
        if self._blocks:
            raise self.error(f"the message stops while its block {next(iter(self._blocks))} is open")
        if not self._reason:
            raise self.error("the message stops, and no stop reason has come")
        self.end(_REASONS.get(self._reason, self._reason), self._usage, self._order.packed())
