"""Notes: a side effect that is keyed on its call, and a lookup of what a session has noted.

Keyed on the whole idempotency key, a call that is delivered twice gives the same note back (tool contract, "Rust
tools in your own binary"). Notes of all sessions are in one place; each session sees its own. Left out: deleting.
"""

from __future__ import annotations

from typing import Any

from bargein.models.python_tools import ToolCallContext, Tools
from bargein.pipelines.tools.invocation import IdempotencyKey

__all__ = ["Notes"]


class Notes:
    """The notebook, which outlives the sessions that write in it.

    Attributes:
        saved: call to (id, text), in the order in which they were saved. Sessions are told apart by their ids.
    """

    def __init__(self) -> None:
        self.saved: dict[IdempotencyKey, tuple[str, str]] = {}

    def tools(self) -> Tools:
        """``save_note`` and ``get_notes``, over this notebook."""
        tools = Tools()
        tools.side_effect(self.save_note)
        tools.read_only(self.get_notes)
        return tools

    def save_note(self, text: str, *, ctx: ToolCallContext) -> dict[str, Any]:
        """Saves a note of this call."""
        note, _ = self.saved.setdefault(ctx.key, (f"N-{len(self.saved) + 1}", text))
        return {"note": note}

    def get_notes(self, *, ctx: ToolCallContext) -> dict[str, Any]:
        """Reads the notes of this call."""
        return {
            "notes": [
                {"note": note, "text": text} for key, (note, text) in self.saved.items() if key.session == ctx.session
            ]
        }
