"""The Realtime wire: its messages by name, read back at the other end as what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.s2s.realtime import RealtimeWire
from bargein.models.tts import spoken
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CancelResponse,
    Configure,
    CreateResponse,
    DeleteItem,
    Note,
    Refused,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
    TruncateItem,
)
from bargein.pipelines.agent.request import Advert

TOOL = Advert("look", "Looks.", {"type": "object", "additionalProperties": False})
COMMANDS: dict[str, Any] = {
    "session.update": Configure("Be brief.", (TOOL,), True),
    "conversation.item.create": Note("It is done."),
    "response.create": CreateResponse("t1.2"),
    "response.cancel": CancelResponse("r1"),
    "conversation.item.truncate": TruncateItem("i1", 340),
    "conversation.item.delete": DeleteItem("i1"),
}
AUDIO = spoken("agent", "Hello there.")
EVENTS: dict[str, Any] = {
    "input_audio_buffer.speech_started": SpeechStarted(1, 120_000),
    "input_audio_buffer.speech_stopped": SpeechStopped(1, 980_000),
    "conversation.item.input_audio_transcription.completed": Transcript(1, "Hi."),
    "response.output_audio.delta": AudioDelta("r1", "i1", AUDIO, "Hello there."),
    "response.function_call_arguments.done": CallReady("r1", "c1", "look", '{"a":1}'),
    "response.done": ResponseEnded("r1", "cancelled", "turn_detected"),
    "error": Refused("invalid_value", "audio of 300 ms cannot be cut at 400 ms"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_one_message_that_means_the_same_at_the_provider(name: str) -> None:
    wire = RealtimeWire()
    (message,) = wire.encode(COMMANDS[name])
    assert message["type"] == wire.about(message).what == name
    assert wire.accept(message) == [COMMANDS[name]]


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_one_message_that_means_the_same_at_the_client(name: str) -> None:
    wire = RealtimeWire()
    (message,) = wire.spell(EVENTS[name])
    assert message["type"] == wire.about(message).what == name
    assert wire.decode(message) == [EVENTS[name]]


def test_each_result_is_an_item_of_its_own_in_call_order() -> None:
    results = Results((CallResult("c1", "look", "42", False), CallResult("c2", "look", '{"error":"timeout"}', True)))
    messages = RealtimeWire().encode(results)
    assert [m["item"] for m in messages] == [
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"type": "function_call_output", "call_id": "c2", "output": '{"error":"timeout"}'},
    ]
    read = [command.results[0] for m in messages for command in RealtimeWire().accept(m)]  # type: ignore[union-attr]
    assert [(r.call, r.content, r.is_error) for r in read] == [("c1", "42", False), ("c2", '{"error":"timeout"}', True)]


def test_a_truncation_is_spelt_as_the_provider_wants_it() -> None:
    assert RealtimeWire().encode(TruncateItem("i1", 340)) == [
        {"type": "conversation.item.truncate", "item_id": "i1", "content_index": 0, "audio_end_ms": 340}
    ]


def test_turns_are_numbered_by_their_items_and_the_providers_own_responses_by_their_order() -> None:
    wire = RealtimeWire()

    def read(event: Any) -> list[Any]:
        return [each for message in wire.spell(event) for each in wire.decode(message)]

    assert read(SpeechStarted(7, 0)) == [SpeechStarted(1, 0)]
    assert read(SpeechStarted(9, 0)) == [SpeechStarted(2, 0)]
    assert read(Transcript(7, "Hi.")) == [Transcript(1, "Hi.")]
    assert read(ResponseStarted("r1", "", 7)) == [ResponseStarted("r1", "", 1)]
    assert read(ResponseStarted("r2", "t1.2", 7)) == [ResponseStarted("r2", "t1.2", 0)]
    assert read(ResponseStarted("r3", "", 9)) == [ResponseStarted("r3", "", 2)]


def test_a_client_event_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^there is no client event response\.stop$"):
        RealtimeWire().accept({"type": "response.stop"})
