"""What a log says became visible when: whether it can be believed, and whether a replay came out the same.

The deliveries of a header stand apart from the order of dispatch: batch by batch, with their instants, and with which
of them a live collection took together (run contract, section 10.1). Batches make the identity, not elapsed time; a
session's replay has to keep the instants as well. Left out: making them (``log.batches_of``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from bargein.sim.effects.log import DIRECT, LAND, EffectLog

__all__ = ["Planned", "delivery_differences", "delivery_faults", "given_up", "is_batch", "planned_steps", "told"]

_CANCELLED = "cancelled"
_ENDS = ("", LAND, _CANCELLED, DIRECT)


class Planned(NamedTuple):
    """A step of a live collection: when, and what it takes of which effect: so many items, and whether it ends."""

    at_us: int
    takes: list[tuple[int, int, bool]]


def delivery_faults(log: EffectLog) -> Iterator[str]:
    """Why a log cannot establish what became visible when; nothing where it can."""
    deliveries = log.header["deliveries"]
    records = {record.id: record for record in log.records}
    if not deliveries and any(record.items or record.status is not None for record in log.records):
        yield "it has no deliveries, so what became visible when is not known; accepted is a log that has them"
        return
    items = dict.fromkeys(records, 0)
    ends = dict.fromkeys(records, "")
    last_us = 0
    for at, batch in enumerate(deliveries):
        if not is_batch(batch):
            yield f"deliveries[{at}]: accepted is [instant, effect, items, end], and 0 or 1 where it was collected live"
            return
        at_us, effect, count, end, *_ = batch
        if effect not in records:
            yield f"deliveries[{at}]: there is no effect {effect}; accepted is one of the {len(log.records)} records"
            return
        if at_us < last_us or count < 0 or end not in _ENDS or ends[effect]:
            yield f"deliveries[{at}]: {told(batch)} cannot follow what stands before it"
            return
        last_us = at_us
        if end == DIRECT:
            yield (
                f"effect {effect} ({records[effect].key}): at {at_us} us the program put an outcome of its own in the "
                "place of its handler's, which was still to come, so what became visible is not in the log; accepted "
                "is one in which outcomes are replaced once they have landed"
            )
            return
        items[effect] += count
        ends[effect] = end
        if items[effect] > len(records[effect].items):
            yield (
                f"deliveries[{at}]: effect {effect} shows {items[effect]} items, and its stream has "
                f"{len(records[effect].items)}"
            )
            return
    for record in log.records:
        wanted = ("",) if record.status is None else (_CANCELLED,) if record.cancelled else (LAND, _CANCELLED)
        if items[record.id] != record.delivered or ends[record.id] not in wanted:
            yield f"effect {record.id}: its deliveries do not show all that came of it"
            return


_PLAIN = [int, int, int, str]
_LIVE = [*_PLAIN, int]


def is_batch(batch: Any) -> bool:
    """Whether it has the form of one."""
    if type(batch) is not list or [type(each) for each in batch] not in (_PLAIN, _LIVE):
        return False
    return batch[4:] in ([], [0], [1])


def given_up(log: EffectLog) -> dict[int, int]:
    """When an answer that was there was given up by whoever had asked for it, by the effect's id."""
    records = {record.id: record for record in log.records}
    found: dict[int, int] = {}
    for batch in log.header["deliveries"]:
        match batch:
            case [int(at_us), int(effect), _, "cancelled"] if effect in records:
                landed_at_us = records[effect].landed_at_us
                if landed_at_us is not None and at_us >= landed_at_us and not records[effect].cancelled:
                    found[effect] = at_us
    return found


def delivery_differences(recorded: Sequence[list[Any]], found: Sequence[list[Any]], *, instants: bool) -> Iterator[str]:
    """A sentence for each batch that came otherwise.

    Args:
        instants: whether it has to come on its instant, too.
    """
    first = 0 if instants else 1
    for before, now in zip_longest(recorded, found):
        if before is None or now is None:
            yield f"recorded were {len(recorded)} batches of deliveries; now {len(found)}"
            return
        width = min(len(before), len(now))  # what was collected together is compared where it is known of both
        if before[first:width] != now[first:width]:
            yield f"recorded was {told(before)}; now it was {told(now)}"


def planned_steps(deliveries: Sequence[list[Any]]) -> list[Planned]:
    """The steps of live collections, in order."""
    steps: list[Planned] = []
    for batch in deliveries:
        match batch:
            case [int(at_us), int(effect), int(items), str(end), 0 | 1 as together]:
                if not (together and steps):
                    steps.append(Planned(at_us, []))
                steps[-1].takes.append((effect, items, end == LAND))
    return steps


def told(batch: list[Any]) -> str:
    """A batch in words."""
    at_us, effect, items, end, *live = batch
    parts = [f"{items} item{'' if items == 1 else 's'}"] if items else []
    parts += [{LAND: "the outcome", _CANCELLED: "the cancellation"}.get(end, f"{end!r}")] if end else []
    together = ", collected with the one before," if live == [1] else ""
    return f"{' and '.join(parts) or 'nothing'} of effect {effect}{together} at {at_us} us"
