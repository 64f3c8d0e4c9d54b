"""Layers around handlers: deny, patch, replace or suspend what is asked, without the asker or the handler knowing.

A `LayeredBus` stands between whoever dispatches and the effect bus. What a layer decides beforehand leaves no record;
what is served is recorded as the innermost layer left it, with the handler's own answer, and only the asker is told
the outer layers' verdict (run contract, section 9.6). It also keeps a key serial where that is asked for, refuses to
nest a serial key in itself, and takes what was dispatched on behalf of an effect down with it (section 8.3).

Ties: what lands on the instant of an approval or a cancellation comes in the order of the clock's calls. Left out:
which handlers there are, and waiting in a verdict after the handler has answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bargein.sim.effects.bus import LAST_ID, Effect, EffectBus, EffectKind, Handler, Outcome, Status
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause

__all__ = ["Approval", "Ask", "Deny", "Dispatch", "Layer", "LayeredBus", "Patch", "Suspend"]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a handler, as a layer sees it."""

    kind: EffectKind
    key: str
    payload: Any
    scope: str
    parent: int | None


class Approval:
    """An answer that somebody outside gives once: a person, a scenario, a hook.

    Invariant: the first answer stands.
    """

    __slots__ = ("_listener", "answered", "denied")

    def __init__(self) -> None:
        self.answered = False
        self.denied: str | None = None
        self._listener: Callable[[], object] | None = None

    def approve(self) -> bool:
        """Let it be served now. Returns whether anybody was still waiting to hear that."""
        return self._answer(None)

    def deny(self, reason: str) -> bool:
        """Refuse it for ``reason``. Returns whether anybody was still waiting to hear that."""
        return self._answer(reason)

    def _answer(self, denied: str | None) -> bool:
        if self.answered:
            return False
        self.answered, self.denied = True, denied
        listener, self._listener = self._listener, None
        if listener is not None:
            listener()
        return listener is not None

    def listen(self, listener: Callable[[], object]) -> None:
        """Have ``listener()`` called with the answer; at once if it is there."""
        if self.answered:
            listener()
        else:
            self._listener = listener

    def forget(self) -> None:
        """Nobody waits any more; an answer that comes later does nothing."""
        self._listener = None


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not serve it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Ask this instead; ``kind`` may only repeat what was asked for."""

    payload: Any
    kind: EffectKind | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Go on once the approval is answered."""

    approval: Approval


class Layer:
    """A layer that lets everything pass; subclasses override what they decide.

    Attributes:
        name: what a program that declares its layers calls it.
    """

    name = "layer"

    def before(self, ask: Ask) -> Deny | Patch | Suspend | None:
        """Decide before anything is served; ``None`` passes it on."""
        return None

    def keeps(self, ask: Ask, item: Any) -> bool:
        """Whether the effect may go on after this stream item; ``False`` cancels it."""
        return True

    def after(self, ask: Ask, outcome: Outcome) -> Outcome:
        """What the asker is told in place of ``outcome``."""
        return outcome


class Dispatch:
    """One thing that was asked through the layers.

    Attributes:
        ask: as it stands now; layers on its way in may have patched it.
        effect: its record, once it was served; ``None`` where nothing was.
        outcome: what the asker was told; ``None`` while it runs.
    """

    __slots__ = ("_bus", "_entered", "_id", "_on_item", "_on_landed", "_suspended", "ask", "effect", "outcome")

    def __init__(
        self,
        bus: LayeredBus,
        ask: Ask,
        on_landed: Callable[[Dispatch], object],
        on_item: Callable[[Any], object] | None,
        id: int | None = None,
    ) -> None:
        self._bus = bus
        self._id = id
        self._entered: list[tuple[Layer, Ask]] = []
        self._on_item = on_item
        self._on_landed = on_landed
        self._suspended: Approval | None = None
        self.ask = ask
        self.effect: Effect | None = None
        self.outcome: Outcome | None = None

    @property
    def running(self) -> bool:
        """Whether the asker has not been told an outcome yet."""
        return self.outcome is None

    def enter(self) -> None:
        """Go in through the layers that are left, then to the handler. Called by the bus."""
        while self.outcome is None:
            at = len(self._entered)
            layers = self._bus.layers(self.ask.key)
            if at == len(layers):
                self._bus.admit(self)
                return
            layer = layers[at]
            decision = layer.before(self.ask)
            if isinstance(decision, Deny):
                self.tell(failed(ReportKind.DENIED, decision.reason))
                return
            self._entered.append((layer, self.ask))
            if isinstance(decision, Patch):
                if decision.kind not in (None, self.ask.kind):
                    message = f"a layer turned a {self.ask.kind} into a {decision.kind}; the family has to stay"
                    self._entered.pop()
                    self.tell(failed(ReportKind.INTERNAL, message))
                    return
                self.ask = replace(self.ask, payload=decision.payload)
            elif isinstance(decision, Suspend):
                self._suspended = decision.approval
                decision.approval.listen(self._answered)
                return

    def _answered(self) -> None:
        approval, self._suspended = self._suspended, None
        assert approval is not None
        if approval.denied is not None:
            self._entered.pop()
            self.tell(failed(ReportKind.DENIED, approval.denied))
        else:
            self.enter()

    def item(self, item: Any) -> None:
        """Pass a stream item outwards. Called by the bus."""
        for layer, ask in reversed(self._entered):
            if not layer.keeps(ask, item):
                self.cancel(Cause.DISCARDED)
                return
        if self._on_item is not None and self.outcome is None:
            self._on_item(item)

    def tell(self, outcome: Outcome) -> None:
        """Carry an outcome outwards and tell the asker; once. Called by the bus."""
        if self.outcome is not None:
            return
        for layer, ask in reversed(self._entered):
            outcome = layer.after(ask, outcome)
        self.outcome = outcome
        self._on_landed(self)

    def cancel(self, cause: Cause) -> bool:
        """Stop it, with everything dispatched on its behalf.

        Something that waits for an approval was asked for, and leaves a cancelled record; what waits for its turn at a
        serial key leaves none.

        Returns:
            ``False`` when the asker had been told an outcome before.
        """
        if self.outcome is not None:
            return False
        if self._suspended is not None:
            self._suspended.forget()
            self._suspended = None
            self.effect = self._bus.record_unserved(self.ask, cause)
        if self.effect is not None and self.effect.running:
            self.effect.cancel(cause)
        elif self.outcome is None:
            self._bus.withdraw(self)
            self.tell(Outcome(Status.CANCELLED, cause))
        return True


class LayeredBus:
    """An effect bus seen through its layers.

    Args:
        bus: what serves and records.
    """

    def __init__(self, bus: EffectBus) -> None:
        self.bus = bus
        self._layers: dict[str, tuple[Layer, ...]] = {}
        self._waiting: dict[str, deque[Dispatch]] = {}
        self._serving: dict[str, Dispatch | None] = {}
        self._children: dict[int, list[Dispatch]] = {}

    def serve(
        self,
        key: str,
        handler: Handler,
        *layers: Layer,
        serial: bool = False,
        descriptor: Descriptor | None = None,
    ) -> None:
        """Serve ``key`` by ``handler`` within ``layers``, the outermost first.

        Args:
            serial: one at a time; what comes meanwhile waits its turn.
            descriptor: what is known of the handler; what the key says unless given.

        Raises:
            ValueError: the key is taken.
        """
        self.bus.register(key, handler, descriptor)
        self.wrap(key, *layers, serial=serial)

    def wrap(self, key: str, *layers: Layer, serial: bool = False) -> None:
        """Put ``layers`` around a key that is served already; they stand outside those it has."""
        self._layers[key] = (*layers, *self._layers.get(key, ()))
        if serial:
            self._waiting.setdefault(key, deque())
            self._serving.setdefault(key, None)

    def layers(self, key: str) -> tuple[Layer, ...]:
        """The layers of a key, the outermost first."""
        return self._layers.get(key, ())

    def descriptor(self, key: str) -> Descriptor:
        """What is known of who serves ``key``, with the names of the layers that stand around it now.

        Raises:
            KeyError: nobody serves it.
        """
        return self.bus.descriptor(key).under(key, tuple([layer.name for layer in self.layers(key)]))

    def serves(self, key: str) -> bool:
        """Whether anybody serves ``key``."""
        served = self.bus.keys()
        return key in served

    def dispatch(
        self,
        kind: EffectKind,
        key: str,
        payload: Any,
        *,
        scope: str,
        on_landed: Callable[[Dispatch], object],
        on_item: Callable[[Any], object] | None = None,
        parent: int | None = None,
        id: int | None = None,
    ) -> Dispatch:
        """Ask for ``payload`` through the layers of ``key``.

        A key that nobody serves, a serial key asked for from within itself, and anything once the ids are used up, are
        told so as outcomes; none of them leaves a record.

        Args:
            on_landed: called once with the dispatch when its outcome is there (perhaps before this returns).
            parent: id of the effect on whose behalf this is asked.
            id: that of the same effect in a session which was saved.
        """
        dispatch = Dispatch(self, Ask(kind, key, payload, scope, parent), on_landed, on_item, id)
        if (self.bus.next_id if id is None else id) >= LAST_ID:
            dispatch.tell(failed(ReportKind.REQUEST, "there are no more ids for effects"))
        elif not self.serves(key):
            dispatch.tell(failed(ReportKind.HANDLER_UNAVAILABLE, f"no handler serves {key}"))
        elif key in self._serving and self._within(key, parent):
            dispatch.tell(failed(ReportKind.REQUEST, f"{key} is served one at a time and is being served already"))
        else:
            if parent is not None:
                self._children.setdefault(parent, []).append(dispatch)
            dispatch.enter()
        return dispatch

    def _within(self, key: str, parent: int | None) -> bool:
        """Whether an effect of ``key`` is being served for somebody up the chain of parents."""
        while parent is not None:
            effect = self.bus.effect(parent)
            if effect.key == key and effect.running:
                return True
            parent = effect.parent
        return False

    # -- called by a dispatch -----------------------------------------------------------------------------

    def admit(self, dispatch: Dispatch) -> None:
        """Have it served, now or when its serial key is free."""
        key = dispatch.ask.key
        if key in self._serving:
            if self._serving[key] is not None:
                self._waiting[key].append(dispatch)
                return
            self._serving[key] = dispatch
        self._serve(dispatch)

    def _serve(self, dispatch: Dispatch) -> None:
        ask = dispatch.ask

        def landed(effect: Effect) -> None:
            dispatch.effect = effect
            assert effect.outcome is not None
            cancelled = effect.outcome.status is Status.CANCELLED
            children = self._children.pop(effect.id, [])
            dispatch.tell(effect.outcome)
            if cancelled:
                for child in sorted(children, key=_began):  # one that ends would let the next one in
                    child.cancel(Cause.DISCARDED)
            if self._serving.get(ask.key) is dispatch:
                self._next(ask.key)

        effect = self.bus.dispatch(
            ask.kind,
            ask.key,
            ask.payload,
            scope=ask.scope,
            on_landed=landed,
            on_item=dispatch.item,
            parent=ask.parent,
            id=dispatch._id,
        )
        dispatch.effect = effect
        if dispatch.outcome is not None and effect.running:  # a layer cancelled it at an item that came at once
            effect.cancel(Cause.DISCARDED)

    def _next(self, key: str) -> None:
        self._serving[key] = None
        if self._waiting[key]:
            self.admit(self._waiting[key].popleft())

    def withdraw(self, dispatch: Dispatch) -> None:
        """It waits no more for its turn."""
        waiting = self._waiting.get(dispatch.ask.key)
        if waiting is not None and dispatch in waiting:
            waiting.remove(dispatch)

    def record_unserved(self, ask: Ask, cause: Cause) -> Effect:
        """The record of something that was cancelled while it waited for an approval."""
        bus = self.bus
        parts = (ask.kind, ask.key, ask.payload, ask.scope, ask.parent)
        effect = bus.effect_class(bus, bus.next_id, *parts, None, lambda _: None)
        bus.next_id += 1
        bus.log.append(effect)
        bus.running += 1
        effect.cancel(cause)
        return effect


def _began(dispatch: Dispatch) -> bool:
    return dispatch.effect is not None
