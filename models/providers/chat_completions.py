"""OpenAI Chat Completions, and the providers that speak it (``presets``).

The answer is a stream of chunks whose ``delta`` holds text, reasoning and fragments of calls by index. Providers
differ in how they number and name fragments, so the decoder counts calls itself, in the order in which they begin.
An answer is complete at ``[DONE]``, or at the end of the stream, once a finish reason has come; usage may follow the
finish reason. Left out: several choices in one answer, and audio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import loads
from typing import Any

from bargein.models.providers.adapter import Adapter, EventDecoder, checked, compact_json, counts, merge
from bargein.models.providers.presets import PRESETS, Preset
from bargein.models.providers.provider_data import message_data
from bargein.models.providers.schemas import top_level_fault
from bargein.models.providers.sse import SseEvent
from bargein.models.providers.wire_ids import WireIds
from bargein.pipelines.agent.messages import Media, MediaKind, Message, Role, Text
from bargein.pipelines.agent.request import Advert, Request

__all__ = ["ChatCompletions"]

WIRE = "chat_completions"


class ChatCompletions(Adapter):
    """The adapter; ``preset`` names the provider."""

    wire = WIRE

    def __init__(self, model: str, preset: str = "openai") -> None:
        super().__init__(model)
        self._preset = PRESETS[preset]
        self.provider = self._preset.provider

    def encode(self, request: Request) -> dict[str, Any]:
        preset = self._preset
        body: dict[str, Any] = {"model": self.model, "messages": self._messages(request.messages), "stream": True}
        if preset.usage_option:
            body["stream_options"] = {"include_usage": True}
        body.update(preset.defaults)
        if request.tools:
            self.tool_faults(request.tools)
            body["tools"] = [self._tool(advert) for advert in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        return merge(body, request.additional_params)

    def _tool(self, advert: Advert) -> dict[str, Any]:
        fault = top_level_fault(advert.parameters)
        if fault is not None:
            raise self.refuse(f"of the tool {advert.name}: {fault}")
        inner = {"name": advert.name, "description": advert.description, "parameters": advert.parameters}
        return {"type": "function", "function": inner}

    def _messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        ids = WireIds(self._preset.make_id)
        return [self._message(message, ids) for message in messages]

    def _message(self, message: Message, ids: WireIds) -> dict[str, Any]:
        if message.role is Role.TOOL:
            result = message.result
            assert result is not None
            return {"role": "tool", "tool_call_id": ids.of(result.call_id), "content": result.content}
        if message.role is not Role.ASSISTANT:
            return {"role": str(message.role), "content": self._content(message)}
        said: dict[str, Any] = {"role": "assistant"}
        if message.text or self._preset.content_always:
            said["content"] = message.text
        said.update(self._reasoning(message))
        if message.calls:
            said["tool_calls"] = [
                {
                    "id": ids.give(call),
                    "type": "function",
                    "function": {"name": call.name, "arguments": compact_json(self.arguments(call))},
                }
                for call in message.calls
            ]
        return said

    def _reasoning(self, message: Message) -> dict[str, Any]:
        """The reasoning that has to come back with a message."""
        members = message_data(self.provider, WIRE, message).get("members", {})
        if type(members) is not dict:
            raise self.refuse("the provider data of a message is not what this wire gives")
        for name in self._preset.reasoning:
            if members.get(name):
                return {name: members[name]}
        return {}

    def _content(self, message: Message) -> str | list[dict[str, Any]]:
        if all(type(part) is Text for part in message.parts) and len(message.parts) <= 1:
            return message.text
        return [self._part(part) for part in message.parts]

    def _part(self, part: Any) -> dict[str, Any]:
        if type(part) is Text:
            return {"type": "text", "text": part.text}
        if type(part) is Media and part.kind is MediaKind.IMAGE:
            image = {"url": part.url or f"data:{part.media_type};base64,{part.data}"}
            if part.detail:
                image["detail"] = part.detail
            return {"type": "image_url", "image_url": image}
        if type(part) is Media and part.kind is MediaKind.AUDIO and part.data:
            sound = {"data": part.data, "format": part.media_type.rpartition("/")[2]}
            return {"type": "input_audio", "input_audio": sound}
        kind = part.kind if type(part) is Media else type(part).__name__
        raise self.refuse(f"a message holds a part of the kind {kind}, which this wire does not take")

    def rules(self, body: Mapping[str, Any]) -> str | None:
        open_calls: list[str] = []
        if not body["messages"]:
            return "it holds no message"
        for number, message in enumerate(body["messages"]):
            if message["role"] == "tool":
                if message["tool_call_id"] not in open_calls:
                    return f"message {number} answers call {message['tool_call_id']}, which does not stand before it"
                open_calls.remove(message["tool_call_id"])
                continue
            if open_calls:
                return f"call {open_calls[0]} is not answered directly after the message that asks it"
            calls = message.get("tool_calls", [])
            if message["role"] == "assistant" and not message.get("content") and not calls:
                return f"assistant message {number} is empty"
            open_calls = [call["id"] for call in calls]
            if len(set(open_calls)) < len(open_calls) or "" in open_calls:
                return f"message {number} holds two calls of one id, or one without"
        return f"call {open_calls[0]} is not answered" if open_calls else None

    def decoder(self) -> EventDecoder:
        return _ChatDecoder(self._preset)


class _Call:
    __slots__ = ("arguments", "id", "number", "position")

    def __init__(self, number: int, position: Any, id: str) -> None:
        self.number = number
        self.position = position
        self.id = id
        self.arguments: list[str] = []

    @property
    def whole(self) -> bool:
        """Whether its arguments are a complete JSON object."""
        if not self.arguments or not self.arguments[-1].endswith("}"):
            return False
        try:
            return type(loads("".join(self.arguments))) is dict
        except (ValueError, RecursionError):
            return False


class _ChatDecoder(EventDecoder):
    def __init__(self, preset: Preset) -> None:
        self.provider = preset.provider
        self._preset = preset
        super().__init__()
        self._calls: list[_Call] = []
        self._finish = ""
        self._usage: dict[str, int] = {}
        self._reasoning: dict[str, list[str]] = {}
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}

    def _read(self, event: SseEvent) -> None:
        if event.data.strip() != "[DONE]":
            super()._read(event)
        elif self._finish:
            self._complete()
        else:
            raise self.error("the stream is done, and no finish reason has come")

    def _end_of_stream(self) -> None:
        if self._finish:
            self._complete()

    def _complete(self) -> None:
        members: dict[str, Any] = {name: "".join(pieces) for name, pieces in self._reasoning.items() if any(pieces)}
        if self._details:
            members["reasoning_details"] = list(self._details.values())
        data = {"wire": WIRE, "members": members} if members else None
        reason = "tool_calls" if self._finish == "function_call" else self._finish
        self.end(reason, self._usage, data)

    def _handle(self, data: dict[str, Any]) -> None:
        usage = data.get("usage") or (data.get("x_groq") or {}).get("usage")
        if usage:
            self._usage = counts(usage, input_tokens="prompt_tokens", output_tokens="completion_tokens")
        for choice in data.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name in ("reasoning_content", "reasoning"):
            if delta.get(name):
                self._reasoning.setdefault(name, []).append(checked(delta[name]))
        for detail in delta.get("reasoning_details") or ():
            self._detail(detail)
        content = delta.get("content")
        if type(content) is list:  # parts, as reasoning models of Mistral send them
            content = "".join(part["text"] for part in content if part.get("type") == "text")
        self.text(content or "")
        self.text(delta.get("refusal") or "")
        for fragment in delta.get("tool_calls") or ():
            self._fragment(fragment)
        self._finish = checked(choice.get("finish_reason") or self._finish)

    def _detail(self, detail: dict[str, Any]) -> None:
        """Fragments of one detail have its index; texts are joined, the rest is taken as it comes."""
        known = self._details.setdefault((detail.get("index"), detail.get("type")), {})
        for name, value in detail.items():
            if name in ("text", "summary", "data") and name in known and value is not None:
                known[name] = checked(known[name]) + checked(value)
            elif value is not None or name not in known:
                known[name] = value

    def _fragment(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function") or {}
        id, name = checked(fragment.get("id") or ""), checked(function.get("name") or "")
        arguments = function.get("arguments")
        if type(arguments) is dict:  # an object where the wire has its text
            arguments = compact_json(arguments)
        arguments = checked(arguments or "")
        call = self._call_of(fragment.get("index"), id, name, arguments)
        call.arguments.append(arguments)
        self.call(call.number, id, name, arguments)

    def _call_of(self, position: Any, id: str, name: str, arguments: str) -> _Call:
        """The call that a fragment belongs to, or a new one.

        Some providers give every call the index 0, or none: there a call begins where a name comes with another id,
        or with arguments while those before are whole.
        """
        for call in reversed(self._calls):
            same = call.position == position if position is not None else (not id or id == call.id) and not name
            if not same:
                continue
            if name and ((id and call.id and id != call.id) or (arguments and call.whole)):
                break
            call.id = call.id or id
            return call
        fresh = _Call(len(self._calls), position, id)
        self._calls.append(fresh)
        return fresh
