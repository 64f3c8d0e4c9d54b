"""Faults of the tool engine: which rounds and calls may run, and what stops them.

Most tool faults do not show on the timeline of an otherwise plausible call, so they name tests; where a built-in
call shows one, exploring finds it.
"""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.messages import system
from bargein.pipelines.tools.budget import Admission, RetryBudget
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.execution import Execution, Slot
from bargein.pipelines.tools.orphans import SideEffectRun
from bargein.pipelines.tools.planning import Planner
from bargein.pipelines.tools.read_only import ReadOnlyCalls
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.tools.speculation import Speculation
from bargein.pipelines.tools.validation import ArgumentValidator
from bargein.sim.effects.bus import Effect
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Order
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

ENGINE = "tests/pipelines/tools/test_engine.py::"
GAPS = "tests/contract/test_tool_contract_gaps_engine.py::"
INTERRUPTION = "tests/pipelines/tools/test_interruption.py::"
ROUNDS = "tests/pipelines/tools/test_rounds.py::"
SPECULATION = "tests/pipelines/tools/test_speculation.py::"
TIMEOUTS = "tests/pipelines/tools/test_timeouts.py::"
VALIDATION = "tests/pipelines/tools/test_validation.py::"


# -- planning ---------------------------------------------------------------------------------------------------


@mutant(tests=(VALIDATION + "test_invalid_arguments_are_answered_at_once_and_run_nothing",))
def validation_is_skipped(patch: Patch) -> None:
    """Arguments go to the tool as they come."""
    patch.setattr(ArgumentValidator, "is_valid", lambda self, arguments: True)


@mutant(tests=(VALIDATION + "test_exactly_the_argument_cap_runs_and_one_byte_more_does_not",))
def argument_cap_is_skipped(patch: Patch) -> None:
    """Arguments of any size are looked at."""
    patch.setattr("bargein.pipelines.tools.planning.json_size", lambda value, limit: 0)


@mutant(tests=(VALIDATION + "test_exactly_the_argument_cap_runs_and_one_byte_more_does_not",))
def argument_cap_is_one_byte_short(patch: Patch) -> None:
    """Arguments that just fit are refused."""
    size = "bargein.pipelines.tools.planning.json_size"
    from bargein.pipelines.tools.bounded import json_size

    patch.setattr(size, lambda value, limit: json_size(value, limit) + 1)


@mutant(tests=(ROUNDS + "test_calls_past_the_thirty_second_are_refused_and_the_round_counts_once",))
def call_cap_is_skipped(patch: Patch) -> None:
    """A response may run any number of calls."""
    patch.setattr("bargein.pipelines.tools.planning.MAX_CALLS", 1_000)


# -- the retry budget and stale turns ---------------------------------------------------------------------------


def _on_admit(patch: Patch, change: Any) -> None:
    """Replace the judgment of a round by ``change(budget, epoch, malformed, judge)``."""
    judge = RetryBudget.admit
    patch.setattr(RetryBudget, "admit", lambda self, epoch, malformed: change(self, epoch, malformed, judge))


@mutant(tests=(VALIDATION + "test_each_of_the_six_causes_makes_a_round_malformed",))
def malformed_rounds_do_not_count(patch: Patch) -> None:
    """A turn may go on with invalid calls for ever."""
    _on_admit(patch, lambda budget, epoch, malformed, judge: judge(budget, epoch, False))


@mutant(tests=(ROUNDS + "test_a_round_counts_once_however_many_calls_are_malformed_and_valid_rounds_refund_nothing",))
def valid_round_refunds_the_budget(patch: Patch) -> None:
    """A valid round gives the turn its attempts back."""

    def refund(budget: RetryBudget, epoch: int, malformed: bool, judge: Any) -> Admission:
        if not malformed:
            budget._count = 0
        return judge(budget, epoch, malformed)  # type: ignore[no-any-return]

    _on_admit(patch, refund)


@mutant(tests=(ROUNDS + "test_the_third_malformed_round_and_every_later_one_of_the_turn_is_exhausted",))
def exhausted_turn_runs_a_valid_round(patch: Patch) -> None:
    """A wholly valid round runs although the budget is spent."""

    def allow(budget: RetryBudget, epoch: int, malformed: bool, judge: Any) -> Admission:
        admission = judge(budget, epoch, malformed)
        return Admission.ADMITTED if admission is Admission.EXHAUSTED and not malformed else admission

    _on_admit(patch, allow)


@mutant(tests=(ROUNDS + "test_the_third_malformed_round_and_every_later_one_of_the_turn_is_exhausted",))
def exhausted_round_runs_its_valid_calls(patch: Patch) -> None:
    """In the round that spends the budget only the malformed calls are refused."""
    admit = ToolEngine._admit

    def allow(self: ToolEngine, execution: Execution, slots: list[Slot], malformed: bool) -> bool:
        return admit(self, execution, [slot for slot in slots if slot.planned is None], malformed) or not malformed

    patch.setattr(ToolEngine, "_admit", allow)


@mutant(tests=(ROUNDS + "test_a_newer_turn_begins_with_a_fresh_budget",))
def newer_turn_inherits_the_spent_budget(patch: Patch) -> None:
    """The count goes on over turns."""

    def inherit(budget: RetryBudget, epoch: int, malformed: bool, judge: Any) -> Admission:
        count = budget._count
        if epoch > (budget._newest or 0):
            judge(budget, epoch, False)
            budget._count = count
        return judge(budget, epoch, malformed)  # type: ignore[no-any-return]

    _on_admit(patch, inherit)


@mutant(tests=(ROUNDS + "test_a_stale_round_is_refused_whole",))
def stale_turn_runs(patch: Patch) -> None:
    """A round of a superseded turn is carried out."""
    patch.setattr(RetryBudget, "_is_stale", lambda self, epoch: False)


@mutant(tests=(ROUNDS + "test_a_superseded_turn_neither_renews_nor_spends_the_current_budget",))
def stale_round_spends_the_current_budget(patch: Patch) -> None:
    """A malformed round of a superseded turn counts against the newest."""

    def spend(budget: RetryBudget, epoch: int, malformed: bool, judge: Any) -> Admission:
        admission = judge(budget, epoch, malformed)
        budget._count += malformed and admission is Admission.STALE
        return admission  # type: ignore[no-any-return]

    _on_admit(patch, spend)


# -- speculation ------------------------------------------------------------------------------------------------


@mutant("speculation_safe")
def held_calls_run_at_once(patch: Patch) -> None:
    """A speculative response books before its turn is committed."""
    patch.setattr(ToolEngine, "_is_held", lambda self, slot: False)


@mutant(tests=(SPECULATION + "test_a_commit_spends_no_budget_and_a_discarded_speculation_has_spent_its_own",))
def commit_spends_budget(patch: Patch) -> None:
    """A malformed response counts when it is speculated and again when it is committed."""
    commit = ToolEngine.commit

    def spend(self: ToolEngine, speculation: Speculation, token: CancelToken) -> Execution:
        self._budget.admit(speculation.epoch, any(message.result.is_error for message in speculation.answered()))  # type: ignore[union-attr]
        return commit(self, speculation, token)

    patch.setattr(ToolEngine, "commit", spend)


@mutant(tests=(SPECULATION + "test_committing_after_a_newer_turn_answers_held_calls_stale_and_keeps_the_rest",))
def commit_is_not_admitted(patch: Patch) -> None:
    """What was held runs at the commit whatever has come in between."""
    admit = ToolEngine._admit

    def allow(self: ToolEngine, execution: Execution, slots: list[Slot], malformed: bool) -> bool:
        return slots is not execution.slots or admit(self, execution, slots, malformed)

    patch.setattr(ToolEngine, "_admit", allow)


@mutant(tests=(SPECULATION + "test_discarding_drops_and_counts_the_lookups_that_still_run",))
def discarded_speculation_runs_on(patch: Patch) -> None:
    """What a discarded speculation started is not stopped."""
    patch.setattr(Speculation, "discard", lambda self: None)


@mutant(tests=(SPECULATION + "test_a_speculation_commits_once_and_discarding_it_then_has_no_effect",))
def speculation_commits_twice(patch: Patch) -> None:
    """A second commit runs what was held again."""
    patch.setattr(Speculation, "take", lambda self: (self._execution, self._held))


@mutant(tests=(SPECULATION + "test_from_the_commit_on_its_token_alone_interrupts",))
def commit_keeps_the_token_of_the_speculation(patch: Patch) -> None:
    """The token given at the commit interrupts nothing."""
    watch = Execution.watch

    def keep(self: Execution, token: CancelToken) -> None:
        if self._token is None:
            watch(self, token)

    patch.setattr(Execution, "watch", keep)


# -- interruption -----------------------------------------------------------------------------------------------


@mutant(tests=(INTERRUPTION + "test_a_call_that_has_not_begun_is_answered_and_never_runs_whatever_its_kind",))
def cancelled_turn_starts_calls(patch: Patch) -> None:
    """A call starts although its turn's token has fired."""
    patch.setattr(ToolEngine, "_may_not_start", lambda self, token: False)


@mutant(tests=(INTERRUPTION + "test_a_running_booking_is_answered_at_once_runs_on_and_is_noted_once",))
def side_effect_is_dropped_at_a_barge_in(patch: Patch) -> None:
    """A booking under way is stopped when the caller interrupts."""
    interrupt = SideEffects.interrupt

    def drop(self: SideEffects, run: SideEffectRun) -> None:
        interrupt(self, run)
        self.stop(run, Cause.BARGE_IN)

    patch.setattr(SideEffects, "interrupt", drop)


@mutant(tests=(INTERRUPTION + "test_a_running_booking_is_answered_at_once_runs_on_and_is_noted_once",))
def interruption_waits_for_a_side_effect(patch: Patch) -> None:
    """A running booking is not answered until it has ended."""
    patch.setattr(SideEffects, "interrupt", lambda self, run: None)


@mutant("quiet_end")
def cancelled_lookup_runs_on(patch: Patch) -> None:
    """An interrupted lookup is answered and not stopped."""
    patch.setattr(ReadOnlyCalls, "_drop", lambda self, slot, cause: slot.timer and slot.timer.cancel())


@mutant(tests=(INTERRUPTION + "test_an_abandoned_lookup_is_dropped_and_counted_alike",))
def abandoned_lookup_runs_on(patch: Patch) -> None:
    """A lookup whose execution was discarded is not stopped."""
    patch.setattr(ReadOnlyCalls, "abandon", lambda self, slot: None)


@mutant(tests=(INTERRUPTION + "test_a_running_lookup_is_dropped_answered_and_counted",))
def cancelled_lookup_is_noted_late(patch: Patch) -> None:
    """An interrupted lookup is told again as a note."""
    interrupt = ReadOnlyCalls.interrupt

    class Told:
        """What a note asks of its run."""

        claimed_by = None
        reported = False

    def note(self: ReadOnlyCalls, slot: Slot, cause: Cause) -> None:
        from bargein.pipelines.tools.mailbox import Note

        interrupt(self, slot, cause)
        self._desk.mailbox.put(Note(Told(), system("interrupted")))  # type: ignore[arg-type]

    patch.setattr(ReadOnlyCalls, "interrupt", note)


def _land_later(patch: Patch, stage: type[SideEffects] | type[ReadOnlyCalls], order: Order) -> None:
    """Let what else falls on the instant of a result come before it."""
    landed = stage._landed

    def later(self: Any, run: Any, effect: Effect) -> None:
        self._desk.clock.call_in(0, order, lambda _: landed(self, run, effect))

    patch.setattr(stage, "_landed", later)


@mutant(tests=(INTERRUPTION + "test_a_result_on_the_instant_of_the_interruption_stands_in_the_slot",))
def interruption_beats_a_result_that_is_there(patch: Patch) -> None:
    """A booking that ended on the instant of the barge-in is answered interrupted."""
    _land_later(patch, SideEffects, Order.PLAYOUT)


@mutant(tests=(TIMEOUTS + "test_a_result_on_the_instant_of_its_timeout_wins",))
def timeout_beats_a_result_on_its_instant(patch: Patch) -> None:
    """A result on the instant of its timeout is answered timeout."""
    _land_later(patch, SideEffects, Order.WORK)
    _land_later(patch, ReadOnlyCalls, Order.WORK)


# -- timeouts, the backstop and the end of the session ----------------------------------------------------------


@mutant(tests=(TIMEOUTS + "test_a_booking_past_its_timeout_is_answered_runs_on_and_is_noted",))
def side_effect_is_dropped_at_its_timeout(patch: Patch) -> None:
    """A booking past its timeout is stopped."""
    timed_out = SideEffects._timed_out

    def drop(self: SideEffects, run: SideEffectRun) -> None:
        timed_out(self, run)
        self.stop(run, Cause.DEADLINE)

    patch.setattr(SideEffects, "_timed_out", drop)


@mutant(tests=(TIMEOUTS + "test_a_hung_side_effect_is_stopped_at_the_backstop_and_lost",))
def backstop_is_missing(patch: Patch) -> None:
    """A hung side effect runs for ever."""
    patch.setattr(SideEffects, "_backstop", lambda self, run: None)


@mutant(tests=(TIMEOUTS + "test_the_backstop_counts_from_the_start_of_the_body",))
def backstop_counts_from_the_interruption(patch: Patch) -> None:
    """An interruption gives a running body more time."""
    detach = SideEffects._detach

    def renew(self: SideEffects, run: SideEffectRun) -> Slot:
        run.started_at_us = self._desk.clock.now
        return detach(self, run)

    patch.setattr(SideEffects, "_detach", renew)


@mutant(tests=(GAPS + "test_the_backstop_of_an_interrupted_call_is_its_tools_longer_timeout",))
def backstop_ignores_a_longer_timeout(patch: Patch) -> None:
    """A tool is stopped although its own timeout allows it more time."""
    patch.setattr(SideEffects, "_backstop_us", lambda self, run: self._desk.config.max_side_effect_runtime_us)


@mutant(tests=(ENGINE + "test_closing_stops_what_runs_and_records_side_effects_as_lost",))
def close_leaves_bodies_running(patch: Patch) -> None:
    """The end of the session stops nothing."""
    patch.setattr(SideEffects, "stop", lambda self, run, cause: None)


@mutant("calls_answered")
def results_in_completion_order(patch: Patch) -> None:
    """The quickest call is answered first."""
    settle = Slot.settle

    def count(self: Slot, outcome: Any, answer: Any) -> None:
        order = self.execution.__dict__.setdefault("order", [])
        order.append(self)
        settle(self, outcome, answer)

    def in_order(self: Execution) -> list[Any]:
        return [slot.answer.message(slot.call.id) for slot in self.__dict__.get("order", [])]

    patch.setattr(Slot, "settle", count)
    patch.setattr(Execution, "results", property(in_order))


@mutant("calls_answered", "context_valid")
def round_ends_with_its_first_answer(patch: Patch) -> None:
    """An execution is complete while calls of it still run."""
    settled = Execution.settled

    def finish(self: Execution, slot: Slot, outcome: Any) -> None:
        settled(self, slot, outcome)
        if self._sealed:
            self._finish()

    patch.setattr(Execution, "settled", finish)


@mutant(tests=(VALIDATION + "test_a_tool_gets_exactly_the_arguments_the_model_sent",))
def arguments_are_filled_in(patch: Patch) -> None:
    """Planning adds what the model did not say."""
    refusal = Planner._argument_refusal

    def fill(self: Planner, call: Any, tool: Any) -> Any:
        found = refusal(self, call, tool)
        call.arguments.setdefault("unasked", None)
        return found

    patch.setattr(Planner, "_argument_refusal", fill)
