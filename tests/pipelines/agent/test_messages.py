"""Messages: four forms, each to plain data and back."""

from __future__ import annotations

from json import dumps, loads
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.messages import (
    Message,
    Role,
    Text,
    ToolCall,
    assistant,
    message_from_dict,
    system,
    tool_answer,
    user,
)

CALL = ToolCall("t1.0", "book_table", {"day": "friday"}, "call_9", {"signature": "abc"})

FORMS: list[tuple[Message, dict[str, Any]]] = [
    (system("You book tables."), {"role": "system", "text": "You book tables."}),
    (system("It was booked.", "t1.0"), {"role": "system", "text": "It was booked.", "tells": "t1.0"}),
    (user("For two, please."), {"role": "user", "text": "For two, please."}),
    (
        assistant("Done.", (CALL,), {"thought": [1]}),
        {
            "role": "assistant",
            "text": "Done.",
            "tool_calls": [
                {
                    "id": "t1.0",
                    "name": "book_table",
                    "arguments": {"day": "friday"},
                    "provider_id": "call_9",
                    "provider_data": {"signature": "abc"},
                }
            ],
            "provider_data": {"thought": [1]},
        },
    ),
    (
        tool_answer("t1.0", '{"error":"timeout"}', True),
        {"role": "tool", "call_id": "t1.0", "content": '{"error":"timeout"}', "is_error": True},
    ),
]


@pytest.mark.parametrize(("message", "data"), FORMS)
def test_each_form_is_an_object_tagged_by_role_and_reads_back_equal(message: Message, data: dict[str, Any]) -> None:
    assert message.to_dict() == data
    assert message_from_dict(loads(dumps(data))) == message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(ToolCall, st.text(), st.text(), st.dictionaries(st.text(), json_values), st.text(), json_values)
messages = st.one_of(
    st.builds(system, st.text(), st.text()),
    st.builds(user, st.text()),
    st.builds(assistant, st.text(), st.lists(calls, max_size=3).map(tuple), json_values),
    st.builds(tool_answer, st.text(), st.text(), st.booleans()),
)


@settings(deadline=None)
@given(messages)
def test_any_message_survives_being_written_and_read(message: Message) -> None:
    assert message_from_dict(loads(dumps(message.to_dict()))) == message


@pytest.mark.parametrize("data", [{"role": "developer", "text": "x"}, {"text": "x"}])
def test_there_is_no_fifth_role(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        message_from_dict(data)
    assert str(caught.value) == (
        f"role {data.get('role')!r} is not a message role; accepted are system, user, assistant, tool"
    )


def test_the_text_of_a_message_can_be_replaced_with_its_calls_kept() -> None:
    message = assistant("Done, for two.", (CALL,), {"thought": 1})
    assert message.with_text("Done,") == assistant("Done,", (CALL,), {"thought": 1})
    assert message.with_text("") == Message(Role.ASSISTANT, (CALL,), {"thought": 1})
    assert assistant("Done.").with_text("").parts == ()


def test_the_parts_of_a_message_are_told_apart() -> None:
    message = Message(Role.ASSISTANT, (Text("Let me"), CALL, Text(" look.")))
    assert (message.text, message.calls, message.result) == ("Let me look.", (CALL,), None)
    answer = tool_answer("t1.0", "booked")
    assert answer.result is not None
    assert (answer.text, answer.calls, answer.result.content) == ("", (), "booked")
