"""A checkpoint of agent runs: the document, as data, with a format number.

``entities`` are everything there is, parents before what hangs on them and siblings in their order; a reference is the
position of another entity. ``counters`` are the numbers that are free, ``binaries`` every payload once under its
digest (run contract, section 13). `RunCheckpoint.from_bytes` makes nothing but this. Left out: what the entities say
(``saved_graph`` writes them, ``restored_graph`` reads them) and going on from them (``run_restore``).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bargein.pipelines.agent.saved_errors import BadBinary, BadValue, KeyMismatch, NotACheckpoint, OtherFormat
from bargein.sim.effects.bus import LAST_ID
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.document_sorts import RUNS, sort_of_data
from bargein.sim.effects.documents import DocumentError, Fields, parse_first, read_bytes
from bargein.sim.effects.kinds import EffectKind
from bargein.sim.effects.sealing import check_one_line, fits_seal, sealed

__all__ = ["FORMAT", "MAX_BYTES", "RunCheckpoint"]

FORMAT = 2
MAX_BYTES = 512 * 1024 * 1024
"""Of a file; the payloads of a full asset store are about two thirds of it in base64."""
_FIELDS = ("bargein_runs", "at_us", "entities", "counters", "binaries", "check")
_COUNTERS = ("next_run", "next_id")
_BINDING = ("kind", "key", "descriptor")
_DESCRIPTOR = ("key", "family", "label", "capabilities", "layers")


@dataclass(frozen=True, slots=True)
class RunCheckpoint:
    """Runs at one instant.

    Attributes:
        at_us: the instant.
        entities: each a mapping with its ``kind``.
        next_run, next_id: numbers that were not given yet.
        binaries: payloads by their SHA-256.
        name: how the user calls it, for errors.
    """

    at_us: int
    entities: tuple[Mapping[str, Any], ...]
    next_run: int
    next_id: int
    binaries: Mapping[str, bytes]
    name: str = "the checkpoint"

    def requirements(self) -> dict[str, Descriptor]:
        """The handlers that have to be there before anything goes on, by key, as they were when it was saved.

        Raises:
            BadValue: one of them is no descriptor.
            KeyMismatch: one of them names another key than its binding.
        """
        found: dict[str, Descriptor] = {}
        for at, entity in enumerate(self.entities):
            if entity.get("kind") == "handler":
                descriptor = _binding(entity, f"{self.name}: entities[{at}]")
                if descriptor.key in found:
                    raise BadValue(f"{self.name}: entities[{at}].key: {descriptor.key} is bound twice")
                found[descriptor.key] = descriptor
        return found

    # -- the document -------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The checkpoint as plain data, as a log may hold it as its state."""
        return {
            "bargein_runs": FORMAT,
            "at_us": self.at_us,
            "entities": [dict(each) for each in self.entities],
            "counters": {name: getattr(self, name) for name in _COUNTERS},
            "binaries": {digest: b64encode(data).decode("ascii") for digest, data in self.binaries.items()},
        }

    def to_bytes(self) -> bytes:
        """The document: the same bytes for equal checkpoints."""
        return sealed(self.to_dict())

    @classmethod
    def from_bytes(cls, raw: bytes, name: str = "the checkpoint") -> RunCheckpoint:
        """Read a document; nothing is returned unless its outside is sound.

        Raises:
            NotACheckpoint: it was cut off, edited, or is something else.
            OtherFormat: it has a format that is not read here.
            BadBinary: a payload is not what its digest says.
        """
        try:
            data = parse_first(raw, name, name, RUNS, RUNS)
            _check_format(data, name)
            check_one_line(raw, name)
        except DocumentError as error:
            raise NotACheckpoint(str(error)) from error
        if not fits_seal(data):
            raise NotACheckpoint(f"{name}: the document does not fit its check; it was cut off or edited")
        return cls.from_dict({key: value for key, value in data.items() if key != "check"}, name)

    @classmethod
    def from_file(cls, path: str | Path) -> RunCheckpoint:
        """Read the document in a file of up to ``MAX_BYTES``.

        Raises:
            As `from_bytes`; `NotACheckpoint` also where there is no such file, or a larger one.
        """
        try:
            raw = read_bytes(path, "a checkpoint of agent runs", MAX_BYTES)
        except DocumentError as error:
            raise NotACheckpoint(str(error)) from error
        return cls.from_bytes(raw, str(path))

    @classmethod
    def from_dict(cls, data: Any, name: str = "the checkpoint") -> RunCheckpoint:
        """Read plain data, as a log may hold it.

        Raises:
            As `from_bytes`.
        """
        _check_format(data, name)
        try:
            fields = Fields(data, name, _FIELDS)
            counters = Fields(fields.get("counters", dict), f"{name}: counters", _COUNTERS)
            entities = fields.get("entities", list)
            next_run, next_id = counters.count("next_run"), counters.count("next_id")
            at_us, coded = fields.count("at_us"), fields.mapping("binaries")
        except DocumentError as error:
            raise NotACheckpoint(str(error)) from error
        for at, entity in enumerate(entities):
            if type(entity) is not dict or type(entity.get("kind")) is not str:
                raise NotACheckpoint(f"{name}: entities[{at}]: it is no entity; accepted is a mapping with its kind")
        if next_id > LAST_ID:
            raise NotACheckpoint(f"{name}: counters.next_id: found {next_id}; accepted is up to {LAST_ID}")
        binaries = {digest: _payload(text, digest, name) for digest, text in coded.items()}
        return cls(at_us, tuple(entities), next_run, next_id, binaries, name)


def _check_format(data: Any, name: str) -> None:
    if type(data) is not dict or "bargein_runs" not in data:
        raise NotACheckpoint(f"{name}: it is {sort_of_data(data) or 'something else'}; accepted is {RUNS}")
    if type(data["bargein_runs"]) is not int or data["bargein_runs"] != FORMAT:
        raise OtherFormat(f"{name}: it has format {data['bargein_runs']!r}; accepted is format {FORMAT}")


def _payload(text: Any, digest: str, name: str) -> bytes:
    place = f"{name}: binaries.{digest}"
    try:
        data = b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise BadBinary(f"{place}: it is no base64") from error
    if sha256(data).hexdigest() != digest:
        raise BadBinary(f"{place}: its {len(data)} bytes have another digest; it was edited")
    return data


def _binding(entity: Mapping[str, Any], place: str) -> Descriptor:
    """A handler's binding; its own key and that of its descriptor have to agree."""
    try:
        fields = Fields(dict(entity), place, _BINDING)
        inner = Fields(fields.get("descriptor", dict), f"{place}.descriptor", _DESCRIPTOR)
        key, family = fields.get("key", str), inner.get("family", str)
        layers = inner.get("layers", list)
        label, capabilities = inner.get("label", str), dict(inner.mapping("capabilities"))
        described = inner.get("key", str)
    except DocumentError as error:
        raise BadValue(str(error)) from error
    if family not in tuple(EffectKind) or any(type(each) is not str for each in layers):
        raise BadValue(f"{place}.descriptor: found the family {family!r} and the layers {layers!r}; it was edited")
    if described != key:
        raise KeyMismatch(f"{place}: it binds {key}, and its descriptor is of {described}")
    return Descriptor(key, family, label, capabilities, tuple(layers))
