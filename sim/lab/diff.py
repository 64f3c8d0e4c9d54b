"""Where two timelines part: the first event that differs, and whether anything but times moved.

``bargein diff`` prints it and the pytest plugin fails with it. Two events are the same in substance when everything
but their instants and durations is; how many samples were heard is substance, since it is what the caller heard.
Left out: an edit script of the whole; what follows a first difference is mostly its consequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from json import JSONEncoder
from pathlib import Path
from typing import Any

from bargein.sim.effects.document_sorts import TIMELINE, sort_of
from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record, read_jsonl

__all__ = ["Difference", "Move", "TimelineError", "Verdict", "compare", "read_timeline", "tell"]

AROUND = 3
"""Events shown on each side of a difference."""

_encode = JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False).encode
_INSTANTS = frozenset(("t", "seq", "at_sample"))
_HEAD = frozenset(("t", "seq", "kind", "epoch"))


class TimelineError(ValueError):
    """A file that is no timeline; the argument is the sentence that says so."""


class Verdict(StrEnum):
    """What kind of difference it is."""

    TIMES = "only times moved"
    ORDER = "the same events in another order"
    EVENTS = "other events"


@dataclass(frozen=True, slots=True)
class Move:
    """An event at position ``at`` that came ``by_us`` later (earlier where negative), or lasted that much longer."""

    at: int
    by_us: int


@dataclass(frozen=True, slots=True)
class Difference:
    """How timeline B differs from timeline A.

    Attributes:
        at: position of the first event that differs in anything.
        parts_at: position of the first that differs in substance; ``None`` where only times moved.
        moves: the events that are the same in substance and moved, up to where the substance parts.
        added, removed: how many more and fewer of a kind B has, by kind, in name order.
    """

    verdict: Verdict
    at: int
    parts_at: int | None = None
    moves: tuple[Move, ...] = ()
    added: dict[str, int] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)

    @property
    def first(self) -> Move | None:
        """The first event that only moved."""
        return self.moves[0] if self.moves else None

    @property
    def most(self) -> Move | None:
        """The event that moved most, the first of them."""
        return max(self.moves, key=lambda move: abs(move.by_us), default=None)


def read_timeline(path: str | Path) -> list[Record]:
    """The records of a ``.timeline.jsonl`` file.

    Raises:
        TimelineError: there is none, or it is no timeline; one sentence that names the file.
    """
    accepted = "accepted is a timeline in JSON lines, as `bargein run --out` writes it"
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TimelineError(f"{path}: {(error.strerror or str(error)).lower()}; {accepted}") from None
    except UnicodeDecodeError:
        raise TimelineError(f"{path}: found bytes that are no UTF-8; {accepted}") from None
    try:
        records = read_jsonl(text)
    except ValueError as error:
        other = sort_of(text.encode("utf-8"))
        found = error if other in (None, TIMELINE) else f"it is {other}"
        raise TimelineError(f"{path}: {found}; {accepted}") from None
    for number, record in enumerate(records, start=1):
        if type(record["t"]) is not int or type(record["kind"]) is not str:
            raise TimelineError(f"{path}: line {number} has no whole microseconds in t or no name in kind; {accepted}")
    if not records:
        raise TimelineError(f"{path}: it is empty; {accepted}")
    return records


def compare(a: Sequence[Record], b: Sequence[Record]) -> Difference | None:
    """The difference of two timelines, or ``None`` where they are equal."""
    length = min(len(a), len(b))
    at = next((at for at in range(length) if a[at] != b[at]), length)
    if at == len(a) == len(b):
        return None
    essence_a, essence_b = [_essence(record) for record in a], [_essence(record) for record in b]
    parts_at = next((at for at in range(length) if essence_a[at] != essence_b[at]), length)
    moves = tuple(Move(at, _moved_us(a[at], b[at])) for at in range(at, parts_at) if a[at] != b[at])
    if parts_at == len(a) == len(b):
        return Difference(Verdict.TIMES, at, None, moves)
    kinds_a, kinds_b = (Counter(record["kind"] for record in side) for side in (a, b))
    verdict = Verdict.ORDER if Counter(essence_a) == Counter(essence_b) else Verdict.EVENTS
    added, removed = (dict(sorted(more.items())) for more in (kinds_b - kinds_a, kinds_a - kinds_b))
    return Difference(verdict, at, parts_at, moves, added, removed)


def _is_time(name: str) -> bool:
    return name in _INSTANTS or name.endswith("_us")


def _essence(record: Record) -> str:
    return _encode({name: value for name, value in record.items() if not _is_time(name)})


def _moved_us(a: Record, b: Record) -> int:
    """By how much an event moved: its instant, else the value in it that moved most."""
    if a["t"] != b["t"]:
        return int(b["t"] - a["t"])
    shifts = [0]
    for name in sorted(a.keys() & b.keys()):
        if name != "seq" and _is_time(name) and type(a[name]) is type(b[name]) is int:
            shift = b[name] - a[name]
            shifts.append(_samples_us(shift) if name == "at_sample" else shift)
    return max(shifts, key=abs)


def _samples_us(samples: int) -> int:
    return samples_to_us(samples) if samples >= 0 else -samples_to_us(-samples)


# -- in words -------------------------------------------------------------------------------------------------


def tell(
    difference: Difference | None, a: Sequence[Record], b: Sequence[Record], names: tuple[str, str] = ("A", "B")
) -> list[str]:
    """The difference for people, line by line: the verdict, then the places, ``-`` for A and ``+`` for B."""
    if difference is None:
        return [f"equal: {len(a)} events"]
    lines = [_headline(difference, a, b, names)]
    lines.append(f"--- {names[0]}")
    lines.append(f"+++ {names[1]}")
    places = [difference.at]
    if difference.parts_at is not None and difference.parts_at != difference.at:
        places.append(difference.parts_at)
    for place in places:
        lines += ["", _place(place, a, b, first=place == difference.at), *_around(place, a, b)]
    return lines


def _headline(difference: Difference, a: Sequence[Record], b: Sequence[Record], names: tuple[str, str]) -> str:
    match difference.verdict:
        case Verdict.TIMES:
            return f"{Verdict.TIMES}: {_moved(difference, a)}"
        case Verdict.ORDER:
            return f"{Verdict.ORDER}: all {len(a)} are in both"
        case Verdict.EVENTS:
            counts = f"{Verdict.EVENTS}: {len(a)} in {names[0]}, {len(b)} in {names[1]}"
            for word, kinds in (("added", difference.added), ("removed", difference.removed)):
                if kinds:
                    counts += f"; {word}: " + ", ".join(f"{kind} {count}" for kind, count in kinds.items())
            return counts


def _moved(difference: Difference, a: Sequence[Record]) -> str:
    first, most = difference.first, difference.most
    if first is None or most is None:
        return "none"
    text = f"{len(difference.moves)} of {len(a)} events, first event {first.at} ({a[first.at]['kind']})"
    text += f" by {_signed(first.by_us)}"
    if most.by_us == first.by_us:
        return f"{text}, none by more"
    return f"{text}, most event {most.at} ({a[most.at]['kind']}) by {_signed(most.by_us)}"


def _place(at: int, a: Sequence[Record], b: Sequence[Record], *, first: bool) -> str:
    what = "first difference" if first else "first difference that is more than a time"
    if at >= len(a) or at >= len(b):
        longer, shorter = ("+", "-") if at >= len(a) else ("-", "+")
        return f"{what}: event {at}, where {shorter} ends and {longer} goes on"
    if a[at]["kind"] != b[at]["kind"]:
        return f"{what}: event {at}, {a[at]['kind']} in -, {b[at]['kind']} in +"
    changes = []
    for name in sorted(a[at].keys() | b[at].keys()):
        old, new = a[at].get(name), b[at].get(name)
        if old != new:
            by = ""
            if isinstance(old, int) and isinstance(new, int) and _is_time(name) and name not in ("seq", "at_sample"):
                by = f" ({_signed(new - old)})"
            changes.append(f"{name} {_value(old)} -> {_value(new)}{by}")
    return f"{what}: event {at}, {a[at]['kind']}: {', '.join(changes)}"


def _around(at: int, a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """Both sides round a place as one column, what they share once."""
    near_a, near_b = (side[max(0, at - AROUND) : at + AROUND + 1] for side in (a, b))
    keys_a, keys_b = ([_encode({**record, "seq": 0}) for record in side] for side in (near_a, near_b))
    width = max((len(record["kind"]) for record in (*near_a, *near_b)), default=0)
    lines: list[str] = []
    for step, from_a, to_a, from_b, to_b in SequenceMatcher(None, keys_a, keys_b, autojunk=False).get_opcodes():
        if step == "equal":
            lines += _lines(" ", near_a[from_a:to_a], width)
        else:
            lines += _lines("-", near_a[from_a:to_a], width)
            lines += _lines("+", near_b[from_b:to_b], width)
    return lines


def _lines(sign: str, records: Iterable[Record], width: int) -> list[str]:
    return [
        f"{sign} {record['seq']:>4}  {record['t'] / 1e6:>10.6f}  {record['kind']:<{width}}  {_fields(record)}".rstrip()
        for record in records
    ]


def _fields(record: Record) -> str:
    rest = " ".join(f"{name}={_value(value)}" for name, value in record.items() if name not in _HEAD)
    return f"epoch={record.get('epoch')} {rest}".rstrip()


def _value(value: Any) -> str:
    return "-" if value is None else _encode(value)


def _signed(us: int) -> str:
    return f"{'-' if us < 0 else '+'}{format_us(abs(us))}"
