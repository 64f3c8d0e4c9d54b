"""What each provider refuses, said as a reason before the request is sent."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.catalogue import WIRES, adapter
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, tool_answer, user
from bargein.pipelines.agent.request import Advert, Request

ONE = ToolCall("t1.0", "look", {}, "c1")
TWO = ToolCall("t1.1", "find", {}, "c2")


def _refusals(messages: list[Message], tools: tuple[Advert, ...] = ()) -> dict[str, str | None]:
    wires = ("openai", "openai_responses", "anthropic", "gemini")
    return {wire: adapter(wire, "m").refusal(Request(tuple(messages), tools)) for wire in wires}


@pytest.mark.parametrize("wire", WIRES)
def test_a_conversation_as_our_context_keeps_it_is_taken_everywhere(wire: str) -> None:
    calls = assistant("Wait.", (ONE, TWO))
    results = [tool_answer("t1.0", "1"), tool_answer("t1.1", "no", True)]
    messages = [user("Hi"), calls, *results, assistant("Filler."), assistant("Done."), user("Ok")]

    assert adapter(wire, "m").refusal(Request(tuple(messages), (Advert("look", "", {"type": "object"}),))) is None


def test_a_call_without_its_result_is_refused_everywhere() -> None:
    """The user speaks while a slow tool runs, and the next request holds the call alone."""
    assert _refusals([user("Hi"), assistant("", (ONE,)), user("Hello?")]) == {
        "openai": "call c1 is not answered directly after the message that asks it",
        "openai_responses": "call c1 has no output",
        "anthropic": "call c1 has no result in the message after it",
        "gemini": "content 2 answers no call, where the turn before it asks for look",
    }


def test_a_result_that_does_not_follow_its_call_is_refused_where_order_counts() -> None:
    late = [user("Hi"), assistant("", (ONE,)), user("Hello?"), tool_answer("t1.0", "1")]

    assert {wire for wire, reason in _refusals(late).items() if reason} == {"openai", "anthropic", "gemini"}


def test_a_result_without_its_call_is_refused_everywhere() -> None:
    assert _refusals([user("Hi"), tool_answer("t9.9", "1"), user("So?")]) == {
        "openai": "message 1 answers call t9_9, which does not stand before it",
        "openai_responses": "item 1 answers call t9_9, which does not stand before it",
        "anthropic": "message 0 answers call t9_9, which the message before does not ask",
        "gemini": "a result answers call t9.9, which does not stand before it",
    }


def test_half_of_the_results_is_refused_everywhere() -> None:
    messages = [user("Hi"), assistant("", (ONE, TWO)), tool_answer("t1.1", "2"), user("So?")]

    assert all(_refusals(messages).values())


def test_an_end_on_the_assistant_is_refused_by_those_who_take_it_for_a_prefill() -> None:
    assert _refusals([user("Hi"), assistant("One moment.")]) == {
        "openai": None,
        "openai_responses": None,
        "anthropic": "it ends on an assistant message",
        "gemini": "it ends on a turn of the model",
    }


def test_an_answer_before_any_question_is_refused_where_the_user_begins() -> None:
    refusals = _refusals([assistant("Hello!"), user("Hi")])

    assert (refusals["anthropic"], refusals["gemini"]) == (
        "its first message is not the user's",
        "its first content is not the user's",
    )


def test_text_without_words_is_refused_by_anthropic() -> None:
    assert _refusals([user("Hi"), assistant(" "), user("Ok")])["anthropic"] == "message 1 holds a text without words"


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "its schema has the type 'array' at the top, where an object is accepted"),
        ({"oneOf": []}, "its schema has oneOf at the top, which is accepted inside properties only"),
    ],
)
def test_a_schema_that_cannot_be_said_is_refused_with_what_is_in_the_way(schema: dict[str, Any], reason: str) -> None:
    refusals = _refusals([user("Hi")], (Advert("look", "", schema),))

    assert refusals == {
        **dict.fromkeys(("openai", "openai_responses", "anthropic"), f"of the tool look: {reason}"),
        "gemini": None,
    }


def test_a_name_that_no_provider_takes_is_refused() -> None:
    refusals = _refusals([user("Hi")], (Advert("look.up", "", {"type": "object"}),))

    assert set(refusals.values()) == {"the tool name 'look.up' does not match [a-zA-Z0-9_-]{1,64}"}
