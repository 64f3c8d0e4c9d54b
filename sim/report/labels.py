"""The session as Audacity labels: import the file beside ``call.wav`` and read along.

A label is one line, ``start<TAB>end<TAB>text``, in seconds; what happens at one instant starts and ends there. The
text begins with its lane, so that a search finds all of one. Left out: the spectral ranges that such a file may have.
"""

from __future__ import annotations

from collections.abc import Sequence

from bargein.sim.kernel.timeline import Record
from bargein.sim.report.lanes import Look, lanes

__all__ = ["labels"]

_SPOKEN = (Look.CALLER, Look.BOT, Look.FILLER)


def labels(records: Sequence[Record]) -> str:
    """The text of a label file, in the order of starts, each line ended; to the microsecond."""
    shown = lanes(records)
    found: list[tuple[int, int, str]] = []
    for bar in shown.bars:
        text = bar.label if bar.look in _SPOKEN and bar.label else f"{bar.look} {bar.label}".rstrip()
        found.append((bar.start_us, bar.end_us, f"{bar.lane}: {text}"))
    found += [(mark.at_us, mark.at_us, f"{mark.lane}: {mark.look}") for mark in shown.marks]
    found += [(line.at_us, line.at_us, str(line.look)) for line in shown.lines]
    found += [(wait.start_us, wait.end_us, wait.label) for wait in shown.waits]
    found.sort(key=lambda label: label[:2])  # stable: lanes from top to bottom within an instant
    return "".join(f"{_seconds(start)}\t{_seconds(end)}\t{_one_line(text)}\n" for start, end, text in found)


def _seconds(us: int) -> str:
    return f"{us // 1_000_000}.{us % 1_000_000:06d}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
