"""What fillers cost and gave in one session: numbers that a filler's delay trades against each other.

A filler fills silence, and a ready answer waits until it has been heard. Sweeps measure these beside the metrics of
``sim.lab.metrics``, whose names they share a table with. Left out: judging the trade; the plots show it.
"""

from __future__ import annotations

from collections.abc import Iterable

from bargein.sim.kernel.timeline import Record

__all__ = ["FILLER_METRICS", "filler_metrics"]

FILLER_METRICS: dict[str, tuple[str, str]] = {
    "fillers_heard": ("", "fillers of which anything was heard"),
    "fillers_in_vain": ("", "of these, fillers whose answer was ready within 500 ms of their first sample"),
    "filler_lead_us": ("us", "shortest: first sample of a filler to its answer being ready to be spoken"),
    "filler_leads_us": ("us", "the same for each filler whose answer came"),
    "answer_wait_us": ("us", "longest that a ready answer waited until its filler was over"),
    "answer_waits_us": ("us", "the same for each filler whose answer came"),
}
"""Unit and definition of each, in the order they are shown."""

_IN_VAIN_US = 500_000


def filler_metrics(records: Iterable[Record]) -> dict[str, int | list[int] | None]:
    """Every number about fillers, in one pass; a value is ``None`` where there was no case."""
    lives: dict[int, dict[str, int]] = {}  # by utterance: its epoch, and what happened to it when
    for record in records:
        kind = record["kind"]
        if kind == "tts.opened" and record["source"] == "filler":
            lives[record["utterance"]] = {"epoch": record["epoch"]}
        elif kind == "playout.started" and record["utterance"] in lives:
            lives[record["utterance"]]["from"] = record["t"]
        elif kind in ("playout.ended", "playout.cut") and record["utterance"] in lives:
            lives[record["utterance"]]["to"] = record["t"]
        elif kind == "response.started" and record["source"] == "answer":
            for life in lives.values():
                if life["epoch"] == record["epoch"]:
                    life.setdefault("ready", record["t"])
    fillers = [life for life in lives.values() if "from" in life]
    leads, waits = [], []
    for life in fillers:
        if "ready" in life:
            leads.append(max(0, life["ready"] - life["from"]))
            waits.append(max(0, life.get("to", life["ready"]) - life["ready"]))
    return {
        "fillers_heard": len(fillers),
        "fillers_in_vain": sum(lead <= _IN_VAIN_US for lead in leads),
        "filler_lead_us": min(leads, default=None),
        "filler_leads_us": leads,
        "answer_wait_us": max(waits, default=None),
        "answer_waits_us": waits,
    }
