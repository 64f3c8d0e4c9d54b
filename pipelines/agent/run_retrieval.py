"""What a round looks up: its agent's links are asked for what the user said last, before its model is selected.

The run loop calls these functions between beginning a round and selecting its model (run contract, section 12). Left
out: what is asked and how an answer is read (``retrieval``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.retrieval import Retrieve, fault_of, found_by, query_of
from bargein.pipelines.agent.run_state import PendingEffect, Purpose, Run, Turn
from bargein.sim.effects.bus import EffectKind, Outcome
from bargein.sim.effects.reports import Report

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["attach_retrieved", "look_up"]


def look_up(runs: AgentRuns, run: Run) -> None:
    """Ask every link of the agent for the fresh round; nobody where nothing was said."""
    turn = run.turn
    if turn is None or not turn.retrieving or turn.read or turn.lookups:
        return
    query = query_of(run.messages)
    if query is None:
        turn.retrieving = False
        return
    for link in run.agent.retrieves:
        payload = Retrieve(link.what, query, link.samples)
        effect = PendingEffect(EffectKind.RETRIEVAL, link.key, payload, runs.wake, turn, purpose=Purpose.LOOKUP)
        turn.lookups.append(effect)
        run.effects.append(effect)


def attach_retrieved(runs: AgentRuns, run: Run) -> None:
    """Once every link has answered, the round gets what was found; a link that cannot answer fails the run at once."""
    turn = run.turn
    if turn is None or not turn.retrieving or turn.read:
        return
    links = run.agent.retrieves
    landed: list[Outcome] = []
    for link, effect in zip(links, turn.lookups, strict=False):
        if effect.outcome is None or not effect.judged:
            continue
        landed.append(effect.outcome)
        fault = fault_of(link, effect.outcome)
        if fault is not None:
            runs.end(run, Failed(Failure.RETRIEVAL, fault))
            return
    if turn.lookups and len(landed) == len(turn.lookups):
        _attach(run, turn, landed)


def _attach(run: Run, turn: Turn, landed: list[Outcome]) -> None:
    found = found_by(run.agent.retrieves, landed, run.documents)
    assert not isinstance(found, Report)
    turn.attachments.extend(found.documents)
    turn.found_tools = found.tools
    turn.retrieving = False
