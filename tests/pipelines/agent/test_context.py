"""The context: every call answered once and in its place, nothing empty, no id twice (tool contract, messages)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.context import CharsPerToken, Context, ContextError
from bargein.pipelines.agent.messages import Message, Role, Text, ToolCall, assistant, system, tool_answer, user

C0, C1 = ToolCall("t1.0", "lookup", {"city": "Oslo"}), ToolCall("t1.1", "lookup", {"city": "Rome"})


def pushed(*messages: Message) -> Context:
    context = Context()
    for message in messages:
        context.push(message)
    return context


class Tape:
    """Writes down what a listener is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def pushed(self, mid: int, message: Message) -> None:
        self.heard.append(("pushed", mid, message.role))

    def truncated(self, mid: int, text: str) -> None:
        self.heard.append(("truncated", mid, text))

    def removed(self, mid: int) -> None:
        self.heard.append(("removed", mid))


# -- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [assistant("", (C0, C1)), tool_answer("t1.0", "a"), tool_answer("t1.1", "b"), user("thanks")],
        [assistant("", (C0, C1)), tool_answer("t1.1", "b"), tool_answer("t1.0", "a"), system("note")],
        [assistant("Looking.", (C0,)), tool_answer("t1.0", "a"), assistant("One moment."), assistant("Sunny.")],
    ],
    ids=["issue order", "any other order", "two assistant messages in a row"],
)
def test_calls_answered_directly_after_the_message_that_asked_are_valid(messages: list[Message]) -> None:
    context = pushed(*messages)
    context.validate()
    assert (list(context), len(context), context.open_calls) == (messages, len(messages), ())


@pytest.mark.parametrize(
    ("messages", "refused", "why"),
    [
        (
            [assistant("", (C0, C1)), tool_answer("t1.0", "a")],
            user("hello?"),
            "call t1.1 has no answer yet; the user message has to wait",
        ),
        (
            [assistant("", (C0, C1)), tool_answer("t1.0", "a")],
            system("note"),
            "call t1.1 has no answer yet; the system message has to wait",
        ),
        ([assistant("", (C0,))], assistant("So."), "call t1.0 has no answer yet; the assistant message has to wait"),
        (
            [assistant("", (C0,)), tool_answer("t1.0", "a")],
            tool_answer("t1.0", "a"),
            "call t1.0 was answered before; a tool message answers an open call",
        ),
        ([user("hi")], tool_answer("t9.9", "a"), "call t9.9 was never asked; a tool message answers an open call"),
        ([], Message(Role.TOOL, (Text("a"),)), "a tool message needs the result of a call"),
        ([], assistant(""), "an assistant message without text and without calls is left out"),
        (
            [],
            assistant("", (), {"signature": "abc"}),
            "an assistant message without text and without calls is left out",
        ),
        (
            [],
            Message(Role.ASSISTANT, (Text(""),)),
            "an assistant message without text and without calls is left out",
        ),
        (
            [assistant("", (C0,)), tool_answer("t1.0", "a")],
            assistant("", (C1, C0)),
            "call id t1.0 is taken; ids are never reused in a session",
        ),
        ([], assistant("", (C0, C0)), "call id t1.0 is taken; ids are never reused in a session"),
    ],
)
def test_a_push_that_breaks_a_rule_is_refused_and_changes_nothing(
    messages: list[Message], refused: Message, why: str
) -> None:
    tape = Tape()
    context = Context(tape)
    for message in messages:
        context.push(message)
    before = (list(context), context.open_calls, context.next_call_ids(1, 3), list(tape.heard))
    with pytest.raises(ContextError) as caught:
        context.push(refused)
    assert str(caught.value) == why
    assert (list(context), context.open_calls, context.next_call_ids(1, 3), tape.heard) == before


def test_the_whole_conversation_is_checked_from_its_start() -> None:
    context = pushed(assistant("", (C0,)))
    with pytest.raises(ContextError, match=r"^call t1\.0 has no answer$"):
        context.validate()
    context.push(tool_answer("t1.0", "a"))
    context.validate()
    context.messages.reverse()
    with pytest.raises(ContextError, match=r"^call t1\.0 was never asked; a tool message answers an open call$"):
        context.validate()


def test_closing_answers_each_open_call_once_and_makes_the_next_message_legal() -> None:
    context = pushed(assistant("", (C0, C1)), tool_answer("t1.0", "a"))

    def interrupted(call: ToolCall) -> Message:
        return tool_answer(call.id, '{"error":"interrupted"}', True)

    assert context.close_pending(interrupted) == (C1,)
    assert context.close_pending(interrupted) == ()
    context.push(user("Wait."))
    context.validate()
    assert list(context)[2:] == [tool_answer("t1.1", '{"error":"interrupted"}', True), user("Wait.")]


def test_a_late_note_cannot_stand_between_a_call_and_its_answer() -> None:
    context = pushed(assistant("", (C0,)))
    note = system("It was booked.", tells="t0.0")
    with pytest.raises(ContextError):
        context.push(note)
    context.push(tool_answer("t1.0", "a"))
    context.push(note)
    context.validate()
    assert context.messages[-1] == note


# -- ids ------------------------------------------------------------------------------------------------------------


def test_ids_count_over_every_call_of_a_turn_and_begin_anew_in_the_next() -> None:
    context = Context()

    def respond(epoch: int, count: int) -> list[str]:
        ids = context.next_call_ids(epoch, count)
        context.push(assistant("", tuple(ToolCall(each, "f", {}) for each in ids)))
        context.close_pending(lambda call: tool_answer(call.id, "ok"))
        return ids

    assert respond(3, 2) == ["t3.0", "t3.1"]
    assert respond(3, 1) == ["t3.2"]
    assert respond(4, 1) == ["t4.0"]
    assert respond(3, 1) == ["t3.3"]
    context.validate()


def test_ids_minted_twice_before_a_push_clash_when_the_second_is_pushed() -> None:
    context = Context()
    first, second = context.next_call_ids(2, 1), context.next_call_ids(2, 1)
    assert first == second == ["t2.0"]
    context.push(assistant("", (ToolCall(first[0], "f", {}, "call_1"),)))
    context.push(tool_answer("t2.0", "ok"))
    with pytest.raises(ContextError, match=r"^call id t2\.0 is taken; ids are never reused in a session$"):
        context.push(assistant("", (ToolCall(second[0], "f", {}, "call_1"),)))


def test_two_calls_with_one_provider_id_are_two_calls() -> None:
    context = pushed(assistant("", (ToolCall("t1.0", "f", {}, "call_1"), ToolCall("t1.1", "f", {}, "call_1"))))
    assert [(call.id, call.provider_id) for call in context.open_calls] == [("t1.0", "call_1"), ("t1.1", "call_1")]


# -- truncation -----------------------------------------------------------------------------------------------------


def test_an_assistant_message_is_cut_to_what_was_heard() -> None:
    tape = Tape()
    context = Context(tape)
    context.push(user("For two."))
    mid = context.push(assistant("Let me book that.", (C0,), {"signature": 1}))
    context.truncate(mid, "Let me")
    context.truncate(mid, "Let me")
    assert context.messages[1] == assistant("Let me", (C0,), {"signature": 1})
    assert tape.heard == [("pushed", 0, "user"), ("pushed", 1, "assistant"), ("truncated", 1, "Let me")]


def test_with_nothing_heard_the_calls_stay() -> None:
    context = pushed(assistant("Let me book that.", (C0,)), tool_answer("t1.0", "a"))
    context.truncate(0, "")
    assert list(context) == [assistant("", (C0,)), tool_answer("t1.0", "a")]
    context.validate()


def test_with_nothing_heard_and_no_calls_the_message_is_gone_and_the_others_keep_their_numbers() -> None:
    tape = Tape()
    context = Context(tape)
    for message in (user("Hi."), assistant("Hello there."), user("Wait."), assistant("Yes, go on.")):
        context.push(message)
    context.truncate(1, "")
    context.truncate(3, "Yes,")
    assert list(context) == [user("Hi."), user("Wait."), assistant("Yes,")]
    assert tape.heard[-2:] == [("removed", 1), ("truncated", 3, "Yes,")]
    assert context.push(user("And?")) == 4


# -- tokens ---------------------------------------------------------------------------------------------------------


def test_the_estimate_is_bytes_over_four_rounded_down_and_four_a_message() -> None:
    assert pushed(user("x" * 8), user("y" * 40)).tokens() == (2 + 4) + (10 + 4)
    assert pushed(user("x" * 11)).tokens() == 2 + 4
    assert pushed(user("é" * 4)).tokens() == 2 + 4
    assert pushed(assistant("", (ToolCall("t1.0", "look", {}),)), tool_answer("t1.0", "x" * 12)).tokens() == (
        (4 + 2) // 4 + 4 + 3 + 4
    )


def test_half_a_surrogate_pair_has_a_cost_too() -> None:
    assert CharsPerToken().tokens(user("\ud83d" * 4)) == 12 // 4 + 4


def test_another_estimator_is_used_instead() -> None:
    class Flat:
        def tokens(self, message: Message) -> int:
            return 100

    context = Context(estimator=Flat())
    context.push(user("Hi."))
    context.push(user("Hi."))
    assert context.tokens() == 200


# -- any sequence ---------------------------------------------------------------------------------------------------

moves = st.one_of(
    st.sampled_from([user("u"), system("s"), assistant("a")]).map(lambda message: ("push", message)),
    st.lists(st.integers(0, 5), min_size=1, max_size=3).map(
        lambda seqs: ("push", assistant("", tuple(ToolCall(f"t1.{seq}", "f", {}) for seq in seqs)))
    ),
    st.integers(0, 5).map(lambda seq: ("push", tool_answer(f"t1.{seq}", "ok"))),
    st.integers(0, 9).map(lambda at: ("cut", at)),
    st.just(("close", None)),
)


@settings(deadline=None)
@given(st.lists(moves, max_size=25))
def test_whatever_is_tried_the_conversation_stays_valid(tried: list[tuple[str, object]]) -> None:
    context = Context()
    mids: list[int] = []
    for what, argument in tried:
        if what == "push":
            assert isinstance(argument, Message)
            before = list(context)
            try:
                mid = context.push(argument)
            except ContextError:
                assert list(context) == before
            else:
                if argument.role is Role.ASSISTANT and not argument.calls:
                    mids.append(mid)
        elif what == "cut" and mids:
            context.truncate(mids.pop(), "")
        elif what == "close":
            context.close_pending(lambda call: tool_answer(call.id, "closed", True))
        answered = Context()
        for message in context:
            answered.push(message)
        assert answered.open_calls == context.open_calls
