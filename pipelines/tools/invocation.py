"""What a tool's handler is given: the call, its arguments, and where it stands in the session.

The payload of every ``tool_call`` effect is a `ToolInvocation`; a handler needs nothing else of the engine (tool
contract, "Tool trait" and item 6). Left out: how a handler answers, which is an outcome on the effect bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from bargein.sim.kernel.cancel import CancelToken
from bargein.sim.kernel.clock import Clock

__all__ = ["IdempotencyKey", "ToolCallContext", "ToolInvocation"]

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_U64 = 0xFFFFFFFFFFFFFFFF


class IdempotencyKey(NamedTuple):
    """What makes a call the same call: the engine never runs one key twice."""

    session: str
    epoch: int
    call_id: str

    def digest(self) -> str:
        """64-bit FNV-1a of the key, as 16 hex digits, for logs and for headers of outside services.

        Hashed are the session (its length first, 8 bytes little-endian, then UTF-8), the epoch (8 bytes
        little-endian) and the call id (like the session). Different keys may share a digest.
        """
        session = self.session.encode("utf-8", "surrogatepass")
        call_id = self.call_id.encode("utf-8", "surrogatepass")
        data = b"".join(
            (_u64(len(session)), session, _u64(self.epoch), _u64(len(call_id)), call_id),
        )
        digest = _FNV_OFFSET
        for byte in data:
            digest = (digest ^ byte) * _FNV_PRIME & _U64
        return f"{digest:016x}"


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """Where a call stands.

    Attributes:
        session, epoch, call_id: who asked; ``call_id`` is ``t<epoch>.<seq>``.
        token: the turn's own cancellation token; a side effect may look at it, nobody forces it to.
        key: the call's idempotency key.
        clock: the session's clock, for tools that read the time.
    """

    session: str
    epoch: int
    call_id: str
    token: CancelToken
    key: IdempotencyKey
    clock: Clock

    @property
    def now_us(self) -> int:
        """The virtual instant, in microseconds since the session began."""
        return self.clock.now


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One call of a tool; its arguments match the tool's schema and are treated as read-only."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    context: ToolCallContext
