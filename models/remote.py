"""The session's end of the link to a remote agent: its tools are tools of the session, and each call is a message.

The handshake gives every declared tool a handler on the effect bus, so that all rules of the tool engine hold before
a call leaves and after its result came back (tool contract, "Remote tools"). A call that waits is answered by its
result, by the link breaking, or, for a side effect, by the end of the wait; then nobody knows what it did. Left out:
the link (``links``) and the agent (``remote_agent``).

Ties: a result that arrives on the instant of the end of the wait, or on that of the break, is the call's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from bargein.models.links import Link, Message, Sending, Side
from bargein.models.remote_protocol import (
    ACCEPT,
    CANCEL,
    MAX_TOOLS,
    PROGRESS,
    RESULT,
    SET,
    call,
    link_error,
    read_declaration,
)
from bargein.pipelines.tools.spec import SpecError, ToolSpec
from bargein.pipelines.wordings import LINK_BROKE, LINK_DOWN, LINK_FULL, LINK_OUTCOME_UNKNOWN, LINK_QUEUE_FULL
from bargein.sim.effects.bus import Effect, Handler, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.timeline import Timeline

__all__ = ["MAX_WAITING", "SIDE_EFFECT_WAIT_US", "RemoteTool", "RemoteTools", "ToolHost"]

MAX_WAITING = 32
"""Calls that may wait on one link."""
SIDE_EFFECT_WAIT_US = 60_000_000
"""How long the link waits for the result of a side effect, whoever else has given it up."""


class ToolHost(Protocol):
    """Where declared tools go: the offer of the session."""

    def declare(self, spec: ToolSpec, body: Handler) -> str | None:
        """Add a tool; says why it was refused, if it was."""
        ...

    def narrow(self, names: Iterable[str]) -> tuple[str, ...]:
        """Offer these tools only, from the next request on; gives back the names that no tool has."""
        ...

    def tell(self) -> None:
        """Record what is on offer from now on."""


@dataclass(slots=True, eq=False)
class _Waiting:
    effect: Effect
    side_effect: bool
    timer: Timer | None = None


class RemoteTools:
    """The session's end.

    Args:
        host: where the declared tools go.

    Attributes:
        waiting: calls without a result, by id, in the order in which they were sent.
        accepted: whether the agent has taken the session.

    Invariant: at most `MAX_WAITING` calls wait, and none once the link is down.
    """

    def __init__(self, clock: Clock, timeline: Timeline, link: Link, host: ToolHost) -> None:
        self._clock = clock
        self._timeline = timeline
        self._link = link
        self._host = host
        self.waiting: dict[str, _Waiting] = {}
        self.accepted = False

    # -- what the agent says ------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """A message of the agent (`links.End`); one that fits nothing is ignored."""
        what = message["type"]
        if what == ACCEPT:
            self._handshake(message["tools"])
        elif what == SET:
            self._set(message["offer"])
        elif what == RESULT:
            self._result(message)
        elif what == PROGRESS and message["call_id"] in self.waiting:
            self.waiting[message["call_id"]].effect.deliver(message["text"])

    def _handshake(self, declared: list[dict[str, Any]]) -> None:
        """Take the tools one by one; a refused one is told of and leaves the others as they are."""
        if self.accepted:
            self._refuse(ACCEPT, "", "the session was accepted before; accepted is one session.accept")
            return
        if len(declared) > MAX_TOOLS:
            self._refuse(ACCEPT, "", f"{len(declared)} tools are declared; accepted are up to {MAX_TOOLS}")
            return
        self.accepted = True
        for each in declared:
            name = each.get("name")
            try:
                spec = read_declaration(each)
            except SpecError as problem:
                self._refuse(ACCEPT, name if isinstance(name, str) else "", str(problem))
                continue
            refused = self._host.declare(spec, RemoteTool(self, spec.side_effect))
            if refused is not None:
                self._refuse(ACCEPT, spec.name, refused)
        self._host.tell()

    def _set(self, names: list[str]) -> None:
        for name in self._host.narrow(names):
            self._refuse(SET, name, "no tool has this name")
        self._host.tell()

    def _refuse(self, what: str, tool: str, reason: str) -> None:
        self._timeline.add("link.refused", 0, what, tool, reason)
        self._link.send(Side.SESSION, link_error(reason, tool))

    def _result(self, message: Message) -> None:
        waiting = self._take(message["call_id"])
        if waiting is None:
            return  # nobody waits any more
        if message.get("crashed"):
            waiting.effect.land(Outcome(Status.CRASHED, message["error"]))
        elif "error" in message:
            waiting.effect.land(Outcome(Status.FAILED, message["error"]))
        else:
            waiting.effect.land(Outcome(Status.OK, message["result"]))

    # -- calls --------------------------------------------------------------------------------------------

    def send(self, effect: Effect, side_effect: bool) -> Callable[[Cause], object] | None:
        """Send a call; it waits for its result, or has failed at once where the link cannot take it."""
        refused = self._refusal() or self._hand_over(call(effect.payload))
        if refused is not None:
            effect.land(Outcome(Status.FAILED, refused))  # it was not sent, so it may be tried again
            return None
        call_id: str = effect.payload.call_id
        waiting = self.waiting[call_id] = _Waiting(effect, side_effect)
        if side_effect:
            waiting.timer = self._clock.call_in(SIDE_EFFECT_WAIT_US, Order.TIMER, self._give_up, call_id)

        def stop(_: Cause) -> None:
            if self._take(call_id) is not None and not side_effect and self._link.up:
                self._link.send(Side.SESSION, {"type": CANCEL, "call_id": call_id})

        return stop

    def _refusal(self) -> str | None:
        """Why no call can be sent now."""
        if not self._link.up:
            return LINK_DOWN
        return LINK_FULL.format(limit=MAX_WAITING) if len(self.waiting) >= MAX_WAITING else None

    def _hand_over(self, message: Message) -> str | None:
        sent = self._link.send(Side.SESSION, message) is Sending.SENT
        return None if sent else LINK_QUEUE_FULL

    def _take(self, call_id: str) -> _Waiting | None:
        waiting = self.waiting.pop(call_id, None)
        if waiting is not None and waiting.timer is not None:
            waiting.timer.cancel()
        return waiting

    def _give_up(self, call_id: str) -> None:
        waiting = self._take(call_id)
        assert waiting is not None
        waiting.effect.land(Outcome(Status.LOST, LINK_OUTCOME_UNKNOWN))

    # -- the link -----------------------------------------------------------------------------------------

    def link_down(self) -> None:
        """Every call that waits ends now, in the order in which they were sent (`links.End`)."""
        for call_id in tuple(self.waiting):
            waiting = self._take(call_id)
            if waiting is None:
                continue
            if waiting.side_effect:
                waiting.effect.land(Outcome(Status.LOST, LINK_OUTCOME_UNKNOWN))
            else:
                waiting.effect.land(Outcome(Status.FAILED, LINK_BROKE))

    def link_up(self) -> None:
        """Calls can be sent again (`links.End`)."""


class RemoteTool:
    """Serves the calls of one declared tool (``effects.Handler``)."""

    def __init__(self, tools: RemoteTools, side_effect: bool) -> None:
        self._tools = tools
        self._side_effect = side_effect

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Send the call."""
        return self._tools.send(effect, self._side_effect)
