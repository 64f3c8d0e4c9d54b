"""A recorded request, read back into turns: what the program said, what it offered, and what its tools answered.

The inverse of the encoders, written apart from them so that a fault of theirs cannot hide itself. Assistant turns are
read only for their calls' names and ids; in the comparison each is replaced by what the decoder made of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any

from bargein.pipelines.agent.messages import Media, MediaKind, Part, Text
from bargein.pipelines.agent.request import Advert

__all__ = ["Asked", "Recorded", "Turn", "read"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call in the history of a request."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Turn:
    """One message of a recorded request.

    Attributes:
        role: system, user, assistant or tool.
        call: of a tool's answer, the id that it answers; the tool's name where the wire has no ids.
        reasons: of an assistant turn, whether it holds reasoning.
    """

    role: str
    parts: list[Part] = field(default_factory=list)
    calls: list[Asked] = field(default_factory=list)
    call: str = ""
    content: str = ""
    is_error: bool = False
    reasons: bool = False

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if type(part) is Text)


@dataclass(slots=True)
class Recorded:
    """One recorded request, read."""

    turns: list[Turn]
    tools: list[Advert] = field(default_factory=list)
    temperature: float | None = None
    max_tokens: int | None = None
    params: dict[str, Any] = field(default_factory=dict)


def read(wire: str, body: dict[str, Any]) -> Recorded:
    """Read a request of ``wire``."""
    if wire == "anthropic":
        return _anthropic(body)
    if wire == "gemini":
        return _gemini(body)
    return _responses(body) if wire.endswith("_responses") else _chat(body)


def _rest(body: dict[str, Any], *known: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in known and value is not None}


# -- Chat Completions -----------------------------------------------------------------------------------------


def _chat(body: dict[str, Any]) -> Recorded:
    tools = [
        Advert(each["function"]["name"], each["function"].get("description", ""), each["function"]["parameters"])
        for each in body.get("tools") or ()
    ]
    turns = [_chat_turn(each) for each in body["messages"]]
    params = _rest(body, "model", "messages", "stream", "tools", "temperature", "max_tokens")
    return Recorded(turns, tools, body.get("temperature"), body.get("max_tokens"), params)


def _chat_turn(message: dict[str, Any]) -> Turn:
    content = message.get("content")
    if message["role"] == "tool":
        return Turn("tool", call=message["tool_call_id"], content=_joined(content))
    calls = [
        Asked(each["id"], each["function"]["name"], loads(each["function"]["arguments"] or "{}"))
        for each in message.get("tool_calls") or ()
    ]
    reasons = any(message.get(name) for name in ("reasoning_content", "reasoning", "reasoning_details"))
    return Turn(message["role"], _parts(content), calls, reasons=reasons)


def _joined(content: Any) -> str:
    return content if type(content) is str else "".join(part["text"] for part in content or ())


def _parts(content: Any) -> list[Part]:
    if not content:
        return []
    return [Text(content)] if type(content) is str else [_part(each) for each in content]


def _part(part: dict[str, Any]) -> Part:
    if "text" in part:
        return Text(part["text"])
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        image = part["image_url"]
        inner = image if type(image) is dict else {"url": image, **part}
        return _addressed(MediaKind.IMAGE, inner["url"], inner.get("detail") or "")
    if kind == "input_file":
        return _addressed(MediaKind.DOCUMENT, part.get("file_data") or part["file_url"])
    if kind == "input_audio":
        sound = part["input_audio"]
        return Media(MediaKind.AUDIO, f"audio/{sound['format']}", sound["data"])
    source = part["source"]
    return Media(MediaKind(kind), source.get("media_type", ""), source.get("data", ""), source.get("url", ""))


def _addressed(kind: MediaKind, url: str, detail: str = "") -> Media:
    if url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        return Media(kind, head.removeprefix("data:"), data, detail=detail)
    return Media(kind, url=url, detail=detail)


# -- Anthropic ------------------------------------------------------------------------------------------------


def _anthropic(body: dict[str, Any]) -> Recorded:
    tools = [
        Advert(each["name"], each.get("description", ""), each["input_schema"]) for each in body.get("tools") or ()
    ]
    system = body.get("system") or []
    texts = [system] if type(system) is str else [each["text"] for each in system]
    turns = [Turn("system", [Text(each)]) for each in texts]
    for message in body["messages"]:
        turns += _anthropic_turns(message)
    params = _rest(body, "model", "messages", "stream", "tools", "temperature", "max_tokens", "system")
    return Recorded(turns, tools, body.get("temperature"), body.get("max_tokens"), params)


def _anthropic_turns(message: dict[str, Any]) -> list[Turn]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if type(content) is str else content
    if message["role"] == "assistant":
        calls = [Asked(each["id"], each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"]
        parts = [Text(each["text"]) for each in blocks if each["type"] == "text"]
        reasons = any(each["type"].endswith("thinking") for each in blocks)
        return [Turn("assistant", list(parts), calls, reasons=reasons)]
    turns = []
    for block in blocks:
        if block["type"] == "tool_result":
            content, failed = _joined(block.get("content")), bool(block.get("is_error"))
            turns.append(Turn("tool", call=block["tool_use_id"], content=content, is_error=failed))
        elif turns and turns[-1].role == "user":
            turns[-1].parts.append(_part(block))
        else:
            turns.append(Turn("user", [_part(block)]))
    return turns


# -- Gemini ---------------------------------------------------------------------------------------------------


_SCHEMA = "parametersJsonSchema"
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def _gemini(body: dict[str, Any]) -> Recorded:
    tools = [
        Advert(each["name"], each.get("description", ""), each.get("parameters") or each.get(_SCHEMA) or _NOTHING)
        for group in body.get("tools") or ()
        for each in group.get("functionDeclarations") or ()
    ]
    system = (body.get("systemInstruction") or {}).get("parts") or ()
    turns = [Turn("system", [Text(each["text"])]) for each in system]
    for content in body["contents"]:
        turns += _gemini_turns(content)
    generation = dict(body.get("generationConfig") or {})
    temperature, max_tokens = generation.pop("temperature", None), generation.pop("maxOutputTokens", None)
    params = _rest(body, "contents", "tools", "systemInstruction", "generationConfig")
    generation = {key: value for key, value in generation.items() if value is not None}
    if generation:
        params["generationConfig"] = generation
    return Recorded(turns, tools, temperature, max_tokens, params)


def _gemini_turns(content: dict[str, Any]) -> list[Turn]:
    parts = content["parts"]
    if content["role"] == "model":
        asked = [each["functionCall"] for each in parts if "functionCall" in each]
        calls = [Asked(each.get("id") or each["name"], each["name"], each.get("args") or {}) for each in asked]
        said: list[Part] = [Text(each["text"]) for each in parts if "text" in each and not each.get("thought")]
        return [Turn("assistant", said, calls, reasons=any(each.get("thought") for each in parts))]
    turns: list[Turn] = []
    for part in parts:
        if "functionResponse" in part:
            answer = part["functionResponse"]
            key, value = next(iter(answer["response"].items()))
            text = value if type(value) is str else dumps(value, ensure_ascii=False, separators=(",", ":"))
            call = answer.get("id") or answer["name"]
            turns.append(Turn("tool", call=call, content=text, is_error=key == "error"))
        elif turns and turns[-1].role == "user":
            turns[-1].parts.append(_gemini_part(part))
        else:
            turns.append(Turn("user", [_gemini_part(part)]))
    return turns


def _gemini_part(part: dict[str, Any]) -> Part:
    if "text" in part:
        return Text(part["text"])
    inner = part.get("inlineData") or part["fileData"]
    kinds = {"image": MediaKind.IMAGE, "audio": MediaKind.AUDIO, "video": MediaKind.VIDEO}
    kind = kinds.get(str(inner.get("mimeType")).partition("/")[0], MediaKind.DOCUMENT)
    return Media(kind, inner.get("mimeType") or "", inner.get("data") or "", inner.get("fileUri") or "")


# -- Responses ------------------------------------------------------------------------------------------------


def _responses(body: dict[str, Any]) -> Recorded:
    tools = [Advert(each["name"], each.get("description", ""), each["parameters"]) for each in body.get("tools") or ()]
    turns = [Turn("system", [Text(body["instructions"])])] if body.get("instructions") else []
    items = body["input"]
    for item in [{"role": "user", "content": items}] if type(items) is str else items:
        _responses_item(item, turns)
    params = _rest(
        body,
        *("model", "input", "stream", "tools", "temperature", "max_output_tokens", "instructions"),
        "previous_response_id",
    )
    return Recorded(turns, tools, body.get("temperature"), body.get("max_output_tokens"), params)


def _responses_item(item: dict[str, Any], turns: list[Turn]) -> None:
    """An item; neighbours that one answer holds are one assistant turn."""
    kind = item.get("type", "message")
    if kind == "function_call_output":
        turns.append(Turn("tool", call=item["call_id"], content=_joined(item["output"])))
    elif kind == "message" and item["role"] != "assistant":
        turns.append(Turn(item["role"], _parts(item["content"])))
    else:
        if not turns or turns[-1].role != "assistant":
            turns.append(Turn("assistant"))
        turn = turns[-1]
        if kind == "function_call":
            turn.calls.append(Asked(item["call_id"], item["name"], loads(item["arguments"] or "{}")))
        elif kind == "message":
            turn.parts += _parts(item["content"])
        else:
            turn.reasons = True
