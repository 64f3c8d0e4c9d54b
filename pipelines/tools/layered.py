"""Calls that go to their bodies through layers: denied, patched, judged, or kept waiting for an approval.

The engine uses these two in place of `SideEffects` and `ReadOnlyCalls` where a session has layers (run contract,
sections 8.1 and 9.6). What they add are the calls whose body was not asked for: the tool contract speaks of a call
*that has not started*, and such a call stays one for as long as it waits.

- *Denied*: the reason answers it, and nothing is remembered of it: no key, no orphan, no success. A call that was
  confirmed uses its request up all the same: one "yes" is good for one call.
- *Interrupted while it waits*: it is withdrawn, does not run, and the model reads so (item 8: a call that has not
  started "does not run, for both kinds"). A side effect runs on after an interruption because nobody could say what
  it has done already; this one has done nothing, and an approval that came later would act for a dead turn.
- *Not approved within its tool's time limit*, which counts from the call: withdrawn likewise, with a timeout that
  says that it did not run. A slot never waits past that limit ("Timeouts"); a late note is for what was done, and
  this was not.
- *The end of the call, and an execution that is discarded*: withdrawn. It is no orphan, for there is no result that
  could miss its slot, and an identical call may be made again, which asks the layers again.
- The *backstop* bounds a body and counts from its start. It never meets a waiting call, whose limit ends before it.
- A body that *has* ended while a layer is over its verdict has run: an interruption or a timeout makes it an orphan,
  and the verdict becomes the late note. The backstop and the end of the call leave it lost. Where the verdict is a
  denial the effect took place all the same, so an identical call in that turn is a repeat.

Ties: an approval comes in the order of whoever gives it; by a delivery it goes before an interruption and a timeout
on the same instant. Left out: what layers decide (``sim.effects.decisions``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from bargein.pipelines.asked import Asked
from bargein.pipelines.tools.invocation import ToolInvocation
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.read_only import ReadOnlyCalls
from bargein.pipelines.tools.results import Answer, ErrorKind, error
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.wordings import NOT_STARTED, TIMED_OUT_NOT_STARTED
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.effects.decisions import Ask, Layer
from bargein.sim.effects.dispatches import Dispatch
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.durations import format_us

if TYPE_CHECKING:
    from bargein.pipelines.tools.desk import Desk
    from bargein.pipelines.tools.execution import Slot
    from bargein.pipelines.tools.orphans import SideEffectRun
    from bargein.pipelines.tools.planning import Refusal
    from bargein.sim.effects.layers import LayeredBus

__all__ = ["CallWitness", "LayeredReadOnlyCalls", "LayeredSideEffects"]


class CallWitness:
    """Has the timeline told how far one call has come (``dispatches.Witness``).

    Args:
        wait: called when it begins to wait for an approval.
        begin: called when its body is asked for.
        end: called with how its body ended.
    """

    __slots__ = ("_begin", "_end", "_told", "_trace", "_wait")

    def __init__(
        self,
        desk: Desk,
        told: tuple[int, str, str],
        *,
        wait: Callable[[], object],
        begin: Callable[[], object],
        end: Callable[[Outcome], object] = lambda _: None,
    ) -> None:
        self._trace = desk.trace
        self._told = told
        self._wait = wait
        self._begin = begin
        self._end = end

    def suspended(self, layer: Layer) -> None:
        self._trace.suspended(*self._told, layer.name)
        self._wait()

    def served(self, ask: Ask) -> None:
        if type(ask.payload) is not ToolInvocation:
            raise TypeError(
                f"a layer around {ask.key} asks for a {type(ask.payload).__name__}; accepted is the call that was "
                "asked for with other arguments, as by dataclasses.replace(ask.payload, arguments=...)"
            )
        self._begin()

    def answered(self, outcome: Outcome) -> None:
        self._end(outcome)
        if outcome.status is Status.CANCELLED:
            self._trace.dropped(*self._told, outcome.value)
        else:
            self._trace.finished(*self._told, outcome.status)

    def withheld(self, layer: Layer) -> None:
        self._trace.withheld(*self._told, layer.name)

    def withdrawn(self, cause: Cause) -> None:
        self._trace.withdrawn(*self._told, cause)


class LayeredReadOnlyCalls(ReadOnlyCalls):
    """Runs the read-only calls of a session with layers."""

    __slots__ = ("_layered",)

    def __init__(self, desk: Desk, layered: LayeredBus) -> None:
        super().__init__(desk)
        self._layered = layered

    def _ask(self, slot: Slot, invocation: ToolInvocation) -> Asked:
        told = (slot.execution.epoch, slot.call.id, slot.call.name)
        arm, begin = partial(self._arm, slot), partial(self._begin, slot)
        return self._layered.dispatch(
            EffectKind.TOOL_CALL,
            slot.tool.handler_key,
            invocation,
            scope=f"t{slot.execution.epoch}",
            on_landed=partial(self._landed, slot),
            on_item=partial(self._progress, slot),
            parent=slot.execution.parent,
            witness=CallWitness(self._desk, told, wait=arm, begin=begin),
        )

    def _arm(self, slot: Slot) -> None:
        if slot.timer is None:
            super()._arm(slot)

    def is_suspended(self, slot: Slot) -> bool:
        """Whether the call waits for an approval."""
        return slot.run is None and slot.waiting and not (slot.effect is None or cast(Dispatch, slot.effect).served)

    def interrupt(self, slot: Slot, cause: Cause) -> None:
        """As for any read-only call, and one that waits is answered that it never started."""
        if not self.is_suspended(slot):
            super().interrupt(slot, cause)
            return
        self._drop(slot, cause)
        self._desk.stats.not_started_cancelled += 1
        slot.settle_unstarted(ToolOutcome.NOT_STARTED, error(ErrorKind.INTERRUPTED, slot.call.name, NOT_STARTED))

    def _timed_out(self, slot: Slot) -> None:
        if not self.is_suspended(slot):
            super()._timed_out(slot)
            return
        self._drop(slot, Cause.DEADLINE)
        slot.settle_unstarted(ToolOutcome.TIMED_OUT, _not_approved(slot.call.name, slot.tool.spec.timeout_us))

    def _drop(self, slot: Slot, cause: Cause) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
        if slot.effect is not None:  # the witness says whether a body was stopped, or none had begun
            slot.effect.detach()
            slot.effect.cancel(cause)

    def _landed(self, slot: Slot, effect: Asked) -> None:
        if slot.answer is not None:
            return
        assert effect.outcome is not None
        if slot.timer is not None:
            slot.timer.cancel()
        slot.settle(*self._judge(slot.call.name, effect.outcome))

    def _judge(self, name: str, ended: Outcome) -> Refusal:
        return _denied(ended) or super()._judge(name, _in_words(ended))


class LayeredSideEffects(SideEffects):
    """Runs the side effects of a session with layers.

    Invariant: a run whose body was asked for is among ``Desk.running`` until its result is told; no other ever is.
    """

    __slots__ = ("_layered",)

    def __init__(self, desk: Desk, layered: LayeredBus) -> None:
        super().__init__(desk)
        self._layered = layered

    # -- whether its body was asked for -------------------------------------------------------------------

    def _ask(self, run: SideEffectRun, invocation: ToolInvocation, parent: int | None, request: str | None) -> Asked:
        told = (run.key.epoch, run.call_id, run.tool.spec.name)
        arm, begin, end = partial(self._arm, run), partial(self._begin, run, request), partial(self._end, run)
        return self._layered.dispatch(
            EffectKind.TOOL_CALL,
            run.tool.handler_key,
            invocation,
            scope=f"t{run.key.epoch}",
            on_landed=partial(self._landed, run),
            on_item=partial(self._progress, run),
            parent=parent,
            witness=CallWitness(self._desk, told, wait=arm, begin=begin, end=end),
        )

    def _begin(self, run: SideEffectRun, request: str | None) -> None:
        run.started_at_us = self._desk.clock.now
        super()._begin(run, request)

    def _arm(self, run: SideEffectRun) -> None:
        if run.timer is None:
            super()._arm(run)

    def _has_begun(self, run: SideEffectRun) -> bool:
        return self._desk.running.get(run.key) is run

    def is_suspended(self, slot: Slot) -> bool:
        """Whether the call waits for an approval."""
        return slot.waiting and slot.run is not None and not self._has_begun(slot.run)

    # -- when nobody waits any more -----------------------------------------------------------------------

    def _backstop(self, run: SideEffectRun) -> None:
        """Its tool may take as long as any body; one that began late has some of that left."""
        late = self._desk.clock.now < run.started_at_us + self._backstop_us(run)
        if self._has_begun(run) and not late:
            super()._backstop(run)
        else:
            self._timed_out(run)

    def _timed_out(self, run: SideEffectRun) -> None:
        if self._has_begun(run):
            super()._timed_out(run)
            return
        slot, spec = self._withdraw(run, Cause.DEADLINE), run.tool.spec
        slot.settle_unstarted(ToolOutcome.TIMED_OUT, _not_approved(spec.name, spec.timeout_us))

    def interrupt(self, run: SideEffectRun) -> None:
        """As for any side effect, but one that waits is withdrawn and answered that it never started."""
        if self._has_begun(run):
            super().interrupt(run)
            return
        assert run.slot is not None
        slot = self._withdraw(run, run.slot.execution.interrupted or Cause.HANG_UP)
        self._desk.stats.not_started_cancelled += 1
        slot.settle_unstarted(ToolOutcome.NOT_STARTED, error(ErrorKind.INTERRUPTED, run.tool.spec.name, NOT_STARTED))

    def abandon(self, run: SideEffectRun) -> None:
        """As for any side effect, but one that waits is withdrawn; nobody reads an answer to it."""
        if self._has_begun(run) or run.outcome is not None:
            super().abandon(run)
        else:
            self._withdraw(run, Cause.DISCARDED)

    def _withdraw(self, run: SideEffectRun, cause: Cause) -> Slot:
        slot = self._forget(run)
        if run.effect is not None:
            run.effect.detach()
            run.effect.cancel(cause)
        return slot

    def _forget(self, run: SideEffectRun) -> Slot:
        """It never ran, and nothing of it is kept but its answer."""
        slot = run.slot
        assert slot is not None
        run.slot = slot.run = None
        if run.timer is not None:
            run.timer.cancel()
        self._desk.store.forget(run.key)
        return slot

    # -- the end of a body, and of a call that had none ---------------------------------------------------

    def _end(self, run: SideEffectRun, ended: Outcome) -> None:
        """The body's own end; what it leaves in doubt no verdict settles."""
        run.in_doubt = ended.status is Status.LOST

    def _landed(self, run: SideEffectRun, effect: Asked) -> None:
        assert effect.outcome is not None
        if self._has_begun(run):
            assert run.timer is not None
            run.timer.cancel()
            del self._desk.running[run.key]
            self._settle(run, effect.outcome)
        else:
            self._forget(run).settle(*self._judge(run.tool.spec.name, effect.outcome))

    def _judge(self, name: str, ended: Outcome) -> Refusal:
        return _denied(ended) or super()._judge(name, _in_words(ended))


def _denied(ended: Outcome) -> Refusal | None:
    """The answer to a call that a layer has denied: the reason, word for word."""
    report = ended.value
    if ended.status is Status.FAILED and type(report) is Report and report.kind is ReportKind.DENIED:
        return ToolOutcome.DENIED, Answer(report.message)
    return None


def _not_approved(name: str, timeout_us: int) -> Answer:
    return error(ErrorKind.TIMEOUT, name, TIMED_OUT_NOT_STARTED.format(timeout=format_us(timeout_us)))


def _in_words(ended: Outcome) -> Outcome:
    """How it ended, with the words of a report in its place."""
    return replace(ended, value=ended.value.message) if type(ended.value) is Report else ended
