"""Logs of agent runs: what was recorded on their bus, under a header that says which programs they were.

`follow` has a recorder know what only the run loop knows: where its steps lie, which outcomes a hook put in the place
of those that handlers still owed, and which programs the runs were that are taken out before the log is made. Then
`log_of_runs` makes the log, at any time (run contract, sections 6 and 10). Left out: a voice session's logs, which name
a scenario (``sim.lab.replays``), and replaying (``run_replay``).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_identity import handlers_of, identity_of, tools_of
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.log import FORMAT, START, EffectLog, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.tails import start_of

__all__ = ["follow", "log_of_runs"]

PACKAGE = "bargein"


def follow(runs: AgentRuns, recorder: Recorder) -> None:
    """Keep a recorder informed about these runs from now on.

    Call it before anything is spawned. Without it what one instant brings to several steps of a run is one batch in the
    log, and outcomes that a hook set in advance are not told from those of handlers.
    """

    known: dict[int, None] = {}

    def step(moment: Moment) -> None:
        for effect in moment.run.effects:
            served = None if effect.dispatch is None else effect.dispatch.effect
            if effect.outcome is not None and served is not None and served.running and served.id not in known:
                known[served.id] = None
                recorder.overruled(served)
        recorder.passed()

    def gone(run: Run) -> None:
        recorder.programs[run.scope] = identity_of(run)

    def ended(moment: Moment) -> None:
        step(moment)
        gone(moment.run)

    runs.hooks.on(At.CHECKPOINT, step)
    runs.hooks.on(At.RUN_ENDED, ended)
    runs.watch_removals(gone)


def log_of_runs(
    runs: AgentRuns,
    recorder: Recorder,
    *,
    hooks: Sequence[str] = (),
    layers: Sequence[str] = (),
    seed: int = 0,
    name: str = "the log",
) -> EffectLog:
    """The log of everything so far; effects without an outcome are in it as they stand.

    Args:
        hooks, layers: what the program declares of itself, by name; nothing unless given.
        seed: of the world, for whoever builds it again.
        name: how the user calls the log, for errors.

    Raises:
        TypeError, ValueError: something that went over the bus has no plain form.
    """
    records = sorted(recorder.records(RunPlain()), key=lambda record: record.id)
    programs = {**recorder.programs, **{run.scope: identity_of(run) for run in runs.live.values()}}
    ended = runs.timeline.of("agent.run_ended")
    required: dict[str, str] = {}
    for program in programs.values():
        required.update(program["required"])
    header: dict[str, Any] = {
        "bargein_log": FORMAT,
        "version": version(PACKAGE),
        "scenario": {},
        "recordings": {},
        "seed": seed,
        "tie_seed": runs.clock.tie_seed,
        "settings": {},
        "tools": tools_of(runs),
        "handlers": handlers_of(runs),
        "required": required,
        "signature": {record.key: record.kind for record in records},
        "hooks": [*hooks, *layers],
        "programs": dict(sorted(programs.items(), key=lambda each: int(each[0].removeprefix("r")))),
        "deliveries": batches_of(recorder.deliveries),
        "result": {
            "digest": runs.timeline.digest(),
            "endings": {each["scope"]: [each["ending"], each["detail"]] for each in ended},
        },
    }
    start = start_of([record.id for record in records], runs.bus.bus.next_id)
    return EffectLog(header if start == [0] else {**header, START: start}, records, name)
