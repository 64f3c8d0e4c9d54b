"""Read-only calls: run, wait, drop. Nothing of them is remembered.

The engine starts them, at once even in a speculation; a timeout, an interruption or the departure of whoever waits
drops the body (tool contract, items 7 and 8, "Timeouts"). Left out: side effects, which are never dropped so.

Ties: the result lands before an interruption or a timeout on the same instant, and stands.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bargein.pipelines.asked import Asked
from bargein.pipelines.tools.bounded import NotJson
from bargein.pipelines.tools.desk import Desk
from bargein.pipelines.tools.execution import Slot
from bargein.pipelines.tools.invocation import IdempotencyKey, ToolCallContext, ToolInvocation
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.planning import Refusal
from bargein.pipelines.tools.results import Answer, ErrorKind, error, result_text
from bargein.pipelines.wordings import INTERRUPTED, RESULT_TOO_LARGE, TIMED_OUT, TOOL_PANICKED
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Order
from bargein.sim.kernel.durations import format_us

__all__ = ["ReadOnlyCalls"]


class ReadOnlyCalls:
    """Runs the read-only calls of one session."""

    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def start(self, slot: Slot, token: CancelToken) -> None:
        """Put the call on the bus; its slot is answered by its end, its timeout or an interruption."""
        desk = self._desk
        call, epoch = slot.call, slot.execution.epoch
        slot.start(desk.clock.now)
        key = IdempotencyKey(desk.session_id, epoch, call.id)
        context = ToolCallContext(desk.session_id, epoch, call.id, token, key, desk.clock)
        effect = slot.effect = self._ask(slot, ToolInvocation(call.id, call.name, slot.arguments, context))
        if slot.answer is not None:  # perhaps interrupted while the handler was still being asked
            effect.cancel(token.cause or Cause.HANG_UP)

    def _ask(self, slot: Slot, invocation: ToolInvocation) -> Asked:
        """Have the body of the call asked for."""
        self._begin(slot)
        return self._desk.bus.dispatch(
            EffectKind.TOOL_CALL,
            slot.tool.handler_key,
            invocation,
            scope=f"t{slot.execution.epoch}",
            on_landed=partial(self._landed, slot),
            on_item=partial(self._progress, slot),
            parent=slot.execution.parent,
        )

    def _begin(self, slot: Slot) -> None:
        """The body goes on the bus next: its effect has the number that the log has reached."""
        desk, call = self._desk, slot.call
        desk.trace.started(slot.execution.epoch, call.id, call.name, False, len(desk.bus.log))
        self._arm(slot)

    def _arm(self, slot: Slot) -> None:
        """From now on the slot waits as long as its tool may take."""
        slot.timer = self._desk.clock.call_in(slot.tool.spec.timeout_us, Order.TIMER, self._timed_out, slot)

    def is_suspended(self, slot: Slot) -> bool:
        """Whether the call waits for an approval; where there are no layers, none does."""
        return False

    def interrupt(self, slot: Slot, cause: Cause) -> None:
        """Drop the body and answer that the user interrupted."""
        self._drop(slot, cause)
        self._desk.stats.read_only_cancelled += 1
        slot.settle(ToolOutcome.INTERRUPTED, error(ErrorKind.INTERRUPTED, slot.call.name, INTERRUPTED))

    def abandon(self, slot: Slot) -> None:
        """Drop the body; nobody wants the answer any more."""
        self._drop(slot, Cause.DISCARDED)
        self._desk.stats.read_only_cancelled += 1

    def _timed_out(self, slot: Slot) -> None:
        self._drop(slot, Cause.DEADLINE)
        detail = TIMED_OUT.format(timeout=format_us(slot.tool.spec.timeout_us))
        slot.settle(ToolOutcome.TIMED_OUT, error(ErrorKind.TIMEOUT, slot.call.name, detail))

    def _drop(self, slot: Slot, cause: Cause) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
        if slot.effect is not None:
            slot.effect.detach()
            slot.effect.cancel(cause)
        self._desk.trace.dropped(slot.execution.epoch, slot.call.id, slot.call.name, cause)

    def _progress(self, slot: Slot, item: Any) -> None:
        if slot.answer is None and isinstance(item, str):
            self._desk.trace.progress(slot.execution.epoch, slot.call.id, slot.call.name, item)
            slot.execution.tell_progress(slot.call.name, item)

    def _landed(self, slot: Slot, effect: Asked) -> None:
        if slot.answer is not None:
            return
        assert slot.timer is not None
        assert effect.outcome is not None
        slot.timer.cancel()
        trace, epoch, call = self._desk.trace, slot.execution.epoch, slot.call
        if effect.outcome.status is Status.CANCELLED:
            trace.dropped(epoch, call.id, call.name, effect.outcome.value)
        else:
            trace.finished(epoch, call.id, call.name, effect.outcome.status)
        slot.settle(*self._judge(call.name, effect.outcome))

    def _judge(self, name: str, ended: Outcome) -> Refusal:
        """What the call is answered with, from how its body ended."""
        if ended.status is Status.CANCELLED:
            return ToolOutcome.INTERRUPTED, error(ErrorKind.INTERRUPTED, name, INTERRUPTED)
        if ended.status in (Status.FAILED, Status.LOST):
            return ToolOutcome.FAILED, error(ErrorKind.TOOL_FAILED, name, str(ended.value))
        limit = self._desk.config.max_result_bytes
        try:
            if ended.status is Status.CRASHED:
                raise NotJson
            text, whole = result_text(ended.value, limit)
        except NotJson:
            return ToolOutcome.FAILED, error(ErrorKind.TOOL_FAILED, name, TOOL_PANICKED)
        if whole:
            return ToolOutcome.OK, Answer(text)
        detail = RESULT_TOO_LARGE.format(limit=limit)
        return ToolOutcome.RESULT_TOO_LARGE, error(ErrorKind.RESULT_TOO_LARGE, name, detail)
