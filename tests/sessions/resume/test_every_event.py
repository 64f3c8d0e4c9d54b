"""Every built-in, saved at every event, goes on in a fresh process to the very timeline of the uninterrupted call.

Where an answer is streaming at that event there is no cursor to go on from, and the checkpoint is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.checkpoints import When, checkpoint_of, take_checkpoint
from bargein.sim.lab.result import Result
from bargein.sim.scenario.build import Plan

NAMES = sim.scenarios()


def save_all(name: str, folder: Path, tie_seed: int | None = None) -> tuple[Result, dict[str, list[int]]]:
    """A checkpoint after every event of the timeline, taken on one way through the call.

    Returns:
        The uninterrupted call, and for each checkpoint the effects that were streaming there.
    """
    plan, recorder = Plan(sim.load(name)), Recorder()
    opened = plan.open(tie_seed=tie_seed, recorder=recorder)
    session = opened.session
    streaming: dict[str, list[int]] = {}
    session.start()
    seen = 0
    while True:
        kinds, seen = [row[1] for row in session.timeline.rows[seen:]], len(session.timeline)
        saved = checkpoint_of(plan, opened, recorder, kinds[-1], tie_seed=tie_seed)
        stem = f"{seen:03d}_{kinds[-1]}"
        streaming[stem] = [each.id for each in saved.records if each.items and each.status is None]
        (folder / f"{stem}.json").write_bytes(saved.to_bytes())
        if not session.clock.run_while(lambda _, before=seen: len(session.timeline) == before):
            break
    whole = sim.run(name, tie_seed=tie_seed)
    assert session.timeline.digest() == whole.digest  # looking at it has changed nothing
    return whole, streaming


def resumed(folder: Path) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("resuming.py")), str(folder)],
        env={"PYTHONHASHSEED": "11"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def side_effects(records: list[Record]) -> dict[str, int]:
    return {each["call"]: 1 for each in records if each["kind"] == "tool.started" and each["side_effect"]}


@pytest.mark.parametrize("part", range(4))
def test_every_built_in_goes_on_from_every_event_as_if_nothing_had_been(tmp_path: Path, part: int) -> None:
    for name in NAMES[part::4]:
        folder = tmp_path / name
        folder.mkdir()
        whole, streaming = save_all(name, folder)
        found = resumed(folder)
        assert [each["place"] for each in found] == list(streaming)
        for each in found:
            if streaming[each["place"]]:
                assert f"effect {streaming[each['place']][0]} (agent/model:" in each["refused"], each
                assert "is in the middle of its stream" in each["refused"]
            else:
                assert each["digest"] == whole.digest, (name, each)
                assert each["runs"] == side_effects(whole.records)
                assert each["ok"]


def test_a_permuted_order_of_ties_goes_on_too(tmp_path: Path) -> None:
    whole, streaming = save_all("parallel_lookups", tmp_path, tie_seed=3)
    digests = {each["digest"] for each in resumed(tmp_path) if not streaming[each["place"]]}
    assert digests == {whole.digest}


@pytest.mark.parametrize("name", ["barge_in_during_booking", "orphan_replay", "yes_to_another_question"])
def test_a_call_goes_on_from_any_instant(name: str) -> None:
    plan = Plan(sim.load(name))
    whole = sim.run(name)
    for at_us in range(0, whole.virtual_us - 1, 331_000):
        saved = take_checkpoint(plan, When.parse(f"{at_us}us"))[2]
        assert saved.place.at_us == at_us
        assert all(record["t"] < at_us for record in whole.records[: saved.place.seq][1:])
        assert whole.records[saved.place.seq]["t"] >= at_us or at_us == 0
        if not saved.unresumable("python"):
            assert sim.resume(saved).result.digest == whole.digest


def test_what_is_left_to_chance_goes_on_where_it_was(tmp_path: Path) -> None:
    call = {
        "scenario": "chance",
        "tools": {
            "look": {
                "description": "Looks.",
                "parameters": {"type": "object"},
                "latency": {"dist": "lognorm", "median": "800ms", "p95": "2s"},
                "result": "sunny",
            }
        },
        "acoustics": {"noise": {"kind": "babble", "snr_db": 25}},
        "caller": [{"say": "What is the weather?", "at": "500ms"}],
        "llm": {
            "ttft": {"dist": "uniform", "low": "200ms", "high": "600ms"},
            "rounds": [{"calls": [{"look": {}}]}, {"calls": [{"look": {"city": "Oslo"}}]}, {"text": "It is sunny."}],
        },
    }
    whole = sim.run(call, seed=5, checkpoint_at="tool.committed", checkpoint=tmp_path / "a.json")
    assert sim.resume(tmp_path / "a.json").result.digest == whole.digest
    assert sim.run(call, seed=6).digest != whole.digest


def test_both_ways_of_moving_audio_go_on(tmp_path: Path) -> None:
    frames = sim.load("barge_in_during_booking").with_value("session.per_frame", True)
    whole = sim.run(frames, checkpoint_at="playout.cut", checkpoint=tmp_path / "a.json")
    assert sim.resume(tmp_path / "a.json").result.digest == whole.digest
