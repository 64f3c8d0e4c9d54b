"""What the engine tells about its calls: timeline records, and lines of the logger ``bargein.tools``.

Every part of the engine reports through one `ToolTrace` a session, so that this file shows all there is to see
(tool contract, item 10 and "Observability"). Arguments appear in none of it. The logger is silent, and costs no
formatting, unless the program that embeds us turns it on. Left out: setting logging up.
"""

from __future__ import annotations

from logging import DEBUG, INFO, getLogger

from bargein.pipelines.tools.bounded import cut
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.results import MAX_DETAIL_BYTES, shown_name
from bargein.sim.effects.bus import Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.timeline import Timeline

__all__ = ["ToolTrace"]

logger = getLogger("bargein.tools")


class ToolTrace:
    """Reports of one session.

    Args:
        timeline: the session's.
        session_id: named in log lines; the timeline is the session's own.
    """

    __slots__ = ("session_id", "timeline")

    def __init__(self, timeline: Timeline, session_id: str) -> None:
        self.timeline = timeline
        self.session_id = session_id

    # -- answers ------------------------------------------------------------------------------------------

    def settled(self, epoch: int, call: str, tool: str, outcome: ToolOutcome, duration_us: int, retries: int) -> None:
        """A call was answered."""
        tool = shown_name(tool)
        self.timeline.add("tool.settled", epoch, call, tool, outcome.value, duration_us, retries)
        if logger.isEnabledFor(DEBUG):
            logger.debug(
                "tool call settled session=%s epoch=%d call=%s tool=%s outcome=%s duration_us=%d retries=%d",
                self.session_id, epoch, call, tool, outcome.value, duration_us, retries,
            )  # fmt: skip

    def held(self, epoch: int, call: str, tool: str) -> None:
        """A speculative side effect waits for its turn to commit."""
        self.timeline.add("tool.held", epoch, call, tool)
        if logger.isEnabledFor(DEBUG):
            logger.debug("tool call held session=%s epoch=%d call=%s tool=%s", self.session_id, epoch, call, tool)

    def late_result(self, epoch: int, call: str, tool: str, outcome: ToolOutcome) -> None:
        """A side effect's result missed its slot and is reported as a note."""
        self.timeline.add("tool.late_result", epoch, call, tool, outcome.value)
        if logger.isEnabledFor(DEBUG):
            logger.debug(
                "late_result session=%s epoch=%d call=%s tool=%s outcome=%s",
                self.session_id, epoch, call, tool, outcome.value,
            )  # fmt: skip

    def note_dropped(self, epoch: int, call: str, tool: str) -> None:
        """The mailbox was full; this note is not reported."""
        self.timeline.add("note.dropped", epoch, call, tool)

    # -- bodies -------------------------------------------------------------------------------------------

    def started(self, epoch: int, call: str, tool: str, side_effect: bool, effect: int) -> None:
        """A body goes on the bus as the effect of this number."""
        self.timeline.add("tool.started", epoch, call, tool, side_effect, effect)

    def runs(self, epoch: int, tool: str, key: IdempotencyKey, request: str | None) -> None:
        """A side effect runs; ``request`` is the id of the gated call it was confirmed for, if it was."""
        if not logger.isEnabledFor(INFO):
            return
        if request is None:
            logger.info("side effect runs tool=%s epoch=%d key=%s", tool, epoch, key.digest())
        else:
            logger.info("side effect runs tool=%s epoch=%d key=%s request=%s", tool, epoch, key.digest(), request)

    def suspended(self, epoch: int, call: str, tool: str, layer: str) -> None:
        """A call waits for the approval that a layer wants; its body has not been asked for."""
        self.timeline.add("tool.suspended", epoch, call, tool, layer)

    def withdrawn(self, epoch: int, call: str, tool: str, cause: Cause) -> None:
        """A call was given up while it waited for an approval; its body never was asked for."""
        self.timeline.add("tool.withdrawn", epoch, call, tool, cause.value)

    def withheld(self, epoch: int, call: str, tool: str, layer: str) -> None:
        """A body has come to its end, and a layer takes its time over the verdict."""
        self.timeline.add("tool.withheld", epoch, call, tool, layer)

    def progress(self, epoch: int, call: str, tool: str, text: str) -> None:
        """A running body says how far it is."""
        self.timeline.add("tool.progress", epoch, call, tool, cut(text, MAX_DETAIL_BYTES))

    def finished(self, epoch: int, call: str, tool: str, status: Status) -> None:
        """A body came to its own end."""
        self.timeline.add("tool.finished", epoch, call, tool, status.value)

    def dropped(self, epoch: int, call: str, tool: str, cause: Cause) -> None:
        """A body was stopped from outside."""
        self.timeline.add("tool.dropped", epoch, call, tool, cause.value)
