"""Faults at the edges of runs: what one has left behind, what a hook puts in an answer's place, the last id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.agent import collect, collection, run_steps
from bargein.pipelines.agent import run as run_module
from bargein.pipelines.agent.assets import BinaryAssets
from bargein.pipelines.agent.history import Held, History
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_state import PendingEffect, Run
from bargein.sim.effects.dispatches import Dispatch
from bargein.sim.effects.identity import differences
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.replay import Replay, _outcome_of
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

AGENT = "tests/pipelines/agent/"
ANSWERS = AGENT + "test_run_answers.py::"
BROKEN = AGENT + "test_run_broken_streams.py::"
IDS = "tests/sim/effects/test_layers_ids.py::"
LEFT = AGENT + "test_run_left_behind.py::"
LIFETIME = AGENT + "test_run_lifetime.py::"
PARTS = AGENT + "test_parts.py::"
MEDIA = AGENT + "test_collection.py::"
NESTED = AGENT + "test_run_replay_nested.py::"


@mutant(tests=(LEFT + "test_calls_that_wait_for_a_place_are_never_served_and_leave_no_record",))
def what_waits_for_a_place_outlives_its_run(patch: Patch) -> None:
    """Calls of a run that has ended are served as soon as there is a place."""
    patch.setattr(Dispatch, "queued", property(lambda self: False))


@mutant(
    tests=(LEFT + "test_a_stream_that_ends_with_its_run_does_not_let_in_what_the_run_has_waiting_at_the_same_model",)
)
def what_a_run_asked_for_is_given_up_in_the_order_of_asking(patch: Patch) -> None:
    """A stream that is cancelled makes room for what waits behind it, which is of the same run."""
    patch.setattr(PendingEffect, "order_of_withdrawal", lambda self: 0)


@mutant(tests=(LEFT + "test_a_run_that_ends_while_its_first_call_goes_out_asks_for_no_other",))
def a_step_goes_on_dispatching_for_a_run_that_has_ended(patch: Patch) -> None:
    """Once a step has begun to dispatch, all of the run's calls go out."""

    def wrong(runs: AgentRuns, run: Run) -> None:
        for effect in tuple(run.effects):
            if effect.dispatch is None and effect.outcome is None and not effect.held:
                run_steps.dispatch_effect(runs, run, effect)

    stages = [(wrong if each is run_steps.dispatch else each, ended) for each, ended in run_module.STAGES]
    patch.setattr(run_module, "STAGES", tuple(stages))


@mutant(
    tests=(
        LEFT + "test_a_run_that_ends_while_its_first_call_goes_out_asks_for_no_other",
        LEFT + "test_a_model_that_ends_the_run_it_answers_has_its_stream_cancelled",
    )
)
def what_goes_out_as_its_run_ends_is_forgotten(patch: Patch) -> None:
    """Nobody knows any more what is in flight."""
    patch.setattr(AgentRuns, "leave", lambda self, run, effect: None)


@mutant(
    tests=(
        LEFT + "test_a_run_is_not_taken_out_while_something_runs_that_its_tool_has_left_behind",
        LEFT + "test_removing_a_run_cancels_what_its_tool_has_left_behind_and_the_queued_leaves_no_record",
    )
)
def what_outlasts_its_parent_is_nobodys(patch: Patch) -> None:
    """An effect that a tool asked for, and did not wait for, belongs to no run."""
    patch.setattr(LayeredBus, "nested", lambda self, scope: [])


@mutant(tests=(LEFT + "test_a_run_that_was_taken_out_as_it_stood_is_in_the_log_and_is_known_again",))
def a_run_that_is_taken_out_was_no_program(patch: Patch) -> None:
    """A log has the records of a run and does not say which program it was."""
    patch.setattr(AgentRuns, "watch_removals", lambda self, watcher: None)


@mutant(tests=(ANSWERS + "test_an_answer_that_a_hook_replaces_costs_what_the_models_did_and_its_calls_are_numbered",))
def an_answer_that_a_hook_made_up_has_its_own_price(patch: Patch) -> None:
    """What the model has cost is lost with its answer."""

    def wrong(value: Any, **changes: Any) -> Any:
        changes.pop("usage", None)
        return replace(value, **changes)

    patch.setattr(collect, "replace", wrong)


@mutant(tests=(PARTS + "test_an_edit_reaches_what_a_tools_result_holds_and_nothing_else_of_it",))
def what_a_result_holds_is_edited_where_nobody_reads_it(patch: Patch) -> None:
    """A result shows what it held before."""

    def wrong(self: History, result: Held, part_id: str, part: Any) -> None:
        result.part = replace(result.part, items=(part,))

    patch.setattr(History, "_edit_item", wrong)


@mutant(tests=(BROKEN + "test_a_hook_judges_a_broken_stream_once_and_may_put_an_answer_in_its_place",))
def a_broken_stream_is_judged_by_no_hook(patch: Patch) -> None:
    """What breaks in a stream is read before a hook has seen it."""
    right = collect._break

    def wrong(run: Run) -> None:
        right(run)
        request = None if run.turn is None or not run.turn.inbox else run.turn.request
        if request is not None and request.outcome is not None:
            request.judged = True

    patch.setattr(collect, "_break", wrong)


@mutant(
    tests=(
        IDS + "test_what_waits_for_a_place_as_the_ids_are_used_up_is_refused_in_its_turn_and_not_recorded",
        IDS + "test_what_waits_for_an_approval_as_the_ids_are_used_up_is_not_recorded_either",
    )
)
def ids_are_counted_as_something_is_asked_and_not_as_it_is_served(patch: Patch) -> None:
    """What has waited is given the id that nobody may have."""
    right = LayeredBus._serve

    def wrong(self: LayeredBus, dispatch: Dispatch) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(LayeredBus, "_no_id", lambda self, id: False)
            right(self, dispatch)

    patch.setattr(LayeredBus, "_serve", wrong)


@mutant(tests=(IDS + "test_what_waits_for_an_approval_as_the_ids_are_used_up_is_not_recorded_either",))
def what_is_given_up_is_recorded_without_looking_for_an_id(patch: Patch) -> None:
    """The record of something that was withdrawn has the id that nobody may have."""
    right = LayeredBus.record_unserved

    def wrong(self: LayeredBus, *rest: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(LayeredBus, "_no_id", lambda self, id: False)
            return right(self, *rest)

    patch.setattr(LayeredBus, "record_unserved", wrong)


@mutant(tests=(LIFETIME + "test_a_hold_waits_for_a_committed_turn_however_low_it_is",))
def a_hold_from_turn_0_blocks_the_first_round(patch: Patch) -> None:
    """No turn is committed, and the run stands still."""
    patch.setattr(Run, "stands_still", property(lambda self: any(at <= self.committed for at in self.holds.values())))


@mutant(tests=(NESTED + "test_in_a_tail_it_is_compared_with_the_record_of_its_id",))
def what_a_program_served_itself_is_compared_by_position(patch: Patch) -> None:
    """In a tail, whose ids do not begin with 0, it is another record."""

    def wrong(self: Replay) -> Iterator[str]:
        found = self.recorder.records(self._plain)
        for id, record in self.derived:
            yield from differences(_outcome_of(record), _outcome_of(found[id]))

    patch.setattr(Replay, "_derived_otherwise", wrong)


@mutant(tests=(MEDIA + "test_messages_that_were_not_read_yet_are_content_too",))
def media_of_a_run_that_has_not_opened_are_dropped(patch: Patch) -> None:
    """What a prompt shows is gone before it is read."""
    patch.setattr(collection, "_of", lambda run: run.history.digests())


@mutant(tests=(MEDIA + "test_what_another_run_uses_or_the_host_pins_stays_and_the_rest_goes",))
def pins_of_the_host_are_forgotten(patch: Patch) -> None:
    """Only what content uses stays."""
    right = BinaryAssets.collect
    used: dict[str, None] = {}

    def seen(run: Run) -> list[str]:
        found = list(run.history.digests())
        used.update(dict.fromkeys(found))
        return found

    patch.setattr(collection, "_of", seen)
    patch.setattr(BinaryAssets, "collect", lambda self, roots: right(self, [each for each in roots if each in used]))
