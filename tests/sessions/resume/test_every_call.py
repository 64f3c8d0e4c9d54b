"""Calls of every kind, saved at every event, go on to the very timeline of the uninterrupted call.

Nothing is done twice.

Where an answer is streaming, or the program's own code is running, nobody can go on, and the checkpoint is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bargein.models.memory_sqlite import SqliteStore
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.programs import PYTHON
from bargein.sim.lab.replays import record
from bargein.sim.lab.resumes import resume
from bargein.sim.lab.session import run_plan
from tests.sessions.resume.calls import CALLS, Desk, saved_everywhere, side_effects

KEPT = "memory that is kept"
APART = (KEPT, "own tools")
"""Calls that leave something behind, which a test of their own looks at."""


def read_again(saved: Checkpoint, name: str) -> Checkpoint:
    return Checkpoint.from_bytes(saved.to_bytes(), name)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in APART])
def test_it_goes_on_from_every_event_as_if_nothing_had_been(name: str, tmp_path: Path) -> None:
    call = CALLS[name]
    plan = call.plan(tmp_path)
    whole = run_plan(plan, tie_seed=call.tie_seed)
    assert whole.ok
    resumed = refused = 0
    for saved, kind in saved_everywhere(plan, call.tie_seed):
        saved = read_again(saved, kind)
        if saved.unresumable(PYTHON):
            with pytest.raises(ReplayRefused, match="is in the middle of its stream"):
                resume(saved, folder=tmp_path)
            refused += 1
        else:
            result = resume(saved, folder=tmp_path).result
            assert (result.digest, side_effects(result)) == (whole.digest, side_effects(whole)), (kind, saved.place)
            assert result.ok
            resumed += 1
    assert resumed >= 12
    assert refused or name == "profile empty_answer"


def test_own_tools_go_on_from_every_event_and_only_what_was_not_done_is_done(tmp_path: Path) -> None:
    call = CALLS["own tools"]
    plan = call.plan(tmp_path)
    whole = run_plan(plan)
    done: list[str] = []
    for saved, kind in saved_everywhere(plan):
        desk, why = Desk(), saved.unresumable(PYTHON)
        if why:
            with pytest.raises(ReplayRefused):
                resume(read_again(saved, kind), tools=desk.tools(), folder=tmp_path)
            assert desk.booked == []
            continue
        assert resume(read_again(saved, kind), tools=desk.tools(), folder=tmp_path).result.digest == whole.digest
        done.append(" ".join(desk.booked))
    assert list(dict.fromkeys(done)) == ["friday monday", "monday", ""]


# -- a memory that is kept ------------------------------------------------------------------------------------------


def kept(folder: Path) -> list[Mapping[str, Any]]:
    with SqliteStore(folder / "kept.db") as store:
        return store.load("caller")


def test_a_memory_that_is_kept_is_what_it_was_up_to_the_place_however_it_has_grown(tmp_path: Path) -> None:
    plan = CALLS[KEPT].plan(tmp_path)
    before = (tmp_path / "kept.db").read_bytes()
    whole = run_plan(plan)
    once = kept(tmp_path)
    (tmp_path / "kept.db").write_bytes(before)
    everywhere = [(read_again(saved, kind), kind) for saved, kind in saved_everywhere(plan)]
    assert kept(tmp_path) == once  # the call that was saved went on to its end
    loaded = next(at for at, (_, kind) in enumerate(everywhere) if kind == "memory.loaded")
    assert loaded > 0
    for saved, kind in everywhere[loaded:]:
        if saved.unresumable(PYTHON):
            continue
        found = kept(tmp_path)
        result = resume(saved, folder=tmp_path).result
        assert (result.digest, side_effects(result)) == (whole.digest, side_effects(whole)), kind
        appended = [
            record.request for record in saved.records if record.request.get("op") == "append" and record.status
        ]
        more = [] if appended else once[2:]
        assert kept(tmp_path) == [*found, *more]


def test_an_append_that_was_under_way_is_carried_out_once(tmp_path: Path) -> None:
    plan = CALLS[KEPT].plan(tmp_path)
    before = (tmp_path / "kept.db").read_bytes()
    run_plan(plan)
    once = kept(tmp_path)
    (tmp_path / "kept.db").write_bytes(before)
    (tmp_path / "kept.db").write_bytes(before)
    append = record(plan)[1].records[-1]
    assert append.request["op"] == "append"
    (tmp_path / "kept.db").write_bytes(before)
    saved = take_checkpoint(plan, When.parse(f"{append.dispatched_at_us + 1}us"))[2]
    assert (saved.records[-1].id, saved.records[-1].status) == (append.id, None)
    (tmp_path / "kept.db").write_bytes(before)
    resume(saved, folder=tmp_path)
    assert kept(tmp_path) == once


# -- in a fresh process ---------------------------------------------------------------------------------------------

ELSEWHERE = (
    "wire anthropic",
    "wire openai",
    "profile cold_load",
    "cassette",
    "steering",
    "remote that is cut off",
    "memory",
    "memory in a file",
    "ties",
    "frames",
)


def test_they_go_on_in_a_fresh_process_too(tmp_path: Path) -> None:
    expected: dict[str, tuple[str, list[str]]] = {}
    for name in ELSEWHERE:
        call = CALLS[name]
        plan = call.plan(tmp_path)
        whole = run_plan(plan, tie_seed=call.tie_seed)
        places = [each for each, _ in saved_everywhere(plan, call.tie_seed) if not each.unresumable(PYTHON)]
        for saved in places[:: len(places) // 4]:
            stem = f"{name} {saved.place.seq}"
            (tmp_path / f"{stem}.json").write_bytes(saved.to_bytes())
            expected[stem] = whole.digest, side_effects(whole)
    (tmp_path / "call.scenario.json").unlink()
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("resuming.py")), str(tmp_path)],
        env={"PYTHONHASHSEED": "12"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(told) >= 4 * len(ELSEWHERE)
    assert {each["place"]: (each["digest"], list(each["runs"])) for each in told} == expected
    assert all(set(each["runs"].values()) <= {1} for each in told)
