"""Anthropic Messages: blocks in their order, thinking verbatim, and turns that alternate."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.anthropic import AnthropicMessages
from bargein.models.providers.errors import RequestError, WireError
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.messages import Message, Role, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Request
from tests.models.providers.streams import answer, stream

ANTHROPIC = AnthropicMessages("m")
START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def _end(reason: str = "end_turn") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _text(index: int, *texts: str) -> list[dict[str, Any]]:
    return _block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": each} for each in texts))


def _tool(index: int, id: str, name: str, *texts: str, **more: Any) -> list[dict[str, Any]]:
    pieces = [{"type": "input_json_delta", "partial_json": each} for each in texts]
    return _block(index, {"type": "tool_use", "id": id, "name": name, "input": {}, **more}, *pieces)


def _thinking(index: int) -> list[dict[str, Any]]:
    deltas = [{"type": "thinking_delta", "thinking": each} for each in ("Let ", "me.")]
    block = {"type": "thinking", "thinking": "", "signature": ""}
    return _block(index, block, *deltas, {"type": "signature_delta", "signature": "sig"})


def _again(*events: Any) -> list[dict[str, Any]]:
    """The blocks in which an answer comes back."""
    message = answer(ANTHROPIC, START, *events, _end(), STOP)[0].assistant_message()
    assert message is not None
    return list(ANTHROPIC.encode(Request((user("?"), message), ()))["messages"][1]["content"])


def test_text_and_calls_come_out_with_their_end() -> None:
    events = [
        *_text(0, "Let me ", "look."),
        {"type": "ping"},
        *_tool(1, "c1", "look", "", '{"a"', ":1}"),
        _end("tool_use"),
    ]

    response, end = answer(ANTHROPIC, START, *events, STOP)

    assert (response.text, response.calls) == ("Let me look.", (ToolCall("t1.0", "look", {"a": 1}, "c1"),))
    assert end == StreamEnd("tool_calls", {"input_tokens": 5, "output_tokens": 4})
    assert response.provider_data is None


def test_thinking_and_the_order_of_blocks_come_back_verbatim() -> None:
    blocks = _again(*_thinking(0), *_text(1, "A."), *_tool(2, "c1", "look"), *_text(3, "B."))

    assert blocks == [
        {"type": "thinking", "thinking": "Let me.", "signature": "sig"},
        {"type": "text", "text": "A."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        {"type": "text", "text": "B."},
    ]


def test_what_the_adapter_does_not_know_comes_back_verbatim_too() -> None:
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    json = {"type": "input_json_delta", "partial_json": '{"q":"a"}'}

    blocks = _again(*_block(0, hidden), *_block(1, search, json), *_tool(2, "c1", "look", caller={"type": "code"}))

    assert blocks == [
        hidden,
        {**search, "input": {"q": "a"}},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": {"type": "code"}},
    ]


def test_a_message_cut_to_what_was_heard_keeps_its_order() -> None:
    message = answer(
        ANTHROPIC, START, *_thinking(0), *_text(1, "One two."), *_tool(2, "c", "x"), *_text(3, " Three."), _end(), STOP
    )
    said = message[0].assistant_message()
    assert said is not None

    blocks = ANTHROPIC.encode(Request((user("?"), said.with_text("One two. Th")), ()))["messages"][1]["content"]
    shorter = ANTHROPIC.encode(Request((user("?"), said.with_text("One")), ()))["messages"][1]["content"]

    assert [each.get("text", each["type"]) for each in blocks] == ["thinking", "One two.", "tool_use", " Th"]
    assert [each.get("text", each["type"]) for each in shorter] == ["thinking", "One", "tool_use"]


def test_neighbours_are_one_turn_and_a_note_is_said_by_the_user() -> None:
    call = ToolCall("t1.0", "x", {}, "c1")
    messages = (
        system("A"),
        system("B"),
        user("Hi"),
        assistant("", (call,)),
        tool_answer("t1.0", "no", True),
        system("Note."),
    )
    messages = (*messages, assistant("Wait."), assistant("Done."), user("Ok"))

    body = ANTHROPIC.encode(Request(messages, ()))

    assert body["system"] == [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "x", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                },
                {"type": "text", "text": "Note."},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, {"type": "text", "text": "Done."}]},
        {"role": "user", "content": [{"type": "text", "text": "Ok"}]},
    ]
    assert ANTHROPIC.rules(body) is None


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([STOP], "the message stops, and no stop reason has come"),
        ([_text(0, "a")[0], _end(), STOP], "the message stops while its block 0 is open"),
        (
            [{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}],
            "the provider reports overloaded_error: Busy",
        ),
        ([_text(0, "a")[1]], "the event has another shape than the wire promises (KeyError)"),
    ],
)
def test_a_stream_that_breaks_the_wire_is_an_error(events: list[Any], what: str) -> None:
    with pytest.raises(WireError) as caught:
        ANTHROPIC.decoder().feed(stream(START, *events))
    assert (caught.value.event, caught.value.what) == (1 + len(events), what)


def test_data_of_another_shape_is_refused_and_data_of_another_wire_left_out() -> None:
    strange = Message(Role.ASSISTANT, assistant("Hi.").parts, {"wire": "anthropic", "order": [{"text": "x"}]})
    foreign = Message(Role.ASSISTANT, assistant("Hi.").parts, {"wire": "gemini", "order": 5})

    with pytest.raises(RequestError, match="the provider data of a message is not what anthropic gives"):
        ANTHROPIC.encode(Request((user("?"), strange), ()))
    assert ANTHROPIC.encode(Request((user("?"), foreign), ()))["messages"][1]["content"] == [
        {"type": "text", "text": "Hi."}
    ]
