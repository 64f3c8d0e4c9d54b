"""What a run asks its model: every field by its rule, and in its order."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer, PartDone
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.fold import fold_request
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.media_sources import Base64, Raw, Url
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import (
    AssistantHead,
    CallPart,
    ImagePart,
    OpaquePart,
    ReasoningPart,
    RunMessage,
    TextPart,
    user_message,
)
from bargein.pipelines.agent.run import AgentRun
from bargein.pipelines.agent.run_settings import Document, ModelDescriptor, OutputMode, OutputSpec, Settings
from tests.pipelines.agent.run_kit import MS, SCHEMA, World, call, calls, failure, output, text

AGENT = Path(__file__).parents[3] / "pipelines" / "agent"
BARE: dict[str, Any] = {
    "model": None,
    "chat_history": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    "documents": [],
    "tools": [],
    "temperature": None,
    "max_tokens": None,
    "tool_choice": None,
    "additional_params": None,
    "output_schema": None,
}


def test_a_bare_agent_sends_its_prompt_and_nothing_else() -> None:
    world = World(text("hi"))
    run = world.run()
    assert world.request(1) == BARE
    assert (output(run), world.records, world.clock.now) == ("hi", "C", 0)


def test_a_request_is_made_in_one_place() -> None:
    makers = []
    for path in sorted(AGENT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CompletionRequest":
                makers.append(path.name)
    assert makers == ["fold.py"]


def test_the_fold_gives_the_same_twice_and_changes_nothing() -> None:
    agent = World(temperature=0.5).agent
    messages = [user_message("hello")]
    asked = (agent, Settings(), messages, agent.grants, agent.context, OutputMode.NATIVE, "", RequestPatch())
    assert fold_request(*asked) == fold_request(*asked)
    assert (messages, agent.settings) == ([user_message("hello")], Settings(temperature=0.5))


def test_who_answers_is_the_key_and_never_in_the_request() -> None:
    world = World(text("hi"))
    world.on(At.SELECT_MODEL, lambda moment: moment.select("golden/model:fast"))
    world.bus.serve("golden/model:fast", world.model)
    world.run()
    assert [effect.key for effect in world.bus.bus.log] == ["golden/model:fast"]
    assert world.request(1)["model"] is None


@pytest.mark.parametrize(("run", "sent"), [(None, 0.7), (0.0, 0.0)])
def test_a_setting_is_the_runs_or_else_the_agents(run: float | None, sent: float) -> None:
    world = World(text("hi"), temperature=0.7, max_tokens=32)
    world.run(settings=Settings(temperature=run))
    assert (world.request(1)["temperature"], world.request(1)["max_tokens"]) == (sent, 32)


def test_the_preamble_comes_first_as_it_was_given_and_a_run_may_have_its_own() -> None:
    world = World(text("hi"), text("hi"), preamble="a\nb")
    world.run()
    world.run(settings=Settings(preamble="Q"))
    assert [world.said(number)[0] for number in (1, 2)] == [("system", "a\nb"), ("system", "Q")]


def test_history_then_prompt_then_round_by_round_what_was_added() -> None:
    world = World(calls(call("add")), text("done"), preamble="P", max_turns=2)
    world.tool("add")
    prior = (user_message("u0"), RunMessage(Role.ASSISTANT, (TextPart("a0"),)))
    world.run("p", *prior)
    assert world.said(1) == [("system", "P"), ("user", "u0"), ("assistant", "a0"), ("user", "p")]
    assert world.said(2)[4:] == [("assistant", "call add"), ("user", "result 42")]
    assert world.request(1)["chat_history"][2]["id"] is None


def test_an_edit_of_what_is_stored_is_in_the_next_request_and_not_in_the_last() -> None:
    world = World(calls(call("add")), text("done"), max_turns=2)

    def change(moment: Any) -> None:
        if moment.turn.number == 2:
            history = moment.run.history
            history.edit(history.ids(0)[0], TextPart("changed"))
            history.reorder(0, [1, 0])

    world.tool("add")
    world.on(At.BEFORE_REQUEST, change)
    world.run((TextPart("one"), TextPart("two")))
    assert world.said(1)[0] == ("user", ["one", "two"])
    assert world.said(2)[0] == ("user", ["two", "changed"])


def test_documents_go_with_every_round_in_order() -> None:
    world = World(calls(call("add")), text("done"), max_turns=2)
    world.tool("add")
    world.agent.context += [Document("static_doc_0", "x"), Document("static_doc_1", "y", {"lang": "en"})]
    world.run()
    sent = [
        {"id": "static_doc_0", "text": "x"},
        {"id": "static_doc_1", "text": "y", "additional_props": {"lang": "en"}},
    ]
    assert [world.request(number)["documents"] for number in (1, 2)] == [sent, sent]


def test_tools_are_in_the_order_of_their_grants_with_the_output_tool_last() -> None:
    world = World(text("hi"), text('{"day":1,"people":2}'))
    world.tool("sub")
    world.tool("add")
    world.run()
    world.run(settings=Settings(output=OutputSpec(SCHEMA, OutputMode.TOOL)))
    assert world.request(1)["tools"] == [
        {"name": "sub", "description": "sub it", "parameters": {"type": "object"}},
        {"name": "add", "description": "add it", "parameters": {"type": "object"}},
    ]
    assert [tool["name"] for tool in world.request(2)["tools"]] == ["sub", "add", "final_result"]


@pytest.mark.parametrize("choice", ["none", "auto", "required", {"specific": {"function_names": ["add"]}}])
def test_a_tool_choice_and_additional_params_pass_through(choice: Any) -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    world = World(text("hi"), tool_choice=choice, additional_params=thinking)
    world.run()
    assert (world.request(1)["tool_choice"], world.request(1)["additional_params"]) == (choice, thinking)


def test_options_are_overlaid_key_by_key_and_provider_options_entry_by_entry() -> None:
    world = World(text("hi"), text("hi"), options={"a": 1, "b": 2}, provider_options={"x": {"p": 1, "q": 2}, "y": {}})
    world.run(settings=Settings(options={"b": 3}, provider_options={"x": {"p": 9}}))
    assert world.request(1)["options"] == {"a": 1, "b": 3}
    assert world.request(1)["provider_options"] == {"x": {"p": 9}, "y": {}}
    world.run(settings=Settings(options={"a": None, "b": None}))
    assert "options" not in world.request(2)


def test_streaming_stands_beside_the_request() -> None:
    world = World(text("hi"), [(0, TextDelta("hi")), (0, StreamEnd())])
    world.run()
    world.run(streamed=True)
    assert world.request(1) == world.request(2)
    assert [effect.payload.to_dict()["stream"] for effect in world.bus.bus.log] == [False, True]


def test_a_prompt_keeps_its_parts_in_every_request() -> None:
    picture = ImagePart(Base64("QUJD"), "image/png", "high", {"k": 1})
    prompt = (TextPart("a"), picture, TextPart("b"), picture, TextPart("c"))
    world = World(calls(call("add")), text("done"), max_turns=2)
    world.tool("add")
    run = world.run(prompt)
    assert run.messages[0].parts == prompt
    assert len(world.runs.assets) == 1
    sent = {"type": "image", "source": {"from": "base64", "text": "QUJD"}, "media_type": "image/png"}
    for number in (1, 2):
        assert world.request(number)["chat_history"][0]["content"][1] == {**sent, "detail": "high", "options": {"k": 1}}


def test_an_answer_keeps_the_providers_parts_streamed_or_not() -> None:
    whole = (
        TextPart("x"),
        ReasoningPart("hm"),
        TextPart("y"),
        CallPart("", "add", {"a": 1}, "w1"),
        OpaquePart({"k": 1}),
    )
    streamed: list[Any] = [(MS, TextDelta("x")), *((MS, PartDone(part)) for part in whole[1:]), (MS, StreamEnd())]
    stored = []
    for said, stream in ((Answer(whole), False), (streamed, True)):
        world = World(said, text("done") if not stream else [(0, StreamEnd())], max_turns=2)
        world.tool("add")
        stored.append(world.run(streamed=stream).messages[1].parts)
    assert stored[0] == stored[1]
    assert [part.type for part in stored[0]] == ["text", "reasoning", "text", "tool_call", "opaque"]


def test_the_head_of_an_answer_belongs_to_its_message() -> None:
    world = World(Answer((TextPart("hi"),), "stop", raw={"id": "m1"}))
    assert world.run().messages[1].head == AssistantHead("", "stop", {"id": "m1"})


def test_content_that_cannot_be_stored_fails_its_run_alone_and_before_any_request() -> None:
    world = World(text("hi"))
    broken = world.runs.spawn(world.agent, (ImagePart(Base64("###")),))
    other = world.run()
    assert (failure(broken), output(other), world.records, other.seq) == ("Content", "hi", "C", 2)


def test_an_answer_that_cannot_be_stored_fails_its_run_and_the_next_is_read_on_the_same_instant() -> None:
    world = World(Answer((ImagePart(Base64("#")),)), text("hi"), delay_us=5)
    first = world.runs.spawn(world.agent, "a")
    second = world.run("b")
    assert (failure(first), output(second), world.clock.now) == ("Content", "hi", 5)
    assert [(each["t"], each["scope"]) for each in world.told("agent.run_ended")] == [(5, "r1"), (5, "r2")]


def test_a_voice_sessions_model_can_read_the_request() -> None:
    world = World(calls(call("add", day="friday")), text("done"), preamble="P", max_turns=2)
    world.tool("add", "ok")
    world.run((TextPart("book"), ImagePart(Url("http://x/y.png"))))
    asked = world.bus.bus.log[2].payload
    assert [(str(each.role), each.text) for each in asked.messages][:3] == [
        ("system", "P"),
        ("user", "book"),
        ("assistant", ""),
    ]
    assert (asked.messages[3].result.content, asked.last_user_text, asked.tools[0].name) == ("ok", "book", "add")


def test_the_short_way_to_a_run() -> None:
    world = World(text("hi"))
    run = AgentRun(world.agent, world.bus, world.clock).start("hello")
    world.clock.run()
    assert output(run) == "hi"


def test_a_route_persists_until_it_is_replaced() -> None:
    world = World(calls(call("add")), calls(call("add", "c2")), text("done"), max_turns=3)
    world.tool("add")
    world.agent.routes = (ModelDescriptor("golden/model:fast"),)
    world.bus.serve("golden/model:fast", world.model)
    world.on(At.SELECT_MODEL, lambda moment: moment.select("golden/model:fast") if moment.run.cursor == 2 else None)
    world.run()
    keys = [effect.key for effect in world.bus.bus.log if effect.key.startswith("golden/model")]
    assert keys == ["golden/model:default", "golden/model:fast", "golden/model:fast"]


def test_raw_bytes_and_the_same_in_base64_are_one_asset() -> None:
    world = World(text("hi"))
    world.run((ImagePart(Raw(b"ABC")), ImagePart(Base64("QUJD"))))
    assert len(world.runs.assets) == 1
    assert [part["source"] for part in world.request(1)["chat_history"][0]["content"]] == [
        {"from": "raw", "data": "414243"},
        {"from": "base64", "text": "QUJD"},
    ]
