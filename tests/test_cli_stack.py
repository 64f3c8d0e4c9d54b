"""``bargein run --stack``: what is refused, in one sentence, and what another framework's run prints."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bargein.sim.cli import main

livekit = pytest.mark.skipif(find_spec("livekit") is None, reason="needs the extra livekit")


def bargein(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="bargein")


def test_an_unknown_stack_is_one_sentence_and_exits_with_2() -> None:
    ran = bargein("run", "orphan_replay", "--stack", "nobody")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == 'there is no stack called "nobody"; accepted is livekit\n'


def test_what_only_our_own_pipeline_can_do_is_refused_beside_it() -> None:
    ran = bargein("run", "orphan_replay", "--stack", "livekit", "--wav", "--tie-seed", "1")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == ("--wav, --tie-seed beside --stack; accepted are --json, --out, --seed, --set and --tools\n")


@livekit
def test_a_run_through_livekit_prints_one_object_and_writes_its_timeline(tmp_path: Path) -> None:
    ran = bargein("run", "parallel_lookups", "--stack", "livekit", "--json", "--out", str(tmp_path))
    assert (ran.exit_code, ran.stderr) == (0, "")
    printed = json.loads(ran.stdout)
    lines = (tmp_path / "timeline.jsonl").read_text().splitlines()
    assert (printed["stack"], printed["violations"], printed["events"]) == ("livekit", [], len(lines))


@livekit
def test_a_broken_invariant_exits_with_1_and_is_named() -> None:
    ran = bargein("run", "yes_to_another_question", "--stack", "livekit")
    assert ran.exit_code == 1
    assert "violated: gate_respected at 1850000 us" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("FAILED: 1 violations of 5 invariants judged, livekit, digest ")
