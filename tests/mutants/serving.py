"""Faults of serving: verdicts that take time, places at a key, streams with errors, and how a provider is reached."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models import reranking
from bargein.sim.effects.bus import Handler, Outcome
from bargein.sim.effects.decisions import Approval, Layer
from bargein.sim.effects.dispatches import Dispatch
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import RecordedEffect
from bargein.sim.effects.serving import Places
from bargein.sim.effects.sources import _Stream
from bargein.sim.effects.streams import NOTHING, LiveStreams, Streamed
from bargein.sim.live.fetch import Fetcher
from bargein.sim.live.launch import Launch
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

LAUNCH = "tests/live/test_launch.py::"
MODELS = "tests/models/test_embedding_reranking.py::"
SERVING = "tests/sim/effects/test_layers_serving.py::"
STREAMS = "tests/sim/effects/test_streams_errors.py::"
VERDICTS = "tests/sim/effects/test_layers_verdicts.py::"


# -- verdicts -----------------------------------------------------------------------------------------------------


@mutant(
    tests=(VERDICTS + "test_the_asker_is_told_when_the_verdict_is_given_and_the_record_says_when_the_handler_answered",)
)
def nobody_waits_for_a_verdict(patch: Patch) -> None:
    """The asker is told as soon as the handler has answered."""

    def at_once(self: Dispatch, outcome: Outcome, layer: Layer, approval: Approval) -> None:
        self._tell_late(outcome, gave_up=False)

    patch.setattr(Dispatch, "_withhold", at_once)


@mutant(tests=(VERDICTS + "test_a_cancellation_during_a_verdict_is_told_and_leaves_the_answer_in_the_record",))
def an_answer_that_is_withheld_counts_as_delivered(patch: Patch) -> None:
    """The log says that the asker was told what it never heard."""
    patch.setattr(RecordedEffect, "withhold", lambda self: None)


@mutant(tests=(VERDICTS + "test_nobody_thinks_over_a_cancellation",))
def a_cancellation_waits_for_a_verdict(patch: Patch) -> None:
    """Whoever gives up is kept waiting for a layer."""
    patch.setattr("bargein.sim.effects.dispatches.Status", type("Status", (), {"CANCELLED": None}))


@mutant(tests=(VERDICTS + "test_a_place_is_kept_until_the_verdict",))
def a_place_is_free_during_a_verdict(patch: Patch) -> None:
    """The next one is served although the asker of this one has not been told."""
    tell = Dispatch.tell

    def told(self: Dispatch, outcome: Outcome, *, gave_up: bool = False) -> bool:
        tell(self, outcome, gave_up=gave_up)
        return True

    patch.setattr(Dispatch, "tell", told)


@mutant(
    tests=(VERDICTS + "test_a_policy_that_does_not_is_told_the_cancellation_in_exchange_mode_and_never_the_answer",)
)
def a_replay_shows_what_was_given_up(patch: Patch) -> None:
    """An answer that nobody was told in the recording is told in the replay."""
    patch.setattr("bargein.sim.effects.replay.given_up", lambda log: {})


@mutant(tests=(VERDICTS + "test_an_answer_that_was_not_collected_yet_is_kept_in_the_record_and_shown_to_nobody",))
def an_answer_that_was_not_collected_is_lost(patch: Patch) -> None:
    """A cancellation takes what the handler had answered out of the record."""
    patch.setattr(RecordedEffect, "keep", lambda self, items, outcome: None)


@mutant(tests=(VERDICTS + "test_one_approval_may_keep_several_waiting_and_lets_them_go_in_order",))
def an_approval_remembers_the_last_one_only(patch: Patch) -> None:
    """Of several that wait for the same answer all but one wait for ever."""
    listen = Approval.listen

    def last(self: Approval, listener: Any) -> None:
        self._listeners.clear()
        listen(self, listener)

    patch.setattr(Approval, "listen", last)


# -- places -------------------------------------------------------------------------------------------------------


@mutant(tests=(SERVING + "test_as_many_are_served_at_a_time_as_there_are_places_in_the_order_of_coming",))
def every_key_has_one_place(patch: Patch) -> None:
    """A capacity is the same as serial."""
    patch.setattr(Places, "full", property(lambda self: bool(self.holders)))


@mutant(tests=(SERVING + "test_who_comes_while_others_are_let_in_waits_behind_them",))
def who_comes_late_may_overtake(patch: Patch) -> None:
    """A place that was just given back goes to whoever asks first, and not to who waited."""

    def enter(self: Places[Any], one: Any) -> None:
        if self.full:
            self._waiting.append(one)
        else:
            self._give(one)

    patch.setattr(Places, "enter", enter)


@mutant(tests=(SERVING + "test_it_does_not_wait_for_a_place_that_somebody_else_holds_either",))
def a_key_may_wait_for_itself_where_others_hold_its_places(patch: Patch) -> None:
    """Two that ask their own key from within wait for each other for ever."""
    patch.setattr(LayeredBus, "_may_not_wait", lambda self, ask: False)


@mutant(tests=(SERVING + "test_the_layers_stay_and_what_was_asked_keeps_those_it_came_through",))
def a_replaced_handler_loses_its_layers(patch: Patch) -> None:
    """Whoever replaces a handler takes down what stood around it."""
    replace = LayeredBus.replace

    def bare(self: LayeredBus, key: str, handler: Handler, descriptor: Any = None) -> None:
        replace(self, key, handler, descriptor)
        self._layers.pop(key, None)

    patch.setattr(LayeredBus, "replace", bare)


@mutant(tests=(SERVING + "test_what_a_handler_sends_past_its_end_is_neither_read_nor_recorded",))
def what_comes_past_the_end_is_recorded(patch: Patch) -> None:
    """A recorded effect notes whatever its handler sends."""
    deliver = RecordedEffect.deliver

    def late(self: RecordedEffect, item: Any) -> None:
        if self.outcome is not None:
            self._bus.note(self, "item")  # type: ignore[attr-defined]
        deliver(self, item)

    patch.setattr(RecordedEffect, "deliver", late)


# -- streams ------------------------------------------------------------------------------------------------------


@mutant(
    tests=(STREAMS + "test_every_error_is_kept_at_its_position_and_the_first_is_the_outcome_once_the_reply_has_ended",)
)
def only_the_first_error_is_kept(patch: Patch) -> None:
    """What goes wrong after the first error is not known."""
    accumulate = LiveStreams._accumulate

    def first(self: LiveStreams, stream: Any, items: list[Any]) -> Any:
        batch = accumulate(self, stream, items)
        streamed: Streamed = self._streamed[batch.id]
        del streamed.errors[1:]
        return batch

    patch.setattr(LiveStreams, "_accumulate", first)


@mutant(
    tests=(STREAMS + "test_every_error_is_kept_at_its_position_and_the_first_is_the_outcome_once_the_reply_has_ended",)
)
def a_stream_that_goes_on_has_recovered(patch: Patch) -> None:
    """An error in mid-stream is forgotten once the reply ends well."""
    patch.setattr("bargein.sim.effects.sources.error_in", lambda item: None)


# -- models and hosts ---------------------------------------------------------------------------------------------


@mutant(tests=(MODELS + "test_documents_are_ordered_by_the_share_of_the_querys_words_that_they_have",))
def a_document_that_repeats_itself_fits_better(patch: Patch) -> None:
    """What counts is how often words occur, not which."""

    def often(query: str, document: str) -> int:
        words = document.casefold().split()
        return sum(words.count(word) for word in query.casefold().split()) * 1_000_000

    patch.setattr(reranking, "overlap", often)


@mutant(tests=(LAUNCH + "test_an_endpoint_that_was_chosen_stays_chosen_although_it_is_the_usual_one",))
def the_usual_endpoint_is_not_written_down(patch: Patch) -> None:
    """What was chosen on purpose is taken for the default, and follows the environment from then on."""
    to_dict = Launch.to_dict

    def without(self: Launch) -> dict[str, Any]:
        data = to_dict(self)
        if data.get("endpoint") == "https://api.anthropic.com":
            del data["endpoint"]
        return data

    patch.setattr(Launch, "to_dict", without)


@mutant(tests=(LAUNCH + "test_what_was_secret_stays_so_when_it_has_been_renewed",))
def an_old_key_is_no_secret(patch: Patch) -> None:
    """A key that was renewed may be in what is written down."""
    use = Fetcher._use

    def forget(self: Fetcher, endpoint: Any) -> None:
        self._secrets = ()
        use(self, endpoint)

    patch.setattr(Fetcher, "_use", forget)


@mutant(
    tests=("tests/sim/effects/test_streams_room.py::test_a_full_queue_that_the_budget_has_left_behind_stays_as_it_is",)
)
def a_queue_is_filled_beyond_its_bound(patch: Patch) -> None:
    """After each step every source is drawn from, whether or not its queue was emptied."""
    refill = _Stream.refill

    def wrong(self: _Stream) -> None:
        capacity, self.capacity = self.capacity, None if self._held is NOTHING else len(self._queue) + 1
        try:
            refill(self)
        finally:
            self.capacity = capacity

    patch.setattr(_Stream, "refill", wrong)
