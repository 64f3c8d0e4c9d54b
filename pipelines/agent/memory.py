"""Memory of a run: the conversation is loaded before its first round and what it added is appended when it ends.

Each operation is an effect of kind ``memory`` under the run, recorded like any other (run contract, section 11).
A `RunMemory` belongs to a voice session, which calls it at its two moments; an agent run keeps where it stands as data
(``run_memory``) and reads what it loaded by the same rule. Messages cross this door as plain data, so that no store
can share one with a conversation. Left out: where they persist (a store of ``models``).

Ties: an outcome is told on its own instant, in the clock's order of deliveries; a run that was stopped first is told
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from bargein.pipelines.agent.effects_port import Asked, Effects
from bargein.pipelines.agent.links import Remembers
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind, report_of
from bargein.sim.kernel.cancel import Cause

__all__ = ["Append", "Clear", "Form", "Load", "MemoryOp", "Phase", "Remembers", "RunMemory", "read_loaded"]

M = TypeVar("M")

Plain = Mapping[str, Any]


# -- what is asked of a memory --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Give the messages of a conversation, oldest first; of one that nobody knows, none."""

    conversation: str

    def to_dict(self) -> dict[str, Any]:
        """The operation as plain data."""
        return {"op": "load", "conversation": self.conversation}


@dataclass(frozen=True, slots=True)
class Append:
    """Put messages after those of a conversation, all or none."""

    conversation: str
    messages: tuple[Plain, ...]

    def to_dict(self) -> dict[str, Any]:
        """The operation as plain data."""
        return {"op": "append", "conversation": self.conversation, "messages": list(self.messages)}


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget a conversation."""

    conversation: str

    def to_dict(self) -> dict[str, Any]:
        """The operation as plain data."""
        return {"op": "clear", "conversation": self.conversation}


MemoryOp = Load | Append | Clear


# -- what a run keeps -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form(Generic[M]):
    """Between a message and plain data.

    Attributes:
        write: makes plain data of a message.
        read: makes the message again; raises ``ValueError``, ``KeyError`` or ``TypeError`` where it stands for none.
    """

    write: Callable[[M], Plain]
    read: Callable[[Plain], M]


def read_loaded(outcome: Outcome | None, form: Form[M]) -> list[M] | Report:
    """What a load gave; a store's data is somebody else's and is looked at before it is believed."""
    assert outcome is not None
    if outcome.status is not Status.OK:
        return report_of(outcome)
    if not isinstance(outcome.value, list | tuple):
        found = type(outcome.value).__name__
        return Report(ReportKind.RESPONSE, f"the memory gave a {found}; accepted is a list of messages")
    messages: list[M] = []
    for at, each in enumerate(outcome.value):
        try:
            messages.append(form.read(each))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Report(ReportKind.RESPONSE, f"message {at} of the memory cannot be read: {error}")
    return messages


class Phase(StrEnum):
    """Where a run stands with its memory."""

    IDLE = "idle"
    """Nothing was asked yet."""
    LOADING = "loading_memory"
    READY = "ready"
    """Loaded, or resumed as loaded: what the run adds will be appended."""
    BYPASSED = "bypassed"
    """The run brought its own history; it neither loads nor appends."""
    FAILED = "failed"
    """The load failed, and with it the run."""
    APPENDED = "appended"
    """The append was asked for, once and for all."""


class RunMemory(Generic[M]):
    """What one run asks of its memory.

    Args:
        effects: the bus.
        remembers: the agent's, as it is when the run is spawned.
        scope: the run.
        form: how messages are written and read.
        phase: where a resumed run stood; ``READY`` loads nothing and appends.
        remembered: how many messages of a resumed run were loaded.

    Attributes:
        remembered: how many of the run's messages, its oldest, were there before it.

    Invariant: a run loads at most once and appends at most once, also when it is saved and resumed between.
    """

    def __init__(
        self,
        effects: Effects,
        remembers: Remembers,
        scope: str,
        form: Form[M],
        phase: Phase = Phase.IDLE,
        remembered: int = 0,
    ) -> None:
        self._effects = effects
        self._remembers = remembers
        self._scope = scope
        self._form = form
        self._abandoned = False
        self._asked: Asked | None = None
        self.phase = phase
        self.remembered = remembered
        self.append_failure: Report | None = None

    def begin(
        self,
        ready: Callable[[Sequence[M]], object],
        failed: Callable[[Report], object],
    ) -> None:
        """Before the first round: load, unless the run was resumed.

        Args:
            ready: called when the run may assemble its first request (perhaps before this returns), with what was
                loaded; it stands before the prompt.
            failed: called instead with why the run cannot begin.
        """
        if self.phase is not Phase.IDLE:
            ready(())
            return

        def landed(asked: Asked) -> None:
            if self._abandoned:
                return
            loaded = read_loaded(asked.outcome, self._form)
            if isinstance(loaded, Report):
                self.phase = Phase.FAILED
                failed(loaded)
            else:
                self.phase = Phase.READY
                self.remembered = len(loaded)
                ready(loaded)

        self.phase = Phase.LOADING
        self._ask(Load(self._remembers.conversation), landed)

    def settle(self, messages: Sequence[M], landed: Callable[[], object] | None = None) -> bool:
        """The run has its answer: append what it added. Whether that succeeds changes nothing about the answer.

        Args:
            messages: all of the run's; those that were remembered are not appended.
            landed: called when the append has come to something (perhaps before this returns).

        Returns:
            Whether an append was asked for; not by a run that has not loaded, and not a second time.
        """
        if self.phase is not Phase.READY:
            return False
        self.phase = Phase.APPENDED
        own = tuple([self._form.write(message) for message in messages[self.remembered :]])

        def appended(asked: Asked) -> None:
            assert asked.outcome is not None
            if asked.outcome.status is not Status.OK:
                self.append_failure = report_of(asked.outcome)
            if landed is not None:
                landed()

        self._ask(Append(self._remembers.conversation, own), appended)
        return True

    def cancel(self, cause: Cause) -> None:
        """Stop the load or append that runs, if one does: nobody waits for it any longer."""
        if self._asked is not None:
            self._asked.cancel(cause)

    def abandon(self) -> None:
        """The run was stopped; whatever a load still brings is for nobody."""
        self._abandoned = True

    def _ask(self, operation: MemoryOp, landed: Callable[[Asked], object]) -> None:
        key, effects = self._remembers.key, self._effects
        self._asked = effects.dispatch(EffectKind.MEMORY, key, operation, scope=self._scope, on_landed=landed)
