"""Faults of what the tool engine says: answers, bounds, traces, the confirmation gate, the registry and fillers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.tools.bounded import to_json
from bargein.pipelines.tools.confirmation import Confirmations, Request
from bargein.pipelines.tools.execution import Slot
from bargein.pipelines.tools.fillers import FillerPolicy
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.read_only import ReadOnlyCalls
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.tools.results import Answer, ErrorKind, error
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.pipelines.tools.trace import ToolTrace, logger
from bargein.pipelines.wordings import TRUNCATION_MARKER
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.kernel.cancel import CancelToken
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

BOUNDED = "tests/pipelines/tools/test_bounded.py::"
CONFIRMATION = "tests/pipelines/tools/test_confirmation.py::"
ENGINE = "tests/pipelines/tools/test_engine.py::"
FILLERS = "tests/pipelines/tools/test_fillers.py::"
REGISTRY = "tests/pipelines/tools/test_registry.py::"
RESULTS = "tests/pipelines/tools/test_results.py::"
TRACE = "tests/pipelines/tools/test_trace.py::"
VALIDATION = "tests/pipelines/tools/test_validation.py::"


# -- answers and their bounds -----------------------------------------------------------------------------------


def _careless_cut(text: str, limit: int, marker: str = "…") -> str:
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - len(marker.encode())].decode("utf-8", "replace") + marker


@mutant(tests=(RESULTS + "test_tool_and_detail_are_cut_within_their_bytes_and_the_body_stays_json",))
def cut_falls_inside_a_character(patch: Patch) -> None:
    """A bounded field ends in half a character."""
    patch.setattr("bargein.pipelines.tools.results.cut", _careless_cut)


@mutant(tests=(RESULTS + "test_a_cut_result_is_exactly_the_limit_marker_included",))
def marker_comes_on_top_of_the_limit(patch: Patch) -> None:
    """A cut result takes its limit and the marker."""
    from bargein.pipelines.tools.bounded import cut

    def longer(text: str, limit: int, marker: str = "…") -> str:
        return cut(text, limit + len(marker) if marker == TRUNCATION_MARKER else limit, marker)

    patch.setattr("bargein.pipelines.tools.results.cut", longer)


@mutant(tests=(RESULTS + "test_tool_and_detail_are_cut_within_their_bytes_and_the_body_stays_json",))
def detail_is_unbounded(patch: Patch) -> None:
    """A tool's message reaches the model whole, however long."""
    patch.setattr("bargein.pipelines.tools.results.MAX_DETAIL_BYTES", 1 << 30)


@mutant(tests=(RESULTS + "test_tool_and_detail_are_cut_within_their_bytes_and_the_body_stays_json",))
def made_up_name_is_unbounded(patch: Patch) -> None:
    """A name that the model made up is repeated whole."""
    patch.setattr("bargein.pipelines.tools.results.MAX_TOOL_BYTES", 1 << 30)


@mutant(tests=(VALIDATION + "test_a_report_holds_five_issues_and_says_when_there_were_more",))
def report_is_unbounded(patch: Patch) -> None:
    """Every fault of the arguments is listed."""
    patch.setattr("bargein.pipelines.tools.validation.MAX_ISSUES", 1_000)


@mutant(tests=(VALIDATION + "test_paths_and_reasons_are_cut_on_character_boundaries_within_their_bytes",))
def reason_is_unbounded(patch: Patch) -> None:
    """A reason quotes the whole of the arguments."""
    patch.setattr("bargein.pipelines.tools.validation.MAX_REASON_BYTES", 1 << 30)


@mutant(tests=(BOUNDED + "test_size_and_prefix_stop_reading_at_the_limit",))
def oversized_result_is_written_out_in_full(patch: Patch) -> None:
    """A huge value is turned into text before it is cut."""

    class Whole:
        """An encoder that knows no pieces."""

        @staticmethod
        def iterencode(value: Any) -> list[str]:
            return [to_json(value)]

    patch.setattr("bargein.pipelines.tools.bounded._encoder", Whole)


@mutant(tests=(RESULTS + "test_a_larger_result_is_an_error_when_read_only_and_cut_when_a_side_effect",))
def oversized_lookup_is_cut(patch: Patch) -> None:
    """Half of a lookup's result passes for the whole."""
    judge = ReadOnlyCalls._judge

    def cut(self: ReadOnlyCalls, name: str, ended: Outcome) -> Any:
        outcome, answer = judge(self, name, ended)
        return (ToolOutcome.OK, Answer("x")) if outcome is ToolOutcome.RESULT_TOO_LARGE else (outcome, answer)

    patch.setattr(ReadOnlyCalls, "_judge", cut)


@mutant(tests=(RESULTS + "test_a_larger_result_is_an_error_when_read_only_and_cut_when_a_side_effect",))
def oversized_booking_is_an_error(patch: Patch) -> None:
    """A booking that took place is reported as failed."""
    judge = SideEffects._judge

    def fail(self: SideEffects, name: str, ended: Outcome) -> Any:
        outcome, answer = judge(self, name, ended)
        if outcome is ToolOutcome.OK_TRUNCATED:
            return ToolOutcome.FAILED, error(ErrorKind.RESULT_TOO_LARGE, name, "too large")
        return outcome, answer

    patch.setattr(SideEffects, "_judge", fail)


@mutant(tests=(ENGINE + "test_a_side_effect_that_crashes_is_lost_and_its_outcome_unknown",))
def crashed_booking_counts_as_failed(patch: Patch) -> None:
    """A crash says that nothing was done, so that the model tries again."""
    judge = SideEffects._judge

    def fail(self: SideEffects, name: str, ended: Outcome) -> Any:
        return judge(self, name, Outcome(Status.FAILED, "crash") if ended.status is Status.CRASHED else ended)

    patch.setattr(SideEffects, "_judge", fail)


@mutant(tests=(ENGINE + "test_read_only_crashes_are_answered_and_siblings_go_on",))
def crash_tells_the_model_its_traceback(patch: Patch) -> None:
    """The text of an exception reaches the model."""
    judge = ReadOnlyCalls._judge

    def leak(self: ReadOnlyCalls, name: str, ended: Outcome) -> Any:
        return judge(self, name, Outcome(Status.FAILED, ended.value) if ended.status is Status.CRASHED else ended)

    patch.setattr(ReadOnlyCalls, "_judge", leak)


# -- traces -----------------------------------------------------------------------------------------------------


def _on_start(patch: Patch, told: Any) -> None:
    start = SideEffects._start

    def tell(self: SideEffects, slot: Slot, tool: Any, arguments: dict[str, Any], *rest: Any) -> None:
        told(self, slot, arguments)
        start(self, slot, tool, arguments, *rest)

    patch.setattr(SideEffects, "_start", tell)


@mutant(tests=(TRACE + "test_argument_values_appear_in_no_record",))
def arguments_are_on_the_timeline(patch: Patch) -> None:
    """A phone number stands in a record."""
    _on_start(
        patch,
        lambda self, slot, arguments: self._desk.trace.progress(
            slot.execution.epoch, slot.call.id, slot.call.name, str(arguments)
        ),
    )


@mutant(tests=(TRACE + "test_argument_values_appear_in_no_record",))
def arguments_are_logged(patch: Patch) -> None:
    """A phone number stands in the log."""
    _on_start(patch, lambda self, slot, arguments: logger.info("side effect runs with %s", arguments))


@mutant(tests=(TRACE + "test_each_answered_call_settles_once",))
def refusals_are_not_traced(patch: Patch) -> None:
    """Only calls that ran settle on the timeline."""
    settled = ToolTrace.settled

    def some(self: ToolTrace, epoch: int, call: str, tool: str, outcome: Any, duration_us: int, retries: int) -> None:
        if duration_us:
            settled(self, epoch, call, tool, outcome, duration_us, retries)

    patch.setattr(ToolTrace, "settled", some)


@mutant(tests=(TRACE + "test_retries_are_the_malformed_rounds_up_to_the_admission",))
def retries_are_not_traced(patch: Patch) -> None:
    """A settled call does not say how many rounds went wrong before it."""
    settled = ToolTrace.settled

    def without(self: ToolTrace, epoch: int, call: str, tool: str, outcome: Any, duration_us: int, _: int) -> None:
        settled(self, epoch, call, tool, outcome, duration_us, 0)

    patch.setattr(ToolTrace, "settled", without)


# -- the confirmation gate --------------------------------------------------------------------------------------


@mutant("gate_respected")
def gated_call_runs_at_once(patch: Patch) -> None:
    """The gate stands open."""
    admit = SideEffects.admit

    def run(self: SideEffects, slot: Slot, token: CancelToken) -> None:
        tool = slot.tool
        slot.planned = replace(tool, spec=replace(tool.spec, confirm=False))
        admit(self, slot, token)

    patch.setattr(SideEffects, "admit", run)


@mutant(tests=(CONFIRMATION + "test_request_and_confirmation_never_share_a_user_turn_however_many_rounds_lie_between",))
def confirmation_in_the_same_turn(patch: Patch) -> None:
    """The model confirms what it has just asked for."""
    patch.setattr(Confirmations, "_is_replied", lambda self, request: True)


@mutant(tests=(CONFIRMATION + "test_speech_under_way_when_the_request_was_made_is_not_the_reply",))
def speech_under_way_counts_as_the_reply(patch: Patch) -> None:
    """What the caller was saying when the request was made confirms it."""
    patch.setattr(Confirmations, "note_user_speech_started", lambda self: None)


@mutant(tests=(CONFIRMATION + "test_a_confirmation_of_an_older_turn_than_the_request_is_stale_and_the_request_stays",))
def confirmation_of_an_older_turn(patch: Patch) -> None:
    """A confirmation made before the request takes it."""
    patch.setattr(Confirmations, "_is_stale", lambda self, request, epoch: False)


@mutant(tests=(CONFIRMATION + "test_a_request_lives_for_its_ttl",))
def request_does_not_expire(patch: Patch) -> None:
    """A request may be confirmed for ever."""
    patch.setattr(Confirmations, "_is_expired", lambda self, request: False)


@mutant("gate_respected")
def request_is_confirmed_twice(patch: Patch) -> None:
    """A second confirmation runs the call again."""
    patch.setattr(Confirmations, "take", lambda self, request, call_id, epoch: None)


@mutant(tests=(CONFIRMATION + "test_a_barge_in_clears_every_request_and_a_new_question_works",))
def requests_survive_a_barge_in(patch: Patch) -> None:
    """A caller confirms what they may not have heard."""
    patch.setattr(Confirmations, "clear", lambda self, reason="barge_in": None)


@mutant(tests=(CONFIRMATION + "test_asking_again_for_the_same_action_replaces_the_request",))
def identical_request_is_not_replaced(patch: Patch) -> None:
    """Two requests for one action wait side by side."""

    def same(self: Confirmations, waiting: Request, call_id: str, digest: bytes) -> bool:
        return waiting.call_id == call_id

    patch.setattr(Confirmations, "_is_same", same)


@mutant(tests=(CONFIRMATION + "test_the_ninth_request_pushes_out_the_oldest",))
def requests_are_unbounded(patch: Patch) -> None:
    """Any number of requests wait."""
    patch.setattr("bargein.pipelines.tools.confirmation.MAX_REQUESTS", 1_000)


@mutant(
    tests=(CONFIRMATION + "test_after_a_user_turn_the_call_runs_as_it_was_requested_under_the_confirming_calls_key",)
)
def confirmed_call_runs_under_the_requests_key(patch: Patch) -> None:
    """The key of a confirmed run is that of the request."""
    start = SideEffects._start

    def rekeyed(self: SideEffects, slot: Slot, tool: Any, arguments: Any, key: IdempotencyKey, *rest: Any) -> None:
        if rest[-1] and len(rest) == 3:
            other = key._replace(call_id=rest[-1])
            self._desk.store.admit(other, slot.execution.response)
            key = other
        start(self, slot, tool, arguments, key, *rest)

    patch.setattr(SideEffects, "_start", rekeyed)


# -- the registry -----------------------------------------------------------------------------------------------


@mutant(tests=(REGISTRY + "test_a_refused_registration_leaves_no_trace",))
def registry_refuses_nothing(patch: Patch) -> None:
    """Names, kinds and timeouts are taken as they come."""
    patch.setattr(ToolRegistry, "_check", lambda self, spec: None)


@mutant(tests=(REGISTRY + "test_a_refused_registration_leaves_no_trace",))
def remote_references_are_accepted(patch: Patch) -> None:
    """A schema that needs the network is registered."""
    patch.setattr("bargein.pipelines.tools.validation._check_references", lambda schema: None)


@mutant(tests=(REGISTRY + "test_specs_and_adverts_come_in_name_order_whatever_the_order_of_registration",))
def tools_are_listed_as_registered(patch: Patch) -> None:
    """Requests name the tools in the order of registration."""
    patch.setattr(ToolRegistry, "specs", lambda self: tuple([tool.spec for tool in self._tools.values()]))


# -- fillers ----------------------------------------------------------------------------------------------------


@mutant(tests=(FILLERS + "test_phrases_take_turns_and_only_a_spoken_one_moves_the_turn",))
def asking_for_the_delay_moves_the_rotation(patch: Patch) -> None:
    """A phrase that was not spoken is passed over."""
    delay_us = FillerPolicy.delay_us

    def move(self: FillerPolicy, specs: Any) -> Any:
        self._spoken += 1
        return delay_us(self, specs)

    patch.setattr(FillerPolicy, "delay_us", move)


@mutant(tests=(FILLERS + "test_a_copy_begins_its_own_rotation_and_shares_the_clips",))
def copies_share_the_rotation(patch: Patch) -> None:
    """One session's fillers move another's."""
    patch.setattr(FillerPolicy, "copy", lambda self: self)


@mutant(tests=(FILLERS + "test_a_round_fills_after_the_smallest_delay_of_the_tools_that_run",))
def opted_out_tool_is_filled(patch: Patch) -> None:
    """A tool that allows no filler gets one."""
    delay_of = FillerPolicy._delay_of

    def of_any(self: FillerPolicy, spec: Any) -> int | None:
        return delay_of(self, replace(spec, filler_after_us=spec.filler_after_us or 700_000))

    patch.setattr(FillerPolicy, "_delay_of", of_any)


@mutant(tests=(FILLERS + "test_a_clip_is_named_only_when_it_is_available",))
def missing_clip_is_named(patch: Patch) -> None:
    """A clip that cannot be played is chosen."""
    from bargein.pipelines.tools.fillers import FillerChoice

    def choose(self: FillerPolicy, tool: str) -> FillerChoice:
        phrase = self._phrases(tool)[self._spoken]
        self._spoken += 1
        return FillerChoice(phrase.text, phrase.clip)

    patch.setattr(FillerPolicy, "choose", choose)
