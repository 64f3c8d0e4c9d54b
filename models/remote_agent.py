"""The agent process at the far end of a link: it declares tools, runs their bodies and sends what they come to.

It knows of a call what the message says and no more. Its bodies are handlers on an effect bus of its own, so that
whatever can serve a tool here can serve one there (tool contract, "Remote tools"). Left out: losing its own memory; a
link that breaks leaves its bodies running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bargein.models.links import Link, Message, Side
from bargein.models.remote_protocol import CALL, CANCEL, PROGRESS, RESULT, SET, accept
from bargein.pipelines.tools.invocation import IdempotencyKey, ToolCallContext, ToolInvocation
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Handler, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock, Order

__all__ = ["RemoteAgent"]


class RemoteAgent:
    """The agent's end.

    Args:
        specs: the tools that it declares.
        bodies: what runs each of them.
        accept_at_us: when it takes the session.
        offers: instants, and the tools that alone are offered from then on.

    Attributes:
        calls: id and idempotency key of each call that reached it, in order.
        errors: what the session did not accept, in order.
        bodies: as given.
    """

    def __init__(
        self,
        clock: Clock,
        link: Link,
        specs: Sequence[ToolSpec],
        bodies: Mapping[str, Handler],
        accept_at_us: int,
        offers: Sequence[tuple[int, Sequence[str]]],
    ) -> None:
        self._clock = clock
        self._link = link
        self._running: dict[str, Effect] = {}
        self._unsent: list[Message] = []
        self._plan: list[tuple[int, Message]] = [(accept_at_us, accept(specs))]
        self._plan += [(at_us, {"type": SET, "offer": list(names)}) for at_us, names in offers]
        self._bus = EffectBus(clock)
        for name, body in bodies.items():
            self._bus.register(name, body)
        self.bodies = bodies
        self.calls: list[tuple[str, str]] = []
        self.errors: list[Message] = []

    def start(self) -> None:
        """Arrange what it says by itself."""
        for at_us, message in self._plan:
            self._clock.call_at(at_us, Order.DELIVERY, self._say, message)

    def _say(self, message: Message) -> None:
        """Send now, or as soon as there is a link."""
        if self._link.up:
            self._link.send(Side.AGENT, message)
        else:
            self._unsent.append(message)

    # -- the link -----------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """A message of the session (`links.End`)."""
        if message["type"] == CALL:
            self._run(message)
        elif message["type"] == CANCEL:
            effect = self._running.pop(message["call_id"], None)
            if effect is not None:
                effect.cancel(Cause.DISCARDED)
        else:
            self.errors.append(message)

    def link_down(self) -> None:
        """Its bodies run on; what they come to cannot be told (`links.End`)."""

    def link_up(self) -> None:
        """Say what there was no link for (`links.End`)."""
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            self._say(message)

    # -- calls --------------------------------------------------------------------------------------------

    def _run(self, message: Message) -> None:
        call_id, tool = message["call_id"], message["tool"]
        self.calls.append((call_id, message["idempotency_key"]))
        key = IdempotencyKey("", 0, message["idempotency_key"])
        context = ToolCallContext("", 0, call_id, CancelToken(call_id), key, self._clock)
        effect = self._bus.dispatch(
            EffectKind.TOOL_CALL,
            tool,
            ToolInvocation(call_id, tool, message["arguments"], context),
            scope=call_id,
            on_landed=self._landed,
            on_item=lambda text: self._link.send(Side.AGENT, {"type": PROGRESS, "call_id": call_id, "text": text}),
        )
        if effect.running:
            self._running[call_id] = effect

    def _landed(self, effect: Effect) -> None:
        outcome = effect.outcome
        assert outcome is not None
        if outcome.status is Status.CANCELLED:
            return
        call_id = effect.payload.call_id
        self._running.pop(call_id, None)
        message: Message = {"type": RESULT, "call_id": call_id}
        if outcome.status is Status.OK:
            message["result"] = outcome.value
        else:
            message["error"] = outcome.value
            if outcome.status is Status.CRASHED:
                message["crashed"] = True
        self._link.send(Side.AGENT, message)
