"""Faults of what the tool engine remembers of calls: their keys, and the repeats of a turn.

These are the rules that keep an effect from happening twice; those about its result are in ``engine_delivery``.
"""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.tools.bounded import to_json
from bargein.pipelines.tools.execution import Slot
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.orphans import RecentCalls, SideEffectRun
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.tools.store import IdempotencyStore, KeyState
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

DELIVERY = "tests/pipelines/tools/test_delivery.py::"
IDEMPOTENCY = "tests/pipelines/tools/test_idempotency.py::"
LATE_NOTES = "tests/pipelines/tools/test_late_notes.py::"
ORPHANS = "tests/pipelines/tools/test_orphans.py::"
REPEATS = "tests/pipelines/tools/test_repeats.py::"


# -- keys -------------------------------------------------------------------------------------------------------


def _forget(patch: Patch, state: KeyState) -> None:
    """Take keys in this state for unknown."""
    get = IdempotencyStore.get

    def forget(self: IdempotencyStore, key: IdempotencyKey) -> Any:
        entry = get(self, key)
        return None if entry is not None and entry.state is state else entry

    patch.setattr(IdempotencyStore, "get", forget)


@mutant(tests=(IDEMPOTENCY + "test_a_seen_key_is_answered_from_its_record_in_each_state",))
def done_key_runs_again(patch: Patch) -> None:
    """A redelivered call that has ended runs a second time."""
    _forget(patch, KeyState.DONE)


@mutant(tests=(IDEMPOTENCY + "test_a_seen_key_is_answered_from_its_record_in_each_state",))
def lost_key_runs_again(patch: Patch) -> None:
    """A call whose outcome is unknown runs a second time."""
    _forget(patch, KeyState.LOST)


@mutant(tests=(IDEMPOTENCY + "test_a_seen_key_is_answered_from_its_record_in_each_state",))
def running_key_runs_again(patch: Patch) -> None:
    """A redelivered call that still runs is started a second time."""
    _forget(patch, KeyState.IN_FLIGHT)


@mutant(tests=(IDEMPOTENCY + "test_any_part_of_the_key_makes_another_call",))
def key_leaves_out_the_epoch(patch: Patch) -> None:
    """Calls of different turns share a key."""
    key = "bargein.pipelines.tools.side_effects.IdempotencyKey"
    patch.setattr(key, lambda session, epoch, call_id: IdempotencyKey(session, 0, call_id))


@mutant(tests=(IDEMPOTENCY + "test_keys_that_share_a_digest_are_two_records",))
def keys_are_told_apart_by_their_digest(patch: Patch) -> None:
    """Two keys that share a digest share a record."""
    patch.setattr(IdempotencyKey, "__hash__", lambda self: hash(self.digest()))
    patch.setattr(IdempotencyKey, "__eq__", lambda self, other: self.digest() == other.digest())


@mutant(tests=(IDEMPOTENCY + "test_a_store_full_of_running_calls_refuses_and_evicts_none",))
def running_entry_is_evicted(patch: Patch) -> None:
    """A full store forgets a call that still runs."""

    def evict(self: IdempotencyStore) -> bool:
        for key, entry in self._entries.items():
            del self._entries[key]
            self._settled.pop(key, None)
            self._bytes -= entry.size
            return True
        return False

    patch.setattr(IdempotencyStore, "_evict", evict)


@mutant(tests=(IDEMPOTENCY + "test_the_oldest_settled_entry_goes_and_its_call_then_runs_anew",))
def full_store_evicts_the_newest(patch: Patch) -> None:
    """The entry that settled last is forgotten first."""

    def evict(self: IdempotencyStore) -> bool:
        if not self._settled:
            return False
        key, entry = self._settled.popitem()
        del self._entries[key]
        self._bytes -= entry.size
        return True

    patch.setattr(IdempotencyStore, "_evict", evict)


@mutant(tests=(IDEMPOTENCY + "test_recorded_text_stays_within_its_bytes",))
def recorded_text_is_unbounded(patch: Patch) -> None:
    """The store keeps all result text there ever was."""
    init = IdempotencyStore.__init__

    def unbounded(self: IdempotencyStore, capacity: int, max_bytes: int) -> None:
        init(self, capacity, 1 << 60)

    patch.setattr(IdempotencyStore, "__init__", unbounded)


@mutant(tests=(IDEMPOTENCY + "test_a_record_is_never_evicted_by_its_own_recording",))
def record_is_evicted_by_its_own_recording(patch: Patch) -> None:
    """A large result is forgotten as it is recorded."""
    record = IdempotencyStore.record

    def early(self: IdempotencyStore, key: IdempotencyKey, answer: Any) -> None:
        self._settled[key] = self._entries[key]
        record(self, key, answer)

    patch.setattr(IdempotencyStore, "record", early)


@mutant(tests=(IDEMPOTENCY + "test_a_failed_side_effect_is_recorded_and_only_a_new_call_tries_again",))
def failure_is_not_recorded(patch: Patch) -> None:
    """A redelivered call that failed runs again."""
    record = IdempotencyStore.record

    def successes(self: IdempotencyStore, key: IdempotencyKey, answer: Any) -> None:
        if answer.is_error:
            del self._entries[key]
        else:
            record(self, key, answer)

    patch.setattr(IdempotencyStore, "record", successes)


# -- repeats within a turn --------------------------------------------------------------------------------------


@mutant("effect_once")
def repeat_is_not_checked(patch: Patch) -> None:
    """A model that has read the booking's success books again in the same turn."""
    patch.setattr(RecentCalls, "_is_repeat", lambda self, run, epoch, response: False)


@mutant(tests=(REPEATS + "test_only_equal_arguments_in_the_same_turn_are_a_repeat",))
def repeat_reaches_into_the_next_turn(patch: Patch) -> None:
    """A caller who asks again in another turn is refused."""
    is_repeat = RecentCalls._is_repeat
    patch.setattr(
        RecentCalls, "_is_repeat", lambda self, run, epoch, response: is_repeat(self, run, run.epoch, response)
    )


@mutant(tests=(REPEATS + "test_a_failed_or_lost_call_may_be_tried_again",))
def failure_counts_as_success(patch: Patch) -> None:
    """A failed booking may not be tried again."""
    patch.setattr(SideEffectRun, "succeeded", property(lambda self: self.outcome is not None))


@mutant(tests=(REPEATS + "test_a_cut_success_counts_as_success",))
def cut_result_is_no_success(patch: Patch) -> None:
    """A booking whose result was cut may be repeated."""
    patch.setattr(SideEffectRun, "succeeded", property(lambda self: self.outcome is ToolOutcome.OK))


@mutant(tests=(REPEATS + "test_two_identical_calls_of_one_response_both_run",))
def twin_in_one_response_is_a_repeat(patch: Patch) -> None:
    """Of two equal calls in one response the second is refused."""
    is_repeat = RecentCalls._is_repeat
    patch.setattr(RecentCalls, "_is_repeat", lambda self, run, epoch, response: is_repeat(self, run, epoch, -1))


@mutant(tests=(REPEATS + "test_a_repeatable_tool_and_a_lookup_run_again",))
def repeatable_tool_is_refused(patch: Patch) -> None:
    """The switch that allows repeats has no effect."""

    def refuse(self: SideEffects, slot: Slot, digest: bytes) -> Any:
        execution = slot.execution
        run = self._desk.recent.repeated(digest, execution.epoch, execution.response)
        return None if run is None else (ToolOutcome.REPEAT_REFUSED, run.answer)

    patch.setattr(SideEffects, "_repeated", refuse)


@mutant(tests=(REPEATS + "test_an_orphan_goes_before_a_repeat",))
def repeat_goes_before_an_orphan(patch: Patch) -> None:
    """The order of the rules is turned round."""
    orphaned, repeated = SideEffects._orphaned, SideEffects._repeated
    patch.setattr(SideEffects, "_orphaned", lambda self, slot, digest: repeated(self, slot, digest))
    patch.setattr(SideEffects, "_repeated", lambda self, slot, digest: orphaned(self, slot, digest))


@mutant(tests=(ORPHANS + "test_key_order_does_not_matter_but_values_do",))
def digest_depends_on_key_order(patch: Patch) -> None:
    """The same call with its arguments in another order is another call."""
    patch.setattr("bargein.pipelines.tools.orphans.canonical_json", to_json)


@mutant(tests=(REPEATS + "test_only_equal_arguments_in_the_same_turn_are_a_repeat",))
def digest_leaves_out_the_arguments(patch: Patch) -> None:
    """Any two calls of one tool are the same call."""
    patch.setattr("bargein.pipelines.tools.orphans.canonical_json", lambda arguments: "")


@mutant(tests=(ORPHANS + "test_the_thirty_two_last_side_effects_are_remembered",))
def look_back_is_unbounded(patch: Patch) -> None:
    """Every side effect of the session is remembered."""
    patch.setattr("bargein.pipelines.tools.orphans.ORPHAN_CAPACITY", 1_000)


@mutant(tests=(ORPHANS + "test_the_thirty_two_last_side_effects_are_remembered",))
def look_back_is_one_short(patch: Patch) -> None:
    """Thirty-one side effects are remembered."""
    patch.setattr("bargein.pipelines.tools.orphans.ORPHAN_CAPACITY", 31)
