"""Saving runs and going on from what was saved, in a world of its own; see ``run_kit`` and ``memory_kit``.

A `Program` builds the same world twice. `played` takes it through event by event and saves it after each; `resumed`
builds it again at one of these places, with handlers that answer from there on, and plays it to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from typing import Any

import pytest

from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.media_sources import Raw
from bargein.pipelines.agent.parts import ImagePart, RunMessage, TextPart, message_from_dict
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_restore import RestoreMode, load_runs
from bargein.pipelines.agent.run_state import Run
from bargein.pipelines.agent.saved_errors import CheckpointError
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import Effect
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.kernel.clock import Order
from tests.pipelines.agent.memory_kit import GOLDEN, RememberingWorld
from tests.pipelines.agent.run_kit import MS, S, Tool, World, call, calls, delta

MODEL = "golden/model:default"
PLAIN = RunPlain()
Entity = Mapping[str, Any]


@dataclass(frozen=True)
class Before:
    """What was there before a world: how often each key was asked and will not be asked again, what a memory has."""

    asked: Mapping[str, int] = field(default_factory=dict)
    stored: Sequence[RunMessage] | None = None

    def rest(self, *script: Any, key: str = MODEL) -> tuple[Any, ...]:
        """What a script has left."""
        return script[self.asked.get(key, 0) :]

    def old(self, *first: RunMessage) -> Sequence[RunMessage]:
        """What a memory has; ``first`` where nothing was before."""
        return first if self.stored is None else self.stored


@dataclass(frozen=True)
class Program:
    """A world and the runs in it.

    Attributes:
        build: makes the world; hooks look at the run alone, and tools at their request.
        loose: whether ids may be others afterwards, and records in another order: where a tool asks for something
            itself, which it does again when it is asked again, and where several runs overtake each other.
    """

    build: Callable[[Before], World]
    start: Callable[[World], object]
    loose: bool = False


@dataclass(frozen=True)
class Place:
    """Where a world was saved.

    Attributes:
        records, rows: how many effects and lines of the timeline there were.
        open: ids of the runs' own effects that were taken and not answered.
        streaming: of those, the ones that had brought something that was seen, with their keys.
    """

    raw: bytes
    at_us: int
    before: Before
    records: int
    rows: int
    open: tuple[int, ...]
    streaming: tuple[tuple[int, str], ...]


def reread(checkpoint: RunCheckpoint) -> RunCheckpoint:
    """The same through its document."""
    return RunCheckpoint.from_bytes(checkpoint.to_bytes())


def started(program: Program) -> World:
    world = program.build(Before())
    program.start(world)
    return world


def played(program: Program) -> tuple[World, list[Place]]:
    """The world at its end, and every place on the way: the first before anything has happened, then after every event,
    and within a step where a turn was committed or somebody looks at a run."""
    world = started(program)
    places = [place_of(world)]
    world.runs.watch_commits(lambda run, turn: places.append(place_of(world)))
    world.on(At.CHECKPOINT, lambda moment: places.append(place_of(world)))
    while world.clock.busy:
        world.clock.step()
        places.append(place_of(world))
    return world, places


def place_of(world: World) -> Place:
    log = world.bus.bus.log
    own = {effect.id for run in world.runs.live.values() for effect in run.effects}
    pending = [effect for effect in log if effect.running and effect.id in own]
    streamed = {run.scope for run in world.runs.live.values() if run.streamed}
    asked = Counter(effect.key for effect in log)
    asked.subtract(effect.key for effect in pending)
    stored = None
    if isinstance(world, RememberingWorld):
        stored = [message_from_dict(dict(each)) for each in world.store.load(GOLDEN)]
    return Place(
        save_runs(world.runs).to_bytes(),
        world.clock.now,
        Before(asked, stored),
        len(log),
        len(world.runs.timeline),
        tuple(sorted(effect.id for effect in pending)),
        tuple((effect.id, effect.key) for effect in pending if effect.items and effect.scope in streamed),
    )


def resumed(program: Program, place: Place, at_us: int = 0) -> World:
    """A world that went on from ``place``, from ``at_us`` on its own clock, to its end."""
    world = program.build(place.before)
    wait(world, at_us)
    load_runs(RunCheckpoint.from_bytes(place.raw), world.runs)
    world.clock.run()
    return world


def wait(world: World, at_us: int) -> None:
    """Let a world that has nothing to do wait until an instant."""
    world.clock.call_at(at_us, Order.WORK, lambda _: None)
    world.clock.run()
    assert world.clock.now == at_us


# -- what there was in the end --------------------------------------------------------------------------------------


def records(effects: Sequence[Effect], program: Program) -> list[tuple[Any, ...]]:
    """Effects as their records have them, without instants."""
    if not program.loose:
        return [(effect.id, effect.parent, *_record(effect)) for effect in effects]
    return sorted([(effect.parent is not None, *_record(effect)) for effect in effects], key=lambda each: each[3])


def _record(effect: Effect) -> tuple[Any, ...]:
    outcome = None if effect.outcome is None else (str(effect.outcome.status), PLAIN.value(effect.outcome))
    return (str(effect.kind), effect.key, effect.scope, PLAIN.request(effect), outcome)


def following(world: World, place: Place) -> list[Effect]:
    """What a world records that goes on from ``place``: what was open, once more, and then what followed."""
    log = world.bus.bus.log
    again = [effect for effect in log[: place.records] if effect.id in place.open]
    children = [effect for effect in log[: place.records] if _within(world, effect, place.open)]
    return [*again, *children, *log[place.records :]]


def _within(world: World, effect: Effect, ids: Sequence[int]) -> bool:
    """Whether it was asked for by one of those that are asked again."""
    parent = effect.parent
    while parent is not None:
        if parent in ids:
            return True
        parent = world.bus.bus.effect(parent).parent
    return False


def told(world: World, program: Program, first: int = 0) -> list[dict[str, Any]]:
    """The timeline from a line on, without instants and numbers."""
    lines = [world.runs.timeline[at] for at in range(first, len(world.runs.timeline))]
    read = [{name: value for name, value in line.items() if name not in ("t", "seq")} for line in lines]
    return sorted(read, key=lambda line: line["epoch"]) if program.loose else read


def state(world: World, program: Program) -> list[Any]:
    """Everything that can be saved of the runs; where ids may be others, what they have come to."""
    if program.loose:
        return [(run.seq, run.ending, run.messages, run.usage) for run in world.runs.live.values()]
    return list(save_runs(world.runs).entities)


def of_kind(checkpoint: RunCheckpoint, kind: str) -> list[Entity]:
    return [entity for entity in checkpoint.entities if entity["kind"] == kind]


# -- going on in another world --------------------------------------------------------------------------------------


def moved(world: World, *script: Any, **tools: Any) -> World:
    """Another world in which the runs of ``world`` stand as they stood.

    Args:
        script: what its model answers with.
        tools: of each tool that is asked there, by its name, the value; the others never answer.
    """
    other = World(*script)
    served = world.bus.bus.keys()
    for key in served:
        if key != MODEL:
            name = key.rpartition(":")[2].partition("#")[0]
            other.bus.serve(key, Tool(other.clock, tools.get(name)))
    load_runs(reread(save_runs(world.runs)), other.runs)
    return other


def only_run(world: World) -> Run:
    (run,) = world.runs.live.values()
    return run


def edited(checkpoint: RunCheckpoint, change: Callable[[list[Any]], object]) -> RunCheckpoint:
    """Another checkpoint, whose entities ``change`` has changed, read from a document that fits its check."""
    data = loads(checkpoint.to_bytes())
    change(data["entities"])
    return RunCheckpoint.from_bytes(sealed(data))


def sealed(data: dict[str, Any]) -> bytes:
    """A document of this data, with the check that fits it."""
    data.pop("check", None)
    text = written(data)
    return text[:-1] + b',"check":"' + content_digest(text).encode() + b'"}\n'


# -- refusals ---------------------------------------------------------------------------------------------------------


def full_world() -> World:
    """Three runs: one in the middle of its batch of three, one whose answer has streamed, one held after its turn."""
    world = World(
        calls(call("add", "a"), call("add", "b"), call("add", "c")), delta("So."), calls(call("add")), max_turns=9
    )
    world.tool("add", lambda request: 42, S)
    busy = world.runs.spawn(world.agent, (TextPart("Look."), ImagePart(Raw(b"picture"))))
    world.clock.run(MS)
    world.runs.spawn(world.agent, "Say so.", streamed=True)
    world.clock.run(S - MS)
    third = world.runs.spawn(world.agent, "Add.")
    world.runs.hold_after_tool_turn(third, "me", 1)
    world.clock.run(2 * S - MS + 1)
    assert [len(run.turns) for run in (busy, third)] == [1, 1]
    assert busy.turns[0].batch[0].outcome is not None
    assert third.turns[0].commit == 1
    return world


def destination() -> World:
    """A world with a run, a picture, a record and handlers of its own."""
    world = World(calls(call("add")), max_turns=2)
    world.tool("add", delay_us=S)
    world.runs.next_run = 10
    world.bus.bus.next_id = 100
    world.run((TextPart("mine"), ImagePart(Raw(b"mine"))), until_us=MS)
    return world


def refusal(
    world: World, checkpoint: RunCheckpoint, *handlers: Any, mode: RestoreMode = RestoreMode.STRICT
) -> CheckpointError:
    """Why a load is refused; everything of the destination is what it was."""
    bus = world.bus.bus

    def all_of_it() -> Any:
        served = [(key, each, world.bus.descriptor(key)) for key, each in bus._handlers.items()]
        numbers = bus.next_id, world.runs.next_run, len(world.runs.timeline), world.runs.assets.digests
        return save_runs(world.runs).to_bytes(), served, list(bus.log), numbers

    before = all_of_it()
    with pytest.raises(CheckpointError) as caught:
        load_runs(checkpoint, world.runs, handlers, mode)
    assert all_of_it() == before
    return caught.value


def said(problem: CheckpointError) -> str:
    """The name of the cause, and the sentence."""
    return f"{type(problem).__name__}: {problem}"
