"""An agent run's messages as those of a voice session, so that one model serves both.

Results of tools, which are parts of a user message here, become messages of their own. An opaque part that names its
wire is that adapter's data of the whole answer, which a voice message carries beside its parts; what a voice session
does not know (reasoning, other opaque items) is dropped (run contract, section 1). How a result came about is not
carried over: it stands beside the history, and what is sent is the same whatever it was (section 8.1), so that a
recorded request says all that a model was told. Left out: the way back.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps
from typing import Any

from bargein.pipelines.agent.media_sources import Base64, Literal, Url
from bargein.pipelines.agent.messages import Media, MediaKind, Message, Role, Text, ToolCall, ToolResult
from bargein.pipelines.agent.messages import Part as VoicePart
from bargein.pipelines.agent.parts import (
    CallPart,
    ImagePart,
    JsonPart,
    MediaPart,
    OpaquePart,
    ResultPart,
    RunMessage,
    TextPart,
)
from bargein.pipelines.agent.request import Advert
from bargein.pipelines.agent.run_settings import Grant

__all__ = ["as_adverts", "as_messages", "result_text"]


def as_adverts(tools: Iterable[Grant]) -> tuple[Advert, ...]:
    """Tools as a voice session advertises them."""
    return tuple([Advert(tool.name, tool.description, tool.parameters) for tool in tools])


def result_text(part: ResultPart) -> str:
    """What a tool's result says, pictures left out."""
    said = []
    for item in part.items:
        if type(item) is TextPart:
            said.append(item.text)
        elif type(item) is JsonPart:
            said.append(dumps(item.value, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(said)


def as_messages(messages: Iterable[RunMessage]) -> tuple[Message, ...]:
    """The messages as a voice session has them."""
    found: list[Message] = []
    for message in messages:
        parts: list[VoicePart] = []
        data: Any = None
        for part in message.parts:
            if type(part) is ResultPart:
                found.append(Message(Role.TOOL, (ToolResult(part.call_id, result_text(part)),)))
            elif type(part) is TextPart:
                parts.append(Text(part.text))
            elif type(part) is CallPart:
                arguments = part.arguments if isinstance(part.arguments, dict) else {}
                parts.append(ToolCall(part.id, part.name, arguments, part.provider_id, part.native))
            elif isinstance(part, MediaPart):
                parts.append(_media(part))
            elif type(part) is OpaquePart and type(part.native) is dict and "wire" in part.native:
                data = part.native
        if parts:
            found.append(Message(message.role, tuple(parts), data))
    return tuple(found)


def _media(part: MediaPart) -> Media:
    kind = MediaKind.IMAGE if type(part) is ImagePart else MediaKind(part.type)
    source = part.source
    data = source.text if isinstance(source, Base64 | Literal) else ""
    return Media(kind, part.media_type, data, source.url if isinstance(source, Url) else "", part.detail)
