"""The effect bus: asks the world for something and records that it did.

The pipeline dispatches an effect under a handler key; the handler that the world registered there serves it,
delivers items while it runs (a stream's deltas) and lands one outcome. Every dispatch is one record in the log,
whatever becomes of it. Nothing else in a session talks to the world. Left out: deciding whether a call may run
(the tool engine does) and what the payloads mean.

Ties: a handler lands from a clock call of order ``DELIVERY``, so an outcome that falls on the instant of a
cancellation comes first and stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.kinds import EffectKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.errors import VoidRun

__all__ = ["LAST_ID", "Effect", "EffectBus", "EffectKind", "Handler", "Outcome", "Status"]

LAST_ID = 2**64 - 1
"""Says that there are no more ids; no effect has it (run contract, section 13)."""


class Status(StrEnum):
    """How an effect ended."""

    OK = "ok"
    FAILED = "failed"
    """The world reported a failure; the value is its message."""
    CRASHED = "crashed"
    """The handler's own code raised; the value says what."""
    LOST = "lost"
    """Whoever did the work can no longer be asked what came of it; the value says why."""
    CANCELLED = "cancelled"
    """Stopped by whoever dispatched it; the value is the cause."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an effect came to."""

    status: Status
    value: Any = None


class Effect:
    """One thing asked of the world, and its record.

    Attributes:
        id: counts effects from 0; its position in the log, unless the session goes on from a saved one. Below 0 for a
            connection, which a written log has behind all others.
        key: the handler it went to, such as ``agent/tool:book_table#0``.
        kind: what it asks for.
        payload: the request; the kind says of which type.
        parent: id of the effect on whose behalf this one was dispatched, if any.
        scope: the run it belongs to, such as ``t2``.
        dispatched_at_us, landed_at_us: virtual instants; the second is ``None`` while it runs.
        outcome: ``None`` while it runs.
        items: how many stream items were delivered.

    Invariant: an effect lands exactly once; what comes after is dropped.
    """

    __slots__ = (
        "_bus",
        "_hear",
        "_on_item",
        "_on_landed",
        "_stop",
        "dispatched_at_us",
        "id",
        "items",
        "key",
        "kind",
        "landed_at_us",
        "outcome",
        "parent",
        "payload",
        "scope",
    )

    _hear: Callable[[Any], object]

    def __init__(
        self,
        bus: EffectBus,
        id: int,
        kind: EffectKind,
        key: str,
        payload: Any,
        scope: str,
        parent: int | None,
        on_item: Callable[[Any], object] | None,
        on_landed: Callable[[Effect], object],
    ) -> None:
        self._bus = bus
        self._on_item = on_item
        self._on_landed: Callable[[Effect], object] | None = on_landed
        self._stop: Callable[[Cause], object] | None = None
        self.id = id
        self.kind = kind
        self.key = key
        self.payload = payload
        self.scope = scope
        self.parent = parent
        self.dispatched_at_us: int = bus.clock.now
        self.landed_at_us: int | None = None
        self.outcome: Outcome | None = None
        self.items = 0

    @property
    def running(self) -> bool:
        """Whether no outcome has landed yet."""
        return self.outcome is None

    def deliver(self, item: Any) -> None:
        """Hand over one item of a stream; ignored once the effect has landed. Called by the handler."""
        if self.outcome is None:
            self.items += 1
            if self._on_item is not None:
                self._on_item(item)

    def land(self, outcome: Outcome) -> None:
        """End the effect with ``outcome``; ignored once it has landed. Called by the handler."""
        if self.outcome is None:
            self.outcome = outcome
            self.landed_at_us = self._bus.clock.now
            self._stop = None
            on_landed, self._on_landed = self._on_landed, None
            self._on_item = None
            self._bus.running -= 1
            if on_landed is not None:
                on_landed(self)

    def listen(self, hear: Callable[[Any], object]) -> None:
        """Have ``hear(said)`` called with what is said while it runs. Called by the handler as it begins to serve."""
        self._hear = hear

    def say(self, said: Any) -> None:
        """Tell the handler more; ignored once the effect has landed. Called by whoever opened the connection."""
        if self.outcome is None:
            self._hear(said)

    def cancel(self, cause: Cause) -> bool:
        """Stop the handler and land as cancelled.

        Returns:
            ``False`` when an outcome had landed before.
        """
        if self.outcome is not None:
            return False
        stop, self._stop = self._stop, None
        self.land(Outcome(Status.CANCELLED, cause))
        if stop is not None:
            stop(cause)
        return True

    def withhold(self) -> None:
        """Its outcome is there, and a layer keeps it from the asker for now. Means something to a recording only."""

    def told(self, *, cancelled: bool) -> None:
        """What was withheld is told, or the asker has given it up. Means something to a recording only."""

    def keep(self, items: Sequence[Any], outcome: Outcome) -> None:
        """What its handler had answered when it was cancelled, and nobody had collected. Means something to a
        recording only."""

    def on_landed(self, listener: Callable[[Effect], object]) -> None:
        """Have ``listener(effect)`` called when the outcome lands, in place of whoever was to be told so far."""
        self._on_landed = listener

    def detach(self) -> None:
        """Leave it running, with nobody listening; its record is still made."""
        self._on_item = None
        self._on_landed = None

    def as_dict(self) -> dict[str, Any]:
        """The record as plain data, without payload and stream items."""
        return {
            "id": self.id,
            "key": self.key,
            "kind": str(self.kind),
            "parent": self.parent,
            "scope": self.scope,
            "dispatched_at_us": self.dispatched_at_us,
            "landed_at_us": self.landed_at_us,
            "items": self.items,
            "status": None if self.outcome is None else str(self.outcome.status),
        }

    def __repr__(self) -> str:
        return f"<effect {self.id} {self.key} {'running' if self.outcome is None else self.outcome.status}>"


class Handler(Protocol):
    """What serves effects under one key."""

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Begin to serve: arrange for `Effect.deliver` and one `Effect.land`, now or later.

        Returns:
            A function that stops the work when the effect is cancelled, or ``None`` where there is nothing to stop.
        """
        ...


class EffectBus:
    """Handlers by key, and the log of everything dispatched through them.

    Args:
        clock: gives the instants.

    Attributes:
        log: every effect, in the order of dispatch; connections: what was opened beside them, likewise.
        next_id: what the next effect is called; ids are never given twice, also when those who had them are gone.
        running: how many have not landed.
    """

    effect_class: type[Effect] = Effect
    """What a dispatch makes; a bus that records makes effects that note what is done to them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.log: list[Effect] = []
        self.connections: list[Effect] = []
        self.next_id = 0
        self.running = 0
        self._handlers: dict[str, Handler] = {}
        self._descriptors: dict[str, Descriptor] = {}

    def register(self, key: str, handler: Handler, descriptor: Descriptor | None = None) -> None:
        """Serve ``key`` by ``handler``.

        Args:
            descriptor: what is known of it; what the key says unless given.

        Raises:
            ValueError: the key is taken.
        """
        if key in self._handlers:
            raise ValueError(f"handler key {key} is taken; a key names one handler")
        self._install(key, handler, descriptor)

    def replace(self, key: str, handler: Handler, descriptor: Descriptor | None = None) -> None:
        """Serve ``key`` by ``handler`` from the next dispatch on; what is being served stays with whom it is.

        Raises:
            ValueError: nobody serves the key.
        """
        if key not in self._handlers:
            raise ValueError(f"nobody serves handler key {key}; served are {', '.join(self._handlers) or 'none'}")
        self._install(key, handler, descriptor)

    def _install(self, key: str, handler: Handler, descriptor: Descriptor | None) -> None:
        self._handlers[key] = handler
        if descriptor is None:
            self._descriptors.pop(key, None)
        else:
            self._descriptors[key] = descriptor.under(key)

    def descriptor(self, key: str) -> Descriptor:
        """What is known of who serves ``key``.

        Raises:
            KeyError: nobody serves it.
        """
        if key not in self._handlers:
            raise KeyError(key)
        return self._descriptors.get(key) or Descriptor.of_key(key)

    def effect(self, id: int) -> Effect:
        """The effect of this id.

        Raises:
            KeyError: it was not dispatched on this bus.
        """
        log = self.log
        if id < len(log) and log[id].id == id:
            return log[id]
        found = next((each for each in reversed(log) if each.id == id), None)
        if found is None:
            raise KeyError(id)
        return found

    def keys(self) -> tuple[str, ...]:
        """The keys served, in the order of registration."""
        return tuple(self._handlers)

    def dispatch(
        self,
        kind: EffectKind,
        key: str,
        payload: Any,
        *,
        scope: str,
        on_landed: Callable[[Effect], object],
        on_item: Callable[[Any], object] | None = None,
        parent: int | None = None,
        id: int | None = None,
    ) -> Effect:
        """Ask the handler under ``key`` for ``payload`` and record it.

        Args:
            id: that of the same effect in a session which was saved; a new one unless given.
            on_item: called with each stream item, on its instant.
            on_landed: called once with the effect when its outcome is there (perhaps before this returns).

        Raises:
            VoidRun: nobody serves the key; a session is built with all its handlers.
        """
        handler = self._handlers.get(key)
        if handler is None:
            raise self._unserved(key)
        if id is None:
            id = self.next_id
        if id >= self.next_id:
            self.next_id = id + 1
        effect = self.effect_class(self, id, kind, key, payload, scope, parent, on_item, on_landed)
        self.log.append(effect)
        self.running += 1
        stop = handler.serve(effect)
        if effect.outcome is None:
            effect._stop = stop
        return effect

    def connect(
        self,
        key: str,
        payload: Any,
        *,
        scope: str,
        on_item: Callable[[Any], object],
        on_landed: Callable[[Effect], object],
    ) -> Effect:
        """Open a connection: a custom effect that goes both ways (`Effect.say`) and stays open beside the others.

        It takes no number among them, so that opening one renumbers nothing that a timeline names.

        Raises:
            VoidRun: nobody serves the key.
        """
        handler = self._handlers.get(key)
        if handler is None:
            raise self._unserved(key)
        number = -1 - len(self.connections)
        effect = self.effect_class(self, number, EffectKind.CUSTOM, key, payload, scope, None, on_item, on_landed)
        self.connections.append(effect)
        self.running += 1
        stop = handler.serve(effect)
        if effect.outcome is None:
            effect._stop = stop
        return effect

    def unserved(self, effect: Effect) -> None:
        """An effect is given up that no handler was asked to serve. Means something to a recording only."""

    def _unserved(self, key: str) -> VoidRun:
        return VoidRun(f"no handler serves {key}; served are {', '.join(self._handlers) or 'none'}")
