"""What a tool declares about itself: name, schema, kind, timeout, filler delay and two switches.

Scenario files, agent files and Python callers build a `ToolSpec`; the registry checks and compiles it (tool
contract, item 1 and "Specs"). Left out: the body of the tool, which the world serves behind the effect bus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bargein.sim.kernel.durations import DurationError, as_us

__all__ = ["DEFAULT_FILLER_AFTER_US", "DEFAULT_TIMEOUT_US", "SpecError", "ToolKind", "ToolSpec"]

DEFAULT_TIMEOUT_US = 5_000_000
DEFAULT_FILLER_AFTER_US = 700_000


class SpecError(ValueError):
    """A declaration that cannot be read; the message names the field, what was found and what is accepted."""


class ToolKind(StrEnum):
    """Whether a call changes the world; there is no third kind."""

    READ_ONLY = "read_only"
    """May run speculatively, is dropped by an interruption, may always run again."""
    SIDE_EFFECT = "side_effect"
    """Runs once, to its end, and its result reaches the model exactly once."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of one tool.

    Attributes:
        name: 1 to 64 ASCII letters, digits, ``_`` and ``-``.
        description: what the tool does, for the model.
        parameters: JSON Schema (draft 2020-12) of the arguments; treated as read-only.
        kind: read-only or side effect.
        timeout_us: how long a call's slot waits for the result, in microseconds.
        filler_after_us: the tool's own filler delay; ``None`` switches fillers off for it.
        repeatable: an identical call may run again in a later response of one turn (side effects only).
        confirm: a call waits for the user's confirmation (side effects only).
    """

    name: str
    description: str
    parameters: dict[str, Any]
    kind: ToolKind
    timeout_us: int = DEFAULT_TIMEOUT_US
    filler_after_us: int | None = DEFAULT_FILLER_AFTER_US
    repeatable: bool = False
    confirm: bool = False

    @property
    def side_effect(self) -> bool:
        """Whether a call changes the world."""
        return self.kind is ToolKind.SIDE_EFFECT

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolSpec:
        """Read a declaration as files write it: ``timeout`` and ``filler_after`` are durations.

        A duration is text with a unit or an int of microseconds; ``filler_after: null`` opts out of fillers.

        Raises:
            SpecError: an unknown or missing field, or a value of the wrong sort.
        """
        for field in data:
            if field not in _READERS:
                raise SpecError(f"{field!r} is not a field of a tool; accepted are {', '.join(_READERS)}")
        for field in _REQUIRED:
            if field not in data:
                raise SpecError(f"a tool needs the field {field!r}; given are {', '.join(data) or 'none'}")
        values = {}
        for field, value in data.items():
            attribute, read = _READERS[field]
            values[attribute] = read(field, value)
        return cls(**values)


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{field}: {value!r} is not text")
    return value


def _schema(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(f"{field}: {value!r} is not a JSON Schema object")
    return value


def _kind(field: str, value: object) -> ToolKind:
    for kind in ToolKind:
        if value == kind:
            return kind
    raise SpecError(f"{field}: {value!r} is not a kind of tool; accepted are {' and '.join(ToolKind)}")


def _duration(field: str, value: Any) -> int:
    try:
        return as_us(value)
    except DurationError as error:
        raise SpecError(f"{field}: {error}") from None


def _optional_duration(field: str, value: Any) -> int | None:
    return None if value is None else _duration(field, value)


def _switch(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SpecError(f"{field}: {value!r} is not a switch; accepted are true and false")
    return value


_READERS: dict[str, tuple[str, Any]] = {
    "name": ("name", _text),
    "description": ("description", _text),
    "parameters": ("parameters", _schema),
    "kind": ("kind", _kind),
    "timeout": ("timeout_us", _duration),
    "filler_after": ("filler_after_us", _optional_duration),
    "repeatable": ("repeatable", _switch),
    "confirm": ("confirm", _switch),
}
_REQUIRED = ("name", "description", "parameters", "kind")
