"""``bargein run --record`` and ``--checkpoint``, ``bargein replay`` and ``bargein resume``."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bargein import sim
from bargein.sim.cli import main

NAME = "barge_in_during_booking"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log of a call, and a checkpoint at its barge-in."""
    folder = tmp_path_factory.mktemp("kept")
    ran = invoke(
        "run", NAME, "--record", folder / "a.log", "--checkpoint-at", "turn.barge_in", "--checkpoint", folder / "a.json"
    )
    assert ran.exit_code == 0, ran.output
    return folder / "a.log", folder / "a.json"


def told(ran: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_recording_prints_what_a_run_prints(kept: tuple[Path, Path], tmp_path: Path) -> None:
    plain, recorded = invoke("run", NAME, "--json"), invoke("run", NAME, "--json", "--record", tmp_path / "b.log")
    assert told(plain) == told(recorded)
    assert (tmp_path / "b.log").read_bytes() == kept[0].read_bytes()


def test_replay_tells_that_the_timeline_is_the_same(kept: tuple[Path, Path]) -> None:
    ran = invoke("replay", kept[0])
    assert ran.exit_code == 0
    last = ran.stdout.splitlines()[-1]
    assert last == f"replayed 5 effects of {kept[0]}, and no handler was called: the same timeline, to the byte"


@pytest.mark.parametrize(("option", "mode"), [((), "exchange"), (("--visible",), "visible")])
def test_replay_prints_one_object(kept: tuple[Path, Path], option: tuple[str, ...], mode: str) -> None:
    ran = invoke("replay", kept[0], "--json", *option)
    digest = sim.run(NAME).digest
    assert told(ran).pop("replay") == {
        "log": str(kept[0]),
        "mode": mode,
        "effects": 5,
        "recorded_digest": digest,
        "equal": True,
    }
    assert told(ran)["digest"] == digest


def test_a_log_whose_line_ends_a_checkout_has_changed_is_the_same_log(kept: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(kept[0].read_bytes().replace(b"\n", b"\r\n"))
    assert invoke("replay", tmp_path / "a.log").exit_code == 0


def test_a_log_that_has_left_its_recordings_behind_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "calls").mkdir()
    lines = []
    for name, at in (("one.wav", "300ms"), ("two.wav", "4s")):
        copied = resources.files("bargein.audio_fixtures") / "audio" / "caller_yes_please.flac"
        (tmp_path / "calls" / name).write_bytes(copied.read_bytes())
        lines.append({"wav": name, "say": "Yes, please.", "at": at})
    (tmp_path / "calls" / "a.scenario.yaml").write_text(
        json.dumps({"scenario": "a", "caller": lines, "llm": [{"text": "Good."}, {"text": "Very good."}]})
    )
    log = tmp_path / "a.log"
    assert invoke("run", tmp_path / "calls" / "a.scenario.yaml", "--record", log).exit_code == 0
    ran = invoke("replay", log)
    accepted = "accepted is a WAV or FLAC file in the scenario's folder"
    assert (ran.exit_code, ran.stderr) == (
        2,
        f'{log}: the scenario in it cannot be used: caller[0].wav: there is no file "one.wav"; {accepted}; '
        f'caller[1].wav: there is no file "two.wav"; {accepted} (its files are looked for beside {log})\n',
    )


def test_replay_proves_that_a_scenario_is_the_recorded_one(kept: tuple[Path, Path]) -> None:
    assert invoke("replay", kept[0], "--scenario", NAME).exit_code == 0
    ran = invoke("replay", kept[0], "--scenario", NAME, "--set", "agent.max_tool_rounds=5")
    assert ran.exit_code == 2
    assert f"{kept[0]}: settings.max_tool_rounds: recorded was 6, found 5" in ran.stderr.splitlines()
    assert ran.stdout == ""
    alone = invoke("replay", kept[0], "--set", "agent.max_tool_rounds=5")
    assert (alone.exit_code, alone.stderr.startswith("--set changes nothing here")) == (2, True)


def test_resume_goes_on_to_the_same_end(kept: tuple[Path, Path], tmp_path: Path) -> None:
    ran = invoke("resume", kept[1], "--json", "--record", tmp_path / "c.log")
    assert ran.exit_code == 0
    assert told(ran)["digest"] == sim.run(NAME).digest
    assert told(ran)["resumed"] == {"why": "turn.barge_in", "at_us": 4_660_000, "events": 28, "seq": 31}
    assert (tmp_path / "c.log").read_bytes() == kept[0].read_bytes()
    story = invoke("resume", kept[1])
    assert story.stdout.splitlines()[-1] == (
        f"resumed {kept[1]} at 4660000 us (turn.barge_in), after 31 records of the timeline"
    )


def test_resume_with_other_values_fails_the_expectations_that_they_break(kept: tuple[Path, Path]) -> None:
    ran = invoke("resume", kept[1], "--json", "--set", "agent.filler.delay=300ms")
    assert ran.exit_code == 1
    assert told(ran)["violations"] == []
    assert [each["name"] for each in told(ran)["expectations"] if not each["ok"]] != []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("replay", "nowhere.log"), "nowhere.log: there is no such file; accepted is an effect log"),
        (("resume", "nowhere.json"), "nowhere.json: there is no such file; accepted is a checkpoint"),
        (("replay", "CHECKPOINT"), "it is a checkpoint of a session; accepted is an effect log"),
        (("resume", "LOG"), "it is an effect log; accepted is a checkpoint"),
        (("resume", "CHECKPOINT", "--set", "seed=3"), "seed: it cannot be changed in the middle of a call"),
        (("resume", "CHECKPOINT", "--set", "agent.filler"), '"agent.filler" sets nothing; accepted is key=value'),
        (("run", NAME, "--checkpoint-at", "5s"), "a checkpoint needs a place and a file"),
        (("run", NAME, "--checkpoint-at", "tool.commited", "--checkpoint", "x"), 'unknown event "tool.commited"'),
        (("run", NAME, "--checkpoint-at", "-1s", "--checkpoint", "x"), '"-1s" is no place; accepted is an event'),
        (("run", NAME, "--checkpoint-at", "turn.barge_in:", "--checkpoint", "x"), 'found the number ""; accepted is'),
        (
            ("run", NAME, "--checkpoint-at", "turn.barge_in:1234567890", "--checkpoint", "x"),
            'found the number "1234567890"; accepted is a whole number from 1 to 999999999',
        ),
        (
            ("run", NAME, "--record", "x", "--checkpoint-at", "turn.barge_in", "--checkpoint", "./x"),
            "x: the log and the checkpoint are to be one file; accepted are two",
        ),
        (
            ("run", NAME, "--record", "no/such/folder/a.log"),
            "no/such/folder/a.log: no such file or directory; accepted is a place that can be written",
        ),
        (("run", NAME, "--record", "."), ".: is a directory; accepted is a place that can be written"),
        (("replay", "."), ".: it is not a file; accepted is an effect log"),
    ],
)
def test_bad_input_is_one_sentence(
    kept: tuple[Path, Path], arguments: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [{"LOG": str(kept[0]), "CHECKPOINT": str(kept[1])}.get(each, each) for each in arguments]
    ran = invoke(*given)
    assert ran.exit_code == 2
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_resumed_is_written_with_a_note(tmp_path: Path) -> None:
    ran = invoke("run", NAME, "--checkpoint-at", "llm.first_token", "--checkpoint", tmp_path / "a.json")
    assert ran.exit_code == 0
    assert "can be looked at, and not resumed: effect 0 (agent/model:default) is in the middle" in ran.stderr
    again = invoke("resume", tmp_path / "a.json")
    assert again.exit_code == 2
    assert "there is no cursor to go on from" in again.stderr


def test_the_commands_are_listed() -> None:
    listed = invoke("--help").output
    assert "replay" in listed
    assert "resume" in listed
