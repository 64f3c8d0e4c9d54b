"""What can be asked of the world.

A handler key names one of these families, and a record says which it was. Left out: asking (``bus``).
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EffectKind"]


class EffectKind(StrEnum):
    """What an effect asks for; the set is closed."""

    COMPLETION = "completion"
    TOOL_CALL = "tool_call"
    MEMORY = "memory"
    RETRIEVAL = "retrieval"
    EMBED = "embed"
    RERANK = "rerank"
    CUSTOM = "custom"
