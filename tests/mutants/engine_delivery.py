"""Faults of where a side effect's result goes: orphans, late notes and deliveries.

These are the rules that keep a result from being lost or told twice, and a regenerated call from running again.
"""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.tools.execution import Execution, Slot
from bargein.pipelines.tools.mailbox import Mailbox, Note
from bargein.pipelines.tools.orphans import RecentCalls, SideEffectRun
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.side_effects import SideEffects
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

DELIVERY = "tests/pipelines/tools/test_delivery.py::"
LATE_NOTES = "tests/pipelines/tools/test_late_notes.py::"
ORPHANS = "tests/pipelines/tools/test_orphans.py::"


# -- orphans ----------------------------------------------------------------------------------------------------


@mutant("effect_once")
def orphan_window_is_off(patch: Patch) -> None:
    """A regenerated call runs a second time."""
    patch.setattr(RecentCalls, "_in_window", lambda self, age_us: False)


@mutant(tests=(ORPHANS + "test_recognition_lasts_for_the_window_from_the_instant_the_result_went_astray",))
def orphan_window_is_unbounded(patch: Patch) -> None:
    """An identical call is never run again, however much later."""
    patch.setattr(RecentCalls, "_in_window", lambda self, age_us: True)


@mutant("effect_once")
def running_orphan_is_not_recognised(patch: Patch) -> None:
    """An identical call runs beside the one that still runs."""
    is_orphan = RecentCalls._is_orphan
    patch.setattr(
        RecentCalls,
        "_is_orphan",
        lambda self, run, response, now: run.outcome is not None and is_orphan(self, run, response, now),
    )


@mutant(tests=(ORPHANS + "test_a_run_is_an_orphan_to_other_responses_only",))
def orphan_answers_its_own_response(patch: Patch) -> None:
    """A call is answered by a sibling of its own response."""
    is_orphan = RecentCalls._is_orphan
    patch.setattr(RecentCalls, "_is_orphan", lambda self, run, response, now: is_orphan(self, run, -1, now))


@mutant(tests=(ORPHANS + "test_a_replay_that_is_discarded_leaves_orphan_and_note_in_place",))
def orphan_is_used_up_before_delivery(patch: Patch) -> None:
    """A replay that never reaches the context has used the orphan up."""
    orphaned = SideEffects._orphaned

    def consume(self: SideEffects, slot: Slot, digest: bytes) -> Any:
        refusal = orphaned(self, slot, digest)
        claims = slot.execution.claims
        while claims:
            self.consume(claims.pop(), slot.execution)
        return refusal

    patch.setattr(SideEffects, "_orphaned", consume)


@mutant(tests=(ORPHANS + "test_after_a_delivered_replay_a_repeat_in_that_turn_is_refused_and_the_next_turn_is_free",))
def delivered_replay_leaves_the_orphan(patch: Patch) -> None:
    """The orphan answers for ever."""

    def keep(self: SideEffects, run: SideEffectRun, execution: Execution) -> None:
        run.claimed_by = None
        if run.note is not None:
            self._desk.mailbox.withdraw(run.note)

    patch.setattr(SideEffects, "consume", keep)


@mutant(tests=(ORPHANS + "test_a_finished_orphan_answers_with_its_record_under_the_new_id_and_is_used_up",))
def note_is_not_withdrawn_on_replay(patch: Patch) -> None:
    """A replayed result is told once more as its note."""
    patch.setattr(Mailbox, "withdraw", lambda self, note: None)


@mutant("result_once")
def reported_orphan_is_replayed(patch: Patch) -> None:
    """A result whose note the model has read is told again as a result."""
    orphaned = SideEffects._orphaned

    def replay(self: SideEffects, slot: Slot, digest: bytes) -> Any:
        for run in self._desk.recent:
            run.reported = False
        return orphaned(self, slot, digest)

    patch.setattr(SideEffects, "_orphaned", replay)


@mutant(tests=(ORPHANS + "test_an_orphan_without_a_result_answers_unknown_outcome_and_is_used_up",))
def lost_orphan_runs_again(patch: Patch) -> None:
    """A call whose outcome is unknown is run again when it is regenerated."""
    is_orphan = RecentCalls._is_orphan
    patch.setattr(
        RecentCalls,
        "_is_orphan",
        lambda self, run, response, now: run.outcome is not ToolOutcome.LOST and is_orphan(self, run, response, now),
    )


@mutant("effect_once")
def timed_out_call_is_no_orphan(patch: Patch) -> None:
    """A model that retries after a timeout books twice."""
    timed_out = SideEffects._timed_out

    def forget(self: SideEffects, run: SideEffectRun) -> None:
        timed_out(self, run)
        run.orphaned_at_us = None

    patch.setattr(SideEffects, "_timed_out", forget)


# -- delivery and late notes ------------------------------------------------------------------------------------


@mutant(tests=(DELIVERY + "test_discarding_notes_each_result_and_makes_each_side_effect_an_orphan",))
def delivery_guard_is_forgotten(patch: Patch) -> None:
    """A result in a discarded execution is lost."""
    patch.setattr(Execution, "_note_undelivered", lambda self, run: None)


@mutant(tests=(DELIVERY + "test_marking_delivered_twice_or_discarding_afterwards_changes_nothing",))
def delivered_execution_is_noted_when_discarded(patch: Patch) -> None:
    """Discarding after a delivery tells the results again."""
    discard = Execution.discard

    def again(self: Execution) -> None:
        if self._delivered:
            self._desk.open[self.response] = self
            for slot in self.slots:
                if slot.run is not None:
                    slot.run.slot = slot
        self._delivered = False
        discard(self)

    patch.setattr(Execution, "discard", again)


@mutant(tests=(DELIVERY + "test_notes_it_had_taken_go_back_to_the_front",))
def notes_of_a_discarded_execution_are_lost(patch: Patch) -> None:
    """Notes that a discarded execution had taken do not come back."""
    patch.setattr(Mailbox, "give_back", lambda self, notes: None)


@mutant(tests=(DELIVERY + "test_notes_it_had_taken_go_back_to_the_front",))
def returned_notes_go_to_the_end(patch: Patch) -> None:
    """Notes that come back stand behind newer ones."""

    def to_the_end(self: Mailbox, notes: Any) -> None:
        self._waiting.extend([note for note in notes if not note.withdrawn])

    patch.setattr(Mailbox, "give_back", to_the_end)


@mutant("result_once")
def late_result_is_noted_twice(patch: Patch) -> None:
    """A late result makes two notes."""
    put = Mailbox.put

    def twice(self: Mailbox, note: Note) -> bool:
        put(self, Note(note.run, note.message))
        return put(self, note)

    patch.setattr(Mailbox, "put", twice)


@mutant("result_once")
def late_result_is_not_noted(patch: Patch) -> None:
    """A late result is never told."""
    patch.setattr(Mailbox, "put", lambda self, note: True)


@mutant(tests=(LATE_NOTES + "test_the_mailbox_keeps_sixty_four_and_counts_the_rest",))
def mailbox_is_unbounded(patch: Patch) -> None:
    """Any number of notes wait."""
    patch.setattr("bargein.pipelines.tools.mailbox.MAILBOX_CAPACITY", 1_000)


@mutant(tests=(LATE_NOTES + "test_the_mailbox_keeps_sixty_four_and_counts_the_rest",))
def mailbox_drops_silently(patch: Patch) -> None:
    """A note that finds no room is counted nowhere."""
    put = Mailbox.put

    def silent(self: Mailbox, note: Note) -> bool:
        taken = put(self, note)
        self.dropped = 0
        return taken

    patch.setattr(Mailbox, "put", silent)


@mutant(tests=(LATE_NOTES + "test_notes_come_with_the_next_execution_in_the_order_of_the_results",))
def notes_come_newest_first(patch: Patch) -> None:
    """The last result is told first."""
    take = Mailbox.take
    patch.setattr(Mailbox, "take", lambda self: take(self)[::-1])


@mutant(tests=(ORPHANS + "test_a_note_carried_by_an_execution_counts_as_told_only_when_that_is_delivered",))
def taken_note_counts_as_told(patch: Patch) -> None:
    """A note counts as read once an execution carries it."""
    take = Mailbox.take

    def told(self: Mailbox) -> list[Note]:
        notes = take(self)
        for note in notes:
            note.run.reported = True
        return notes

    patch.setattr(Mailbox, "take", told)
