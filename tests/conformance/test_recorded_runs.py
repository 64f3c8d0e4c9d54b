"""Recordings of several requests driven as agent runs: every request that the runs make is the recorded one."""

from __future__ import annotations

from dataclasses import replace
from json import dumps, loads
from pathlib import Path

import pytest

from tests.conformance.cassettes import FOLDER, Cassette, files, folder, load
from tests.conformance.driving import drive
from tests.conformance.report import drivable, driven, run_lines

pytestmark = pytest.mark.skipif(not files(), reason=f"no recordings in {folder()}; {FOLDER} names another folder")
each_file = pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(folder()).as_posix())


def test_runs_make_every_recorded_request_but_for_justified_differences(capsys: pytest.CaptureFixture[str]) -> None:
    found = driven()

    with capsys.disabled():
        print("", *run_lines(found), sep="\n")
    assert [str(each) for each in found if each.unexplained] == []


@each_file
def test_every_recorded_request_is_made_once(path: Path) -> None:
    cassette = load(path)
    if not drivable(cassette):
        pytest.skip("it holds one request, or an answer that is no stream")

    assert drive(cassette).requests == len(cassette.exchanges)


def _first(name: str) -> Cassette:
    found = [path for path in files() if name in path.as_posix()]
    if not found:
        pytest.skip(f"no recording named {name} in {folder()}")
    return load(found[0])


def _with_later_body(cassette: Cassette, before: str, after: str) -> Cassette:
    """The recording with other words in its second request."""
    first, second, *rest = cassette.exchanges
    spelled = dumps(second.request, ensure_ascii=False)
    assert before in spelled
    changed = replace(second, request=loads(spelled.replace(before, after)))
    return replace(cassette, exchanges=(first, changed, *rest))


def test_an_answer_that_the_recording_quotes_otherwise_is_different() -> None:
    cassette = _first("anthropic/reasoning_tool_roundtrip/streaming")
    assert drive(cassette).grade == "exact"
    [thought] = [
        block["signature"]
        for message in cassette.exchanges[1].request["messages"]
        for block in message["content"]
        if block["type"] == "thinking"
    ]

    verdict = drive(_with_later_body(cassette, thought, "another"))

    assert [each.place for each in verdict.unexplained] == ["request 1: messages.1.content.0.signature"]


def test_a_request_that_no_run_comes_to_is_different() -> None:
    cassette = _first("sequential_tool_calls_streaming")
    again = replace(cassette, exchanges=(*cassette.exchanges, cassette.exchanges[-1]))

    found = drive(again).unexplained

    assert [(each.place, each.ours) for each in found] == [("request 3: the whole", "never asked")]


def test_what_the_program_did_in_between_is_done_by_hooks_and_counted() -> None:
    verdict = drive(_first("streamed_repair_continues_the_same_stream"))

    edits = [(each.place, each.recorded) for each in verdict.found if each.kind == "program_edit"]
    assert edits == [("request 1: call of add", "sum")]


def test_a_conversation_that_goes_on_after_an_answer_takes_a_run_each() -> None:
    verdict = drive(_first("five_turn_streaming_metadata_roundtrip"))

    assert (verdict.requests, verdict.runs, verdict.unexplained) == (5, 5, [])
