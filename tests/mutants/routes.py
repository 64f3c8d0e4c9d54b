"""Faults of routes between models, of a program's identity, and of going on with other tools of the program's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bargein.models.llm_script import ScriptedModel
from bargein.pipelines.speculation import Guesses
from bargein.pipelines.steering import Steer, Steering, Where
from bargein.pipelines.tools.offer import ToolOffer
from bargein.sim.lab import matching, programs, replacing, what_if
from bargein.sim.scenario.bodies import Bodies
from bargein.sim.scenario.build import Opened
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

ROUTES = "tests/sessions/steering/test_routes.py::"
PROGRAMS = "tests/sim/lab/test_programs.py::"
REPLACED = "tests/sessions/resume/test_replaced_tools.py::"


# -- routes ---------------------------------------------------------------------------------------------------------


@mutant(
    tests=(
        ROUTES + "test_the_requests_that_a_rule_names_go_to_its_model_and_rounds_are_taken_in_order_by_each",
        ROUTES + "test_a_speculative_request_goes_where_its_turns_first_request_goes",
    )
)
def every_request_goes_to_the_agents_own_model(patch: Patch) -> None:
    """A rule's route is forgotten."""
    at = Steering.at
    patch.setattr(Steering, "at", lambda self, epoch, round: replace(at(self, epoch, round), model=None))


@mutant(tests=(ROUTES + "test_of_several_routes_the_later_rules_holds_and_one_may_lead_back",))
def the_first_route_holds(patch: Patch) -> None:
    """Of two routes for one request the earlier rule's is taken."""
    at = Steering.at

    def first(self: Steering, epoch: int, round: int) -> Steer:
        held = [rule.route for rule in self.rules if rule.route is not None and rule.where.holds(epoch, round)]
        return replace(at(self, epoch, round), model=next(iter(held), None))

    patch.setattr(Steering, "at", first)


@mutant(tests=(ROUTES + "test_of_several_routes_the_later_rules_holds_and_one_may_lead_back",))
def a_route_holds_for_the_whole_turn(patch: Patch) -> None:
    """A rule about one round is taken to be about all of its turn."""
    patch.setattr(Where, "holds", lambda self, epoch, round: self.epoch in (None, epoch))


@mutant(
    tests=(
        ROUTES + "test_a_rule_of_another_model_reads_the_turns_rounds_and_the_whole_conversation",
        ROUTES + "test_calls_of_different_models_have_different_ids",
    )
)
def each_model_knows_of_its_own_part_only(patch: Patch) -> None:
    """What another model was asked and said is not part of the conversation that this one reads."""
    make = ScriptedModel.__init__

    def alone(self: ScriptedModel, *given: Any, **more: Any) -> None:
        make(self, *given, **{**more, "course": None})

    patch.setattr(ScriptedModel, "__init__", alone)


@mutant(tests=(ROUTES + "test_what_another_model_has_said_already_cannot_be_changed",))
def another_model_may_unsay_its_rounds(patch: Patch) -> None:
    """Only the script of the agent's own model is looked at for rounds that were given already."""
    scripts = what_if._scripts
    patch.setattr(what_if, "_scripts", lambda old, new: iter(list(scripts(old, new))[:1]))


@mutant(tests=(ROUTES + "test_rounds_of_several_models_are_matched_in_the_order_in_which_the_call_takes_them",))
def rounds_are_matched_as_if_one_model_gave_them_all(patch: Patch) -> None:
    """The other model's rounds are not among those that a turn is made of."""
    patch.setattr(matching, "_turns_of_all", matching._turns)


# -- the identity of a program ----------------------------------------------------------------------------------------


@mutant(tests=(PROGRAMS + "test_a_log_and_a_checkpoint_name_them",))
def a_program_declares_no_hooks(patch: Patch) -> None:
    """The rules of its steering are not named in the header."""
    patch.setattr(programs, "hook_names", lambda rules: [])


@mutant(tests=(PROGRAMS + "test_a_policy_version_is_in_the_hash_of_every_run_and_in_nothing_else",))
def a_policy_version_is_not_hashed(patch: Patch) -> None:
    """Two versions of a program's ways have one hash."""
    specification = programs.specification
    patch.setattr(programs, "specification", lambda settings, policy_version="": specification(settings))


# -- other tools of the program's own ---------------------------------------------------------------------------------


@mutant(
    tests=(REPLACED + "test_requests_tell_of_the_new_declaration_and_calls_run_the_new_code_from_the_place_on",),
)
def requests_go_on_telling_of_the_saved_declaration(patch: Patch) -> None:
    """What is on offer was made before the tools were replaced, and is kept."""
    patch.setattr(ToolOffer, "redeclare", lambda self, spec: self._registry.redeclare(spec))


@mutant(tests=(REPLACED + "test_the_same_declaration_brings_its_new_code_and_leaves_the_timeline",))
def replaced_code_is_not_called(patch: Patch) -> None:
    """The new declaration is told of, and nobody serves its calls but what stood for the saved one."""
    patch.setattr(Bodies, "replace", lambda self, session, recorder: {})


@mutant(tests=(REPLACED + "test_what_decided_what_a_call_may_do_stays",))
def a_side_effect_becomes_read_only_in_the_middle_of_a_call(patch: Patch) -> None:
    """Any declaration is taken."""
    patch.setattr(replacing, "_FIXED", {})


@mutant(tests=(REPLACED + "test_a_call_that_a_speculation_holds_was_judged_by_the_saved_schema",))
def a_held_call_runs_whatever_the_new_schema_says(patch: Patch) -> None:
    """Calls that wait for their turn are not looked for."""
    patch.setattr(Guesses, "held_calls", lambda self: [])


@mutant(tests=(REPLACED + "test_a_call_that_waits_for_the_user_was_judged_by_the_saved_schema",))
def calls_that_wait_are_not_looked_for(patch: Patch) -> None:
    """Nothing is checked at the place."""
    patch.setattr("bargein.sim.lab.resumes.check_calls", lambda *_: None)


@mutant(tests=(ROUTES + "test_a_profile_goes_on_where_it_was_when_something_else_is_changed",))
def a_profile_begins_anew_when_something_is_changed(patch: Patch) -> None:
    """A model that was loaded once is loaded again in the middle of the call."""
    adopt = Opened.adopt

    def anew(self: Opened, plan: Any) -> None:
        asked = self.model.requests[:]
        self.model.requests.clear()
        adopt(self, plan)
        self.model.requests[:] = asked

    patch.setattr(Opened, "adopt", anew)
