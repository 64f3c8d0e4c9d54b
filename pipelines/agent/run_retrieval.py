"""Agent runs that look things up: before each round of an agent's runs its links are asked for what the user said last.

It stands on the hooks of a run and on a hold: the round begins when every link has answered, and what was found is
attached before its model is selected (run contract, section 12). Hooks that select by it are registered after it. Left
out: what is asked (``retrieval``), and the order of the tools on offer, which is that of the grants.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.retrieval import Documents, Retrieved, Retrieves, RoundRetrieval, offered, query_of
from bargein.pipelines.agent.run_memory import Asks
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.run_state import Phase, Run
from bargein.sim.effects.reports import Report

__all__ = ["RETRIEVAL_OWNER", "AgentRetrieval"]

RETRIEVAL_OWNER = "bargein/retrieval"
"""Owner of the hold under which a round waits for what is looked up."""


@dataclass(slots=True, eq=False)
class _Lookup:
    """Where a run stands: nothing asked yet, asked, or found and not attached."""

    documents: Documents
    asked: RoundRetrieval | None = None
    found: Retrieved | None = None


class AgentRetrieval:
    """The links of an agent.

    Args:
        hooks: of the runs.
        agent: whose runs look things up.
        links: asked in this order.
        retrievable: names of its tools that are offered only where they were found.
    """

    def __init__(
        self, hooks: Hooks, agent: Agent, links: Sequence[Retrieves], retrievable: Collection[str] = ()
    ) -> None:
        self.agent = agent
        self.links = tuple(links)
        self.retrievable = frozenset(retrievable)
        self._of: dict[int, _Lookup] = {}
        hooks.on(At.RUN_STARTED, self._started)
        hooks.on(At.CHECKPOINT, self._ask)
        hooks.on(At.SELECT_MODEL, self._attach)
        hooks.on(At.RUN_ENDED, self._ended)

    def _started(self, moment: Moment) -> None:
        run = moment.run
        if run.agent is self.agent:
            self._of[run.seq] = _Lookup(Documents(self.agent.context))
            moment.runs.hold_after_tool_turn(run, RETRIEVAL_OWNER, 0)

    def _ask(self, moment: Moment) -> None:
        """The run wants a round and nothing else keeps it from one: ask for it."""
        runs, run = moment.runs, moment.run
        lookup = self._of.get(run.seq)
        if lookup is None or lookup.asked is not None or lookup.found is not None or not _wants_round(run):
            return

        def attached(found: Retrieved) -> None:
            lookup.asked, lookup.found = None, found
            runs.release_tool_turn_hold(run, RETRIEVAL_OWNER)

        def nothing(report: Report) -> None:
            runs.end(run, Failed(Failure.RETRIEVAL, report))

        lookup.asked = RoundRetrieval(Asks(runs, run), self.links, run.scope, lookup.documents)
        lookup.asked.begin(query_of(run.messages), attached, nothing)

    def _attach(self, moment: Moment) -> None:
        """The round has begun: it gets what was found, and the next one waits again."""
        lookup = self._of.get(moment.run.seq)
        if lookup is None or lookup.found is None:
            return
        found, lookup.found = lookup.found, None
        moment.runs.hold_after_tool_turn(moment.run, RETRIEVAL_OWNER, 0)
        assert moment.turn is not None
        moment.turn.attachments.extend(found.documents)
        if self.retrievable:
            names = offered(found.tools, [grant.name for grant in self.agent.grants], self.retrievable)
            moment.patch(RequestPatch(active_tools=names))

    def _ended(self, moment: Moment) -> None:
        lookup = self._of.pop(moment.run.seq, None)
        if lookup is not None and lookup.asked is not None:
            lookup.asked.abandon()


def _wants_round(run: Run) -> bool:
    """Whether the run would begin a round with the next step, but for this; one whose turns are spent ends before."""
    if run.phase is not Phase.ASSEMBLING or (run.turn is not None and not run.turn.read):
        return False
    return not any(turn <= run.committed for owner, turn in run.holds.items() if owner != RETRIEVAL_OWNER)
