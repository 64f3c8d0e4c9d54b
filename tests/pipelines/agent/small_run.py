"""A run of a few lines that calls memory, retrieval and routes at their moments, and a desk to run it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bargein.models.memory import MemoryHandler, MemoryStore, Store
from bargein.pipelines.agent.memory import Form, History, Phase, Remembers, RunMemory
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, message_from_dict, tool_answer, user
from bargein.pipelines.agent.retrieval import Documents, Grant, Retrieved, Retrieves, RoundRetrieval, offered
from bargein.pipelines.agent.routes import ModelRoute, Routes
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.reports import Report
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.streams import Stream

MEMORY = "golden/memory"
MODEL = "golden/model:default"
FORM: Form[Message] = Form(Message.to_dict, message_from_dict)  # type: ignore[arg-type]
SHORT = {"Load": "Load", "Append": "Append", "Clear": "Clear", "Retrieve": "R"}

Select = Callable[[int, ModelRoute], object]


def calls(*names: str) -> Message:
    """An assistant message that asks for tools."""
    return assistant("", tuple(ToolCall(f"t1.{at}", name, {}) for at, name in enumerate(names)))


class Delayed:
    """Answers its n-th effect with the n-th outcome, after a while."""

    def __init__(self, clock: Clock, outcomes: Sequence[Outcome], delay_us: int = 0) -> None:
        self.clock, self.outcomes, self.delay_us = clock, list(outcomes), delay_us
        self.seen: list[Effect] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        self.seen.append(effect)
        timer = self.clock.call_in(self.delay_us, Order.DELIVERY, effect.land, self.outcomes[len(self.seen) - 1])
        return lambda _: timer.cancel()


class Desk:
    """A clock, a bus with layers, a model with its answers, and a memory."""

    def __init__(self, *answers: Message, store: Store | None = None, **memory: Any) -> None:
        self.clock = Clock()
        self.bus = LayeredBus(EffectBus(self.clock))
        self.store = store or MemoryStore()
        self.model = self.serve(MODEL, [Outcome(Status.OK, answer) for answer in answers])
        self.bus.serve(MEMORY, MemoryHandler(self.clock, self.store, Stream(0, "memory"), **memory))

    def serve(self, key: str, outcomes: Sequence[Outcome], delay_us: int = 0) -> Delayed:
        handler = Delayed(self.clock, outcomes, delay_us)
        self.bus.serve(key, handler)
        return handler

    @property
    def log(self) -> list[Effect]:
        return self.bus.bus.log

    @property
    def records(self) -> list[str]:
        """The log in short: C, T, R, and memory operations by name."""
        kinds = {EffectKind.COMPLETION: "C", EffectKind.TOOL_CALL: "T"}
        return [kinds.get(each.kind) or SHORT[type(each.payload).__name__] for each in self.log]

    def run(self, prompt: str = "Hi.", **more: Any) -> SmallRun:
        """A run from its beginning to its end."""
        run = SmallRun(self, prompt, **more)
        run.start()
        self.clock.run()
        return run


class SmallRun:
    """One run: loads, looks up, routes, asks, has tools run, and appends."""

    def __init__(
        self,
        desk: Desk,
        prompt: str,
        *,
        given: Sequence[Message] = (),
        remembers: Remembers | None = None,
        phase: Phase = Phase.IDLE,
        history: History[Message] | None = None,
        links: Sequence[Retrieves] = (),
        documents: Documents | None = None,
        grants: Sequence[Grant] = (),
        routes: Routes | None = None,
        select: Select | None = None,
        on_ready: Callable[[SmallRun], object] | None = None,
        on_settled: Callable[[SmallRun], object] | None = None,
    ) -> None:
        self.desk, self.prompt, self.given = desk, prompt, given
        self.history = History[Message]() if history is None else history
        remembers = remembers or Remembers(MEMORY, "golden-conversation")
        self.memory = RunMemory(desk.bus, remembers, "t1", self.history, FORM, phase)
        self.links, self.grants = links, grants
        self.documents = documents or Documents()
        self.route = ModelRoute(routes or Routes(MODEL))
        self.select, self.on_ready, self.on_settled = select, on_ready, on_settled
        self.round = 0
        self.ending = ""
        self.failure: Report | None = None
        self.retrieval: RoundRetrieval | None = None

    def start(self) -> None:
        for message in (*self.given, user(self.prompt)):
            self.history.add(message)
        self.go_on()

    def go_on(self) -> None:
        self.memory.begin(self._ready, self._failed, brought_history=bool(self.given))

    def _failed(self, report: Report) -> None:
        self.ending, self.failure = "failed", report

    def _ready(self) -> None:
        if self.on_ready is not None:
            self.on_ready(self)
        self._next_round()

    def _next_round(self) -> None:
        self.round += 1
        self.retrieval = RoundRetrieval(self.desk.bus, self.links, "t1", self.documents)
        self.retrieval.begin(self.history.messages, self._attached, self._failed)

    def _attached(self, retrieved: Retrieved) -> None:
        self.retrieved = retrieved
        if self.select is not None:
            self.select(self.round, self.route)
        request = (self.history.messages, retrieved.documents, offered(retrieved.tools, self.grants))
        key = self.route.select()
        self.desk.bus.dispatch(EffectKind.COMPLETION, key, request, scope="t1", on_landed=self._answered)

    def _answered(self, dispatch: Any) -> None:
        message: Message = dispatch.outcome.value
        self.history.add(message)
        if not message.calls:
            self.ending = "settled"
            self.memory.settle()
            if self.on_settled is not None:
                self.on_settled(self)
            return
        self._left = len(message.calls)
        for call in message.calls:
            self.desk.bus.dispatch(
                EffectKind.TOOL_CALL, f"golden/tool:{call.name}#0", call, scope="t1", on_landed=self._tool_answered
            )

    def _tool_answered(self, dispatch: Any) -> None:
        self.history.add(tool_answer(dispatch.ask.payload.id, dispatch.outcome.value))
        self._left -= 1
        if not self._left:
            self._next_round()
