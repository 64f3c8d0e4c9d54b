"""A round's batch of tool calls: held to their concurrency, landed together, answered in the order of the calls.

What a model may see of an outcome becomes a result with a status beside it; what it must not see fails the run (run
contract, section 8.1). Left out: validating arguments and keeping side effects from running twice, which a voice
session's tool engine does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.answers import ToolReply, ToolRequest, family_of, render_args
from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import CallPart, ImagePart, JsonPart, ResultPart, RunMessage, TextPart
from bargein.pipelines.agent.run_settings import DEFAULT_CONCURRENCY, effective
from bargein.pipelines.agent.run_state import BATCH_OWNER, PendingEffect, Phase, Purpose, Run, Turn
from bargein.pipelines.wordings import WRONG_FAMILY
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from bargein.sim.effects.reports import ReportKind, report_of

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["land_batch", "release_batch", "result_message", "start_batch"]

_FATAL = (ReportKind.BUS_CLOSED, ReportKind.HANDLER_UNAVAILABLE, ReportKind.DIVERGENCE)
"""A replay that went on after one of these would pass with another story."""
Item = TextPart | ImagePart | JsonPart


def result_message(
    answered: list[tuple[CallPart, tuple[Item, ...], ResultStatus]],
) -> tuple[RunMessage, list[ResultStatus]]:
    """The user message that answers calls, in the order given, and how each answer came about."""
    parts = [ResultPart(call.id, items, call.name, call.provider_id) for call, items, _ in answered]
    return RunMessage(Role.USER, tuple(parts)), [status for _, _, status in answered]


def start_batch(runs: AgentRuns, run: Run, turn: Turn, calls: list[CallPart]) -> None:
    """Make an effect of each call; those beyond the concurrency are held."""
    concurrency = _concurrency(run)
    context = dict(effective(run.settings, run.agent, "tool_context", {}))
    for at, call in enumerate(calls):
        key = turn.access.key_of(call.name)
        assert key is not None
        request = ToolRequest(call.name, render_args(call.arguments), dict(context))
        effect = PendingEffect(EffectKind.TOOL_CALL, key, request, runs.wake, turn, call, Purpose.CALL)
        if at >= concurrency:
            effect.hold(BATCH_OWNER)
        turn.batch.append(effect)
        run.effects.append(effect)
    run.phase = Phase.RESOLVING_TOOLS
    runs.wake()


def release_batch(runs: AgentRuns, run: Run) -> None:
    """Let held calls go, in call order, as earlier ones land."""
    turn = run.turn
    if run.phase is not Phase.RESOLVING_TOOLS or turn is None:
        return
    room = _concurrency(run) - sum(effect.takes_slot for effect in turn.batch)
    for effect in turn.batch:
        if room > 0 and effect.outcome is None and BATCH_OWNER in effect.holds:
            effect.release(BATCH_OWNER)
            room -= 1


def _concurrency(run: Run) -> int:
    return max(1, int(effective(run.settings, run.agent, "concurrency", DEFAULT_CONCURRENCY)))


def land_batch(runs: AgentRuns, run: Run) -> None:
    """Once every call has an outcome: one user message with all results, in call order, and the turn is committed."""
    turn = run.turn
    if run.phase is not Phase.RESOLVING_TOOLS or turn is None or any(each.outcome is None for each in turn.batch):
        return
    landed = [(each.call, each.outcome) for each in turn.batch if each.call is not None and each.outcome is not None]
    for _, outcome in landed:
        if outcome.status is not Status.OK and report_of(outcome).kind in _FATAL:
            runs.end(run, Failed(Failure.TOOL, report_of(outcome)))
            return
    for _, outcome in landed:
        if outcome.status is not Status.OK and report_of(outcome).kind is ReportKind.CANCELLED:
            runs.end(run, Failed(Failure.CANCELLED, report_of(outcome)))
            return
    answered = [(call, *_result(outcome)) for call, outcome in landed]
    if turn.output_after is not None and turn.output_after.id in turn.reprompts:
        call = turn.output_after
        answered.append((call, (TextPart(turn.reprompts[call.id]),), ResultStatus.SKIPPED))
    message, statuses = result_message(answered)
    stored = runs.store(run, message, statuses)
    if stored is None:
        return
    turn.results, turn.commit = stored, turn.number
    run.phase = Phase.ASSEMBLING
    runs.committed(run, turn)
    runs.wake()


def _result(outcome: Outcome) -> tuple[tuple[Item, ...], ResultStatus]:
    """What the model reads of an outcome, and its status."""
    value = outcome.value
    if outcome.status is not Status.OK:
        report = report_of(outcome)
        status = ResultStatus.DENIED if report.kind is ReportKind.DENIED else ResultStatus.ERROR
        return (TextPart(report.message),), status
    if isinstance(value, ToolReply):
        return value.items, _STATUSES[value.status]
    if family_of(value) != "tool_call":
        return (TextPart(WRONG_FAMILY.replace("{family}", family_of(value))),), ResultStatus.WRONG_FAMILY
    return (_item(value),), ResultStatus.OK


def _item(value: Any) -> Item:
    if isinstance(value, TextPart | ImagePart | JsonPart):
        return value
    return TextPart(value) if isinstance(value, str) else JsonPart(value)


_STATUSES = {
    "ok": ResultStatus.OK,
    "error": ResultStatus.ERROR,
    "refused": ResultStatus.REFUSED,
    "skipped": ResultStatus.SKIPPED,
}
