"""What the speech-to-speech tests share: calls with a live provider, and their wire as lists."""

from __future__ import annotations

from typing import Any

__all__ = ["LATENCY_US", "TURN_US", "call", "line", "placed", "received", "sent"]

LATENCY_US = 50_000
TURN_US = 1_000_000
"""The caller's first line ends here; the provider hears it one latency later."""


def line(say: str, at_us: int, until_us: int) -> dict[str, Any]:
    """The caller says so between two instants, as the provider's detector decides it."""
    return {"say": say, "at": f"{at_us}us", "level": "decision", "for": f"{until_us - at_us}us"}


def placed(say: str = "Hello?") -> dict[str, Any]:
    """A first line that ends at `TURN_US`."""
    return line(say, 100_000, TURN_US)


def call(
    provider: str, llm: Any, *lines: dict[str, Any], s2s: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A call of these lines with a provider 50 ms away."""
    live = {"provider": provider, "latency": f"{LATENCY_US}us", **(s2s or {})}
    return {"scenario": "live", "s2s": live, "caller": list(lines or (placed(),)), "llm": llm, **more}


def sent(result: Any) -> list[tuple[Any, ...]]:
    """``(t, what, calls)`` of every message that went out after the set-up."""
    return [(r["t"], r["what"], r["calls"]) for r in result.records if r["kind"] == "s2s.sent"][1:]


def received(result: Any, *what: str) -> list[tuple[Any, ...]]:
    """``(t, what, response)`` of the messages of these kinds that came in; of all where none is named."""
    records = [r for r in result.records if r["kind"] == "s2s.received"]
    return [(r["t"], r["what"], r["response"]) for r in records if not what or r["what"] in what]
