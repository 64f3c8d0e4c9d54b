"""The Gemini Live wire: the set-up that it takes, and turns that the client has to work out from what follows."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.models.s2s.gemini_live import GeminiLiveWire
from bargein.models.tts import spoken
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CallsCancelled,
    CancelResponse,
    Configure,
    CreateResponse,
    Note,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
)
from bargein.pipelines.agent.request import Advert

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
TOOL = Advert("weather", "The weather.", SCHEMA)
AUDIO = spoken("agent", "Hello there.")
SPOKEN: dict[str, Any] = {
    "serverContent": {
        "modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=16000", "data": AUDIO}}]},
        "outputTranscription": {"text": "Hello there."},
    }
}
DELTA = AudioDelta("response_1", "response_1_audio", AUDIO, "Hello there.")
COMPLETE = {"serverContent": {"turnComplete": True}}
INTERRUPTED = {"serverContent": {"interrupted": True}}


def _heard(text: str) -> dict[str, Any]:
    return {"serverContent": {"inputTranscription": {"text": text, "finished": True}}}


def _asks(*calls: str) -> dict[str, Any]:
    return {"toolCall": {"functionCalls": [{"id": call, "name": "weather", "args": {}} for call in calls]}}


# -- the set-up -------------------------------------------------------------------------------------------------


def test_schemas_are_sent_where_the_whole_of_json_schema_is_taken() -> None:
    wire = GeminiLiveWire()
    (message,) = wire.encode(Configure("Be brief.", (TOOL,), True))
    assert message["setup"]["tools"] == [
        {"functionDeclarations": [{"name": "weather", "description": "The weather.", "parametersJsonSchema": SCHEMA}]}
    ]
    assert wire.accept(message) == [Configure("Be brief.", (TOOL,), True)]


def test_the_other_field_is_refused_with_the_whole_set_up_for_what_it_does_not_take() -> None:
    wire = GeminiLiveWire()
    (message,) = wire.encode(Configure("", (TOOL,), True))
    (declared,) = message["setup"]["tools"][0]["functionDeclarations"]
    declared["parameters"] = declared.pop("parametersJsonSchema")
    problem = r'^the set-up is refused: unknown name "additionalProperties" at function weather: parameters$'
    with pytest.raises(ValueError, match=problem):
        wire.accept(message)
    declared["parameters"] = {"type": "object", "properties": {"city": {"type": "string", "const": "Izmir"}}}
    with pytest.raises(ValueError, match='unknown name "const"'):
        wire.accept(message)
    declared["parameters"] = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert wire.accept(message)


# -- commands ---------------------------------------------------------------------------------------------------


def test_all_results_are_one_message_and_asking_to_go_on_is_none() -> None:
    wire = GeminiLiveWire()
    results = Results((CallResult("c1", "weather", "sun", False), CallResult("c2", "weather", "gone", True)))
    (message,) = wire.encode(results)
    assert message["toolResponse"]["functionResponses"] == [
        {"id": "c1", "name": "weather", "response": {"output": "sun"}},
        {"id": "c2", "name": "weather", "response": {"error": "gone"}},
    ]
    assert wire.accept(message) == [results]
    assert wire.encode(CreateResponse("t1.2")) == wire.encode(CancelResponse("response_1")) == []


def test_answers_that_nothing_is_to_be_said_on_are_silent() -> None:
    wire = GeminiLiveWire()
    results = Results((CallResult("c1", "weather", "sun", False),), quiet=True)
    (message,) = wire.encode(results)
    assert message["toolResponse"]["functionResponses"][0]["scheduling"] == "SILENT"
    assert wire.accept(message) == [results]


def test_a_note_is_content_that_completes_no_turn() -> None:
    wire = GeminiLiveWire()
    (message,) = wire.encode(Note("It is done."))
    assert message["clientContent"]["turnComplete"] is False
    assert wire.accept(message) == [Note("It is done.")]


# -- what the client works out ----------------------------------------------------------------------------------


def test_a_response_begins_with_its_first_content_and_answers_the_newest_turn() -> None:
    wire = GeminiLiveWire()
    assert wire.decode(_heard("Hi.")) == [SpeechStarted(1), SpeechStopped(1), Transcript(1, "Hi.")]
    assert wire.decode(SPOKEN) == [ResponseStarted("response_1", "", 1), DELTA]
    assert wire.decode(SPOKEN) == [DELTA]
    assert wire.decode(COMPLETE) == [ResponseEnded("response_1")]


def test_a_transcription_that_comes_after_the_answer_belongs_to_the_turn_that_was_answered() -> None:
    wire = GeminiLiveWire()
    wire.decode(SPOKEN)
    assert wire.decode(INTERRUPTED) == [SpeechStarted(2), ResponseEnded("response_1", "cancelled", "interrupted")]
    assert wire.decode(_heard("Hi.")) == [SpeechStopped(1), Transcript(1, "Hi.")]
    assert wire.decode(SPOKEN)[0] == ResponseStarted("response_2", "", 2)
    assert wire.decode(_heard("Wait.")) == [SpeechStopped(2), Transcript(2, "Wait.")]


def test_an_answer_that_was_interrupted_before_its_first_content_is_not_counted() -> None:
    wire = GeminiLiveWire()
    wire.decode(_heard("Hi."))
    assert wire.decode(INTERRUPTED) == [SpeechStarted(2)]
    assert wire.decode(SPOKEN)[0] == ResponseStarted("response_1", "", 2)


def test_a_call_ends_the_response_and_what_follows_the_results_is_the_one_asked_for() -> None:
    wire = GeminiLiveWire()
    assert wire.decode(_asks("c1", "c2")) == [
        ResponseStarted("response_1", "", 1),
        CallReady("response_1", "c1", "weather", "{}"),
        CallReady("response_1", "c2", "weather", "{}"),
        ResponseEnded("response_1"),
    ]
    wire.encode(Results((CallResult("c1", "weather", "", False), CallResult("c2", "weather", "", False))))
    wire.encode(CreateResponse("t1.2"))
    assert wire.decode(SPOKEN)[0] == ResponseStarted("response_2", "t1.2", 0)


def test_another_call_while_one_waits_belongs_to_the_same_response() -> None:
    wire = GeminiLiveWire()
    wire.decode(_asks("c1"))
    assert wire.decode(_asks("c2")) == [CallReady("response_1", "c2", "weather", "{}")]


def test_a_withdrawal_names_the_calls() -> None:
    wire = GeminiLiveWire()
    wire.decode(_asks("c1"))
    assert wire.decode({"toolCallCancellation": {"ids": ["c1"]}}) == [CallsCancelled(("c1",))]


# -- what the provider says -------------------------------------------------------------------------------------


def test_the_calls_of_a_response_are_one_message_and_no_end_of_turn() -> None:
    wire = GeminiLiveWire()
    events = [
        ResponseStarted("r1", "", 1),
        CallReady("r1", "c1", "weather", '{"city":"Izmir"}'),
        CallReady("r1", "c2", "weather", "{}"),
        ResponseEnded("r1"),
    ]
    assert [message for event in events for message in wire.spell(event)] == [
        {
            "toolCall": {
                "functionCalls": [
                    {"id": "c1", "name": "weather", "args": {"city": "Izmir"}},
                    {"id": "c2", "name": "weather", "args": {}},
                ]
            }
        }
    ]


def test_only_transcriptions_come_in_no_order_with_the_rest() -> None:
    wire = GeminiLiveWire()
    assert [wire.of_turns(m) for m in (_heard("Hi."), INTERRUPTED, SPOKEN, _asks("c1"))] == [True, False, False, False]
