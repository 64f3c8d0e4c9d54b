"""Two tools that stand in for an application of one's own: ``lookup_order`` and ``book_appointment``.

The example agents name them. They are no packaged tools, since nobody's real agent has them: a program or the command
line brings them in (``--tools bargein.models.apps.demo:tools``), as it would bring in its own (tool contract, "In
the server binary"). Left out: any real order or calendar.
"""

from __future__ import annotations

from typing import Annotated, Any

from bargein.models.python_tools import Steps, ToolCallContext, ToolError, Tools

__all__ = ["ORDERS", "book_appointment", "lookup_order", "tools"]

ORDERS = {"1001": "shipped", "1002": "being packed", "1003": "delivered"}
"""Order numbers and where each order is."""

tools = Tools()


@tools.read_only
def lookup_order(number: Annotated[str, "The order number, digits only."]) -> Steps:
    """Looks up where an order is."""
    yield "600ms"
    status = ORDERS.get(number)
    if status is None:
        raise ToolError(f"there is no order {number!r}; ask the caller to read the number out again")
    return {"order": number, "status": status}


@tools.side_effect
def book_appointment(day: str, time: str, *, ctx: ToolCallContext) -> Steps:
    """Books an appointment."""
    yield "900ms"
    booked: dict[str, Any] = {"appointment": f"AP-{ctx.key.digest()[:6]}", "day": day, "time": time}
    return booked
