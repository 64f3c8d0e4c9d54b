"""Steering that a scenario declares: what is sent differs, and the conversation never does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bargein import sim
from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.messages import Message, ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Request
from bargein.pipelines.steering import Steering, SteeringRule, Where
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.replays import record, replay
from bargein.sim.lab.result import Result
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.loading import load_text
from bargein.sim.scenario.model import Scenario, ScenarioError, dump

LONG = "0123456789" * 20
TOOLS: dict[str, Any] = {
    "look": {"description": "Looks.", "result": LONG, "latency": "100ms"},
    "book": {"description": "Books.", "kind": "side_effect", "result": {"booked": True}, "latency": "100ms"},
}
LINES = [
    {"at": "0s", "level": "decision", "say": "Book it."},
    {"after": {"event": "playout.ended", "by": "1s"}, "level": "decision", "say": "And now?"},
]
LLM: list[dict[str, Any]] = [{"calls": [{"look": {}}, {"book": {}}]}, {"text": "Done."}, {"text": "Fine."}]

BOOK_IT, AND_NOW = user("Book it."), user("And now?")
ASKED = assistant("", (ToolCall("t1.0", "look", {}), ToolCall("t1.1", "book", {})))
LOOKED, BOOKED = tool_answer("t1.0", LONG), tool_answer("t1.1", '{"booked":true}')
FIRST = (BOOK_IT,)
SECOND = (*FIRST, ASKED, LOOKED, BOOKED)
THIRD = (*SECOND, assistant("Done."), AND_NOW)
CONTEXT = (*THIRD, assistant("Fine."))
BOTH = ("book", "look")


def scenario(*rules: Mapping[str, Any], **more: Any) -> Scenario:
    data = {"scenario": "steered", "agent": {"system": "Be brief."}, "tools": TOOLS, "caller": LINES, "llm": LLM}
    return Scenario.from_dict({**data, "steering": list(rules), **more})


def run(*rules: Mapping[str, Any], **more: Any) -> Result:
    result = sim.run(scenario(*rules, **more))
    assert result.violations == []
    return result


def requests(result: Result) -> list[Request]:
    return [each.payload for each in result.opened.session.bus.log if each.kind == "completion"]


def plain(message: Message) -> Message:
    """The message without what the provider calls its calls."""
    parts = [replace(part, provider_id="") if type(part) is ToolCall else part for part in message.parts]
    return replace(message, parts=tuple(parts))


def sent(result: Result) -> list[tuple[Any, ...]]:
    """Instructions, conversation, names of tools, temperature, bound and other fields of each request."""
    return [
        (
            each.messages[0].text,
            tuple([plain(message) for message in each.messages[1:]]),
            tuple([tool.name for tool in each.tools]),
            each.temperature,
            each.max_tokens,
            each.additional_params,
        )
        for each in requests(result)
    ]


def context(result: Result) -> tuple[Message, ...]:
    return tuple([plain(message) for message in result.opened.session.conversation.context.messages])


def settled(result: Result) -> list[tuple[str, str]]:
    return [(each["call"], each["outcome"]) for each in result.timeline if each["kind"] == "tool.settled"]


def served(result: Result) -> list[str]:
    return [each.key for each in result.opened.session.bus.log]


PLAIN: list[tuple[Any, ...]] = [("Be brief.", each, BOTH, None, None, {}) for each in (FIRST, SECOND, THIRD)]
MODEL, LOOK, BOOK = "agent/model:default", "agent/tool:look#0", "agent/tool:book#0"


def test_nothing_is_steered_where_no_rule_says_so() -> None:
    result = run()
    assert sent(result) == PLAIN
    assert context(result) == CONTEXT
    assert result.digest == sim.run(scenario()).digest
    assert "steering" not in scenario().to_dict()


# -- patches ------------------------------------------------------------------------------------------------------


def test_a_patch_is_in_every_request_and_in_no_message() -> None:
    patch = {"system": "Be long.", "temperature": 0.5, "max_tokens": 40, "extra": {"top_p": 1, "stop": ["x"]}}
    result = run({"patch": patch})
    extra = {"top_p": 1, "stop": ["x"]}
    assert sent(result) == [("Be long.", each, BOTH, 0.5, 40, extra) for each in (FIRST, SECOND, THIRD)]
    assert context(result) == CONTEXT


@pytest.mark.parametrize(
    ("when", "which"),
    [
        ({}, (0, 1, 2)),
        ({"epoch": 1}, (0, 1)),
        ({"epoch": 2}, (2,)),
        ({"round": 1}, (0, 2)),
        ({"round": 2}, (1,)),
        ({"epoch": 1, "round": 1}, (0,)),
        ({"epoch": 2, "round": 2}, ()),
    ],
)
def test_a_patch_is_for_the_turn_and_the_round_it_names_and_for_no_other(
    when: dict[str, int], which: tuple[int, ...]
) -> None:
    result = run({"when": when, "patch": {"temperature": 1}})
    assert [each.temperature for each in requests(result)] == [1 if at in which else None for at in range(3)]


def test_the_later_patch_has_the_last_word_extras_merge_and_tools_have_to_be_in_both() -> None:
    result = run(
        {"patch": {"system": "A.", "max_tokens": 5, "extra": {"a": 1, "b": 1}, "tools": ["look", "book"]}},
        {"when": {"epoch": 2}, "patch": {"system": "B.", "extra": {"b": 2}, "tools": ["book"]}},
    )
    assert sent(result) == [
        ("A.", FIRST, BOTH, None, 5, {"a": 1, "b": 1}),
        ("A.", SECOND, BOTH, None, 5, {"a": 1, "b": 1}),
        ("B.", THIRD, ("book",), None, 5, {"a": 1, "b": 2}),
    ]


def test_empty_instructions_are_none_for_the_request_that_a_patch_is_about() -> None:
    result = run({"when": {"epoch": 2}, "patch": {"system": ""}})
    assert requests(result)[2].messages[0] == BOOK_IT
    assert requests(result)[1].messages[0] == system("Be brief.")


def test_a_tool_that_a_patch_takes_off_the_offer_cannot_be_called_by_the_response() -> None:
    result = run({"when": {"round": 1}, "patch": {"tools": ["look"]}})
    assert [names for _, _, names, *_ in sent(result)] == [("look",), BOTH, ("look",)]
    assert settled(result) == [("t1.1", "unknown_tool"), ("t1.0", "ok")]
    assert served(result) == [MODEL, LOOK, MODEL, MODEL]


def test_no_tool_at_all_may_be_on_offer() -> None:
    result = run({"patch": {"tools": []}}, llm=[{"text": "Done."}, {"text": "Fine."}])
    assert [names for _, _, names, *_ in sent(result)] == [(), ()]


def test_the_confirming_call_is_on_offer_exactly_with_a_tool_that_needs_it() -> None:
    tools = {**TOOLS, "book": {**TOOLS["book"], "confirm": True}}
    rules = [
        {"when": {"epoch": 1}, "patch": {"tools": ["look"]}},
        {"when": {"epoch": 2}, "patch": {"tools": ["book"]}},
    ]
    result = run(*rules, tools=tools, llm=[{"text": "Done."}, {"text": "Fine."}])
    assert [names for _, _, names, *_ in sent(result)] == [("look",), ("book", "confirm_pending")]


def test_a_speculative_request_is_the_turns_own_and_is_steered_like_it() -> None:
    spoken = [{"at": "0s", "say": "Book it."}]
    result = run(
        {"when": {"epoch": 1, "round": 1}, "patch": {"temperature": 1}},
        {"deny": "book", "reason": "Closed."},
        caller=spoken,
        agent={"speculation": True},
        tools={**TOOLS, "look": {"latency": "10ms"}},
        llm={"rounds": LLM[:2], "ttft": "50ms"},
    )
    kinds = [each["kind"] for each in result.timeline]
    assert kinds.index("tool.held") < kinds.index("speculation.committed")
    assert [each.temperature for each in requests(result)] == [1, None]
    assert settled(result) == [("t1.0", "ok"), ("t1.1", "denied")]
    assert served(result) == [MODEL, LOOK, MODEL]


# -- denials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "answers", "outcomes", "left"),
    [
        ("look", (tool_answer("t1.0", "Not today."), BOOKED), [("t1.0", "denied"), ("t1.1", "ok")], BOOK),
        ("book", (LOOKED, tool_answer("t1.1", "Not today.")), [("t1.1", "denied"), ("t1.0", "ok")], LOOK),
    ],
)
def test_a_denied_call_is_answered_with_the_reason_and_leaves_no_record(
    tool: str, answers: tuple[Message, ...], outcomes: list[tuple[str, str]], left: str
) -> None:
    result = run({"deny": tool, "reason": "Not today."})
    assert sent(result)[1] == ("Be brief.", (BOOK_IT, ASKED, *answers), BOTH, None, None, {})
    assert context(result)[:4] == (BOOK_IT, ASKED, *answers)
    assert settled(result) == outcomes
    assert served(result) == [MODEL, left, MODEL, MODEL]
    assert tool not in [each["tool"] for each in result.timeline if each["kind"] == "tool.started"]


def test_a_denial_holds_where_its_rule_does_and_nothing_is_remembered_of_it() -> None:
    call: dict[str, Any] = {"calls": [{"book": {}}]}
    result = run(
        {"when": {"epoch": 1, "round": 1}, "deny": "book", "reason": "Wait."},
        llm=[call, call, {"text": "Done."}, {"text": "Fine."}],
    )
    assert settled(result) == [("t1.0", "denied"), ("t1.1", "ok")]
    assert served(result) == [MODEL, MODEL, BOOK, MODEL, MODEL]


def test_of_two_reasons_the_later_rules_is_told() -> None:
    result = run({"deny": "book", "reason": "One."}, {"deny": "book", "reason": "Two."})
    assert sent(result)[1][1][-1] == tool_answer("t1.1", "Two.")


def test_a_call_that_is_not_valid_is_told_so_and_not_that_it_is_denied() -> None:
    tools = {**TOOLS, "book": {**TOOLS["book"], "parameters": {"type": "object", "required": ["day"]}}}
    result = run({"deny": "book", "reason": "Closed."}, tools=tools)
    assert dict(settled(result))["t1.1"] == "invalid_arguments"


GATED = {**TOOLS, "book": {**TOOLS["book"], "confirm": True}}
CONFIRMING = [
    {"calls": [{"book": {}}]},
    {"text": "Shall I?"},
    {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]},
    {"text": "Fine."},
]


def test_a_gated_tool_that_is_denied_asks_nobody_to_confirm_it() -> None:
    result = run({"deny": "book", "reason": "Closed."}, tools=GATED, llm=[*CONFIRMING[:2], CONFIRMING[3]])
    assert settled(result) == [("t1.0", "denied")]
    assert "confirm.requested" not in [each["kind"] for each in result.timeline]


def test_a_call_that_was_confirmed_is_not_served_where_its_tool_is_denied() -> None:
    result = run({"when": {"epoch": 2}, "deny": "book", "reason": "Too late."}, tools=GATED, llm=CONFIRMING)
    assert settled(result) == [("t1.0", "confirmation_required"), ("t2.0", "denied")]
    assert served(result) == [MODEL] * 4
    assert sent(result)[3][1][-1] == tool_answer("t2.0", "Too late.")


# -- limits -------------------------------------------------------------------------------------------------------


def test_a_long_result_is_sent_as_head_and_tail_and_kept_whole() -> None:
    result = run({"limit": {"max_bytes": 21}})
    cut = tool_answer("t1.0", "0123456789\n[\u2026 179 bytes omitted \u2026]\n90123456789")
    assert [each[1] for each in sent(result)] == [
        FIRST,
        (BOOK_IT, ASKED, cut, BOOKED),
        (BOOK_IT, ASKED, cut, BOOKED, assistant("Done."), AND_NOW),
    ]
    assert context(result) == CONTEXT


def test_a_limit_is_for_the_requests_it_names_and_says_what_its_marker_says() -> None:
    result = run({"when": {"epoch": 2}, "limit": {"max_bytes": 4, "marker": "[-{omitted}-]"}})
    assert sent(result)[1][1] == SECOND
    assert sent(result)[2][1][2:4] == (tool_answer("t1.0", "01[-196-]89"), tool_answer("t1.1", '{"[-11-]e}'))


def test_of_two_limits_the_later_rules_holds_whatever_follows_it() -> None:
    limits = [{"limit": {"max_bytes": 4, "marker": marker}} for marker in ("-", "~")]
    result = run(*limits, {"patch": {"max_tokens": 9}})
    assert sent(result)[1][1][2:] == (tool_answer("t1.0", "01~89"), tool_answer("t1.1", '{"~e}'))


def test_what_is_cut_leaves_room_for_more_of_the_conversation() -> None:
    agent = {"system": "", "max_context_tokens": 40}
    tight, cut = run(agent=agent), run({"limit": {"max_bytes": 4, "marker": "-"}}, agent=agent)
    assert [len(each.messages) for each in requests(tight)] == [1, 4, 1]
    assert [len(each.messages) for each in requests(cut)] == [1, 4, 6]


# -- the session around it, and Python ------------------------------------------------------------------------------


RULES: list[dict[str, Any]] = [
    {"when": {"epoch": 2}, "patch": {"temperature": 0.5}},
    {"deny": "look", "reason": "Closed."},
    {"limit": {"max_bytes": 8}},
]


def test_a_steered_call_is_recorded_and_replayed() -> None:
    result, log = record(Plan(scenario(*RULES)))
    assert result.digest == sim.run(scenario(*RULES)).digest
    assert replay(log).result.digest == result.digest


def test_a_call_that_is_resumed_is_steered_from_there_on() -> None:
    saved = take_checkpoint(Plan(scenario(*RULES[1:])), When.parse("run.ended"))[2]
    going = sim.resume(saved, set={"steering": [{"patch": {"temperature": 1}}]}).result
    assert [each.temperature for each in requests(going)] == [None, None, 1]
    assert sent(going)[2][1][2:4] == (tool_answer("t1.0", "Closed."), BOOKED)


def test_steering_says_itself_and_is_read_back_equal() -> None:
    made = scenario(*RULES)
    assert made.to_dict()["steering"] == RULES
    assert load_text(dump(made)) == made
    changed = made.with_value("steering[0].patch.temperature", 1)
    assert [each.temperature for each in requests(sim.run(changed))] == [None, None, 1]


def test_a_rule_in_python_has_only_what_a_voice_session_sends() -> None:
    with pytest.raises(ValueError, match="has no tool choice, documents or other history; accepted are preamble,"):
        SteeringRule(patch=RequestPatch(tool_choice="none"))
    with pytest.raises(ValueError, match="book is denied without a reason; accepted is a text"):
        SteeringRule(deny="book")
    rule = SteeringRule(Where(round=2), deny="book", reason="No.")
    assert Steering((rule,)).at(3, 2).denied == {"book": "No."}
    assert Steering((rule,)).at(3, 1).denied == {}


# -- bad files ------------------------------------------------------------------------------------------------------

SHORT = "scenario: x\ntools: {look: {}, book: {kind: side_effect, confirm: true}}\n"

BAD = [
    ("{patch: {sytem: a}}", 'steering[0].patch.sytem: unknown key "sytem"; the nearest known one is "system"'),
    ("{patch: {}}", "steering[0].patch: found an empty mapping; accepted is a mapping with system, temperature, "
                    "max_tokens, extra and tools"),
    ("{patch: {temperature: 3}}", "steering[0].patch.temperature: found 3; accepted is a number from 0 to 2"),
    ("{patch: {max_tokens: 0}}", "steering[0].patch.max_tokens: found 0; accepted is a whole number, 1 or more"),
    ("{patch: {extra: [1]}}", "steering[0].patch.extra: found a list of 1; accepted is a mapping of what the "
                              "provider's request has besides"),
    ("{patch: {tools: [lok]}}", 'steering[0].patch.tools[0]: unknown tool "lok"; the nearest known one is "look"'),
    ("{patch: {tools: [confirm_pending]}}", 'steering[0].patch.tools[0]: "confirm_pending" goes with the tools that '
                                            "need it; accepted is one of these"),
    ("{deny: lok, reason: a}", 'steering[0].deny: unknown tool "lok"; the nearest known one is "look"'),
    ("{deny: look}", 'steering[0]: "look" is denied without a reason; accepted is a text, which the model reads'),
    ("{limit: {max_bytes: 9}, reason: a}", "steering[0].reason: there is nothing to deny; accepted is reason with "
                                           "deny"),
    ("{limit: {}}", 'steering[0].limit: the key "max_bytes" is missing; accepted is a mapping with max_bytes and '
                    "marker"),
    ("{limit: {max_bytes: 0}}", "steering[0].limit.max_bytes: found 0; accepted is a whole number, 1 or more"),
    ("{}", "steering[0]: it does nothing; accepted is one of patch, deny, limit or route"),
    ("{when: {epoch: 1}}", "steering[0]: it does nothing; accepted is one of patch, deny, limit or route"),
    ("{deny: look, reason: a, limit: {max_bytes: 9}}", "steering[0]: deny and limit are given together; accepted is "
                                                       "one of patch, deny, limit or route"),
    ("{when: {round: 0}, patch: {system: a}}", "steering[0].when.round: found 0; accepted is a whole number, 1 or "
                                               "more"),
    ("{when: {turn: 1}, patch: {system: a}}", 'steering[0].when.turn: unknown key "turn"; accepted is epoch or round'),
    ("{rout: fast}", 'steering[0].rout: unknown key "rout"; the nearest known one is "route"'),
    ("{route: fast}", 'steering[0].route: unknown model "fast"; accepted is default'),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "sentence"), BAD, ids=[rule for rule, _ in BAD])
def test_a_rule_that_cannot_be_is_refused_in_a_sentence_with_its_place(rule: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(f"{SHORT}steering:\n- {rule}\n", "bad.yaml")
    assert caught.value.sentences == (f"bad.yaml:4: {sentence}",)


@pytest.mark.parametrize("patch", [{"temperature": float("nan")}, {"extra": {"a": float("inf")}}], ids=str)
def test_a_number_that_json_cannot_say_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario({"patch": patch})
    assert caught.value.sentences == (
        f"steering[0].patch.{next(iter(patch))}: found what JSON cannot say; "
        "accepted is what a request can be sent with",
    )


def test_steering_beside_a_provider_that_is_sent_no_requests_is_refused() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text("scenario: x\ns2s: {provider: gemini_live}\nsteering: [{limit: {max_bytes: 9}}]\n", "bad.yaml")
    assert caught.value.sentences == (
        "bad.yaml:3: steering: it stands beside s2s, whose provider is sent no requests; accepted is one of them",
    )
