"""Chat Completions: how providers number and name fragments, when an answer is complete, and what a request says."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.chat_completions import ChatCompletions
from bargein.models.providers.errors import RequestError, WireError
from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.deltas import StreamEnd
from bargein.pipelines.agent.messages import Media, MediaKind, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Advert, Request
from tests.models.providers.streams import answer, stream

OPENAI = ChatCompletions("m")


def _delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _call(
    index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    given = {"name": name, "arguments": arguments}
    function = {key: value for key, value in given.items() if value is not None}
    head = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return _delta(tool_calls=[{**head, "function": function}])


def _calls(*events: dict[str, Any]) -> list[tuple[Any, ...]]:
    response, _ = answer(OPENAI, *events, _delta("tool_calls"), "[DONE]")
    return [
        (call.provider_id, call.name, call.arguments if isinstance(call, ToolCall) else call.reason)
        for call in response.calls
    ]


@pytest.mark.parametrize(
    "fragments",
    [
        [_call(0, "c1", "show", '{"city":"Izmir"}')],
        [_call(0, "c1"), _call(0, name="show"), _call(0, arguments='{"city":'), _call(0, arguments='"Izmir"}')],
        [_call(0, "c1", "show", ""), _call(0, "c1", "show", '{"city"'), _call(0, "c1", "show", ':"Izmir"}')],
        [_call(0, "c1", "show", ""), _call(0, "", "", '{"city":"Izmir"}')],
        [_call(None, "c1", "show", '{"city":'), _call(None, arguments='"Izmir"}')],
        [_call(3, "c1", "show", {"city": "Izmir"})],
    ],
    ids=["whole", "head split", "head repeated", "head emptied", "without index", "an object"],
)
def test_every_split_of_a_call_is_the_same_call(fragments: list[dict[str, Any]]) -> None:
    assert _calls(*fragments) == [("c1", "show", {"city": "Izmir"})]


def test_missing_and_empty_arguments_are_an_empty_object() -> None:
    assert _calls(_call(0, "c1", "now"), _call(1, "c2", "then", "")) == [("c1", "now", {}), ("c2", "then", {})]


def test_calls_that_all_have_the_index_zero_are_told_apart() -> None:
    a, b = _call(0, "c1", "show", '{"n":1}'), _call(0, "c2", "show", '{"n":2}')

    assert _calls(a, b) == [("c1", "show", {"n": 1}), ("c2", "show", {"n": 2})]


def test_two_calls_with_one_id_are_two_calls() -> None:
    a, b = _call(0, "show", "show", '{"n":1}'), _call(0, "show", "show", '{"n":2}')

    assert _calls(a, b) == [("show", "show", {"n": 1}), ("show", "show", {"n": 2})]


def test_gaps_between_indexes_and_mixed_fragments_keep_the_order_of_beginning() -> None:
    mixed = [
        _call(0, "a", "x", '{"n"'),
        _call(4, "b", "y", '{"n"'),
        _call(0, arguments=":1}"),
        _call(4, arguments=":2}"),
    ]

    assert _calls(*mixed) == [("a", "x", {"n": 1}), ("b", "y", {"n": 2})]


def test_usage_may_come_alone_after_the_finish_reason() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}

    response, end = answer(OPENAI, _delta(content="Hi."), _delta("stop"), usage, "[DONE]")

    assert (response.text, end) == ("Hi.", StreamEnd("stop", {"input_tokens": 7, "output_tokens": 2}))


def test_text_may_follow_a_call() -> None:
    response, _ = answer(OPENAI, _call(0, "c", "x", "{}"), _delta(content="One moment."), _delta("tool_calls"))

    assert (response.text, [call.name for call in response.calls]) == ("One moment.", ["x"])


def test_arguments_cut_at_the_token_limit_make_a_call_that_never_runs() -> None:
    response, end = answer(OPENAI, _call(0, "c", "x", '{"n":'), _delta("length"), "[DONE]")

    assert (type(response.calls[0]), end.reason) == (InvalidCall, "length")


def test_a_stream_that_ends_early_is_an_error_at_its_end() -> None:
    body = stream(_delta(content="Hi."))
    decoder = OPENAI.decoder()
    decoder.feed(body)

    with pytest.raises(WireError) as caught:
        decoder.finish()
    assert caught.value.args == ("OpenAI", 2, len(body), "the stream ended before the answer was complete")


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ({"error": {"type": "server_error", "message": "gone"}}, "the provider reports server_error: gone"),
        ("{", "the data is not JSON (Expecting property name enclosed in double quotes)"),
        ("[1]", "the data is no JSON object"),
        ("[DONE]", "the stream is done, and no finish reason has come"),
        ({"choices": 3}, "the event has another shape than the wire promises (TypeError)"),
        (_delta(content=3), "the event has another shape than the wire promises (TypeError)"),
        ('{"choices":' + "[" * 100_000, "the data is nested too deeply"),
    ],
)
def test_a_failure_names_the_event_and_its_first_byte(event: Any, what: str) -> None:
    first = stream(_delta(content="Hi."))

    with pytest.raises(WireError) as caught:
        OPENAI.decoder().feed(first + stream(event))
    assert caught.value.args == ("OpenAI", 2, len(first), what)


def test_nothing_can_be_had_after_a_failure() -> None:
    decoder = OPENAI.decoder()
    with pytest.raises(WireError, match="no JSON object"):
        decoder.feed(stream("1"))

    with pytest.raises(WireError, match="event 1 at byte 0: the data is no JSON object"):
        decoder.feed(stream(_delta("stop"), "[DONE]"))


def test_reasoning_comes_back_where_the_provider_wants_it() -> None:
    deepseek = ChatCompletions("m", "deepseek")
    events = [
        _delta(reasoning_content="Let "),
        _delta(reasoning_content="me."),
        _call(0, "c", "x"),
        _delta("tool_calls"),
    ]
    said = answer(deepseek, *events)[0].assistant_message()
    assert said is not None
    request = Request((user("Hi"), said, tool_answer("t1.0", "1")), ())

    there = deepseek.encode(request)["messages"][1]
    elsewhere = OPENAI.encode(request)["messages"][1]

    assert (there["reasoning_content"], there["content"]) == ("Let me.", "")
    assert sorted(elsewhere) == ["role", "tool_calls"]


def test_signed_details_come_back_joined_and_unchanged() -> None:
    openrouter = ChatCompletions("m", "openrouter")
    pieces = [{"type": "reasoning.text", "index": 0, "text": "a", "format": "f"}]
    pieces += [
        {"type": "reasoning.text", "index": 0, "text": "b"},
        {"type": "reasoning.text", "index": 0, "signature": "s"},
    ]
    said = answer(
        openrouter, *(_delta(reasoning_details=[each]) for each in pieces), _delta(content="Hi."), _delta("stop")
    )
    message = said[0].assistant_message()
    assert message is not None

    sent = openrouter.encode(Request((user("?"), message, user("!")), ()))["messages"][1]

    joined = {"type": "reasoning.text", "index": 0, "text": "ab", "format": "f", "signature": "s"}
    assert sent == {"role": "assistant", "content": "Hi.", "reasoning_details": [joined]}


def test_a_request_says_all_there_is() -> None:
    picture = Media(MediaKind.IMAGE, "image/png", "QUJD", detail="low")
    call = ToolCall("t1.0", "look", {"where": "Köln"}, "c1")
    messages = (system("Be brief."), user("What is it?", picture), assistant("", (call,)), tool_answer("t1.0", "red"))
    tools = (Advert("look", "Looks.", {"type": "object"}),)

    body = OPENAI.encode(Request(messages, tools, 0.5, 9, {"tool_choice": "auto"}))

    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}},
                ],
            },
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"where":"Köln"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "red"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
            }
        ],
        "temperature": 0.5,
        "max_tokens": 9,
        "tool_choice": "auto",
    }


def test_ollama_is_told_not_to_think_in_the_member_that_it_reads() -> None:
    body = ChatCompletions("m", "ollama").encode(Request((user("Hi"),), ()))

    assert (body["reasoning_effort"], "think" in body) == ("none", False)


def test_ids_that_cannot_serve_are_made_of_ours() -> None:
    calls = tuple(ToolCall(f"t2.{n}", "x", {}, id) for n, id in enumerate(["", "same", "same"]))
    request = Request((user("Hi"), assistant("", calls), *(tool_answer(call.id, "1") for call in calls)), ())

    for adapter, wanted in (
        (OPENAI, ["t2_0", "same", "t2_2"]),
        (ChatCompletions("m", "mistral"), ["t00020000", "same", "t00020002"]),
    ):
        messages = adapter.encode(request)["messages"]
        assert [call["id"] for call in messages[1]["tool_calls"]] == wanted
        assert [message["tool_call_id"] for message in messages[2:]] == wanted
        assert adapter.refusal(request) is None


def test_arguments_that_are_no_object_are_refused_before_a_byte_is_made() -> None:
    call = ToolCall("t1.0", "x", [1])  # type: ignore[arg-type]

    with pytest.raises(RequestError) as caught:
        OPENAI.encode(Request((user("Hi"), assistant("", (call,)), tool_answer("t1.0", "1")), ()))
    assert (
        str(caught.value) == "OpenAI would refuse this request, because the arguments of call t1.0 are no JSON object"
    )
