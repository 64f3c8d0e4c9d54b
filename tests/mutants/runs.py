"""Faults of agent runs: what is asked, how answers are read, who may run when, and what steers it."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from bargein.pipelines.agent import batch, invalid_calls
from bargein.pipelines.agent.answers import StreamFold
from bargein.pipelines.agent.assets import BinaryAssets
from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.history import History, ResultStatus
from bargein.pipelines.agent.hooks import Hooks
from bargein.pipelines.agent.media_sources import Base64, Raw, Stored
from bargein.pipelines.agent.retries import provider_failed
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_settings import Backoff
from bargein.pipelines.agent.run_state import AccessSnapshot, PendingEffect, ResolutionKind, Run
from bargein.pipelines.wordings import OUTPUT_TOOL
from bargein.sim.effects.layers import LayeredBus
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

AGENT = "bargein.pipelines.agent."
ANSWERS = "tests/pipelines/agent/test_run_answers.py::"
BATCH = "tests/pipelines/agent/test_run_batch.py::"
INVALID = "tests/pipelines/agent/test_run_invalid_calls.py::"
LAYERS = "tests/sim/effects/test_layers.py::"
LIFETIME = "tests/pipelines/agent/test_run_lifetime.py::"
OUTPUT = "tests/pipelines/agent/test_run_output.py::"
PARTS = "tests/pipelines/agent/test_parts.py::"
REPORTS = "tests/sim/effects/test_reports.py::"
REQUESTS = "tests/pipelines/agent/test_run_requests.py::"
STEERING = "tests/pipelines/agent/test_run_steering.py::"


# -- requests -----------------------------------------------------------------------------------------------------


@mutant(tests=(REQUESTS + "test_a_setting_is_the_runs_or_else_the_agents",))
def the_agents_settings_go_first(patch: Patch) -> None:
    """A run cannot set what its agent has set."""

    def wrong(run: Any, agent: Any, name: str, default: Any = None) -> Any:
        values = [getattr(settings, name) for settings in (agent.settings, run)]
        return next((value for value in values if value is not None), default)

    patch.setattr(AGENT + "fold.effective", wrong)


@mutant(tests=(REQUESTS + "test_options_are_overlaid_key_by_key_and_provider_options_entry_by_entry",))
def provider_options_merge_inside(patch: Patch) -> None:
    """An entry of the run is merged with the agent's."""

    def wrong(run: Any, agent: Any) -> dict[str, Any]:
        ours, theirs = agent.settings.provider_options or {}, run.provider_options or {}
        return {name: {**ours.get(name, {}), **theirs.get(name, {})} for name in {**ours, **theirs}}

    patch.setattr(AGENT + "fold.overlaid_provider_options", wrong)


@mutant(tests=(OUTPUT + "test_the_output_tool_in_its_pinned_words",))
def augmentation_follows_a_single_newline(patch: Patch) -> None:
    """Preamble and augmentation are one paragraph."""
    patch.setattr(AGENT + "fold.AUGMENTATION_SEPARATOR", "\n")


@mutant(tests=(PARTS + "test_the_same_bytes_are_kept_once_however_they_are_spelled",))
def base64_comes_back_in_canonical_form(patch: Patch) -> None:
    """How base64 was spelled is forgotten."""

    def wrong(self: BinaryAssets, source: Any) -> Any:
        if not isinstance(source, Stored):
            return source
        data = self.data(source.sha256)
        return Base64(b64encode(data).decode()) if source.spelled else Raw(data)

    patch.setattr(BinaryAssets, "out", wrong)


@mutant(tests=(PARTS + "test_only_collecting_drops_and_a_missing_root_drops_nothing",))
def missing_roots_are_overlooked(patch: Patch) -> None:
    """Collecting does not mind a root that is not there."""
    right = BinaryAssets.collect

    def wrong(self: BinaryAssets, roots: Any) -> int:
        return right(self, [root for root in roots if root in self])

    patch.setattr(BinaryAssets, "collect", wrong)


# -- output modes -------------------------------------------------------------------------------------------------


@mutant(tests=(OUTPUT + "test_a_tool_choice_permits_the_output_tool_or_does_not",))
def every_tool_choice_permits_the_output_tool(patch: Patch) -> None:
    """The output tool is offered under choice none."""
    patch.setattr(AGENT + "advance.permits", lambda choice, name: True)


@mutant(tests=(OUTPUT + "test_a_taken_name_is_numbered",))
def output_tool_takes_a_name_that_is_taken(patch: Patch) -> None:
    """The output tool is called as ever."""
    patch.setattr(AGENT + "advance.free_name", lambda taken: OUTPUT_TOOL)


@mutant(tests=(OUTPUT + "test_missing_fields_are_asked_for_once_as_the_result_of_the_call",))
def missing_fields_are_named_backwards(patch: Patch) -> None:
    """The order is not the schema's."""
    from bargein.pipelines.agent.output_modes import missing_fields

    patch.setattr(AGENT + "materialise.missing_fields", lambda schema, given: missing_fields(schema, given)[::-1])


@mutant(tests=(OUTPUT + "test_json_text_with_every_required_field_is_the_answer",))
def json_text_is_never_the_answer(patch: Patch) -> None:
    """A complete answer in words is asked for again."""
    patch.setattr(AGENT + "materialise.satisfies", lambda schema, text: False)


@mutant(tests=(OUTPUT + "test_one_reprompt_serves_both_and_then_what_is_there_is_the_answer",))
def reprompts_have_no_budget(patch: Patch) -> None:
    """The model is asked for its answer as long as there are turns."""
    patch.setattr(AGENT + "materialise.OUTPUT_RETRIES", 9)


@mutant(tests=(OUTPUT + "test_without_a_turn_left_nothing_is_asked_again",))
def reprompts_need_no_turn(patch: Patch) -> None:
    """A run is asked again that has no turn left."""
    patch.setattr(AGENT + "materialise._may_reprompt", lambda run: run.output_retries < 1)


# -- answers, retries, endings --------------------------------------------------------------------------------------


@mutant(tests=(ANSWERS + "test_an_empty_text_with_annotations_is_kept",))
def annotations_do_not_count(patch: Patch) -> None:
    """An empty text is dropped with its annotations."""
    patch.setattr(AGENT + "materialise.is_empty", lambda parts: not any(getattr(each, "text", "") for each in parts))


@mutant(tests=(ANSWERS + "test_an_answer_cut_off_before_it_began_fails_and_keeps_nothing",))
def truncated_thoughts_are_an_answer(patch: Patch) -> None:
    """A run settles on nothing where the model was cut off."""
    patch.setattr(AGENT + "materialise.is_answerless", lambda answer: False)


@mutant(tests=(ANSWERS + "test_retries_are_the_runs_or_the_agents_or_three",))
def one_retry_too_many(patch: Patch) -> None:
    """Four retries where nobody says."""
    patch.setattr(AGENT + "retries.DEFAULT_PROVIDER_RETRIES", 4)


@mutant(tests=(ANSWERS + "test_a_lost_round_leaves_no_message_and_costs_no_turn",))
def a_retry_costs_a_turn(patch: Patch) -> None:
    """A request that is sent again counts against the turns."""

    def wrong(runs: Any, run: Run, turn: Any, report: Any) -> None:
        provider_failed(runs, run, turn, report)
        run.retrying = False

    patch.setattr(AGENT + "materialise.provider_failed", wrong)


@mutant(tests=(ANSWERS + "test_backoff_doubles_up_to_its_maximum_on_the_virtual_clock",))
def backoff_grows_linearly(patch: Patch) -> None:
    """The wait is the base times the attempt."""
    patch.setattr(Backoff, "delay_us", lambda self, attempt: min(self.base_us * attempt, self.max_us))


@mutant(tests=(ANSWERS + "test_a_run_has_one_ending",))
def a_later_ending_counts(patch: Patch) -> None:
    """A settled run can still be cancelled."""
    right = AgentRuns.end

    def wrong(self: AgentRuns, run: Run, ending: Any) -> None:
        run.ending = None
        right(self, run, ending)

    patch.setattr(AgentRuns, "end", wrong)


@mutant(tests=(REPORTS + "test_a_code_comes_from_the_transport_or_the_body",))
def a_number_is_a_code(patch: Patch) -> None:
    """Whatever stands at error.code is the code."""
    patch.setattr(
        "bargein.sim.effects.reports._machine_code", lambda body: str((body or {}).get("error", {}).get("code"))
    )


@mutant(tests=(REPORTS + "test_an_error_reply_keeps_its_status_and_body",))
def too_many_requests_is_final(patch: Patch) -> None:
    """Status 429 is not asked again."""
    patch.setattr("bargein.sim.effects.reports._RETRYABLE", (408, 425))


# -- batches ------------------------------------------------------------------------------------------------------


@mutant(tests=(BATCH + "test_calls_start_as_the_concurrency_allows_and_are_recorded_in_their_order",))
def concurrency_is_not_kept(patch: Patch) -> None:
    """Every call starts at once."""
    patch.setattr(batch, "_concurrency", lambda run: 99)


@mutant(tests=(BATCH + "test_a_held_call_within_the_concurrency_keeps_its_slot",))
def a_held_call_loses_its_slot(patch: Patch) -> None:
    """A later call takes the place of one that waits."""
    patch.setattr(PendingEffect, "takes_slot", property(lambda self: self.in_flight))


@mutant(tests=(BATCH + "test_another_hold_outlives_the_batches_release",))
def nameless_holds_are_overlooked(patch: Patch) -> None:
    """Only owners hold a call back."""
    patch.setattr(PendingEffect, "held", property(lambda self: bool(self.holds)))


@mutant(tests=(BATCH + "test_an_effect_waits_for_every_owner_and_a_second_hold_of_one_is_the_same",))
def one_owner_releases_for_all(patch: Patch) -> None:
    """Any release lets the call go."""

    def wrong(self: PendingEffect, owner: str) -> None:
        self.holds.clear()
        self.wake()

    patch.setattr(PendingEffect, "release", wrong)


@mutant(tests=(BATCH + "test_what_the_model_must_not_see_fails_the_run",))
def a_divergence_is_told_to_the_model(patch: Patch) -> None:
    """A replay goes on after an answer that was never recorded."""
    patch.setattr(batch, "_FATAL", ())


@mutant(tests=(BATCH + "test_what_a_tool_answers_is_a_result_with_a_status_beside_it",))
def a_refusal_is_an_error(patch: Patch) -> None:
    """Refused calls count as broken ones."""
    patch.setitem(batch._STATUSES, "refused", ResultStatus.ERROR)


@mutant(tests=(BATCH + "test_a_denial_at_the_gate_is_a_result_without_a_record",))
def statuses_are_not_kept(patch: Patch) -> None:
    """Results are stored without how they came about."""
    right = History.append
    patch.setattr(History, "append", lambda self, message, statuses=(): right(self, message))


@mutant(tests=(BATCH + "test_a_long_text_keeps_head_and_tail_on_character_boundaries",))
def characters_are_cut_through(patch: Patch) -> None:
    """A cut falls on any byte."""
    patch.setattr(AGENT + "result_limit._inside", lambda data, at: False)
    patch.setattr(AGENT + "result_limit._text", lambda data: data.decode("utf-8", "replace"))


# -- invalid calls --------------------------------------------------------------------------------------------------


@mutant(tests=(INVALID + "test_retries_are_counted_against_the_run",))
def invalid_calls_are_retried_for_ever(patch: Patch) -> None:
    """A retry needs no budget."""
    patch.setattr(
        AGENT + "invalid_calls._fails",
        lambda run, turn, invalid, all_: invalid.resolution.kind is ResolutionKind.FAIL,
    )


@mutant(tests=(INVALID + "test_a_streamed_call_is_found_by_its_name_and_failing_acts_there_and_then",))
def calls_are_found_only_at_the_end(patch: Patch) -> None:
    """A stream is judged when it has landed."""
    patch.setattr(AGENT + "collect.discover_early", lambda run, turn, block: None)


@mutant(tests=(INVALID + "test_asking_again_waits_for_the_end_and_keeps_what_had_come",))
def a_prefix_is_taken_at_the_end(patch: Patch) -> None:
    """Arguments that came after the decision are kept."""
    right = invalid_calls._answer_all

    def wrong(runs: Any, run: Run, turn: Any, chosen: list[Any]) -> None:
        for each in chosen:
            each.prefix = turn.answer.parts
        right(runs, run, turn, chosen)

    patch.setattr(invalid_calls, "_answer_all", wrong)


@mutant(tests=(INVALID + "test_nothing_allowed_denies_every_tool_and_changes_no_request",))
def permissions_are_overlooked(patch: Patch) -> None:
    """Whatever is bound may be called."""
    patch.setattr(AccessSnapshot, "key_of", lambda self, name: self.bindings.get(name))


@mutant(tests=(REQUESTS + "test_an_answer_keeps_the_providers_parts_streamed_or_not",))
def streamed_text_is_regrouped(patch: Patch) -> None:
    """All text of a stream becomes one part."""
    from bargein.pipelines.agent.parts import TextPart

    right = StreamFold.parts

    def wrong(self: StreamFold) -> Any:
        parts = right(self)
        said = "".join(part.text for part in parts if type(part) is TextPart)
        return (TextPart(said), *(part for part in parts if type(part) is not TextPart))

    patch.setattr(StreamFold, "parts", wrong)


# -- steering -----------------------------------------------------------------------------------------------------


@mutant(tests=(STEERING + "test_three_hooks_are_in_one_request",))
def the_last_patch_takes_the_place(patch: Patch) -> None:
    """A hook's patch drops those before it."""
    patch.setattr(RequestPatch, "merge", lambda self, later: later)


@mutant(tests=(STEERING + "test_an_edit_is_in_its_round_alone_and_keeps_annotations_and_siblings",))
def edits_are_not_applied(patch: Patch) -> None:
    """A round sends what is stored."""
    patch.setattr(AGENT + "advance.edited", lambda history, edits: list(history.messages()))


@mutant(tests=(STEERING + "test_additional_params_merge_as_mappings_or_take_the_place",))
def patched_params_take_the_place(patch: Patch) -> None:
    """A patch's mapping drops the agent's."""
    patch.setattr(AGENT + "fold.over", lambda under, above: under if above is None else above)


@mutant(tests=(STEERING + "test_hooks_of_one_moment_are_called_in_the_order_of_their_registration",))
def hooks_are_called_backwards(patch: Patch) -> None:
    """The last hook to come is the first to be called."""

    def wrong(self: Hooks, moment: Any) -> None:
        for hook in reversed(self._hooks.get(moment.at, [])):
            hook(moment)

    patch.setattr(Hooks, "call", wrong)


@mutant(tests=(LIFETIME + "test_a_hold_is_not_moved_later_by_its_owner",))
def holds_can_be_moved_later(patch: Patch) -> None:
    """An owner's second hold replaces its first."""

    def wrong(self: AgentRuns, run: Run, owner: str, minimum_turn: int) -> None:
        run.holds[owner] = minimum_turn

    patch.setattr(AgentRuns, "hold_after_tool_turn", wrong)


@mutant(tests=(LIFETIME + "test_a_run_is_taken_out_once_it_has_ended_and_nothing_of_it_runs",))
def a_run_is_taken_out_while_it_runs(patch: Patch) -> None:
    """An ended run goes although a tool of it still runs."""
    right = AgentRuns.despawn

    def wrong(self: AgentRuns, run: Any) -> Any:
        if isinstance(run, Run) and run.ending is not None:
            run.effects = []
        return right(self, run)

    patch.setattr(AgentRuns, "despawn", wrong)


@mutant(tests=(LAYERS + "test_layers_nest_in_the_order_given",))
def layers_nest_inside_out(patch: Patch) -> None:
    """The innermost layer is asked first."""
    patch.setattr(LayeredBus, "layers", lambda self, key: self._layers.get(key, ())[::-1])


@mutant(tests=(LAYERS + "test_a_serial_key_is_not_nested_in_itself_from_wherever_it_is_asked",))
def a_serial_key_waits_for_itself(patch: Patch) -> None:
    """A tool that asks for its own serial key waits for ever."""
    patch.setattr(LayeredBus, "_within", lambda self, key, parent: False)


@mutant(tests=(LAYERS + "test_removing_a_run_takes_what_its_tool_asked_for_along_and_the_queued_leaves_no_record",))
def the_queued_begin_while_their_parent_ends(patch: Patch) -> None:
    """What waits its turn is let in by what is cancelled before it."""
    patch.setattr("bargein.sim.effects.layers._began", lambda dispatch: dispatch.effect is None)
