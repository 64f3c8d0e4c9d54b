"""The scripted model: rounds in order, rules on the request that was sent, and ready-made behaviours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from bargein.models.latency import NEVER, Constant, Latency, Uniform
from bargein.models.llm_reading import Reading
from bargein.models.llm_script import (
    Choose,
    ScriptedModel,
    ScriptError,
    by_behaviour,
    by_rounds,
    by_rules,
)
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, tool_answer, user
from bargein.pipelines.agent.request import Request
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream


@dataclass
class Call:
    tool: str
    args: Any
    raw: str | None = None
    id: str | None = None


@dataclass
class Pace:
    every_us: int
    words: int


@dataclass
class Round:
    text: str = ""
    calls: tuple[Call, ...] = ()
    expect_user: str | None = None
    text_after: str = ""
    ttft: Latency | None = None
    delta: Pace | None = None
    fragments: str | int | None = None
    finish: str | None = None
    error: str | None = None


@dataclass
class Result:
    tool: str
    is_: str
    error: str | None = None


@dataclass
class When:
    user: str | None = None
    user_matches: str | None = None
    result: tuple[Result, ...] = ()
    last_reply: str | None = None
    epoch: int | None = None
    round: int | None = None


@dataclass
class Rule:
    when: When
    round: Round


@dataclass
class Behaviour:
    behaviour: str
    tool: str = "book"
    args: dict[str, Any] = field(default_factory=lambda: {"day": "friday"})
    ask: str = "Let me book that."
    done: str = "Done."
    failed: str = "It failed."
    waiting: str = "It is under way."


def reading(*messages: Message, epoch: int = 1, round: int = 1, said: tuple[str, ...] = ()) -> Reading:
    return Reading(Request(messages, ()), said, epoch, round)


# -- rounds ---------------------------------------------------------------------------------------------------------


def test_rounds_are_taken_in_order() -> None:
    rounds = [Round("One."), Round("Two.", expect_user="table")]
    choose = by_rounds(rounds)
    assert [choose(reading(user("A table for two."))) for _ in range(2)] == rounds


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, 'the model was asked a 1st time (turn 2, round 3, after "Hi."), and the script has 0 rounds'),
        (1, 'the model was asked a 2nd time (turn 2, round 3, after "Hi."), and the script has 1 round'),
        (2, 'the model was asked a 3rd time (turn 2, round 3, after "Hi."), and the script has 2 rounds'),
        (10, 'the model was asked a 11th time (turn 2, round 3, after "Hi."), and the script has 10 rounds'),
        (20, 'the model was asked a 21st time (turn 2, round 3, after "Hi."), and the script has 20 rounds'),
    ],
)
def test_a_request_after_the_last_round_is_a_fault_of_the_script(count: int, sentence: str) -> None:
    choose = by_rounds([Round("x")] * count)
    asked = reading(user("Hi."), epoch=2, round=3)
    for _ in range(count):
        choose(asked)
    with pytest.raises(ScriptError) as caught:
        choose(asked)
    assert caught.value.args == (sentence, "llm")


def test_a_round_that_expects_other_words_is_a_fault_at_its_place() -> None:
    choose = by_rounds([Round("One."), Round("Two.", expect_user="for three")])
    choose(reading(user("Hi.")))
    with pytest.raises(ScriptError) as caught:
        choose(reading(user("For two.")))
    assert caught.value.args == (
        'round 2 expects a request whose last user message holds "for three", and it was "For two."',
        "llm[1].expect_user",
    )


# -- rules ----------------------------------------------------------------------------------------------------------

BOOKED = (user("For two."), assistant("", (ToolCall("t1.0", "book", {}),)), tool_answer("t1.0", "ok"))
REFUSED = (*BOOKED[:2], tool_answer("t1.0", '{"error":"invalid_arguments"}', True))


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        (When(), True),
        (When(user="two"), True),
        (When(user="three"), False),
        (When(user_matches=r"^For t\w+\.$"), True),
        (When(user_matches=r"^two"), False),
        (When(epoch=1, round=2), True),
        (When(epoch=2), False),
        (When(round=1), False),
        (When(last_reply="none"), True),
        (When(last_reply="cut"), False),
        (When(result=(Result("book", "ok"),)), True),
        (When(result=(Result("book", "failed"),)), False),
        (When(result=(Result("book", "missing"),)), False),
        (When(result=(Result("look", "missing"), Result("book", "ok"))), True),
        (When(result=(Result("look", "ok"),)), False),
        (When(user="two", epoch=2), False),
    ],
)
def test_a_rule_fits_when_all_its_conditions_do(when: When, fits: bool) -> None:
    rule, other = Round("The rule's."), Round("The other.")
    choose = by_rules([Rule(when, rule)], other)
    assert choose(reading(*BOOKED, round=2)) is (rule if fits else other)


@pytest.mark.parametrize(("error", "fits"), [("invalid_arguments", True), ("timeout", False), (None, True)])
def test_a_rule_may_ask_for_one_kind_of_error(error: str | None, fits: bool) -> None:
    rule, other = Round("The rule's."), Round("The other.")
    choose = by_rules([Rule(When(result=(Result("book", "refused", error),)), rule)], other)
    assert choose(reading(*REFUSED)) is (rule if fits else other)


def test_of_several_calls_of_a_tool_the_newest_decides() -> None:
    rule, other = Round("The rule's."), Round("The other.")
    choose = by_rules([Rule(When(result=(Result("book", "ok"),)), rule)], other)
    again = (assistant("", (ToolCall("t1.1", "book", {}),)), tool_answer("t1.1", "ok"))
    assert choose(reading(*REFUSED)) is other
    assert choose(reading(*REFUSED, *again)) is rule


def test_the_first_rule_that_fits_answers() -> None:
    first, second = Round("First."), Round("Second.")
    assert by_rules([Rule(When(user="two"), first), Rule(When(), second)], None)(reading(*BOOKED)) is first


def test_a_request_that_no_rule_fits_is_a_fault_of_the_script() -> None:
    with pytest.raises(ScriptError) as caught:
        by_rules([Rule(When(user="three"), Round())], None)(reading(*BOOKED, epoch=4, round=2))
    assert caught.value.args == (
        'no rule fits the request of turn 4, round 2, after "For two."; an else: would answer it',
        "llm.rules",
    )


# -- behaviours -----------------------------------------------------------------------------------------------------

ASKED = BOOKED[:2]
RESULTS = {
    "nothing": (user("For two."),),
    "ok": BOOKED,
    "pending": (*ASKED, tool_answer("t1.0", '{"error":"interrupted"}', True)),
    "failed": (*ASKED, tool_answer("t1.0", '{"error":"tool_failed"}', True)),
    "refused": REFUSED,
    "ok, a turn ago": (*BOOKED, user("And?")),
    "ok, twice this turn": (
        *BOOKED,
        assistant("", (ToolCall("t1.1", "book", {}),)),
        tool_answer("t1.1", '{"error":"already_done"}', True),
    ),
}
ASK, DONE, FAILED, WAITING = "Let me book that.", "Done.", "It failed.", "It is under way."


@pytest.mark.parametrize(
    ("behaviour", "answers"),
    [
        ("naive", [ASK, DONE, ASK, ASK, ASK, DONE, DONE]),
        ("patient", [ASK, DONE, WAITING, FAILED, ASK, DONE, DONE]),
        ("repeats", [ASK, ASK, ASK, ASK, ASK, ASK, DONE]),
    ],
)
def test_a_behaviour_answers_what_it_reads(behaviour: str, answers: list[str]) -> None:
    choose: Choose = by_behaviour(Behaviour(behaviour))
    rounds = [choose(reading(*messages)) for messages in RESULTS.values()]
    assert [each.text for each in rounds] == answers
    for each in rounds:
        wanted = [("book", {"day": "friday"})] if each.text == ASK else []
        assert [(call.tool, call.args) for call in each.calls] == wanted


# -- serving --------------------------------------------------------------------------------------------------------


class Session:
    """A model on a bus, with every item it sends."""

    def __init__(self, *rounds: Round, ttft: Latency | None = None) -> None:
        self.clock = Clock()
        self.bus = EffectBus(self.clock)
        self.log: list[tuple[int, object]] = []
        self.stream = Stream(1, "llm")
        self.model = ScriptedModel(
            self.clock,
            by_rounds(rounds),
            ttft=ttft or Constant(100),
            every_us=20,
            words=1,
            fragments="whole",
            stream=self.stream,
        )
        self.bus.register("model", self.model)

    def ask(self, request: Request, scope: str = "t1") -> Effect:
        return self.bus.dispatch(
            EffectKind.COMPLETION,
            "model",
            request,
            scope=scope,
            on_item=lambda item: self.log.append((self.clock.now, item)),
            on_landed=lambda effect: self.log.append((self.clock.now, effect.outcome)),
        )


REQUEST = Request((user("For two."),), ())


def test_a_response_streams_text_then_calls_then_what_is_said_after_them() -> None:
    session = Session(Round("Let me", (Call("book", {"n": 2}),), text_after=" look."))
    session.ask(REQUEST)
    session.clock.run()
    assert session.log == [
        (100, TextDelta("Let")),
        (120, TextDelta(" me")),
        (140, CallDelta(0, "call_0", "book", '{"n":2}')),
        (160, TextDelta(" look.")),
        (160, StreamEnd("tool_calls")),
        (160, Outcome(Status.OK)),
    ]
    assert session.model.requests == [REQUEST]


def test_a_round_may_have_its_own_pace_end_and_failure() -> None:
    session = Session(
        Round("One two three.", ttft=Constant(7), delta=Pace(3, 2), finish="length"),
        Round("Oh", error="overloaded"),
    )
    session.ask(REQUEST)
    session.clock.run()
    session.ask(REQUEST)
    session.clock.run()
    assert session.log == [
        (7, TextDelta("One two")),
        (10, TextDelta(" three.")),
        (10, StreamEnd("length")),
        (10, Outcome(Status.OK)),
        (110, TextDelta("Oh")),
        (110, Outcome(Status.FAILED, "overloaded")),
    ]


def test_provider_ids_count_on_over_the_session() -> None:
    calls = (Call("book", {}), Call("look", {}))
    session = Session(Round(calls=calls), Round(calls=calls[:1]))
    for scope in ("t1", "t2"):
        session.ask(REQUEST, scope)
        session.clock.run()
    assert [item.id for _, item in session.log if isinstance(item, CallDelta)] == ["call_0", "call_1", "call_2"]


def test_a_model_that_hangs_lands_nothing_and_can_still_be_cancelled() -> None:
    session = Session(Round("Never."), ttft=NEVER)
    effect = session.ask(REQUEST)
    session.clock.run()
    assert (session.log, effect.running, session.clock.busy) == ([], True, False)


def test_rounds_are_counted_within_a_turn_and_replies_are_remembered_whole() -> None:
    seen: list[tuple[int, int, str]] = []
    session = Session()

    def choose(reading: Reading) -> Round:
        seen.append((reading.epoch, reading.round, reading.last_reply))
        return Round("Done, for two.")

    session.model._choose = choose
    for scope, context in (("t1", ()), ("t1", ("Done, for two.",)), ("t2", ("Done,",)), ("t10", ())):
        session.ask(Request((user("Hi."), *(assistant(text) for text in context)), ()), scope)
        session.clock.run()
    assert seen == [(1, 1, "none"), (1, 2, "heard"), (2, 1, "cut"), (10, 1, "unheard")]


def test_a_response_draws_once_from_the_models_own_stream() -> None:
    session = Session(Round("Hi."), Round("Hi.", ttft=Constant(5)), ttft=Uniform(1, 9))
    session.ask(REQUEST)
    assert session.stream.drawn == 1
    session.ask(REQUEST)
    assert session.stream.drawn == 1
