"""Faults of memory, retrieval, routes and live delivery: what is asked and when, what is kept, who is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models import index as index_module
from bargein.models.index import Index
from bargein.models.memory import MemoryHandler, MemoryStore
from bargein.models.memory_sqlite import SqliteStore
from bargein.pipelines.agent import advance, routes, run_memory, run_retrieval, run_steps
from bargein.pipelines.agent import run as run_module
from bargein.pipelines.agent.history import History
from bargein.pipelines.agent.memory import Append, Load, Remembers, RunMemory, read_loaded
from bargein.pipelines.agent.memory import Phase as MemoryPhase
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.retrieval import What, found_by, offered, query_of
from bargein.pipelines.agent.routes import ByRound
from bargein.pipelines.agent.run_state import Phase
from bargein.pipelines.session_memory import SessionMemory
from bargein.sim.effects import sources
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.reports import Report
from bargein.sim.effects.streams import Batch, LiveStreams
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

MEMORY = "tests/pipelines/agent/test_memory.py::"
RETRIEVAL = "tests/pipelines/agent/test_retrieval.py::"
ROUTES = "tests/pipelines/agent/test_routes.py::"
STREAMS = "tests/sim/effects/test_streams.py::"
STORES = "tests/models/test_memory.py::"
INDEX = "tests/models/test_index.py::"
CALLS = "tests/sessions/memory/test_memory.py::"


def _stage(patch: Patch, stage: Any, other: Any) -> None:
    """Have the run loop do ``other`` where it does ``stage``."""
    stages = [(other if each is stage else each, ended) for each, ended in run_module.STAGES]
    patch.setattr(run_module, "STAGES", tuple(stages))


# -- memory -----------------------------------------------------------------------------------------------------


@mutant(tests=(MEMORY + "test_a_run_that_brings_its_history_neither_loads_nor_appends_and_still_requires_its_memory",))
def a_run_with_a_history_loads_all_the_same(patch: Patch) -> None:
    """The run that brought its history is loaded on top of it."""
    begin = run_memory.begin_memory
    patch.setattr(advance, "begin_memory", lambda runs, run, brought_history: begin(runs, run, brought_history=False))


@mutant(tests=(MEMORY + "test_a_second_run_loads_what_the_first_left_and_appends_only_its_own",))
def remembered_messages_are_appended_again(patch: Patch) -> None:
    """Every run doubles what it had loaded."""
    patch.setattr(History, "own", History.messages)


@mutant(tests=(MEMORY + "test_what_was_loaded_stands_before_the_prompt_and_is_marked_as_remembered",))
def loaded_messages_follow_the_prompt(patch: Patch) -> None:
    """What was said earlier stands after what is said now."""
    remember = History.remember

    def after(self: History, messages: Any) -> None:
        before = len(self.stored)
        remember(self, messages)
        own = len(self.stored) - before
        self.stored[:] = self.stored[own:] + self.stored[:own]

    patch.setattr(History, "remember", after)


@mutant(tests=(MEMORY + "test_a_load_that_fails_ends_the_run_before_any_completion",))
def a_failed_load_is_an_empty_one(patch: Patch) -> None:
    """The run goes on as if there had been no conversation before."""

    def lenient(outcome: Any, form: Any) -> Any:
        found = read_loaded(outcome, form)
        return [] if isinstance(found, Report) else found

    patch.setattr(run_memory, "read_loaded", lenient)


@mutant(tests=(MEMORY + "test_a_run_appends_only_after_it_has_loaded_and_only_once",))
def a_run_may_append_twice(patch: Patch) -> None:
    """Settling again writes the same messages again."""
    settle = RunMemory.settle

    def again(self: RunMemory[Any], *given: Any) -> bool:
        if self.phase is MemoryPhase.APPENDED:
            self.phase = MemoryPhase.READY
        return settle(self, *given)

    patch.setattr(RunMemory, "settle", again)


@mutant(tests=(MEMORY + "test_a_run_that_was_stopped_while_it_loads_goes_nowhere_and_the_record_is_the_stores",))
def a_stopped_run_goes_on_when_its_load_lands(patch: Patch) -> None:
    """Stopping does not reach a run that waits for its memory."""
    stages = [(each, ended or each is run_memory.land_memory) for each, ended in run_module.STAGES]
    patch.setattr(run_module, "STAGES", tuple(stages))


@mutant(tests=(STORES + "test_a_cancelled_append_has_left_nothing_and_one_that_lands_on_that_instant_stands",))
def an_append_is_kept_before_it_lands(patch: Patch) -> None:
    """A cancelled append has been written all the same."""
    serve = MemoryHandler.serve

    def early(self: MemoryHandler, effect: Any) -> Any:
        if type(effect.payload) is Append:
            self._store.append(effect.payload.conversation, effect.payload.messages)
            effect.payload = Load(effect.payload.conversation)
        return serve(self, effect)

    patch.setattr(MemoryHandler, "serve", early)


@mutant(tests=(STORES + "test_nothing_that_happens_to_a_message_afterwards_changes_what_is_kept",))
def the_store_shares_its_messages(patch: Patch) -> None:
    """A message that is edited later changes in the store."""
    kept: dict[str, list[Any]] = {}
    patch.setattr(MemoryStore, "append", lambda self, name, messages: kept.setdefault(name, []).extend(messages))
    patch.setattr(MemoryStore, "load", lambda self, name: kept.get(name, []))


@mutant(tests=(STORES + "test_a_failure_in_the_middle_of_an_append_keeps_nothing_of_it",))
def an_append_is_no_transaction(patch: Patch) -> None:
    """What was written before a failure stays."""
    from contextlib import nullcontext

    patch.setattr(SqliteStore, "_transaction", lambda self: nullcontext())


@mutant(tests=(STORES + "test_a_database_that_is_no_memory_of_this_version_is_refused_and_left_as_it_is",))
def a_later_format_is_opened(patch: Patch) -> None:
    """Whatever the file says of itself, it is taken for a memory."""
    from bargein.models.memory_sqlite import APPLICATION_ID, VERSION

    patch.setattr(SqliteStore, "_head", lambda self: (APPLICATION_ID, VERSION, 1))


# -- retrieval and routes ---------------------------------------------------------------------------------------


@mutant(tests=(RETRIEVAL + "test_the_query_is_the_last_words_of_the_user_also_after_a_round_of_tools",))
def the_query_is_whatever_was_said_last(patch: Patch) -> None:
    """After a round of tools their results are looked up."""

    def last(messages: Any) -> str | None:
        return next((each.text for each in reversed(messages) if each.role is not Role.SYSTEM), None)

    patch.setattr(query_of, "__code__", last.__code__)


@mutant(
    tests=(
        RETRIEVAL + "test_documents_follow_the_static_ones_in_the_order_of_the_results_whichever_link_answered_first",
    )
)
def documents_come_as_they_arrive(patch: Patch) -> None:
    """The order of the documents is a race between the links."""
    patch.setattr(run_retrieval, "found_by", lambda links, came, kept: found_by(links[::-1], came[::-1], kept))


@mutant(tests=(RETRIEVAL + "test_the_round_waits_for_the_slowest_link_and_its_model_is_chosen_after_that",))
def the_round_goes_on_with_the_first_answer(patch: Patch) -> None:
    """What a slower link finds never reaches the request."""

    def first(runs: Any, run: Any) -> None:
        if run.turn is not None:
            del run.turn.lookups[1:]
        run_retrieval.attach_retrieved(runs, run)

    _stage(patch, run_retrieval.attach_retrieved, first)
    patch.setattr(run_retrieval, "found_by", lambda links, came, kept: found_by(links[: len(came)], came, kept))


@mutant(tests=(RETRIEVAL + "test_a_document_that_was_there_before_is_used_again_as_it_is",))
def a_document_is_made_anew_each_time(patch: Patch) -> None:
    """Two documents of one id stand in one run."""
    patch.setattr(run_retrieval, "found_by", lambda links, came, kept: found_by(links, came, {}))


@mutant(tests=(RETRIEVAL + "test_tools_that_were_found_are_offered_before_the_static_ones",))
def any_tool_that_was_found_is_offered(patch: Patch) -> None:
    """An id of the index becomes a tool that nobody granted."""

    def careless(found: Any, grants: Any, retrievable: Any) -> tuple[str, ...]:
        return (*found, *[name for name in grants if name not in retrievable])

    patch.setattr(offered, "__code__", careless.__code__)


@mutant(tests=(RETRIEVAL + "test_documents_are_asked_whole_and_tools_by_their_ids_with_query_and_samples_only",))
def tools_are_asked_as_documents(patch: Patch) -> None:
    """The index is asked for whole documents where ids would do."""
    patch.setattr(What, "in_query", "TopN")


@mutant(tests=(ROUTES + "test_a_choice_for_some_rounds_puts_the_default_back_on_the_next",))
def a_route_is_never_left(patch: Patch) -> None:
    """Rounds after the last go on to the same model."""
    choose = ByRound.__call__
    patch.setattr(ByRound, "__call__", lambda self, moment: choose(ByRound(self.key, self.first), moment))


@mutant(tests=(ROUTES + "test_a_declared_route_stands_in_the_row_selected_or_not_and_no_other_does",))
def declared_routes_stand_in_no_row(patch: Patch) -> None:
    """A replay starts without the handler that a route leads to."""

    def alone(agent: Any) -> dict[str, str]:
        return {agent.model.key: str(EffectKind.COMPLETION)}

    patch.setattr(routes.required, "__code__", alone.__code__)


@mutant(tests=(MEMORY + "test_a_run_that_brings_its_history_neither_loads_nor_appends_and_still_requires_its_memory",))
def a_memory_stands_in_no_row(patch: Patch) -> None:
    """A replay starts without the memory's handler."""
    patch.setattr(Remembers, "required", lambda self: {})


@mutant(tests=(RETRIEVAL + "test_the_row_of_the_program_has_its_retrieval_handlers_and_the_tools_that_may_be_found",))
def retrieval_stands_in_the_row_under_the_effects_name(patch: Patch) -> None:
    """The row names the family by the effect's kind."""
    patch.setattr("bargein.pipelines.agent.retrieval.RETRIEVE", "retrieval")


@mutant(tests=(INDEX + "test_equal_scores_keep_the_order_of_the_entries",))
def equal_scores_go_by_id(patch: Patch) -> None:
    """The order of equals depends on what they are called."""
    top = Index.top
    patch.setattr(
        Index, "top", lambda self, *asked: sorted(top(self, *asked), key=lambda result: (-result[0], result[1]))
    )


@mutant(tests=(INDEX + "test_a_text_is_nearest_to_itself_and_a_stranger_scores_nothing",))
def likeness_is_not_normed(patch: Patch) -> None:
    """A long text is like everything."""
    patch.setattr(index_module, "_square", lambda vector: 1)


# -- live delivery ----------------------------------------------------------------------------------------------


@mutant(tests=(STREAMS + "test_the_next_step_goes_on_after_the_last_stream_served_and_wraps_once",))
def every_step_begins_with_the_first_stream(patch: Patch) -> None:
    """Busy early streams keep the later ones waiting."""
    patch.setattr(LiveStreams, "_turns", lambda self: list(self._streams))


@mutant(tests=(STREAMS + "test_a_step_takes_at_most_64_items_of_one_stream",))
def one_stream_may_take_a_whole_step(patch: Patch) -> None:
    """A stream is served until it has nothing more."""
    patch.setattr("bargein.sim.effects.streams.CHECKS_PER_EFFECT", 4_096)


@mutant(tests=(STREAMS + "test_a_step_takes_at_most_4096_items_in_all",))
def a_step_has_no_bound_of_its_own(patch: Patch) -> None:
    """Many streams make a step as long as they like."""
    patch.setattr("bargein.sim.effects.streams.STREAM_WORK_PER_STEP", 1_000_000)


@mutant(tests=(STREAMS + "test_an_observer_that_ends_an_effect_leaves_the_others_its_batch_and_its_siblings_theirs",))
def batches_of_ended_effects_are_dropped(patch: Patch) -> None:
    """Whoever is told first decides what the others get to see."""
    tell = LiveStreams._tell

    def drop(self: LiveStreams, batch: Batch) -> None:
        if batch.effect.running:
            tell(self, batch)

    patch.setattr(LiveStreams, "_tell", drop)


@mutant(tests=(STREAMS + "test_what_was_accumulated_holds_a_batch_before_it_is_told_and_the_outcome_comes_after",))
def the_dispatcher_reads_before_the_observers(patch: Patch) -> None:
    """Observers learn of a batch when the agent has acted on it."""
    tell = LiveStreams._tell

    def late(self: LiveStreams, batch: Batch) -> None:
        for item in batch.items:
            batch.effect.deliver(item)
        tell(self, batch)

    patch.setattr(LiveStreams, "_tell", late)


@mutant(tests=(STREAMS + "test_one_that_comes_late_is_told_what_follows_and_reads_what_was",))
def batches_count_from_nothing(patch: Patch) -> None:
    """Each batch says that it is the first."""
    accumulate = LiveStreams._accumulate

    def first(self: LiveStreams, stream: Any, items: list[Any]) -> Batch:
        batch = accumulate(self, stream, items)
        return Batch(batch.effect, batch.id, 0, batch.items)

    patch.setattr(LiveStreams, "_accumulate", first)


@mutant(tests=(STREAMS + "test_the_outcome_waits_until_every_item_was_told",))
def the_outcome_overtakes_its_items(patch: Patch) -> None:
    """An effect lands while items of it are still queued."""
    patch.setattr(sources._Stream, "ended", property(lambda self: self._outcome))


@mutant(tests=(STREAMS + "test_a_source_is_at_most_its_queue_and_one_item_ahead",))
def a_source_runs_as_far_ahead_as_it_likes(patch: Patch) -> None:
    """Nothing holds a source back."""
    init = sources._Stream.__init__
    patch.setattr(
        sources._Stream,
        "__init__",
        lambda self, clock, streams, effect, capacity, live: init(self, clock, streams, effect, None, live),
    )


@mutant(tests=(STREAMS + "test_cancelling_closes_the_source_wherever_it_stands",))
def a_cancelled_source_is_left_standing(patch: Patch) -> None:
    """What a source has open stays open."""
    close = sources._Stream.close

    def leave(self: Any, cause: Any = None) -> None:
        kept.append(self._source)
        self._source = None
        close(self, cause)

    kept: list[Any] = []
    patch.setattr(sources._Stream, "close", leave)


@mutant(tests=(STREAMS + "test_what_a_handler_pushes_past_its_end_is_not_read",))
def items_after_the_end_are_read(patch: Patch) -> None:
    """A provider's frames past its end reach the observers."""

    def put(self: Any, item: Any) -> None:
        self._queue.append(item)
        self._streams.wake()
        if self._outcome is not None:
            self._streams._tell(Batch(self.effect, self.effect.id, 0, (item,)))

    patch.setattr(sources._Stream, "put", put)


@mutant(tests=(STREAMS + "test_an_error_is_the_last_item_and_only_observers_see_it_as_one",))
def observers_are_not_told_of_errors(patch: Patch) -> None:
    """A failed stream just stops."""
    patch.setattr(sources, "report_of", lambda outcome: "")


@mutant(tests=(RETRIEVAL + "test_every_round_asks_every_link_in_order_before_its_completion",))
def only_the_first_link_is_asked(patch: Patch) -> None:
    """An agent's further links are decoration."""

    def one(runs: Any, run: Any) -> None:
        run.agent.retrieves = run.agent.retrieves[:1]
        run_retrieval.look_up(runs, run)

    _stage(patch, run_retrieval.look_up, one)


# -- agent runs and calls ---------------------------------------------------------------------------------------


@mutant(tests=(MEMORY + "test_a_run_keeps_the_conversation_it_was_spawned_with_and_the_id_crosses_unchanged",))
def a_run_asks_for_the_agents_present_conversation(patch: Patch) -> None:
    """What one run loaded is appended to another conversation."""

    def present(runs: Any, run: Any) -> None:
        run.memory.remembers = run.agent.remembers
        run_memory.append_memory(runs, run)

    patch.setattr(run_steps, "append_memory", present)


@mutant(tests=(MEMORY + "test_the_first_round_waits_for_the_load_however_long_it_takes",))
def a_run_begins_while_it_loads(patch: Patch) -> None:
    """The first request is made without what was said before."""

    def at_once(runs: Any, run: Any, brought_history: bool) -> Any:
        run_memory.begin_memory(runs, run, brought_history=brought_history)
        return Phase.ASSEMBLING

    patch.setattr(advance, "begin_memory", at_once)


@mutant(tests=(MEMORY + "test_a_run_that_fails_appends_nothing",))
def failed_runs_are_remembered(patch: Patch) -> None:
    """A run without an answer stands in the memory."""
    tell = run_module.AgentRuns.tell

    def remembering(self: Any, kind: str, run: Any, *values: Any) -> None:
        tell(self, kind, run, *values)
        if kind == "agent.run_ended":
            run_memory.append_memory(self, run)

    patch.setattr(run_module.AgentRuns, "tell", remembering)


@mutant(tests=(RETRIEVAL + "test_a_retrievable_tool_is_offered_first_and_only_in_the_rounds_in_which_it_was_found",))
def only_the_first_round_looks_things_up(patch: Patch) -> None:
    """Rounds after tools go on with nothing."""

    def once(runs: Any, run: Any) -> None:
        if run.turn is not None and run.turn.number > 1:
            run.turn.retrieving = False
        run_retrieval.look_up(runs, run)

    _stage(patch, run_retrieval.look_up, once)


@mutant(tests=(CALLS + "test_a_turn_that_comes_while_the_load_runs_waits_for_it",))
def a_turn_does_not_wait_for_the_memory(patch: Patch) -> None:
    """A quick caller meets an agent that does not know them yet."""
    patch.setattr("bargein.pipelines.session.VoiceSession._recalling", False)


@mutant(tests=(CALLS + "test_a_load_that_never_comes_is_given_up_after_its_limit",))
def a_call_waits_for_its_memory_for_ever(patch: Patch) -> None:
    """A memory that hangs hangs the call."""
    patch.setattr(SessionMemory, "_arm", lambda self: None)


@mutant(tests=(CALLS + "test_calls_of_an_earlier_call_stand_beside_those_of_this_one",))
def remembered_calls_keep_their_ids(patch: Patch) -> None:
    """A call of this session has the id of one of an earlier."""
    patch.setattr("bargein.pipelines.session_memory.with_ids_of_epoch_0", list)


@mutant(tests=(CALLS + "test_a_conversation_that_no_request_could_hold_enters_none",))
def whatever_was_kept_is_believed(patch: Patch) -> None:
    """An edited memory makes an invalid conversation."""
    patch.setattr("bargein.pipelines.session_memory._check", lambda messages: None)


@mutant(tests=(CALLS + "test_a_call_that_is_not_kept_leaves_the_file_as_it_is_and_gives_the_same_bytes_again",))
def every_call_is_kept(patch: Patch) -> None:
    """Running a scenario twice gives two different calls."""
    patch.setattr("bargein.sim.scenario.remembering._copy", lambda path, name: SqliteStore(path))
