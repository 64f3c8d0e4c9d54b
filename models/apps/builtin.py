"""The application tools that a scenario file can ask for by name: ``end_call: {builtin: end_call}``.

A file imports no code, and what it describes must not depend on what was run before it, so every session gets all of
them anew, stores included. The scenario's plan builds one for the declarations. Left out: state that outlives a
session, for which a program brings its own ``Tools``.
"""

from __future__ import annotations

from functools import cache
from typing import Self

from bargein.models.apps.booking import Bookings
from bargein.models.apps.clock import DEFAULT_START, WallClock
from bargein.models.apps.notes import Notes
from bargein.models.apps.telephony import Telephony
from bargein.models.python_tools import SessionControl, Tools
from bargein.pipelines.tools.spec import ToolSpec

__all__ = ["BuiltinTools", "builtin_specs"]


class BuiltinTools(Tools):
    """All of them, for one session.

    Args:
        starts_at: the wall time at which the session begins.
        session: whose they are; without one only the declarations are of use.
    """

    def __init__(self, starts_at: str = DEFAULT_START, session: SessionControl | None = None) -> None:
        super().__init__()
        self._starts_at = starts_at
        self.include(Telephony(session))
        self.include(WallClock(starts_at).tools())
        self.include(Notes().tools())
        self.include(Bookings().tools())

    def for_session(self, session: SessionControl) -> Self:
        """All of them anew."""
        return type(self)(self._starts_at, session)


@cache
def builtin_specs() -> dict[str, ToolSpec]:
    """Their declarations by name."""
    return {spec.name: spec for spec in BuiltinTools().specs}
