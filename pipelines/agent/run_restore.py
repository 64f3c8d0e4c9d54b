"""Going on from saved runs: the whole checkpoint is validated, handlers are settled, and only then is anything touched.

Whoever resumes gives handlers by key. In `RestoreMode.STRICT` each has to be, as far as its descriptor says, the one
that was saved; in `RestoreMode.REPLACE` the host accepts another of the same family. A key that is not given keeps the
handler that serves it already. Then the runs stand in the destination as they stood: nothing is told, no hook is
called, and an effect that was taken and not answered goes out again under its id with the next step (run contract,
section 13). An answer that an outside system had given meanwhile is not known here; whoever keeps such a system makes
a second request of the same id harmless.

Left out: what the entities say (``restored_graph``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.restored_graph import RestoredGraph
from bargein.pipelines.agent.retries import arm_release
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_state import PendingEffect, Run
from bargein.pipelines.agent.saved_errors import (
    DescriptorMismatch,
    DuplicateHandler,
    ExtraneousHandler,
    IdTaken,
    MissingContract,
    MissingHandler,
    PendingVerdict,
    RunTaken,
    UnfinishedStream,
)
from bargein.sim.effects.bus import LAST_ID, Handler
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.layers import Layer
from bargein.sim.effects.serving import capacity_of

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["Loaded", "RestoreMode", "Supplied", "load_runs", "validate_runs"]


class RestoreMode(StrEnum):
    """How much a handler may differ from the one that was saved."""

    STRICT = "strict"
    """In nothing that its descriptor says."""
    REPLACE = "replace"
    """In everything but its family."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """A handler that is given for a key.

    Attributes:
        layers: those around it, the outermost first.
        capacity: how many it serves at one time, any number where ``None``; a key that is served already keeps its own.
        descriptor: what is known of it, under whatever key; what the key says unless given.

    Raises:
        ValueError: the capacity is none.
    """

    handler: Handler
    layers: tuple[Layer, ...] = ()
    capacity: int | None = None
    descriptor: Descriptor | None = None

    def __post_init__(self) -> None:
        capacity_of(False, self.capacity)

    def described(self, key: str) -> Descriptor:
        """What is known of it once it is installed under ``key``."""
        known = Descriptor.of_key(key) if self.descriptor is None else self.descriptor
        return known.under(key, tuple([layer.name for layer in self.layers]))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load has made.

    Attributes:
        runs: the runs, in order.
        objects: what was made of each entity, by its position in the document; handlers make none.
        kinds: of each entity.
    """

    runs: tuple[Run, ...]
    objects: tuple[Any, ...]
    kinds: tuple[str, ...]

    def of(self, kind: str) -> dict[int, Any]:
        """What was made of the entities of one kind, by position."""
        return {at: self.objects[at] for at, each in enumerate(self.kinds) if each == kind}


def validate_runs(checkpoint: RunCheckpoint, runs: AgentRuns) -> None:
    """See that a checkpoint could be loaded here, before anything is built for it.

    Raises:
        CheckpointError: it could not, whatever handlers are given; the class says why.
    """
    _scratch(checkpoint, runs)


def load_runs(
    checkpoint: RunCheckpoint,
    runs: AgentRuns,
    handlers: Iterable[tuple[str, Handler | Supplied]] = (),
    mode: RestoreMode = RestoreMode.STRICT,
) -> Loaded:
    """Have saved runs go on among those that are there; either all of it happens or nothing.

    Args:
        handlers: who serves which key from now on; what is being served stays with whom it is.

    Raises:
        CheckpointError: it cannot be; the class says why.
        ValueError: there is no such mode.
    """
    graph = _scratch(checkpoint, runs)
    given = _settled(checkpoint, runs, list(handlers), RestoreMode(mode))
    _install(runs, given)
    runs.assets.adopt(graph.assets)
    for run in graph.runs:
        run.history.keep_in(runs.assets)
        runs.live[run.seq] = run
    runs.live = dict(sorted(runs.live.items()))
    runs.next_run = max(runs.next_run, checkpoint.next_run)
    ids = [effect.reserved + 1 for effect in graph.effects if effect.reserved is not None]
    runs.bus.bus.next_id = min(LAST_ID, max([runs.bus.bus.next_id, checkpoint.next_id, *ids]))
    for effect, left_us in graph.waits_us.items():
        effect.release_at_us = runs.clock.now + left_us
        arm_release(runs, effect)
    runs.ask_again([(run, effect) for run in graph.runs for effect in run.effects])
    kinds = tuple([entity["kind"] for entity in checkpoint.entities])
    return Loaded(tuple(graph.runs), tuple(graph.objects), kinds)


def _scratch(checkpoint: RunCheckpoint, runs: AgentRuns) -> RestoredGraph:
    """The runs, read in a place of their own, and seen to be fit to go on."""
    graph = RestoredGraph(checkpoint, runs.assets.copy(), runs.host_state, runs.wake)
    contracts = checkpoint.requirements()
    name = checkpoint.name
    for run in graph.runs:
        if run.seq in runs.live or run.seq in runs.queued:
            raise RunTaken(f"{name}: run {run.seq} is here already; accepted is a session without a run of this number")
    issued: set[int | None] = {effect.id for effect in runs.bus.bus.log}
    issued |= {effect.id for run in runs.live.values() for effect in run.effects}
    for effect in graph.effects:
        if effect.outcome is None:
            _check_unfinished(effect, contracts, name)
            if effect in graph.withheld:
                raise PendingVerdict(
                    f"{name}: {_told(effect)} was answered, and a layer was still over its verdict; accepted is a "
                    "place before it goes out or after the verdict"
                )
            if effect.reserved is not None and effect.reserved in issued:
                raise IdTaken(f"{name}: {_told(effect)} has to go out again, and another effect here has its id")
    return graph


def _check_unfinished(effect: PendingEffect, contracts: Mapping[str, Descriptor], name: str) -> None:
    if effect.key not in contracts:
        raise MissingContract(f"{name}: {_told(effect)} is unfinished, and no handler of its key was saved with it")
    turn = effect.turn
    if turn is not None and turn.request is effect and (turn.items or turn.inbox):
        raise UnfinishedStream(
            f"{name}: {_told(effect)} is in the middle of its stream, after {len(turn.items) + len(turn.inbox)} items, "
            "and there is no cursor to go on from; accepted is a place where no answer is streaming"
        )


def _told(effect: PendingEffect) -> str:
    return f"effect {effect.reserved} ({effect.key})" if effect.reserved is not None else f"an effect for {effect.key}"


# -- handlers -------------------------------------------------------------------------------------------------


def _settled(
    checkpoint: RunCheckpoint, runs: AgentRuns, handlers: list[tuple[str, Handler | Supplied]], mode: RestoreMode
) -> dict[str, Supplied]:
    """Who is to be installed where; every saved handler has somebody to stand for it."""
    required = checkpoint.requirements()
    given: dict[str, Supplied] = {}
    for key, handler in handlers:
        if key in given:
            raise DuplicateHandler(f"{key}: it was given two handlers; accepted is one")
        if key not in required:
            accepted = ", ".join(required) or "nothing"
            raise ExtraneousHandler(f"{key}: nothing that was saved needs it; accepted is {accepted}")
        given[key] = handler if isinstance(handler, Supplied) else Supplied(handler)
    for key, saved in required.items():
        if key not in given and not runs.bus.serves(key):
            raise MissingHandler(f"{key}: nobody serves it, and no handler was given; accepted is one of either")
        present = given[key].described(key) if key in given else runs.bus.descriptor(key)
        _compare(saved, present, mode)
    return given


def _compare(saved: Descriptor, present: Descriptor, mode: RestoreMode) -> None:
    for name in saved.differences(present):
        if mode is RestoreMode.STRICT or name == "family":
            before, now = getattr(saved, name), getattr(present, name)
            raise DescriptorMismatch(f"{saved.key}: its {name} was {before!r} when it was saved, and is {now!r}")


def _install(runs: AgentRuns, given: Mapping[str, Supplied]) -> None:
    bus = runs.bus
    for key, each in given.items():
        if bus.serves(key):
            bus.replace(key, each.handler, each.described(key), each.layers)
        else:
            bus.serve(key, each.handler, *each.layers, capacity=each.capacity, descriptor=each.described(key))
