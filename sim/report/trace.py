"""The session as a Chrome trace, which Perfetto and ``chrome://tracing`` open.

Each lane of the picture is a track of slices, a row a track where calls overlap; every record of the timeline is an
instant on a track of its own, so that a query finds its fields. Instants count microseconds in that format as ours do.
Left out: flows and counters, which a session has no need of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json import dumps
from typing import Any

from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants import Violation
from bargein.sim.report.lanes import LANES, lanes

__all__ = ["trace"]

_SESSION = 1
_HEAD = ("t", "kind")
Event = dict[str, Any]


def trace(records: Sequence[Record], *, title: str = "session", violations: Iterable[Violation] = ()) -> str:
    """The trace as JSON text.

    Args:
        records: the whole timeline, in order.
        title: the name of the process that the tracks belong to.
        violations: shown as instants across all tracks.
    """
    shown = lanes(records)
    tracks = [(lane, row) for lane in LANES for row in range(shown.rows(lane))]
    number = {track: at for at, track in enumerate(tracks, start=1)}
    waits, events = len(tracks) + 1, len(tracks) + 2
    made: list[Event] = [_about("process_name", 0, name=title)]
    names = [lane if shown.rows(lane) == 1 else f"{lane} {row + 1}" for lane, row in tracks]
    for at, name in enumerate([*names, "waits", "timeline"], start=1):
        made += [_about("thread_name", at, name=name), _about("thread_sort_index", at, sort_index=at)]
    for bar in shown.bars:
        name = bar.label or str(bar.look)
        made.append(_slice(name, bar.look, number[bar.lane, bar.row], bar.start_us, bar.end_us))
    for mark in shown.marks:
        made.append(_instant(mark.look, mark.look, mark.at_us, number[mark.lane, mark.row]))
    for line in shown.lines:
        made.append(_instant(line.look, line.look, line.at_us, events, scope="p"))
    for at, wait in enumerate(shown.waits):
        # Waits may overlap without nesting, which slices of one track may not: each is an async pair of its own.
        for phase, t in (("b", wait.start_us), ("e", wait.end_us)):
            made.append({**_event(phase, wait.label, "wait", t, waits), "id": str(at)})
    for record in records:
        fields = {name: value for name, value in record.items() if name not in _HEAD}
        made.append({**_instant(record["kind"], "timeline", record["t"], events), "args": fields})
    for violation in violations:
        one = _instant(f"violated: {violation.invariant}", "violation", violation.t, events, scope="g")
        made.append({**one, "args": {"message": violation.message, "seq": violation.seq}})
    return dumps({"traceEvents": made, "displayTimeUnit": "ms"}, sort_keys=True, separators=(",", ":")) + "\n"


def _event(phase: str, name: str, category: str, t: int, track: int) -> Event:
    return {"ph": phase, "name": str(name), "cat": str(category), "ts": t, "pid": _SESSION, "tid": track}


def _about(what: str, track: int, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": _SESSION, "tid": track, "args": args}


def _slice(name: str, category: str, track: int, start_us: int, end_us: int) -> Event:
    return {**_event("X", name, category, start_us, track), "dur": end_us - start_us}


def _instant(name: str, category: str, t: int, track: int, scope: str = "t") -> Event:
    return {**_event("i", name, category, t, track), "s": scope}
