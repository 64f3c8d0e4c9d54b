"""Every reader of a document refuses every other kind of document, in one sentence that says what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from bargein import sim
from bargein.models.cassettes import CassetteError, read_cassette
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_replay import replay_runs
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.cli import main
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.document_sorts import sort_of
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.tails import LogCheckpoint, checkpoint_of, tail_of
from bargein.sim.lab.checkpoints import When, read_checkpoint, take_checkpoint
from bargein.sim.lab.diff import TimelineError, read_timeline
from bargein.sim.lab.replays import read_log
from bargein.sim.scenario.agent_file import check_agent_file
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.loading import load
from bargein.sim.scenario.places import ScenarioError
from tests.pipelines.agent.log_kit import Recorded
from tests.pipelines.agent.run_kit import call, calls, text
from tests.sessions.resume.calls import write_cassette

KINDS = {
    "a.log": "an effect log",
    "runs.log": "a log of agent runs",
    "tail.log": "the tail of a log",
    "head.json": "the head of an effect log",
    "a.json": "a checkpoint of a session",
    "runs.json": "a checkpoint of agent runs",
    "cassette.jsonl": "a recording of a wire",
    "timeline.jsonl": "a timeline",
    "scenario.yaml": "a scenario",
    "scenario.json": "a scenario",
    "launch.yaml": "launch settings",
    "agent.toml": "an agent file",
    "agent.yaml": "an agent file",
}
TEXTS = {
    "scenario.yaml": "# What for.\nscenario: x\ncaller:\n  - {say: Hi., at: 0s}\nllm:\n  - {text: Hello.}\n",
    "scenario.json": json.dumps({"scenario": "x", "caller": [], "llm": []}, indent=2),
    "launch.yaml": "provider: openai\nmodel: m\nauth: {env: KEY}\n",
    "agent.toml": '# Mine.\n[agent]\nsystem = "Be brief."\n',
    "agent.yaml": "agent:\n  system: Be brief.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    for name, raw in documents().items():
        (folder / name).write_bytes(raw)
    write_cassette(folder / "cassette.jsonl", "Hello.")
    for name, said in TEXTS.items():
        (folder / name).write_text(said, encoding="utf-8")
    assert {each.name for each in folder.iterdir()} == KINDS.keys()
    return folder


@cache
def documents() -> dict[str, bytes]:
    result, log, session = take_checkpoint(Plan(sim.load("chained_lookups")), When.parse("tool.committed:1"))
    world = Recorded(calls(call("add", x=1)), text("done"))
    world.runs.spawn(world.agent, "hello")
    world.clock.run(0)
    runs = save_runs(world.runs)
    world.clock.run()
    whole = world.log()
    head = checkpoint_of(EffectLog(whole.header, whole.records[:1]), {})
    head.deliveries = whole.header["deliveries"][:1]
    return {
        "a.log": log.to_bytes(),
        "runs.log": whole.to_bytes(),
        "tail.log": tail_of(whole, head).to_bytes(),
        "head.json": head.to_bytes(),
        "a.json": session.to_bytes(),
        "runs.json": runs.to_bytes(),
        "timeline.jsonl": result.timeline.to_jsonl().encode(),
    }


Reader = Callable[[Path], object]
READERS: dict[str, tuple[Reader, type[Exception], tuple[str, ...]]] = {
    "replay": (sim.replay, DocumentError, ("a.log",)),
    "read_log": (read_log, DocumentError, ("a.log",)),
    "a log given to sim.replay": (lambda path: sim.replay(_log(path)), DocumentError, ("a.log",)),
    "replay_runs": (lambda path: replay_runs(_log(path)), DocumentError, ("runs.log", "tail.log")),
    "resume": (sim.resume, DocumentError, ("a.json",)),
    "read_checkpoint": (read_checkpoint, DocumentError, ("a.json",)),
    "Checkpoint": (lambda path: Checkpoint.from_bytes(path.read_bytes(), str(path)), DocumentError, ("a.json",)),
    "RunCheckpoint": (
        lambda path: RunCheckpoint.from_bytes(path.read_bytes(), str(path)),
        ValueError,
        ("runs.json",),
    ),
    "LogCheckpoint": (
        lambda path: LogCheckpoint.from_bytes(path.read_bytes(), str(path)),
        DocumentError,
        ("head.json",),
    ),
    "EffectLog": (
        lambda path: _log(path),
        DocumentError,
        ("a.log", "runs.log", "tail.log"),
    ),
    "read_cassette": (lambda path: read_cassette(path.read_text()), CassetteError, ("cassette.jsonl",)),
    "read_timeline": (read_timeline, TimelineError, ("timeline.jsonl",)),
    "load": (load, ScenarioError, ("scenario.yaml", "scenario.json")),
    "check_agent_file": (check_agent_file, ScenarioError, ("agent.toml", "agent.yaml")),
}


def _log(path: Path) -> EffectLog:
    return EffectLog.from_bytes(path.read_bytes(), str(path))


@pytest.mark.parametrize("name", KINDS)
def test_a_file_is_known_by_how_it_begins(name: str, folder: Path) -> None:
    assert sort_of((folder / name).read_bytes()) == KINDS[name]
    assert sort_of(b"\xef\xbb\xbf" + (folder / name).read_bytes()) == KINDS[name]


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"{", b"[1]", b"null", b"hello: there\n", b"\xff\xfe", b'{"t":1}', b"{" * 9999]
)
def test_what_is_none_of_ours_is_not_called_anything(raw: bytes) -> None:
    assert sort_of(raw) is None


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", KINDS)
def test_each_reader_reads_its_own_kind_and_says_what_each_other_is(reader: str, name: str, folder: Path) -> None:
    read, error, own = READERS[reader]
    path = folder / name
    if name in own:
        read(path)
        return
    with pytest.raises(error) as refused:
        read(path)
    said = str(refused.value)
    what = "the log of a session" if (reader, name) == ("replay_runs", "a.log") else KINDS[name]
    place = "line 1" if reader == "read_cassette" else str(path)
    assert said.startswith(f"{place}: "), said
    assert f"it is {what}" in said, said
    assert "accepted is" in said
    assert "\n" not in said


@pytest.mark.parametrize("name", [name for name in KINDS if name != "launch.yaml"])
def test_launch_settings_are_not_taken_for_anything_else(name: str, folder: Path) -> None:
    pytest.importorskip("httpx", reason="launch settings are of use with httpx, the extra 'live'")
    from bargein.sim.live.launch import LaunchError, load_launch

    assert load_launch(folder / "launch.yaml").model == "m"
    with pytest.raises(LaunchError) as refused:
        load_launch(folder / name)
    assert str(refused.value) == f"{folder / name}: it is {KINDS[name]}; accepted is launch settings in YAML"


@pytest.mark.parametrize(
    ("command", "own"),
    [("run", "scenario"), ("replay", "a.log"), ("resume", "a.json"), ("check", ("scenario", "agent"))],
)
def test_the_commands_end_with_that_sentence_and_2(command: str, own: str | tuple[str, ...], folder: Path) -> None:
    for name, what in KINDS.items():
        if name.startswith(own):
            continue
        ran = CliRunner().invoke(main, [command, str(folder / name)])
        assert (ran.exit_code, ran.stdout) == (2, ""), (name, ran.output)
        assert ran.stderr.startswith(f"{folder / name}: it is {what}"), ran.stderr
        assert ran.stderr.count("\n") == 1


def test_a_scenario_that_forgets_its_name_is_a_scenario_still(tmp_path: Path) -> None:
    path = tmp_path / "x.scenario.yaml"
    path.write_text("agent: {system: Be brief.}\ncaller:\n  - {say: Hi., at: 0s}\nllm:\n  - {text: Hello.}\n")
    with pytest.raises(ScenarioError, match="scenario") as refused:
        load(path)
    assert "it is" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "reader"),
    [
        ("bargein_log", "EffectLog"),
        ("bargein_checkpoint", "Checkpoint"),
        ("bargein_runs", "RunCheckpoint"),
        ("bargein_log_checkpoint", "LogCheckpoint"),
    ],
)
def test_a_document_of_its_own_kind_that_cannot_be_read_is_told_what_is_wrong_with_it(
    key: str, reader: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_text(f'{{"{key}":1,"at_us":NaN}}\n')
    read, error, _ = READERS[reader]
    with pytest.raises(error, match=r"found NaN; accepted is JSON$"):
        read(path)
