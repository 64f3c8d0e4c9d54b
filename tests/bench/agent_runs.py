"""What an agent run costs by itself: plain and recorded, replayed from its log, saved in the middle and gone on from.

The run asks its model eight times and calls a tool after each answer but the last. Left out: voice (``sessions``).
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from bargein.pipelines.agent.answers import Answer
from bargein.pipelines.agent.parts import CallPart, TextPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import follow, log_of_runs
from bargein.pipelines.agent.run_replay import replay_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import Effect, EffectBus, Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.clock import Clock, Order
from tests.bench.measuring import numbers, side_by_side

__all__ = ["run"]

ROUNDS = 8
LATENCY_US = 300_000


@dataclass
class Scripted:
    """Answers in turn, each after a while (``effects.Handler``)."""

    clock: Clock
    asked: int = 0

    def serve(self, effect: Effect) -> None:
        self.asked += 1
        call = CallPart(f"c{self.asked}", "look_up", {"place": "Bern", "number": self.asked}, "")
        last = self.asked == ROUNDS
        said = Answer((TextPart("It is done."),)) if last else Answer((TextPart("A moment."), call), "tool_calls")
        value = said if effect.key.startswith("bench/model") else {"area": self.asked}
        self.clock.call_in(LATENCY_US, Order.DELIVERY, effect.land, Outcome(Status.OK, value))


def agent() -> Agent:
    """Who runs."""
    made = Agent.named("bench", preamble="Look things up.", max_turns=ROUNDS)
    made.grant("look_up", "Looks a place up", {"type": "object", "properties": {"place": {}, "number": {}}})
    return made


def world(recorder: Recorder | None = None) -> AgentRuns:
    """A clock, a bus that serves the agent, and no run yet."""
    clock = Clock()
    bus = LayeredBus(EffectBus(clock) if recorder is None else recorder.open(clock))
    handlers = clock if recorder is None else recorder.clock
    bus.serve("bench/model:default", Scripted(handlers))
    bus.serve("bench/tool:look_up#0", Scripted(handlers))
    runs = AgentRuns(clock, bus)
    if recorder is not None:
        follow(runs, recorder)
    return runs


def whole(recorder: Recorder | None = None) -> AgentRuns:
    """One run from its prompt to its answer."""
    runs = world(recorder)
    runs.spawn(agent(), "Where are we?")
    runs.clock.run()
    return runs


def run(console: Console) -> None:
    """One run, and what can be done with what was kept of it."""
    recorder = Recorder()
    log = log_of_runs(whole(recorder), recorder)
    halfway = world()
    halfway.spawn(agent(), "Where are we?")
    halfway.clock.run(until=ROUNDS * LATENCY_US)
    document = save_runs(halfway).to_bytes()

    def again() -> None:
        replaying = replay_runs(log, visible=True)
        runs = replaying.follow(AgentRuns(replaying.clock, replaying.bus))
        runs.spawn(agent(), "Where are we?")
        replaying.clock.run()
        replaying.finish()

    plain, recorded = side_by_side(whole, lambda: whole(Recorder()))
    made, replayed, saved, loaded = side_by_side(
        lambda: log_of_runs(whole(tape := Recorder()), tape).to_bytes(),
        again,
        lambda: save_runs(halfway).to_bytes(),
        lambda: load_runs(RunCheckpoint.from_bytes(document), world()),
    )
    table = numbers("what", "of which", "ms")
    for what, more, seconds in (
        ("the run", f"{ROUNDS} requests, {ROUNDS - 1} tool calls", plain),
        ("the run, recorded", f"{100 * (recorded / plain - 1):+.0f} %", recorded),
        ("the run and its log as text", f"{len(log.records)} effects", made),
        ("a replay", "policy-visible mode", replayed),
        ("a checkpoint as text", f"halfway, {len(document)} bytes", saved),
        ("a checkpoint read, checked and loaded", "with its handlers in place", loaded),
    ):
        table.add_row(what, more, f"{seconds * 1e3:.2f}")
    console.print(table)
