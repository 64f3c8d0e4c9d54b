"""Runs that are recorded and replayed: one world with handlers, and one with a log in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bargein.pipelines.agent.hooks import Hooks
from bargein.pipelines.agent.links import Remembers, Retrieves, What
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_logs import follow, log_of_runs
from bargein.pipelines.agent.run_replay import ReplayedRuns, replay_runs
from bargein.pipelines.agent.run_settings import Agent
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.clock import Clock
from tests.pipelines.agent.run_kit import Model, Tool

MODEL = "golden/model:default"


def an_agent(**settings: Any) -> Agent:
    """Two tools, and everything else that an agent can be linked to when it is asked for."""
    agent = Agent.named("golden", **{"max_turns": 4, "policy_version": "v1", **settings})
    agent.grant("add", "Adds.", {"type": "object"})
    agent.grant("spare", "Spares.", {"type": "object"})
    return agent


def with_links(agent: Agent) -> Agent:
    agent.remembers = Remembers("golden/memory", "ann")
    agent.retrieves = (
        Retrieves("golden/retrieve:context#0", 2),
        Retrieves("golden/retrieve:tools#0", 1, What.TOOLS),
    )
    return agent


def read_again(log: EffectLog) -> EffectLog:
    """A log, once through its text and back."""
    return EffectLog.from_bytes(log.to_bytes(), "a.log")


class Recorded:
    """A world with handlers, whose runs are recorded."""

    def __init__(self, *script: Any, agent: Agent | None = None, value: Any = 42, delay_us: int = 0) -> None:
        self.agent = agent or an_agent()
        self.recorder = Recorder()
        self.clock = Clock()
        self.bus = LayeredBus(self.recorder.open(self.clock))
        self.hooks = Hooks()
        self.runs = AgentRuns(self.clock, self.bus, self.hooks)
        follow(self.runs, self.recorder)
        clock = self.recorder.clock
        self.model = Model(clock, *script)
        self.bus.serve(MODEL, self.model, descriptor=Descriptor(MODEL, "completion", "m-1", {"vision": True}))
        self.tools = {grant.name: Tool(clock, value, delay_us) for grant in self.agent.grants}
        for grant in self.agent.grants:
            self.bus.serve(grant.key, self.tools[grant.name])

    def go(self, **more: Any) -> Run:
        run = self.runs.spawn(self.agent, "hello", **more)
        self.clock.run()
        return run

    def log(self, **more: Any) -> EffectLog:
        return read_again(log_of_runs(self.runs, self.recorder, **more))


class Again:
    """A world without handlers, in which a log answers."""

    def __init__(self, log: EffectLog, agent: Agent | None = None, hook: Any = None, **more: Any) -> None:
        self.agent = agent or an_agent()
        self.world: ReplayedRuns = replay_runs(log, **more)
        self.clock, self.bus = self.world.clock, self.world.bus
        self.hooks = Hooks()
        self.runs = self.world.follow(AgentRuns(self.clock, self.bus, self.hooks))
        if hook is not None:
            self.hooks.on(*hook)

    def go(self, until: Callable[[], object] | None = None, **more: Any) -> Run:
        run = self.runs.spawn(self.agent, "hello", **more)
        self.clock.run()
        self.world.finish()
        return run
