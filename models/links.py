"""A link between the session and an agent process: messages take time, and some never arrive.

`RemoteTools` stands at one end and `RemoteAgent` at the other. On a ``stream`` messages arrive in order and a loss
costs a retransmission; on ``datagram`` a loss is a loss, and one message may pass another. What is on its way when
the link goes down is lost in both directions. Every message is on the timeline without its contents. Left out:
sending again what a broken link lost, which would be the two ends' business.

Ties: a message that arrives on the instant at which the link goes down has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from json import dumps, loads
from typing import Any, Protocol

from bargein.models.latency import Latency
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.streams import Stream
from bargein.sim.kernel.timeline import Timeline

__all__ = ["End", "Link", "LinkPlan", "Message", "OutagePlan", "Sending", "Side"]

Message = dict[str, Any]
"""What is sent: a JSON object with a ``type``, and a ``call_id`` where it is about a call."""

_PARTS = 1_000_000
_MAX_RETRANSMISSIONS = 16


class Side(StrEnum):
    """The two ends."""

    SESSION = "session"
    AGENT = "agent"


class Sending(StrEnum):
    """What became of a message when it was handed over."""

    SENT = "sent"
    LINK_DOWN = "link_down"
    QUEUE_FULL = "queue_full"


class OutagePlan(Protocol):
    """The link goes down, for so long or for good."""

    @property
    def at_us(self) -> int: ...
    @property
    def for_us(self) -> int | None: ...


class LinkPlan(Protocol):
    """How a link behaves.

    Attributes:
        transport: ``stream`` or ``datagram``.
        latency: of each message, one way; on top of it up to ``jitter_us``, each whole microsecond as likely.
        loss: share of the messages that are lost.
        retransmit_us: what a loss costs on a stream.
        reorder: share of the datagrams that take as long again, so that later ones may pass them.
        pace_us: how long a message takes to be sent; the next one waits.
        queue: how many may wait to be sent in one direction.
        down: outages, in order and apart.
    """

    @property
    def transport(self) -> str: ...
    @property
    def latency(self) -> Latency: ...
    @property
    def jitter_us(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def retransmit_us(self) -> int: ...
    @property
    def reorder(self) -> float: ...
    @property
    def pace_us(self) -> int: ...
    @property
    def queue(self) -> int: ...
    @property
    def down(self) -> Sequence[OutagePlan]: ...


class End(Protocol):
    """What stands at one end of a link."""

    def receive(self, message: Message) -> None:
        """A message has arrived."""

    def link_down(self) -> None:
        """The link has broken; what was on its way is lost."""

    def link_up(self) -> None:
        """The link is there again."""


@dataclass(slots=True, eq=False)
class _OnItsWay:
    number: int
    sender: Side
    text: str
    what: str
    call: str
    timer: Timer | None = None


class Link:
    """One link in one session.

    Args:
        timeline: where every message is recorded.
        plan: how it behaves.
        stream: gives a random stream for each direction, by name.

    Attributes:
        up: whether messages can be sent.

    Invariant: on a stream, messages of one direction arrive in the order in which they were sent.
    """

    def __init__(self, clock: Clock, timeline: Timeline, plan: LinkPlan, stream: Callable[[str], Stream]) -> None:
        self._clock = clock
        self._timeline = timeline
        self._plan = plan
        self._streams = {side: stream(f"link/{side}") for side in Side}
        self._ends: dict[Side, End] = {}
        self._free_at_us = dict.fromkeys(Side, 0)
        self._last_arrival_us = dict.fromkeys(Side, 0)
        self._flying: dict[int, _OnItsWay] = {}
        self._sent = 0
        self.up = True

    def start(self, session: End, agent: End) -> None:
        """Connect the ends and arrange the outages."""
        self._ends = {Side.SESSION: session, Side.AGENT: agent}
        for outage in self._plan.down:
            self._clock.call_at(outage.at_us, Order.INTERRUPTION, self._break, outage)

    # -- sending ------------------------------------------------------------------------------------------

    def send(self, sender: Side, message: Message) -> Sending:
        """Hand over a message for the other end.

        Returns:
            Whether it is on its way; where it is not, it will not be.
        """
        self._sent += 1
        flying = _OnItsWay(self._sent, sender, dumps(message), message["type"], message.get("call_id", ""))
        if not self.up:
            return self._refuse(flying, Sending.LINK_DOWN)
        if self._waiting(sender) >= self._plan.queue:
            return self._refuse(flying, Sending.QUEUE_FULL)
        self._tell("link.sent", flying)
        self._free_at_us[sender] = leaves_us = max(self._clock.now, self._free_at_us[sender]) + self._plan.pace_us
        transit_us = self._transit_us(sender)
        if transit_us is None:
            self._tell("link.lost", flying, "lost")
            return Sending.SENT
        arrives_us = leaves_us + transit_us
        if self._plan.transport == "stream":
            self._last_arrival_us[sender] = arrives_us = max(arrives_us, self._last_arrival_us[sender])
        self._flying[flying.number] = flying
        flying.timer = self._clock.call_at(arrives_us, Order.DELIVERY, self._arrive, flying)
        return Sending.SENT

    def _refuse(self, flying: _OnItsWay, why: Sending) -> Sending:
        self._tell("link.lost", flying, why.value)
        return why

    def _waiting(self, sender: Side) -> int:
        """Messages that were handed over and have not left yet."""
        pace_us = self._plan.pace_us
        return -(-max(self._free_at_us[sender] - self._clock.now, 0) // pace_us) if pace_us else 0

    def _transit_us(self, sender: Side) -> int | None:
        """How long the next message is on its way; ``None``: it never arrives."""
        plan, stream = self._plan, self._streams[sender]
        transit_us = plan.latency.draw(stream)
        if transit_us is None:
            return None
        if plan.jitter_us:
            transit_us += stream.below(plan.jitter_us + 1)
        if plan.transport == "stream":
            tries = 0
            while tries < _MAX_RETRANSMISSIONS and _happens(plan.loss, stream):
                tries += 1
            return transit_us + tries * plan.retransmit_us
        if _happens(plan.loss, stream):
            return None
        return 2 * transit_us if _happens(plan.reorder, stream) else transit_us

    def _arrive(self, flying: _OnItsWay) -> None:
        del self._flying[flying.number]
        self._tell("link.received", flying)
        other = Side.AGENT if flying.sender is Side.SESSION else Side.SESSION
        self._ends[other].receive(loads(flying.text))

    # -- breaking -----------------------------------------------------------------------------------------

    def _break(self, outage: OutagePlan) -> None:
        self.up = False
        self._timeline.add("link.down", 0, outage.for_us)
        lost, self._flying = self._flying, {}
        for flying in lost.values():
            assert flying.timer is not None
            flying.timer.cancel()
            self._tell("link.lost", flying, Sending.LINK_DOWN.value)
        for side in Side:
            self._free_at_us[side] = self._last_arrival_us[side] = self._clock.now
        if outage.for_us is not None:
            self._clock.call_in(outage.for_us, Order.TIMER, self._mend)
        for end in self._ends.values():
            end.link_down()

    def _mend(self, _: object) -> None:
        self.up = True
        self._timeline.add("link.up", 0)
        for end in self._ends.values():
            end.link_up()

    def _tell(self, kind: str, flying: _OnItsWay, *more: str) -> None:
        self._timeline.add(kind, 0, flying.number, flying.sender.value, flying.what, flying.call, *more)


def _happens(share: float, stream: Stream) -> bool:
    """Whether something with this share happens now; draws nothing where it never does."""
    return share > 0 and stream.below(_PARTS) < round(share * _PARTS)
