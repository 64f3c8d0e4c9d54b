"""``llm: {cassette: FILE}``: recorded bytes arrive at their recorded delays, for the request they were recorded for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.cassettes import Cassette, Exchange, dump_cassette
from bargein.models.providers.catalogue import adapter
from bargein.pipelines.agent.messages import system, user
from bargein.pipelines.agent.request import Request
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.record.loopback import answer_pieces
from tests.sessions.verification.scripts import line

SAID = "Hello out there."
TURN_US = 1_000_000
ASKED = {"agent": {"system": "Be brief."}, "caller": [line("Hi there.")]}
PIECES = [
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\nda',
    b'ta: {"choices":[{"index":0,"delta":{"content":" out there."}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]

Write = Callable[..., Path]


def _request() -> dict[str, Any]:
    return adapter("openai", "m").encode(Request((system("Be brief."), user("Hi there.")), ()))


def _exchange(*at_us: int, end_us: int | None = None, **keys: Any) -> Exchange:
    pieces = tuple(zip(at_us, PIECES, strict=False))
    return Exchange(
        **{
            "request": _request(),
            "status": 200,
            "answered_us": 0,
            "pieces": pieces,
            "end_us": at_us[-1] if end_us is None else end_us,
            **keys,
        }
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(*exchanges: Exchange, **keys: Any) -> Path:
        cassette = Cassette("openai", "m", "hello", exchanges)
        (tmp_path / "hello.cassette.jsonl").write_text(dump_cassette(cassette), encoding="utf-8")
        path = tmp_path / "hello.scenario.json"
        path.write_text(json.dumps({"scenario": "hello", **ASKED, "llm": {"cassette": "hello.cassette.jsonl"}, **keys}))
        return path

    return written


def test_the_answer_arrives_on_the_recorded_instants(write: Write, events: Callable[..., list[Any]]) -> None:
    result = sim.run(write(_exchange(300_007, 300_020, 700_001, 700_001, end_us=900_000)))

    assert events(result, "llm.request", "llm.first_token", "llm.done", "llm.failed") == [
        (TURN_US, "llm.request", 0, 0, 2, 0),
        (TURN_US + 300_007, "llm.first_token", 0),
        (TURN_US + 700_001, "llm.done", 0, "stop", 0, len(SAID)),  # complete; that the connection stays says nothing
    ]
    assert result.heard == [SAID]
    assert result.violations == []
    (trip,) = result.opened.model.round_trips
    assert (trip.first_event_us, trip.first_text_us, trip.total_us) == (300_007, 300_007, 700_001)
    assert (trip.calls, trip.text_bytes, trip.failure) == (0, len(SAID), None)


def test_a_barge_in_stops_the_answer_and_one_on_its_instant_comes_after_it(
    write: Write, events: Callable[..., list[Any]], cut_in: Callable[..., dict[str, Any]]
) -> None:
    path = write(_exchange(300_000, 2_000_000, 2_000_000, 2_000_000))
    data = json.loads(path.read_text())
    found = {}
    for at_us in (TURN_US + 1_999_999, TURN_US + 2_000_000):
        late = {**cut_in(at_us), "after": {"event": "llm.first_token", "by": f"{at_us - TURN_US - 300_000}us"}}
        del late["at"]
        path.write_text(json.dumps({**data, "caller": [*data["caller"], late]}))
        with pytest.raises(ScenarioError, match="request 2"):  # the turn of the second line asks once more
            sim.run(path)
        path.write_text(json.dumps({**data, "caller": [*data["caller"], {**late, "transcript": ""}]}))
        result = sim.run(path)
        trip = result.opened.model.round_trips[0]
        found[at_us] = events(result, "llm.done"), trip.text_bytes, trip.total_us
    assert found == {
        TURN_US + 1_999_999: ([], len("Hello"), None),
        TURN_US + 2_000_000: (
            [(TURN_US + 2_000_000, "llm.done", 0, "stop", 0, len(SAID))],
            len(SAID),
            2_000_000,
        ),
    }


def test_an_answer_in_one_piece_comes_before_a_barge_in_on_its_instant(
    write: Write, events: Callable[..., list[Any]], cut_in: Callable[..., dict[str, Any]]
) -> None:
    late = {**cut_in(TURN_US + 300_000), "transcript": ""}

    result = sim.run(write(_exchange(300_000, 300_000, 300_000, 300_000), caller=[*ASKED["caller"], late]))

    assert events(result, "llm.done", "turn.barge_in", "turn.ignored")[:1] == [
        (TURN_US + 300_000, "llm.done", 0, "stop", 0, len(SAID))
    ]


@pytest.mark.parametrize(
    ("exchange", "reason", "after_us"),
    [
        (
            {"at_us": (10, 20), "end_us": 500_000},
            "OpenAI, event 3 at byte {size}: the stream ended before the answer was complete",
            500_000,
        ),
        (
            {"at_us": (10, 20), "end_us": 500_000, "broken": True},
            "OpenAI: the connection was lost after {size} bytes",
            500_000,
        ),
        (
            {
                "at_us": (10, 20),
                "end_us": 20,
                "status": 503,
                "pieces": ((10, b'{"error": {"mess'), (20, b'age": "no"}}')),
            },
            "OpenAI answered 503: no",
            20,
        ),
        (
            {"at_us": (5,), "end_us": 7, "status": 500, "pieces": ()},
            "OpenAI answered 500: without a message",
            7,
        ),
        ({"at_us": (5,), "pieces": ((5, b"data: {\n\n"),)}, "OpenAI, event 1 at byte 0: the data is not JSON", 5),
    ],
)
def test_a_failure_comes_on_its_instant(
    exchange: dict[str, Any], reason: str, after_us: int, write: Write, events: Callable[..., list[Any]]
) -> None:
    at_us = exchange.pop("at_us")

    result = sim.run(write(_exchange(*at_us, **exchange)))

    ((t, _, _, said),) = events(result, "llm.failed")
    assert t == TURN_US + after_us
    assert said.startswith(reason.format(size=sum(map(len, PIECES[:2]))))


# -- a request that no longer matches -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"agent": {"system": "Be kind."}},
            'request 1 (turn 1) no longer matches the recording at /messages/0/content: found "Be kind.", '
            'recorded "Be brief."',
        ),
        (
            {"tools": {"t": {}}},
            "request 1 (turn 1) no longer matches the recording at /tools: found [{",
        ),
        (
            {"agent": {}},
            'request 1 (turn 1) no longer matches the recording at /messages/0/role: found "user", recorded "system"',
        ),
        (
            {"caller": [line("Hi there."), line("Bye.", 6_000_000, 7_000_000)]},
            "the model was sent request 2 (turn 2), and the recording holds 1; accepted is a call that asks no more",
        ),
    ],
)
def test_a_request_that_no_longer_matches_is_named_with_place_and_both_values(
    keys: dict[str, Any], sentence: str, write: Write
) -> None:
    path = write(_exchange(1, 2, 3, 4), **keys)

    with pytest.raises(ScenarioError) as refused:
        sim.run(path)

    where, _, said = str(refused.value).partition(": llm.cassette: ")
    assert where.startswith(str(path))
    assert said.startswith(sentence)


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("llm", "sentence"),
    [
        ({"cassette": "none.jsonl"}, 'llm.cassette: there is no file "none.jsonl"; accepted is a cassette in the'),
        ({"cassette": "../x"}, 'llm.cassette: "../x" leaves the scenario\'s folder; accepted is a path inside it'),
        ({"cassette": "broken.jsonl"}, "llm.cassette: broken.jsonl, line 1: found no head; accepted is an object with"),
        (
            {"cassette": "bytes.jsonl"},
            "llm.cassette: bytes.jsonl: found bytes that are no UTF-8; accepted",
        ),
        ({"cassette": "hello.cassette.jsonl", "rounds": []}, "llm"),
    ],
)
def test_a_cassette_that_cannot_be_used_is_one_sentence(llm: Any, sentence: str, write: Write, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff")

    with pytest.raises(ScenarioError) as refused:
        sim.run(write(llm=llm))

    assert len(refused.value.sentences) == 1
    assert f": {sentence}" in str(refused.value)


def test_a_live_provider_has_no_cassette(write: Write) -> None:
    with pytest.raises(ScenarioError, match="a cassette holds text; accepted is a scenario without s2s"):
        sim.run(write(s2s={"provider": "realtime"}))


def test_a_scenario_without_a_folder_has_no_cassette() -> None:
    with pytest.raises(ScenarioError, match="has no folder to be in"):
        sim.run({"scenario": "hello", **ASKED, "llm": {"cassette": "x.jsonl"}})


def test_bytes_of_a_scripted_vendor_make_a_cassette_as_well(write: Write) -> None:
    from bargein.sim.scenario.model import Round

    pieces = answer_pieces("openai", 1, Round(text="Hello out there."))
    exchange = _exchange(1, pieces=tuple((at, piece) for at, piece in enumerate(pieces)), end_us=100)

    assert sim.run(write(exchange)).heard == ["Hello out there."]


def test_a_played_call_can_be_recorded_as_effects_and_replayed(write: Write, tmp_path: Path) -> None:
    path = write(_exchange(300_007, 300_020, 700_001, 700_001))
    log = tmp_path / "effects.json"

    result = sim.run(path, record=str(log))

    assert result.digest == sim.run(path).digest
    assert sim.replay(log).result.digest == result.digest
