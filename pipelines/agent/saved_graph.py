"""Runs as entities: a list in which everything that hangs on something else stands after it.

Handlers and agents come first; then each run with its messages and their parts, its rounds with their edits, invalid
calls and effects, and the effects that hang on the run itself. What is in the machine only (a handler at work, a
stream's queue, an approval somebody waits for, a hook's callback) is not here (run contract, section 13).

Left out: the document around it (``run_checkpoint``) and reading it (``restored_graph``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.edits import TextEdit
from bargein.pipelines.agent.history import Held, HeldMessage
from bargein.pipelines.agent.parts import ResultPart
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.run_state import BACKOFF_OWNER, PendingEffect, Purpose, Run, Turn
from bargein.pipelines.agent.saved_errors import NotSaved
from bargein.pipelines.agent.saved_values import ValueFault, plain, plain_fields

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["AGENT", "EFFECT", "INVALID", "RUN", "TURN", "save_runs"]

AGENT = ("owner", "model", "routes", "grants", "context", "settings", "remembers", "retrieves", "retrievable")
RUN = (
    *("streamed", "prior", "prompt", "ready", "phase", "ending", "cursor", "output_retries", "invalid_retries"),
    *("provider_retried", "retrying", "uses_model", "output_tool", "usage", "holds", "calls", "settling", "told"),
    *("memory", "documents", "settings"),
)
TURN = (
    *("number", "attempt", "attachments", "patch", "retrieving", "found_tools", "offered", "mode", "output_tool"),
    *("tool_choice", "access", "inbox", "items", "errors", "first_call", "broken", "answer", "counted", "judged"),
    *("retry", "reading", "read", "output_after", "reprompts", "commit"),
)
EFFECT = ("key", "payload", "call", "purpose", "outcome", "gated", "judged", "holds", "barred")
INVALID = ("call", "prefix", "position", "resolution", "asked", "done")
"""The fields of each class that are values; the others are links, or are made again."""
_OF_STREAM = ("inbox", "items", "errors", "first_call")
"""Those of a turn that are left out while its answer comes in pieces that nobody sees."""


def save_runs(runs: AgentRuns) -> RunCheckpoint:
    """All runs as they stand, between two steps, at the moment `At.CHECKPOINT` of one, or for whoever watches commits.

    Nothing is changed by it. What is saved need not be fit to go on from; loading says so.

    Raises:
        NotSaved: a value that a hook or a handler has put in has no saved form.
    """
    try:
        entities = _Writer(runs).write()
    except ValueFault as fault:
        raise NotSaved(f"the runs cannot be saved: {fault}") from fault
    assets = runs.assets
    binaries = {digest: assets.data(digest) for digest in assets.digests}
    return RunCheckpoint(runs.clock.now, tuple(entities), runs.next_run, runs.bus.bus.next_id, binaries)


def _unseen(run: Run) -> Turn | None:
    """The newest round, where its answer comes in pieces that nobody sees before it is whole.

    What has come of it is not saved: the model is asked again, like one that answers in one piece.
    """
    turn = run.turn
    if turn is None or run.streamed or turn.request is None or turn.request.outcome is not None:
        return None
    return turn


class _Writer:
    """One pass over the runs.

    Invariant: an entity is written after whatever it refers to.
    """

    def __init__(self, runs: AgentRuns) -> None:
        self._runs = runs
        self._entities: list[dict[str, Any]] = []
        self._agents: list[tuple[Agent, int]] = []

    def write(self) -> list[dict[str, Any]]:
        bus = self._runs.bus
        served = bus.bus.keys()
        for key in served:
            self._add("handler", key=key, descriptor=bus.descriptor(key).to_dict())
        for run in self._runs.live.values():
            if all(agent is not run.agent for agent, _ in self._agents):
                self._agents.append((run.agent, self._add("agent", **plain_fields(run.agent, AGENT, "agent"))))
        for run in self._runs.live.values():
            self._run(run)
        return self._entities

    def _add(self, kind: str, **rest: Any) -> int:
        self._entities.append({"kind": kind, **rest})
        return len(self._entities) - 1

    def _run(self, run: Run) -> None:
        agent = next(position for agent, position in self._agents if agent is run.agent)
        values = plain_fields(run, RUN, run.scope)
        unseen = _unseen(run)
        if unseen is not None and unseen.items:
            values["calls"] = unseen.first_call
        host = {
            name: plain(to_plain(run.host[name]), f"{run.scope}: host.{name}")
            for name, (to_plain, _) in self._host(run).items()
        }
        here = self._add("run", agent=agent, seq=run.seq, next_part=run.history.next_part, host=host, **values)
        parts: dict[str, int] = {}
        messages = [self._message(held, here, run.scope, parts) for held in run.history.stored]
        order = {effect: at for at, effect in enumerate(run.effects)}
        for turn in run.turns:
            self._turn(run, turn, here, messages, parts, order)
        for effect in run.effects:
            if effect.turn is None:
                self._effect(run, effect, here, order)

    def _host(self, run: Run) -> Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
        registered = self._runs.host_state
        return {name: registered[name] for name in run.host if name in registered}

    def _message(self, held: HeldMessage, run: int, scope: str, parts: dict[str, int]) -> int:
        head = plain(held.head, f"{scope}: head")
        here = self._add("message", parent=run, role=str(held.role), head=head, remembered=held.remembered)
        for part in held.parts:
            self._part(part, here, scope, parts)
        return here

    def _part(self, held: Held, parent: int, scope: str, parts: dict[str, int]) -> None:
        part: Any = held.part
        if type(part) is ResultPart:
            part = ResultPart(part.call_id, (), part.name, part.provider_id)
        status = None if held.status is None else str(held.status)
        here = self._add("part", parent=parent, id=held.id, part=plain(part, f"{scope}: {held.id}"), status=status)
        parts[held.id] = here
        for item in held.items:
            self._part(item, here, scope, parts)

    def _turn(
        self,
        run: Run,
        turn: Turn,
        parent: int,
        messages: list[int],
        parts: Mapping[str, int],
        order: Mapping[PendingEffect, int],
    ) -> None:
        place = f"{run.scope}: turn {turn.number}"
        links = {
            name: None if at is None else messages[at]
            for name, at in (("assistant", turn.assistant), ("results", turn.results))
        }
        names = [name for name in TURN if name not in _OF_STREAM] if turn is _unseen(run) else TURN
        here = self._add("turn", parent=parent, **links, **plain_fields(turn, names, place))
        for edit in turn.edits:
            text = edit.text if isinstance(edit, TextEdit) else None
            self._add("edit", parent=here, target=parts.get(edit.target, edit.target), text=text)
        blocks = [] if turn.fold is None else turn.fold.blocks
        for invalid in turn.invalid:
            block = next((at for at, each in enumerate(blocks) if each is invalid.block), None)
            self._add("invalid_call", parent=here, block=block, **plain_fields(invalid, INVALID, place))
        for effect in run.effects:
            if effect.turn is turn:
                self._effect(run, effect, here, order)

    def _effect(self, run: Run, effect: PendingEffect, parent: int, order: Mapping[PendingEffect, int]) -> None:
        left_us = None
        if BACKOFF_OWNER in effect.holds and effect.release_at_us is not None:
            left_us = effect.release_at_us - self._runs.clock.now
        answered = effect.purpose is Purpose.REQUEST and effect.outcome is not None
        fields = [name for name in EFFECT if not (answered and name == "payload")]  # a request is sent once, and large
        slot = None
        if effect.purpose is Purpose.CALL and effect.turn is not None:
            slot = effect.turn.batch.index(effect)
        self._add(
            "effect",
            parent=parent,
            place=order[effect],
            asks=str(effect.kind),
            id=effect.id,
            on_behalf_of=effect.parent,
            held=effect.held,
            slot=slot,
            release_in_us=left_us,
            withheld=effect.dispatch is not None and effect.dispatch.withheld,
            **plain_fields(effect, fields, f"{run.scope}: {effect.key}"),
        )
