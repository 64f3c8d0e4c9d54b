"""Messages with typed parts: the one internal form of a conversation.

Everything that enters a context, a request or a provider adapter is one of these. Four roles: system, user,
assistant and tool; an assistant message holds text and tool calls, a tool message answers one call (tool
contract, "Internal representation"; run contract, section 1). Frozen: an edit is a new message in the old
one's place. Left out: how a provider spells them (its adapter knows).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = [
    "Media",
    "MediaKind",
    "Message",
    "Part",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "assistant",
    "message_from_dict",
    "system",
    "tool_answer",
    "user",
]


class Role(StrEnum):
    """Who speaks; there is no fifth."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    """Words, spoken or written."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for.

    Attributes:
        id: internal and stable, ``t<epoch>.<seq>``.
        name: the tool.
        arguments: a JSON object, as the model gave it; treated as read-only.
        provider_id: the provider's own id, for its wire only.
        provider_data: opaque, carried back verbatim.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    provider_id: str = ""
    provider_data: Any = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to a call: what the tool returned, or a structured error."""

    call_id: str
    content: str
    is_error: bool = False


class MediaKind(StrEnum):
    """What a medium is."""

    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, a sound, a film or a document that the user sends along.

    Attributes:
        media_type: such as ``image/png``; may be empty beside an address.
        data: the bytes in base64, as they were given; or ``url``, where they are.
        detail: how closely the model should look, where the provider has levels.
    """

    kind: MediaKind
    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = ""


Part = Text | ToolCall | ToolResult | Media


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: who speaks.
        parts: what is said, in order.
        provider_data: opaque data of a whole response, carried back verbatim.
        tells: of a system message that is a late note, the id of the call whose result it tells.
    """

    role: Role
    parts: tuple[Part, ...]
    provider_data: Any = None
    tells: str = ""

    @property
    def text(self) -> str:
        """The text parts, joined."""
        parts = self.parts
        if len(parts) == 1:  # most messages, and asked for again and again
            return parts[0].text if type(parts[0]) is Text else ""
        return "".join([part.text for part in parts if type(part) is Text])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order the model issued them."""
        parts = self.parts
        if len(parts) == 1 and type(parts[0]) is Text:
            return ()
        return tuple([part for part in parts if type(part) is ToolCall])

    @property
    def result(self) -> ToolResult | None:
        """The answer a tool message holds."""
        for part in self.parts:
            if type(part) is ToolResult:
                return part
        return None

    def with_text(self, text: str) -> Message:
        """The same message saying ``text`` instead, calls kept; no text part at all where it is empty."""
        calls: tuple[Part, ...] = self.calls
        return Message(self.role, ((Text(text), *calls) if text else calls), self.provider_data)

    def to_dict(self) -> dict[str, Any]:
        """The message as plain data tagged by ``role``; `message_from_dict` reads it back."""
        data: dict[str, Any] = {"role": str(self.role)}
        if self.role is Role.TOOL:
            result = self.result
            assert result is not None
            data.update(call_id=result.call_id, content=result.content, is_error=result.is_error)
            return data
        data["text"] = self.text
        if any(type(part) is Media for part in self.parts):
            data["parts"] = [_part_to_dict(part) for part in self.parts if type(part) is not ToolCall]
        if self.tells:
            data["tells"] = self.tells
        if self.role is Role.ASSISTANT:
            data["tool_calls"] = [
                {
                    "id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "provider_id": call.provider_id,
                    "provider_data": call.provider_data,
                }
                for call in self.calls
            ]
            data["provider_data"] = self.provider_data
        return data


def system(text: str, tells: str = "") -> Message:
    """A system message; a late note names the call it tells of."""
    return Message(Role.SYSTEM, (Text(text),), None, tells)


def user(text: str, *media: Media) -> Message:
    """A user message, with what is sent along after its words."""
    return Message(Role.USER, (Text(text), *media))


def assistant(text: str, calls: tuple[ToolCall, ...] = (), provider_data: Any = None) -> Message:
    """An assistant message of text, calls, or both."""
    parts: tuple[Part, ...] = (Text(text), *calls) if text else calls
    return Message(Role.ASSISTANT, parts, provider_data)


def tool_answer(call_id: str, content: str, is_error: bool = False) -> Message:
    """A tool message: the answer to one call."""
    return Message(Role.TOOL, (ToolResult(call_id, content, is_error),))


def message_from_dict(data: dict[str, Any]) -> Message:
    """Read a message back from `Message.to_dict`.

    Raises:
        ValueError: the role is none of the four, or the data is not a message.
    """
    try:
        role = Role(data["role"])
    except (KeyError, ValueError):
        raise ValueError(f"role {data.get('role')!r} is not a message role; accepted are {', '.join(Role)}") from None
    if role is Role.TOOL:
        return tool_answer(data["call_id"], data["content"], data["is_error"])
    if role is Role.ASSISTANT:
        calls = tuple(ToolCall(**call) for call in data["tool_calls"])
        return assistant(data["text"], calls, data["provider_data"])
    parts = tuple([_part_from_dict(part) for part in data["parts"]]) if "parts" in data else (Text(data["text"]),)
    return Message(role, parts, None, data.get("tells", ""))


def _part_to_dict(part: Part) -> dict[str, Any]:
    if type(part) is Media:
        return {"kind": str(part.kind), **{name: getattr(part, name) for name in _MEDIA_FIELDS if getattr(part, name)}}
    return {"text": part.text} if type(part) is Text else {}


def _part_from_dict(data: dict[str, Any]) -> Part:
    if "kind" in data:
        return Media(MediaKind(data["kind"]), **{name: data[name] for name in _MEDIA_FIELDS if name in data})
    return Text(data["text"])


_MEDIA_FIELDS = ("media_type", "data", "url", "detail")
