"""Effects asked for through layers: denied, patched, replaced or kept waiting, without asker or handler knowing.

A `LayeredBus` stands between whoever dispatches and the effect bus. What a layer decides beforehand leaves no record;
what is served is recorded as the innermost layer left it, with the handler's own answer, and only the asker is told
the outer layers' verdict (run contract, section 9.6). It also keeps a key to its number of places, refuses to nest a
key in itself where no place is left, and takes what was dispatched on behalf of an effect down with it (section 8.3).

Ties: what lands on the instant of an approval or a cancellation comes in the order of the clock's calls. Left out:
which handlers there are, and what a layer may decide (``decisions``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bargein.sim.effects.bus import LAST_ID, Effect, EffectBus, EffectKind, Handler, Outcome, Status
from bargein.sim.effects.decisions import Approval, Ask, Deny, Later, Layer, Patch, Suspend
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.dispatches import Dispatch, Witness
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.effects.serving import Places, capacity_of
from bargein.sim.kernel.cancel import Cause

__all__ = ["Approval", "Ask", "Deny", "Dispatch", "Later", "Layer", "LayeredBus", "Patch", "Suspend", "Witness"]


class LayeredBus:
    """An effect bus seen through its layers.

    Args:
        bus: what serves and records.
    """

    def __init__(self, bus: EffectBus) -> None:
        self.bus = bus
        self._layers: dict[str, tuple[Layer, ...]] = {}
        self._places: dict[str, Places[Dispatch]] = {}
        self._children: dict[int, list[Dispatch]] = {}
        self._nested: dict[str, list[Dispatch]] = {}

    def serve(
        self,
        key: str,
        handler: Handler,
        *layers: Layer,
        serial: bool = False,
        capacity: int | None = None,
        descriptor: Descriptor | None = None,
    ) -> None:
        """Serve ``key`` by ``handler`` within ``layers``, the outermost first.

        Args:
            serial: one at a time; what comes meanwhile waits its turn.
            capacity: so many at a time; as many as there are unless given.
            descriptor: what is known of the handler; what the key says unless given.

        Raises:
            ValueError: the key is taken, or the capacity is none.
        """
        capacity_of(serial, capacity)
        self.bus.register(key, handler, descriptor)
        self.wrap(key, *layers, serial=serial, capacity=capacity)

    def wrap(self, key: str, *layers: Layer, serial: bool = False, capacity: int | None = None) -> None:
        """Put ``layers`` around a key that is served already; they stand outside those it has.

        Raises:
            ValueError: the capacity is none, or not the one that the key has.
        """
        places = capacity_of(serial, capacity)
        if places is not None:
            known = self._places.setdefault(key, Places(places, self._serve)).capacity
            if known != places:
                raise ValueError(f"{key} is served {known} at a time; accepted is the same capacity, not {places}")
        self._layers[key] = (*layers, *self._layers.get(key, ()))

    def replace(
        self,
        key: str,
        handler: Handler,
        descriptor: Descriptor | None = None,
        layers: tuple[Layer, ...] | None = None,
    ) -> None:
        """Serve ``key`` by ``handler`` from now on, in the same places and within the same layers, unless given others.

        What is being served stays with whom it is; what still waits for a place or an approval was given to nobody
        yet, and goes to the new one.

        Raises:
            ValueError: nobody serves the key.
        """
        self.bus.replace(key, handler, descriptor)
        if layers is not None:
            self._layers[key] = layers

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
        witness: Witness | None = None,
    ) -> Dispatch:
        """Ask for ``payload`` through the layers of ``key``.

        A key that nobody serves, a key asked for from within itself with no place left, and anything once the ids are
        used up, are told so as outcomes; none of them leaves a record.

        Args:
            on_landed: called once with the dispatch when its outcome is there (perhaps before this returns).
            parent: id of the effect on whose behalf this is asked.
            id: that of the same effect in a session which was saved.
            witness: told how far it has come.
        """
        dispatch = Dispatch(self, Ask(kind, key, payload, scope, parent), on_landed, on_item, id, witness)
        if self._no_id(id):
            dispatch.tell(_used_up())
        elif not self.serves(key):
            dispatch.tell(failed(ReportKind.HANDLER_UNAVAILABLE, f"no handler serves {key}"))
        elif self._may_not_wait(dispatch.ask):
            dispatch.tell(self._no_place(key))
        else:
            if parent is not None:
                self._children.setdefault(parent, []).append(dispatch)
                self._nested.setdefault(scope, []).append(dispatch)
            dispatch.enter()
        return dispatch

    def nested(self, scope: str) -> list[Dispatch]:
        """What was asked on behalf of effects of a scope and still runs, whether or not these do; first what waits for
        a place, which the end of another would let in."""
        return sorted([each for each in self._nested.get(scope, ()) if each.running], key=_began)

    def _no_id(self, id: int | None) -> bool:
        """Whether there is no id for an effect that has to have this one, or a new one."""
        return (self.bus.next_id if id is None else id) >= LAST_ID

    def _may_not_wait(self, ask: Ask) -> bool:
        """Whether it would wait for a place that somebody up its chain of parents may hold until it is answered.

        Where a place is free it has it. Otherwise it is refused, also where only some of the places are its parents':
        those who hold the others may be waiting in the same way.
        """
        places = self._places.get(ask.key)
        return places is not None and places.full and self._within(ask.key, ask.parent)

    def _no_place(self, key: str) -> Outcome:
        capacity = self._places[key].capacity
        times = "one" if capacity == 1 else capacity
        return failed(ReportKind.REQUEST, f"{key} is served {times} at a time, and it is asked for from within itself")

    def _within(self, key: str, parent: int | None) -> bool:
        """Whether an effect of ``key`` is being served for somebody up the chain of parents."""
        while parent is not None:
            try:
                effect = self.bus.effect(parent)
            except KeyError:  # it was asked for in a session that was saved, and holds no place here
                return False
            if effect.key == key and (effect.running or self._holds_place(effect)):
                return True
            parent = effect.parent
        return False

    def _holds_place(self, effect: Effect) -> bool:
        """Whether it keeps its place although it has landed, since a layer is over its verdict."""
        return any(holder.effect is effect for holder in self._places[effect.key].holders)

    # -- called by a dispatch -----------------------------------------------------------------------------

    def admit(self, dispatch: Dispatch) -> None:
        """Have it served, now or when there is a place."""
        places = self._places.get(dispatch.ask.key)
        if places is None:
            self._serve(dispatch)
        elif self._may_not_wait(dispatch.ask):  # the place that was free is not any more
            dispatch.tell(self._no_place(dispatch.ask.key))
        else:
            places.enter(dispatch)

    def _serve(self, dispatch: Dispatch) -> None:
        ask = dispatch.ask
        if self._no_id(dispatch.id):  # others have used them up while it waited
            if dispatch.tell(_used_up()):
                self.over(dispatch, cancelled=False)
            return

        def landed(effect: Effect) -> None:
            assert effect.outcome is not None
            if dispatch.answered(effect):
                self.over(dispatch, cancelled=effect.outcome.status is Status.CANCELLED)

        dispatch.serving()
        effect = self.bus.dispatch(
            ask.kind,
            ask.key,
            ask.payload,
            scope=ask.scope,
            on_landed=landed,
            on_item=dispatch.item,
            parent=ask.parent,
            id=dispatch.id,
        )
        dispatch.effect = effect
        if dispatch.outcome is not None and effect.running:  # a layer cancelled it at an item that came at once
            effect.cancel(Cause.DISCARDED)

    def over(self, dispatch: Dispatch, *, cancelled: bool) -> None:
        """The asker was told: what was asked on its behalf ends with a cancellation, and its place is free."""
        if dispatch.effect is not None:
            children = self._children.pop(dispatch.effect.id, [])
            if cancelled:
                for child in sorted(children, key=_began):  # one that ends would let the next one in
                    child.cancel(Cause.DISCARDED)
        if dispatch.ask.parent is not None:
            left = self.nested(dispatch.ask.scope)
            if left:
                self._nested[dispatch.ask.scope] = left
            else:
                self._nested.pop(dispatch.ask.scope, None)
        places = self._places.get(dispatch.ask.key)
        if places is not None:
            places.leave(dispatch)

    def withdraw(self, dispatch: Dispatch) -> None:
        """It waits no more for a place."""
        places = self._places.get(dispatch.ask.key)
        if places is not None:
            places.withdraw(dispatch)

    def record_unserved(self, ask: Ask, cause: Cause, id: int | None) -> Effect | None:
        """The record of something that was cancelled while it waited for an approval; none where there is no id."""
        bus = self.bus
        if self._no_id(id):
            return None
        id = bus.next_id if id is None else id
        effect = bus.effect_class(bus, id, ask.kind, ask.key, ask.payload, ask.scope, ask.parent, None, _nobody)
        bus.next_id = max(bus.next_id, id + 1)
        bus.log.append(effect)
        bus.running += 1
        bus.unserved(effect)
        effect.cancel(cause)
        return effect


def _used_up() -> Outcome:
    return failed(ReportKind.REQUEST, "there are no more ids for effects")


def _began(dispatch: Dispatch) -> bool:
    return dispatch.effect is not None


def _nobody(_: Effect) -> None:
    """Nobody is told."""
