"""The values of a run as plain data, and back: a closed set of classes, field by field, checked against their hints.

A saved run is full of small values: parts, requests, settings, outcomes. Each is written as a mapping with its class's
name under ``$`` and its fields; a field that holds its default is left out. Reading looks names up in the set that
stands here and constructs nothing else, so a document cannot have anything imported or run (run contract, section 13).
Left out: the runs, rounds and effects themselves, which refer to each other (``saved_graph``).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from enum import Enum
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from bargein.pipelines.agent import (
    answers,
    asked,
    deltas,
    edits,
    endings,
    links,
    media_sources,
    memory,
    parts,
    retrieval,
    run_settings,
    run_state,
)
from bargein.pipelines.agent.fold import Completion, CompletionRequest
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.documents import MAX_DEPTH
from bargein.sim.effects.kinds import EffectKind
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause

__all__ = ["ValueFault", "count", "hints_of", "plain", "plain_fields", "read", "read_fields", "shaped"]

_TAG = "$"
_BYTES, _MAPPING = "bytes", "mapping"
"""Names under the tag that are no class: bytes, and a mapping that has the tag for a key of its own."""
_ROOM = MAX_DEPTH - 4
"""How deep a value may be nested: what is around it in a document takes the rest."""


class ValueFault(ValueError):
    """Data that stands for no value: one sentence with the place, what was found and what is accepted."""


_VALUES: tuple[type[Any], ...] = (
    *(parts.TextPart, parts.ImagePart, parts.AudioPart, parts.VideoPart, parts.DocumentPart, parts.CallPart),
    *(parts.ReasoningPart, parts.OpaquePart, parts.JsonPart, parts.ResultPart, parts.AssistantHead, parts.RunMessage),
    *(media_sources.Url, media_sources.FileId, media_sources.Literal, media_sources.Unknown),
    *(media_sources.Raw, media_sources.Base64, media_sources.Stored),
    *(answers.Answer, answers.ToolRequest, answers.ToolReply, answers.PartDone, answers.CallDone, answers.StreamError),
    *(deltas.TextDelta, deltas.CallDelta, deltas.ResponseData, deltas.StreamEnd),
    *(edits.RequestPatch, endings.Settled, endings.Failed, links.Remembers, links.Retrieves),
    *(memory.Load, memory.Append, memory.Clear, retrieval.Retrieve, asked.Texts, asked.Embed, asked.Rerank),
    *(Completion, CompletionRequest, ResultLimit),
    *(run_settings.OutputSpec, run_settings.OutputToolConfig, run_settings.Backoff, run_settings.InvalidCalls),
    *(run_settings.ToolAccess, run_settings.Document, run_settings.Grant, run_settings.ModelDescriptor),
    *(run_settings.Settings, run_state.AccessSnapshot, run_state.Memory, run_state.Resolution, run_state.Retry),
    *(Outcome, Report),
)
_ENUMS: tuple[type[Enum], ...] = (
    *(Role, ResultStatus, Status, ReportKind, Cause, EffectKind, links.What, endings.Failure),
    *(run_settings.OutputMode, run_settings.Unhandled, run_state.Phase, run_state.Purpose, run_state.ResolutionKind),
)
_CLASSES: Mapping[str, type[Any]] = {each.__name__: each for each in _VALUES}
_CHOICES: Mapping[str, type[Enum]] = {each.__name__: each for each in _ENUMS} | {"MemoryPhase": memory.Phase}
_CHOICE_NAMES = {each: name for name, each in _CHOICES.items()}


# -- writing --------------------------------------------------------------------------------------------------


def plain(value: Any, place: str, room: int = _ROOM) -> Any:
    """A value as plain data.

    Args:
        room: how deep it may be nested; what is deeper could not be read again.

    Raises:
        ValueFault: it is none of the values that can be saved.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float and isfinite(value):
        return value
    if room <= 0:
        raise ValueFault(f"{place}: it is nested too deep; a document holds up to {MAX_DEPTH} levels")
    if kind is bytes:
        return {_TAG: _BYTES, "base64": b64encode(value).decode("ascii")}
    if kind in _CHOICE_NAMES:
        return {_TAG: _CHOICE_NAMES[kind], "is": value.value}
    if kind in (list, tuple):
        return [plain(each, f"{place}[{at}]", room - 1) for at, each in enumerate(value)]
    if isinstance(value, Mapping):
        return _plain_mapping(value, place, room)
    if _CLASSES.get(kind.__name__) is not kind:
        raise ValueFault(f"{place}: found {kind.__name__}; accepted are plain data and the values of a run")
    return {_TAG: kind.__name__} | plain_fields(value, [field.name for field in fields(kind)], place, room)


def plain_fields(value: Any, names: Collection[str], place: str, room: int = _ROOM) -> dict[str, Any]:
    """Those fields of a dataclass that stand in ``names`` and do not hold their defaults, as plain data.

    Raises:
        ValueFault: one of them cannot be saved, or holds what its hint does not allow and nobody could read again.
    """
    data: dict[str, Any] = {}
    kind: Any = type(value)
    hints = hints_of(kind)
    for field in fields(value):
        name, held = field.name, getattr(value, field.name)
        if name in names and not _is_default(field, held):
            data[name] = plain(shaped(held, hints[name], f"{place}.{name}"), f"{place}.{name}", room - 1)
    return data


def _plain_mapping(value: Mapping[Any, Any], place: str, room: int) -> dict[str, Any]:
    for key in value:
        if type(key) is not str:
            raise ValueFault(f"{place}: found the key {key!r}; accepted are texts")
    tagged = _TAG in value
    left = room - 3 if tagged else room - 1
    data = {key: plain(each, f"{place}.{key}", left) for key, each in value.items()}
    return {_TAG: _MAPPING, "of": list(map(list, data.items()))} if tagged else data


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        return type(value) is type(field.default) and bool(value == field.default)
    return field.default_factory is not MISSING and not value and type(value) is type(field.default_factory())


# -- reading --------------------------------------------------------------------------------------------------


def read(data: Any, place: str) -> Any:
    """The value that plain data stands for; lists stay lists where no field says otherwise.

    Raises:
        ValueFault: it stands for none.
    """
    if type(data) is list:
        return [read(each, f"{place}[{at}]") for at, each in enumerate(data)]
    if type(data) is not dict:
        return data
    if _TAG not in data:
        return {key: read(each, f"{place}.{key}") for key, each in data.items()}
    name = data[_TAG]
    rest = {key: each for key, each in data.items() if key != _TAG}
    if name == _BYTES:
        return _bytes(rest, place)
    if name == _MAPPING:
        return _mapping(rest, place)
    if type(name) is str and name in _CHOICES:
        return _choice(_CHOICES[name], rest, place)
    if type(name) is not str or name not in _CLASSES:
        raise ValueFault(f"{place}: found {name!r}, which is no value of a run; nothing of that name is known here")
    return _instance(_CLASSES[name], rest, place)


def _bytes(rest: Mapping[str, Any], place: str) -> bytes:
    try:
        if rest.keys() == {"base64"}:
            return b64decode(rest["base64"], validate=True)
    except (TypeError, ValueError):
        pass
    raise ValueFault(f"{place}: these are no bytes; accepted is base64")


def _mapping(rest: Mapping[str, Any], place: str) -> dict[str, Any]:
    pairs = rest.get("of")
    if type(pairs) is not list or any(type(each) is not list or len(each) != 2 for each in pairs):
        raise ValueFault(f"{place}: this is no mapping; accepted are pairs of a key and a value")
    if any(type(key) is not str for key, _ in pairs):
        raise ValueFault(f"{place}: found a key that is no text")
    return {key: read(each, f"{place}.{key}") for key, each in pairs}


def _choice(kind: type[Enum], rest: Mapping[str, Any], place: str) -> Enum:
    try:
        if rest.keys() == {"is"}:
            return kind(rest["is"])
    except ValueError:
        pass
    accepted = ", ".join(str(each.value) for each in kind)
    raise ValueFault(f"{place}: found {rest.get('is')!r}; accepted is one of {accepted}")


def _instance(kind: type[Any], rest: Mapping[str, Any], place: str) -> Any:
    known = [field.name for field in fields(kind)]
    for name in rest:
        if name not in known:
            raise ValueFault(f"{place}.{name}: a {kind.__name__} has no {name}; accepted is {', '.join(known)}")
    values = read_fields(kind, known, rest, place)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise ValueFault(f"{place}: {error}") from error


def read_fields(kind: Any, names: Collection[str], data: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The values of those fields of a dataclass that stand in ``names``; the others keep their defaults.

    Raises:
        ValueFault: one of them is no value of its field, or is missing and has no default.
    """
    hints = hints_of(kind)
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = field.name
        if name not in names:
            continue
        if name in data:
            values[name] = shaped(read(data[name], f"{place}.{name}"), hints[name], f"{place}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueFault(f"{place}: {name} is missing; a {kind.__name__} needs it")
    return values


# -- what a hint accepts --------------------------------------------------------------------------------------


@cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """The hints of a class's fields."""
    return get_type_hints(kind)


def shaped(value: Any, hint: Any, place: str) -> Any:
    """``value`` as ``hint`` wants it: lists become tuples where it says so.

    Raises:
        ValueFault: it does not fit.
    """
    found = _shaped(value, hint)
    if found is _MISFIT:
        raise ValueFault(f"{place}: found {type(value).__name__}; accepted is {_told(hint)}")
    return found


def count(value: Any, place: str) -> int:
    """A whole number from 0.

    Raises:
        ValueFault: it is none.
    """
    number: int = shaped(value, int, place)
    if number < 0:
        raise ValueFault(f"{place}: found {number}; accepted is a whole number from 0")
    return number


_MISFIT: Any = object()


def _shaped(value: Any, hint: Any) -> Any:
    if hint is Any:
        return value
    if hint in (None, NoneType):
        return None if value is None else _MISFIT
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        fitting = (_shaped(value, each) for each in get_args(hint))
        return next((each for each in fitting if each is not _MISFIT), _MISFIT)
    if origin in (list, tuple):
        return _sequence(value, hint, origin)
    if origin is not None and issubclass(origin, Mapping):
        return _shaped_mapping(value, get_args(hint)[1])
    if hint is float:
        return value if type(value) in (int, float) else _MISFIT
    if hint in (bool, int, str, bytes):
        return value if type(value) is hint else _MISFIT
    return value if isinstance(value, hint) else _MISFIT


def _sequence(value: Any, hint: Any, origin: type[Any]) -> Any:
    if type(value) not in (list, tuple):
        return _MISFIT
    inner = get_args(hint)
    many = origin is list or inner[-1] is Ellipsis
    if not many and len(inner) != len(value):
        return _MISFIT
    wanted: Iterable[Any] = [inner[0]] * len(value) if many else inner
    shaped_each = [_shaped(each, one) for each, one in zip(value, wanted, strict=True)]
    return _MISFIT if any(each is _MISFIT for each in shaped_each) else origin(shaped_each)


def _shaped_mapping(value: Any, inner: Any) -> Any:
    if not isinstance(value, Mapping):
        return _MISFIT
    shaped_each = {key: _shaped(each, inner) for key, each in value.items()}
    return _MISFIT if any(each is _MISFIT for each in shaped_each.values()) else shaped_each


def _told(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(dict.fromkeys(_told(each) for each in get_args(hint)))
    if hint in (None, NoneType):
        return "nothing"
    name = str(getattr(get_origin(hint) or hint, "__name__", hint))
    inner = [each for each in get_args(hint) if each is not Ellipsis]
    return f"{name} of {_told(inner[-1])}" if inner else name
