"""What came back since the last step: stream items folded, outcomes put before hooks, an answer made ready to read.

Everything of one instant is collected before any of it is acted on, so that runs are dealt with in their own order
and not in that of the answers (run contract, sections 4, 8.2 and 9). Left out: acting on it (``materialise``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.answers import Answer, StreamError, StreamFold
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.invalid_calls import discover_early
from bargein.pipelines.agent.materialise import answer_of
from bargein.pipelines.agent.parts import CallPart
from bargein.pipelines.agent.run_memory import land_append
from bargein.pipelines.agent.run_state import Purpose, Run
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.reports import Report
from bargein.sim.kernel.cancel import Cause

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["fold_deltas", "judge_outcomes", "judge_round"]


def judge_outcomes(runs: AgentRuns, run: Run) -> None:
    """Put each outcome that has landed before the hooks, once; whoever asked for it is told afterwards."""
    _break(run)
    for effect in tuple(run.effects):
        if effect.outcome is None or effect.judged:
            continue
        effect.judged = True
        if run.ending is None and effect.id is not None:
            runs.hooks.call(Moment(runs, At.JUDGE_OUTCOME, run, effect.turn, effect))
        land_append(effect, run)
        if effect.on_landed is not None:
            effect.on_landed(effect)
        if effect.purpose is Purpose.LOOKUP:
            runs.wake()  # its round goes on with the next step


def fold_deltas(runs: AgentRuns, run: Run) -> None:
    """Fold what came in, item by item; of a streamed answer hooks see each, and a call that may not be made is found
    by its name."""
    turn = run.turn
    if turn is None:
        return
    inbox, turn.inbox = turn.inbox, []
    for item in inbox:
        if run.ending is not None or turn.broken:
            return
        if turn.fold is None:
            turn.first_call = run.calls
            turn.fold = StreamFold(run.scope, run.calls)
        turn.items.append(item)
        report = _report_in(item)
        if report is not None:
            turn.broken = True
            turn.errors.append((len(turn.items) - 1, report))
            return
        turn.fold.feed(item)
        run.calls = turn.fold.calls
        if not run.streamed:
            continue  # one answer, however it came; it is judged when it has landed
        runs.hooks.call(Moment(runs, At.DELTA, run, turn, turn.request, item))
        for block in turn.fold.blocks:
            if block.named_at == turn.fold.items - 1:
                discover_early(run, turn, block)


def _report_in(item: Any) -> Report | None:
    if isinstance(item, StreamError):
        return item.report
    return item if isinstance(item, Report) else None


def _break(run: Run) -> None:
    """An error has come in a stream: that is what its request comes to, whatever its producer goes on to send."""
    turn = run.turn
    request = None if turn is None or not turn.inbox or turn.broken else turn.request
    if turn is None or request is None or run.ending is not None:
        return
    for item in turn.inbox:
        report = _report_in(item)
        if report is not None:
            request.outcome = Outcome(Status.FAILED, report)
            if request.dispatch is not None:
                request.dispatch.cancel(Cause.DISCARDED)
            return


def judge_round(runs: AgentRuns, run: Run) -> None:
    """Make the answer ready, and put it before the hooks, once."""
    turn = run.turn
    if turn is None or turn.read or turn.judged or turn.request is None or turn.request.outcome is None:
        return
    turn.judged = True
    answer = answer_of(turn)
    if answer is None:
        if turn.fold is not None:
            turn.answer = turn.fold.answer(None)  # what there is of it, for calls that were found before it broke
        return
    turn.answer = read = _numbered(run, answer)
    runs.hooks.call(Moment(runs, At.JUDGE_ROUND, run, turn, turn.request))
    if turn.answer is not read:  # a hook has put another in its place, which cost what the model's own did
        turn.answer = _numbered(run, replace(turn.answer, usage=answer.usage))


def _numbered(run: Run, answer: Answer) -> Answer:
    """Give calls that have none an id of their own."""
    parts = []
    for part in answer.parts:
        if type(part) is CallPart and not part.id:
            part = replace(part, id=f"{run.scope}.{run.calls}")
            run.calls += 1
        parts.append(part)
    return replace(answer, parts=tuple(parts))
