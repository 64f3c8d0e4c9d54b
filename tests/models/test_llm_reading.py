"""What a scripted model reads in a request: the user, its calls' fate, and what became of its last reply."""

from __future__ import annotations

import pytest

from bargein.models.llm_reading import Reading
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Request
from bargein.pipelines.wordings import LATE_NOTE


def reading(*messages: Message, said: tuple[str, ...] = ()) -> Reading:
    return Reading(Request(messages, ()), said, 1, 1)


BOOK = ToolCall("t1.0", "book", {})


def error(kind: str) -> Message:
    return tool_answer("t1.0", f'{{"error":"{kind}","detail":"x"}}', True)


def note(content: str) -> Message:
    return system(LATE_NOTE.format(tool="book", call="t1.0", content=content))


@pytest.mark.parametrize(
    ("after", "states", "kind"),
    [
        ([], set(), ""),
        ([tool_answer("t1.0", '{"id":1}')], {"ok"}, ""),
        ([tool_answer("t1.0", '{"error":"no real one"}')], {"ok"}, ""),
        ([error("tool_failed")], {"failed"}, "tool_failed"),
        ([error("result_too_large")], {"failed"}, "result_too_large"),
        ([error("unknown_outcome")], {"failed"}, "unknown_outcome"),
        ([error("invalid_arguments")], {"refused"}, "invalid_arguments"),
        ([error("timeout")], {"pending"}, "timeout"),
        ([error("interrupted")], {"pending", "interrupted"}, "interrupted"),
        ([error("duplicate_call")], {"pending", "refused"}, "duplicate_call"),
        ([error("interrupted"), note('{"id":1}')], {"interrupted", "note", "ok"}, "interrupted"),
        ([error("timeout"), note('{"error":"tool_failed"}')], {"note", "failed"}, "timeout"),
    ],
)
def test_the_state_of_a_call_is_all_that_is_true_of_it(after: list[Message], states: set[str], kind: str) -> None:
    (call,) = reading(user("For two."), assistant("", (BOOK,)), *after).calls_of("book")
    assert (call.states, call.error, call.in_turn) == (states, kind, True)
    assert call.success is ("ok" in states)


def test_calls_are_listed_oldest_first_and_those_of_this_turn_are_marked() -> None:
    later = ToolCall("t2.0", "book", {})
    other = ToolCall("t2.1", "look", {})
    talk = reading(
        user("For two."),
        assistant("", (BOOK,)),
        tool_answer("t1.0", "ok"),
        user("For three."),
        assistant("", (later, other)),
        tool_answer("t2.0", "ok"),
        tool_answer("t2.1", "ok"),
    )
    assert [(each.call.id, each.in_turn) for each in talk.calls_of("book")] == [("t1.0", False), ("t2.0", True)]
    assert talk.calls_of("cancel") == []
    assert talk.user == "For three."


def test_the_answer_to_another_call_is_not_its_own() -> None:
    other = ToolCall("t1.1", "book", {})
    first, second = reading(
        assistant("", (BOOK, other)), error("timeout"), tool_answer("t1.1", "ok"), note('{"id":1}')
    ).calls_of("book")
    assert (first.states, second.states) == ({"note", "ok"}, {"ok"})


@pytest.mark.parametrize(
    ("said", "context", "fate"),
    [
        ((), (), "none"),
        (("Done, for two.",), ("Done, for two.",), "heard"),
        (("Done, for two.",), ("Done, for",), "cut"),
        (("Done, for two.",), (), "unheard"),
        (("Hello.", "Done, for two."), ("Hello.",), "unheard"),
    ],
)
def test_the_fate_of_the_last_reply_is_read_from_the_context(
    said: tuple[str, ...], context: tuple[str, ...], fate: str
) -> None:
    assert reading(user("Hi."), *(assistant(text) for text in context), said=said).last_reply == fate
