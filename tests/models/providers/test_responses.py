"""OpenAI Responses: items with their ids, reasoning beside the call it led to, and chains."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.errors import WireError
from bargein.models.providers.responses import OpenAIResponses
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.messages import Message, ToolCall, system, tool_answer, user
from bargein.pipelines.agent.request import Request
from tests.models.providers.streams import answer, stream

OPENAI = OpenAIResponses("m")
REASONING = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "sealed"}
CALL = {
    "type": "function_call",
    "id": "fc1",
    "call_id": "c1",
    "name": "look",
    "arguments": '{"a":1}',
    "status": "completed",
}
SAID = {
    "type": "message",
    "id": "msg1",
    "role": "assistant",
    "status": "completed",
    "phase": "final",
    "content": [{"type": "output_text", "text": "It is red."}],
}


def _item(at: int, item: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    begun = {**item, "arguments": ""} if "arguments" in item else item
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        *({"output_index": at, **each} for each in deltas),
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]


def _arguments(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "response.function_call_arguments.delta", "delta": each} for each in texts]


def _completed(**more: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "resp1", "status": "completed", **more}}


def _said(*events: Any) -> Message:
    message = answer(OPENAI, *events)[0].assistant_message()
    assert message is not None
    return message


def test_items_come_back_with_their_ids_in_their_order() -> None:
    text = {"type": "response.output_text.delta", "delta": "It is red."}
    first = _said(*_item(0, REASONING), *_item(1, CALL, *_arguments('{"a"', ":1}")), _completed())
    second = _said(*_item(0, SAID, text), _completed())

    body = OPENAI.encode(Request((system("S"), user("?"), first, tool_answer("t1.0", "red"), second, user("!")), ()))

    assert body["instructions"] == "S"
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]},
        REASONING,
        CALL,
        {"type": "function_call_output", "call_id": "c1", "output": "red"},
        SAID,
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "!"}]},
    ]
    assert OPENAI.rules(body) is None


def test_arguments_that_come_only_when_they_are_finished_count() -> None:
    assert _said(*_item(0, CALL), _completed()).calls[0].arguments == {"a": 1}
    assert _said({**_item(0, CALL)[1]}, _completed()).calls[0].arguments == {"a": 1}


def test_a_cut_message_goes_back_without_its_id_and_without_the_reasoning_that_led_to_it() -> None:
    text = {"type": "response.output_text.delta", "delta": "It is red."}
    said = _said(*_item(0, REASONING), *_item(1, SAID, text), _completed()).with_text("It is")

    items = OPENAI.encode(Request((user("?"), said, user("!")), ()))["input"]

    assert items[1:-1] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is"}]}
    ]


def test_a_chain_sends_only_what_is_new() -> None:
    said = _said(*_item(0, CALL), _completed())
    chained = OpenAIResponses("m", chained=True)

    body = chained.encode(Request((system("S"), user("?"), said, tool_answer("t1.0", "red")), ()))

    assert (body["previous_response_id"], body["instructions"]) == ("resp1", "S")
    assert [item["type"] for item in body["input"]] == ["function_call_output"]
    assert chained.rules({**body, "input": [{**body["input"][0], "call_id": "t1_0"}]}) is None


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status": "completed"}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
    ],
)
def test_reasons_are_told_in_our_words(response: dict[str, Any], reason: str) -> None:
    usage = {"usage": {"input_tokens": 3, "output_tokens": 2}}

    end = answer(OPENAI, *_item(0, SAID), _completed(**response, **usage))[1]

    assert end == StreamEnd(reason, {"input_tokens": 3, "output_tokens": 2})


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([*_item(0, CALL, *_arguments('{"b"'))], "the finished arguments of a call are not those that streamed"),
        ([_item(0, CALL)[0], _completed()], "the answer ends while its item 0 is open"),
        ([{"type": "error", "code": "x", "message": "gone"}], "the provider reports x: gone"),
        (
            [{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "gone"}}}],
            "the provider reports server_error: gone",
        ),
    ],
)
def test_a_stream_that_breaks_the_wire_is_an_error(events: list[Any], what: str) -> None:
    with pytest.raises(WireError) as caught:
        OPENAI.decoder().feed(stream(*events))
    assert (caught.value.event, caught.value.what) == (len(events), what)


def test_xai_has_its_instructions_among_the_items() -> None:
    body = OpenAIResponses("m", "xAI").encode(Request((system("S"), user("?")), ()))

    assert [(item["role"], item["content"][0]["text"]) for item in body["input"]] == [("system", "S"), ("user", "?")]
    assert ToolCall("t1.0", "look", {"a": 1}).provider_data is None
