"""An agent run's messages as a voice session has them."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.providers.catalogue import adapter
from bargein.pipelines.agent.answers import ToolReply
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.media_sources import Base64, Url
from bargein.pipelines.agent.messages import Media, MediaKind, Message, Role, Text, ToolCall, ToolResult
from bargein.pipelines.agent.parts import (
    AudioPart,
    CallPart,
    ImagePart,
    JsonPart,
    OpaquePart,
    ReasoningPart,
    ResultPart,
    RunMessage,
    TextPart,
    user_message,
)
from bargein.pipelines.agent.projection import as_messages
from bargein.sim.effects.bus import Effect
from tests.pipelines.agent.run_kit import World, call, calls, output, text

WIRED = {"wire": "anthropic", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}


def assistant(*parts: Any) -> RunMessage:
    return RunMessage(Role.ASSISTANT, parts)


def test_an_opaque_part_that_names_its_wire_is_the_data_of_the_whole_answer() -> None:
    said = assistant(TextPart("Let me see."), OpaquePart(WIRED), CallPart("r1.0", "add", {"x": 1}, "w1"))
    assert as_messages([said]) == (
        Message(Role.ASSISTANT, (Text("Let me see."), ToolCall("r1.0", "add", {"x": 1}, "w1")), WIRED),
    )


@pytest.mark.parametrize("native", [None, "sealed", ["wire"], {"content": 1}, 7])
def test_an_opaque_part_that_names_none_is_dropped_with_what_was_thought(native: Any) -> None:
    said = assistant(ReasoningPart("hm"), OpaquePart(native), TextPart("Done."))
    assert as_messages([said]) == (Message(Role.ASSISTANT, (Text("Done."),)),)


def test_an_answer_of_nothing_but_that_is_no_message() -> None:
    assert as_messages([assistant(OpaquePart(WIRED), ReasoningPart("hm"))]) == ()


def test_of_several_the_last_one_counts() -> None:
    other = {"wire": "gemini"}
    said = assistant(OpaquePart(WIRED), TextPart("Done."), OpaquePart(other))
    assert [message.provider_data for message in as_messages([said])] == [other]


def test_results_become_messages_of_their_own_before_what_stands_beside_them() -> None:
    answered = RunMessage(
        Role.USER,
        (
            ResultPart("c0", (TextPart("one"), JsonPart({"n": 1}), ImagePart(Url("u"))), "add", "w0"),
            TextPart("And now?"),
            ResultPart("c1", (JsonPart("é"),), "add", "w1"),
        ),
    )
    assert as_messages([answered]) == (
        Message(Role.TOOL, (ToolResult("c0", 'one\n{"n":1}'),)),
        Message(Role.TOOL, (ToolResult("c1", '"é"'),)),
        Message(Role.USER, (Text("And now?"),)),
    )


def test_media_and_calls_keep_what_a_provider_needs() -> None:
    asked = user_message((ImagePart(Base64("QQ"), "image/png", "low"), AudioPart(Url("http://a"), "audio/wav")))
    said = assistant(CallPart("r1.0", "add", ["not", "an", "object"], "w1", {"sealed": 1}))
    assert as_messages([asked, said]) == (
        Message(
            Role.USER,
            (
                Media(MediaKind.IMAGE, "image/png", "QQ", "", "low"),
                Media(MediaKind.AUDIO, "audio/wav", "", "http://a"),
            ),
        ),
        Message(Role.ASSISTANT, (ToolCall("r1.0", "add", {}, "w1", {"sealed": 1}),)),
    )


def asked_after(reply: ToolReply) -> tuple[ResultStatus | None, dict[str, Any]]:
    """The status of a tool's result, and the body that a provider would be sent after it."""
    bodies: list[dict[str, Any]] = []
    world = World(calls(call("add")), text("done"), max_turns=2)
    serve = world.model.serve

    def sent(effect: Effect) -> Any:
        bodies.append(adapter("anthropic", "m").encode(effect.payload))
        return serve(effect)

    world.model.serve = sent  # type: ignore[method-assign]
    world.tool("add", reply)
    run = world.run()
    assert output(run) == "done"
    return run.history.statuses(2)[0], bodies[-1]


def test_how_a_result_came_about_is_not_in_what_is_sent() -> None:
    ok = asked_after(ToolReply((TextPart("no table"),), "ok"))
    error = asked_after(ToolReply((TextPart("no table"),), "error"))
    assert (ok[0], error[0]) == (ResultStatus.OK, ResultStatus.ERROR)
    assert ok[1] == error[1]
