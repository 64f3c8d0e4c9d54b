"""Side effects: whether one runs, and where its result goes.

The engine hands every admitted side-effect call here. A call with a known key, a regenerated or repeated call and a
gated call are answered from what is remembered; any other runs to its own end whoever leaves, and its result reaches
the model exactly once (tool contract, items 5, 6 and 8, "Side effects", "Regeneration", "Confirmation gate"). Left
out: the records themselves (``store``, ``orphans``, ``mailbox``, ``confirmation``).

Ties: a result lands before an interruption or a timeout on the same instant and is the slot's answer; ordered the
other way by a tie seed it becomes the note.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.messages import system
from bargein.pipelines.asked import Asked
from bargein.pipelines.tools.bounded import NotJson
from bargein.pipelines.tools.invocation import IdempotencyKey, ToolCallContext, ToolInvocation
from bargein.pipelines.tools.mailbox import Note
from bargein.pipelines.tools.orphans import SideEffectRun, call_digest
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.results import Answer, ErrorKind, confirmation_required, error, result_text
from bargein.pipelines.tools.store import KeyState
from bargein.pipelines.wordings import (
    ALREADY_DONE,
    ALREADY_REPORTED,
    CONFIRM_PENDING_TOOL,
    IN_FLIGHT_DUPLICATE,
    INTERRUPTED_RUNNING,
    LATE_NOTE,
    ORPHAN_IN_FLIGHT,
    OUTCOME_UNKNOWN,
    STORE_FULL,
    TIMED_OUT_RUNNING,
)
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Order
from bargein.sim.kernel.durations import format_us

if TYPE_CHECKING:
    from bargein.pipelines.tools.desk import Desk
    from bargein.pipelines.tools.execution import Execution, Slot
    from bargein.pipelines.tools.planning import Refusal
    from bargein.pipelines.tools.registry import RegisteredTool

__all__ = ["SideEffects"]


class SideEffects:
    """Runs the side effects of one session."""

    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # -- whether a call runs ------------------------------------------------------------------------------

    def admit(self, slot: Slot, token: CancelToken) -> None:
        """Answer the call from what is remembered, or run it.

        The first rule that fits decides: the same key, an orphan of another response, a repeat in the turn, room in
        the store.
        """
        tool, call, execution = slot.tool, slot.call, slot.execution
        key = IdempotencyKey(self._desk.session_id, execution.epoch, call.id)
        refusal = self._known_key(key, slot)
        if refusal is not None:
            slot.settle(*refusal)
        elif call.name == CONFIRM_PENDING_TOOL:
            self._confirm(slot, key, token)
        elif tool.spec.confirm:
            self._desk.confirmations.request(call.id, tool, slot.arguments, execution.epoch)
            slot.settle(ToolOutcome.CONFIRMATION_REQUIRED, confirmation_required(call.name, call.id))
        else:
            digest = call_digest(call.name, slot.arguments)
            refusal = self._orphaned(slot, digest) or self._repeated(slot, digest) or self._no_room(slot, key)
            if refusal is not None:
                slot.settle(*refusal)
            else:
                self._start(slot, tool, slot.arguments, key, digest, token)

    def _known_key(self, key: IdempotencyKey, slot: Slot) -> Refusal | None:
        entry = self._desk.store.get(key)
        if entry is None:
            return None
        name = slot.call.name
        if entry.state is KeyState.IN_FLIGHT or entry.response == slot.execution.response:
            return ToolOutcome.DUPLICATE, error(ErrorKind.DUPLICATE_CALL, name, IN_FLIGHT_DUPLICATE)
        if entry.answer is None:
            return ToolOutcome.LOST, error(ErrorKind.UNKNOWN_OUTCOME, name, OUTCOME_UNKNOWN)
        self._desk.stats.side_effect_replays += 1
        return ToolOutcome.RECORDED, entry.answer

    def _orphaned(self, slot: Slot, digest: bytes) -> Refusal | None:
        """The answer from an orphan's record.

        A result is replayed to one call at a time: a second identical call, while the first one's execution is open,
        is told that it was reported, so that the result is in the context once.
        """
        desk, execution, name = self._desk, slot.execution, slot.call.name
        run = desk.recent.orphan(digest, execution.response, desk.clock.now)
        if run is None:
            return None
        if run.outcome is None:
            desk.stats.orphan_in_flight += 1
            return ToolOutcome.ORPHAN_IN_FLIGHT, error(ErrorKind.DUPLICATE_CALL, name, ORPHAN_IN_FLIGHT)
        if run.reported or run.claimed_by is not None:
            desk.stats.orphan_reported += 1
            return ToolOutcome.ORPHAN_REPORTED, error(ErrorKind.ALREADY_REPORTED, name, ALREADY_REPORTED)
        run.claimed_by = execution
        execution.claims.append(run)
        assert run.answer is not None
        if run.outcome is ToolOutcome.LOST:
            desk.stats.orphan_lost += 1
            return ToolOutcome.ORPHAN_LOST, error(ErrorKind.UNKNOWN_OUTCOME, name, OUTCOME_UNKNOWN)
        desk.stats.orphan_replays += 1
        return ToolOutcome.ORPHAN_REPLAYED, run.answer

    def consume(self, run: SideEffectRun, execution: Execution) -> None:
        """The replay of an orphan reached the context: it is the run's result, read in that response's turn."""
        run.claimed_by = None
        run.orphaned_at_us = None
        run.epoch = execution.epoch
        run.response = execution.response
        if run.note is not None:
            self._desk.mailbox.withdraw(run.note)

    def _repeated(self, slot: Slot, digest: bytes) -> Refusal | None:
        execution = slot.execution
        if slot.tool.spec.repeatable:
            return None
        if self._desk.recent.in_doubt(digest, execution.epoch, execution.response):
            return ToolOutcome.LOST, error(ErrorKind.UNKNOWN_OUTCOME, slot.call.name, OUTCOME_UNKNOWN)
        if self._desk.recent.repeated(digest, execution.epoch, execution.response) is None:
            return None
        self._desk.stats.side_effect_repeats += 1
        return ToolOutcome.REPEAT_REFUSED, error(ErrorKind.ALREADY_DONE, slot.call.name, ALREADY_DONE)

    def _no_room(self, slot: Slot, key: IdempotencyKey) -> Refusal | None:
        if self._desk.store.admit(key, slot.execution.response):
            return None
        return ToolOutcome.STORE_FULL, error(ErrorKind.STORE_FULL, slot.call.name, STORE_FULL)

    def _confirm(self, slot: Slot, key: IdempotencyKey, token: CancelToken) -> None:
        """Run the gated call that is confirmed, under the key of the confirming call."""
        confirmations, epoch = self._desk.confirmations, slot.execution.epoch
        found = confirmations.find(slot.arguments["call_id"], epoch)
        denial = None if isinstance(found, tuple) else slot.denial(found.tool.spec.name)
        if denial is not None:
            slot.settle(ToolOutcome.DENIED, Answer(denial))  # the request stays: another turn may confirm it
            return
        refusal = found if isinstance(found, tuple) else self._no_room(slot, key)
        if refusal is not None:
            slot.settle(*refusal)
            return
        assert not isinstance(found, tuple)
        confirmations.take(found, slot.call.id, epoch)
        self._start(slot, found.tool, found.arguments, key, b"", token, found.call_id)

    # -- running ------------------------------------------------------------------------------------------

    def _start(
        self,
        slot: Slot,
        tool: RegisteredTool,
        arguments: dict[str, Any],
        key: IdempotencyKey,
        digest: bytes,
        token: CancelToken,
        request: str | None = None,
    ) -> None:
        desk = self._desk
        slot.start(desk.clock.now, tool.spec)
        run = slot.run = SideEffectRun(slot, tool, key, digest, desk.clock.now)
        context = ToolCallContext(key.session, key.epoch, key.call_id, token, key, desk.clock)
        invocation = ToolInvocation(key.call_id, tool.spec.name, arguments, context)
        run.effect = self._ask(run, invocation, slot.execution.parent, request)
        if desk.closed:  # the session ended while the handler was still being asked
            self.stop(run, Cause.HANG_UP)

    def _ask(self, run: SideEffectRun, invocation: ToolInvocation, parent: int | None, request: str | None) -> Asked:
        """Have the body of the call asked for."""
        self._begin(run, request)
        return self._desk.bus.dispatch(
            EffectKind.TOOL_CALL,
            run.tool.handler_key,
            invocation,
            scope=f"t{run.key.epoch}",
            on_landed=partial(self._landed, run),
            on_item=partial(self._progress, run),
            parent=parent,
        )

    def _begin(self, run: SideEffectRun, request: str | None) -> None:
        """The body goes on the bus next, and from now on the run is remembered.

        Args:
            request: id of the gated call that it was confirmed for, if it was.
        """
        desk, key, name = self._desk, run.key, run.tool.spec.name
        if run.digest:
            desk.recent.remember(run)
        desk.running[key] = run
        desk.trace.started(key.epoch, key.call_id, name, True, len(desk.bus.log))
        desk.trace.runs(key.epoch, name, key, request)
        self._arm(run)

    def _arm(self, run: SideEffectRun) -> None:
        """From now on the slot waits as long as its tool may take."""
        timeout_us = run.tool.spec.timeout_us
        ended = self._timed_out if self._backstop_us(run) > timeout_us else self._backstop
        run.timer = self._desk.clock.call_in(timeout_us, Order.TIMER, ended, run)

    def is_suspended(self, slot: Slot) -> bool:
        """Whether the call waits for an approval; where there are no layers, none does."""
        return False

    def _backstop_us(self, run: SideEffectRun) -> int:
        """How long a body may run at most."""
        return max(self._desk.config.max_side_effect_runtime_us, run.tool.spec.timeout_us)

    def _backstop(self, run: SideEffectRun) -> None:
        self.stop(run, Cause.DEADLINE)

    def stop(self, run: SideEffectRun, cause: Cause) -> None:
        """End the body from outside, which only the backstop and the end of the session do; it is lost."""
        if run.effect is not None:
            run.effect.cancel(cause)

    def _progress(self, run: SideEffectRun, item: Any) -> None:
        if isinstance(item, str):
            self._desk.trace.progress(run.key.epoch, run.call_id, run.tool.spec.name, item)
            if run.slot is not None:
                run.slot.execution.tell_progress(run.tool.spec.name, item)

    # -- when nobody waits any more -----------------------------------------------------------------------

    def _timed_out(self, run: SideEffectRun) -> None:
        slot = self._detach(run)
        detail = TIMED_OUT_RUNNING.format(timeout=format_us(run.tool.spec.timeout_us))
        slot.settle(ToolOutcome.TIMED_OUT_RUNNING, error(ErrorKind.TIMEOUT, run.tool.spec.name, detail))

    def interrupt(self, run: SideEffectRun) -> None:
        """Answer the slot at once; the body runs on."""
        slot = self._detach(run)
        self._desk.stats.side_effect_interrupted += 1
        answer = error(ErrorKind.INTERRUPTED, run.tool.spec.name, INTERRUPTED_RUNNING)
        slot.settle(ToolOutcome.INTERRUPTED_RUNNING, answer)

    def abandon(self, run: SideEffectRun) -> None:
        """The slot will never reach the context: what lies in it, or is still to come, becomes a note."""
        self._detach(run)
        if run.outcome is not None:
            self._report_late(run)

    def _detach(self, run: SideEffectRun) -> Slot:
        """From now on the run is an orphan; while it runs, only the backstop watches it."""
        slot = run.slot
        assert slot is not None
        run.slot = None
        run.orphaned_at_us = self._desk.clock.now
        if run.outcome is None:
            assert run.timer is not None
            run.timer.cancel()
            at_us = run.started_at_us + self._backstop_us(run)
            run.timer = self._desk.clock.call_at(at_us, Order.TIMER, self._backstop, run)
        return slot

    def _report_late(self, run: SideEffectRun) -> None:
        desk, name, epoch = self._desk, run.tool.spec.name, run.key.epoch
        assert run.outcome is not None
        assert run.answer is not None
        desk.trace.late_result(epoch, run.call_id, name, run.outcome)
        desk.stats.side_effect_late_results += 1
        text = LATE_NOTE.format(tool=name, call=run.call_id, content=run.answer.content)
        note = Note(run, system(text, tells=run.call_id))
        if desk.mailbox.put(note):
            run.note = note
        else:
            desk.trace.note_dropped(epoch, run.call_id, name)

    # -- the end of a body --------------------------------------------------------------------------------

    def _landed(self, run: SideEffectRun, effect: Asked) -> None:
        """It has come to its end, whoever waits."""
        desk, name, epoch = self._desk, run.tool.spec.name, run.key.epoch
        assert run.timer is not None
        assert effect.outcome is not None
        run.timer.cancel()
        del desk.running[run.key]
        if effect.outcome.status is Status.CANCELLED:
            desk.trace.dropped(epoch, run.call_id, name, effect.outcome.value)
        else:
            desk.trace.finished(epoch, run.call_id, name, effect.outcome.status)
        run.in_doubt = effect.outcome.status is Status.LOST
        self._settle(run, effect.outcome)

    def _settle(self, run: SideEffectRun, ended: Outcome) -> None:
        """Record what the run came to, then answer its slot, or report it late."""
        desk = self._desk
        outcome, answer = run.outcome, run.answer = self._judge(run.tool.spec.name, ended)
        if outcome is ToolOutcome.LOST:
            desk.store.lose(run.key)
        else:
            desk.store.record(run.key, answer)
        if run.slot is not None:
            run.slot.settle(outcome, answer)
        else:
            self._report_late(run)

    def _judge(self, name: str, ended: Outcome) -> Refusal:
        """What the call came to. A crash, or a stop from outside, leaves open what the effect did."""
        if ended.status is Status.FAILED:
            return ToolOutcome.FAILED, error(ErrorKind.TOOL_FAILED, name, str(ended.value))
        if ended.status is Status.LOST:  # the tool's side says so itself, which the model reads as a failure
            return ToolOutcome.LOST, error(ErrorKind.TOOL_FAILED, name, str(ended.value))
        if ended.status is Status.OK:
            try:
                text, whole = result_text(ended.value, self._desk.config.max_result_bytes)
            except NotJson:
                pass
            else:
                return (ToolOutcome.OK if whole else ToolOutcome.OK_TRUNCATED), Answer(text)
        return ToolOutcome.LOST, error(ErrorKind.UNKNOWN_OUTCOME, name, OUTCOME_UNKNOWN)
