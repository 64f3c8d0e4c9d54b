"""What a session offers its model: all of its tools, unless a remote agent narrows that.

Asked once for each request, whose response is then judged by what it was offered; a remote agent's tools join here
while the session runs (tool contract, "Remote tools"). A call to a tool that was not on offer is answered before the
engine plans it. Left out: the link over which a remote agent says so, which is a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.agent.request import Advert
from bargein.pipelines.tools.registry import RegistryError, ToolRegistry
from bargein.pipelines.tools.spec import ToolSpec
from bargein.pipelines.wordings import CONFIRM_PENDING_TOOL
from bargein.sim.effects.bus import EffectBus, Handler
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Offer", "Offered", "ToolOffer"]

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Offered:
    """What one request was sent with.

    Attributes:
        adverts: the tools as the model sees them, in name order.
        names: their names.
    """

    adverts: tuple[Advert, ...]
    names: frozenset[str]


class Offer(Protocol):
    """Says what is on offer, and what a response asks for beyond that."""

    @property
    def current(self) -> Offered:
        """What a request that is sent now is sent with."""
        ...

    def among(self, names: frozenset[str]) -> Offered:
        """Those of ``names`` that are on offer, for one request."""
        ...

    def withheld(self, calls: Sequence[ToolCall | InvalidCall], offered: Offered) -> frozenset[str]:
        """The tools that a response with these calls asks for although they exist and were not offered to it."""
        ...


class ToolOffer:
    """The offer of one session (`Offer`).

    Args:
        registry: the session's tools. Where `declare` or `redeclare` is used it has to be the session's own
            (``ToolRegistry.fork``).
        bus: where the bodies of declared tools are registered.

    Invariant: the confirming call is on offer exactly when a tool that needs one is.
    """

    __slots__ = ("_bus", "_current", "_only", "_registry", "_timeline")

    def __init__(self, registry: ToolRegistry, bus: EffectBus, timeline: Timeline) -> None:
        self._registry = registry
        self._bus = bus
        self._timeline = timeline
        self._only: frozenset[str] | None = None
        self._current: Offered | None = None

    @property
    def current(self) -> Offered:
        """What a request that is sent now is sent with; kept until something changes it."""
        if self._current is None:
            self._current = _offered(self._registry.adverts() if self._only is None else self._narrowed(self._only))
        return self._current

    def among(self, names: frozenset[str]) -> Offered:
        """Those of ``names`` that are on offer, with the confirming call where one of them needs it."""
        return _offered(self._narrowed(names if self._only is None else names & self._only))

    def _narrowed(self, only: frozenset[str]) -> tuple[Advert, ...]:
        specs = [spec for spec in self._registry.specs() if spec.name in only]
        gated = any(spec.confirm for spec in specs)
        return tuple(
            advert
            for advert in self._registry.adverts()
            if advert.name in only or (gated and advert.name == CONFIRM_PENDING_TOOL)
        )

    def withheld(self, calls: Sequence[ToolCall | InvalidCall], offered: Offered) -> frozenset[str]:
        """The tools that ``calls`` name and that exist without having been on offer.

        One that does not exist at all is the engine's to refuse, which spends the turn's budget.
        """
        if not calls:
            return _NONE
        return frozenset(
            call.name for call in calls if call.name not in offered.names and self._registry.tool(call.name) is not None
        )

    # -- asked by a remote agent, and by whoever resumes the session --------------------------------------

    def declare(self, spec: ToolSpec, body: Handler) -> str | None:
        """Add a tool of a remote agent; the next request offers it.

        Returns:
            Why it was refused, or ``None`` where it was not.
        """
        try:
            tool = self._registry.register(spec, f"link/tool:{spec.name}#0")
        except RegistryError as refused:
            return str(refused)
        self._bus.register(tool.handler_key, body)
        self._changed()
        return None

    def redeclare(self, spec: ToolSpec) -> None:
        """Have a tool of the session declared otherwise from the next request on (run contract, section 13).

        Raises:
            KeyError: there is no such tool.
            RegistryError: the declaration cannot be used; the tool keeps its own.
        """
        self._registry.redeclare(spec)
        self._changed()

    def narrow(self, names: Iterable[str]) -> tuple[str, ...]:
        """Offer these tools and no other from the next request on, also those that are declared later.

        Returns:
            The names that no tool has, in the order given; they are left out.
        """
        wanted = list(names)
        self._only = frozenset(wanted)
        self._changed()
        return tuple(name for name in wanted if self._registry.tool(name) is None)

    def _changed(self) -> None:
        self._current = None

    def tell(self) -> None:
        """Record what is on offer from now on."""
        self._timeline.add("tools.offered", 0, [advert.name for advert in self.current.adverts])


def _offered(adverts: tuple[Advert, ...]) -> Offered:
    return Offered(adverts, frozenset(advert.name for advert in adverts))
