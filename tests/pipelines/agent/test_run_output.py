"""Structured answers: how they are asked for, the pinned sentences, and when the model is asked again."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from bargein.pipelines import wordings
from bargein.pipelines.agent.answers import Answer
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.output_modes import permits, resolve_output
from bargein.pipelines.agent.parts import ReasoningPart, TextPart
from bargein.pipelines.agent.run_settings import (
    Document,
    InvalidCalls,
    ModelDescriptor,
    OutputMode,
    OutputSpec,
    OutputToolConfig,
    Settings,
    Unhandled,
    specification,
)
from tests.pipelines.agent.run_kit import SCHEMA, World, call, calls, failure, output, text

AUGMENTATION = (
    "When you have gathered enough information to answer, call the `final_result` tool exactly once with your final "
    "answer. Its arguments are the structured result and must satisfy the required schema. Do not return the final "
    "answer as plain text."
)
TEXT_REPROMPT = (
    "Provide your final answer by calling the `final_result` tool with the structured result as its arguments, not as "
    "plain text."
)
MISSING = (
    "The `final_result` arguments were missing required field(s): day, people. Call `final_result` again with every "
    "required field."
)
WHOLE = call("final_result", day="friday", people=2)
TOOL = OutputSpec(SCHEMA, OutputMode.TOOL)


def tool_world(*script: Any, **settings: Any) -> World:
    return World(*script, **({"output": TOOL, "max_turns": 3} | settings))


# -- resolving ---------------------------------------------------------------------------------------------------


def test_every_combination_resolves_and_none_to_auto() -> None:
    flags = (False, True)
    found = {inputs: resolve_output(*inputs) for inputs in product(OutputMode, flags, flags, flags, flags)}
    assert len(found) == 64
    for (mode, schema, tools, may, composes), resolved in found.items():
        if not schema or mode is OutputMode.NATIVE:
            assert resolved is OutputMode.NATIVE
        elif mode is OutputMode.PROMPTED:
            assert resolved is OutputMode.PROMPTED
        elif mode is OutputMode.TOOL:
            assert resolved is (OutputMode.TOOL if may else OutputMode.NATIVE)
        else:
            assert resolved is (OutputMode.TOOL if tools and may and not composes else OutputMode.NATIVE)


@pytest.mark.parametrize(
    ("choice", "may"),
    [
        (None, True),
        ("auto", True),
        ("required", True),
        ("none", False),
        ({"specific": {"function_names": ["final_result"]}}, True),
        ({"specific": {"function_names": ["add"]}}, False),
    ],
)
def test_a_tool_choice_permits_the_output_tool_or_does_not(choice: Any, may: bool) -> None:
    assert permits(choice, "final_result") is may
    world = tool_world(Answer((WHOLE,)), tool_choice=choice)
    world.run()
    assert ([tool["name"] for tool in world.request(1)["tools"]] == ["final_result"]) is may


@pytest.mark.parametrize("mode", list(OutputMode))
def test_without_a_schema_every_mode_is_plain_text(mode: OutputMode) -> None:
    world = World(text("hi"), output=OutputSpec(None, mode), output_tool=OutputToolConfig("submit"))
    world.run()
    assert (world.said(1), world.request(1)["tools"], world.request(1)["output_schema"]) == (
        [("user", "hello")],
        [],
        None,
    )


@pytest.mark.parametrize(("composes", "tools"), [(True, 1), (False, 0)])
def test_auto_is_native_where_the_model_composes_or_has_no_tools(composes: bool, tools: int) -> None:
    world = World(text("hi"), output=OutputSpec(SCHEMA))
    world.agent.model = ModelDescriptor("golden/model:default", composes)
    if tools:
        world.tool("add")
    world.run()
    assert world.request(1)["output_schema"] == SCHEMA
    assert [name["name"] for name in world.request(1)["tools"]] == ["add"] * tools
    assert world.said(1) == [("user", "hello")]


def test_auto_goes_through_the_tool_where_the_model_does_not_compose() -> None:
    world = World(Answer((WHOLE,)), output=OutputSpec(SCHEMA))
    world.tool("add")
    world.run()
    assert [tool["name"] for tool in world.request(1)["tools"]] == ["add", "final_result"]
    assert world.request(1)["output_schema"] is None


def test_native_sends_the_schema_as_it_stands() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {}}}
    world = World(text("hi"), output=OutputSpec(schema, OutputMode.NATIVE))
    world.tool("add")
    world.run()
    assert list(world.request(1)["output_schema"]["properties"]) == ["z", "a"]
    assert world.said(1) == [("user", "hello")]


def test_the_tool_under_choice_none_degrades_to_native_and_a_call_is_invalid() -> None:
    world = tool_world(Answer((WHOLE,)), tool_choice="none")
    run = world.run()
    assert (world.request(1)["tools"], world.request(1)["output_schema"], world.request(1)["tool_choice"]) == (
        [],
        SCHEMA,
        "none",
    )
    assert failure(run) == "UnknownToolCall"


def test_prompted_says_it_in_words_and_checks_nothing() -> None:
    schema = {"b": 1, "a": {"d": 2, "c": 3}}
    world = World(text("not an object"), output=OutputSpec(schema, OutputMode.PROMPTED))
    run = world.run()
    said = (
        "Respond with ONLY a single JSON object that conforms to this JSON Schema. Do not include any prose, "
        'explanation, or markdown code fences.\n{"a":{"c":3,"d":2},"b":1}'
    )
    assert world.said(1)[0] == ("system", said)
    assert (world.request(1)["tools"], world.request(1)["output_schema"], output(run)) == ([], None, "not an object")


def test_the_mode_of_a_round_stays_once_it_is_folded() -> None:
    world = tool_world(text("x"), Answer((TextPart("y"),)))

    def change(moment: Any) -> None:
        if moment.turn.number == 1:
            moment.run.settings.output = OutputSpec(SCHEMA, OutputMode.NATIVE)

    world.on(At.REQUEST_FOLDED, change)
    run = world.run()
    assert world.said(2)[-1] == ("user", TEXT_REPROMPT)
    assert (world.request(2)["output_schema"], output(run)) == (SCHEMA, "y")


# -- the output tool ---------------------------------------------------------------------------------------------


def test_the_output_tool_in_its_pinned_words() -> None:
    world = tool_world(Answer((WHOLE,)), preamble="P")
    world.run()
    assert world.request(1)["tools"] == [
        {
            "name": "final_result",
            "description": "Call this tool exactly once with your final answer when you are done. Its arguments are "
            "the structured result and must satisfy the output schema.",
            "parameters": SCHEMA,
        }
    ]
    assert world.said(1)[0] == ("system", f"P\n\n{AUGMENTATION}")


def test_an_augmentation_without_a_preamble_is_the_whole_system_message() -> None:
    world = tool_world(Answer((WHOLE,)))
    world.run()
    assert world.said(1)[0] == ("system", AUGMENTATION)


@pytest.mark.parametrize(
    ("granted", "name"),
    [(["final_result"], "final_result_1"), (["final_result", "final_result_1"], "final_result_2")],
)
def test_a_taken_name_is_numbered(granted: list[str], name: str) -> None:
    world = tool_world(Answer((call(name, day=1, people=2),)), output_tool=OutputToolConfig(description="D"))
    for each in granted:
        world.tool(each)
    world.run()
    last = world.request(1)["tools"][-1]
    assert (last["name"], last["description"]) == (name, "D")
    assert f"`{name}`" in world.said(1)[0][1]


def test_a_configuration_is_the_runs_or_else_the_agents_and_a_default_one_resets_it() -> None:
    config = OutputToolConfig("submit", "D", False)
    world = tool_world(Answer((call("submit", day=1, people=2),)), Answer((WHOLE,)), output_tool=config, preamble="P")
    world.run()
    world.run(settings=Settings(output_tool=OutputToolConfig()))
    assert [(world.request(at)["tools"][0]["name"], world.said(at)[0][1]) for at in (1, 2)] == [
        ("submit", "P"),
        ("final_result", f"P\n\n{AUGMENTATION}"),
    ]
    assert world.request(1)["tools"][0]["description"] == "D"


@pytest.mark.parametrize("mode", [OutputMode.NATIVE, OutputMode.PROMPTED, OutputMode.TOOL])
def test_a_reserved_name_means_the_tool_whatever_was_asked_for(mode: OutputMode) -> None:
    world = World(
        Answer((call("submit", day=1, people=2),)),
        output=OutputSpec(SCHEMA, mode),
        output_tool=OutputToolConfig("submit"),
        tool_choice="none",
    )
    world.run()
    assert [tool["name"] for tool in world.request(1)["tools"]] == ["submit"]


def test_a_reserved_name_that_a_tool_has_fails_the_run_before_any_request() -> None:
    world = tool_world(output_tool=OutputToolConfig("add"))
    world.tool("add")
    assert (failure(world.run()), world.records) == ("OutputToolCollision", "")


def test_a_tool_granted_later_under_the_minted_name_fails_the_next_round() -> None:
    world = tool_world(text("x"))
    world.on(At.REQUEST_FOLDED, lambda _: world.tool("final_result"))
    assert (failure(world.run()), world.records) == ("OutputToolCollision", "C")


def test_a_minted_name_stays_whatever_the_configuration_says_later() -> None:
    world = tool_world(text("x"), Answer((WHOLE,)))

    def rename(moment: Any) -> None:
        moment.run.settings.output_tool = OutputToolConfig("submit")

    world.on(At.REQUEST_FOLDED, rename)
    run = world.run()
    assert [world.request(at)["tools"][-1]["name"] for at in (1, 2)] == ["final_result", "final_result"]
    assert run.output_tool == "final_result"


def test_a_specification_has_its_fields_and_no_more() -> None:
    bare = specification(World().agent)
    assert bare == {
        "preamble": None,
        "static_context": [],
        "additional_params": None,
        "max_tokens": None,
        "temperature": None,
        "tool_choice": None,
        "max_turns": 1,
        "max_invalid_tool_call_retries": 0,
        "output_schema": None,
        "output_mode": "Auto",
        "output_tool_name": None,
        "output_tool_description": None,
        "augment_output_preamble": True,
        "unhandled_invalid_tool_call": "fail",
    }
    agent = World(options={"a": 1}, provider_options={"x": {}}).agent
    agent.context.append(Document("d", "t", {"lang": "en"}))
    run = Settings(max_turns=4, options={"b": 2}, invalid_calls=InvalidCalls(Unhandled.IGNORE, 2))
    changed = {key: value for key, value in specification(agent, run).items() if bare.get(key) != value}
    assert changed == {
        "static_context": [{"id": "d", "text": "t", "lang": "en"}],
        "max_turns": 4,
        "max_invalid_tool_call_retries": 2,
        "unhandled_invalid_tool_call": "ignore",
        "options": {"a": 1, "b": 2},
        "provider_options": {"x": {}},
    }


@pytest.mark.parametrize(
    "config", [OutputToolConfig("n"), OutputToolConfig(description="d"), OutputToolConfig(augment=False)]
)
def test_each_field_of_the_configuration_makes_another_program(config: OutputToolConfig) -> None:
    assert specification(World(output_tool=config).agent) != specification(World().agent)


# -- reading it --------------------------------------------------------------------------------------------------


def test_the_output_tools_arguments_are_the_answer_and_history_keeps_them_as_text() -> None:
    world = tool_world(Answer((ReasoningPart("hm", "xyz"), WHOLE)))
    run = world.run()
    assert output(run) == '{"day":"friday","people":2}'
    assert run.messages[-1].parts == (ReasoningPart("hm", "xyz"), TextPart('{"day":"friday","people":2}'))
    assert world.bus.bus.log[0].outcome.value.parts[1] == WHOLE
    assert run.turn.commit is None


def test_missing_fields_are_asked_for_once_as_the_result_of_the_call() -> None:
    world = tool_world(Answer((call("final_result"),)), Answer((WHOLE,)))
    run = world.run()
    assert world.request(2)["chat_history"][-1]["content"] == [
        {
            "type": "tool_result",
            "call_id": "c1",
            "items": [{"type": "text", "text": MISSING}],
            "name": "final_result",
            "provider_id": "p-c1",
        }
    ]
    assert (output(run), run.output_retries, world.records) == ('{"day":"friday","people":2}', 1, "C C")
    assert run.history.statuses(3 - 1) == ("Skipped",)


def test_text_in_place_of_the_tool_is_asked_again_as_a_user() -> None:
    world = tool_world(text("on friday"), Answer((WHOLE,)))
    world.run()
    assert world.said(2)[2:] == [("assistant", "on friday"), ("user", TEXT_REPROMPT)]


def test_json_text_with_every_required_field_is_the_answer() -> None:
    world = tool_world(text('{"people":1,"day":2}'))
    assert (output(world.run()), world.records) == ('{"people":1,"day":2}', "C")


def test_one_reprompt_serves_both_and_then_what_is_there_is_the_answer() -> None:
    world = tool_world(text("x"), Answer((call("final_result", day=1),)))
    assert (output(world.run()), world.records) == ('{"day":1}', "C C")
    world = tool_world(text("x"), text("y"))
    assert (output(world.run()), world.records) == ("y", "C C")


@pytest.mark.parametrize("said", [Answer((call("final_result", day=1),)), text("x")])
def test_without_a_turn_left_nothing_is_asked_again(said: Answer) -> None:
    world = tool_world(said, max_turns=1)
    assert (output(world.run()) in ('{"day":1}', "x"), world.records) == (True, "C")


def test_beside_other_calls_the_output_tool_waits_for_their_results() -> None:
    world = tool_world(calls(call("add", "c0"), WHOLE))
    world.tool("add")
    run = world.run()
    assert (output(run), world.records) == ('{"day":"friday","people":2}', "C T")
    assert [message.role for message in run.messages] == ["user", "assistant", "user", "assistant"]
    assert [each["t"] for each in world.told("agent.tool_turn_committed")] == [0]


def test_beside_other_calls_missing_fields_are_asked_for_with_the_results() -> None:
    world = tool_world(calls(call("add", "c0"), call("final_result", "c1")), Answer((WHOLE,)))
    world.tool("add")
    run = world.run()
    assert world.said(2)[-1] == ("user", ["result 42", f"result {MISSING}"])
    assert (output(run), run.output_retries) == ('{"day":"friday","people":2}', 1)


def test_of_several_output_calls_the_first_whole_one_counts_and_no_other_is_kept() -> None:
    lacking = call("final_result", "c0")
    world = tool_world(calls(lacking, WHOLE), text("x"))
    assert (output(world.run()), world.records) == ('{"day":"friday","people":2}', "C")
    world = tool_world(calls(lacking, call("final_result", "c1")), Answer((WHOLE,)))
    world.run()
    assert world.said(2)[2:] == [("assistant", "call final_result"), ("user", f"result {MISSING}")]
    world = tool_world(calls(call("add", "c9"), lacking, WHOLE))
    world.tool("add")
    run = world.run()
    assert [part.type for message in run.messages for part in message.parts] == [
        "text",
        "tool_call",
        "tool_result",
        "text",
    ]


def test_every_pinned_sentence_is_in_the_one_place() -> None:
    assert wordings.TEXT_REPROMPT.replace("{name}", "final_result") == TEXT_REPROMPT
    assert wordings.OUTPUT_TOOL_AUGMENTATION.replace("{name}", "final_result") == AUGMENTATION
