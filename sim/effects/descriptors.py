"""What is known of a handler without asking it: its key, its family, and what it can do.

A bus keeps one for every key. Logs and checkpoints hold them as data, and whoever goes on from there compares them with
those of the handlers that are present (run contract, sections 10 and 13). Equal descriptors say nothing of endpoints,
credentials or code. Left out: the handlers themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bargein.sim.effects.identity import KeyParts, key_parts
from bargein.sim.effects.kinds import EffectKind

__all__ = ["Descriptor"]

_FAMILIES = {
    "model": EffectKind.COMPLETION,
    "tool": EffectKind.TOOL_CALL,
    "memory": EffectKind.MEMORY,
    "retrieve": EffectKind.RETRIEVAL,
}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One handler.

    Attributes:
        key: where it is installed.
        family: what it serves, as effects' kinds are called.
        label: of the model, where it is one.
        capabilities: what it can do beyond its family, as plain data.
        layers: the names of the layers around it, the outermost first.
    """

    key: str
    family: str
    label: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    layers: tuple[str, ...] = ()

    @classmethod
    def of_key(cls, key: str) -> Descriptor:
        """What a key alone says; a key of no known form serves custom effects."""
        try:
            parts: KeyParts = key_parts(key)
        except ValueError:
            return cls(key, str(EffectKind.CUSTOM))
        family = _FAMILIES[parts.family]
        return cls(key, str(family), parts.name if family is EffectKind.COMPLETION else "")

    def under(self, key: str, layers: tuple[str, ...] | None = None) -> Descriptor:
        """The same handler installed under ``key``; with ``layers`` in place of those it has, if given."""
        return replace(self, key=key, layers=self.layers if layers is None else layers)

    def differences(self, other: Descriptor) -> Iterator[str]:
        """The names of the fields, other than the key, in which two descriptors differ."""
        for name in ("family", "label", "capabilities", "layers"):
            if getattr(self, name) != getattr(other, name):
                yield name

    def to_dict(self) -> dict[str, Any]:
        """The descriptor as plain data."""
        return {
            "key": self.key,
            "family": self.family,
            "label": self.label,
            "capabilities": dict(self.capabilities),
            "layers": list(self.layers),
        }
