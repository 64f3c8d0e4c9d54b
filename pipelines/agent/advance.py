"""From an open run to a dispatched request: a new round, its model, its request, and what holds it back.

The first half of a step (run contract, sections 1 to 3, 5 and 9). Each function takes one run; the loop calls it for
every run in their order. Left out: what comes back (``materialise``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.pipelines.agent.edits import edited
from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.fold import Completion, fold_request
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.output_modes import free_name, permits, resolve_output
from bargein.pipelines.agent.result_limit import cut_results
from bargein.pipelines.agent.retries import hold_retry
from bargein.pipelines.agent.retrieval import offered
from bargein.pipelines.agent.run_memory import begin_memory
from bargein.pipelines.agent.run_settings import (
    DEFAULT_MAX_TURNS,
    Grant,
    OutputMode,
    OutputSpec,
    OutputToolConfig,
    ToolAccess,
    effective,
)
from bargein.pipelines.agent.run_state import AccessSnapshot, PendingEffect, Phase, Purpose, Run, Turn
from bargein.sim.effects.bus import EffectKind

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["advance", "assemble", "before_request", "max_turns", "open_run", "select_model"]


def max_turns(run: Run) -> int:
    """Model calls the run may make."""
    return int(effective(run.settings, run.agent, "max_turns", DEFAULT_MAX_TURNS))


def open_run(runs: AgentRuns, run: Run) -> None:
    """A ready run without a phase and an ending begins: its prompt becomes the last of its messages."""
    if not run.ready or run.phase is not None or run.ending is not None:
        return
    try:
        for message in run.prior:
            run.history.append(message)
        if run.prompt is not None:
            run.history.append(run.prompt)
    except ContentError as error:
        runs.end(run, Failed(Failure.CONTENT, detail=str(error)))
        return
    brought_history = bool(run.prior)
    run.prior = []
    run.prompt = None
    run.phase = begin_memory(runs, run, brought_history=brought_history)
    runs.tell("agent.run_opened", run)


def advance(runs: AgentRuns, run: Run) -> None:
    """A run that wants another round gets it, unless its turns are spent or somebody holds it at a committed turn. One
    that has its answer, and was saved before it settled, wants none.

    A round that only asks again after a provider's error neither checks nor spends the turns.
    """
    if run.phase is not Phase.ASSEMBLING or (run.turn is not None and not run.turn.read):
        return
    if run.settles:
        return
    if not run.retrying and run.cursor >= max_turns(run):
        runs.end(run, Failed(Failure.MAX_TURNS, limit=max_turns(run)))
        return
    if run.stands_still:
        return
    if not run.retrying:
        run.cursor += 1
    attempt = run.provider_retried if run.retrying else 0
    turn = Turn(run.cursor, attempt, list(run.agent.context), retrieving=bool(run.agent.retrieves))
    for document in turn.attachments:
        run.documents.setdefault(document.id, document)
    run.turns.append(turn)
    run.retrying = False


def select_model(runs: AgentRuns, run: Run) -> None:
    """Hooks choose a model for the fresh round; the agent's own is taken where the run has none."""
    turn = _fresh(run)
    if turn is None:
        return
    runs.hooks.call(Moment(runs, At.SELECT_MODEL, run, turn))
    if run.uses_model is None:
        run.uses_model = run.agent.model.key


def before_request(runs: AgentRuns, run: Run) -> None:
    """Hooks change the fresh round's request."""
    turn = _fresh(run)
    if turn is not None:
        runs.hooks.call(Moment(runs, At.BEFORE_REQUEST, run, turn))


def assemble(runs: AgentRuns, run: Run) -> None:
    """Fold the fresh round's request and make it an effect; hooks see it, and a retry is held back."""
    turn = _fresh(run)
    if turn is None:
        return
    adverts = _offer(run, turn)
    if adverts is None:
        runs.end(run, Failed(Failure.OUTPUT_TOOL_COLLISION, detail=turn.output_tool))
        return
    try:
        if turn.edits and turn.patched.history is not None:
            raise ContentError("an edit of a part, and a patch that replaces the history; a round has one of the two")
        messages = cut_results(edited(run.history, turn.edits), effective(run.settings, run.agent, "result_limit"))
    except ContentError as error:
        runs.end(run, Failed(Failure.CONTENT, detail=str(error)))
        return
    turn.edits = []
    request = fold_request(
        run.agent, run.settings, messages, adverts, turn.attachments, turn.mode, turn.output_tool, turn.patched
    )
    assert run.uses_model is not None
    asked = Completion(request, run.streamed)
    turn.request = PendingEffect(EffectKind.COMPLETION, run.uses_model, asked, runs.wake, turn, purpose=Purpose.REQUEST)
    turn.offered = True
    run.effects.append(turn.request)
    run.phase = Phase.AWAITING_MODEL
    runs.hooks.call(Moment(runs, At.REQUEST_FOLDED, run, turn, turn.request))
    if run.ending is None:
        hold_retry(runs, run, turn)


def _fresh(run: Run) -> Turn | None:
    """The newest round, where its request is to be made now: everything it looks up was found."""
    turn = run.turn
    if turn is None or run.phase is not Phase.ASSEMBLING or turn.retrieving or turn.offered or turn.read:
        return None
    return turn


def _offer(run: Run, turn: Turn) -> list[Grant] | None:
    """Settle what the round may call and how it answers.

    Returns:
        The tools on offer; ``None`` where the output tool's name is another tool's.
    """
    patch, agent, settings = turn.patched, run.agent, run.settings
    granted = {grant.name: grant for grant in agent.grants}
    names = offered(turn.found_tools, list(granted), agent.retrievable)
    adverts = [granted[name] for name in names if patch.active_tools is None or name in patch.active_tools]
    access: ToolAccess = effective(settings, agent, "tool_access", ToolAccess())
    bindings = {grant.name: grant.key for grant in adverts} if access.bindings is None else dict(access.bindings)
    turn.access = AccessSnapshot(bindings, tuple(bindings) if access.allowed is None else access.allowed)
    turn.tool_choice = effective(settings, agent, "tool_choice") if patch.tool_choice is None else patch.tool_choice
    output: OutputSpec = effective(settings, agent, "output", OutputSpec())
    config: OutputToolConfig = effective(settings, agent, "output_tool", OutputToolConfig())
    taken = {grant.name for grant in agent.grants} | set(bindings)
    name = run.output_tool or config.name or free_name(taken)
    has_schema = output.schema is not None
    if has_schema and config.name is not None and run.output_tool is None:
        mode = OutputMode.TOOL
    else:
        minted = run.output_tool is not None and output.mode in (OutputMode.TOOL, OutputMode.AUTO)
        composes = agent.model_of(run.uses_model or "").composes_native_output_with_tools
        choice = minted or permits(turn.tool_choice, name)
        requested = OutputMode.TOOL if minted or (has_schema and config.name is not None) else output.mode
        mode = resolve_output(requested, has_schema, bool(agent.grants), choice, composes)
    turn.mode = mode
    if mode is OutputMode.TOOL:
        turn.output_tool = name
        if name in taken:
            return None
        run.output_tool = name
    return adverts
