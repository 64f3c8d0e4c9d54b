"""What a checker is given and what it says: settings, violations, and the entry of a registry.

The four checker files use it; the lab builds the settings from a session's own. Left out: the facts that are read
from a timeline (``facts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bargein.pipelines.settings import EngineConfig, FillerConfig
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.facts import Facts

__all__ = ["Check", "CheckSettings", "Invariant", "Kind", "ToolFacts", "Violation"]

_ENGINE = EngineConfig()
_FILLER = FillerConfig()


class Kind(StrEnum):
    """What a broken invariant means."""

    SAFETY = "safety"
    """Something wrong happened."""
    LIVENESS = "liveness"
    """Something right never did."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: the invariant, the instant in microseconds, a sentence, the record it shows at."""

    invariant: str
    t: int
    message: str
    seq: int


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What the checkers need to know of a tool; the fields mean what they mean in its declaration.

    ``filler_after_us`` is ``None`` for a tool that wants no filler.
    """

    side_effect: bool = False
    repeatable: bool = False
    confirm: bool = False
    filler_after_us: int | None = 0


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What was promised in this session, as far as a timeline does not say it.

    Attributes:
        fillers: whether fillers may be spoken at all.
        filler_delay_us: one delay for every round; ``None`` means each tool's own.
        tools: by name; a tool that is not listed is taken to have the defaults.
        orphan_window_us: how long an identical call is recognised after a side effect became an orphan.
        confirm_ttl_us: how long a request for confirmation lives.
        identities: call id to a digest of its tool and arguments, from the effect log. Arguments are on no
            timeline, so without it an effect that runs twice under two call ids goes unseen.
        off: names of invariants that are not checked.
        before: what was promised before the record ``changed_at``, where a session was resumed with other values.
    """

    fillers: bool = _FILLER.enabled
    filler_delay_us: int | None = _FILLER.delay_us
    tools: Mapping[str, ToolFacts] = field(default_factory=dict)
    orphan_window_us: int = _ENGINE.orphan_window_us
    confirm_ttl_us: int = _ENGINE.confirm_ttl_us
    identities: Mapping[str, str] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    before: CheckSettings | None = None
    changed_at: int = 0

    def at(self, record: Record) -> CheckSettings:
        """What was promised when ``record`` was made."""
        return self if self.before is None or record["seq"] >= self.changed_at else self.before


Check = Callable[[Facts, CheckSettings], Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """An entry of the registry: its name, when it holds, what breaking it means, and its checker."""

    name: str
    about: str
    kind: Kind
    check: Check
