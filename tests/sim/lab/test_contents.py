"""What a call reads from files is part of what it is: by content, and not by name."""

from __future__ import annotations

import json
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.memory_sqlite import SqliteStore
from bargein.models.vad_silero import SileroDecisions
from bargein.models.voice import speak
from bargein.pipelines.agent.messages import user
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import content_digest
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import read_checkpoint
from bargein.sim.lab.replays import read_log, replay
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.contents import contents_of
from tests.sessions.resume.calls import write_cassette

SAID = {"say": "Please book it.", "at": "100ms", "level": "decision", "for": "900ms"}
PLACE = "run.ended"


def write(folder: Path, **keys: Any) -> Path:
    path = folder / "call.scenario.json"
    path.write_text(json.dumps({"scenario": "call", "caller": [SAID], "llm": [{"text": "All right."}], **keys}))
    return path


def with_cassette(folder: Path, *said: str, name: str = "kept.jsonl", **keys: Any) -> Path:
    write_cassette(folder / name, *(said or ("Hello", " there.")))
    return write(folder, agent={"system": "Be brief."}, llm={"cassette": name}, **keys)


def with_memory(folder: Path, *said: str, name: str = "kept.db") -> Path:
    (folder / name).unlink(missing_ok=True)
    with SqliteStore(folder / name) as store:
        store.append("caller", [user(each).to_dict() for each in said or ("I am Ada.",)])
    return write(folder, memory={"store": "sqlite", "path": name})


def with_audio(folder: Path, *said: str, name: str = "kept.wav") -> Path:
    tone = (1_000 if said else 3_000).to_bytes(2, "little", signed=True) + (-1_000).to_bytes(2, "little", signed=True)
    with wave.open(str(folder / name), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(tone * 8_000)
    return write(folder, caller=[{"say": "Hello.", "wav": name, "at": "100ms"}])


Kind = tuple[Callable[..., Path], str, str]
KINDS: dict[str, Kind] = {
    "cassette": (with_cassette, "llm.cassette", "kept.jsonl"),
    "memory": (with_memory, "memory.path", "kept.db"),
    "audio": (with_audio, "caller[0]", "kept.wav"),
}


def kept(path: Path, folder: Path) -> tuple[Path, Path]:
    """The log of a call, and a checkpoint, beside the files that it reads."""
    whole = sim.run(path, record=folder / "a.log")
    sim.run(path, checkpoint_at=PLACE, checkpoint=folder / "a.json")
    assert sim.replay(folder / "a.log").result.digest == whole.digest
    assert sim.resume(folder / "a.json").result.digest == whole.digest
    return folder / "a.log", folder / "a.json"


def refusals(go: Callable[[], object]) -> list[str]:
    with pytest.raises(ReplayRefused) as refused:
        go()
    return list(refused.value.sentences)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_has_changed_since_is_refused_by_its_place_in_replay_and_resume(kind: str, tmp_path: Path) -> None:
    build, place, name = KINDS[kind]
    path = build(tmp_path)
    log, saved = kept(path, tmp_path)
    before = (tmp_path / name).read_bytes()
    was = read_log(log).header["recordings"][place]
    build(tmp_path, "Something else.")
    now = Plan(sim.load(path)).recordings[place]
    assert now != was
    told = f'recordings.{place}: recorded was "{was[:56]}..., found "{now[:56]}...'
    for file, go in ((log, sim.replay), (saved, sim.resume)):
        found = refusals(lambda file=file, go=go: go(file))  # type: ignore[misc]
        assert f"{file}: {told}" in found
        assert not any(each.startswith(f"{file}: scenario") for each in found)
    assert f"{log}: {told}" in refusals(lambda: sim.replay(log, scenario=path))
    (tmp_path / name).write_bytes(before)
    assert sim.replay(log).equal
    assert sim.resume(saved).ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_moved_is_still_the_same(kind: str, tmp_path: Path) -> None:
    build, _, name = KINDS[kind]
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    log, saved = kept(build(first), first)
    first.rename(second)
    assert sim.replay(second / "a.log").equal
    assert sim.resume(second / "a.json").ok
    (second / "inner").mkdir()
    moved = build(second, name=f"inner/{name}")
    (second / name).replace(second / "inner" / name)
    assert sim.replay(second / log.name, scenario=moved).equal
    beside = r"a\.json: the scenario in it cannot be used: .*there is no file .*looked for beside .*a\.json\)$"
    with pytest.raises(DocumentError, match=beside):
        sim.resume(second / saved.name)


def test_a_cassette_is_its_bytes_and_stands_in_what_the_model_is_made_of(tmp_path: Path) -> None:
    path = with_cassette(tmp_path)
    cassette = tmp_path / "kept.jsonl"
    log, saved = kept(path, tmp_path)
    header = read_log(log).header
    assert header["recordings"]["llm.cassette"] == content_digest(cassette.read_bytes())
    assert read_checkpoint(saved).header["recordings"] == header["recordings"]
    cassette.write_bytes(cassette.read_bytes().replace(b"\n", b"\r\n"))  # it says the same
    assert sim.run(path).digest == header["result"]["digest"]
    found = [each.removeprefix(f"{log}: ").partition(": recorded was")[0] for each in refusals(lambda: sim.replay(log))]
    assert found == ["recordings.llm.cassette", "handlers.agent/model:default.made_of"]


def test_a_cassette_of_which_nothing_was_known_is_refused(tmp_path: Path) -> None:
    log = read_log(kept(with_cassette(tmp_path), tmp_path)[0])
    del log.header["recordings"]["llm.cassette"]
    found = refusals(lambda: replay(log, folder=tmp_path))
    assert found[0].startswith(f"{log.name}: recordings.llm.cassette: recorded was nothing, found ")


def test_a_memory_that_is_kept_grows_with_every_call_and_is_no_part_of_what_it_is(tmp_path: Path) -> None:
    path = with_memory(tmp_path)
    write(tmp_path, memory={"store": "sqlite", "path": "kept.db", "keep": True})
    sim.run(path, record=tmp_path / "a.log")
    assert list(read_log(tmp_path / "a.log").header["recordings"]) == ["caller[0]"]
    sim.run(path)
    assert sim.replay(tmp_path / "a.log").equal


def test_the_decisions_of_a_network_are_part_of_it(tmp_path: Path) -> None:
    line = {"say": "A table for two on Friday, please.", "at": "500ms"}
    path = write(tmp_path, caller=[line], vad={"engine": "silero"})
    log, saved = kept(path, tmp_path)
    assert list(read_log(log).header["recordings"]) == ["caller[0]", "vad.engine"]
    read, checkpoint = read_log(log), read_checkpoint(saved)
    read.header["recordings"]["vad.engine"] = checkpoint.header["recordings"]["vad.engine"] = "0" * 16
    now = Plan(sim.load(path)).recordings["vad.engine"]
    told = f'recordings.vad.engine: recorded was "{"0" * 16}", found "{now}"'
    assert refusals(lambda: sim.replay(read)) == [f"{log}: {told}"]
    assert refusals(lambda: sim.resume(checkpoint)) == [f"{saved}: {told}"]


def test_other_decisions_are_other_content(tmp_path: Path) -> None:
    spoken = speak("caller", "A table for two on Friday, please.")
    scenario, found = sim.load(write(tmp_path)), []
    for decided in (0, 900):
        decisions = SileroDecisions.load()
        chunks = list(decisions._chunks[spoken.content])
        decisions._chunks[spoken.content] = (*chunks[:9], decided, *chunks[10:])
        found.append(contents_of(scenario, None, decisions, [spoken])["vad.engine"])
    assert found[0] != found[1]


def test_what_an_agent_file_says_is_in_the_scenario_and_its_name_and_its_remarks_are_not(tmp_path: Path) -> None:
    agent = tmp_path / "a.toml"
    agent.write_text('[agent]\nsystem = "Be brief."\n')
    path = write(tmp_path, agent={"file": "a.toml"})
    log, saved = kept(path, tmp_path)
    agent.write_text('# Kept short.\n[agent]\nsystem = "Be brief."\n')
    agent.rename(tmp_path / "b.toml")
    write(tmp_path, agent={"file": "b.toml"})
    assert sim.replay(log, scenario=path).equal
    assert sim.resume(saved).ok  # by what it was; no file is asked
    (tmp_path / "b.toml").write_text('[agent]\nsystem = "Be kind."\n')
    found = refusals(lambda: sim.replay(log, scenario=path))
    assert f'{log}: scenario.agent.system: recorded was "Be brief.", found "Be kind."' in found


def test_a_call_that_reads_no_file_is_recorded_as_ever() -> None:
    assert list(Plan(sim.load("barge_in_during_booking")).recordings) == ["caller[0]", "caller[1]"]


def test_a_recorded_name_that_is_no_file_s_is_compared_as_it_stands(tmp_path: Path) -> None:
    log, _ = kept(with_audio(tmp_path), tmp_path)
    path = write(tmp_path, caller=[{"say": "Hello.", "at": "100ms"}])
    assert f'{log}: scenario.caller[0].wav: recorded was "a file", found nothing' in refusals(
        lambda: sim.replay(log, scenario=path)
    )
