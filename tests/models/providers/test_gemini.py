"""Gemini: whole calls, signatures on the parts they came with, answers by name, and an end without an event."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.errors import WireError
from bargein.models.providers.gemini import GeminiContent
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.messages import ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Advert, Request
from tests.models.providers.streams import answer

GEMINI = GeminiContent("m")


def _parts(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


def _call(name: str, args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **({} if args is None else {"args": args})}, **more}


def test_signatures_and_thoughts_come_back_on_their_own_parts() -> None:
    events = [
        _parts({"text": "Hm", "thought": True}),
        _parts({"text": "m.", "thought": True}),
        _parts({"text": "Let me "}),
        _parts({"text": "look.", "thoughtSignature": "s1"}),
        _parts(_call("x", {"a": 1}, thoughtSignature="s2"), _call("y"), finish="STOP"),
    ]
    response, end = answer(GEMINI, *events)
    message = response.assistant_message()
    assert message is not None

    sent = GEMINI.encode(Request((user("?"), message), ()))["contents"][1]

    assert (response.text, end) == ("Let me look.", StreamEnd("tool_calls"))
    assert sent == {
        "role": "model",
        "parts": [
            {"text": "Hmm.", "thought": True},
            {"text": "Let me look.", "thoughtSignature": "s1"},
            {"functionCall": {"name": "x", "args": {"a": 1}}, "thoughtSignature": "s2"},
            {"functionCall": {"name": "y", "args": {}}},
        ],
    }


def test_a_text_that_was_cut_does_not_carry_the_signature_of_the_whole() -> None:
    message = answer(GEMINI, _parts({"text": "Yes of course.", "thoughtSignature": "s"}, finish="STOP"))[
        0
    ].assistant_message()
    assert message is not None

    sent = GEMINI.encode(Request((user("?"), message.with_text("Yes of"), user("!")), ()))["contents"][1]["parts"]

    assert sent == [{"text": "Yes of"}]


def test_an_answer_is_complete_when_the_stream_ends_after_a_finish_reason() -> None:
    usage = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}}

    assert answer(GEMINI, _parts({"text": "Hi."}, finish="STOP"), usage)[1] == StreamEnd(
        "stop", {"input_tokens": 3, "output_tokens": 2}
    )
    with pytest.raises(WireError, match="Gemini, event 2 at byte 96: the stream ended before the answer was complete"):
        answer(GEMINI, _parts({"text": "Hi."}))


@pytest.mark.parametrize(
    ("reason", "ours"),
    [("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("MALFORMED_FUNCTION_CALL", "malformed_call")],
)
def test_reasons_are_told_in_our_words(reason: str, ours: str) -> None:
    assert answer(GEMINI, _parts({"text": "Hi."}, finish=reason))[1].reason == ours
    assert answer(GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}})[1].reason == "content_filter"


def test_results_are_one_content_in_call_order_and_a_note_is_another() -> None:
    calls = (ToolCall("t1.0", "x", {}), ToolCall("t1.1", "y", {}, "id1"))
    results = (tool_answer("t1.0", '{"n":1}'), tool_answer("t1.1", "not json", True))

    body = GEMINI.encode(Request((system("S"), user("Hi"), assistant("", calls), *results, system("Note.")), ()))

    assert body["systemInstruction"] == {"parts": [{"text": "S"}]}
    assert body["contents"][2:] == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "x", "response": {"result": {"n": 1}}}},
                {"functionResponse": {"name": "y", "response": {"error": "not json"}, "id": "id1"}},
            ],
        },
        {"role": "user", "parts": [{"text": "Note."}]},
    ]
    assert GEMINI.rules(body) is None


def test_a_schema_is_translated_where_the_subset_can_say_it_and_sent_whole_where_not() -> None:
    known = {"$schema": "x", "type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"const": "c"}}}
    strict = {**known, "additionalProperties": False}
    tools = (Advert("a", "", known), Advert("b", "", strict), Advert("c", "", {"type": "object", "properties": {}}))

    sent = GEMINI.encode(Request((user("Hi"),), tools))["tools"][0]["functionDeclarations"]

    subset = {"type": "object", "properties": {"a": {"type": "string", "nullable": True}, "b": {"enum": ["c"]}}}
    assert sent == [
        {"name": "a", "description": "", "parameters": subset},
        {"name": "b", "description": "", "parametersJsonSchema": strict},
        {"name": "c", "description": ""},
    ]
