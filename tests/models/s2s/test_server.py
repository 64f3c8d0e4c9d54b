"""The scripted live provider: what it sends when, what it refuses, and what it remembers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from bargein.models.latency import Constant
from bargein.models.llm_script import by_rounds
from bargein.models.s2s.server import LiveServer, ScriptedCalls
from bargein.pipelines.agent.live import (
    AudioDelta,
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
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.script import Call, Round


class Habits:
    def __init__(self, continues: bool) -> None:
        self.continues = self.calls_last = self.withdraws = continues


class Rig:
    def __init__(self, *rounds: Round, continues: bool = False, answers_turns: bool = True, speed: int = 4) -> None:
        self.clock = Clock()
        self.sent: list[tuple[int, Any]] = []
        script = ScriptedCalls(
            by_rounds(rounds), Constant(100_000), Constant(0), Streams(0).stream("llm"), "agent", Fraction(speed)
        )
        self.server = LiveServer(self.clock, Habits(continues), script, self._send, lambda: None)
        self.server.take(Configure("", (), answers_turns))

    def _send(self, event: Any) -> None:
        self.sent.append((self.clock.now, event))

    def kinds(self) -> list[tuple[int, str]]:
        sent, self.sent = self.sent, []
        return [(t, type(event).__name__) for t, event in sent]

    def refusals(self) -> list[str]:
        return [event.code for _, event in self.sent if type(event) is Refused]


def test_a_turn_is_answered_with_audio_faster_than_it_plays() -> None:
    rig = Rig(Round(text="Hello there."))
    rig.server.speech_started(0)
    rig.server.speech_stopped(0, "Hi.")
    rig.clock.run()

    assert [event for _, event in rig.sent[:2]] == [SpeechStarted(1, 0, False), SpeechStopped(1, 0)]
    assert Transcript(1, "Hi.") in [event for _, event in rig.sent]
    deltas = [(t, event) for t, event in rig.sent if type(event) is AudioDelta]
    assert [event.text for _, event in deltas] == ["Hello", " there."]
    assert deltas[0][0] == 100_000
    assert deltas[1][0] - deltas[0][0] == -(-deltas[0][1].speech.length * 125 // 8)  # a quarter of what it lasts
    assert rig.sent[-1] == (deltas[1][0], ResponseEnded("resp_1"))


def test_speech_stops_the_response_and_the_next_turn_gets_its_own() -> None:
    rig = Rig(Round(text="Hello there."), Round(text="Yes?"))
    rig.server.speech_stopped(0, "Hi.")
    rig.clock.run(120_000)
    rig.server.speech_started(120_000)
    rig.server.speech_stopped(120_000, "Wait.")
    rig.clock.run()

    ends = [event for _, event in rig.sent if type(event) in (ResponseStarted, ResponseEnded)]
    assert ends == [
        ResponseStarted("resp_1", "", 1),
        ResponseEnded("resp_1", "cancelled", "turn_detected"),
        ResponseStarted("resp_2", "", 2),
        ResponseEnded("resp_2"),
    ]


def test_a_client_that_takes_the_turns_has_to_ask_and_to_cancel() -> None:
    rig = Rig(Round(text="Hello there."), answers_turns=False)
    rig.server.speech_stopped(0, "Hi.")
    rig.server.take(CreateResponse("a"))
    rig.clock.run(120_000)
    rig.server.speech_started(120_000)
    assert [name for _, name in rig.kinds()][-1] == "SpeechStarted"
    rig.server.take(CancelResponse("resp_1"))
    assert rig.kinds() == [(120_000, "ResponseEnded")]


def test_it_refuses_what_real_ones_refuse() -> None:
    rig = Rig(Round(text="Hello."), Round(text="Again."))
    server = rig.server
    server.take(CancelResponse("resp_1"))
    server.speech_stopped(0, "Hi.")
    server.take(CreateResponse("a"))
    rig.clock.run()
    ms = sum(event.speech.length for _, event in rig.sent if type(event) is AudioDelta) // 16
    server.take(TruncateItem("resp_1_item_1", 0))
    server.take(TruncateItem("resp_1_item_1", ms + 1))
    server.take(TruncateItem("user_1", 1))
    server.take(DeleteItem("nothing"))
    server.take(Results((CallResult("c9", "x", "", False),)))
    wanted = [
        "response_cancel_not_active",
        "conversation_already_has_active_response",
        "invalid_value",
        "invalid_value",
        "item_truncate_invalid_item_id",
        "item_delete_invalid_item_id",
        "invalid_tool_call_id",
    ]
    assert rig.refusals() == server.refusals == wanted
    server.take(TruncateItem("resp_1_item_1", ms))
    assert server.refusals == wanted


def test_it_remembers_what_it_was_told_was_heard() -> None:
    rig = Rig(Round(text="Hello there."), Round(text="Good bye."), Round(text="Yes?"))
    rig.server.speech_stopped(0, "Hi.")
    rig.clock.run()
    first_word = next(event.speech.length for _, event in rig.sent if type(event) is AudioDelta)
    rig.server.take(TruncateItem("resp_1_item_1", -(-first_word // 16)))
    rig.server.speech_stopped(rig.clock.now, "What?")
    rig.clock.run()
    rig.server.take(DeleteItem("resp_2_item_1"))
    rig.server.take(Note("A note."))
    rig.server.speech_stopped(rig.clock.now, "Again.")

    said = [(message.role.value, message.text) for message in rig.server.requests[-1].messages]
    assert said == [
        ("user", "Hi."),
        ("assistant", "Hello"),
        ("user", "What?"),
        ("system", "A note."),
        ("user", "Again."),
    ]


def test_one_that_goes_on_by_itself_waits_for_every_answer_and_not_for_quiet_ones() -> None:
    asks = Round(calls=(Call("look"), Call("look")))
    rig = Rig(asks, Round(text="Done."), continues=True)
    rig.server.speech_stopped(0, "Hi.")
    rig.clock.run()
    rig.sent.clear()
    rig.server.take(Results((CallResult("call_0", "look", "1", False),)))
    assert rig.sent == []
    rig.server.take(Results((CallResult("call_1", "look", "2", False),)))
    assert [event for _, event in rig.sent] == [ResponseStarted("resp_2", "", 1)]

    quiet = Rig(asks, continues=True)
    quiet.server.speech_stopped(0, "Hi.")
    quiet.clock.run()
    quiet.sent.clear()
    quiet.server.take(Results(tuple(CallResult(f"call_{n}", "look", "", False) for n in range(2)), quiet=True))
    assert quiet.sent == []


def test_an_answer_to_a_call_that_it_has_just_withdrawn_is_passed_over() -> None:
    rig = Rig(Round(calls=(Call("look"),)), Round(text="Yes?"), continues=True)
    rig.server.speech_stopped(0, "Hi.")
    rig.clock.run()
    rig.server.speech_started(rig.clock.now)
    assert [name for _, name in rig.kinds()][-2:] == ["CallsCancelled", "SpeechStarted"]
    rig.server.take(Results((CallResult("call_0", "look", "1", False),)))
    assert rig.sent == []
