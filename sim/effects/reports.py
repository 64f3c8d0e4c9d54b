"""What went wrong with an effect, in one form whatever asked and whoever failed.

A failed outcome carries a `Report` as its value; whoever asked decides by its kind, and by whether asking again may
help (run contract, sections 4, 5 and 9.6). Every provider's error reply becomes one through `provider_response`.
Left out: asking again, and what a model is told of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from json import loads
from typing import Any

from bargein.sim.effects.bus import Outcome, Status

__all__ = [
    "BLOCK_REASONS",
    "Report",
    "ReportKind",
    "blocked_prompt",
    "failed",
    "provider_response",
    "report_of",
    "retryable_status",
]

BLOCK_REASONS = ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT")
"""Why a provider may refuse a prompt before any model sees it."""

_RETRYABLE = (408, 425, 429)
"""Besides 500 to 599: a timeout, a request that came too early, too many requests."""


class ReportKind(StrEnum):
    """What sort of failure it is; the set is closed."""

    PROVIDER_RESPONSE = "provider_response"
    """The provider answered with an error."""
    RESPONSE = "response"
    """The provider answered, and there is no answer in it."""
    DENIED = "denied"
    CANCELLED = "cancelled"
    INTERNAL = "internal"
    REQUEST = "request"
    """It could not be asked in this place."""
    BUS_CLOSED = "bus_closed"
    HANDLER_UNAVAILABLE = "handler_unavailable"
    DIVERGENCE = "divergence"
    """A replay was asked for something that was not recorded."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Report:
    """One failure.

    Attributes:
        message: in words; where a model may read it, exactly what it reads.
        http_status: of the provider's reply, where there was one.
        retryable: whether the same request may be sent again.
        code: what a machine reads, where the reply names it.
        refusal: whether the provider refused the prompt itself.
        body: the reply as it came.
    """

    kind: ReportKind
    message: str
    http_status: int | None = None
    retryable: bool = False
    code: str | None = None
    refusal: bool = False
    body: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {name: getattr(self, name) for name in self.__slots__} | {"kind": str(self.kind)}


def retryable_status(status: int | None) -> bool:
    """Whether a reply of this status may come out otherwise when asked again."""
    return status is not None and (status in _RETRYABLE or 500 <= status <= 599)


def provider_response(status: int | None, body: Any, *, code: str | None = None, message: str | None = None) -> Report:
    """The report of a provider's error reply (run contract, section 5).

    Args:
        status: HTTP status; ``None`` where the transport has none.
        body: as it came, text or JSON.
        code: the transport's own, apart from the body; it goes first.
        message: what is said of it; made from status and code unless given.
    """
    found = code if code is not None else _machine_code(body)
    said = message or f"the provider answered {status if status is not None else 'with an error'}" + (
        f" ({found})" if found else ""
    )
    return Report(ReportKind.PROVIDER_RESPONSE, said, status, retryable_status(status), found, False, body)


def blocked_prompt(reason: str) -> Report:
    """The report of a prompt that the provider itself refused, for one of ``BLOCK_REASONS``."""
    return Report(
        ReportKind.PROVIDER_RESPONSE, f"the provider refused the prompt ({reason})", None, False, reason, refusal=True
    )


def failed(kind: ReportKind, message: str) -> Outcome:
    """An outcome that failed in this way."""
    return Outcome(Status.FAILED, Report(kind, message))


def report_of(outcome: Outcome) -> Report:
    """What an outcome that is not OK says went wrong; plain text of a handler counts as its message."""
    value = outcome.value
    if isinstance(value, Report):
        return value
    if outcome.status is Status.CANCELLED:
        return Report(ReportKind.CANCELLED, str(value))
    kind = ReportKind.INTERNAL if outcome.status is Status.CRASHED else ReportKind.OTHER
    return Report(kind, value if isinstance(value, str) else str(value))


def _machine_code(body: Any) -> str | None:
    """The first string among ``error.code``, ``error.status`` and ``error.type`` of the body."""
    if isinstance(body, str | bytes):
        try:
            body = loads(body)
        except ValueError:
            return None
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    return next((error[name] for name in ("code", "status", "type") if isinstance(error.get(name), str)), None)
