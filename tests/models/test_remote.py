"""The session's end of a link by itself: messages that fit nothing, and the handshake."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.latency import Constant
from bargein.models.links import Link
from bargein.models.remote import RemoteTools
from bargein.models.remote_protocol import accept
from bargein.pipelines.events import KINDS
from bargein.pipelines.tools.invocation import IdempotencyKey, ToolCallContext, ToolInvocation
from bargein.pipelines.tools.spec import ToolKind, ToolSpec
from bargein.sim.effects.bus import EffectBus, EffectKind
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Streams
from bargein.sim.kernel.timeline import Timeline
from bargein.sim.scenario.remote import Link as Plan

LOOK = ToolSpec("look", "Looks.", {"type": "object"}, ToolKind.READ_ONLY)
BOOK = ToolSpec("book", "Books.", {"type": "object"}, ToolKind.SIDE_EFFECT)


class Desk:
    """A session's end whose link leads to a list, and a bus that it serves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.bus = EffectBus(self.clock)
        self.link = Link(self.clock, self.timeline, Plan(latency=Constant(0)), Streams(1).stream)
        self.tools = RemoteTools(self.clock, self.timeline, self.link, self)
        self.received: list[dict[str, Any]] = []
        self.told: list[Any] = []
        self.landed: list[tuple[int, str, Any]] = []
        self.items: list[str] = []
        self.link.start(self.tools, self)

    # the far end
    def receive(self, message: dict[str, Any]) -> None:
        self.received.append(message)

    def link_down(self) -> None: ...
    def link_up(self) -> None: ...

    # the host
    def declare(self, spec: ToolSpec, body: Any) -> str | None:
        self.bus.register(spec.name, body)
        return None

    def narrow(self, names: Any) -> tuple[str, ...]:
        known = self.bus.keys()
        return tuple(name for name in names if name not in known)

    def tell(self) -> None:
        self.told.append(self.bus.keys())

    def call(self, tool: str, call_id: str = "t1.0") -> Any:
        key = IdempotencyKey("s", 1, call_id)
        context = ToolCallContext("s", 1, call_id, CancelToken("t1"), key, self.clock)
        return self.bus.dispatch(
            EffectKind.TOOL_CALL,
            tool,
            ToolInvocation(call_id, tool, {"n": 1}, context),
            scope="t1",
            on_item=self.items.append,
            on_landed=lambda effect: self.landed.append(
                (self.clock.now, str(effect.outcome.status), effect.outcome.value)
            ),
        )

    def to(self, at_us: int) -> None:
        self.clock.run(until=at_us + 1)
        self.clock._now = at_us


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.tools.receive(accept([LOOK, BOOK]))
    return desk


def test_a_call_carries_arguments_and_the_digest_of_its_key(desk):
    desk.call("book", "t4.1")
    desk.to(0)
    assert desk.received == [
        {
            "type": "tool.call",
            "call_id": "t4.1",
            "tool": "book",
            "arguments": {"n": 1},
            "idempotency_key": IdempotencyKey("s", 1, "t4.1").digest(),
        }
    ]


def test_only_the_first_result_counts_and_one_for_nobody_is_ignored(desk):
    desk.call("book")
    for call_id, value in (("t9.9", 0), ("t1.0", 1), ("t1.0", 2)):
        desk.tools.receive({"type": "tool.result", "call_id": call_id, "result": value})
    assert (desk.landed, desk.tools.waiting) == ([(0, "ok", 1)], {})


def test_a_result_just_before_and_on_the_end_of_the_wait_is_the_calls_own(desk):
    from bargein.sim.kernel.clock import Order

    result = {"type": "tool.result", "call_id": "t1.0", "result": "BK"}
    desk.call("book")
    desk.clock.call_at(60_000_000, Order.DELIVERY, desk.tools.receive, result)
    desk.to(70_000_000)
    assert desk.landed == [(60_000_000, "ok", "BK")]


def test_the_wait_ends_after_sixty_seconds_for_a_side_effect_alone(desk):
    desk.call("book")
    desk.call("look", "t1.1")
    desk.to(59_999_999)
    assert desk.landed == []
    desk.to(200_000_000)
    assert desk.landed == [(60_000_000, "lost", "the outcome is unknown")]


def test_a_stopped_read_is_cancelled_over_the_link_and_a_stopped_side_effect_is_not(desk):
    for tool, call_id in (("look", "t1.0"), ("book", "t1.1")):
        desk.call(tool, call_id).cancel(Cause.HANG_UP)
    desk.to(100_000_000)
    assert [(m["type"], m["call_id"]) for m in desk.received] == [
        ("tool.call", "t1.0"),
        ("tool.cancel", "t1.0"),
        ("tool.call", "t1.1"),
    ]
    assert desk.tools.waiting == {}


def test_progress_reaches_a_call_that_waits(desk):
    desk.call("look")
    for call_id in ("t1.0", "t5.5"):
        desk.tools.receive({"type": "tool.progress", "call_id": call_id, "text": f"half of {call_id}"})
    assert desk.items == ["half of t1.0"]


def test_a_second_acceptance_is_refused(desk):
    desk.tools.receive(accept([]))
    desk.to(0)
    assert [message["message"] for message in desk.received] == [
        "the session was accepted before; accepted is one session.accept"
    ]


def test_an_offer_of_a_tool_that_nobody_has_is_told_of(desk):
    desk.tools.receive({"type": "tools.set", "offer": ["look", "ghost"]})
    desk.to(0)
    assert [(message["tool"], message["message"]) for message in desk.received] == [("ghost", "no tool has this name")]
