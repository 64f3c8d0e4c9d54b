"""``run --record``, ``replay``, ``run --checkpoint-at`` and ``resume`` on a live call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bargein import sim
from bargein.sim.cli import main
from tests.sessions.s2s.recorded import CALLS


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.mark.parametrize(
    ("name", "effects"), [("a barge-in that truncates", 3), ("calls that the provider withdraws", 5)]
)
def test_a_live_call_is_recorded_replayed_saved_and_resumed(name: str, effects: int, tmp_path: Path) -> None:
    file, log, saved = (tmp_path / each for each in ("live.scenario.yaml", "a.log", "a.json"))
    file.write_text(json.dumps(CALLS[name]))
    ran = invoke("run", file, "--record", log, "--checkpoint-at", "turn.barge_in", "--checkpoint", saved)
    assert ran.exit_code == 0, ran.output

    for mode in ((), ("--visible",)):
        again = invoke("replay", log, *mode, "--scenario", file)
        assert again.exit_code == 0, again.output
        assert again.stdout.splitlines()[-1] == (
            f"replayed {effects} effects of {log}, and no handler was called: the same timeline, to the byte"
        )
    changed = invoke("replay", log, "--scenario", file, "--set", "s2s.audio_speed=2")
    assert changed.exit_code == 2
    assert f"{log}: scenario.s2s.audio_speed: recorded was nothing, found 2" in changed.stderr.splitlines()

    whole = sim.run(CALLS[name])
    assert json.loads(invoke("resume", saved, "--json").stdout)["digest"] == whole.digest
    refused = invoke("resume", saved, "--set", "s2s.audio_speed=2")
    assert (refused.exit_code, refused.stderr.startswith("s2s.audio_speed: it cannot be changed in")) == (2, True)


def test_a_place_in_the_middle_of_a_response_is_told_when_it_is_saved(tmp_path: Path) -> None:
    result = sim.run(CALLS["tool calls at once"], checkpoint_at="tts.first_byte:1", checkpoint=tmp_path / "a.json")
    (note,) = result.notes
    assert note.startswith(
        "the checkpoint can be looked at, and not resumed: effect 3 (agent/model:default) is in the mid"
    )
