"""A booking store with its own guard, and the tool that books in it.

The tool engine never runs one call twice, but it knows no business rule: two sessions, or two turns, may both book
one slot for one customer. That guard belongs where the effect lives, under a key made of business data (tool
contract, 'What "never twice" covers'). The store is the application's and outlives its sessions. Left out: an
opening calendar; any slot is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from bargein.models.python_tools import Steps, ToolCallContext, Tools
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.sim.kernel.durations import as_us

__all__ = ["Booking", "Bookings", "business_key"]

FIRST_NUMBER = 1001


def business_key(customer: str, slot: str) -> str:
    """What makes two bookings the same one to the business, whichever call, turn or session asks: 64 hex digits.

    The customer's length stands before the text, so that no two pairs run together.
    """
    return sha256(f"{len(customer)}:{customer}{slot}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Booking:
    """One effect: a table that is taken.

    Attributes:
        id: ``BK-1001`` and on.
        key: of the business; the same for the same customer and slot.
        call: of the call that made it, as a downstream service would be given it for redelivery.
    """

    id: str
    customer: str
    slot: str
    people: int
    key: str
    call: IdempotencyKey


class Bookings:
    """The store.

    Args:
        guarded: whether the business key is unique; the plain store takes whatever it is told.
        takes: how long a booking takes.

    Attributes:
        made: every booking, in order.

    Invariant: in a guarded store no two bookings have one business key.
    """

    def __init__(self, *, guarded: bool = True, takes: int | str = "400ms") -> None:
        self.made: list[Booking] = []
        self._guarded = guarded
        self._takes_us = as_us(takes)
        self._by_key: dict[str, Booking] = {}

    def tools(self) -> Tools:
        """``book_table``, over this store."""
        tools = Tools()
        tools.side_effect(self.book_table)
        return tools

    def book_table(self, customer: str, slot: str, people: int = 2, *, ctx: ToolCallContext) -> Steps:
        """Books a table for a customer; the same customer and slot are booked once."""
        yield self._takes_us
        return self.book(customer, slot, people, ctx.key)

    def book(self, customer: str, slot: str, people: int, call: IdempotencyKey) -> dict[str, Any]:
        """Book, or say what is booked already; looking and writing are one step, as a unique constraint makes them."""
        key = business_key(customer, slot)
        old = self._by_key.get(key) if self._guarded else None
        if old is not None:
            return {"status": "already_done", "booking": old.id, "slot": old.slot, "people": old.people}
        booking = Booking(f"BK-{FIRST_NUMBER + len(self.made)}", customer, slot, people, key, call)
        self.made.append(booking)
        self._by_key[key] = booking
        return {"status": "booked", "booking": booking.id, "slot": slot, "people": people}
