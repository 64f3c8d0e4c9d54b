"""The loose assertions find nothing on the scripts, and find each misbehaviour that they are there for."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from tests.sessions.verification.loose import LOOSE
from tests.sessions.verification.scripts import BOOKING, SCENARIOS, SHAPES

SUNNY = {"text": "It is sunny everywhere."}
NOTHING: dict[str, Any] = {}
CALL_AS_TEXT = {"text": '{"name": "get_weather", "arguments": {"city": "Izmir"}}'}
PROMISE = {"text": "I will ask for three days instead."}

MISBEHAVIOUR: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    "invented answer": ("S1", [SUNNY], ["0 cities were looked up; wanted 3"]),
    "empty answer": ("S1", [NOTHING], ["the caller was given no answer", "0 cities were looked up; wanted 3"]),
    "call as text": (
        "S1",
        [CALL_AS_TEXT],
        [f"a call was read out: {CALL_AS_TEXT['text']!r}", "0 cities were looked up; wanted 3"],
    ),
    "one city forgotten": (
        "S1",
        [{"calls": [{"get_weather": {"city": "Izmir"}}, {"get_weather": {"city": "Ankara"}}]}, SUNNY],
        ["2 cities were looked up; wanted 3"],
    ),
    "guessed call": (
        "S2",
        [
            {
                "calls": [
                    {"get_customer": {"phone": "555-0100"}},
                    {"get_city": {"city_id": 1}},
                    {"get_weather": {"city": "Rome"}},
                ]
            },
            SUNNY,
        ],
        [
            "get_city was asked before get_customer had answered",
            "get_city was asked for a city_id that get_customer did not find",
            "get_weather was asked before get_city had answered",
            "get_weather was asked for a city that get_city did not find",
        ],
    ),
    "chain given up": (
        "S2",
        [{"calls": [{"get_customer": {"phone": "555-0100"}}]}, SUNNY],
        ["get_city was never run"],
    ),
    "double booking": (
        "S3",
        [{"calls": [{"book_table": BOOKING}, {"book_table": {**BOOKING, "people": 3}}]}, {"text": "Booked."}],
        ["the table was booked 2 times; wanted 1"],
    ),
    "booking only claimed": ("S3", [{"text": "Booked."}], ["the table was booked 0 times; wanted 1"]),
    "promise not kept": (
        "S4",
        [{"calls": [{"get_forecast": {"days": 10}}]}, PROMISE],
        ["the forecast was never looked up"],
    ),
    "order not looked up": ("S5", [{"text": "It is ready."}], ["the order was never looked up"]),
    "booking forgotten": (
        "S6",
        [{"text": "One second."}, {"text": "It is booked."}],
        ["the table was booked 0 times; wanted 1", "the booking is told 0 times; wanted 1"],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_loose_check_finds_nothing_on_the_script(name: str, shape: str) -> None:
    result = sim.run(SCENARIOS[name](SHAPES[shape])[0])

    assert LOOSE[name.split()[0]](result) == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("misbehaviour", MISBEHAVIOUR)
def test_the_loose_check_finds_the_misbehaviour(misbehaviour: str, shape: str) -> None:
    name, rounds, wanted = MISBEHAVIOUR[misbehaviour]
    scenario = next(each for each in SCENARIOS if each.startswith(name))
    data = SCENARIOS[scenario](SHAPES[shape])[0]
    data["llm"] = {**SHAPES[shape].llm, "rounds": [*rounds, *[{"text": "Yes."}] * 2]}

    result = sim.run(data)

    assert LOOSE[name](result) == wanted
    assert result.stopped is None


def test_a_wait_without_a_word_is_found() -> None:
    data = SCENARIOS["S5"](SHAPES["plain"])[0]

    result = sim.run({**data, "agent": {"filler": "off"}})

    assert LOOSE["S5"](result) == ["the caller waited without a word"]


def test_every_scenario_has_a_loose_check_and_every_check_a_misbehaviour() -> None:
    assert set(LOOSE) == {name.split()[0] for name in SCENARIOS} == {name for name, _, _ in MISBEHAVIOUR.values()}
