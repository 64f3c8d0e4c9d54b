"""A session around one tool engine: a clock, a bus with table-driven tool bodies, and readers for what happened."""

from __future__ import annotations

import json

import pytest

from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.events import KINDS
from bargein.pipelines.settings import EngineConfig
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.tools.spec import ToolKind, ToolSpec
from bargein.sim.effects.bus import EffectBus, Outcome, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

MS = 1_000
S = 1_000_000


class Body:
    """A tool body: lands ``result`` after ``latency`` us; lists give one item a run, their last one for the rest."""

    def __init__(self, rig, name, latency, result, progress):
        self.rig, self.name, self.latency, self.result, self.progress = rig, name, latency, result, progress
        self.count = 0

    def serve(self, effect):
        rig, number = self.rig, self.count
        self.count += 1
        rig.runs.append((rig.clock.now, self.name, effect.payload.arguments))
        rig.contexts.append(effect.payload.context)
        latency, result = pick(self.latency, number), pick(self.result, number)
        outcome = result if isinstance(result, Outcome) else Outcome(Status.OK, result)
        for at_us, text in self.progress:
            rig.clock.call_in(at_us, Order.DELIVERY, effect.deliver, text)
        if latency == "now":
            effect.land(outcome)
        elif latency is not None:
            rig.clock.call_in(latency, Order.DELIVERY, self.land, (effect, outcome))

        def stop(cause):
            rig.stops.append((rig.clock.now, self.name, cause))

        return stop

    def land(self, pair):
        effect, outcome = pair
        if effect.running:
            self.rig.ends.append((self.rig.clock.now, self.name))
        effect.land(outcome)


def pick(value, number):
    return value[min(number, len(value) - 1)] if isinstance(value, list) else value


class Rig:
    """One session; ``runs``, ``stops`` and ``ends`` list what the bodies saw."""

    def __init__(self, registry=None, tie_seed=None, session="s", **config):
        self.clock = Clock(tie_seed)
        self.bus = EffectBus(self.clock)
        self.timeline = Timeline(self.clock, KINDS)
        self.registry = registry or ToolRegistry()
        self.config = EngineConfig(**config)
        self.engine = ToolEngine(self.clock, self.bus, self.timeline, self.registry, session, self.config)
        self.runs, self.stops, self.ends, self.contexts = [], [], [], []
        self.tokens = {}

    # -- set-up -------------------------------------------------------------------------------------------

    def tool(self, name, kind, latency=100 * MS, result="done", progress=(), parameters=None, **spec):
        parameters = parameters or {"type": "object"}
        self.registry.register(ToolSpec(name, f"does {name}", parameters, kind, **spec))
        self.serve(name, latency, result, progress)
        return self

    def serve(self, name, latency=100 * MS, result="done", progress=()):
        self.bus.register(f"agent/tool:{name}#0", Body(self, name, latency, result, progress))

    def book(self, latency=100 * MS, result="BK-1001", **spec):
        return self.tool("book", ToolKind.SIDE_EFFECT, latency, result, **spec)

    def look(self, latency=100 * MS, result="sunny", **spec):
        return self.tool("look", ToolKind.READ_ONLY, latency, result, **spec)

    # -- acting -------------------------------------------------------------------------------------------

    def token(self, epoch):
        return self.tokens.setdefault(epoch, CancelToken(f"t{epoch}"))

    def barge_in(self, epoch):
        self.token(epoch).cancel(Cause.BARGE_IN)

    def execute(self, *calls, epoch=1):
        return self.engine.execute(calls, epoch, self.token(epoch))

    def speculate(self, *calls, epoch=1):
        return self.engine.speculate(calls, epoch, self.token(epoch))

    def commit(self, speculation):
        return self.engine.commit(speculation, self.token(speculation.epoch))

    def to(self, at_us):
        """Let everything up to and on the instant ``at_us`` happen, and stand there."""
        self.clock.run(until=at_us + 1)
        self.clock._now = at_us

    def delivered(self, *calls, epoch=1, after=100 * MS):
        """Execute, let ``after`` us pass, and deliver."""
        execution = self.execute(*calls, epoch=epoch)
        self.to(self.clock.now + after)
        execution.mark_delivered()
        return execution

    # -- reading ------------------------------------------------------------------------------------------

    def outcomes(self):
        return [record["outcome"] for record in self.timeline.of("tool.settled")]

    def outcomes_of(self, execution):
        """The outcomes of one response's calls, in the order they were settled."""
        ids = [slot.call.id for slot in execution.slots]
        return [record["outcome"] for record in self.timeline.of("tool.settled") if record["call"] in ids][-len(ids) :]

    def settled(self):
        return [(r["t"], r["call"], r["outcome"], r["duration_us"]) for r in self.timeline.of("tool.settled")]

    def stats(self):
        """The counters that moved."""
        stats = self.engine.stats()
        return {name: getattr(stats, name) for name in stats.__slots__ if getattr(stats, name)}

    def notes(self):
        return [message.text for message in self.engine.take_late_notes()]

    def ran(self, name):
        return [at_us for at_us, tool, _ in self.runs if tool == name]


def call(call_id, name="book", /, **arguments):
    return ToolCall(call_id, name, arguments)


def kinds(execution):
    """Per answer in issue order: the error kind, or ``ok``."""
    return [json.loads(m.result.content)["error"] if m.result.is_error else "ok" for m in execution.results]


def contents(execution):
    return [message.result.content for message in execution.results]


def body(execution, index=0):
    return json.loads(execution.results[index].result.content)


class Kit:
    """What the tests share."""

    MS, S, Rig = MS, S, Rig
    call, kinds, contents, body = staticmethod(call), staticmethod(kinds), staticmethod(contents), staticmethod(body)
    READ_ONLY, SIDE_EFFECT = ToolKind.READ_ONLY, ToolKind.SIDE_EFFECT

    @staticmethod
    def note(content, call_id="t1.0", tool="book"):
        return f"Result of an earlier call that had not finished in time: {tool} (call {call_id}): {content}"

    @staticmethod
    def failed(text):
        return Outcome(Status.FAILED, text)

    @staticmethod
    def crashed(text="RuntimeError"):
        return Outcome(Status.CRASHED, text)


@pytest.fixture(scope="session")
def kit():
    return Kit


@pytest.fixture
def rig():
    """A session with a booking (side effect) and a lookup (read-only), 100 ms each."""
    return Rig().book().look()
