"""Agent runs that remember: an agent's runs load its conversation before their first round and append when they settle.

It stands on the hooks of a run and on a hold: a run that still loads gets no round (run contract, section 11). Left
out: what is asked of a memory (``memory``), and where it persists.

Ties: a run that is stopped on the instant on which its load lands, before the step that reads it, has loaded nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bargein.pipelines.agent.effects_port import Asked
from bargein.pipelines.agent.endings import Failed, Failure, Settled
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.memory import Form, Phase, Remembers, RunMemory
from bargein.pipelines.agent.parts import RunMessage, message_from_dict
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.run_state import PendingEffect, Run
from bargein.sim.effects.bus import EffectKind, Outcome
from bargein.sim.effects.reports import Report, ReportKind, failed
from bargein.sim.kernel.cancel import Cause

__all__ = ["MEMORY_OWNER", "AgentMemory", "Asks"]

MEMORY_OWNER = "bargein/memory"
"""Owner of the hold under which a run loads."""

_FORM: Form[RunMessage] = Form(lambda message: message.to_dict(), lambda data: message_from_dict(dict(data)))


class AgentMemory:
    """The memory of an agent.

    Args:
        hooks: of the runs.
        agent: whose runs remember.
        remembers: which conversation; a run keeps what stands here when it is spawned.
    """

    def __init__(self, hooks: Hooks, agent: Agent, remembers: Remembers) -> None:
        self.agent = agent
        self.remembers = remembers
        self._of: dict[int, RunMemory[RunMessage]] = {}
        hooks.on(At.RUN_STARTED, self._started)
        hooks.on(At.CHECKPOINT, self._opened)
        hooks.on(At.RUN_ENDED, self._ended)

    def of(self, run: Run) -> RunMemory[RunMessage]:
        """What a run asks of it; a hook may have it cleared.

        Raises:
            KeyError: it is another agent's run.
        """
        return self._of[run.seq]

    def _started(self, moment: Moment) -> None:
        run = moment.run
        if run.agent is self.agent:
            self._of[run.seq] = RunMemory(Asks(moment.runs, run), self.remembers, run.scope, _FORM)
            moment.runs.hold_after_tool_turn(run, MEMORY_OWNER, 0)

    def _opened(self, moment: Moment) -> None:
        """The run has its history and its prompt: load, unless there is more than the prompt."""
        runs, run = moment.runs, moment.run
        memory = self._of.get(run.seq)
        if memory is None or memory.phase is not Phase.IDLE:
            return

        def ready(messages: Sequence[RunMessage]) -> None:
            if _put_before(runs, run, messages):
                runs.release_tool_turn_hold(run, MEMORY_OWNER)

        def no_memory(report: Report) -> None:
            runs.end(run, Failed(Failure.MEMORY, report))

        memory.begin(ready, no_memory, brought_history=len(run.history) > 1)

    def _ended(self, moment: Moment) -> None:
        memory = self._of.get(moment.run.seq)
        if memory is None:
            return
        memory.abandon()
        if isinstance(moment.run.ending, Settled):
            memory.settle(moment.run.messages)


def _put_before(runs: AgentRuns, run: Run, messages: Sequence[RunMessage]) -> bool:
    """Store messages before those of the run. Returns whether it goes on; content that cannot be stored fails it."""
    own = len(run.history)
    for message in messages:
        if runs.store(run, message) is None:
            return False
    stored = run.history.stored
    stored[:] = stored[own:] + stored[:own]
    return True


class Asks:
    """What one run asks, as the effects of a run and with its next step (``effects_port.Effects``)."""

    def __init__(self, runs: AgentRuns, run: Run) -> None:
        self._runs = runs
        self._run = run

    def dispatch(
        self, kind: EffectKind, key: str, payload: Any, *, scope: str, on_landed: Callable[[Any], object]
    ) -> Asked:
        """Ask with the next step; a key that nobody serves has failed at once."""
        asked = _Asked()

        def landed(effect: PendingEffect) -> None:
            asked.outcome = effect.outcome
            on_landed(asked)

        asked.effect = self._runs.ask(self._run, kind, key, payload, landed)
        if asked.effect is None:
            asked.outcome = failed(ReportKind.HANDLER_UNAVAILABLE, f"no handler serves {key}")
            on_landed(asked)
        return asked


class _Asked:
    """Something a run has asked, or is about to."""

    def __init__(self) -> None:
        self.effect: PendingEffect | None = None
        self.outcome: Outcome | None = None

    def cancel(self, cause: Cause) -> bool:
        effect = self.effect
        return effect is not None and effect.dispatch is not None and effect.dispatch.cancel(cause)
