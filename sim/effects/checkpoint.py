"""A checkpoint: one session at one place, as a JSON document that another process can go on from.

It holds what identifies the program (as a log's header does), the effects so far, the exact place, and the state of
every part, readable, with a digest. Loading it makes nothing: `Checkpoint.from_bytes` checks the whole document, and
whoever resumes it runs the session up to the place, with recorded effects, and compares the state before it goes on
(run contract, section 13). A document may be saved to look at and still not be resumable; `Checkpoint.unresumable`
says why. Left out: what the parts are, which only those who know the session know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.document_sorts import CHECKPOINT, sort_of_data
from bargein.sim.effects.documents import DocumentError, Fields, parse_first
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.effects.log import EffectRecord
from bargein.sim.effects.sealing import check_one_line, fits_seal, sealed

__all__ = ["FORMAT", "Checkpoint", "Place"]

FORMAT = 1

_FIELDS = (
    "bargein_checkpoint",
    "version",
    "scenario",
    "recordings",
    "seed",
    "tie_seed",
    "settings",
    "tools",
    "handlers",
    "required",
    "hooks",
    "place",
    "counters",
    "records",
    "digests",
    "parts",
    "check",
)
_MAPPINGS = ("scenario", "recordings", "settings", "tools", "handlers", "required", "digests", "parts")
_ACCEPTED = "a checkpoint, as run --checkpoint writes it"
_PLACE = ("why", "at_us", "events", "seq")
_COUNTERS = ("next_run", "next_id")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session was stopped.

    Attributes:
        why: what was asked for, such as ``tool.committed:2``.
        at_us: the instant.
        events: how many events of the clock had happened.
        seq: how many records the timeline had.
    """

    why: str
    at_us: int
    events: int
    seq: int


@dataclass(slots=True)
class Checkpoint:
    """A session at a place.

    Attributes:
        header: what identifies the program and the call, as plain data.
        place: where it stands.
        next_run, next_id: numbers that were not given yet.
        records: the effects so far; those without an outcome are open.
        parts: the state of every part; digests: the digest of each.
        name: how the user calls it, for errors.
    """

    header: dict[str, Any]
    place: Place
    next_run: int
    next_id: int
    records: list[EffectRecord]
    parts: dict[str, Any]
    digests: dict[str, str]
    name: str = "the checkpoint"

    @property
    def requirements(self) -> dict[str, dict[str, Any]]:
        """The handlers that have to be there before it is resumed, as they were when it was saved."""
        return dict(self.header["handlers"])

    def unresumable(self, own_kind: str) -> list[str]:
        """Why nobody can go on from here, a sentence for each reason; empty where one can.

        A connection is open all through a session and is in nobody's way: who serves it is run again like the rest of
        the world. What is in the way is an answer that streams, and code of the program's own that runs.

        Args:
            own_kind: the kind of handler that is the program's own code and must not run twice.
        """
        reasons = []
        for record in self.records:
            if record.status is not None:
                continue
            handler = self.header["handlers"].get(record.key)
            what = f"effect {record.id} ({record.key})"
            if type(handler) is not dict:
                reasons.append(f"{what} is open, and no handler of that key was saved with it")
            elif record.kind == EffectKind.COMPLETION and record.items:
                reasons.append(
                    f"{what} is in the middle of its stream, after {len(record.items)} items, and there is no cursor "
                    "to go on from; accepted is a place where no answer is streaming, such as tool.committed"
                )
            elif handler.get("kind") == own_kind:
                reasons.append(
                    f"{what} is running code of the program's own, which must not run twice; accepted is a place "
                    "before it starts or after it ends"
                )
        return reasons

    # -- the document -------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The document: the same bytes for equal checkpoints."""
        data: dict[str, Any] = {"bargein_checkpoint": FORMAT, **self.header}
        data["place"] = {name: getattr(self.place, name) for name in _PLACE}
        data["counters"] = {"next_run": self.next_run, "next_id": self.next_id}
        data["records"] = [record.to_dict() for record in self.records]
        data["digests"] = self.digests
        data["parts"] = self.parts
        return sealed(data)

    @classmethod
    def from_bytes(cls, raw: bytes, name: str) -> Checkpoint:
        """Read a checkpoint; nothing is returned unless all of it is sound.

        Raises:
            DocumentError: it was cut off, edited, made by another format, or is something else.
        """
        data = parse_first(raw, name, name, _ACCEPTED, CHECKPOINT)  # a log has more lines than one
        _check_format(data, name)
        check_one_line(raw, name)
        fields = Fields(data, name, _FIELDS)
        fields.get("check", str)
        for key in _MAPPINGS:
            fields.mapping(key)
        digests, parts = fields.data["digests"], fields.data["parts"]
        for part, state in parts.items():
            if digests.get(part) != content_digest(written(state))[:16]:
                raise DocumentError(f"{name}: parts.{part}: it does not fit its digest; it was edited")
        if not fits_seal(data):
            raise DocumentError(f"{name}: the document does not fit its check; it was edited")
        fields.get("version", str)
        fields.get("seed", int)
        fields.get("tie_seed", int, type(None))
        place = Fields(fields.get("place", dict), f"{name}: place", _PLACE)
        counters = Fields(fields.get("counters", dict), f"{name}: counters", _COUNTERS)
        records = [
            EffectRecord.from_dict(each, f"{name}: records[{at}]", at)
            for at, each in enumerate(fields.get("records", list))
        ]
        if counters.count("next_id") < len(records):
            raise DocumentError(f"{name}: counters.next_id: found {counters.data['next_id']}; accepted is a free id")
        fields.get("hooks", list)
        own = ("bargein_checkpoint", "place", "counters", "records", "digests", "parts", "check")
        return cls(
            {key: value for key, value in data.items() if key not in own},
            Place(place.get("why", str), place.count("at_us"), place.count("events"), place.count("seq")),
            counters.count("next_run"),
            counters.data["next_id"],
            records,
            parts,
            digests,
            name,
        )


def _check_format(data: Any, name: str) -> None:
    if type(data) is not dict or "bargein_checkpoint" not in data:
        raise DocumentError(f"{name}: it is {sort_of_data(data) or 'no checkpoint'}; accepted is {_ACCEPTED}")
    found = data["bargein_checkpoint"]
    if type(found) is not int or found != FORMAT:
        raise DocumentError(f"{name}: it has format {found!r}; accepted is format {FORMAT}")
