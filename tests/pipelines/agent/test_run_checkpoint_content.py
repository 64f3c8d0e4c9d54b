"""What a saved run holds comes back as it was: messages, media, settings, rounds and what was changed of a request."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from bargein.pipelines.agent.answers import Answer
from bargein.pipelines.agent.edits import RemoveEdit, RequestPatch, TextEdit
from bargein.pipelines.agent.media_sources import Base64, FileId, Literal, Raw, Unknown, Url
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import (
    AssistantHead,
    AudioPart,
    CallPart,
    DocumentPart,
    ImagePart,
    JsonPart,
    OpaquePart,
    ReasoningPart,
    ResultPart,
    RunMessage,
    TextPart,
    VideoPart,
    message_from_dict,
    user_message,
)
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.pipelines.agent.retrieval import Retrieves
from bargein.pipelines.agent.run_settings import (
    Agent,
    Backoff,
    InvalidCalls,
    OutputMode,
    OutputSpec,
    OutputToolConfig,
    Settings,
    ToolAccess,
    specification,
)
from bargein.pipelines.agent.run_state import AccessSnapshot
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.reports import ReportKind, failed
from tests.pipelines.agent.checkpoint_kit import moved, of_kind, only_run
from tests.pipelines.agent.memory_kit import CONTEXT, GOLDEN, RememberingWorld, found
from tests.pipelines.agent.run_kit import MS, SCHEMA, S, World, call, calls, failure, output, text

PICTURE = ImagePart(Base64("iVBORw0KGgo"), "image/png", "high", {"crop": [1, 2.5]}, {"vendor": 1})
INSIDE = (TextPart("t", ("cite",)), PICTURE, JsonPart({"k": [1, None, 0.5], "$": "x"}))
TALK = (
    RunMessage(
        Role.USER,
        (
            TextPart("t", ({"cite": 1}, "two"), {"n": 1}),
            PICTURE,
            AudioPart(Raw(b"\x00\x01"), "audio/wav"),
            VideoPart(FileId("f1")),
            DocumentPart(Unknown("lost")),
        ),
    ),
    RunMessage(
        Role.ASSISTANT,
        (
            TextPart("before", native={"item": [1]}),
            OpaquePart({"vendor": {"$": 1}}),
            ReasoningPart("", "sealed", "rs1", {"n": 1}),
            CallPart("c1", "add", {"b": 1, "a": [2]}, "p1", {"n": 1}),
            TextPart("after"),
        ),
        AssistantHead("model", "tool_calls", {"raw": [None]}),
    ),
    RunMessage(Role.USER, (ResultPart("c1", INSIDE, "add", "p1"),)),
    RunMessage(Role.SYSTEM, (TextPart("Be good."),)),
)
PARTS = [(at, inner) for at, message in enumerate(TALK) for inner in range(len(message.parts))]


def waiting(*history: RunMessage, **settings: Any) -> World:
    """A world whose model has been asked and never answers."""
    world = World(None, **settings)
    world.run("hello", *history)
    return world


# -- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "inner"), PARTS, ids=lambda each: str(each))
def test_every_kind_of_part_comes_back_from_a_checkpoint_in_its_place(at: int, inner: int) -> None:
    run = only_run(moved(waiting(*TALK)))
    assert run.messages[at].parts[inner] == TALK[at].parts[inner]
    assert (len(run.messages[at].parts), run.messages[at].head) == (len(TALK[at].parts), TALK[at].head)


def test_all_ten_kinds_are_among_them_and_the_next_request_says_the_same() -> None:
    kinds = {part.type for message in TALK for part in message.parts} | {part.type for part in INSIDE}
    assert len(kinds) == 10
    world = waiting(*TALK)
    other = moved(world, text("done"))
    other.clock.run()
    assert other.request(1) == world.request(1)
    opaque = other.request(1)["chat_history"][1]["content"][1]
    assert opaque == {"type": "opaque", "native": {"vendor": {"$": 1}}}


def test_parts_keep_their_ids_and_new_ones_go_on_counting() -> None:
    world = waiting(*TALK)
    history = only_run(world).history
    before = [history.ids(at) for at in range(5)]
    other = moved(world, text("done"))
    other.clock.run()
    run = only_run(other)
    assert [run.history.ids(at) for at in range(5)] == before
    assert run.history.item_ids(run.history.ids(2)[0]) == ("r1:11", "r1:12", "r1:13")
    assert run.history.ids(5) == (f"r1:{len(list(history.held()))}",)


@pytest.mark.parametrize(
    "source", [Url("u"), FileId("f"), Literal("l"), Unknown("n"), Raw(b"x"), Raw(b""), Base64("QQ"), Base64("QR==")]
)
def test_every_source_comes_back_from_a_checkpoint_as_it_went_in(source: Any) -> None:
    part = ImagePart(source, "image/png", "low", {"o": 1}, {"n": 1})
    world = World(None)
    world.run((part,))
    other = moved(world, text("done"))
    assert only_run(other).messages == (user_message((part,)),)
    other.clock.run()
    assert other.request(1) == world.request(1)


def test_a_picture_that_is_used_five_times_is_stored_once() -> None:
    world = waiting(*[user_message((ImagePart(Raw(b"picture")),))] * 5)
    checkpoint = save_runs(world.runs)
    assert list(checkpoint.to_dict()) == ["bargein_runs", "at_us", "entities", "counters", "binaries"]
    assert (checkpoint.to_dict()["bargein_runs"], checkpoint.to_dict()["counters"]) == (
        2,
        {"next_run": 2, "next_id": 1},
    )
    assert list(checkpoint.binaries.values()) == [b"picture"]
    (digest,) = checkpoint.binaries
    sources = [part["part"]["source"] for part in of_kind(checkpoint, "part") if part["part"]["$"] == "ImagePart"]
    assert sources == [{"$": "Stored", "sha256": digest}] * 5


def test_a_picture_is_the_same_in_the_request_after_a_load() -> None:
    world = World(calls(call("show")), None, max_turns=2)
    world.tool("show", PICTURE)
    world.run((TextPart("Look."), PICTURE))
    other = moved(world, text("done"))
    other.clock.run()
    pictures = [part for part in other.request(1)["chat_history"][0]["content"] if part["type"] == "image"]
    assert (len(pictures), other.request(1)) == (1, world.request(2))
    assert only_run(other).messages[2].parts == (ResultPart("c1", (PICTURE,), "show", "p-c1"),)


def test_a_picture_from_a_memory_stands_once_before_the_next_prompt_also_where_that_run_was_saved() -> None:
    first = RememberingWorld(text("Nice."))
    first.run((TextPart("Look."), PICTURE))
    second = RememberingWorld(None, old=[message_from_dict(dict(each)) for each in first.store.load(GOLDEN)])
    second.run("And now?")
    other = moved(second, text("done"))
    other.clock.run()
    assert other.request(1) == second.request(1)
    contents = [each["content"] for each in other.request(1)["chat_history"]]
    assert [[part["type"] for part in content] for content in contents] == [["text", "image"], ["text"], ["text"]]


def test_a_result_keeps_its_status() -> None:
    world = World(calls(call("add", "a"), call("fail", "b")), None, max_turns=2)
    world.tool("add")
    world.tool("fail", failed(ReportKind.OTHER, "broken"))
    run = world.run()
    assert run.history.statuses(2) == ("Ok", "Error")
    assert only_run(moved(world)).history.statuses(2) == ("Ok", "Error")


def test_thoughts_and_counters_come_back_as_the_wire_gave_them() -> None:
    sealed = ReasoningPart("", "sealed")
    usage = {"total": 5, "reasoning": None, "cached": 0}
    world = World(Answer((sealed, call("add")), "tool_calls", usage), None, max_turns=2)
    world.tool("add")
    world.run()
    other = moved(world, text("x", 2))
    assert only_run(other).usage == {"total": 5, "reasoning": None, "cached": 0}
    other.clock.run()
    run = only_run(other)
    assert (output(run), run.usage) == ("x", {"total": 7, "reasoning": None, "cached": 0})
    assert other.request(1)["chat_history"][1] == world.request(2)["chat_history"][1]
    assert run.messages[1].parts[0] == sealed


def test_a_result_that_was_cut_for_the_request_is_saved_whole() -> None:
    long = "0123456789" * 9
    world = World(calls(call("add")), None, max_turns=2, result_limit=ResultLimit(10))
    world.tool("add", long)
    world.run()
    assert long not in str(world.request(2))
    other = moved(world, text("done"))
    (item,) = only_run(other).messages[2].parts[0].items  # type: ignore[union-attr]
    assert item == TextPart(long)
    other.clock.run()
    assert other.request(1) == world.request(2)


# -- settings -------------------------------------------------------------------------------------------------------

EVERY = Settings(
    preamble="p",
    temperature=0.25,
    max_tokens=9,
    tool_choice={"specific": {"function_names": ["add"]}},
    additional_params={"$": [1]},
    options={"a": None},
    provider_options={"x": {"y": 1}},
    output=OutputSpec(SCHEMA, OutputMode.PROMPTED),
    output_tool=OutputToolConfig("n", "d", False),
    max_turns=4,
    provider_retries=1,
    backoff=Backoff(1, 2),
    concurrency=3,
    tool_context={"who": ["me"]},
    result_limit=ResultLimit(7, "..."),
    invalid_calls=InvalidCalls(retries=2),
    tool_access=ToolAccess({"add": "k"}, ("add",)),
    policy_version="v1",
    record_telemetry_content=True,
)


def test_every_setting_of_a_run_and_of_its_agent_comes_back() -> None:
    assert [each.name for each in fields(Settings) if getattr(EVERY, each.name) is None] == []
    world = World()
    world.agent.settings = EVERY
    run = world.runs.create(world.agent, EVERY)
    assert run.settings == EVERY
    restored = only_run(moved(world))
    assert (restored.settings, restored.agent) == (EVERY, world.agent)
    assert specification(restored.agent, restored.settings) == specification(world.agent, EVERY)


@pytest.mark.parametrize("name", [each.name for each in fields(OutputToolConfig)])
def test_each_field_of_the_configuration_is_saved_and_makes_another_program(name: str) -> None:
    config = OutputToolConfig(**{name: False if name == "augment" else "other"})
    world = World()
    world.runs.create(world.agent, Settings(output_tool=config))
    run = only_run(moved(world))
    assert run.settings.output_tool == config
    assert specification(run.agent, run.settings) != specification(run.agent)


def test_two_runs_of_one_agent_have_one_again_and_another_agent_has_its_own() -> None:
    world = World()
    mine = Agent.named("golden")
    for agent in (world.agent, mine, world.agent):
        world.runs.create(agent)
    first, second, third = moved(world).runs.live.values()
    assert first.agent is third.agent
    assert second.agent is not first.agent


# -- rounds ---------------------------------------------------------------------------------------------------------


def test_a_round_shows_what_it_might_have_called_after_a_failure_and_a_load() -> None:
    world = World(calls(call("nope")))
    world.agent.grant("add")
    world.agent.settings.tool_access = ToolAccess({"add": "golden/tool:add#0", "sub": "k"}, ("add",))
    run = world.run()
    restored = only_run(moved(world))
    assert (failure(run), failure(restored)) == ("UnknownToolCall", "UnknownToolCall")
    expected = AccessSnapshot({"add": "golden/tool:add#0", "sub": "k"}, ("add",))
    assert [each.access for each in (*run.turns, *restored.turns)] == [expected, expected]


def test_a_run_that_was_cancelled_before_it_opened_is_saved_with_its_prompt_and_its_failure() -> None:
    world = World()
    run = world.runs.spawn(world.agent, "hello", [user_message("before")])
    world.runs.cancel(run, "why")
    other = moved(world)
    restored = only_run(other)
    assert (failure(restored), restored.ending) == ("Cancelled", run.ending)
    other.clock.run()
    assert (restored.prompt, restored.prior) == (user_message("hello"), [user_message("before")])
    assert (restored.messages, other.records) == ((), "")


def test_edits_that_were_saved_before_the_fold_are_in_the_request_after_it() -> None:
    world = RememberingWorld()
    world.agent.remembers = None
    world.look_up(Retrieves(CONTEXT, 1))
    world.index(CONTEXT, found(), delay_us=S)
    run = world.run((TextPart("first", ("cite",)), TextPart("second"), TextPart("third")), until_us=MS)
    ids = run.history.ids(0)
    assert run.turn is not None
    run.turn.edits += [TextEdit(ids[0], "FIRST"), RemoveEdit(ids[1])]
    run.turn.patch = RequestPatch(temperature=0.5)
    other = moved(world, text("done"), context=found())
    restored = only_run(other)
    assert restored.turn is not None
    assert restored.turn.edits == [TextEdit(ids[0], "FIRST"), RemoveEdit(ids[1])]
    other.clock.run()
    sent = other.request(1)
    assert sent["chat_history"][0]["content"] == [
        {"type": "text", "text": "FIRST", "annotations": ["cite"]},
        {"type": "text", "text": "third"},
    ]
    assert (sent["temperature"], restored.turn.edits, restored.messages[0].text) == (0.5, [], "firstsecondthird")
