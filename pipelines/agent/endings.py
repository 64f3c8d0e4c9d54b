"""How an agent run ends: settled on an output, or failed, once (run contract, section 5).

Left out: what of it goes into the conversation's memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bargein.sim.effects.reports import Report

__all__ = ["Ending", "Failed", "Failure", "RunBusy", "Settled"]


class Failure(StrEnum):
    """Why a run failed; the set is closed."""

    MAX_TURNS = "MaxTurns"
    PROVIDER = "Provider"
    CANCELLED = "Cancelled"
    UNKNOWN_TOOL_CALL = "UnknownToolCall"
    OUTPUT_TOOL_COLLISION = "OutputToolCollision"
    TOOL = "Tool"
    MEMORY = "Memory"
    RETRIEVAL = "Retrieval"
    CONTENT = "Content"
    UNSUPPORTED = "Unsupported"


@dataclass(frozen=True, slots=True)
class Settled:
    """The run has its answer."""

    output: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The run has none.

    Attributes:
        report: what went wrong, where somebody reported it.
        limit: of the turns, where they are spent.
        detail: a name or a sentence, where neither of these says it.
    """

    failure: Failure
    report: Report | None = None
    limit: int | None = None
    detail: str = ""


Ending = Settled | Failed


class RunBusy(StrEnum):
    """Why a run is not taken out."""

    NOT_A_RUN = "NotARun"
    UNSETTLED = "Unsettled"
    IN_FLIGHT = "InFlight"
