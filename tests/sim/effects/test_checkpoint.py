"""Checkpoint documents: what they hold, and what is refused of one that others have touched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects import documents
from bargein.sim.effects.checkpoint import Checkpoint, Place
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab import programs
from bargein.sim.lab.checkpoints import When, read_checkpoint, take_checkpoint
from bargein.sim.lab.resumes import resume
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError

NAME = "barge_in_during_booking"


@pytest.fixture(scope="module")
def saved() -> Checkpoint:
    """The call right after its barge-in, while the booking that nobody waits for any more runs on."""
    return take_checkpoint(Plan(sim.load(NAME)), When.parse("turn.barge_in"))[2]


def sealed(saved: Checkpoint, change: Callable[[dict[str, Any]], object], *, digests: bool = False) -> bytes:
    """The document edited by somebody who knows how to make its checks fit."""
    data = json.loads(saved.to_bytes())
    del data["check"]
    change(data)
    if digests:
        data["digests"] = {name: content_digest(written(part))[:16] for name, part in data["parts"].items()}
    text = written(data)
    return text[:-1] + b',"check":"' + content_digest(text).encode() + b'"}\n'


def refused(raw: bytes) -> str:
    with pytest.raises(DocumentError) as problem:
        Checkpoint.from_bytes(raw, "a.json")
    return str(problem.value)


def refused_to_resume(raw: bytes) -> str:
    with pytest.raises(ReplayRefused) as problem:
        resume(Checkpoint.from_bytes(raw, "a.json"))
    return str(problem.value)


# -- what it holds --------------------------------------------------------------------------------------------


def test_it_reads_back_to_an_equal_one_and_to_the_same_bytes(saved: Checkpoint) -> None:
    again = Checkpoint.from_bytes(saved.to_bytes(), saved.name)
    assert again == saved
    assert again.to_bytes() == saved.to_bytes()


def test_it_names_the_place_and_the_numbers_that_were_not_given_yet(saved: Checkpoint) -> None:
    assert saved.place == Place("turn.barge_in", 4_660_000, 28, 31)
    assert (saved.next_run, saved.next_id) == (2, 2)
    assert [(each.id, each.key, each.status) for each in saved.records] == [
        (0, "agent/model:default", "ok"),
        (1, "agent/tool:book_table#0", None),
    ]


def test_it_shows_the_state_of_every_part(saved: Checkpoint) -> None:
    assert list(saved.parts) == [
        "timeline",
        "context",
        "effects",
        "caller",
        "idempotency",
        "orphans",
        "running",
        "late_notes",
        "confirmations",
        "responses",
        "tools",
        "playout_book",
        "playout",
        "speech",
        "turns",
        "hearing",
        "conversation",
        "run",
        "metrics",
        "session",
        "model",
        "bodies",
        "voice",
        "timers",
        "streams",
    ]
    assert saved.digests.keys() == saved.parts.keys()
    assert saved.parts["streams"] == {"llm": 0, "stt": 0, "tool/book_table": 0, "tts": 0}
    assert saved.parts["idempotency"]["entries"][0][1]["state"] == "in_flight"
    assert saved.parts["orphans"]["runs"][0]["orphaned_at_us"] == 4_660_000
    assert [each["say"] if isinstance(each, dict) else each for each in saved.parts["caller"]["lines"]] == [
        "<Line>"
    ] * 2
    assert saved.parts["timers"]["now_us"] == 4_660_000
    assert saved.parts["playout_book"]["utterances"][0].startswith("<playout_book")


def test_the_state_does_not_depend_on_the_process(saved: Checkpoint) -> None:
    code = (
        "import sys\nfrom bargein import sim\nfrom bargein.sim.lab.checkpoints import When, take_checkpoint\n"
        "from bargein.sim.scenario.build import Plan\n"
        f"made = take_checkpoint(Plan(sim.load({NAME!r})), When.parse('turn.barge_in'))[2]\n"
        "sys.stdout.buffer.write(made.to_bytes())"
    )
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        assert ran.stdout == saved.to_bytes()


def test_what_it_requires_can_be_read_without_building_anything(saved: Checkpoint) -> None:
    assert {key: (each["family"], each["kind"]) for key, each in saved.requirements.items()} == {
        "agent/model:default": ("completion", "scripted"),
        "agent/tool:book_table#0": ("tool_call", "scripted"),
    }


def test_taking_one_changes_nothing_of_the_session() -> None:
    result, log, _ = take_checkpoint(Plan(sim.load(NAME)), When.parse("turn.barge_in"))
    assert result.digest == sim.run(NAME).digest == log.header["result"]["digest"]


# -- places ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tool.comitted", 'tool.comitted": unknown event "tool.comitted"'),
        ("tool.committed:0", 'found the number "0"; accepted is a whole number from 1'),
        ("tool.committed:two", 'found the number "two"; accepted is a whole number from 1'),
        ("4.5", '"4.5" is no place; accepted is an event such as tool.committed:2, or 4.5s'),
        ("", '"" is no place'),
    ],
)
def test_what_is_no_place_is_refused(text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as problem:
        When.parse(text)
    assert told in str(problem.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tool.committed:9", '"tool.committed:9": there is 1 of tool.committed in this call'),
        ("fallback.spoken", '"fallback.spoken": there are 0 of fallback.spoken in this call'),
        ("session.ended", '"session.ended": the call is over there; accepted is a place before its end'),
        ("1h", '"1h": the call is over at 11541063 us; accepted is an earlier instant'),
    ],
)
def test_a_place_that_does_not_come_is_refused_and_nothing_is_written(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as problem:
        sim.run(NAME, checkpoint_at=text, checkpoint=tmp_path / "a.json", record=tmp_path / "a.log")
    assert str(problem.value) == told
    assert list(tmp_path.iterdir()) == []


def test_a_place_and_a_file_go_together(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="a checkpoint needs a place and a file"):
        sim.run(NAME, checkpoint_at="4s")
    with pytest.raises(ScenarioError, match="a checkpoint needs a place and a file"):
        sim.run(NAME, checkpoint=tmp_path / "a.json")


# -- documents that others have touched -----------------------------------------------------------------------


def test_a_document_that_was_cut_off_is_refused_wherever_it_was(saved: Checkpoint) -> None:
    raw = saved.to_bytes()
    for length in (0, 1, 1_000, len(raw) // 2, len(raw) - 2):
        assert refused(raw[:length]).startswith("a.json, character ")


def test_an_edited_part_is_refused_by_its_name(saved: Checkpoint) -> None:
    raw = saved.to_bytes()
    assert refused(raw.replace(b'"in_flight"', b'"done"')) == (
        "a.json: parts.idempotency: it does not fit its digest; it was edited"
    )
    assert refused(raw.replace(b"for two on Friday", b"for ten on Friday")).startswith("a.json: parts.")
    assert refused(raw.replace(b'"seed":7', b'"seed":8')) == (
        "a.json: the document does not fit its check; it was edited"
    )
    assert refused(raw + b"x") == "a.json:2: found 1 bytes after its end; accepted is one line"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.update(bargein_checkpoint=2), "a.json: it has format 2; accepted is format 1"),
        (lambda data: data.update(bargein_checkpoint=0), "a.json: it has format 0; accepted is format 1"),
        (lambda data: data.update(provider_binding={}), "a.json.provider_binding: nothing of that name belongs here"),
        (lambda data: data.pop("place"), "a.json: place is missing; it was cut off or edited"),
        (
            lambda data: data["place"].update(events=-1),
            "a.json: place.events: found -1; accepted is a whole number from",
        ),
        (lambda data: data["place"].update(module="os"), "a.json: place.module: nothing of that name belongs here"),
        (lambda data: data["records"][1].update(parent=1), "a.json: records[1].parent: found 1, which makes a circle"),
        (lambda data: data["records"].reverse(), "a.json: records[0].id: found 1; accepted is 0"),
        (lambda data: data["counters"].update(next_id=1), "a.json: counters.next_id: found 1; accepted is a free id"),
        (lambda data: data.update(tie_seed="x"), 'a.json.tie_seed: found "x"; accepted is a whole number or null'),
        (lambda data: data.update(hooks={}), "a.json.hooks: found a mapping of 0; accepted is a list"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    saved: Checkpoint, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    assert refused(sealed(saved, change)).startswith(told)


def set_state(data: dict[str, Any]) -> None:
    data["parts"]["idempotency"]["entries"][0][1]["state"] = "done"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (set_state, 'a.json: parts.idempotency.entries[0][1].state: recorded was "done", found "in_flight"'),
        (
            lambda data: data["parts"]["streams"].update(stt=5),
            "a.json: parts.streams.stt: recorded was 5, found 0",
        ),
        (lambda data: data["parts"].update(os={}), "a.json: parts.os: recorded was {}, found nothing"),
        (
            lambda data: data["place"].update(events=30),
            "a.json: place: it was after 30 events and 31 records, and the session comes to",
        ),
        (
            lambda data: data["place"].update(seq=30),
            "a.json: place: it was after 28 events and 30 records, and the session comes to 28 and 31",
        ),
        (
            lambda data: data["place"].update(at_us=10**15),
            "a.json: place: it was after 28 events",
        ),
        (
            lambda data: data["counters"].update(next_id=9),
            "a.json: counters.next_id: recorded was 9, found 2",
        ),
        (
            lambda data: data["records"][1].update(dispatched_at_us=1, steps=[[1, 0, [1]], [2, 1, []]]),
            "a.json: records[1].dispatched_at_us: recorded was 1, found 3570000",
        ),
        (lambda data: data.update(seed=8), None),
        (
            lambda data: data["settings"].update(max_tool_rounds=7),
            "a.json: settings.max_tool_rounds: recorded was 7, found 6",
        ),
        (
            lambda data: data["handlers"].pop("agent/model:default"),
            "a.json: handlers.agent/model:default: recorded was nothing",
        ),
        (lambda data: data.update(version="0.0.1"), "a.json: version: recorded was bargein 0.0.1, this is bargein"),
    ],
)
def test_an_edited_state_is_refused_although_its_checks_fit(
    saved: Checkpoint, change: Callable[[dict[str, Any]], object], told: str | None
) -> None:
    raw = sealed(saved, change, digests=True)
    if told is None:  # this call leaves nothing to chance, so that another seed is the same call
        assert resume(Checkpoint.from_bytes(raw, "a.json")).result.digest == sim.run(NAME).digest
    else:
        assert refused_to_resume(raw).startswith(told)


def test_another_version_is_refused(saved: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "version", lambda _: "9.9.9")
    programs.program_of.cache_clear()
    told = refused_to_resume(saved.to_bytes())
    programs.program_of.cache_clear()
    assert told == f"a.json: version: recorded was bargein {saved.header['version']}, this is bargein 9.9.9"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[]", "a.json: it is no checkpoint; accepted is a checkpoint, as run --checkpoint writes it"),
        (b"{}", "a.json: it is no checkpoint"),
        (b'{"bargein_log": 1}\n{"id": 0}\n', "a.json: it is an effect log; accepted is a checkpoint"),
        (b"[" * 100_000, "a.json: it is nested more than 100 deep; accepted is up to 100"),
        (b'{"a": {"a": 1, "a": 1}}', 'a.json: found the key "a" twice; accepted is JSON'),
        (b"\x80\x04c", "a.json: found bytes that are no UTF-8; accepted is JSON"),
    ],
)
def test_what_is_no_checkpoint_is_refused(text: bytes, told: str) -> None:
    assert refused(text).startswith(told)


def test_a_scenario_that_is_none_is_refused(saved: Checkpoint) -> None:
    raw = sealed(saved, lambda data: data["scenario"].update(tools={"x": {"!!python/object": "os.system"}}))
    with pytest.raises(DocumentError, match="the scenario in it cannot be used: "):
        resume(Checkpoint.from_bytes(raw, "a.json"))


def test_a_document_makes_the_reader_import_and_run_nothing(saved: Checkpoint, tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('imported')")

    def bait(data: dict[str, Any]) -> None:
        for holder in (data["handlers"]["agent/tool:book_table#0"], data["parts"]["model"], data["place"]):
            holder["kind" if "kind" in holder else "why"] = "trap:attribute"

    path = tmp_path / "a.json"
    path.write_bytes(sealed(saved, bait, digests=True))
    code = (
        "import sys\nfrom bargein.sim.lab.checkpoints import read_checkpoint\nbefore = {*sys.modules}\n"
        f"read_checkpoint({str(path)!r})\nprint(sorted({{*sys.modules}} - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_file_that_is_too_large_or_not_there_is_refused(
    saved: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DocumentError, match="there is no such file; accepted is a checkpoint"):
        read_checkpoint(tmp_path / "a.json")
    path = tmp_path / "b.json"
    path.write_bytes(saved.to_bytes())
    assert read_checkpoint(path).place == saved.place
    monkeypatch.setattr(documents, "MAX_BYTES", 1_000)
    with pytest.raises(DocumentError, match="it has more than 1000 bytes; accepted is a checkpoint of up to 1000"):
        read_checkpoint(path)
