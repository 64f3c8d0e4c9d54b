"""Assembly: from deltas in any split and order to one response (tool contract, assembly)."""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.assembly import (
    MAX_BYTES,
    MAX_CALLS,
    SLOT_BYTES,
    AssembleError,
    BufferFull,
    ConflictingCallProviderData,
    ConflictingId,
    ConflictingName,
    ConflictingResponseProviderData,
    InvalidCall,
    Response,
    ResponseAssembler,
    TooManyCalls,
)
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import CallDelta, Delta, ResponseData, TextDelta
from bargein.pipelines.agent.messages import ToolCall, assistant, tool_answer


def assembled(deltas: Iterable[Delta], epoch: int = 1) -> Response:
    assembler = ResponseAssembler()
    for delta in deltas:
        assembler.feed(delta)
    return assembler.finish(epoch, Context())


# -- collecting -----------------------------------------------------------------------------------------------------


def test_each_sort_of_delta_finds_its_place_and_text_is_joined_over_fragments_in_between() -> None:
    response = assembled(
        [
            TextDelta("Let me"),
            CallDelta(0, "call_1", "book", '{"day":'),
            TextDelta(" look."),
            ResponseData({"thought": "abc"}),
            CallDelta(0, arguments='"friday"}', provider_data={"signature": 1}),
        ]
    )
    call = ToolCall("t1.0", "book", {"day": "friday"}, "call_1", {"signature": 1})
    assert response == Response("Let me look.", (call,), {"thought": "abc"})
    assert response.assistant_message() == assistant("Let me look.", (call,), {"thought": "abc"})


FIRST = '{"name":"Caf\\u00e9 \\"Å\\"","price":12.5,"tags":["a","b"],"ok":true}'
SECOND = '{"n":-1.5e3,"s":"\\\\"}'
EXPECTED = [
    {"name": 'Café "Å"', "price": 12.5, "tags": ["a", "b"], "ok": True},
    {"n": -1500.0, "s": "\\"},
]


@pytest.mark.parametrize("cut", range(max(len(FIRST), len(SECOND)) + 1))
def test_two_interleaved_calls_come_out_the_same_wherever_their_json_is_cut(cut: int) -> None:
    response = assembled(
        [
            CallDelta(0, "a", "f", FIRST[:cut]),
            CallDelta(1, "b", "g", SECOND[:cut]),
            CallDelta(1, arguments=SECOND[cut:]),
            CallDelta(0, arguments=FIRST[cut:]),
        ]
    )
    assert [call.arguments for call in response.calls if isinstance(call, ToolCall)] == EXPECTED


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), min_size=1, max_size=4), st.data())
def test_any_split_and_any_interleaving_gives_the_same_calls(wanted: list[dict[str, Any]], data: st.DataObject) -> None:
    rest = {index: dumps(arguments, ensure_ascii=False) for index, arguments in enumerate(wanted)}
    assembler = ResponseAssembler()
    for index in data.draw(st.permutations(list(rest))):
        assembler.feed(CallDelta(index, name=f"f{index}"))
    while rest:
        index = data.draw(st.sampled_from(sorted(rest)))
        size = data.draw(st.integers(1, 9))
        assembler.feed(CallDelta(index, arguments=rest[index][:size]))
        rest[index] = rest[index][size:]
        if not rest[index]:
            del rest[index]
    calls = assembler.finish(7, Context()).calls
    assert calls == tuple(ToolCall(f"t7.{at}", f"f{at}", arguments) for at, arguments in enumerate(wanted))


def test_calls_are_ordered_and_numbered_by_index_whatever_order_they_came_in() -> None:
    deltas = [CallDelta(index, f"call_{index}", f"f{index}", "{}") for index in (2, 0, 7)]
    assert [(call.id, call.name) for call in assembled(deltas, 4).calls] == [
        ("t4.0", "f0"),
        ("t4.1", "f2"),
        ("t4.2", "f7"),
    ]


def test_numbers_go_on_after_the_calls_that_the_context_holds() -> None:
    context = Context()
    context.push(assistant("", (ToolCall("t2.0", "f", {}), ToolCall("t2.1", "f", {}))))
    context.close_pending(lambda call: tool_answer(call.id, "ok"))
    assembler = ResponseAssembler()
    assembler.feed(CallDelta(0, name="f"))
    assert [call.id for call in assembler.finish(2, context).calls] == ["t2.2"]


def test_the_first_id_and_name_that_say_something_hold() -> None:
    deltas = [CallDelta(0, "", ""), CallDelta(0, "x"), CallDelta(0, "", "f"), CallDelta(0, "x", None, "{}")]
    assert assembled(deltas).calls == (ToolCall("t1.0", "f", {}, "x"),)


@pytest.mark.parametrize("arguments", ["", "  \n"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert assembled([CallDelta(0, "x", "f", arguments)]).calls == (ToolCall("t1.0", "f", {}, "x"),)


# -- refusals -------------------------------------------------------------------------------------------------------

OPEN = CallDelta(0, "x", "f", '{"a":', {"s": 1})


@pytest.mark.parametrize(
    ("delta", "kind", "message"),
    [
        (CallDelta(0, "y", arguments="{"), ConflictingId, "call 0 has the id x; y is another"),
        (CallDelta(0, "x", "g", "{"), ConflictingName, "call 0 has the name f; g is another"),
        (
            CallDelta(0, arguments="{", provider_data={"s": 2}),
            ConflictingCallProviderData,
            "call 0 already has other provider data",
        ),
        (ResponseData({"r": 2}), ConflictingResponseProviderData, "the response already has other provider data"),
    ],
)
def test_a_delta_that_contradicts_is_refused_and_changes_nothing(
    delta: Delta, kind: type[AssembleError], message: str
) -> None:
    assembler = ResponseAssembler()
    for each in (OPEN, ResponseData({"r": 1})):
        assembler.feed(each)
    with pytest.raises(kind) as caught:
        assembler.feed(delta)
    assert str(caught.value) == message
    for each in (CallDelta(0, "x", "f", "1}", {"s": 1}), CallDelta(0), ResponseData({"r": 1}), ResponseData(None)):
        assembler.feed(each)
    assert assembler.finish(1, Context()) == Response("", (ToolCall("t1.0", "f", {"a": 1}, "x", {"s": 1}),), {"r": 1})


def test_a_response_holds_256_kib_and_not_a_byte_more() -> None:
    assembler = ResponseAssembler()
    assert MAX_BYTES == 262_144
    assembler.feed(TextDelta("x" * (MAX_BYTES - 2)))
    assembler.feed(TextDelta("é"))
    with pytest.raises(BufferFull) as caught:
        assembler.feed(TextDelta("y"))
    assert str(caught.value) == "a response may hold 262144 bytes; 262144 are used and 1 more came"
    assert assembler.text == "x" * (MAX_BYTES - 2) + "é"


def test_names_ids_arguments_and_each_opened_call_cost_bytes() -> None:
    assembler = ResponseAssembler(max_bytes=SLOT_BYTES + 10)
    assembler.feed(CallDelta(0, "ab", "cd", "{}"))
    assembler.feed(CallDelta(0, "ab", "cd", "    "))
    for delta in (CallDelta(0, arguments=" "), CallDelta(1), TextDelta("x")):
        with pytest.raises(BufferFull):
            assembler.feed(delta)
    assert assembler.call_count == 1
    assert assembler.finish(1, Context()).calls == (ToolCall("t1.0", "cd", {}, "ab"),)


def test_a_flood_of_empty_fragments_is_bounded_by_what_opening_a_call_costs() -> None:
    assembler = ResponseAssembler(max_bytes=640)
    for index in range(10):
        assembler.feed(CallDelta(index))
        assembler.feed(CallDelta(index))
    with pytest.raises(BufferFull, match=r"^a response may hold 640 bytes; 640 are used and 64 more came$"):
        assembler.feed(CallDelta(10))
    assert assembler.call_count == 10


def test_provider_data_costs_what_it_takes_as_json() -> None:
    assembler = ResponseAssembler(max_bytes=100)
    assembler.feed(ResponseData("x" * 88))  # 90 bytes with its quotes
    assembler.feed(TextDelta("y" * 10))
    with pytest.raises(BufferFull):
        assembler.feed(TextDelta("y"))


def test_a_response_opens_32_calls_and_goes_on_filling_them() -> None:
    assembler = ResponseAssembler()
    assert MAX_CALLS == 32
    for index in range(32):
        assembler.feed(CallDelta(index, name="f"))
    with pytest.raises(TooManyCalls) as caught:
        assembler.feed(CallDelta(32, name="f"))
    assert str(caught.value) == "a response may ask for 32 calls; index 32 is one more"
    assembler.feed(CallDelta(5, arguments='{"a":1}'))
    calls = assembler.finish(1, Context()).calls
    assert (len(calls), calls[5]) == (32, ToolCall("t1.5", "f", {"a": 1}))


def test_both_bounds_can_be_set_together() -> None:
    assembler = ResponseAssembler(max_bytes=1_000, max_calls=2)
    for index in range(2):
        assembler.feed(CallDelta(index))
    with pytest.raises(TooManyCalls):
        assembler.feed(CallDelta(2))
    assembler.feed(TextDelta("x" * (1_000 - 2 * SLOT_BYTES)))
    with pytest.raises(BufferFull):
        assembler.feed(TextDelta("x"))


# -- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "name", "reason"),
    [
        (CallDelta(0, "x", None, '{"a":1}'), "unknown_tool", "the call has no name"),
        (
            CallDelta(0, "x", "f", '{"a":'),
            "f",
            "the arguments are not JSON: Expecting value: line 1 column 6 (char 5)",
        ),
        (CallDelta(0, "x", "f", "[1]"), "f", "the arguments are not a JSON object"),
        (CallDelta(0, "x", "f", '"{}"'), "f", "the arguments are not a JSON object"),
        (CallDelta(0, "x", "f", '{"a":NaN}'), "f", "the arguments are not JSON: NaN is not JSON"),
        (CallDelta(0, "x", "f", '{"a":-Infinity}'), "f", "the arguments are not JSON: -Infinity is not JSON"),
    ],
)
def test_a_call_that_cannot_be_read_keeps_its_id_its_text_and_the_reason(
    delta: CallDelta, name: str, reason: str
) -> None:
    delta.provider_data = {"signature": "abc"}
    response = assembled([delta])
    assert response.calls == (InvalidCall("t1.0", name, delta.arguments, reason, "x", {"signature": "abc"}),)
    recorded = ToolCall("t1.0", name, {}, "x", {"signature": "abc"})
    assert response.assistant_message() == assistant("", (recorded,))


@pytest.mark.parametrize("arguments", ['{"a":' + "[" * 100_000, '{"a":' + "9" * 5_000 + "}"], ids=["deep", "long"])
def test_hostile_arguments_are_an_invalid_call_like_any_other(arguments: str) -> None:
    (call,) = assembled([CallDelta(0, "x", "f", arguments)]).calls
    assert isinstance(call, InvalidCall)
    assert call.raw == arguments


def test_the_siblings_of_a_call_that_cannot_be_read_are_read_and_numbered_in_sequence() -> None:
    texts = ['{"a":1}', '{"a":', '{"a":3}']
    response = assembled([CallDelta(at, f"c{at}", "f", text) for at, text in enumerate(texts)], 4)
    assert [(call.id, type(call)) for call in response.calls] == [
        ("t4.0", ToolCall),
        ("t4.1", InvalidCall),
        ("t4.2", ToolCall),
    ]
    message = response.assistant_message()
    assert message is not None
    context = Context()
    context.push(message)
    context.close_pending(lambda call: tool_answer(call.id, "answered"))
    context.validate()


# -- the end --------------------------------------------------------------------------------------------------------


def test_nothing_is_read_before_the_end() -> None:
    assembler = ResponseAssembler()
    for delta in (CallDelta(0, "x", "f", "}{ no json"), CallDelta(0, arguments=" at all")):
        assembler.feed(delta)
    assert assembler.call_count == 1


@pytest.mark.parametrize(
    ("deltas", "exists"),
    [
        ([TextDelta("Hi.")], True),
        ([CallDelta(0, name="f")], True),
        ([ResponseData({"thought": "abc"})], False),
        ([], False),
        ([TextDelta("")], False),
    ],
)
def test_a_message_needs_text_or_a_call(deltas: list[Delta], exists: bool) -> None:
    assert (assembled(deltas).assistant_message() is not None) is exists


@pytest.mark.parametrize("end", ["finish", "cancel"])
def test_a_response_that_is_over_takes_and_gives_nothing_more(end: str) -> None:
    assembler = ResponseAssembler()
    context = Context()
    assembler.feed(TextDelta("Hi."))
    assembler.feed(CallDelta(0, name="f"))
    if end == "cancel":
        assembler.cancel()
        assert (assembler.text, assembler.call_count) == ("", 0)
    else:
        assembler.finish(1, context)
    for again in (lambda: assembler.feed(TextDelta("x")), lambda: assembler.finish(1, context), assembler.cancel):
        with pytest.raises(RuntimeError, match=r"^this response was finished or cancelled; start another assembler$"):
            again()
    assert list(context) == []
