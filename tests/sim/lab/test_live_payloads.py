"""The plain forms of a live connection: every item reads back as what it was, and what is no item is refused."""

from __future__ import annotations

import re
from typing import Any, get_args

import numpy as np
import pytest

from bargein.models.tts import Piece
from bargein.models.voice import speak
from bargein.pipelines.agent import live, live_line
from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallResult,
    CallsCancelled,
    Configure,
    Refused,
    ResponseEnded,
    ResponseStarted,
    Results,
    SpeechStarted,
    SpeechStopped,
    Transcript,
)
from bargein.pipelines.agent.live_line import Heard, Quiet, Received, Sent, Standing
from bargein.pipelines.agent.request import Advert
from bargein.sim.effects.identity import written
from bargein.sim.lab.live_payloads import live_item_of, live_to_plain
from bargein.sim.lab.payloads import PlainPayloads

SPOKEN = speak("agent", "Of course.")
PIECE = Piece(SPOKEN, 1_000, 3_000, (("Of", 2_000),))
DOWN = [
    SpeechStarted(1, 5, False),
    SpeechStarted(2),
    SpeechStopped(1, 7),
    Transcript(1, "Hi."),
    ResponseStarted("r1", "t1.1", 0),
    CallReady("r1", "c1", "look", "{}"),
    CallsCancelled(("c1", "c2")),
    ResponseEnded("r1", "cancelled", "turn_detected"),
    Refused("code", "Why."),
    Sent("session.update", None, ("c1",), 5),
    Received("response.done", "r1", "i1", (), None, 320),
    Standing(True, False),
    Quiet(),
]


@pytest.mark.parametrize("item", DOWN, ids=lambda each: type(each).__name__)
def test_what_comes_down_reads_back_as_what_it_was(item: Any) -> None:
    plain = PlainPayloads().item(item)
    written(plain)  # it is plain
    assert PlainPayloads().item_of(plain) == item


def test_all_that_can_come_down_is_known() -> None:
    assert {type(each) for each in DOWN} | {AudioDelta} == set(get_args(live_line.Down))


def test_audio_reads_back_to_the_sample() -> None:
    again = live_item_of(live_to_plain(AudioDelta("r1", "i1", PIECE, "Of")))
    assert (again.response, again.item, again.text) == ("r1", "i1", "Of")
    assert (again.speech.length, again.speech.words) == (2_000, (("Of", 2_000),))
    assert np.array_equal(again.speech.pcm(), SPOKEN.pcm()[1_000:3_000])


def test_what_is_said_has_a_plain_form_too() -> None:
    advert = Advert("look", "Looks.", {"type": "object"})
    assert live_to_plain(Configure("Be brief.", (advert,), True)) == {
        "configure": {
            "system": "Be brief.",
            "tools": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}],
            "answers_turns": True,
        }
    }
    result = {"call": "c1", "name": "look", "content": "42", "is_error": False}
    assert live_to_plain(Results((CallResult("c1", "look", "42", False),), True)) == {
        "results": {"results": [result], "quiet": True}
    }
    assert live_to_plain(Heard("start", 3, 3)) == {"heard": {"kind": "start", "onset_frame": 3, "last_frame": 3}}
    assert all(live_to_plain(each(*[0] * len(each.__slots__))) for each in get_args(live_line.Up))
    assert live_to_plain(live.Advert) is None


def test_audio_that_nobody_can_render_again_has_none() -> None:
    class Speech:
        length, words = 10, ()

        def pcm(self) -> Any: ...

    with pytest.raises(TypeError, match="audio of type Speech has no plain form"):
        live_to_plain(AudioDelta("r1", "i1", Speech(), ""))  # type: ignore[arg-type]


GOOD = live_to_plain(AudioDelta("r1", "i1", PIECE, "Of"))["audio_delta"]["speech"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"transcript": {"turn": 1}}, "accepted are the fields turn, text"),
        ({"transcript": {"turn": 1, "text": "Hi.", "by": "me"}}, "accepted are the fields turn, text"),
        ({"transcript": {"turn": "1", "text": "Hi."}}, "transcript.turn: found '1'; accepted is a whole number"),
        ({"transcript": {"turn": True, "text": "Hi."}}, "transcript.turn: found True; accepted is a whole number"),
        ({"speech_stopped": {"turn": 1, "at_us": 1.5}}, "found 1.5; accepted is a whole number or null"),
        ({"standing": {"idle": 1, "hearing": False}}, "standing.idle: found 1; accepted is true or false"),
        ({"calls_cancelled": {"calls": ["c1", 2]}}, "calls: found ['c1', 2]; accepted is a list of texts"),
        ({"quiet": []}, "accepted are the fields of nothing"),
        ({"note": {"text": "No."}}, "is no stream item"),
        ({"quiet": {}, "transcript": {}}, "is no stream item"),
        *(
            ({"audio_delta": {"response": "r1", "item": "i1", "text": "Of", "speech": speech}}, told)
            for speech, told in (
                ({**GOOD, "voice": "nobody"}, "nobody says 'Of course.' in the voice 'nobody'"),
                ({**GOOD, "text": "Of what?"}, "nobody says 'Of what?' in the voice 'agent' as it was recorded"),
                ({**GOOD, "length": SPOKEN.length}, "is no stretch of speech"),
                ({**GOOD, "first": -1}, "is no stretch of speech"),
                ({**GOOD, "words": [["Of"]]}, "['Of'] is no word with its end"),
                ({}, "is no stretch of speech"),
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_item_is_refused(data: Any, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        PlainPayloads().item_of(data)
