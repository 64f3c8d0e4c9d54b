"""The effect log: everything that a session asked of the world, what came back, and when it became visible.

A log is JSON lines: a header, one record for each effect in the order of dispatch, and a last line that counts them.
The header names the program and its world (run contract, sections 6 and 10) and, apart from the order of dispatch,
the ``deliveries``: in which order and in which batches things became visible (section 10.1). Every line but the last
carries a check over itself, so that a log that was cut off or edited is refused with the line. ``recording`` makes
logs, ``replay`` plays them. Left out: what requests and items are; they are plain data here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, groupby, pairwise
from typing import TYPE_CHECKING, Any

from bargein.sim.effects.bus import EffectKind, Status
from bargein.sim.effects.document_sorts import LOGS, sort_of_data
from bargein.sim.effects.documents import DocumentError, Fields, parse, parse_first
from bargein.sim.effects.identity import content_digest, stable_hash, written

if TYPE_CHECKING:
    from bargein.sim.effects.tails import LogCheckpoint

__all__ = [
    "DIRECT",
    "FORMAT",
    "HEADER_FIELDS",
    "HEAR",
    "ITEM",
    "LAND",
    "SAID",
    "START",
    "EffectLog",
    "EffectRecord",
    "Step",
    "batches_of",
]

FORMAT = 1
ITEM, LAND = "item", "land"
"""What a step does besides timing others and asking for something of the session: hand over the next item, end."""
HEAR = "hear"
"""How a step begins that no timer caused: whoever opened the connection says something, which is its first item."""
DIRECT = "direct"
"""What became visible where the program put an outcome of its own in place of one that its handler still owed."""
SAID = "said"
"""The key under which such an item holds it."""

_KINDS = tuple(str(kind) for kind in EffectKind)
_STATUSES = tuple(str(status) for status in Status)


@dataclass(slots=True)
class Step:
    """One time at which a handler acted on behalf of an effect.

    Attributes:
        at_us: when.
        order: its place on that instant, as the clock's `Order` counts.
        does: what it did, in order: ``item``, ``land``, a request to the session by name, or the number of a later
            step of the same effect that was timed here.

    Step 0 is the dispatch. Invariant: a step is timed by exactly one earlier step, except step 0 and those that begin
    with ``hear``.
    """

    at_us: int
    order: int = 0
    does: list[str | int] = field(default_factory=list)


@dataclass(slots=True)
class EffectRecord:
    """One effect, as plain data.

    Attributes:
        id, key, kind, parent, scope: as on the bus.
        dispatched_at_us, landed_at_us: virtual instants; the second is ``None`` where the session ended before.
        request: what was asked for, and ``hash`` the stable hash of it.
        items: what was delivered, in order; their instants are those of the steps that delivered them.
        status, value: the outcome; ``None`` where there is none.
        steps: when the handler acted.
        published: what the handler handed back beside its outcome, by name; a line has it only where there is any.
    """

    id: int
    key: str
    kind: str
    parent: int | None
    scope: str
    dispatched_at_us: int
    landed_at_us: int | None
    request: Any
    hash: str
    items: list[Any]
    status: str | None
    value: Any
    steps: list[Step]
    published: dict[str, Any] = field(default_factory=dict)

    @property
    def cancelled(self) -> bool:
        """Whether it was stopped by whoever dispatched it, and did not land of itself.

        It may have been answered all the same, with items and an outcome that nobody had collected yet.
        """
        return self.status is not None and not any(LAND in step.does for step in self.steps)

    @property
    def delivered(self) -> int:
        """How many of its items were handed over."""
        return sum(step.does.count(ITEM) for step in self.steps)

    def item_instants(self) -> Iterator[int]:
        """The instant of each item."""
        for step in sorted(self.steps, key=lambda step: step.at_us):
            for act in step.does:
                if act == ITEM:
                    yield step.at_us

    def to_dict(self) -> dict[str, Any]:
        """The record as a line of the log holds it."""
        data = {name: getattr(self, name) for name in _RECORD_FIELDS}
        data["steps"] = [[step.at_us, step.order, step.does] for step in self.steps]
        if not self.published:
            del data["published"]
        return data

    @classmethod
    def from_dict(cls, data: Any, place: str, position: int) -> EffectRecord:
        """Read a record.

        Args:
            position: the id that it has to have; in a log that starts at the beginning, its position.

        Raises:
            DocumentError: it is none, or does not fit its position.
        """
        fields = Fields(data, place, _RECORD_FIELDS)
        number = fields.count("id")
        if number != position:
            raise DocumentError(f"{place}.id: found {number}; accepted is {position}, the record's position")
        parent = fields.get("parent", int, type(None))
        if parent is not None and not 0 <= parent < number:
            raise DocumentError(
                f"{place}.parent: found {parent}, which makes a circle; accepted is an earlier record, or null"
            )
        kind, status = fields.get("kind", str), fields.get("status", str, type(None))
        for name, value, known in (("kind", kind, _KINDS), ("status", status, (None, *_STATUSES))):
            if value not in known:
                accepted = ", ".join(str(each) for each in known if each)
                raise DocumentError(f'{place}.{name}: found "{value}"; accepted is one of {accepted}')
        record = cls(
            number,
            fields.get("key", str),
            kind,
            parent,
            fields.get("scope", str),
            fields.count("dispatched_at_us"),
            fields.get("landed_at_us", int, type(None)),
            fields.anything("request"),
            fields.get("hash", str),
            fields.get("items", list),
            status,
            data.get("value"),
            _steps(fields),
            fields.get("published", dict) if "published" in data else {},
        )
        record._check(place)
        return record

    def _check(self, place: str) -> None:
        """That the record does not contradict itself."""
        if self.hash != stable_hash(self.request):
            raise DocumentError(f"{place}.request: it does not fit its hash {self.hash}; it was edited")
        delivered, uncollected = self.delivered, self.cancelled and self.status != Status.CANCELLED
        if delivered > len(self.items) or (delivered < len(self.items) and not uncollected):
            raise DocumentError(f"{place}.steps: they deliver {delivered} items; accepted is {len(self.items)}")
        if (self.status is None) is not (self.landed_at_us is None):
            raise DocumentError(f"{place}.status: an outcome and its instant go together; it was edited")


_RECORD_FIELDS = tuple(EffectRecord.__slots__)


def _steps(fields: Fields) -> list[Step]:
    """The steps, each timed by one before it at an instant not before that one's."""
    steps: list[Step] = []
    place = f"{fields.place}.steps"
    for at, data in enumerate(fields.get("steps", list)):
        if (
            type(data) is not list
            or [type(each) for each in data] != [int, int, list]
            or any(type(act) not in (int, str) for act in data[2])
            or data[0] < 0
            or not 0 <= data[1] <= 5
        ):
            raise DocumentError(f"{place}[{at}]: accepted is [instant, order from 0 to 5, [what it does, ...]]")
        steps.append(Step(*data))
    timed = [0] * len(steps)
    for at, step in enumerate(steps):
        for act in step.does:
            if type(act) is not int:
                continue
            if not at < act < len(steps) or steps[act].at_us < step.at_us:
                raise DocumentError(f"{place}[{at}]: it times step {act}; accepted is a later step of this effect")
            timed[act] += 1
    if timed != [int(at > 0 and step.does[:1] != [HEAR]) for at, step in enumerate(steps)] or not steps:
        raise DocumentError(f"{place}: each step after the first is timed once; it was cut off or edited")
    return steps


HEADER_FIELDS = (
    "bargein_log",
    "version",
    "scenario",
    "recordings",
    "seed",
    "tie_seed",
    "settings",
    "tools",
    "handlers",
    "required",
    "signature",
    "hooks",
    "programs",
    "deliveries",
    "result",
)
"""What a header holds: the format; the version of this package; the call, as a scenario, with the content of its
recordings; its seeds; the effective settings and declarations of tools; the handlers by key (family, kind and the hash
of what they are made of); the handlers that the program needs and those it used, by family; its hooks and layers;
the identity of each run's program by scope; what became visible when; and what came of the session."""

START = "start"
"""What else a header holds where a log does not begin with effect 0: the ids that it begins with. It counts on from the
last of them; those before are effects that were in flight where it was cut off from its head."""

_ACCEPTED = "an effect log, as run --record writes it"
_MAPPINGS = ("scenario", "recordings", "settings", "tools", "handlers", "required", "signature", "programs", "result")


@dataclass(slots=True)
class EffectLog:
    """A header and its records.

    Attributes:
        header: plain data with the keys of ``HEADER_FIELDS``, and perhaps ``start``.
        records: in the order of dispatch.
        name: how the user calls it, for errors.
    """

    header: dict[str, Any]
    records: list[EffectRecord]
    name: str = "the log"

    @property
    def of_runs(self) -> bool:
        """Whether it is of agent runs, which somebody drives, and not of a session, which its scenario makes."""
        return not self.header["scenario"]

    @classmethod
    def from_checkpoint(cls, checkpoint: LogCheckpoint[Any], tail: EffectLog) -> EffectLog:
        """The whole log, of its head and of what came after it (run contract, section 13).

        Raises:
            DocumentError: the tail does not go on from there.
        """
        from bargein.sim.effects.tails import joined

        return joined(checkpoint, tail)

    def to_bytes(self) -> bytes:
        """The text of the log: the same bytes for equal logs."""
        lines = [_checked(self.header), *(_checked(record.to_dict()) for record in self.records)]
        body = b"".join(lines)
        end = {"end": {"records": len(self.records), "sha256": content_digest(body)}}
        return body + written(end) + b"\n"

    @classmethod
    def from_bytes(cls, raw: bytes, name: str) -> EffectLog:
        """Read a log; nothing is returned unless all of it is sound.

        Raises:
            DocumentError: it was cut off, edited, made by another format, or is something else.
        """
        first = parse_first(raw, f"{name}:1", name, _ACCEPTED, *LOGS)
        check_format(first, name)
        lines = raw.split(b"\n")
        if lines[-1] != b"" or len(lines) < 3:
            raise DocumentError(f"{name}:{len(lines)}: the log is cut off; accepted is a log with its last line")
        end = parse(lines[-2], f"{name}:{len(lines) - 1}")
        if type(end) is not dict or end.keys() != {"end"}:
            raise DocumentError(f"{name}:{len(lines) - 1}: the log is cut off; accepted is a log with its last line")
        header = _unchecked(first, f"{name}:1")
        records = []
        ids = _ids(header, f"{name}:1")
        for number, line in enumerate(lines[1:-2], start=2):
            data = _unchecked(parse(line, f"{name}:{number}"), f"{name}:{number}")
            records.append(EffectRecord.from_dict(data, f"{name}:{number}: records[{number - 2}]", next(ids)))
        body = raw[: len(raw) - len(lines[-2]) - 1]
        if end["end"] != {"records": len(records), "sha256": content_digest(body)}:
            raise DocumentError(f"{name}: its lines are not those that were counted at its end; it was edited")
        return cls(check_header(header, f"{name}:1"), records, name)


def check_format(data: Any, name: str) -> None:
    """That the first line is a log's, of this format.

    Raises:
        DocumentError: it is something else; says what.
    """
    if type(data) is not dict or "bargein_log" not in data:
        raise DocumentError(f"{name}: it is {sort_of_data(data) or 'no effect log'}; accepted is {_ACCEPTED}")
    if type(data["bargein_log"]) is not int or data["bargein_log"] != FORMAT:
        raise DocumentError(f"{name}: it has format {data['bargein_log']!r}; accepted is format {FORMAT}")


def check_header(data: Any, place: str) -> dict[str, Any]:
    """A header, each field of its sort.

    Raises:
        DocumentError: it is none.
    """
    fields = Fields(data, place, (*HEADER_FIELDS, START) if type(data) is dict and START in data else HEADER_FIELDS)
    for name in _MAPPINGS:
        fields.mapping(name)
    for name in ("hooks", "deliveries"):
        fields.get(name, list)
    fields.get("version", str)
    fields.get("seed", int)
    fields.get("tie_seed", int, type(None))
    return fields.data


def _checked(data: Mapping[str, Any]) -> bytes:
    text = written(data)
    return b'{"check":"' + content_digest(text)[:16].encode() + b'",' + text[1:] + b"\n"


def _unchecked(data: Any, place: str) -> dict[str, Any]:
    """The line without its check, once that was seen to fit."""
    if type(data) is not dict or "check" not in data:
        raise DocumentError(f"{place}: the line has no check; it was edited, or is no line of a log")
    rest = {key: value for key, value in data.items() if key != "check"}
    if data["check"] != content_digest(written(rest))[:16]:
        raise DocumentError(f"{place}: the line does not fit its check {data['check']!r}; it was edited")
    return rest


def _ids(header: Any, place: str) -> Iterator[int]:
    """The ids that the records have to have, without an end."""
    start = header.get(START, [0])
    if (
        type(start) is not list
        or not start
        or any(type(each) is not int or each < 0 for each in start)
        or any(later <= each for each, later in pairwise(start))
    ):
        raise DocumentError(f"{place}.{START}: found {start!r}; accepted is a list of ids, each larger than the last")
    return chain(start, count(start[-1] + 1))


def batches_of(deliveries: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Deliveries in order as batches: ``[instant, effect, items, end]``.

    Args:
        deliveries: ``(instant, effect, what)``, where what is ``item``, ``land``, ``cancelled`` or ``direct``. Where
            that is known, also the step of a live collection (from 1, or 0 for none) and the program's own step.

    Items of one effect that became visible one after the other on one instant, and within one step, are one batch;
    ``end`` is empty or what else became visible with them. A batch that was collected live has a fifth value: 1 if it
    was collected together with the one before, 0 if not.
    """
    batches: list[list[Any]] = []
    step = 0
    for (at_us, effect, _, *marks), group in groupby(deliveries, key=_apart):
        items = 0
        end = ""
        for each in group:
            if each[2] == ITEM:
                items += 1
            else:
                end = each[2]
        batch = [at_us, effect, items, end]
        if marks and marks[0]:
            batch.append(int(marks[0] == step))
            step = marks[0]
        batches.append(batch)
    return batches


def _apart(each: tuple[Any, ...]) -> tuple[Any, ...]:
    return (each[0], each[1], each[2] == DIRECT, *each[3:])
