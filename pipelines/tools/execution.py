"""One response of the model being carried out: a slot for each call, and the guard on what it came to.

The engine makes it, the runner waits for it, then appends it to the context or discards it (tool contract, "Rounds"
and "Delivery"). Until it is delivered nothing of it has reached the model, so discarding it turns the results of its
side effects into late notes. Left out: deciding which calls run, and the context, which it only ever pushes to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import Message, ToolCall
from bargein.sim.kernel.cancel import CancelToken, Cause

if TYPE_CHECKING:
    from bargein.pipelines.asked import Asked
    from bargein.pipelines.tools.desk import Desk
    from bargein.pipelines.tools.mailbox import Note
    from bargein.pipelines.tools.orphans import SideEffectRun
    from bargein.pipelines.tools.outcomes import ToolOutcome
    from bargein.pipelines.tools.read_only import ReadOnlyCalls
    from bargein.pipelines.tools.registry import RegisteredTool
    from bargein.pipelines.tools.results import Answer
    from bargein.pipelines.tools.side_effects import SideEffects
    from bargein.pipelines.tools.spec import ToolSpec
    from bargein.sim.kernel.clock import Timer

__all__ = ["Execution", "Slot"]

_NONE: Mapping[str, Message] = MappingProxyType({})


class Slot:
    """The place of one call's answer.

    Attributes:
        call: the call.
        tool: its tool, of a call that was planned; a malformed call is answered without one.
        answer: set once, and then the call is answered.
        started_at_us: when its body went on the bus, or to the layers before it; ``None`` for a call that never did.
        running: the declaration of the tool that runs (for a confirmation, the gated one).
        timer, effect: of a read-only call.
        run: of a side effect.
        retries: malformed rounds the turn had made when the call was admitted.

    Invariant: a slot is answered at most once.
    """

    __slots__ = (
        "answer",
        "call",
        "effect",
        "execution",
        "planned",
        "retries",
        "run",
        "running",
        "started_at_us",
        "timer",
    )

    def __init__(self, execution: Execution, call: ToolCall | InvalidCall, planned: RegisteredTool | None) -> None:
        self.execution = execution
        self.call = call
        self.planned = planned
        self.answer: Answer | None = None
        self.started_at_us: int | None = None
        self.running: ToolSpec | None = None
        self.timer: Timer | None = None
        self.effect: Asked | None = None
        self.run: SideEffectRun | None = None
        self.retries = 0

    @property
    def tool(self) -> RegisteredTool:
        """The tool of a call that is not malformed."""
        assert self.planned is not None
        return self.planned

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a call that is not malformed."""
        assert isinstance(self.call, ToolCall)
        return self.call.arguments

    @property
    def waiting(self) -> bool:
        """Whether the call runs and has no answer yet."""
        return self.started_at_us is not None and self.answer is None

    def start(self, now_us: int, running: ToolSpec | None = None) -> None:
        """The call's body goes on the bus now."""
        self.started_at_us = now_us
        self.running = running or self.tool.spec

    def denial(self, tool: str) -> str | None:
        """Why a call of ``tool`` is not served here, or ``None`` where it may be."""
        return self.execution.denied.get(tool)

    def settle(self, outcome: ToolOutcome, answer: Answer) -> None:
        """Answer the call."""
        self.answer = answer
        self.execution.settled(self, outcome)

    def settle_unstarted(self, outcome: ToolOutcome, answer: Answer) -> None:
        """Answer a call that was given up while it waited; the model reads so, also where nothing else is delivered."""
        execution, call = self.execution, self.call
        execution.never_ran = {**execution.never_ran, call.id: answer.message(call.id)}
        self.settle(outcome, answer)


class Execution:
    """The answers to one response, as they come.

    Attributes:
        epoch: the turn.
        response: number of the response in its session.
        parent: id of the effect on whose behalf its calls run.
        denied: tools whose calls are not served, and the reason that answers them.
        budget_exhausted: the turn's retry budget is spent.
        interrupted: why its calls were interrupted, if they were.
        never_ran: by call id the answers of calls that were given up while they waited for an approval.

    Invariant: it ends delivered or discarded, never both.
    """

    def __init__(
        self,
        desk: Desk,
        side_effects: SideEffects,
        read_only: ReadOnlyCalls,
        *,
        epoch: int,
        response: int,
        parent: int | None,
        denied: Mapping[str, str],
    ) -> None:
        self._desk = desk
        self._side_effects = side_effects
        self._read_only = read_only
        self.epoch = epoch
        self.response = response
        self.parent = parent
        self.denied = denied
        self.budget_exhausted = False
        self.interrupted: Cause | None = None
        self.never_ran: Mapping[str, Message] = _NONE
        self.slots: list[Slot] = []
        self.claims: list[SideEffectRun] = []
        self._notes: list[Note] = []
        self._unanswered = 0
        self._sealed = False
        self._complete = False
        self._delivered = False
        self._discarded = False
        self._token: CancelToken | None = None
        self._listener = -1
        self._listeners: list[Callable[[Execution], object]] = []
        self._progress: Callable[[str, str], object] | None = None
        desk.open[response] = self

    # -- read by the runner -------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether every call is answered."""
        return self._complete

    @property
    def results(self) -> list[Message]:
        """The answers so far, in issue order; one a call once it is complete."""
        return [slot.answer.message(slot.call.id) for slot in self.slots if slot.answer is not None]

    @property
    def late_notes(self) -> list[Message]:
        """Notes on earlier side effects, to be told after the results."""
        return [note.message for note in self._notes if self._is_told(note)]

    @property
    def running_specs(self) -> list[ToolSpec]:
        """Declarations of the tools that run right now, in issue order; the filler policy chooses from them."""
        return [slot.running for slot in self.slots if slot.running is not None and slot.answer is None]

    @property
    def is_delivered(self) -> bool:
        """Whether it reached the context."""
        return self._delivered

    @property
    def is_discarded(self) -> bool:
        """Whether it was thrown away."""
        return self._discarded

    def on_complete(self, listener: Callable[[Execution], object]) -> None:
        """Call ``listener(self)`` when every call is answered; at once if it is so already."""
        if self._complete:
            listener(self)
        else:
            self._listeners.append(listener)

    def on_progress(self, listener: Callable[[str, str], object]) -> None:
        """Call ``listener(tool, text)`` when a call that is not answered yet says how far it is."""
        self._progress = listener

    # -- the end: delivered or discarded ------------------------------------------------------------------

    def append_to(self, context: Context) -> None:
        """Push the results, then the late notes, and count as delivered.

        Raises:
            RuntimeError: it is not complete, or was delivered or discarded before; the context is unchanged.
        """
        self._check_undelivered()
        for message in self.results:
            context.push(message)
        for message in self.late_notes:
            context.push(message)
        self.mark_delivered()

    def mark_delivered(self) -> None:
        """Its messages are in the context, written by the caller. A second time has no effect.

        Raises:
            RuntimeError: it is not complete, or was discarded.
        """
        if self._delivered:
            return
        self._check_undelivered()
        self._delivered = True
        self._close()
        for note in self._notes:
            if self._is_told(note):
                note.run.reported = True
        self._desk.mailbox.give_back([note for note in self._notes if not note.run.reported])
        for run in self.claims:
            self._side_effects.consume(run, self)
        for slot in self.slots:
            if slot.run is not None and slot.run.slot is slot:
                slot.run.slot = None

    @staticmethod
    def _is_told(note: Note) -> bool:
        """Whether the note still has something to tell: another execution may be replaying its result by now."""
        return not note.withdrawn and note.run.claimed_by is None

    def _check_undelivered(self) -> None:
        if not self._complete:
            raise RuntimeError("this execution is not complete; wait for it, or discard it")
        if self._delivered or self._discarded:
            raise RuntimeError(f"this execution was {'delivered' if self._delivered else 'discarded'} before")

    def discard(self) -> None:
        """It will never reach the context; nothing of a side effect is lost by that.

        Read-only calls that still run are dropped, side effects run on. Side effects whose result was in a slot are
        reported as late notes, notes taken from the mailbox go back, and replayed orphans stay what they were. After
        a delivery, or a second time, it has no effect (tool contract, "Delivery").
        """
        if self._delivered or self._discarded:
            return
        self._discarded = True
        self._close()
        self._desk.mailbox.give_back(self._notes)
        for run in self.claims:
            run.claimed_by = None
        for slot in self.slots:
            if slot.run is not None:
                if slot.run.slot is slot:
                    self._note_undelivered(slot.run)
            elif slot.waiting:
                self._read_only.abandon(slot)

    def _note_undelivered(self, run: SideEffectRun) -> None:
        self._side_effects.abandon(run)

    # -- written by the engine ----------------------------------------------------------------------------

    def add(self, call: ToolCall | InvalidCall, planned: RegisteredTool | None) -> Slot:
        """Open the slot of the next call."""
        slot = Slot(self, call, planned)
        self.slots.append(slot)
        self._unanswered += 1
        return slot

    def watch(self, token: CancelToken) -> None:
        """Let ``token``, and no other, interrupt the calls; at once where it is cancelled already."""
        self._forget()
        self._token = token
        self._listener = token.listen(self.interrupt)

    def interrupt(self, cause: Cause) -> None:
        """Answer every running call that it was interrupted, in issue order (tool contract, item 8)."""
        if self._discarded:
            return
        self.interrupted = cause
        for slot in self.slots:
            if slot.waiting:
                if slot.run is not None:
                    self._side_effects.interrupt(slot.run)
                else:
                    self._read_only.interrupt(slot, cause)

    def tell_progress(self, tool: str, text: str) -> None:
        """Pass on what a running call says."""
        if self._progress is not None:
            self._progress(tool, text)

    def settled(self, slot: Slot, outcome: ToolOutcome) -> None:
        """A slot was answered; it is complete with the last one."""
        since = slot.started_at_us
        duration_us = 0 if since is None else self._desk.clock.now - since
        call = slot.call
        self._desk.trace.settled(self.epoch, call.id, call.name, outcome, duration_us, slot.retries)
        self._unanswered -= 1
        if self._sealed and not self._unanswered:
            self._finish()

    def seal(self) -> None:
        """Every call has been started or answered; from now on it completes with the last answer."""
        self._sealed = True
        if not self._unanswered:
            self._finish()

    def _finish(self) -> None:
        if self._discarded or self._complete:
            return
        self._complete = True
        self._forget()
        if not self._desk.closed:
            self._notes = self._desk.mailbox.take()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(self)

    def _close(self) -> None:
        self._forget()
        self._listeners = []
        del self._desk.open[self.response]

    def _forget(self) -> None:
        if self._token is not None:
            self._token.forget(self._listener)
            self._token = None
