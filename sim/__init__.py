"""bargein from Python: ``from bargein import sim; r = sim.run("barge_in_during_booking")``.

The names below are what users import; heavy parts are loaded when one is used.

A program may put layers around the handlers of its sessions: around a tool, a model or the memory. A layer sees what
is asked before anybody serves it, and may deny it, ask for something else, or have it wait for somebody's approval;
it sees what came of it before the agent does (run contract, section 9.6). Here a person approves a booking after two
seconds, and the caller may cut in meanwhile, in which case nothing was booked::

    from bargein import sim
    from bargein.sim.kernel.clock import Clock, Order

    class Approve(sim.Layer):
        name = "approve"

        def __init__(self, clock: Clock) -> None:
            self.clock = clock

        def before(self, ask: sim.Ask) -> sim.Suspend:
            approval = sim.Approval()
            self.clock.call_in(2_000_000, Order.DELIVERY, lambda _: approval.approve())
            return sim.Suspend(approval)

    def layers(clock: Clock) -> dict[str, list[sim.Layer]]:
        return {"book_table": [Approve(clock)]}

    sim.run("interrupted_booking", layers=layers)
    sim.explore("interrupted_booking", layers=layers)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bargein.models.python_tools import Progress, ToolCallContext, ToolError, Tools
    from bargein.sim.effects.bus import Outcome, Status
    from bargein.sim.effects.checkpoint import Checkpoint
    from bargein.sim.effects.decisions import Approval, Ask, Deny, Later, Layer, Patch, Suspend
    from bargein.sim.effects.log import EffectLog
    from bargein.sim.lab.findings import Exploration
    from bargein.sim.lab.replays import Replayed
    from bargein.sim.lab.result import Result
    from bargein.sim.lab.resumes import Resumed
    from bargein.sim.lab.sweep.table import Table
    from bargein.sim.scenario.layering import MakeLayers
    from bargein.sim.scenario.model import Scenario

__all__ = [
    "Approval",
    "Ask",
    "Deny",
    "Later",
    "Layer",
    "Outcome",
    "Patch",
    "Progress",
    "Status",
    "Suspend",
    "ToolCallContext",
    "ToolError",
    "Tools",
    "explore",
    "load",
    "main",
    "replay",
    "resume",
    "run",
    "scenarios",
    "sweep",
]

_WRITTEN_WITH = {
    **dict.fromkeys(("Progress", "ToolCallContext", "ToolError", "Tools"), "bargein.models.python_tools"),
    **dict.fromkeys(("Approval", "Ask", "Deny", "Later", "Layer", "Patch", "Suspend"), "bargein.sim.effects.decisions"),
    **dict.fromkeys(("Outcome", "Status"), "bargein.sim.effects.bus"),
}
"""Where the names are from that tools and layers are written with."""


def __getattr__(name: str) -> Any:
    """What tools and layers are written with, loaded when it is first used."""
    if name not in _WRITTEN_WITH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WRITTEN_WITH[name]), name)


def load(scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario, *, tools: Tools | None = None) -> Scenario:
    """A scenario by built-in name, from a file, or from plain data with a file's keys; a scenario is returned as it is.

    Args:
        tools: tools that the program brings, so that the scenario may call them.

    Raises:
        bargein.sim.scenario.places.ScenarioError: it cannot be used; one sentence for each thing wrong.
    """
    from bargein.sim.scenario.loading import load as load_file
    from bargein.sim.scenario.model import Scenario

    if isinstance(scenario, Scenario):
        return scenario if tools is None else scenario.with_tools(tools.specs)
    specs = () if tools is None else tools.specs
    if isinstance(scenario, Mapping):
        return Scenario.from_dict(scenario, tools=specs)
    return load_file(os.fspath(scenario), tools=specs)


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    seed: int | None = None,
    tie_seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    record: str | os.PathLike[str] | None = None,
    checkpoint_at: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Simulate one session and return what came of it.

    Args:
        scenario: a built-in's name, a file, plain data, or a scenario.
        tools: the program's own tools; they replace the scenario's of the same name and add to the others.
        layers: called with the session's clock, gives the layers of the session: a list of `Layer`, the outermost
            first, by handler key (``agent/tool:book_table#0``, ``agent/model:default``, ``agent/memory``) or by a
            tool's name. It is called once for each session, so that no two share a layer's state.
        seed: of the random streams; the scenario's own where none is given.
        tie_seed: permutes what falls on the same instant, reproducibly.
        set: values to change first, by dotted path: ``{"agent.filler.delay": "800ms"}``.
        record: a file for the session's effect log, which `replay` runs again.
        checkpoint_at: where to save the session on its way: right after an event (``"tool.committed:2"``, or any kind
            of event), or before an instant (``"4.5s"``).
        checkpoint: the file for it, which `resume` goes on from; the two go together.

    Raises:
        bargein.sim.scenario.places.ScenarioError: the scenario, a seed or the layers cannot be used, or the place does
            not come.
        OSError: a file cannot be written.
    """
    from bargein.sim.scenario.build import Plan

    _check_seeds(seed=seed, tie_seed=tie_seed)
    plan = Plan(_changed(load(scenario, tools=tools), set), tools, layers)
    if record is None and checkpoint_at is None and checkpoint is None:
        from bargein.sim.lab.session import run_plan

        return run_plan(plan, seed, tie_seed)
    from bargein.sim.lab.checkpoints import run_and_save

    return run_and_save(plan, seed, tie_seed, record=record, checkpoint_at=checkpoint_at, checkpoint=checkpoint)


def replay(
    log: str | os.PathLike[str] | EffectLog,
    *,
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario | None = None,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    set: Mapping[str, Any] | None = None,
    visible: bool = False,
) -> Replayed:
    """Run a recorded session again, its effects answered by its log alone: no model and no tool is called.

    Args:
        log: a file that ``run(record=...)`` wrote, or what was read from one.
        scenario: what the program is now, to prove that it is still the recorded one; the log's own unless given.
        tools: likewise, the program's own tools.
        layers: the layers it was recorded with, as `run` takes them; they are the program's, stand around what the log
            answers, and decide again. Before the session they are made once more, to be compared with the log.
        set: values to change in ``scenario`` first.
        visible: also demand that everything became visible on its recorded instant, in its recorded batches.

    Returns:
        ``result``, as of a run; ``equal``, whether the timeline is the recorded one; ``to_json()``.

    Raises:
        bargein.sim.effects.documents.DocumentError: the log cannot be used.
        bargein.sim.effects.replay.ReplayRefused: the program is not the recorded one, or does something else.
        bargein.sim.scenario.places.ScenarioError: ``scenario`` cannot be used.
    """
    from pathlib import Path

    from bargein.sim.effects.log import EffectLog
    from bargein.sim.lab.replays import read_log
    from bargein.sim.lab.replays import replay as run_again

    read = log if isinstance(log, EffectLog) else read_log(log)
    folder = None if isinstance(log, EffectLog) else Path(log).resolve().parent
    now = None
    if scenario is not None:
        now = _changed(load(scenario, tools=tools), set)
    return run_again(read, scenario=now, tools=tools, layers=layers, visible=visible, folder=folder)


def resume(
    checkpoint: str | os.PathLike[str] | Checkpoint,
    *,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    replace: bool = False,
    set: Mapping[str, Any] | None = None,
    record: str | os.PathLike[str] | None = None,
) -> Resumed:
    """Go on from a checkpoint to the end of the session; nothing that was done before is done again.

    What comes after the place is done now: where the session that was saved went on to its end as well, a memory that
    is kept (``memory.keep``) gets what was said from there on a second time.

    Args:
        checkpoint: a file that ``run(checkpoint=...)`` wrote, or what was read from one.
        tools: the program's own tools, where it has any, declared as they were when it was saved.
        layers: the layers it was saved with, as `run` takes them. Up to the place they decide again, as they did.
        replace: from there on take ``tools`` as they are now: other code, and another description, schema, timeout or
            filler delay under the same name; requests tell of it and calls run it. A tool that is missing, one too
            many, and another kind, repeatability or confirmation are refused.
        set: values to change from there on, by dotted path; what cannot be changed in the middle of a call is refused.
        record: a file for the effect log of the whole session; not together with ``set`` or ``replace``.

    Returns:
        ``result``, as of a run of the whole session; ``place``; ``to_json()``.

    Raises:
        bargein.sim.effects.documents.DocumentError: the checkpoint cannot be used.
        bargein.sim.effects.replay.ReplayRefused: it is another program's, or nobody can go on from there.
        bargein.sim.scenario.places.ScenarioError: a value cannot be changed.
        OSError: the log cannot be written.
    """
    from pathlib import Path

    from bargein.sim.effects.checkpoint import Checkpoint
    from bargein.sim.lab.checkpoints import read_checkpoint
    from bargein.sim.lab.resumes import resume as go_on

    read = checkpoint if isinstance(checkpoint, Checkpoint) else read_checkpoint(checkpoint)
    folder = None if isinstance(checkpoint, Checkpoint) else Path(checkpoint).resolve().parent
    return go_on(read, tools=tools, layers=layers, replace=replace, set=set, folder=folder, record=record)


def explore(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    set: Mapping[str, Any] | None = None,
    workers: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Exploration:
    """Run a scenario again and again with the caller cutting in at every instant that matters.

    Args:
        scenario: a built-in's name, a file, plain data, or a scenario.
        tools: the program's own tools.
        layers: those of each session, as `run` takes them.
        set: values to change first, by dotted path.
        workers: processes to share the runs.
        out: a folder; the smallest scenario that still fails of each finding is saved there.
        progress: told of runs done and planned.
        options: ``level``, ``depth``, ``ties``, ``instant_tools``, ``hung_tools``, ``hang_up``, ``grid_us``,
            ``budget`` and ``seed``, as ``bargein.sim.lab.explore.Options`` has them.

    Returns:
        What was tried and what broke: ``ok``, ``findings``, ``to_json()``.

    Raises:
        bargein.sim.scenario.places.ScenarioError: the scenario or an option cannot be used.
        OSError: a failing scenario cannot be saved.
    """
    from pathlib import Path

    from bargein.sim.lab.explore import Options
    from bargein.sim.lab.explore import explore as run_all

    chosen = _changed(load(scenario, tools=tools), set)
    folder = None if out is None else Path(out)
    return run_all(
        chosen, Options(**options), tools=tools, layers=layers, workers=workers, out=folder, progress=progress
    )


def sweep(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    vary: Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 100,
    *,
    metrics: Sequence[str] | None = None,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    set: Mapping[str, Any] | None = None,
    workers: int | None = None,
    backend: str | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Run a scenario with its values varied, over the same callers for every variant.

    Args:
        scenario: a built-in's name, a file, plain data, or a scenario.
        vary: by dotted path a list of values, ``{from: , to: , steps: }``, or one value or latency distribution.
        seeds: this many, from 0, or these.
        metrics: what to measure; every single number unless given.
        tools: the program's own tools.
        layers: those of each session, as `run` takes them.
        set: values to change first, by dotted path.
        workers: sessions are shared among so many processes.
        backend: of joblib, such as ``"dask"``; what ``joblib.parallel_config`` says is followed unless given.
        out: a ``.csv`` or ``.parquet`` file, written whole; a sweep that was stopped goes on from there.
        progress: told of sessions done and in all.

    Returns:
        A table with a row for each session: ``to_pandas()``, ``to_csv()``, ``to_parquet()``, ``column()``.

    Raises:
        bargein.sim.scenario.places.ScenarioError: something given cannot be used, or the result cannot be kept.
    """
    from pathlib import Path

    from bargein.sim.lab.sweep.run import sweep as run_all

    return run_all(
        _changed(load(scenario, tools=tools), set),
        vary,
        seeds,
        metrics=metrics,
        tools=tools,
        layers=layers,
        workers=workers,
        backend=backend,
        out=None if out is None else Path(out),
        progress=progress,
    )


def _changed(scenario: Scenario, values: Mapping[str, Any] | None) -> Scenario:
    for path, value in (values or {}).items():
        scenario = scenario.with_value(path, value)
    return scenario


def _check_seeds(**seeds: object) -> None:
    """A log and a checkpoint hold them, and another number that looks like one would be another call."""
    from bargein.sim.scenario.places import ScenarioError

    for name, seed in seeds.items():
        if seed is not None and type(seed) is not int:
            raise ScenarioError(f"{name}: found {seed!r}; accepted is a whole number")


def scenarios() -> tuple[str, ...]:
    """The names of the built-in scenarios."""
    from bargein.sim.scenario.loading import builtin_names

    return builtin_names()


def main(tools: Tools | None = None, arguments: Sequence[str] | None = None) -> None:
    """The ``bargein`` command as part of a program that brings its own tools; it exits as the command does.

    Args:
        tools: offered to every scenario that is run or checked, unless ``--tools`` names others.
        arguments: of the command line; the program's own unless given.
    """
    from bargein.sim.cli import main as command

    command.main(args=None if arguments is None else list(arguments), prog_name="bargein", obj=tools)
