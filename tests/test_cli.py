"""The command line: exit status, one sentence for bad input, and what goes to which stream."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bargein import sim
from bargein.sim.cli import main

HELLO = "scenario: hello\ncaller: [{say: 'Hello?', at: 500ms}]\nllm: [{text: Hello there.}]\n"
NAMES = ", ".join(sim.scenarios()[:-1]) + f" or {sim.scenarios()[-1]}"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bargein(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="bargein")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# -- exit status ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sim.scenarios())
def test_a_built_in_holds_and_exits_with_0(name: str) -> None:
    ran = bargein("run", name)
    assert (ran.exit_code, ran.stderr) == (0, "")
    digest = sim.run(name).digest[:16]
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("ok: 0 violations, ")
    assert last.endswith(f"digest {digest}")
    assert os.listdir() == []


def test_an_expectation_that_does_not_hold_exits_with_1_and_says_what_was_found(tmp_path: Path) -> None:
    Path("hello.yaml").write_text(HELLO + "expect: {heard: [Good evening.]}\n")
    ran = bargein("run", "hello.yaml")
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert 'not as expected: heard: found ["Hello there."]; wanted ["Good evening."]' in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("FAILED: 0 violations, 0 of 1 expectations held, digest ")


def test_a_stuck_session_exits_with_1_and_says_who_waits_for_what() -> None:
    Path("hangs.yaml").write_text(HELLO.replace("text: Hello there.", "text: Hi., ttft: never"))
    ran = bargein("run", "hangs.yaml")
    assert ran.exit_code == 1
    (stuck,) = [line for line in ran.stdout.splitlines() if line.startswith("violated: deadlock at ")]
    assert "waits for" in stuck


BAD_INPUT = [
    (
        ["run", "nope"],
        [
            f'nope: unknown scenario "nope"; accepted is {NAMES}; a path to a file is accepted too',
        ],
    ),
    (["run", "nope.yaml"], ["nope.yaml: there is no such file; accepted is a scenario file or a built-in scenario"]),
    (
        ["run", "hello.yaml", "--set", "seed"],
        ['"seed" sets nothing; accepted is key=value, such as agent.filler.delay=800ms'],
    ),
    (
        ["run", "hello.yaml", "--set", "caller.7.at=1s"],
        ["caller.7.at: caller has no item 7; accepted is an item from 0 to 0"],
    ),
    (
        ["run", "hello.yaml", "--set", "seed=x"],
        ['seed=x: seed: found "x"; accepted is a whole number, zero or more'],
    ),
    (["check", "nope.yaml"], ["nope.yaml: there is no such file; accepted is a scenario file or a built-in scenario"]),
]


@pytest.mark.parametrize(("arguments", "sentences"), BAD_INPUT, ids=[" ".join(each) for each, _ in BAD_INPUT])
def test_bad_input_is_one_sentence_on_standard_error_and_exits_with_2(
    arguments: list[str], sentences: list[str]
) -> None:
    Path("hello.yaml").write_text(HELLO)
    ran = bargein(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.splitlines() == sentences
    assert os.listdir() == ["hello.yaml"]


def test_a_script_without_an_answer_is_a_fault_of_the_file() -> None:
    Path("hello.yaml").write_text(HELLO.replace("[{text: Hello there.}]", "[{text: x, expect_user: Goodbye}]"))
    ran = bargein("run", "hello.yaml")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("hello.yaml:3: llm[0].expect_user: round 1 expects a request ")


@pytest.mark.parametrize("arguments", [["dance"], ["run"], ["run", "x", "--fast"], ["run", "x", "--seed", "many"]])
def test_a_command_that_is_not_there_exits_with_2_too(arguments: list[str]) -> None:
    ran = bargein(*arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "Error: " in ran.stderr


# -- output ---------------------------------------------------------------------------------------------------------


def test_json_is_one_object_and_nothing_else() -> None:
    ran = bargein("run", "slow_tool_filler", "--json", "--out", "out")
    assert (ran.exit_code, ran.stderr) == (0, "")
    printed = json.loads(ran.stdout)
    assert ran.stdout.count("\n") == 1
    assert {
        "scenario",
        "seed",
        "tie_seed",
        "digest",
        "virtual_us",
        "events",
        "violations",
        "expectations",
        "metrics",
        "tools",
        "counters",
        "notes",
    } <= printed.keys()
    result = sim.run("slow_tool_filler")
    assert printed == json.loads(json.dumps(result.to_json()))
    assert Path("out/timeline.jsonl").read_text(encoding="utf-8") == result.timeline.to_jsonl()


def test_json_of_a_failure_still_is_an_object_with_its_status() -> None:
    Path("hello.yaml").write_text(HELLO + "expect: {heard: [Good evening.]}\n")
    ran = bargein("run", "hello.yaml", "--json")
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["expectations"] == [
        {"name": "heard", "ok": False, "message": 'found ["Hello there."]; wanted ["Good evening."]'}
    ]


def test_files_are_written_where_asked_and_named_on_standard_error() -> None:
    ran = bargein("run", "slow_tool_filler", "--out", "deep/out", "--plot", "--wav")
    assert ran.exit_code == 0
    wanted = ["timeline.jsonl", "timeline.png", "latencies.png", "call.wav"]
    assert ran.stderr.splitlines() == [f"wrote {Path('deep/out', name)}" for name in wanted]
    assert "wrote" not in ran.stdout
    assert names(Path("deep/out")) == sorted(wanted)
    assert all(path.stat().st_size > 1_000 for path in Path("deep/out").iterdir())


def test_a_second_run_replaces_the_files_with_the_same_bytes() -> None:
    kept = []
    for _ in range(2):
        assert bargein("run", "slow_tool_filler", "--out", "out", "--wav").exit_code == 0
        kept.append({path.name: path.read_bytes() for path in Path("out").iterdir()})
    assert kept[0] == kept[1]
    assert names(Path("out")) == ["call.wav", "timeline.jsonl"]


def test_without_a_folder_a_sound_is_written_here_and_no_timeline() -> None:
    assert bargein("run", "slow_tool_filler", "--wav").exit_code == 0
    assert os.listdir() == ["call.wav"]


@pytest.mark.parametrize("command", [["run", "slow_tool_filler"], ["demo"]])
def test_a_place_that_cannot_be_written_is_one_sentence(command: list[str]) -> None:
    Path("taken").write_text("a file, where a folder should be")
    ran = bargein(*command, "--out", "taken/out")
    assert ran.exit_code == 2
    assert ran.stderr == "taken/out: not a directory; accepted is a place that can be written\n"
    assert Path("taken").read_text() == "a file, where a folder should be"


def test_a_read_only_folder_is_one_sentence_and_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").mkdir()
    Path("out/timeline.jsonl").write_text("what was there before\n")

    def refuse(*_: object, **__: object) -> None:  # root, which tests may run as, can write anywhere
        raise PermissionError(13, "Permission denied", "out/timeline.jsonl")

    monkeypatch.setattr("bargein.sim.report.atomic.NamedTemporaryFile", refuse)
    ran = bargein("run", "slow_tool_filler", "--out", "out")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == "out/timeline.jsonl: permission denied; accepted is a place that can be written\n"
    assert Path("out/timeline.jsonl").read_text() == "what was there before\n"


# -- options --------------------------------------------------------------------------------------------------------


def printed(*arguments: str) -> dict[str, object]:
    ran = bargein("run", *arguments, "--json")
    assert ran.exit_code in (0, 1), ran.stderr
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def test_set_changes_a_value_as_it_does_in_python() -> None:
    changed = printed("slow_tool_filler", "--set", "agent.filler.delay=800ms", "--set", "tools.order_status.latency=2s")
    wanted = sim.run("slow_tool_filler", set={"agent.filler.delay": "800ms", "tools.order_status.latency": "2s"}).digest
    assert changed["digest"] == wanted != sim.run("slow_tool_filler").digest


def test_seed_and_tie_seed_are_passed_on_and_named() -> None:
    given = printed("parallel_lookups", "--seed", "3", "--tie-seed", "4")
    assert (given["seed"], given["tie_seed"]) == (3, 4)
    assert given["digest"] == sim.run("parallel_lookups", seed=3, tie_seed=4).digest


def test_scenarios_lists_each_built_in_on_a_line_that_begins_with_its_name() -> None:
    ran = bargein("scenarios")
    assert (ran.exit_code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(sim.scenarios())
    assert [line.split(maxsplit=1)[1] for line in lines] == [sim.load(name).about for name in sim.scenarios()]


KINDS = sorted((sim.load(name).kind or "", name) for name in sim.scenarios() if sim.load(name).kind)


def test_scenarios_by_kind_list_the_kind_first_and_leave_out_those_about_no_fault() -> None:
    ran = bargein("scenarios", "--kind")
    assert (ran.exit_code, ran.stderr) == (0, "")
    told = [(kind, name, sim.load(name).about) for kind, name in KINDS]
    assert [tuple(re.split(" {2,}", line, maxsplit=2)) for line in ran.stdout.splitlines()] == told
    assert len({kind for kind, _ in KINDS}) >= 15


@pytest.mark.parametrize("kind", ["tool-result-lost", "consent"])
def test_scenarios_of_one_kind_are_those_of_it_alone(kind: str) -> None:
    ran = bargein("scenarios", "--kind", kind)
    assert (ran.exit_code, ran.stderr) == (0, "")
    named = [tuple(line.split()[:2]) for line in ran.stdout.splitlines()]
    assert named == [each for each in KINDS if each[0] == kind] != []


def test_a_kind_that_no_scenario_has_is_named_with_the_nearest() -> None:
    ran = bargein("scenarios", "--kind", "tool-result-last")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith('unknown kind "tool-result-last"')
    assert "tool-result-lost" in ran.stderr


def test_check_names_each_file_that_is_right_and_every_fault_of_the_others() -> None:
    Path("good.yaml").write_text(HELLO)
    Path("bad.yaml").write_text(HELLO.replace("500ms", "500") + "sead: 3\n")
    ran = bargein("check", "good.yaml", "bad.yaml", "slow_tool_filler")
    assert ran.exit_code == 2
    assert ran.stdout.splitlines() == ["good.yaml: ok", "slow_tool_filler: ok"]
    assert [line.split(": ")[0] for line in ran.stderr.splitlines()] == ["bad.yaml:2", "bad.yaml:4"]
    assert bargein("check", "good.yaml").exit_code == 0


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["--version"]])
def test_help_goes_to_standard_output(arguments: list[str]) -> None:
    ran = bargein(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "bargein" in ran.stdout


def test_the_installed_command_tells_the_demo_and_draws_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bargein.sim.cli", "demo"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("barge_in_during_booking: ")
    assert "barge-in decided" in ran.stdout
    assert names(tmp_path / "bargein-out") == ["call.wav", "latencies.png", "timeline.jsonl", "timeline.png"]
    assert len(ran.stderr.splitlines()) == 4


def test_a_reader_who_has_had_enough_is_not_told_off() -> None:
    command = [sys.executable, "-m", "bargein.sim.cli", "run", "slow_tool_filler"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
