"""A log that is cut in two: its head, with the state of whoever drives it, and the tail that goes on from there.

A `LogCheckpoint` is the head as a document. An effect that was in flight at the cut has no outcome in it and is not
part of it; it is the tail's, which therefore may begin with ids that lie apart (run contract, section 13). Replayers
over a tail serve what comes again by its key and position, as over any log; what was in flight is asked for again and
takes its whole recorded time again, counted from then. Left out: what the state is; whoever cuts a log brings it, and
reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bargein.sim.effects.deliveries import is_batch
from bargein.sim.effects.document_sorts import HEAD, sort_of_data
from bargein.sim.effects.documents import DocumentError, Fields, parse_first
from bargein.sim.effects.log import START, EffectLog, EffectRecord
from bargein.sim.effects.sealing import check_one_line, fits_seal, sealed

__all__ = ["FORMAT", "LogCheckpoint", "checkpoint_of", "cut", "joined", "start_of", "tail_of"]

S = TypeVar("S")

FORMAT = 1
_ACCEPTED = "a log's head with a state"
_FIELDS = ("bargein_log_checkpoint", "head", "open", "next_id", "deliveries", "state", "check")


@dataclass(slots=True)
class LogCheckpoint(Generic[S]):
    """A log up to a place.

    Attributes:
        head: what had an outcome there.
        open: the ids of what was in flight, ascending.
        next_id: what the next effect is called.
        deliveries: everything that had become visible, also of what was in flight.
        state: of whoever drives.
        name: how the user calls it, for errors.
    """

    head: EffectLog
    open: tuple[int, ...]
    next_id: int
    deliveries: list[list[Any]]
    state: S
    name: str = "the checkpoint"

    @property
    def first_id(self) -> int:
        """With which effect a tail begins."""
        return min((*self.open, self.next_id))

    def accept(self, tail: EffectLog) -> None:
        """See that ``tail`` goes on from here.

        Raises:
            DocumentError: it does not; a whole log is noticed by the first of its ids.
        """
        ids = [record.id for record in tail.records]
        first = ids[0] if ids else tail.header.get(START, [0])[0]
        if first != self.first_id:
            raise DocumentError(
                f"{tail.name}: it begins with effect {first}; accepted is a tail that begins with effect "
                f"{self.first_id}, where {self.name} was made"
            )
        twice = next((record.id for record in self.head.records if record.id in ids), None)
        if twice is not None:
            raise DocumentError(f"{tail.name}: effect {twice} is in the head; accepted is a tail without it")
        missing = next((id for id in self.open if id not in ids), None)
        if missing is not None:
            raise DocumentError(
                f"{tail.name}: effect {missing} was in flight where {self.name} was made, and is not in it; accepted "
                "is a tail that begins with what was in flight"
            )

    # -- the document -------------------------------------------------------------------------------------

    def to_bytes(self, write: Callable[[S], Any] = lambda state: state) -> bytes:
        """The document: one line, the same bytes for equal checkpoints.

        Args:
            write: makes plain data of the state; it is plain unless given.
        """
        return sealed(
            {
                "bargein_log_checkpoint": FORMAT,
                "head": self.head.to_bytes().decode(),
                "open": list(self.open),
                "next_id": self.next_id,
                "deliveries": self.deliveries,
                "state": write(self.state),
            }
        )

    @classmethod
    def from_bytes(cls, raw: bytes, name: str, read: Callable[[Any], S] = lambda data: data) -> LogCheckpoint[S]:
        """Read a checkpoint; nothing is returned unless all of it is sound.

        Args:
            read: makes the state of plain data; it stays plain unless given.

        Raises:
            DocumentError: it was cut off, edited, made by another format, or is something else.
        """
        data = parse_first(raw, name, name, _ACCEPTED, HEAD)
        if type(data) is not dict or "bargein_log_checkpoint" not in data:
            raise DocumentError(
                f"{name}: it is {sort_of_data(data) or 'no checkpoint of a log'}; accepted is {_ACCEPTED}"
            )
        check_one_line(raw, name)
        found = data["bargein_log_checkpoint"]
        if type(found) is not int or found != FORMAT:
            raise DocumentError(f"{name}: it has format {found!r}; accepted is format {FORMAT}")
        fields = Fields(data, name, _FIELDS)
        fields.get("check", str)
        if not fits_seal(data):
            raise DocumentError(f"{name}: the document does not fit its check; it was edited")
        opened, next_id = fields.get("open", list), fields.count("next_id")
        if any(type(each) is not int or each < 0 for each in opened) or opened != sorted(set(opened)):
            raise DocumentError(f"{name}.open: found {opened!r}; accepted is a list of ids, each larger than the last")
        deliveries = fields.get("deliveries", list)
        strange = next((at for at, each in enumerate(deliveries) if not is_batch(each)), None)
        if strange is not None:
            raise DocumentError(f"{name}.deliveries[{strange}]: accepted is [instant, effect, items, end]")
        if "state" not in data:
            raise DocumentError(f"{name}: state is missing; it was cut off or edited")
        head = EffectLog.from_bytes(fields.get("head", str).encode(), f"{name}: head")
        return cls(head, tuple(opened), next_id, deliveries, read(data["state"]), name)


# -- cutting --------------------------------------------------------------------------------------------------


def checkpoint_of(log: EffectLog, state: S, next_id: int | None = None) -> LogCheckpoint[S]:
    """The checkpoint of a log that stops where it is to be cut.

    Args:
        next_id: what the next effect is called; one more than the last there is unless given.
    """
    free = max((record.id for record in log.records), default=-1) + 1 if next_id is None else next_id
    landed = [record for record in log.records if record.status is not None]
    opened = tuple([record.id for record in log.records if record.status is None])
    head = _part(log, landed, free, _of(log.header["deliveries"], landed))
    return LogCheckpoint(head, opened, free, list(log.header["deliveries"]), state)


def tail_of(log: EffectLog, checkpoint: LogCheckpoint[Any]) -> EffectLog:
    """What a whole log holds beyond a checkpoint that was made on the way.

    Raises:
        DocumentError: it was not made on the way of this log.
    """
    before = checkpoint.deliveries
    if log.header["deliveries"][: len(before)] != before:
        raise DocumentError(f"{log.name}: its deliveries do not begin with those of {checkpoint.name}")
    seen = {record.id for record in checkpoint.head.records}
    records = [record for record in log.records if record.id not in seen]
    kept = [*_of(before, records), *log.header["deliveries"][len(before) :]]
    return _part(log, records, checkpoint.next_id, kept)


def cut(log: EffectLog, at_us: int, state: S) -> tuple[LogCheckpoint[S], EffectLog]:
    """Cut a log after everything that happened up to and on the instant ``at_us``.

    Returns:
        The checkpoint, and the tail.
    """
    landed = [each for each in log.records if each.landed_at_us is not None and each.landed_at_us <= at_us]
    later = [each.id for each in log.records if each.dispatched_at_us > at_us]
    free = min(later, default=max((each.id for each in log.records), default=-1) + 1)
    seen = {each.id for each in landed}
    opened = tuple([each.id for each in log.records if each.dispatched_at_us <= at_us and each.id not in seen])
    before = [each for each in log.header["deliveries"] if each[0] <= at_us]
    head = _part(log, landed, free, _of(before, landed))
    checkpoint = LogCheckpoint(head, opened, free, before, state)
    return checkpoint, tail_of(log, checkpoint)


def joined(checkpoint: LogCheckpoint[Any], tail: EffectLog) -> EffectLog:
    """The whole log again; see `EffectLog.from_checkpoint`."""
    checkpoint.accept(tail)
    head = checkpoint.head
    again = _of(checkpoint.deliveries, tail.records)
    rest = tail.header["deliveries"]
    if rest[: len(again)] != again:
        raise DocumentError(f"{tail.name}: it does not show what had become visible of its effects before the cut")
    records = sorted((*head.records, *tail.records), key=lambda record: record.id)
    header = {
        **{name: value for name, value in tail.header.items() if name != START},
        "signature": {record.key: record.kind for record in records},
        "programs": {**head.header["programs"], **tail.header["programs"]},
        "deliveries": [*checkpoint.deliveries, *rest[len(again) :]],
    }
    return EffectLog(header, records, tail.name)


def start_of(ids: Sequence[int], next_id: int) -> list[int]:
    """With which ids a log begins, as its header says it (``log.START``).

    Args:
        ids: of its records, ascending.
        next_id: where it has none, the id that the first of them would have.
    """
    if not ids:
        return [next_id]
    last = len(ids) - 1
    while last and ids[last - 1] == ids[last] - 1:
        last -= 1
    return list(ids[: last + 1])


def _part(log: EffectLog, records: list[EffectRecord], next_id: int, deliveries: list[list[Any]]) -> EffectLog:
    """Some records of a log, as a log of their own."""
    start = start_of([record.id for record in records], next_id)
    header: dict[str, Any] = {
        **log.header,
        "signature": {record.key: record.kind for record in records},
        "deliveries": deliveries,
    }
    header.pop(START, None)
    return EffectLog(header if start == [0] else {**header, START: start}, records, log.name)


def _of(deliveries: Collection[list[Any]], records: Collection[EffectRecord]) -> list[list[Any]]:
    """Those of the deliveries that are of these records."""
    ids: Mapping[int, EffectRecord] = {record.id: record for record in records}
    return [each for each in deliveries if each[1] in ids]
