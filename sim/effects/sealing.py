"""Documents of one line that carry a check over themselves, so that one that was cut off or edited is noticed.

Checkpoints of sessions, of agent runs and of logs are written and looked at with it. Left out: logs, whose lines each
carry a check of their own (``log``), and what a document says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import content_digest, written

__all__ = ["check_one_line", "fits_seal", "sealed"]


def sealed(data: Mapping[str, Any]) -> bytes:
    """The text of a document, its check last: the same bytes for equal data."""
    text = written(data)
    return text[:-1] + b',"check":"' + content_digest(text).encode() + b'"}\n'


def fits_seal(data: Mapping[str, Any]) -> bool:
    """Whether a document is as it was when it was sealed."""
    rest = {key: value for key, value in data.items() if key != "check"}
    return bool(data.get("check") == content_digest(written(rest)))


def check_one_line(raw: bytes, name: str) -> None:
    """That nothing follows the first line.

    Raises:
        DocumentError: something does.
    """
    rest = raw.partition(b"\n")[2]
    if rest:
        raise DocumentError(f"{name}:2: found {len(rest)} bytes after its end; accepted is one line")
