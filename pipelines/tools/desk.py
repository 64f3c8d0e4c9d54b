"""What the parts of one session's engine share: the world they run in and all they remember.

The engine makes one; executions, side effects and read-only calls work on it. Nothing in it outlives the session
or is seen by another one. Left out: decisions, which the parts make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.pipelines.settings import EngineConfig
from bargein.pipelines.tools.confirmation import Confirmations
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.mailbox import Mailbox
from bargein.pipelines.tools.orphans import RecentCalls, SideEffectRun
from bargein.pipelines.tools.outcomes import ToolStats
from bargein.pipelines.tools.store import IdempotencyStore
from bargein.pipelines.tools.trace import ToolTrace
from bargein.sim.effects.bus import EffectBus
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.timeline import Timeline

if TYPE_CHECKING:
    from bargein.pipelines.tools.execution import Execution

__all__ = ["Desk"]


class Desk:
    """One session's engine state.

    Attributes:
        closed: the session has ended.
        running: side effects that run, by key, in start order.
        open: responses that are neither delivered nor discarded, by number.
    """

    __slots__ = (
        "bus",
        "clock",
        "closed",
        "config",
        "confirmations",
        "mailbox",
        "open",
        "recent",
        "running",
        "session_id",
        "stats",
        "store",
        "trace",
    )

    def __init__(self, clock: Clock, bus: EffectBus, timeline: Timeline, session_id: str, config: EngineConfig) -> None:
        self.clock = clock
        self.closed = False
        self.bus = bus
        self.session_id = session_id
        self.config = config
        self.trace = ToolTrace(timeline, session_id)
        self.stats = ToolStats()
        max_bytes = max(config.idempotency_max_bytes, config.max_result_bytes)
        self.store = IdempotencyStore(config.idempotency_capacity, max_bytes)
        self.recent = RecentCalls(config.orphan_window_us)
        self.mailbox = Mailbox()
        self.confirmations = Confirmations(clock, timeline, config.confirm_ttl_us)
        self.running: dict[IdempotencyKey, SideEffectRun] = {}
        self.open: dict[int, Execution] = {}

    def adopt(self, config: EngineConfig) -> None:
        """Keep to other bounds from now on."""
        self.config = config
        self.store.capacity = max(config.idempotency_capacity, 1)
        self.store.max_bytes = max(config.idempotency_max_bytes, config.max_result_bytes)
        self.recent.window_us = config.orphan_window_us
        self.confirmations.ttl_us = config.confirm_ttl_us
