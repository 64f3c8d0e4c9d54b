"""The programs of ``checkpoint_programs`` recorded, cut at their first tool turn, and gone on with over what is left.

A program builds its world itself, so what it builds on is put in the place of the plain bus for as long as it builds:
a recorder's, or that of a replay, on which all is served already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.parts import message_from_dict
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import follow, log_of_runs
from bargein.pipelines.agent.run_replay import ReplayedRuns
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import Handler
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of
from tests.pipelines.agent import checkpoint_steering, run_kit
from tests.pipelines.agent.checkpoint_kit import Before, Program
from tests.pipelines.agent.checkpoint_programs import PROGRAMS
from tests.pipelines.agent.memory_kit import MEMORY
from tests.pipelines.agent.run_kit import World

__all__ = ["PROGRAMS", "Cut", "before_of", "cut_at_first_turn", "endings", "recording", "replaying", "rows"]

assert checkpoint_steering.program  # it has entered its programs


@contextmanager
def _built_on(**names: Any) -> Iterator[None]:
    with patch.multiple(run_kit, **names):
        yield


def recording(program: Program, before: Before | None = None) -> tuple[World, Recorder]:
    """The program's world, recorded."""
    recorder = Recorder(_on_its_clock)
    with _built_on(EffectBus=recorder.open):
        world = program.build(before or Before())
    follow(world.runs, recorder)
    return world, recorder


def _on_its_clock(recorder: Recorder, key: str, handler: Handler) -> Handler:
    """A handler that was made with the world's clock takes the recorder's."""
    for name in ("clock", "_clock"):
        if hasattr(handler, name):
            setattr(handler, name, recorder.clock)
    return handler


def replaying(program: Program, replayed: ReplayedRuns) -> World:
    """The program's world, in which a log answers everything."""

    def served(bus: LayeredBus, key: str, *_: Any, **__: Any) -> None:
        assert bus.serves(key), f"{key} is in no log"

    names = {"Clock": lambda: replayed.clock, "EffectBus": lambda _: None, "LayeredBus": lambda _: replayed.bus}
    with _built_on(**names), patch.multiple(LayeredBus, serve=served, replace=served):
        world = program.build(Before())
    replayed.follow(world.runs)
    return world


@dataclass(frozen=True)
class Cut:
    """A program that was recorded to its end, and cut once its first tool turn was committed.

    Attributes:
        world: at its end; log: its log.
        checkpoint: where it was cut; rows: how many lines the timeline had there.
    """

    world: World
    log: EffectLog
    checkpoint: LogCheckpoint[RunCheckpoint]
    rows: int


def cut_at_first_turn(program: Program) -> Cut | None:
    """Its log and its checkpoint once through their bytes; ``None`` where no tool turn is committed."""
    world, recorder = recording(program)
    made: list[tuple[bytes, int]] = []

    def save(moment: Moment) -> None:
        if moment.run.committed and not made:
            so_far = log_of_runs(moment.runs, recorder)
            checkpoint = checkpoint_of(so_far, save_runs(moment.runs), moment.runs.bus.bus.next_id)
            made.append((checkpoint.to_bytes(RunCheckpoint.to_dict), len(world.runs.timeline)))

    world.on(At.CHECKPOINT, save)
    program.start(world)
    world.clock.run()
    log = EffectLog.from_bytes(log_of_runs(world.runs, recorder).to_bytes(), "whole.log")
    if not made:
        return None
    ((raw, lines),) = made
    return Cut(world, log, LogCheckpoint.from_bytes(raw, "a.json", RunCheckpoint.from_dict), lines)


def before_of(head: EffectLog) -> Before:
    """What was asked of whom before a cut, and what the memory had said, as the log's head has it."""
    loaded = [record.value for record in head.records if record.key == MEMORY and record.request["op"] == "load"]
    stored = [message_from_dict(each) for each in loaded[0]["value"]] if loaded else None
    return Before(Counter(record.key for record in head.records), stored)


def endings(world: World) -> list[Any]:
    """How the runs have ended."""
    return [run.ending for run in world.runs.live.values()]


def rows(world: World, first: int = 0) -> list[dict[str, Any]]:
    """The timeline from a line on, without the numbers of lines."""
    lines = [world.runs.timeline[at] for at in range(first, len(world.runs.timeline))]
    return [{name: value for name, value in line.items() if name != "seq"} for line in lines]
