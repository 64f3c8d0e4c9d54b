"""The keys of a wire in a scenario file: what is accepted, and what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError


def test_a_wire_with_its_quirks_is_written_back_as_it_was_read(call: Callable[..., dict[str, Any]]) -> None:
    llm = {"rounds": [{"text": "Hi.", "reasoning": "Hm."}], "wire": "openai", "quirks": ["same_ids"], "chunking": 7}

    written = Scenario.from_dict({**call("Hi."), "llm": llm}).to_dict()

    assert written["llm"] == llm


@pytest.mark.parametrize(
    ("llm", "place", "problem"),
    [
        ({"wire": "antropic"}, "llm.wire", 'unknown wire "antropic"; the nearest known one is "anthropic"'),
        ({"wire": "gemini", "quirks": ["same_ids"]}, "llm.quirks[0]", 'unknown quirk of gemini "same_ids"'),
        ({"quirks": ["same_ids"]}, "llm.quirks", "quirks stands without wire"),
        ({"chunking": 5}, "llm.chunking", "chunking stands without wire"),
        ({"wire": "openai", "chunking": 0}, "llm.chunking", "event, answer, or a number of bytes, 1 or more"),
        ({"wire": "openai", "chunking": "lines"}, "llm.chunking", "event, answer, or a number of bytes, 1 or more"),
    ],
)
def test_what_cannot_be_is_said_with_its_place(
    llm: dict[str, Any], place: str, problem: str, call: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(ScenarioError) as caught:
        sim.load({**call("Hi."), "llm": {"rounds": [{"text": "Hi."}], **llm}})

    assert f"{place}: " in str(caught.value)
    assert problem in str(caught.value)


def test_reasoning_without_a_wire_is_refused(call: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(ScenarioError) as caught:
        sim.load({**call("Hi."), "llm": [{"text": "Hi.", "reasoning": "Hm."}]})

    assert "llm[0].reasoning: reasoning is shown on a wire only" in str(caught.value)
