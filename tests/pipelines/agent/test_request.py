"""The request: pure, in name order, and never with an answer parted from its call."""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.pipelines.agent.context import CharsPerToken, Context
from bargein.pipelines.agent.messages import Message, Role, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Advert, AgentSettings, Request, derive_request

ADVERTS = [Advert(name, f"Does {name}.", {"type": "object"}) for name in ("book", "cancel", "lookup")]
TALK = [
    user("one" * 4),
    assistant("", (ToolCall("t1.0", "book", {}), ToolCall("t1.1", "book", {}))),
    tool_answer("t1.0", "yes"),
    tool_answer("t1.1", "no"),
    assistant("two" * 4),
    user("three"),
    assistant("", (ToolCall("t2.0", "book", {}),)),
    tool_answer("t2.0", "yes"),
]


class Flat:
    """Ten tokens a message."""

    def tokens(self, message: Message) -> int:
        return 10


def test_a_request_holds_the_instructions_the_conversation_the_tools_and_the_settings() -> None:
    agent = AgentSettings("You book tables.", "small", 500, 0.5, 200, {"top_k": 3})
    assert derive_request(agent, TALK[:1], ADVERTS) == Request(
        (system("You book tables."), TALK[0]), tuple(ADVERTS), 0.5, 200, {"top_k": 3}
    )


def test_without_instructions_there_is_no_system_message_and_without_tools_none_is_named() -> None:
    assert derive_request(AgentSettings(), TALK[:1], []) == Request((TALK[0],), ())


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_tools_are_named_in_name_order_whatever_order_they_come_in(order: tuple[int, ...]) -> None:
    request = derive_request(AgentSettings(), TALK, [ADVERTS[at] for at in order])
    assert [advert.name for advert in request.tools] == ["book", "cancel", "lookup"]


def test_deriving_twice_gives_equal_requests_and_changes_nothing() -> None:
    agent = AgentSettings("Hi.", max_context_tokens=20)
    conversation, adverts = list(TALK), list(reversed(ADVERTS))
    before = deepcopy((conversation, adverts))
    first = derive_request(agent, conversation, adverts)
    assert derive_request(agent, conversation, adverts) == first
    assert (conversation, adverts) == before
    conversation.append(user("later"))
    assert first.messages[-1] == TALK[-1]


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (80, [0, 1, 2, 3, 4, 5, 6, 7]),
        (79, [5, 6, 7]),  # what the user said goes with all that answers it
        (29, [5, 6, 7]),  # what the user said last and the exchange under way always stay
        (0, [5, 6, 7]),
    ],
)
def test_the_oldest_exchanges_are_left_out_whole(budget: int, kept: list[int]) -> None:
    request = derive_request(AgentSettings(max_context_tokens=budget), TALK, [], Flat())
    assert list(request.messages) == [TALK[at] for at in kept]


def test_of_a_long_turn_the_oldest_rounds_are_left_out_whole() -> None:
    rounds = [assistant("", (ToolCall(f"t1.{n}", "book", {}), ToolCall(f"t1.{n + 1}", "book", {}))) for n in (0, 2, 4)]
    answers = [(tool_answer(f"t1.{n}", "yes"), tool_answer(f"t1.{n + 1}", "no")) for n in (0, 2, 4)]
    talk = [user("one"), *(each for n in range(3) for each in (rounds[n], *answers[n]))]

    request = derive_request(AgentSettings(max_context_tokens=70), talk, [], Flat())

    assert list(request.messages) == [talk[0], *talk[4:]]


def test_the_default_estimate_bounds_a_request() -> None:
    costs = [CharsPerToken().tokens(message) for message in TALK]
    fits = AgentSettings(max_context_tokens=sum(costs))
    assert len(derive_request(fits, TALK, []).messages) == len(TALK)
    short = AgentSettings(max_context_tokens=sum(costs) - 1)
    assert list(derive_request(short, TALK, []).messages) == TALK[5:]


def test_what_the_user_said_last_is_found_over_later_messages() -> None:
    assert derive_request(AgentSettings(), TALK, []).last_user_text == "three"
    assert derive_request(AgentSettings("Hi."), [assistant("Hello.")], []).last_user_text == ""


turns = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


@settings(deadline=None)
@given(turns, st.integers(0, 300))
def test_any_window_is_a_valid_conversation_that_ends_as_the_whole_does(
    plan: list[tuple[int, bool]], budget: int
) -> None:
    talk: list[Message] = []
    for epoch, (count, speaks) in enumerate(plan):
        calls = tuple(ToolCall(f"t{epoch}.{seq}", "f", {}) for seq in range(count))
        talk.append(user(f"turn {epoch}"))
        if calls:
            talk += [assistant("", calls), *(tool_answer(call.id, "ok") for call in calls)]
        if speaks:
            talk.append(assistant("Done."))
    request = derive_request(AgentSettings(max_context_tokens=budget), talk, [], Flat())
    context = Context()
    for message in request.messages:
        context.push(message)
    context.validate()
    assert request.messages[-1] == talk[-1]
    assert request.last_user_text == f"turn {len(plan) - 1}"
    # Only what has to stay may go over the budget: the last user message and the last exchange.
    last = next(at for at in range(len(talk) - 1, -1, -1) if talk[at].role is not Role.TOOL)
    stays = len(talk) - last + (talk[last].role is not Role.USER)
    assert 10 * len(request.messages) <= max(budget, 10 * stays)
