"""Telephony: key tones, one transfer and hanging up, with the state of one call.

They belong to the line that a call is on, so every session gets its own (tool contract, "In the server binary").
``end_call`` does not cut the agent off: the call ends after the last sample of what it has to say, and not at all if
the caller interrupts before. Left out: the far end; a transfer is recorded and the simulated call goes on.
"""

from __future__ import annotations

from typing import Annotated, Any

from bargein.models.python_tools import SessionControl, Steps, ToolCallContext, ToolError, Tools

__all__ = ["TONE_US", "Line", "Telephony"]

TONE_US = 200_000
"""A tone of 100 ms and as much of silence after it, as telephone exchanges ask for at the least."""

Digits = Annotated[str, "The keys to press: 0 to 9, *, # and A to D.", {"pattern": "^[0-9A-D*#]{1,64}$"}]


class Line:
    """The line of one call.

    Attributes:
        tones: every key that was sounded, in order.
        transferred_to: where the call was transferred, or ``None``.

    Invariant: a call is transferred at most once.
    """

    def __init__(self, session: SessionControl | None) -> None:
        self._session = session
        self.tones = ""
        self.transferred_to: str | None = None

    def send_dtmf(self, digits: Digits) -> Steps:
        """Presses keys on the line, for menus that want them."""
        for digit in digits:
            self.tones += digit
            yield TONE_US
        return {"sent": digits}

    def transfer_call(self, to: Annotated[str, "The number or extension."]) -> dict[str, Any]:
        """Transfers the call to somebody else; once in a call."""
        if self.transferred_to is not None:
            raise ToolError(f"this call was transferred to {self.transferred_to} already; it cannot be moved again")
        self.transferred_to = to
        return {"transferred_to": to}

    def end_call(self, *, ctx: ToolCallContext) -> dict[str, Any]:
        """Ends the call once you have finished speaking; say goodbye first."""
        if self._session is None:
            raise RuntimeError("end_call has no session to end; take the tools from Telephony().for_session(session)")
        if not ctx.token.cancelled:  # an interruption has kept the call
            self._session.hang_up_when_silent()
        return {"status": "ending"}


class Telephony(Tools):
    """``send_dtmf``, ``transfer_call`` and ``end_call``, anew for each session; none of them wants a filler.

    Args:
        session: whose line it is; without one only the declarations are of use.
    """

    def __init__(self, session: SessionControl | None = None) -> None:
        super().__init__()
        line = Line(session)
        self.side_effect(repeatable=True, filler_after=None)(line.send_dtmf)
        self.side_effect(filler_after=None)(line.transfer_call)
        self.side_effect(filler_after=None)(line.end_call)

    def for_session(self, session: SessionControl) -> Tools:
        """The tools on a line of the session's own."""
        return Telephony(session)
