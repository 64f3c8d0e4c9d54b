"""What goes over a live connection as plain data: everything that is said on it, and back again what comes down.

``payloads`` asks it. Each thing stands under its own name, such as ``{"audio_delta": {...}}``, with its fields. Audio
is named by who says what, the stretch of it, and the content of the recording: the voices of this package render it
again, to the sample, and another recording in its place is refused. Left out: reading back what went up, which a
session says anew.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from bargein.models.tts import Piece
from bargein.models.voice import VOICES, speak
from bargein.pipelines.agent.live import LiveEvent
from bargein.pipelines.agent.live_line import Connect, Down, Up
from bargein.pipelines.ports import Speech

__all__ = ["connect_to_plain", "live_item_of", "live_to_plain"]

_CONTENT = 16
_TYPES = {str: "a text", int: "a whole number", bool: "true or false", type(None): "null"}


def _name(kind: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


_DOWN: dict[str, type] = {_name(each): each for each in get_args(Down)}
_NAMES: dict[type, str] = {each: _name(each) for each in (*get_args(Up), *get_args(Down))}


def connect_to_plain(connect: Connect) -> dict[str, Any]:
    """What is asked for when a connection is opened."""
    return {"connect": _fields(connect)}


def live_to_plain(item: Any) -> dict[str, Any] | None:
    """What is said on a connection or comes down on it; ``None`` where it is neither.

    Raises:
        TypeError: it holds audio that nobody can render again.
    """
    name = _NAMES.get(type(item))
    return None if name is None else {name: _fields(item)}


def _fields(item: Any) -> dict[str, Any]:
    return {each.name: _plain(getattr(item, each.name)) for each in fields(item)}


def _plain(value: Any) -> Any:
    if type(value) is tuple:
        return [_plain(each) for each in value]
    if type(value) is Piece:
        recording = value.recording
        return {
            "voice": recording.voice,
            "text": recording.text,
            "content": recording.content[:_CONTENT],
            "first": value.first,
            "length": value.length,
            "words": [list(word) for word in value.words],
        }
    if is_dataclass(value):
        return _fields(value)
    if hasattr(value, "pcm"):
        raise TypeError(f"audio of type {type(value).__name__} has no plain form")
    return value


def live_item_of(data: Any) -> LiveEvent | Any | None:
    """What came down, again; ``None`` where the name is no live thing's.

    Raises:
        ValueError: it is none of that name.
    """
    (name,) = data if type(data) is dict and len(data) == 1 else ("",)
    kind = _DOWN.get(name)
    if kind is None:
        return None
    hints, given = _hints(kind), data[name]
    if type(given) is not dict or given.keys() != hints.keys():
        raise ValueError(f"{data!r}: accepted are the fields {', '.join(hints) or 'of nothing'}")
    return kind(**{field: _value(hints[field], given[field], f"{name}.{field}") for field in hints})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, data: Any, place: str) -> Any:
    if hint is Speech:
        return _speech(data)
    if hint == tuple[str, ...]:
        if type(data) is not list or any(type(each) is not str for each in data):
            raise ValueError(f"{place}: found {data!r}; accepted is a list of texts")
        return tuple(data)
    accepted = get_args(hint) or (hint,)
    if type(data) not in accepted:
        raise ValueError(f"{place}: found {data!r}; accepted is {' or '.join(_TYPES[each] for each in accepted)}")
    return data


def _speech(data: Any) -> Piece:
    match data:
        case {"voice": str(voice), "text": str(text), "content": str(content), "words": list(words)}:
            recording = speak(voice, text) if voice in VOICES else None
            if recording is None or recording.content[:_CONTENT] != content:
                raise ValueError(f"nobody says {text!r} in the voice {voice!r} as it was recorded ({content})")
            first, length = data.get("first"), data.get("length")
            if type(first) is int and type(length) is int and 0 <= first <= first + length <= recording.length:
                return Piece(recording, first, first + length, tuple([_word(each) for each in words]))
    raise ValueError(f"{data!r} is no stretch of speech")


def _word(data: Any) -> tuple[str, int]:
    if type(data) is not list or [type(part) for part in data] != [str, int]:
        raise ValueError(f"{data!r} is no word with its end")
    return data[0], data[1]
