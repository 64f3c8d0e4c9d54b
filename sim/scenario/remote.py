"""A remote agent in a scenario: its link, the tools it declares, and when it says so.

Part of the scenario model; ``model`` gathers it. Left out: how a link and an agent work (``bargein.models``), and
connecting them to a session (``linking``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from bargein.models.latency import Constant, Latency
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.kernel.durations import format_us
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.suggest import unknown
from bargein.sim.scenario.toolbox import Tool

__all__ = ["Link", "Narrowing", "Outage", "Remote", "remote_faults"]


@dataclass(frozen=True, slots=True)
class Outage:
    """The link goes down at ``at_us``, for so long; for good where nothing says how long."""

    at_us: int
    for_us: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """How the link behaves, in both directions alike.

    Attributes:
        transport: ``stream``: in order, and a loss costs ``retransmit_us``; ``datagram``: a loss is a loss.
        latency: of a message, one way, and up to ``jitter_us`` more.
        loss: the share of messages that are lost.
        reorder: the share of datagrams that take as long again, so that later ones pass them.
        pace_us: how long a message takes to be sent; ``queue``: how many may wait for that.
        down: when the link is down.
    """

    transport: str = "stream"
    latency: Latency = field(default=Constant(20_000))
    jitter_us: int = 0
    loss: int | float = 0
    retransmit_us: int = 200_000
    reorder: int | float = 0
    pace_us: int = 0
    queue: int = 64
    down: tuple[Outage, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """At ``at_us`` the agent says that only these tools are offered from the next request on."""

    at_us: int
    offer: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """An agent process on a link.

    Attributes:
        tools: what it declares, with what each run comes to; at its end, before the link's own delay.
        accept_at_us: when it takes the session and declares them.
        set: what it says about the offer later.
    """

    link: Link = Link()
    tools: dict[str, Tool] = field(default_factory=dict)
    accept_at_us: int = 0
    set: tuple[Narrowing, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Its declarations; the session may refuse some of them."""
        return tuple(tool.spec(name) for name, tool in self.tools.items())


def remote_faults(remote: Remote, known: tuple[str, ...]) -> Iterator[Fault]:
    """What cannot be; what a session refuses at the handshake can, and is a part of the run.

    Args:
        known: the tools that exist in the session.
    """
    for name, tool in remote.tools.items():
        path: Path = ("remote", "tools", name)
        if tool.builtin is not None:
            yield Fault((*path, "builtin"), "a packaged tool runs in the session; accepted here is a scripted one")
        for key, value in (("timeout", tool.timeout_us), ("filler_after", tool.filler_after_us)):
            if value is not None and value % 1_000:
                yield Fault((*path, key), f"found {format_us(value)}; accepted on a link are whole milliseconds")
    for number, narrowing in enumerate(remote.set):
        for index, name in enumerate(narrowing.offer):
            if name not in known:
                yield Fault(("remote", "set", number, "offer", index), unknown("tool", name, known))
    link = remote.link
    if link.reorder and link.transport != "datagram":
        yield Fault(
            ("remote", "link", "reorder"), "a stream keeps its order; accepted is reorder with transport: datagram"
        )
    for number, (first, second) in enumerate(pairwise(link.down), start=1):
        if first.for_us is None or second.at_us < first.at_us + first.for_us:
            yield Fault(
                ("remote", "link", "down", number, "at"),
                f"the link is down already at {format_us(second.at_us)}; accepted is one outage after another",
            )
