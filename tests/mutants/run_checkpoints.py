"""Faults of saved runs: what is written, what is believed of a document, and what a load does beside loading."""

from __future__ import annotations

from base64 import b64decode
from importlib import import_module
from typing import Any

import pytest

from bargein.pipelines.agent import (
    advance,
    restored_graph,
    run_checkpoint,
    run_restore,
    run_steps,
    saved_graph,
    saved_values,
)
from bargein.pipelines.agent import run as run_module
from bargein.pipelines.agent.assets import AssetLimits, BinaryAssets
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.restored_effects import RestoredEffects
from bargein.pipelines.agent.restored_graph import RestoredGraph
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_restore import RestoreMode
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

PLACE = "tests/pipelines/agent/test_run_checkpoint"
EVERYWHERE = PLACE + "s.py::test_runs_go_on_from_wherever_they_were_saved_as_if_nothing_had_been"
CLAUSES = PLACE + "_clauses.py::test_a_broken_clause_is_refused_by_name_and_the_destination_is_left_as_it_was"
CONTENT = PLACE + "_content.py::"
HANDLERS = PLACE + "_handlers.py::"
HOSTILE = PLACE + "_hostile.py::"
REFUSALS = PLACE + "_refusals.py::"
RESUME = PLACE + "_resume.py::"
STEPS = PLACE + "_steps.py::"


def _stage(patch: Patch, stage: Any, other: Any) -> None:
    """Have the run loop do ``other`` where it does ``stage``."""
    stages = [(other if each is stage else each, ended) for each, ended in run_module.STAGES]
    patch.setattr(run_module, "STAGES", tuple(stages))


def _written(patch: Patch, kind: str, **changed: Any) -> None:
    """Have entities of a kind written with other values."""
    add = saved_graph._Writer._add

    def wrong(self: Any, asked: str, **rest: Any) -> int:
        known = {name: value for name, value in changed.items() if asked == kind and name in rest}
        return add(self, asked, **{**rest, **known})

    patch.setattr(saved_graph._Writer, "_add", wrong)


# -- what is saved --------------------------------------------------------------------------------------------------


@mutant(tests=(STEPS + "test_a_held_run_is_held_again_by_every_owner_until_each_has_released_it",))
def a_hold_is_not_saved(patch: Patch) -> None:
    """A restored run goes on at once."""
    patch.setattr(saved_graph, "RUN", tuple(name for name in saved_graph.RUN if name != "holds"))


@mutant(tests=(CONTENT + "test_a_result_keeps_its_status",))
def a_status_is_not_saved(patch: Patch) -> None:
    """Nobody knows afterwards how a result came about."""
    _written(patch, "part", status=None)


@mutant(tests=(CONTENT + "test_edits_that_were_saved_before_the_fold_are_in_the_request_after_it",))
def edits_are_not_saved(patch: Patch) -> None:
    """A round that was saved before its fold is asked without its edits."""
    add = saved_graph._Writer._add
    patch.setattr(saved_graph._Writer, "_add", lambda self, kind, **rest: kind == "edit" or add(self, kind, **rest))


@mutant(tests=(RESUME + "test_a_finished_stream_is_kept_whole_and_not_served_again",))
def outcomes_are_not_saved(patch: Patch) -> None:
    """Everything goes out again."""
    patch.setattr(saved_graph, "EFFECT", tuple(name for name in saved_graph.EFFECT if name != "outcome"))


@mutant(tests=(RESUME + "test_a_note_of_a_hook_that_went_out_just_before_goes_out_again_first_under_its_id",))
def ids_are_not_saved(patch: Patch) -> None:
    """What goes out again does so under another id, and nobody outside can tell that it is the same."""
    _written(patch, "effect", id=None)


@mutant(tests=(RESUME + "test_an_answer_that_nobody_sees_before_it_is_whole_is_asked_for_again",))
def pieces_that_nobody_sees_are_saved(patch: Patch) -> None:
    """A whole answer that comes in pieces cannot be asked for again."""
    patch.setattr(saved_graph, "_unseen", lambda run: None)


@mutant(
    tests=(
        EVERYWHERE + "[verdicts_of_hooks-its own]",
        STEPS + "test_a_call_that_was_denied_while_its_batch_held_it_waits_for_nobody",
    )
)
def a_denied_call_stays_in_the_batchs_hold(patch: Patch) -> None:
    """Its outcome is there, and its batch still counts it as waiting."""

    def gate(runs: Any, run: Any) -> None:
        for effect in tuple(run.effects):
            if not effect.gated and run.ending is None:
                effect.gated = True
                runs.hooks.call(Moment(runs, At.GATE, run, effect.turn, effect))

    _stage(patch, run_steps.gate, gate)


@mutant(tests=(EVERYWHERE + "[an_output_tool_beside_another-its own]",))
def a_run_that_has_its_answer_asks_once_more(patch: Patch) -> None:
    """Saved between its last batch and its ending, it begins another round."""
    whole = advance.advance

    def wrong(runs: Any, run: Any) -> None:
        turn, settling = run.turn, run.settling
        after = None if turn is None else turn.output_after
        run.settling = None
        if turn is not None:
            turn.output_after = None
        whole(runs, run)
        run.settling = settling
        if turn is not None:
            turn.output_after = after

    _stage(patch, whole, wrong)


@mutant(tests=(EVERYWHERE + "[a_dispatch_as_the_run_ends-its own]",))
def a_run_that_has_its_answer_asks_what_is_left(patch: Patch) -> None:
    """What a hook wanted as the run ended, and nobody asked, is asked after a load."""

    def dispatch(runs: Any, run: Any) -> None:
        for effect in tuple(run.effects):
            if effect.dispatch is None and effect.outcome is None and not effect.held:
                run_steps.dispatch_effect(runs, run, effect)

    _stage(patch, run_steps.dispatch, dispatch)


# -- what is believed -----------------------------------------------------------------------------------------------


@mutant(tests=(HOSTILE + "test_a_document_of_which_one_byte_is_another_is_refused",))
def the_check_is_not_compared(patch: Patch) -> None:
    """An edited document is read."""
    patch.setattr(run_checkpoint, "fits_seal", lambda data: True)


@mutant(tests=(REFUSALS + "test_a_payload_that_is_not_what_its_digest_says_is_refused",))
def a_digest_is_not_compared(patch: Patch) -> None:
    """A payload that was exchanged is stored under its own digest, and the old one is missing or wrong."""
    patch.setattr(run_checkpoint, "_payload", lambda text, digest, name: b64decode(text))


class _Everything(dict[str, Any]):
    """Names of whatever can be imported."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        module, _, attribute = name.rpartition(".")
        return getattr(import_module(module or "builtins"), attribute)


@mutant(tests=(HOSTILE + "test_a_name_of_something_else_is_refused_and_nothing_is_imported_or_run",))
def a_document_names_what_is_made_of_it(patch: Patch) -> None:
    """Whatever a value's tag names is imported and made."""
    patch.setattr(saved_values, "_CLASSES", _Everything(saved_values._CLASSES))


@mutant(tests=(CLAUSES + "[a payload that is not there]", CLAUSES + "[a medium with its bytes in it]"))
def sources_are_believed(patch: Patch) -> None:
    """A medium may point to nothing."""
    patch.setattr(RestoredGraph, "_check_source", lambda self, source, place: None)


@mutant(tests=(CLAUSES + "[a message of another run]", CLAUSES + "[a message of another role]"))
def links_to_messages_are_believed(patch: Patch) -> None:
    """A round may be committed with another run's message."""
    patch.setattr(RestoredGraph, "_own_message", lambda self, link, run, role, place: None if link is None else 0)


@mutant(tests=(CLAUSES + "[a batch that nobody runs]", CLAUSES + "[a hold without an owner]"))
def holds_are_believed(patch: Patch) -> None:
    """A batch may hold what is no call of one."""
    patch.setattr(RestoredEffects, "_check_held", lambda self, effect, held, slot, place: None)


@mutant(tests=(CLAUSES + "[two effects of one id]",))
def ids_are_believed(patch: Patch) -> None:
    """Two effects may go out under one id."""
    patch.setattr(restored_graph, "check_ids", lambda effects, name: None)


@mutant(tests=(CLAUSES + "[an id that was not given yet]",))
def ids_of_parts_are_believed(patch: Patch) -> None:
    """A new part may get the id of one that is there."""
    patch.setattr(restored_graph, "_was_given", lambda id_, run: True)


@mutant(tests=(PLACE + "s.py::test_where_an_answer_is_streaming_nobody_goes_on_and_the_refusal_names_it",))
def a_stream_is_gone_on_from(patch: Patch) -> None:
    """An answer that was half told is told from its beginning once more."""
    patch.setattr(run_restore, "_check_unfinished", lambda effect, contracts, name: None)


# -- what a load does -----------------------------------------------------------------------------------------------


@mutant(tests=(CLAUSES + "[a batch with a gap]",))
def payloads_are_kept_before_all_is_read(patch: Patch) -> None:
    """A load that is refused has left its payloads behind."""
    patch.setattr(BinaryAssets, "copy", lambda self: self)


@mutant(tests=(REFUSALS + "test_payloads_beyond_the_limits_of_the_destination_are_refused_together_with_what_it_has",))
def the_limits_of_the_destination_do_not_count(patch: Patch) -> None:
    """A checkpoint may bring more than the destination keeps."""
    copy = BinaryAssets.copy

    def unbounded(self: BinaryAssets) -> BinaryAssets:
        store = copy(self)
        store.limits = AssetLimits()
        return store

    patch.setattr(BinaryAssets, "copy", unbounded)


@mutant(tests=(HANDLERS + "test_a_key_that_nobody_serves_refuses_the_load_and_installs_nothing",))
def handlers_are_installed_as_they_are_looked_at(patch: Patch) -> None:
    """A load that is refused has exchanged handlers before."""
    settled = run_restore._settled

    def wrong(checkpoint: Any, runs: Any, handlers: Any, mode: Any) -> Any:
        for key, handler in handlers:
            run_restore._install(runs, {key: run_restore.Supplied(handler)})
        return settled(checkpoint, runs, handlers, mode)

    patch.setattr(run_restore, "_settled", wrong)


@mutant(tests=(HANDLERS + "test_strictly_a_handler_differs_in_nothing_that_is_known_of_it",))
def a_handler_that_stays_is_not_compared(patch: Patch) -> None:
    """What the destination serves already is taken for what was saved."""
    patch.setattr(run_restore, "_compare", lambda saved, present, mode: None)


@mutant(tests=(HANDLERS + "test_a_replacement_of_another_family_is_refused",))
def a_replacement_may_be_anything(patch: Patch) -> None:
    """A tool may stand for a model."""
    compare = run_restore._compare

    def wrong(saved: Any, present: Any, mode: RestoreMode) -> None:
        if mode is RestoreMode.STRICT:
            compare(saved, present, mode)

    patch.setattr(run_restore, "_compare", wrong)


@mutant(tests=(STEPS + "test_a_load_tells_of_no_commit_and_calls_no_hook_and_the_commits_stand_as_they_stood",))
def a_load_tells_of_its_commits(patch: Patch) -> None:
    """What was told in the session that was saved is told again."""
    again = AgentRuns.ask_again

    def wrong(self: AgentRuns, effects: Any) -> None:
        again(self, effects)
        for run in self.live.values():
            for turn in run.turns:
                if turn.commit is not None:
                    self.committed(run, turn)

    patch.setattr(AgentRuns, "ask_again", wrong)


@mutant(
    tests=(
        HANDLERS + "test_what_was_loaded_follows_all_records_in_the_order_in_which_it_was_asked_whichever_run_it_is_of",
    )
)
def what_is_open_goes_out_run_by_run(patch: Patch) -> None:
    """The records of a restored session stand in another order than they stood."""
    patch.setattr(AgentRuns, "ask_again", lambda self, effects: self.wake())


@mutant(tests=(RESUME + "test_a_backoff_lasts_as_long_as_was_left_of_it",))
def a_backoff_is_over_with_the_load(patch: Patch) -> None:
    """A provider is asked again before it may be."""
    patch.setattr(run_restore, "arm_release", lambda runs, effect: effect.approve())


@mutant(tests=(HANDLERS + "test_an_effect_that_has_to_go_out_again_under_the_id_of_another_that_has_to_is_refused",))
def what_was_loaded_before_has_no_ids_yet(patch: Patch) -> None:
    """Two checkpoints that are loaded after each other may bring one id twice."""
    scratch = run_restore._scratch

    def wrong(checkpoint: Any, runs: Any) -> Any:
        kept = [(run, run.effects) for run in runs.live.values()]
        for run, _ in kept:
            run.effects = []
        try:
            return scratch(checkpoint, runs)
        finally:
            for run, effects in kept:
                run.effects = effects

    patch.setattr(run_restore, "_scratch", wrong)


class _Nobody(dict[int, None]):
    def __contains__(self, number: object) -> bool:
        return False


@mutant(tests=(HANDLERS + "test_a_run_of_a_number_that_was_promised_to_another_is_refused",))
def a_number_that_was_promised_is_free(patch: Patch) -> None:
    """A run that is queued takes the place of one that was loaded."""
    make = AgentRuns.__init__

    def wrong(self: AgentRuns, *given: Any, **more: Any) -> None:
        make(self, *given, **more)
        self.queued = _Nobody()

    patch.setattr(AgentRuns, "__init__", wrong)


# -- answers from outside -------------------------------------------------------------------------------------------


@mutant(tests=(STEPS + "test_an_answer_is_in_no_checkpoint_before_a_step_has_collected_it",))
def an_answer_lands_as_it_is_submitted(patch: Patch) -> None:
    """It is seen in the middle of a step."""

    def wrong(self: AgentRuns, effect: Any, outcome: Any) -> None:
        self._submitted.append((effect, outcome))
        self._collect()
        self.wake()

    patch.setattr(AgentRuns, "submit", wrong)


@mutant(tests=(STEPS + "test_answers_are_collected_in_the_order_in_which_they_were_submitted",))
def the_last_answer_is_collected_first(patch: Patch) -> None:
    """Answers overtake each other."""
    collect = AgentRuns._collect

    def wrong(self: AgentRuns) -> None:
        self._submitted.reverse()
        collect(self)

    patch.setattr(AgentRuns, "_collect", wrong)


@mutant(tests=(REFUSALS + "test_every_cause_has_a_class_a_sentence_and_what_lies_beneath",))
def what_was_answered_is_asked_again(patch: Patch) -> None:
    """A tool that has run, and on which a layer is still over its verdict, runs twice."""
    init = RestoredGraph.__init__

    def told(self: RestoredGraph, *given: Any) -> None:
        init(self, *given)
        self.withheld.clear()

    patch.setattr(RestoredGraph, "__init__", told)


@mutant(
    tests=(RESUME + "test_what_was_in_flight_goes_out_again_although_a_hook_ends_the_run_in_the_very_next_step",),
)
def what_was_in_flight_waits_for_its_place_in_the_step(patch: Patch) -> None:
    """A hook that ends a restored run in its first step keeps what is out in the world from being asked for again."""
    again = AgentRuns._dispatch_again
    patch.setattr(AgentRuns, "_dispatch_again", lambda self: None)

    def late(runs: Any, run: Any) -> None:
        again(runs)
        run_steps.dispatch(runs, run)

    _stage(patch, run_steps.dispatch, late)
