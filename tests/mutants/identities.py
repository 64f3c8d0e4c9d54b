"""Faults of what identifies a program and its documents: content, names, what was done already, which file is which."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.memory import MemoryHandler
from bargein.sim.effects import documents
from bargein.sim.effects.bus import Outcome, Status
from bargein.sim.effects.log import EffectLog
from bargein.sim.lab import programs, replays, resumes
from bargein.sim.scenario import build
from tests.mutants.catalogue import mutant

Patch = pytest.MonkeyPatch

CONTENTS = "tests/sim/lab/test_contents.py::"
KINDS = "tests/sim/test_file_kinds.py::"
REPLAYED = "tests/sessions/replay/test_every_call.py::"
REQUESTS = "tests/sim/effects/test_log_requests.py::"
RESUMED = "tests/sessions/resume/test_every_call.py::"

CHANGED = CONTENTS + "test_a_file_that_has_changed_since_is_refused_by_its_place_in_replay_and_resume"
MOVED = CONTENTS + "test_a_file_that_was_moved_is_still_the_same"
MATRIX = KINDS + "test_each_reader_reads_its_own_kind_and_says_what_each_other_is"


# -- files that a call reads ----------------------------------------------------------------------------------------


@mutant(tests=(CHANGED + "[cassette]", CHANGED + "[memory]"))
def what_is_in_a_file_does_not_count(patch: Patch) -> None:
    """A cassette or a memory with other bytes passes for the recorded one."""
    right = build.contents_of
    patch.setattr(build, "contents_of", lambda *given: dict.fromkeys(right(*given), "0" * 64))


@mutant(tests=(CHANGED + "[audio]",))
def a_plan_is_kept_whatever_its_files_hold_by_now(patch: Patch) -> None:
    """Who has replayed a log once does not look at its files again."""
    patch.setattr(replays, "files_now", lambda *_: ())


@mutant(tests=(MOVED + "[cassette]", MOVED + "[memory]", MOVED + "[audio]"))
def a_file_is_known_by_its_name(patch: Patch) -> None:
    """A file that was moved is another one."""
    patch.setattr(programs, "without_names", lambda data, contents=None: dict(data))


@mutant(tests=(CONTENTS + "test_a_memory_that_is_kept_grows_with_every_call_and_is_no_part_of_what_it_is",))
def a_memory_that_is_kept_has_to_stay_as_it_was(patch: Patch) -> None:
    """What the call itself has written refuses its replay."""
    right = build.contents_of

    def wrong(scenario: Any, *rest: Any) -> dict[str, str]:
        memory = scenario.memory
        return {**right(scenario, *rest), "memory.path": str((scenario.folder / memory.path).stat().st_size)}

    patch.setattr(build, "contents_of", wrong)


# -- what was done already ------------------------------------------------------------------------------------------


@mutant(tests=(RESUMED + "test_a_memory_that_is_kept_is_what_it_was_up_to_the_place_however_it_has_grown",))
def a_memory_that_is_kept_is_asked_again(patch: Patch) -> None:
    """On the way to the place the file is read and written as if the call were a new one."""
    right = resumes._Past.handler

    def wrong(self: Any, recorder: Any, key: str, handler: Any) -> Any:
        return handler if isinstance(handler, MemoryHandler) else right(self, recorder, key, handler)

    patch.setattr(resumes._Past, "handler", wrong)


@mutant(tests=(RESUMED + "test_an_append_that_was_under_way_is_carried_out_once",))
def what_was_under_way_counts_as_done(patch: Patch) -> None:
    """An append that had not landed at the place is never carried out."""
    right = resumes._Remembered.serve

    def wrong(self: Any, effect: Any) -> Any:
        served = right(self, effect)
        if not self._past.over:
            self._handler.done.setdefault(effect.id, Outcome(Status.OK))
        return served

    patch.setattr(resumes._Remembered, "serve", wrong)


@mutant(tests=(REPLAYED + "test_it_is_replayed_to_the_same_timeline_and_the_same_log[own tools]",))
def own_tools_are_replayed_in_the_order_of_their_names(patch: Patch) -> None:
    """The log of a replay is another one than the log that was replayed."""
    right = replays._own_tools
    patch.setattr(replays, "_own_tools", lambda header: dict(sorted(right(header).items())))


# -- which file is which --------------------------------------------------------------------------------------------


@mutant(tests=(MATRIX + "[runs.log-replay]", MATRIX + "[tail.log-a log given to sim.replay]"))
def any_log_is_a_sessions(patch: Patch) -> None:
    """A log of agent runs is refused for what its scenario lacks."""
    patch.setattr(replays, "_check_sort", lambda log: None)


@mutant(tests=(MATRIX + "[a.log-replay_runs]",))
def any_log_is_one_of_runs(patch: Patch) -> None:
    """A session's log becomes a world in which nothing that runs ask for was recorded."""
    patch.setattr(EffectLog, "of_runs", True)


@mutant(tests=(MATRIX + "[scenario.yaml-resume]", MATRIX + "[agent.toml-RunCheckpoint]"))
def what_is_no_json_is_nothing_of_ours(patch: Patch) -> None:
    """A scenario in a log's place is bad JSON."""
    patch.setattr(documents, "sort_of", lambda raw: None)


@mutant(tests=(REQUESTS + "test_it_is_read_back_equal",))
def whatever_is_asked_for_is_a_mapping(patch: Patch) -> None:
    """A log with a custom effect that was asked for in a word can be written and not read."""
    patch.setattr(documents.Fields, "anything", lambda self, key: self.get(key, dict))
