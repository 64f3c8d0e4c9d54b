"""Real providers' recorded answers through our decoders, and our requests beside the recorded ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bargein.models.providers.errors import WireError
from bargein.pipelines.agent.assembly import AssembleError, Response, ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import StreamEnd
from tests.conformance.cassettes import FOLDER, Cassette, Exchange, files, folder, load
from tests.conformance.comparing import compare, decode
from tests.conformance.differences import KINDS, differences
from tests.conformance.evidence import Evidence
from tests.conformance.report import lines, verdicts

pytestmark = pytest.mark.skipif(not files(), reason=f"no recordings in {folder()}; {FOLDER} names another folder")
each_file = pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(folder()).as_posix())
quick = settings(
    max_examples=5, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _streams(path: Path) -> list[tuple[Cassette, Exchange]]:
    cassette = load(path)
    return [(cassette, each) for each in cassette.exchanges if each.streamed]


def _tried(cassette: Cassette, exchange: Exchange, stream: bytes) -> tuple[Response | None, WireError | None]:
    """What a stream holds, or why it cannot be read; a delta that the assembler refuses is left out, as in a run."""
    decoder, assembler = cassette.adapter(exchange.request).decoder(), ResponseAssembler()
    try:
        items = [*decoder.feed(stream), *decoder.finish()]
    except WireError as error:
        return None, error
    for item in items:
        if not isinstance(item, StreamEnd):
            with suppress(AssembleError):
                assembler.feed(item)
    return assembler.finish(1, Context()), None


@each_file
def test_our_requests_are_the_recorded_ones_but_for_justified_differences(path: Path) -> None:
    verdict = compare(load(path))

    assert not verdict.unexplained, str(verdict)


def test_the_report_has_a_line_a_file_and_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    report = lines(verdicts())

    with capsys.disabled():
        print("", *report, sep="\n")
    assert len(KINDS) <= 6
    assert report[len(files())].startswith(f"{len(files())} files: ")
    assert report[len(files())].endswith(", 0 different")


@each_file
def test_an_answer_is_the_same_byte_by_byte_as_in_one_piece(path: Path) -> None:
    for cassette, exchange in _streams(path):
        adapter = cassette.adapter(exchange.request)
        whole = exchange.answer
        assert decode(adapter, [whole[at : at + 1] for at in range(len(whole))]) == decode(adapter, [whole])


@each_file
@quick
@given(data=st.data())
def test_an_answer_is_the_same_however_it_is_cut(path: Path, data: st.DataObject) -> None:
    for cassette, exchange in _streams(path):
        adapter, whole = cassette.adapter(exchange.request), exchange.answer
        cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=40)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        assert decode(adapter, pieces) == decode(adapter, [whole])


@each_file
@quick
@given(data=st.data())
def test_an_answer_that_is_cut_off_is_an_error_or_whole(path: Path, data: st.DataObject) -> None:
    for cassette, exchange in _streams(path):
        adapter, whole = cassette.adapter(exchange.request), exchange.answer
        at = data.draw(st.integers(0, len(whole) - 1))
        response, error = _tried(cassette, exchange, whole[:at])
        if error is None:
            assert response == decode(adapter, [whole])[0]
        else:
            assert (error.provider, error.event >= 1, 0 <= error.offset <= at) == (adapter.provider, True, True)


@each_file
@quick
@given(data=st.data())
def test_bytes_that_were_damaged_never_hang_or_crash(path: Path, data: st.DataObject) -> None:
    for cassette, exchange in _streams(path):
        adapter, damaged = cassette.adapter(exchange.request), bytearray(exchange.answer)
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(0, len(damaged) - 1))
            damaged[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
        error = _tried(cassette, exchange, bytes(damaged))[1]
        if error is not None:
            assert str(error).startswith(f"{adapter.provider}, event {error.event} at byte {error.offset}: ")


def test_a_difference_that_nothing_justifies_is_different() -> None:
    ours = {"messages": [{"role": "assistant", "content": "Yes."}]}
    recorded = {"messages": [{"role": "assistant", "content": "Yes, sir.", "prefix": False}], "top_k": 5}

    found = [(each.place, each.kind) for each in differences(ours, recorded, Evidence())]

    assert found == [("messages.0.content", ""), ("messages.0.prefix", "client_default"), ("top_k", "")]


def test_a_member_that_we_kept_is_justified_only_if_an_answer_held_it() -> None:
    evidence = Evidence()
    evidence.add(b'data: {"item":{"phase":"final"}}\n\n')
    ours = {"input": [{"phase": "final", "mood": "good"}]}

    found = [(each.place, each.kind) for each in differences(ours, {"input": [{}]}, evidence)]

    assert found == [("input.0.mood", ""), ("input.0.phase", "provider_data_kept")]
