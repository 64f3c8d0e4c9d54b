"""The typed parts of an agent run's messages, and which message may hold which.

Ten kinds and no eleventh (run contract, section 1): text, image, audio, video, document, tool call, reasoning, opaque,
tool result and JSON. A provider's own item rides along inside the part it became; what has no meaning here stays an
opaque part in its place. Frozen: an edit is a new part in the old one's place. Left out: where the bytes of media are
kept (``assets``), and the messages of a voice session, which hold less (``messages``; ``projection`` leads there).
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from bargein.pipelines.agent.media_sources import ContentError, Source, source_from_dict, source_to_dict
from bargein.pipelines.agent.messages import Role

__all__ = [
    "AssistantHead",
    "AudioPart",
    "CallPart",
    "ContentError",
    "DocumentPart",
    "ImagePart",
    "JsonPart",
    "MediaPart",
    "OpaquePart",
    "Part",
    "ReasoningPart",
    "ResultPart",
    "RunMessage",
    "TextPart",
    "VideoPart",
    "message_from_dict",
    "part_from_dict",
    "user_message",
]


# -- parts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words; ``annotations`` are the provider's, such as citations."""

    type: ClassVar[str] = "text"
    text: str
    annotations: tuple[Any, ...] = ()
    native: Any = None


@dataclass(frozen=True, slots=True)
class MediaPart:
    """What the four media have in common.

    Attributes:
        source: where its bytes are.
        media_type: such as ``image/png``.
        detail: how closely to look, where the provider has levels.
        options: whatever else belongs to it, as it was given.
        native: the provider's own item.
    """

    type: ClassVar[str] = "media"
    source: Source
    media_type: str = ""
    detail: str = ""
    options: Any = None
    native: Any = None


@dataclass(frozen=True, slots=True)
class ImagePart(MediaPart):
    """A picture."""

    type: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class AudioPart(MediaPart):
    """A sound."""

    type: ClassVar[str] = "audio"


@dataclass(frozen=True, slots=True)
class VideoPart(MediaPart):
    """A film."""

    type: ClassVar[str] = "video"


@dataclass(frozen=True, slots=True)
class DocumentPart(MediaPart):
    """A document that is part of a message."""

    type: ClassVar[str] = "document"


@dataclass(frozen=True, slots=True)
class CallPart:
    """A call the model asked for; ``arguments`` are in the model's own key order, text where they are no JSON."""

    type: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: Any
    provider_id: str = ""
    native: Any = None


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """What the model thought, as far as the provider shows it; ``encrypted`` is what only the provider can read."""

    type: ClassVar[str] = "reasoning"
    text: str = ""
    encrypted: str = ""
    id: str = ""
    native: Any = None


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """A provider's item without a meaning of its own here, carried back as it came."""

    type: ClassVar[str] = "opaque"
    native: Any


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A JSON value in a tool's result."""

    type: ClassVar[str] = "json"
    value: Any


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The answer to a call: text, pictures and JSON, in order."""

    type: ClassVar[str] = "tool_result"
    call_id: str
    items: tuple[TextPart | ImagePart | JsonPart, ...]
    name: str = ""
    provider_id: str = ""


Part = (
    TextPart
    | ImagePart
    | AudioPart
    | VideoPart
    | DocumentPart
    | CallPart
    | ReasoningPart
    | OpaquePart
    | ResultPart
    | JsonPart
)

_KINDS: dict[str, type[Any]] = {
    kind.type: kind
    for kind in (
        TextPart,
        ImagePart,
        AudioPart,
        VideoPart,
        DocumentPart,
        CallPart,
        ReasoningPart,
        OpaquePart,
        ResultPart,
        JsonPart,
    )
}
_HOLDS: dict[Role, tuple[type[Any], ...]] = {
    Role.SYSTEM: (TextPart,),
    Role.USER: (TextPart, ImagePart, AudioPart, VideoPart, DocumentPart, ResultPart),
    Role.ASSISTANT: (TextPart, ImagePart, AudioPart, CallPart, ReasoningPart, OpaquePart),
}
_ITEMS = (TextPart, ImagePart, JsonPart)


@dataclass(frozen=True, slots=True)
class AssistantHead:
    """What belongs to a whole assistant message: which model it came from, how it ended, the provider's message."""

    origin: str = ""
    finish: str = ""
    raw: Any = None


@dataclass(frozen=True, slots=True)
class RunMessage:
    """One message of a run: system, user or assistant; results of tools are parts of a user message.

    Raises:
        ContentError: the role may not hold one of the parts.
    """

    role: Role
    parts: tuple[Part, ...]
    head: AssistantHead | None = None

    def __post_init__(self) -> None:
        holds = _HOLDS.get(self.role)
        if holds is None:
            raise ContentError(f"role {self.role}: a run's message is one of system, user and assistant")
        for at, part in enumerate(self.parts):
            if type(part) not in holds:
                accepted = ", ".join(kind.type for kind in holds)
                raise ContentError(f"parts[{at}]: found {part.type}; a {self.role} message holds {accepted}")
            if type(part) is ResultPart:
                for inner, item in enumerate(part.items):
                    if type(item) not in _ITEMS:
                        raise ContentError(
                            f"parts[{at}].items[{inner}]: found {item.type}; a tool result holds text, image, json"
                        )
        if self.head is not None and self.role is not Role.ASSISTANT:
            raise ContentError(f"head: found one on a {self.role} message; only an assistant message has a head")

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])

    def to_dict(self) -> dict[str, Any]:
        """The message as a request holds it; `message_from_dict` reads it back, but for the head."""
        if self.role is Role.SYSTEM:
            return {"role": "system", "content": self.text}
        data: dict[str, Any] = {"role": str(self.role), "content": [part_to_dict(part) for part in self.parts]}
        if self.role is Role.ASSISTANT:
            data["id"] = None
        return data


def user_message(prompt: str | Part | RunMessage | tuple[Part, ...] | list[Part]) -> RunMessage:
    """A user message of text, of parts, or as it is."""
    if isinstance(prompt, RunMessage):
        return prompt
    if isinstance(prompt, str):
        return RunMessage(Role.USER, (TextPart(prompt),))
    return RunMessage(Role.USER, tuple(prompt) if isinstance(prompt, tuple | list) else (prompt,))


# -- plain data ---------------------------------------------------------------------------------------------------


def part_to_dict(part: Part) -> dict[str, Any]:
    """The part as plain data tagged by ``type``, without fields that hold their default."""
    data: dict[str, Any] = {"type": part.type}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        if field.name == "items":
            value = [part_to_dict(item) for item in value]
        elif field.name == "source":
            value = source_to_dict(value)
        elif field.name == "annotations":
            value = list(value)
        data[field.name] = value
    return data


def part_from_dict(data: Any, place: str = "part", *, inside: bool = False) -> Part:
    """Read a part.

    Args:
        inside: whether it stands in a tool's result.

    Raises:
        ContentError: it is none; the sentence names the place.
    """
    if type(data) is not dict:
        raise ContentError(f"{place}: found {type(data).__name__}; a part is a mapping")
    kind = _KINDS.get(data.get("type", ""))
    if kind is None:
        raise ContentError(f"{place}.type: found {data.get('type')!r}; accepted is one of {', '.join(_KINDS)}")
    if inside and kind not in _ITEMS:
        raise ContentError(f"{place}: found {kind.type}; a tool result holds text, image, json")
    known = {field.name: field for field in fields(kind)}
    for name in data:
        if name != "type" and name not in known:
            raise ContentError(f"{place}.{name}: a {kind.type} part has no {name}; accepted is {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name not in data:
            if field.default is MISSING:
                raise ContentError(f"{place}: {name} is missing; a {kind.type} part needs it")
            continue
        value = data[name]
        if name == "items":
            value = tuple(part_from_dict(item, f"{place}.items[{at}]", inside=True) for at, item in enumerate(value))
        elif name == "source":
            value = source_from_dict(value, f"{place}.source")
        elif name == "annotations":
            value = tuple(value)
        values[name] = value
    part: Part = kind(**values)
    return part


def message_from_dict(data: dict[str, Any], place: str = "message") -> RunMessage:
    """Read a message.

    Raises:
        ContentError: it is none; the sentence names the place.
    """
    role, content = data.get("role"), data.get("content")
    if role not in ("system", "user", "assistant"):
        raise ContentError(f"{place}.role: found {role!r}; accepted is one of system, user, assistant")
    if role == "system" and isinstance(content, str):
        return RunMessage(Role.SYSTEM, (TextPart(content),))
    if type(content) is not list:
        raise ContentError(f"{place}.content: found {type(content).__name__}; accepted is a list of parts")
    parts = [part_from_dict(part, f"{place}.content[{at}]") for at, part in enumerate(content)]
    try:
        return RunMessage(Role(role), tuple(parts))
    except ContentError as error:
        raise ContentError(f"{place}.{error}") from None
