"""What holds in every session, checked from its timeline alone.

``check`` reads the records once and runs each checker that is not turned off. The lab calls it after a run, and
a user may call it on any timeline of this vocabulary. Left out: what a single scenario expects
(``sim.scenario.expectations``).
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants import audio, context, tools, turns
from bargein.sim.lab.invariants.base import Check, CheckSettings, Invariant, Kind, ToolFacts, Violation
from bargein.sim.lab.invariants.facts import Facts

__all__ = ["INVARIANTS", "CheckSettings", "Facts", "Invariant", "Kind", "ToolFacts", "Violation", "check"]


def _entry(check: Check, about: str, kind: Kind = Kind.SAFETY) -> tuple[str, Invariant]:
    name = check.__name__
    return name, Invariant(name, about, kind, check)


INVARIANTS: dict[str, Invariant] = dict(
    (
        _entry(tools.effect_once, "no side effect runs twice where the contract forbids it"),
        _entry(context.result_once, "every side effect's result reaches the context exactly once"),
        _entry(context.calls_answered, "every call is answered once, in issue order, before any other message"),
        _entry(context.context_valid, "every request sent is valid, and valid for the provider it is sent to"),
        _entry(context.context_heard, "assistant text in the context is what was heard, no more and no less"),
        _entry(audio.playout_order, "audio plays in the order it was meant, without overlap; no clip is overtaken"),
        _entry(audio.no_stale_audio, "nothing of an ended epoch is heard after its cut"),
        _entry(audio.stop_bound, "after a barge-in decision the bot is silent by the next frame boundary"),
        _entry(tools.filler_timing, "no filler before its delay, none once its result is in, none left out"),
        _entry(tools.gate_respected, "a gated call runs only after a later user turn confirmed it"),
        _entry(tools.speculation_safe, "no side effect runs before its turn commits"),
        _entry(tools.no_dead_epoch_effect, "no call of an interrupted or unconfirmed response starts after it ended"),
        _entry(turns.one_reply, "one user turn gets at most one reply, each transcript belongs to one turn"),
        _entry(turns.turn_answered, "every user turn is answered, or its ending says why", Kind.LIVENESS),
        _entry(audio.position_true, "every played position is samples over rate, within what was received"),
        _entry(turns.quiet_end, "the session ends with nothing left open, after its last sample", Kind.LIVENESS),
    )
)
"""Every invariant by name, in the order in which they are reported."""


def check(records: Sequence[Record], settings: CheckSettings | None = None) -> list[Violation]:
    """Check a session's timeline.

    Args:
        records: the whole timeline, in order.
        settings: what was promised, and which invariants are off; the defaults of the pipeline if left out.

    Returns:
        What is broken, grouped by invariant in the order of ``INVARIANTS``; empty when all hold.

    Raises:
        LookupError: an invariant that is turned off does not exist.
    """
    settings = settings or CheckSettings()
    for name in sorted(settings.off):
        if name not in INVARIANTS:
            near = get_close_matches(name, INVARIANTS, 1)
            hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(INVARIANTS)}"
            raise LookupError(f'no invariant is called "{name}"{hint}')
    facts = Facts(records)
    found: list[Violation] = []
    for name, invariant in INVARIANTS.items():
        if name not in settings.off:
            found += invariant.check(facts, settings)
    return found
