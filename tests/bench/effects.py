"""What recording a session costs, and what a log, a replay, a checkpoint and a resume take, beside the session itself.

Recording is a share of the session; the rest is in milliseconds. The scenario is checked and compiled before, as it is
for every session but the first of a process. Left out: judging.
"""

from __future__ import annotations

from rich.console import Console

from bargein import sim
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.lab.checkpoints import When, checkpoint_of, run_to
from bargein.sim.lab.replays import record, replay
from bargein.sim.lab.resumes import Resumption
from bargein.sim.scenario.build import Plan
from tests.bench.measuring import numbers, side_by_side

__all__ = ["run"]

NAME = "question_during_a_slow_lookup"
PLACE = "tool.committed:1"


def run(console: Console) -> None:
    """One session, plain and recorded; then what can be done with what was kept of it."""
    plan = Plan(sim.load(NAME))
    log = record(plan)[1]
    raw = log.to_bytes()
    recorder = Recorder()
    opened = plan.open(recorder=recorder)
    run_to(opened, When.parse(PLACE))
    saved = checkpoint_of(plan, opened, recorder, PLACE)
    document = saved.to_bytes()

    def session(recorder: Recorder | None = None) -> None:
        plan.open(recorder=recorder).session.run()

    plain, recorded = side_by_side(session, lambda: session(Recorder()))
    made, read, again, taken, resumed = side_by_side(
        lambda: record(plan)[1].to_bytes(),
        lambda: EffectLog.from_bytes(raw, NAME),
        lambda: replay(log),
        lambda: checkpoint_of(plan, opened, recorder, PLACE).to_bytes(),
        lambda: Resumption(Checkpoint.from_bytes(document, NAME)).reach(),
    )
    table = numbers("what", "of which", "ms")
    rows = [
        ("the session", f"{sim.run(NAME).virtual_us / 1e6:.1f} virtual seconds", plain),
        ("the session, recorded", f"{100 * (recorded / plain - 1):+.0f} %", recorded),
        ("the session and its log as text", f"{len(raw)} bytes", made),
        ("a log read and checked", f"{len(log.records)} effects", read),
        ("a replay", "exchange mode, judged", again),
        ("a checkpoint as text", f"at {PLACE}, {len(document)} bytes", taken),
        ("a checkpoint read, its place reached and verified", f"after {saved.place.events} events", resumed),
    ]
    for what, more, seconds in rows:
        table.add_row(what, more, f"{seconds * 1e3:.2f}")
    console.print(table)
