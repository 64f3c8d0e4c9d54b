"""Faults of logs of agent runs and of what is cut from them: identity, deliveries, tails, replays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.agent import run_identity
from bargein.pipelines.agent.run_identity import Standing, Verdict
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects import tails
from bargein.sim.effects.due import DueEffects
from bargein.sim.effects.live_replay import LivePlan
from bargein.sim.effects.playing import Playing
from bargein.sim.effects.recording import Recorder, _RecordingBus
from bargein.sim.effects.replay import Replay
from bargein.sim.effects.tails import LogCheckpoint
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

DUE = "tests/sim/effects/test_replay_due.py::"
IDENTITY = "tests/pipelines/agent/test_run_identity.py::"
LIVE = "tests/sim/effects/test_replay_live.py::"
LOGS = "tests/pipelines/agent/test_run_logs.py::"
REPLAY = "tests/pipelines/agent/test_run_replay.py::"
TAILS = "tests/sim/effects/test_log_tails.py::"


# -- identity -----------------------------------------------------------------------------------------------------


@mutant(tests=(IDENTITY + "test_what_a_run_sets_keeps_its_policy_apart_and_its_agents_hash_together",))
def streaming_is_no_part_of_a_program(patch: Patch) -> None:
    """A run whose answers stream counts as one whose answers come whole."""
    right = run_identity.effective_specification
    patch.setattr(run_identity, "effective_specification", lambda run: {**right(run), "stream": False})


@mutant(tests=(IDENTITY + "test_a_policy_version_and_explicit_access_stand_in_a_specification_where_they_are_set",))
def a_policy_version_is_forgotten(patch: Patch) -> None:
    """What a program calls its own ways does not count."""
    from bargein.pipelines.agent.run_settings import effective

    def wrong(run: Any, agent: Any, name: str, default: Any = None) -> Any:
        return None if name == "policy_version" else effective(run, agent, name, default)

    patch.setattr("bargein.pipelines.agent.run_settings.effective", wrong)


@mutant(tests=(LOGS + "test_what_a_round_could_call_stays_in_the_row_when_access_has_changed_since",))
def the_row_is_that_of_the_policy_now(patch: Patch) -> None:
    """What rounds depended on before is not needed."""
    right = run_identity.required_of

    def wrong(run: Run) -> dict[str, str]:
        return right(replace(run, turns=[]))

    patch.setattr(run_identity, "required_of", wrong)


@mutant(tests=(IDENTITY + "test_a_layered_program_is_the_same_one_within_the_same_layers_only",))
def layers_are_no_part_of_a_program(patch: Patch) -> None:
    """A program passes for the recorded one without its layers."""
    from bargein.sim.effects.layers import LayeredBus

    right = LayeredBus.descriptor
    patch.setattr(LayeredBus, "descriptor", lambda self, key: right(self, key).under(key, ("l",)))


@mutant(tests=(IDENTITY + "test_without_a_policy_version_it_is_unverified_and_a_difference_is_still_refused",))
def whatever_is_not_known_is_fine(patch: Patch) -> None:
    """A program without a version passes for verified."""
    patch.setattr(run_identity, "Verdict", lambda standing, reasons=(): Verdict(Standing.FINE))


# -- what became visible ------------------------------------------------------------------------------------------


@mutant(tests=(LOGS + "test_an_outcome_that_is_set_in_flight_is_noted_and_policy_replay_refuses_the_log",))
def outcomes_past_a_handler_are_not_noted(patch: Patch) -> None:
    """The log says that the handler's outcome was the one that counted."""
    patch.setattr(Recorder, "overruled", lambda self, effect: None)


@mutant(tests=(LOGS + "test_what_was_apart_on_one_instant_is_apart_in_the_log_and_in_a_replay",))
def an_instant_is_one_step(patch: Patch) -> None:
    """What several steps of an instant brought is one batch."""
    patch.setattr(Recorder, "passed", lambda self: None)


@mutant(tests=(LOGS + "test_what_a_tool_published_is_kept_apart_and_comes_back_without_the_tool",))
def what_was_published_stays_in_the_log(patch: Patch) -> None:
    """A replay hands back the outcome alone."""
    patch.setattr("bargein.sim.effects.playing.publish_again", lambda effect, published: None)


@mutant(tests=(LIVE + "test_what_was_taken_with_it_is_told_although_an_observer_cancels_its_effect_meanwhile",))
def a_step_is_noted_as_it_is_delivered(patch: Patch) -> None:
    """What was collected and then not delivered is in no log."""
    patch.setattr(_RecordingBus, "taken", lambda self, batches: None)


@mutant(tests=(LIVE + "test_batches_of_one_instant_are_apart_and_come_again_as_they_were",))
def a_replay_groups_as_it_likes(patch: Patch) -> None:
    """In policy-visible mode items are told one by one."""

    def wrong(self: LivePlan, stream: Any) -> None:
        self._streams[stream.effect.id] = stream
        stream.deliver = lambda item: stream.effect.deliver(item)

    patch.setattr(LivePlan, "open", wrong)


# -- what is due --------------------------------------------------------------------------------------------------


@mutant(tests=(REPLAY + "test_a_call_that_is_left_out_is_missed_at_the_step_at_which_it_was_due",))
def whatever_is_missing_is_missed_at_the_end(patch: Patch) -> None:
    """Nobody looks for a call on its instant."""
    patch.setattr(DueEffects, "begin", lambda self, clock: None)
    patch.setattr(DueEffects, "_watch", lambda self: None)


@mutant(tests=(REPLAY + "test_a_call_that_somebody_holds_waits_for_the_release_however_long",))
def nobody_outside_is_waited_for(patch: Patch) -> None:
    """A call that is held is missed."""
    patch.setattr(Replay, "may_come", lambda self, still: None)


@mutant(tests=(DUE + "test_what_comes_late_makes_what_follows_due_as_much_later",))
def being_late_does_not_last(patch: Patch) -> None:
    """What follows a late call has to make up for it."""
    right = DueEffects.came

    def wrong(self: DueEffects, record: Any, at_us: int) -> None:
        right(self, record, record.dispatched_at_us)

    patch.setattr(DueEffects, "came", wrong)


@mutant(tests=(DUE + "test_once_something_was_refused_nothing_is_answered_any_more",))
def a_refusal_stops_one_effect_only(patch: Patch) -> None:
    """What was answered before goes on bringing its outcome."""
    patch.setattr(Playing, "silence", lambda self: None)


# -- tails --------------------------------------------------------------------------------------------------------


@mutant(tests=(TAILS + "test_a_whole_log_in_the_tails_place_is_refused_by_its_first_id",))
def any_log_will_do_for_a_tail(patch: Patch) -> None:
    """A whole log is played from its beginning."""
    patch.setattr(LogCheckpoint, "accept", lambda self, tail: None)


@mutant(tests=(TAILS + "test_what_was_in_flight_is_the_tails_under_its_id",))
def what_was_in_flight_is_left_out_of_the_tail(patch: Patch) -> None:
    """A tail begins with the first new effect."""
    right = tails.tail_of

    def wrong(log: Any, checkpoint: Any) -> Any:
        tail = right(log, checkpoint)
        tail.records = [record for record in tail.records if record.id >= checkpoint.next_id]
        return tail

    patch.setattr(tails, "tail_of", wrong)


@mutant(tests=(TAILS + "test_a_stream_that_was_cut_through_is_whole_in_the_tail",))
def what_was_visible_before_the_cut_is_lost(patch: Patch) -> None:
    """A stream that was cut through loses the items it had brought."""
    patch.setattr(tails, "_of", lambda deliveries, records: [])
