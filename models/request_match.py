"""Whether a request is the recorded one, and if not, the first place where it differs.

The player of a cassette asks it for every request. A place is a JSON pointer. Where the recording was redacted, it
fits whatever stands there. Left out: differences that would not matter; the provider was asked exactly this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from json import dumps
from typing import Any

from bargein.models.redaction import REDACTED

__all__ = ["Difference", "first_difference"]

_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two requests part.

    Attributes:
        pointer: JSON pointer of the place (RFC 6901); empty for the whole.
        found, recorded: what stands there, as JSON and shortened, or ``nothing``.
    """

    pointer: str
    found: str
    recorded: str

    def __str__(self) -> str:
        return f"at {self.pointer or 'the whole body'}: found {self.found}, recorded {self.recorded}"


def first_difference(found: Any, recorded: Any, pointer: str = "") -> Difference | None:
    """The first place, in the order of the recording, where ``found`` is not what was recorded.

    Args:
        found, recorded: JSON values; 1, 1.0 and true are three different ones.

    Returns:
        ``None`` where they are equal.
    """
    if recorded == REDACTED:
        return None
    if type(found) is dict and type(recorded) is dict:
        for key in (*recorded, *(key for key in found if key not in recorded)):
            there = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if key not in found or key not in recorded:
                return Difference(there, _shown(found, key), _shown(recorded, key))
            difference = first_difference(found[key], recorded[key], there)
            if difference is not None:
                return difference
        return None
    if type(found) is list and type(recorded) is list:
        for at in range(max(len(found), len(recorded))):
            if at >= min(len(found), len(recorded)):
                return Difference(f"{pointer}/{at}", _shown(found, at), _shown(recorded, at))
            difference = first_difference(found[at], recorded[at], f"{pointer}/{at}")
            if difference is not None:
                return difference
        return None
    if type(found) is type(recorded) and (found == recorded or (type(recorded) is str and _fits(found, recorded))):
        return None
    return Difference(pointer, _short(found), _short(recorded))


def _fits(found: str, recorded: str) -> bool:
    """Whether a redacted text may have been this one."""
    pieces = recorded.split(REDACTED)
    return len(pieces) > 1 and re.fullmatch(".*".join(map(re.escape, pieces)), found, re.DOTALL) is not None


def _shown(holder: Any, key: Any) -> str:
    there = key in holder if type(holder) is dict else key < len(holder)
    return _short(holder[key]) if there else "nothing"


def _short(value: Any) -> str:
    text = dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
