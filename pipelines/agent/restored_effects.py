"""The effects of a saved run, read one by one and put into their places: in the run, in its rounds, in their batches.

How each is held has to fit what it is: a batch holds calls that wait in it and nothing else (run contract, sections
8.1 and 13). Left out: whether one that is unfinished can go on here (``run_restore``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bargein.pipelines.agent.run_state import BACKOFF_OWNER, BATCH_OWNER, PendingEffect, Phase, Purpose, Run, Turn
from bargein.pipelines.agent.saved_errors import BadHold, BadValue, IdTaken
from bargein.pipelines.agent.saved_graph import EFFECT
from bargein.pipelines.agent.saved_values import count, read_fields, shaped
from bargein.sim.effects.kinds import EffectKind

__all__ = ["RestoredEffects", "check_ids"]


class RestoredEffects:
    """The effects of one run.

    Args:
        run: which gets them once all were read (`complete`).
        wake: what they call when something about them changed.

    Attributes:
        waits_us: of those held by a backoff, how much longer.
        withheld: those that were answered, and whose asker had not been told.
    """

    def __init__(self, run: Run, wake: Callable[[], object]) -> None:
        self._run = run
        self._wake = wake
        self._placed: dict[int, PendingEffect] = {}
        self._slots: dict[Turn, dict[int, PendingEffect]] = {}
        self.waits_us: dict[PendingEffect, int] = {}
        self.withheld: dict[PendingEffect, None] = {}

    def read(self, entity: Mapping[str, Any], turn: Turn | None, place: str) -> PendingEffect:
        """The effect of an entity, of ``turn`` or of the run itself.

        Raises:
            ValueFault, CheckpointError: it is none, or cannot stand where it says.
        """
        answered = {"payload": None} if entity.get("outcome") is not None else {}
        values = read_fields(PendingEffect, EFFECT, {**answered, **entity}, place)
        asks = entity["asks"]
        if asks not in tuple(EffectKind):
            raise BadValue(f"{place}.asks: found {asks!r}; accepted is one of {', '.join(EffectKind)}")
        effect = PendingEffect(EffectKind(asks), wake=self._wake, turn=turn, **values)
        effect.reserved = shaped(entity["id"], int | None, f"{place}.id")
        effect.parent = shaped(entity["on_behalf_of"], int | None, f"{place}.on_behalf_of")
        number = count(entity["place"], f"{place}.place")
        if number in self._placed:
            raise BadValue(f"{place}.place: {self._run.scope} has two effects at {number}")
        self._placed[number] = effect
        slot = shaped(entity["slot"], int | None, f"{place}.slot")
        self._put(effect, slot, place)
        self._check_held(effect, entity["held"], slot, place)
        if entity["release_in_us"] is not None:
            if BACKOFF_OWNER not in effect.holds:
                raise BadHold(f"{place}.release_in_us: {BACKOFF_OWNER} does not hold it; there is nothing to wait for")
            self.waits_us[effect] = count(entity["release_in_us"], f"{place}.release_in_us")
        if shaped(entity["withheld"], bool, f"{place}.withheld"):
            self.withheld[effect] = None
        return effect

    def _put(self, effect: PendingEffect, slot: int | None, place: str) -> None:
        """Into its batch, where it is a call of one."""
        turn = effect.turn
        if (slot is None) is (effect.purpose is Purpose.CALL and turn is not None):
            raise BadHold(f"{place}.slot: found {slot!r}; a round's call has its place in the batch, and nothing else")
        if slot is not None and turn is not None:
            slots = self._slots.setdefault(turn, {})
            if slot in slots:
                raise BadHold(f"{place}.slot: the batch has two calls at {slot}")
            slots[slot] = effect

    def _check_held(self, effect: PendingEffect, held: Any, slot: int | None, place: str) -> None:
        if held is not effect.held:
            raise BadHold(f"{place}.held: found {held!r}; its owners are {', '.join(effect.holds) or 'none'}")
        waits = slot is not None and effect.outcome is None and self._run.phase is Phase.RESOLVING_TOOLS
        if BATCH_OWNER in effect.holds and not waits:
            raise BadHold(f"{place}.holds: {BATCH_OWNER} holds it, and it is no call that waits in a batch")

    def complete(self, name: str) -> None:
        """Give the run its effects in their order, and each round its own by what they are for.

        Raises:
            BadValue: an effect is missing.
            BadHold: a batch that is being run lacks a call.
        """
        run = self._run
        if sorted(self._placed) != list(range(len(self._placed))):
            raise BadValue(f"{name}: {run.scope}: an effect is missing; accepted are places from 0 on without a gap")
        run.effects = [self._placed[number] for number in sorted(self._placed)]
        for turn in run.turns:
            slots = self._slots.get(turn, {})
            turn.batch = [slots[slot] for slot in sorted(slots)]
            if run.ending is None and sorted(slots) != list(range(len(slots))):
                raise BadHold(f"{name}: {run.scope}, turn {turn.number}: a call of the batch is missing")
        for effect in run.effects:
            if effect.turn is not None and effect.purpose is Purpose.REQUEST:
                effect.turn.request = effect
            elif effect.turn is not None and effect.purpose is Purpose.LOOKUP:
                effect.turn.lookups.append(effect)


def check_ids(effects: Iterable[PendingEffect], name: str) -> None:
    """See that no two effects have the same id.

    Raises:
        IdTaken: two have; or one is no id.
    """
    seen: set[int] = set()
    for effect in effects:
        id_ = effect.reserved
        if id_ is None:
            continue
        if id_ in seen or id_ < 0:
            raise IdTaken(f"{name}: two effects have the id {id_}" if id_ in seen else f"{name}: found the id {id_}")
        seen.add(id_)
