"""One step of the run loop, as the list of what is done for every run in turn.

The order is the contract's: assemble, gate, dispatch, collect, judge, read, look on, settle (run contract, sections 4
and 9). Left out: when a step is taken (``run``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent import advance, batch, collect, invalid_calls, run_retrieval
from bargein.pipelines.agent.endings import Failed, Settled
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.materialise import CHAIN
from bargein.pipelines.agent.run_memory import append_memory
from bargein.pipelines.agent.run_settings import effective
from bargein.pipelines.agent.run_state import BATCH_OWNER, PendingEffect, Run
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.layers import Dispatch
from bargein.sim.kernel.cancel import Cause

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["COLLECT", "STAGES", "Stage", "dispatch_effect"]

Stage = Callable[["AgentRuns", Run], None]


def gate(runs: AgentRuns, run: Run) -> None:
    """Put each effect before the hooks once, before it is dispatched."""
    if run.settles:
        return
    for effect in tuple(run.effects):
        if not effect.gated and run.ending is None:
            effect.gated = True
            runs.hooks.call(Moment(runs, At.GATE, run, effect.turn, effect))
            if effect.outcome is not None:
                effect.holds.pop(BATCH_OWNER, None)  # it was denied, and waits for nobody


def dispatch(runs: AgentRuns, run: Run) -> None:
    """Dispatch what nobody holds, in the order in which it was asked for."""
    if run.settles:  # it was saved before it could end, and what it had not asked by then is not asked any more
        return
    for effect in tuple(run.effects):
        if effect.dispatch is None and effect.outcome is None and not effect.held and effect in run.effects:
            dispatch_effect(runs, run, effect)
            if runs.live.get(run.seq) is not run:
                return


def dispatch_effect(runs: AgentRuns, run: Run, effect: PendingEffect) -> None:
    """Dispatch one effect. Whoever serves it, and the layers on the way there, may end the run or take it out."""
    open_ = run.ending is None

    def landed(dispatch: Dispatch) -> None:
        if effect.outcome is None:
            effect.outcome = dispatch.outcome
        runs.wake()

    def item(item: Any) -> None:
        if effect.turn is not None and effect.kind is EffectKind.COMPLETION:
            effect.turn.inbox.append(item)
            if run.streamed:
                runs.wake()

    effect.dispatch = runs.bus.dispatch(
        effect.kind,
        effect.key,
        effect.payload,
        scope=run.scope,
        on_landed=landed,
        on_item=item,
        parent=effect.parent,
        id=effect.reserved,
    )
    if runs.live.get(run.seq) is not run:
        effect.dispatch.cancel(Cause.DISCARDED)
    elif open_ and run.ending is not None:
        runs.leave(run, effect)


def checkpoint(runs: AgentRuns, run: Run) -> None:
    """The moment to look at a run: what landed is stored, and nothing has settled yet."""
    if run.phase is not None:
        runs.hooks.call(Moment(runs, At.CHECKPOINT, run, run.turn))


def settle(runs: AgentRuns, run: Run) -> None:
    """Let runs settle, and tell of every ending once."""
    if run.settling is not None and run.ending is None:
        runs.end(run, Settled(run.settling))
    ending = run.ending
    if ending is not None and not run.told:
        run.told = True
        if isinstance(ending, Settled):
            told = effective(run.settings, run.agent, "record_telemetry_content", True)
            runs.tell("agent.run_ended", run, "Settled", ending.output if told else "")
            append_memory(runs, run)
        else:
            runs.tell("agent.run_ended", run, str(ending.failure), _why(ending))
        runs.hooks.call(Moment(runs, At.RUN_ENDED, run, run.turn))


def _why(ending: Failed) -> str:
    if ending.report is not None:
        return ending.report.message
    return ending.detail if ending.limit is None else str(ending.limit)


COLLECT: Stage = collect.judge_outcomes
"""The stage before which a step collects what was submitted."""

STAGES: tuple[tuple[Stage, bool], ...] = (
    (advance.open_run, False),
    (advance.advance, False),
    (run_retrieval.look_up, False),
    (run_retrieval.attach_retrieved, False),
    (advance.select_model, False),
    (advance.before_request, False),
    (advance.assemble, False),
    (batch.release_batch, False),
    (gate, False),
    (dispatch, True),
    (collect.judge_outcomes, True),
    (collect.fold_deltas, False),
    (collect.judge_round, False),
    (invalid_calls.ask_hooks, False),
    *((link, False) for link in CHAIN),
    (checkpoint, False),
    (settle, True),
)
"""What is done, in order, and whether also for runs that have ended."""
