"""Faults of layers around a voice session: what never ran is taken for something that did, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines import session as session_module
from bargein.pipelines.layered_model import LayeredModelPort, RequestWitness
from bargein.pipelines.llm_runner import LlmRunner
from bargein.pipelines.tools import layered, orphans
from bargein.pipelines.tools.execution import Slot
from bargein.pipelines.tools.layered import CallWitness, LayeredReadOnlyCalls, LayeredSideEffects
from bargein.pipelines.tools.orphans import SideEffectRun
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.tools.store import IdempotencyStore
from bargein.sim.effects.replay import Replay
from bargein.sim.kernel.cancel import Cause
from bargein.sim.lab import programs
from bargein.sim.lab.invariants import tools as tool_invariants
from bargein.sim.lab.result import Result
from bargein.sim.scenario.layering import Layering
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

DECISIONS = "tests/sessions/layers/test_decisions.py::"
APPROVALS = "tests/sessions/layers/test_approvals.py::"
VERDICTS = "tests/sessions/layers/test_verdicts.py::"
MODELS = "tests/sessions/layers/test_models.py::"
IDENTITY = "tests/sessions/layers/test_identity.py::"
MANY = "tests/sessions/layers/test_many_calls.py::"
WITHDRAWN = (
    APPROVALS + "test_a_booking_that_waits_is_withdrawn_by_an_interruption_and_the_model_reads_that_it_did_not_run"
)


# -- calls that wait --------------------------------------------------------------------------------------------------


@mutant(tests=(WITHDRAWN,))
def a_waiting_booking_is_taken_for_a_running_one(patch: Patch) -> None:
    """The model is told that it runs on, and a note will follow that never does."""
    patch.setattr(LayeredSideEffects, "interrupt", SideEffects.interrupt)


@mutant(tests=(MANY + "test_a_suspended_booking_holds_every_invariant_wherever_the_caller_cuts_in",))
def an_approval_acts_for_a_dead_turn(patch: Patch) -> None:
    """A booking that is given up goes on waiting, and runs when somebody approves it."""
    patch.setattr(LayeredSideEffects, "_withdraw", lambda self, run, cause: run.slot)


@mutant(tests=(APPROVALS + "test_an_approved_call_runs_from_the_approval_on",))
def a_call_is_told_to_run_while_it_waits(patch: Patch) -> None:
    """The timeline claims an effect that nobody was asked for."""
    suspended = CallWitness.suspended

    def started(self: CallWitness, layer: Any) -> None:
        suspended(self, layer)
        self._begin()

    patch.setattr(CallWitness, "suspended", started)


@mutant(tests=(DECISIONS + "test_a_denied_call_is_remembered_by_nothing_and_counts_as_no_run",))
def a_denied_call_keeps_its_key(patch: Patch) -> None:
    """The store goes on taking a call for one in flight that was never asked for."""
    patch.setattr(IdempotencyStore, "forget", lambda self, key: None)


@mutant(
    tests=(
        APPROVALS + "test_the_time_limit_counts_from_the_call_and_the_model_reads_that_it_did_not_run",
        APPROVALS + "test_a_waiting_call_never_meets_the_backstop",
    )
)
def a_waiting_call_has_no_time_limit(patch: Patch) -> None:
    """Nobody counts before the body runs, and a turn waits for ever for an approval that never comes."""
    patch.setattr(CallWitness, "suspended", lambda self, layer: self._trace.suspended(*self._told, layer.name))


@mutant(
    tests=(
        APPROVALS + "test_a_booking_that_was_approved_late_has_the_rest_of_the_limit_and_then_is_told_late",
        APPROVALS + "test_the_backstop_counts_from_the_start_of_the_body",
    )
)
def an_approval_gives_a_call_its_whole_time_again(patch: Patch) -> None:
    """The limit counts from the start of the body."""

    def again(self: LayeredSideEffects, run: SideEffectRun) -> None:
        if run.timer is not None:
            run.timer.cancel()
        SideEffects._arm(self, run)

    patch.setattr(LayeredSideEffects, "_arm", again)


@mutant(tests=(APPROVALS + "test_the_backstop_counts_from_the_start_of_the_body",))
def the_backstop_counts_from_the_call(patch: Patch) -> None:
    """What a person took to approve it is missing from the time that a body has."""
    patch.setattr(LayeredSideEffects, "_backstop", SideEffects._backstop)


@mutant(tests=(WITHDRAWN, APPROVALS + "test_a_lookup_that_waits_is_counted_as_not_started"))
def the_model_reads_of_a_withdrawn_call_only_that_it_was_interrupted(patch: Patch) -> None:
    """Whether it ran is left open."""
    patch.setattr(Slot, "settle_unstarted", Slot.settle)


@mutant(tests=(APPROVALS + "test_a_lookup_that_waits_is_counted_as_not_started",))
def a_waiting_lookup_counts_as_cancelled(patch: Patch) -> None:
    """Nothing was cancelled: it had not begun."""
    patch.setattr(LayeredReadOnlyCalls, "is_suspended", lambda self, slot: False)


@mutant(tests=(APPROVALS + "test_a_hang_up_withdraws_what_waits",))
def a_withdrawal_is_put_down_to_somebody_else(patch: Patch) -> None:
    """Whatever ended the turn, the caller is said to have interrupted."""
    withdraw = LayeredSideEffects._withdraw
    patch.setattr(LayeredSideEffects, "_withdraw", lambda self, run, cause: withdraw(self, run, Cause.BARGE_IN))


# -- decisions and verdicts -------------------------------------------------------------------------------------------


@mutant(tests=(DECISIONS + "test_a_denied_side_effect_leaves_no_record_and_the_model_reads_the_reason",))
def a_denial_is_an_error(patch: Patch) -> None:
    """The reason reaches the model as a failure of the tool."""
    patch.setattr(layered, "_denied", lambda ended: None)


@mutant(
    tests=(VERDICTS + "test_a_result_that_is_not_let_through_was_brought_about_and_is_a_repeat_when_asked_for_again",)
)
def what_a_verdict_denies_may_be_done_again(patch: Patch) -> None:
    """The effect took place, and counts as none because the model was not told."""
    patch.setattr(orphans, "_TOOK_PLACE", (ToolOutcome.OK, ToolOutcome.OK_TRUNCATED))


@mutant(tests=(VERDICTS + "test_an_interruption_makes_it_an_orphan_whose_note_is_the_verdict",))
def nobody_looks_when_a_late_verdict_comes(patch: Patch) -> None:
    """The call goes on in silence until its time is up."""
    patch.setattr(session_module, "_OVER_IN_LAYERS", ("tool.finished", "tool.dropped"))


@mutant(tests=(VERDICTS + "test_the_timeline_tells_the_bodys_end_and_the_call_is_answered_with_the_verdict",))
def a_body_ends_with_its_verdict(patch: Patch) -> None:
    """The timeline does not say that a result is kept back."""
    patch.setattr(CallWitness, "withheld", lambda self, layer: None)


@mutant(tests=(DECISIONS + "test_a_layer_may_make_a_failure_of_a_result_and_a_result_of_a_failure",))
def a_body_is_said_to_have_ended_as_its_verdict(patch: Patch) -> None:
    """What the handler answered is not on the timeline."""
    answered, landed = CallWitness.answered, LayeredSideEffects._landed
    patch.setattr(CallWitness, "answered", lambda self, outcome: None)
    told = answered

    def late(self: LayeredSideEffects, run: SideEffectRun, effect: Any) -> None:
        witness = effect._witness
        told(witness, effect.outcome)
        landed(self, run, effect)

    patch.setattr(LayeredSideEffects, "_landed", late)


@mutant(
    tests=(DECISIONS + "test_two_calls_that_a_layer_makes_alike_are_two_calls_as_the_model_asked_for_them",),
)
def repeats_are_judged_by_what_layers_ask_for(patch: Patch) -> None:
    """Two calls that a layer makes alike are taken for one that ran twice."""
    settings = Result.check_settings.func

    def served(self: Result) -> Any:
        session = self.opened.session
        kept, session.layered = session.layered, None
        try:
            return settings(self)
        finally:
            session.layered = kept

    patch.setattr(Result, "check_settings", property(served))


# -- requests ---------------------------------------------------------------------------------------------------------


@mutant(tests=(MODELS + "test_a_denied_request_was_never_sent_and_ends_the_turn_as_a_failed_one_does",))
def a_request_counts_as_sent_before_its_layers_are_asked(patch: Patch) -> None:
    """The timeline has a request that nobody was sent."""
    send = LayeredModelPort._send

    def sent(self: LayeredModelPort, stream: Any, key: str, request: Any) -> Any:
        self._sent(stream, request)
        return send(self, stream, key, request)

    patch.setattr(LayeredModelPort, "_send", sent)


@mutant(tests=(MODELS + "test_an_interruption_withdraws_a_request_that_waits",))
def a_withdrawn_request_is_not_told(patch: Patch) -> None:
    """The log has a record of which the timeline knows nothing."""
    patch.setattr(RequestWitness, "withdrawn", lambda self, cause: None)


@mutant(tests=(MODELS + "test_a_tool_that_a_layer_has_left_out_of_a_request_is_none_that_its_response_may_ask_for",))
def a_response_is_judged_by_what_was_meant_to_be_sent(patch: Patch) -> None:
    """A tool runs that the model was not told of."""
    run_tools = LlmRunner._run_tools

    def meant(self: LlmRunner, *given: Any) -> Any:
        self._withheld = frozenset()
        return run_tools(self, *given)

    patch.setattr(LlmRunner, "_run_tools", meant)


# -- identity ---------------------------------------------------------------------------------------------------------


@mutant(tests=(IDENTITY + "test_a_log_names_the_layers_after_the_steering_and_each_handler_its_own",))
def layers_are_not_declared(patch: Patch) -> None:
    """A replay cannot tell that they are missing."""
    patch.setattr(Layering, "hooks", property(lambda self: []))


@mutant(tests=(IDENTITY + "test_layers_around_another_handler_are_others",))
def a_handler_does_not_say_what_stands_around_it(patch: Patch) -> None:
    """The same layers around another handler pass for the same program."""
    make = programs.program_of.__wrapped__

    def bare(plan: Any) -> Any:
        program = dict(make(plan))
        kept = program["handlers"].items()
        program["handlers"] = {key: {n: v for n, v in each.items() if n != "layers"} for key, each in kept}
        return program

    for module in ("programs", "replays", "checkpoints", "resumes"):
        patch.setattr(f"bargein.sim.lab.{module}.program_of", bare)


@mutant(tests=(IDENTITY + "test_they_are_made_once_for_each_session_with_its_clock",))
def sessions_share_their_layers(patch: Patch) -> None:
    """What a layer remembers of one call it knows in the next."""
    for_session = Layering._for_session
    kept: dict[int, Any] = {}

    def shared(self: Layering, clock: Any) -> Any:
        if id(self) not in kept:
            kept[id(self)] = for_session(self, clock)
        return kept[id(self)]

    patch.setattr(Layering, "_for_session", shared)


@mutant(tests=(IDENTITY + "test_a_replay_within_the_same_layers_comes_out_equal",))
def a_withdrawn_call_leaves_its_record_to_the_next(patch: Patch) -> None:
    """A replay answers the second call of a tool with what became of the first."""
    patch.setattr(Replay, "_withdrawn", lambda self, effect: None)


@mutant(
    tests=(IDENTITY + "test_what_own_tools_did_before_the_place_is_not_done_again_also_where_a_call_was_withdrawn",)
)
def a_resume_forgets_that_a_call_was_withdrawn(patch: Patch) -> None:
    """The record of one that never ran answers the next."""
    patch.setattr("bargein.sim.lab.resumes._Past.withdrawn", lambda self, effect: None)


@mutant(tests=(APPROVALS + "test_an_approved_call_runs_from_the_approval_on",))
def a_filler_is_out_of_place_while_a_call_waits(patch: Patch) -> None:
    """The checker does not know that a call which waits is waited for."""
    known = tool_invariants.filler_timing

    def blind(facts: Any, settings: Any) -> Any:
        kept = facts.records
        facts.records = [each for each in kept if each["kind"] != "tool.suspended"]
        found = list(known(facts, settings))
        facts.records = kept
        return found

    from dataclasses import replace

    from bargein.sim.lab import invariants

    entry = replace(invariants.INVARIANTS["filler_timing"], check=blind)
    patch.setitem(invariants.INVARIANTS, "filler_timing", entry)
