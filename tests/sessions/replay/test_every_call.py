"""Calls of every kind are recorded, and run again of their logs alone, in both modes, to the very same log."""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from bargein.sim.effects.log import EffectLog
from bargein.sim.lab.replays import record, replay
from bargein.sim.lab.session import run_plan
from tests.sessions.resume.calls import CALLS, side_effects

ELSEWHERE = (
    "wire gemini",
    "wire openai_responses",
    "profile thinking_medium",
    "cassette",
    "steering",
    "memory",
    "own tools",
    "remote",
    "ties",
    "frames",
)


def recorded(name: str, folder: Path) -> tuple[str, EffectLog]:
    """The digest of the call, and its log once through its bytes."""
    call = CALLS[name]
    plan = call.plan(folder)
    result, log = record(plan, tie_seed=call.tie_seed)
    assert result.ok
    return result.digest, EffectLog.from_bytes(log.to_bytes(), f"{name}.log")


@pytest.mark.parametrize("name", CALLS)
def test_it_is_replayed_to_the_same_timeline_and_the_same_log(name: str, tmp_path: Path) -> None:
    digest, log = recorded(name, tmp_path)
    linked = name.startswith("remote")  # in a replay nobody is called behind a link, and it has messages of its own
    for visible in (False, True):
        again = replay(log, visible=visible, folder=tmp_path)
        assert again.equal
        assert again.ok
        assert linked or again.result.digest == digest
        assert [each.to_dict() for each in again.again.records] == [each.to_dict() for each in log.records]
        assert linked or again.again.to_bytes() == log.to_bytes()


@pytest.mark.parametrize("name", ["own tools", "memory that is kept"])
def test_recording_is_no_part_of_a_call_and_a_replay_leaves_the_world_alone(name: str, tmp_path: Path) -> None:
    whole = run_plan(CALLS[name].plan(tmp_path))
    digest, log = recorded(name, tmp_path)
    assert digest == whole.digest
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert side_effects(replay(log, folder=tmp_path).result) == side_effects(whole)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_they_are_replayed_in_a_fresh_process_too(tmp_path: Path) -> None:
    expected = {}
    for name in ELSEWHERE:
        digest, log = recorded(name, tmp_path)
        (tmp_path / f"{name}.log").write_bytes(log.to_bytes())
        expected[name] = digest, sha256(log.to_bytes()).hexdigest()
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("replaying.py")), str(tmp_path)],
        env={"PYTHONHASHSEED": "12"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(each["log"], each["visible"]) for each in told] == [
        (name, visible) for name in sorted(ELSEWHERE) for visible in (False, True)
    ]
    assert all(each["equal"] for each in told)
    assert {each["log"]: (each["digest"], each["again"]) for each in told if each["log"] != "remote"} == {
        name: each for name, each in expected.items() if name != "remote"
    }
