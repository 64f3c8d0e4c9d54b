"""The tool engine: takes the calls of one response, decides which run, and gathers the answers.

The runner calls it once a round; everything happens in callbacks on the clock, so nothing here blocks. Each entry
point takes the same three steps at one instant: plan, admit, run (tool contract, "Rounds"). One engine serves one
session. Left out: reading the context, which it never does, and speaking, which the runner does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.messages import Message, ToolCall
from bargein.pipelines.settings import EngineConfig
from bargein.pipelines.tools.budget import Admission, RetryBudget
from bargein.pipelines.tools.confirmation import Confirmations
from bargein.pipelines.tools.desk import Desk
from bargein.pipelines.tools.execution import Execution, Slot
from bargein.pipelines.tools.layered import LayeredReadOnlyCalls, LayeredSideEffects
from bargein.pipelines.tools.outcomes import ToolOutcome, ToolStats
from bargein.pipelines.tools.planning import Planner, Refusal
from bargein.pipelines.tools.read_only import ReadOnlyCalls
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.tools.results import Answer, ErrorKind, error
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.tools.speculation import Speculation
from bargein.pipelines.tools.store import IdempotencyUsage
from bargein.pipelines.wordings import BUDGET_EXHAUSTED, NOT_STARTED, STALE_TURN, UNKNOWN_TOOL_DETAIL
from bargein.sim.effects.bus import EffectBus
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.timeline import Timeline

__all__ = ["ToolEngine"]

Calls = Sequence[ToolCall | InvalidCall]
_NOTHING_DENIED: Mapping[str, str] = MappingProxyType({})


class ToolEngine:
    """The tools of one session.

    Args:
        clock, bus, timeline: the session's.
        registry: the tools; may be shared by many sessions.
        session_id: part of every idempotency key.
        config: bounds.
        layered: the bus seen through its layers, where there are any.
    """

    def __init__(
        self,
        clock: Clock,
        bus: EffectBus,
        timeline: Timeline,
        registry: ToolRegistry,
        session_id: str,
        config: EngineConfig,
        layered: LayeredBus | None = None,
    ) -> None:
        self.registry = registry
        self._desk = desk = Desk(clock, bus, timeline, session_id, config)
        self._planner = Planner(registry, config.max_argument_bytes)
        self._budget = RetryBudget(config.max_invalid_rounds)
        self._side_effects = SideEffects(desk) if layered is None else LayeredSideEffects(desk, layered)
        self._read_only = ReadOnlyCalls(desk) if layered is None else LayeredReadOnlyCalls(desk, layered)
        self._responses = 0

    # -- rounds -------------------------------------------------------------------------------------------

    def execute(
        self,
        calls: Calls,
        epoch: int,
        token: CancelToken,
        *,
        parent: int | None = None,
        withheld: frozenset[str] = frozenset(),
        denied: Mapping[str, str] = _NOTHING_DENIED,
    ) -> Execution:
        """Carry out a committed response.

        Args:
            calls: as assembled, in issue order; the response's assistant message is in the context already.
            epoch: the turn.
            token: the turn's; it alone interrupts these calls.
            parent: id of the effect on whose behalf they run.
            withheld: tools that were not on offer; calls to them are answered before anything is planned.
            denied: tools whose valid calls are answered with the reason given here instead of being served (run
                contract, section 8.1, a denied outcome); nothing is remembered of them.

        Returns:
            The execution, perhaps complete already. Append it to the context, or discard it.
        """
        execution, ready = self._plan_and_admit(calls, epoch, parent, withheld, denied)
        self._run(execution, ready, token)
        return execution

    def speculate(
        self,
        calls: Calls,
        epoch: int,
        token: CancelToken,
        *,
        parent: int | None = None,
        withheld: frozenset[str] = frozenset(),
        denied: Mapping[str, str] = _NOTHING_DENIED,
    ) -> Speculation:
        """Carry out what may be carried out of a response that is not committed yet; arguments as for `execute`.

        Returns:
            The speculation. Commit it, or discard it.
        """
        execution, ready = self._plan_and_admit(calls, epoch, parent, withheld, denied)
        held = [slot for slot in ready if self._is_held(slot)]
        for slot in held:
            self._desk.trace.held(epoch, slot.call.id, slot.call.name)
        self._start(execution, [slot for slot in ready if not self._is_held(slot)], token)
        return Speculation(execution, held)

    def commit(self, speculation: Speculation, token: CancelToken) -> Execution:
        """Run what a speculation held; it spends no budget.

        Args:
            token: the turn's, from now on.

        Returns:
            The whole response, answers in issue order.

        Raises:
            RuntimeError: the speculation was committed or discarded before.
        """
        execution, held = speculation.take()
        self._admit(execution, held, False)
        self._run(execution, [slot for slot in held if slot.answer is None], token)
        return execution

    # -- the three steps ----------------------------------------------------------------------------------

    def _plan_and_admit(
        self, calls: Calls, epoch: int, parent: int | None, withheld: frozenset[str], denied: Mapping[str, str]
    ) -> tuple[Execution, list[Slot]]:
        """Plan every call, admit the round, answer what does not run; what is left may run."""
        self._responses += 1
        execution = Execution(
            self._desk,
            self._side_effects,
            self._read_only,
            epoch=epoch,
            response=self._responses,
            parent=parent,
            denied=denied,
        )
        ready: list[Slot] = []
        refused: list[tuple[Slot, Refusal]] = []
        for position, call in enumerate(calls):
            if call.name in withheld:
                answer = error(ErrorKind.UNKNOWN_TOOL, call.name, UNKNOWN_TOOL_DETAIL)
                execution.add(call, None).settle(ToolOutcome.UNKNOWN_TOOL, answer)
                continue
            planned = self._planner.plan(position, call)
            if isinstance(planned, tuple):
                refused.append((execution.add(call, None), planned))
            else:
                ready.append(execution.add(call, planned))
        if not self._admit(execution, [slot for slot in execution.slots if slot.answer is None], bool(refused)):
            return execution, []
        for slot, refusal in refused:
            slot.settle(*refusal)
        return execution, ready

    def _admit(self, execution: Execution, slots: list[Slot], malformed: bool) -> bool:
        """Take the round into account; where it may not run, answer ``slots`` so."""
        epoch = execution.epoch
        admission = self._budget.admit(epoch, malformed)
        retries = self._budget.spent(epoch)
        for slot in slots:
            slot.retries = retries
        if admission is Admission.ADMITTED:
            return True
        if admission is Admission.EXHAUSTED:
            execution.budget_exhausted = True
            outcome, kind, detail = ToolOutcome.BUDGET_EXHAUSTED, ErrorKind.BUDGET_EXHAUSTED, BUDGET_EXHAUSTED
        else:
            outcome, kind, detail = ToolOutcome.STALE_TURN, ErrorKind.STALE_TURN, STALE_TURN
        for slot in slots:
            slot.settle(outcome, error(kind, slot.call.name, detail))
        return False

    def _run(self, execution: Execution, ready: list[Slot], token: CancelToken) -> None:
        self._start(execution, ready, token)
        execution.seal()

    def _start(self, execution: Execution, ready: list[Slot], token: CancelToken) -> None:
        execution.watch(token)
        for slot in ready:
            if self._may_not_start(token):
                self._desk.stats.not_started_cancelled += 1
                slot.settle(ToolOutcome.NOT_STARTED, error(ErrorKind.INTERRUPTED, slot.call.name, NOT_STARTED))
            elif (reason := slot.denial(slot.call.name)) is not None:
                slot.settle(ToolOutcome.DENIED, Answer(reason))
            elif slot.tool.spec.side_effect:
                self._side_effects.admit(slot, token)
            else:
                self._read_only.start(slot, token)

    def _is_held(self, slot: Slot) -> bool:
        """Whether a speculation keeps the call until its turn commits."""
        return slot.tool.spec.side_effect

    def _may_not_start(self, token: CancelToken) -> bool:
        return token.cancelled or self._desk.closed

    # -- asked by the session -----------------------------------------------------------------------------

    @property
    def confirmations(self) -> Confirmations:
        """The confirmation gate, to be told of user turns, speech and barge-ins."""
        return self._desk.confirmations

    @property
    def running_calls(self) -> tuple[str, ...]:
        """Ids of the side effects that still run, in start order."""
        return tuple([key.call_id for key in self._desk.running])

    @property
    def suspended_calls(self) -> tuple[tuple[str, str], ...]:
        """Id and tool of each call that waits for a layer's approval, in issue order; its body was not asked for."""
        suspended = (self._side_effects.is_suspended, self._read_only.is_suspended)
        return tuple(
            [
                (slot.call.id, slot.running.name)
                for execution in self._desk.open.values()
                for slot in execution.slots
                if slot.running is not None and any(each(slot) for each in suspended)
            ]
        )

    @property
    def open_responses(self) -> int:
        """Executions and speculations that are neither delivered nor discarded."""
        return len(self._desk.open)

    def invalid_rounds(self, epoch: int) -> int:
        """Malformed rounds of the turn so far; zero for any but the newest turn seen."""
        return self._budget.spent(epoch)

    def idempotency_usage(self) -> IdempotencyUsage:
        """Entries of the store, and bytes of recorded result text."""
        return self._desk.store.usage()

    def take_late_notes(self) -> list[Message]:
        """The waiting notes, which from now on count as told; call it only while no tool call is open."""
        notes = self._desk.mailbox.take()
        for note in notes:
            note.run.reported = True
        return [note.message for note in notes]

    def late_notes_dropped(self) -> int:
        """Late results that found the mailbox full."""
        return self._desk.mailbox.dropped

    def stats(self) -> ToolStats:
        """A copy of the counters."""
        return replace(self._desk.stats)

    def adopt(self, config: EngineConfig) -> None:
        """Keep to other bounds from now on; what is recorded or timed already stays."""
        self._desk.adopt(config)
        self._planner.max_argument_bytes = config.max_argument_bytes
        self._budget.max_invalid_rounds = config.max_invalid_rounds

    def close(self) -> None:
        """The session ends: bodies are stopped at their next wait, and nothing starts any more.

        Read-only calls are dropped, side effects recorded as lost; notes stay in the mailbox. Whoever waits for an
        execution is answered. A second time has no effect.
        """
        self._desk.closed = True
        for run in tuple(self._desk.running.values()):
            self._side_effects.stop(run, Cause.HANG_UP)
        for execution in tuple(self._desk.open.values()):
            execution.interrupt(Cause.HANG_UP)
