"""One thing asked through layers, on its way in to its handler and on its way back.

The way in ends where a layer denies it, and stops where one wants an approval; on the way back each layer that let it
in gives its verdict, the innermost first, and may stop it again. What was recorded by then stays: cancelling one that
waits for a verdict leaves the handler's answer in its record (run contract, section 9.6 and "Returned replies and
collection cadence"). A `LayeredBus` makes them. Left out: who is served when (``serving``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.decisions import Approval, Ask, Deny, Later, Layer, Patch, Suspend
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause

if TYPE_CHECKING:
    from bargein.sim.effects.layers import LayeredBus

__all__ = ["Dispatch", "Witness"]


class Witness(Protocol):
    """Who is told how far something that was asked has come, apart from what comes of it.

    A session has its timeline told so: what a layer has stopped never ran, and what one withholds did.
    """

    def suspended(self, layer: Layer) -> object:
        """It waits for the approval that ``layer`` wants; nobody was asked to serve it."""

    def served(self, ask: Ask) -> object:
        """Its handler is asked now, as the innermost layer left it; the next record is its own."""

    def answered(self, outcome: Outcome) -> object:
        """Its handler has answered, or was stopped; no layer has given its verdict."""

    def withheld(self, layer: Layer) -> object:
        """``layer`` takes its time over the verdict."""

    def withdrawn(self, cause: Cause) -> object:
        """It was given up while it waited for an approval; nobody was ever asked to serve it."""


class Dispatch:
    """One thing that was asked through the layers.

    Attributes:
        ask: as it stands now; layers on its way in may have patched it.
        id: the one that its record has to have; the next one where it is ``None``.
        effect: its record, once it was served; ``None`` where nothing was.
        outcome: what the asker was told; ``None`` while it runs, and while a layer is over its verdict.
        served: whether its handler was asked.

    The layers are those that stood around the key when it was asked.
    """

    __slots__ = (
        "_bus",
        "_entered",
        "_layers",
        "_on_item",
        "_on_landed",
        "_waits_for",
        "_was_withheld",
        "_withheld",
        "_witness",
        "ask",
        "effect",
        "id",
        "outcome",
        "served",
    )

    def __init__(
        self,
        bus: LayeredBus,
        ask: Ask,
        on_landed: Callable[[Dispatch], object],
        on_item: Callable[[Any], object] | None,
        id: int | None = None,
        witness: Witness | None = None,
    ) -> None:
        self.id = id
        self._witness = witness
        self._bus = bus
        self._layers = bus.layers(ask.key)
        self._entered: list[tuple[Layer, Ask]] = []
        self._on_item = on_item
        self._on_landed = on_landed
        self._waits_for: tuple[Approval, Callable[[], object]] | None = None
        self._withheld: Outcome | None = None
        self._was_withheld = False
        self.ask = ask
        self.effect: Effect | None = None
        self.outcome: Outcome | None = None
        self.served = False

    @property
    def running(self) -> bool:
        """Whether the asker has not been told an outcome yet."""
        return self.outcome is None

    @property
    def withheld(self) -> bool:
        """Whether its handler has answered, and a layer is over its verdict."""
        return self._withheld is not None

    @property
    def queued(self) -> bool:
        """Whether it waits for a place: it is on its way in, and nobody was asked to serve or to approve it."""
        return self.outcome is None and not self.served and self._waits_for is None

    # -- on the way in ------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Go in through the layers that are left, then to the handler. Called by the bus."""
        while self.outcome is None:
            at = len(self._entered)
            if at == len(self._layers):
                self._bus.admit(self)
                return
            layer = self._layers[at]
            decision = layer.before(self.ask)
            if isinstance(decision, Deny):
                self.tell(failed(ReportKind.DENIED, decision.reason))
                return
            if decision is not None and not isinstance(decision, Patch | Suspend):  # no slip lets anything pass
                raise TypeError(
                    f"{layer.name}.before() gave {_kind(decision)} for {self.ask.key}; accepted is a Deny, a Patch, a "
                    "Suspend, or None to let it pass"
                )
            self._entered.append((layer, self.ask))
            if isinstance(decision, Patch):
                if decision.kind not in (None, self.ask.kind):
                    message = f"a layer turned a {self.ask.kind} into a {decision.kind}; the family has to stay"
                    self._entered.pop()
                    self.tell(failed(ReportKind.INTERNAL, message))
                    return
                self.ask = replace(self.ask, payload=decision.payload)
            elif isinstance(decision, Suspend):
                if self._witness is not None and not decision.approval.answered:
                    self._witness.suspended(layer)
                self._wait(decision.approval, self._approved)
                return

    def _wait(self, approval: Approval, listener: Callable[[], object]) -> None:
        self._waits_for = approval, listener
        approval.listen(listener)

    def _answer(self) -> Outcome | None:
        """The answer that was waited for: the denial, or nothing."""
        assert self._waits_for is not None
        denied, self._waits_for = self._waits_for[0].denied, None
        return None if denied is None else failed(ReportKind.DENIED, denied)

    def _approved(self) -> None:
        denial = self._answer()
        if denial is None:
            self.enter()
        else:
            self._entered.pop()
            self.tell(denial)

    def serving(self) -> None:
        """Its handler is asked next. Called by the bus."""
        self.served = True
        if self._witness is not None:
            self._witness.served(self.ask)

    # -- on the way out -----------------------------------------------------------------------------------

    def answered(self, effect: Effect) -> bool:
        """Its handler has answered: as `tell`. Called by the bus."""
        assert effect.outcome is not None
        self.effect = effect
        if self._witness is not None:
            self._witness.answered(effect.outcome)
        return self.tell(effect.outcome)

    def item(self, item: Any) -> None:
        """Pass a stream item outwards. Called by the bus."""
        for layer, ask in reversed(self._entered):
            if not layer.keeps(ask, item):
                self.cancel(Cause.DISCARDED)
                return
        if self._on_item is not None and self.outcome is None:
            self._on_item(item)

    def tell(self, outcome: Outcome, *, gave_up: bool = False) -> bool:
        """Carry an outcome outwards and tell the asker; once. Called by the bus.

        Returns:
            ``False`` where a layer takes its time over it; the bus hears when that is over.
        """
        while self._entered:
            layer, ask = self._entered.pop()
            verdict = layer.after(ask, outcome)
            if isinstance(verdict, Outcome):
                outcome = verdict
            elif not isinstance(verdict, Later):
                raise TypeError(
                    f"{layer.name}.after() gave {_kind(verdict)} for {ask.key}; accepted is an Outcome, such as the "
                    "one it was given, or Later"
                )
            elif outcome.status is not Status.CANCELLED:
                self._withhold(outcome, layer, verdict.approval)
                return False
        if self.outcome is None:
            self.outcome = outcome
            if self._was_withheld and self.effect is not None:
                self.effect.told(cancelled=gave_up)
            self._on_landed(self)
        return True

    def _withhold(self, outcome: Outcome, layer: Layer, approval: Approval) -> None:
        self._withheld = outcome
        if self._witness is not None and not approval.answered:
            self._witness.withheld(layer)
        if not self._was_withheld and self.effect is not None:
            self.effect.withhold()
        self._was_withheld = True
        self._wait(approval, self._judged)

    def _judged(self) -> None:
        outcome, self._withheld = self._withheld, None
        assert outcome is not None
        self._tell_late(self._answer() or outcome, gave_up=False)

    def _tell_late(self, outcome: Outcome, *, gave_up: bool) -> None:
        if self.tell(outcome, gave_up=gave_up):
            self._bus.over(self, cancelled=gave_up)

    # -- giving up ----------------------------------------------------------------------------------------

    def on_landed(self, listener: Callable[[Dispatch], object]) -> None:
        """Have ``listener(dispatch)`` called with the outcome, in place of whoever was to be told so far."""
        self._on_landed = listener

    def detach(self) -> None:
        """Leave it running, with nobody to be told what comes of it; its witness still is."""
        self._on_item = None
        self._on_landed = _nobody

    def cancel(self, cause: Cause) -> bool:
        """Stop it, with everything dispatched on its behalf.

        What waits for an approval was asked for, and leaves a cancelled record; what waits for a place leaves none.
        Where the handler has answered and a layer is over its verdict, the record keeps that answer, and the asker is
        told that it was cancelled.

        Returns:
            ``False`` when the asker had been told an outcome before.
        """
        if self.outcome is not None:
            return False
        if self._waits_for is not None:
            approval, listener = self._waits_for
            approval.forget(listener)
            self._waits_for = None
            if self._withheld is None:
                self.effect = self._bus.record_unserved(self.ask, cause, self.id)  # nothing, once the ids are used up
                if self._witness is not None:
                    self._witness.withdrawn(cause)
        if self._withheld is not None:
            self._withheld = None
            self._tell_late(Outcome(Status.CANCELLED, cause), gave_up=True)
        elif self.effect is not None and self.effect.running:
            self.effect.cancel(cause)
        else:
            self._bus.withdraw(self)
            self.tell(Outcome(Status.CANCELLED, cause))
        return True


def _nobody(_: Dispatch) -> None:
    """Nobody is told."""


def _kind(value: object) -> str:
    """What a layer gave, without an address that differs from run to run."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
