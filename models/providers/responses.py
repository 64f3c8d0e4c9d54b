"""OpenAI Responses, as OpenAI and xAI speak it.

A conversation is a list of items. What an answer held comes back item by item with its ids: reasoning verbatim,
because a call without the reasoning that led to it is refused. The answer is complete with ``response.completed`` or
``response.incomplete``. Left out: tools that the provider runs itself, whose items are carried and never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bargein.models.providers.adapter import Adapter, EventDecoder, checked, compact_json, counts, merge, split_head
from bargein.models.providers.provider_data import Order, Piece, call_data, message_data, pieces_of
from bargein.models.providers.schemas import top_level_fault
from bargein.models.providers.wire_ids import WireIds
from bargein.pipelines.agent.messages import Media, MediaKind, Message, Role, Text
from bargein.pipelines.agent.request import Advert, Request

__all__ = ["OpenAIResponses"]

WIRE = "responses"


class OpenAIResponses(Adapter):
    """The adapter.

    Args:
        provider: ``OpenAI`` or ``xAI``, which has no instructions and takes a system message instead.
        chained: send only what came after the newest answer, and that answer's id.
    """

    wire = WIRE

    def __init__(self, model: str, provider: str = "OpenAI", chained: bool = False) -> None:
        super().__init__(model)
        self.provider = provider
        self._chained = chained
        self._instructions = provider == "OpenAI"

    def encode(self, request: Request) -> dict[str, Any]:
        messages: Sequence[Message] = request.messages
        body: dict[str, Any] = {"model": self.model, "stream": True}
        if self._instructions:
            head, messages = split_head(messages)
            if head:
                body["instructions"] = "\n\n".join(head)
        if self._chained:
            messages = self._chain(messages, body)
        body["input"] = self._input(messages)
        if request.tools:
            self.tool_faults(request.tools)
            body["tools"] = [self._tool(advert) for advert in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        return merge(body, request.additional_params)

    def _chain(self, messages: Sequence[Message], body: dict[str, Any]) -> Sequence[Message]:
        for at in range(len(messages) - 1, -1, -1):
            if messages[at].role is Role.ASSISTANT:
                id = message_data(self.provider, WIRE, messages[at]).get("id")
                if id:
                    body["previous_response_id"] = id
                    return messages[at + 1 :]
        return messages

    def _tool(self, advert: Advert) -> dict[str, Any]:
        fault = top_level_fault(advert.parameters)
        if fault is not None:
            raise self.refuse(f"of the tool {advert.name}: {fault}")
        return {
            "type": "function",
            "name": advert.name,
            "description": advert.description,
            "parameters": advert.parameters,
        }

    def _input(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        ids = WireIds()
        return [item for message in messages for item in self._items(message, ids)]

    def _items(self, message: Message, ids: WireIds) -> list[dict[str, Any]]:
        if message.role is Role.TOOL:
            result = message.result
            assert result is not None
            return [{"type": "function_call_output", "call_id": ids.of(result.call_id), "output": result.content}]
        if message.role is Role.ASSISTANT:
            pieces = pieces_of(self.provider, WIRE, message)
            if not message.calls and any(piece.cut for piece in pieces):
                # Reasoning is refused without the item it led to, and a text that was cut is not that item any more.
                pieces = [piece for piece in pieces if piece.item is None]
            return [self._said(piece, ids) for piece in pieces]
        parts = [self._part(part) for part in message.parts if type(part) is not Text or part.text]
        return [{"type": "message", "role": str(message.role), "content": parts}]

    def _said(self, piece: Piece, ids: WireIds) -> dict[str, Any]:
        if piece.item is not None:
            return dict(piece.item)
        if piece.call is None:
            content = [{"type": "output_text", "text": piece.text}]
            return {"type": "message", "role": "assistant", "content": content, **({} if piece.cut else piece.data)}
        call = piece.call
        members = call_data(self.provider, WIRE, call).get("members", {})
        if type(members) is not dict:
            raise self.refuse(f"the provider data of call {call.id} is not what this wire gives")
        arguments = compact_json(self.arguments(call))
        asked = {"type": "function_call", "call_id": ids.give(call), "name": call.name, "arguments": arguments}
        return {**asked, **members}

    def _part(self, part: Any) -> dict[str, Any]:
        if type(part) is Text:
            return {"type": "input_text", "text": part.text}
        if type(part) is Media and part.kind is MediaKind.IMAGE:
            image = {"type": "input_image", "image_url": part.url or f"data:{part.media_type};base64,{part.data}"}
            return {**image, "detail": part.detail} if part.detail else image
        if type(part) is Media and part.kind is MediaKind.DOCUMENT:
            if part.url:
                return {"type": "input_file", "file_url": part.url}
            return {"type": "input_file", "file_data": f"data:{part.media_type};base64,{part.data}"}
        kind = part.kind if type(part) is Media else type(part).__name__
        raise self.refuse(f"a message holds a part of the kind {kind}, which this wire does not take")

    def rules(self, body: Mapping[str, Any]) -> str | None:
        chained = "previous_response_id" in body
        asked: dict[str, bool] = {}
        items = body["input"]
        if not items:
            return "its input holds no item"
        for number, item in enumerate(items):
            following = items[number + 1].get("type") if number + 1 < len(items) else None
            if item["type"] == "reasoning" and following not in ("reasoning", "function_call", "message"):
                return f"the reasoning of item {number} stands without the item it led to"
            if item["type"] == "message" and not item["content"]:
                return f"item {number} is a message without content"
            if item["type"] == "function_call":
                if item["call_id"] in asked or not item["call_id"]:
                    return f"item {number} holds a call whose id {item['call_id']!r} is taken or empty"
                asked[item["call_id"]] = False
            elif item["type"] == "function_call_output":
                if asked.get(item["call_id"], not chained):
                    return f"item {number} answers call {item['call_id']}, which does not stand before it"
                asked[item["call_id"]] = True
        unanswered = [call for call, answered in asked.items() if not answered]
        return f"call {unanswered[0]} has no output" if unanswered else None

    def decoder(self) -> EventDecoder:
        return _ResponsesDecoder(self.provider)


class _Open:
    """An item of the answer that is still coming: its call's number and what came of its arguments, or its text."""

    __slots__ = ("arguments", "entry", "number")

    def __init__(self, number: int | None, entry: dict[str, Any]) -> None:
        self.number = number
        self.entry = entry
        self.arguments = ""


class _ResponsesDecoder(EventDecoder):
    def __init__(self, provider: str) -> None:
        self.provider = provider
        super().__init__()
        self._order = Order(WIRE)
        self._open: dict[int, _Open] = {}
        self._pieces: dict[int, list[str]] = {}
        self._calls = 0

    def _handle(self, data: dict[str, Any]) -> None:
        match data.get("type"):
            case "response.output_item.added":
                self._added(data["output_index"], data["item"])
            case "response.output_text.delta" | "response.refusal.delta":
                self._open[data["output_index"]].entry["text"] += len(data["delta"])
                self.text(data["delta"])
            case "response.function_call_arguments.delta":
                item = self._open[data["output_index"]]
                assert item.number is not None
                self._pieces[item.number].append(checked(data["delta"]))
                self.call(item.number, arguments=data["delta"])
            case "response.output_item.done":
                self._done(data["output_index"], data["item"])
            case "response.completed" | "response.incomplete":
                self._complete(data["response"])
            case "response.failed":
                error = data["response"].get("error") or {}
                raise self.error(f"the provider reports {error.get('code')}: {error.get('message')}")
            case "error":
                raise self.error(f"the provider reports {data.get('code')}: {data.get('message')}")
            case _:
                pass  # progress, summaries of what the finished items hold, and events of a later day

    def _added(self, at: int, item: dict[str, Any]) -> None:
        number = None
        if item["type"] == "function_call":
            number = self._calls
            self._calls += 1
            self._order.call(number)
            self._pieces[number] = []
            self.call(number, item["call_id"], item["name"])
        elif item["type"] == "message":
            self._order.text(0, join=False)
        else:
            self._order.item(item)
        self._open[at] = _Open(number, self._order.entries[-1])

    def _done(self, at: int, item: dict[str, Any]) -> None:
        """A finished item says everything once more; what had not come before is taken from it."""
        if at not in self._open:
            self._added(at, item)
        open_item = self._open.pop(at)
        if open_item.number is not None:
            came, whole = "".join(self._pieces.pop(open_item.number)), checked(item["arguments"])
            if not whole.startswith(came):
                raise self.error("the finished arguments of a call are not those that streamed")
            members = {name: item[name] for name in item if name not in ("type", "call_id", "name", "arguments")}
            self.call(open_item.number, arguments=whole[len(came) :], data={"wire": WIRE, "members": members})
        elif item["type"] == "message":
            whole = "".join(part.get("text") or part.get("refusal") or "" for part in item["content"])
            if not open_item.entry["text"]:
                open_item.entry["text"] = len(whole)
                self.text(whole)
            open_item.entry["with"] = {name: item[name] for name in item if name not in ("type", "role", "content")}
        else:
            open_item.entry["item"] = item

    def _complete(self, response: dict[str, Any]) -> None:
        if self._open:
            raise self.error(f"the answer ends while its item {next(iter(self._open))} is open")
        usage = counts(response.get("usage"), input_tokens="input_tokens", output_tokens="output_tokens")
        reason = "tool_calls" if self._calls else "stop"
        if response.get("status") == "incomplete":
            why = (response.get("incomplete_details") or {}).get("reason")
            reason = "length" if why == "max_output_tokens" else checked(why or "incomplete")
        self.end(reason, usage, self._order.packed(id=response["id"]))
