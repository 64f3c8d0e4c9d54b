"""The speech-to-speech stage against a provider that does as it is told: one message at a time, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bargein.pipelines.agent.live import (
    AudioDelta,
    CallReady,
    CallsCancelled,
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
from bargein.pipelines.agent.messages import ToolCall, assistant, system, tool_answer, user
from bargein.pipelines.agent.request import Request
from bargein.pipelines.events import KINDS
from bargein.pipelines.playout_book import PlayoutBook, Source, UtteranceState
from bargein.pipelines.s2s import ALREADY_ACTIVE, S2sStage
from bargein.pipelines.s2s_responses import position_ms
from bargein.pipelines.s2s_voice import LiveVoice
from bargein.pipelines.tools.results import interrupted_message
from bargein.sim.effects.bus import EffectBus, EffectKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.timeline import Timeline


class Provider:
    """Keeps what it is sent."""

    hearing = False
    idle = True

    def __init__(self, answers_turns: bool = True, continues: bool = False, truncates: bool = True) -> None:
        self.answers_turns, self.continues, self.truncates = answers_turns, continues, truncates
        self.sent: list[Any] = []

    def start(self, listener: Any) -> None:
        self.listener = listener

    def send(self, command: Any) -> None:
        self.sent.append(command)

    def taken(self) -> list[Any]:
        sent, self.sent = self.sent, []
        return sent


class Session:
    """Keeps what it is told; an interruption ends the round, as in a real one."""

    epoch = 0

    def __init__(self) -> None:
        self.active = False
        self.told: list[Any] = []
        self.on_barge_in: Any = lambda: None

    def user_speaks(self) -> None:
        self.told.append("speaks")

    def barge_in(self, onset_us: int, source: str) -> None:
        self.told.append(("barge_in", onset_us, source))
        self.active = False
        self.on_barge_in()

    def open_turn(self, number: int) -> None:
        self.told.append(("turn", number))

    def fill_turn(self, number: int) -> None:
        self.told.append(("fill", number))


class Audio:
    def __init__(self, word: str, length: int) -> None:
        self.length = length
        self.words = [(word, length)]

    def pcm(self) -> Any:
        return np.zeros(self.length, dtype=np.int16)


class Rig:
    """A stage with its surroundings, driven by hand."""

    def __init__(self, **habits: bool) -> None:
        self.clock = Clock()
        self.timeline = Timeline(self.clock, KINDS)
        self.bus = EffectBus(self.clock)
        self.book = PlayoutBook()
        self.provider = Provider(**habits)
        self.session = Session()
        self.voice = LiveVoice(self.book, None)  # type: ignore[arg-type]
        self.stage = S2sStage(self.clock, self.timeline, self.provider, self.voice, self.session, lambda: None)
        self.bus.register("model", self.stage)
        self.stage.start(Configure("", (), self.provider.answers_turns))
        self.provider.taken()
        self.items: list[Any] = []

    def round(self, *messages: Any) -> Any:
        """A round begins with this context, and its turn before it."""
        if not self.stage.users.opened:
            self.get(SpeechStopped(1))
        request = Request(messages or (user("Hi."),), ())
        effect = self.bus.dispatch(
            EffectKind.COMPLETION, "model", request, scope="t1", on_item=self.items.append, on_landed=lambda _: None
        )
        self.clock.run()
        return effect

    def get(self, *events: Any) -> None:
        """These arrive, one instant."""
        for event in events:
            self.stage.on_event(event)
        self.clock.run()

    def delivered(self) -> list[Any]:
        items, self.items = self.items, []
        return [getattr(each, "text", None) or getattr(each, "name", None) or each.reason for each in items]

    def play(self, ordinal: int, heard: int, state: UtteranceState) -> None:
        """The speech stage opened the next answer, and so much of it was heard."""
        utterance = self.book.register(1, ordinal, Source.ANSWER)
        self.voice.open(utterance.number, lambda *_: None, lambda *_: None)
        utterance.heard, utterance.state = heard, state


CALL = CallReady("r1", "w1", "look", '{"a":1}')
ASKED = assistant("", (ToolCall("t1.0", "look", {"a": 1}, "w1"),))
ANSWER = tool_answer("t1.0", "42")


def _calls(**habits: bool) -> Rig:
    """A rig whose first response, the provider's own, has asked for a call."""
    rig = Rig(**habits)
    rig.round()
    rig.get(ResponseStarted("r1", "", 1), CALL, ResponseEnded("r1"))
    rig.delivered()
    return rig


@pytest.mark.parametrize(("samples", "ms"), [(0, 0), (15, 0), (16, 1), (31, 1), (320, 20), (4_799, 299), (4_800, 300)])
def test_a_position_is_samples_over_rate_in_whole_milliseconds_passed(samples: int, ms: int) -> None:
    assert position_ms(samples) == ms


# -- turns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["stopped", "started"])
def test_a_turn_is_opened_once_whatever_tells_of_it_first(first: str) -> None:
    rig = Rig()
    events = [SpeechStopped(1), ResponseStarted("r1", "", 1)]
    for event in events if first == "stopped" else events[::-1]:
        rig.get(event)
    assert rig.session.told == [("turn", 1)]


def test_words_that_come_with_the_turn_are_there_when_it_opens_and_later_ones_fill_it() -> None:
    rig = Rig()
    rig.get(SpeechStopped(1), Transcript(1, "Hi."))
    rig.get(SpeechStopped(2))
    rig.get(Transcript(2, "And bye."))
    assert rig.session.told == [("turn", 1), ("turn", 2), ("fill", 2)]
    assert [rig.stage.users.words_of(n) for n in (1, 2, 3)] == ["Hi.", "And bye.", None]
    assert [(r["segment"], r["text"]) for r in rig.timeline.of("stt.final")] == [(1, "Hi.")]


def test_a_beginning_of_speech_that_comes_after_its_answer_is_old_news() -> None:
    rig = Rig()
    rig.get(ResponseStarted("r1", "", 1))
    rig.session.active = True
    rig.get(SpeechStarted(1, 5))
    assert rig.session.told == [("turn", 1)]
    rig.get(SpeechStarted(2, 7))
    assert rig.session.told[1:] == ["speaks", ("barge_in", 7, "provider")]


def test_a_response_that_the_provider_stopped_by_itself_is_an_interruption() -> None:
    rig = Rig()
    effect = rig.round()
    rig.get(ResponseStarted("r1", "", 1))
    rig.session.active = True
    rig.session.on_barge_in = lambda: effect.cancel(Cause.BARGE_IN)
    rig.get(ResponseEnded("r1", "cancelled", "turn_detected"))
    assert rig.session.told == [("turn", 1), ("barge_in", 0, "provider")]
    assert rig.provider.taken() == []  # it is over there: cancelling it would be refused


# -- rounds -----------------------------------------------------------------------------------------------------


def test_content_that_came_before_its_round_is_delivered_in_order_when_it_begins() -> None:
    rig = Rig()
    rig.get(ResponseStarted("r1", "", 1), AudioDelta("r1", "i1", Audio("Hi", 320), "Hi"), CALL)
    effect = rig.round()
    rig.get(ResponseEnded("r1"))
    assert rig.delivered() == ["Hi", "look", "tool_calls"]
    assert not effect.running


def test_content_of_the_instant_on_which_a_round_begins_keeps_its_order() -> None:
    rig = Rig()
    rig.get(ResponseStarted("r1", "", 1), AudioDelta("r1", "i1", Audio("One", 320), "One"))
    request = Request((user("Hi."),), ())
    rig.bus.dispatch(EffectKind.COMPLETION, "model", request, scope="t1", on_item=rig.items.append, on_landed=print)
    rig.get(AudioDelta("r1", "i1", Audio(" two", 320), " two"))
    assert rig.delivered() == ["One", " two"]


def test_an_answer_that_no_round_took_up_gives_way_to_the_next() -> None:
    rig = Rig()
    rig.get(ResponseStarted("r1", "", 1), AudioDelta("r1", "i1", Audio("One", 320), "One"), CALL, ResponseEnded("r1"))
    rig.get(ResponseStarted("r2", "", 2), AudioDelta("r2", "i2", Audio("Two", 320), "Two"))
    (results, delete) = rig.provider.taken()
    assert ([r.call for r in results.results], results.quiet, delete) == (["w1"], True, DeleteItem("i1"))
    rig.round()
    assert rig.delivered() == ["Two"]


def test_results_go_out_once_and_one_request_follows() -> None:
    rig = _calls()
    rig.round(user("Hi."), ASKED, ANSWER)
    (results, create) = rig.provider.taken()
    assert [(r.call, r.name, r.content, r.is_error) for r in results.results] == [("w1", "look", "42", False)]
    assert (results.quiet, type(create)) == (False, CreateResponse)
    rig.stage.tell_rest((user("Hi."), ASKED, ANSWER))
    assert rig.provider.taken() == []


@pytest.mark.parametrize("continues", [False, True])
def test_a_note_stands_before_whatever_starts_the_next_response(continues: bool) -> None:
    rig = _calls(continues=continues)
    note = system("Result of an earlier call: look (call t1.0): 42", "t1.0")
    rig.round(user("Hi."), ASKED, ANSWER, note)
    kinds = [type(each) for each in rig.provider.sent]
    assert kinds == ([Note, Results, CreateResponse] if continues else [Results, Note, CreateResponse])
    (sent,) = [each for each in rig.provider.taken() if type(each) is Note]
    assert sent.text == "Result of an earlier call: look (call w1): 42"  # by the id that the provider knows


def test_a_request_waits_for_the_active_response_to_end_and_exactly_one_follows() -> None:
    rig = Rig(answers_turns=False)
    first = rig.round()
    (create,) = rig.provider.taken()
    rig.get(ResponseStarted("r1", create.tag))
    first.cancel(Cause.BARGE_IN)
    rig.round(user("Wait."))
    assert [type(each) for each in rig.provider.taken()] == [CancelResponse]
    assert rig.stage.stats.requests_deferred == 1
    rig.get(ResponseEnded("r1", "cancelled", "client_cancelled"))
    (again,) = rig.provider.taken()
    assert type(again) is CreateResponse
    assert again.tag != create.tag


def test_a_refused_request_is_made_again_when_the_other_response_has_ended() -> None:
    rig = _calls()
    rig.round(user("Hi."), ASKED, ANSWER)
    (_, create) = rig.provider.taken()
    rig.stage.on_event(ResponseStarted("r2", "", 2))
    rig.get(Refused(ALREADY_ACTIVE, "r2 is in progress"))
    assert rig.provider.taken() == []
    rig.get(ResponseEnded("r2"))
    assert rig.provider.taken() == [create]
    assert rig.stage.stats.refused == 1


def test_a_request_that_an_interruption_has_made_void_holds_nothing_up() -> None:
    """A provider that goes on by itself will not begin what it was to go on with once it has withdrawn the calls."""
    rig = _calls(continues=True)
    effect = rig.round(user("Hi."), ASKED, ANSWER)
    rig.provider.taken()
    rig.get(CallsCancelled(("w1",)))
    effect.cancel(Cause.BARGE_IN)
    rig.stage.interrupted((user("Hi."), ASKED, ANSWER))
    rig.get(ResponseStarted("r2", "", 2), CallReady("r2", "w2", "book", "{}"), ResponseEnded("r2"))
    rig.provider.taken()
    second = assistant("", (ToolCall("t2.0", "book", {}, "w2"),))
    rig.round(user("Hi."), ASKED, ANSWER, user("Wait."), second, tool_answer("t2.0", "done"))
    assert [type(each) for each in rig.provider.taken()] == [Results, CreateResponse]


def test_a_response_that_nobody_wants_any_more_is_cancelled_when_it_begins() -> None:
    rig = Rig(answers_turns=False)
    effect = rig.round()
    (create,) = rig.provider.taken()
    effect.cancel(Cause.BARGE_IN)
    rig.get(ResponseStarted("r1", create.tag), AudioDelta("r1", "i1", Audio("Hi", 320), "Hi"))
    assert rig.provider.taken() == [CancelResponse("r1")]
    rig.get(ResponseEnded("r1", "cancelled"))
    assert rig.provider.taken() == [DeleteItem("i1")]
    assert rig.delivered() == []


# -- calls ------------------------------------------------------------------------------------------------------


def test_a_call_that_arrives_while_an_earlier_one_runs_is_the_next_round() -> None:
    """lj1137: it was ignored, and the provider waited for ever."""
    rig = _calls(continues=True)
    rig.get(CallReady("r1", "w2", "book", "{}"))
    assert rig.delivered() == []
    effect = rig.round(user("Hi."), ASKED, ANSWER)
    assert [type(each) for each in rig.provider.taken()] == [Results]  # nothing is asked while the second is open
    assert rig.delivered() == ["book", "tool_calls"]
    assert not effect.running
    second = assistant("", (ToolCall("t1.1", "book", {}, "w2"),))
    rig.round(user("Hi."), ASKED, ANSWER, second, tool_answer("t1.1", "done"))
    (results, create) = rig.provider.taken()
    assert ([r.call for r in results.results], type(create)) == (["w2"], CreateResponse)


def test_an_interruption_answers_what_the_context_closed_and_gives_up_what_it_never_held() -> None:
    rig = _calls()
    rig.round(user("Hi."), ASKED, ANSWER)
    (_, create) = rig.provider.taken()
    rig.get(ResponseStarted("r2", create.tag), CallReady("r2", "w2", "book", "{}"))
    rig.stage.interrupted((user("Hi."), ASKED, ANSWER))
    (results,) = rig.provider.taken()
    assert results.quiet
    assert [(r.call, r.name, r.is_error) for r in results.results] == [("w2", "book", True)]
    assert rig.stage.stats.calls_given_up == 1


def test_a_call_of_a_response_that_is_over_is_answered_at_once() -> None:
    rig = Rig()
    effect = rig.round()
    rig.get(ResponseStarted("r1", "", 1))
    effect.cancel(Cause.BARGE_IN)
    rig.provider.taken()
    rig.get(CALL)
    (results,) = rig.provider.taken()
    assert (results.quiet, [r.call for r in results.results]) == (True, ["w1"])


def test_an_answer_that_was_on_its_way_as_its_call_was_withdrawn_is_told_as_a_note() -> None:
    rig = _calls(continues=True)
    rig.round(user("Hi."), ASKED, ANSWER)
    rig.provider.taken()
    rig.get(CallsCancelled(("w1",)))
    text = "Result of an earlier call that had not finished in time: look (call w1): 42"
    assert rig.provider.taken() == [Note(text)]


def test_one_that_says_nothing_of_how_the_call_went_is_not() -> None:
    rig = _calls(continues=True)
    rig.stage.interrupted((user("Hi."), ASKED, interrupted_message(ASKED.calls[0])))
    assert [type(each) for each in rig.provider.taken()] == [Results]
    rig.get(CallsCancelled(("w1",)))
    assert rig.provider.taken() == []


def test_a_withdrawn_call_is_not_answered() -> None:
    rig = _calls()
    rig.get(CallsCancelled(("w1",)))
    rig.stage.interrupted((user("Hi."), ASKED, ANSWER))
    assert rig.provider.taken() == []


# -- positions --------------------------------------------------------------------------------------------------


def _spoken(*deltas: AudioDelta, **habits: bool) -> Rig:
    rig = Rig(**habits)
    rig.round()
    rig.get(ResponseStarted("r1", "", 1), *deltas)
    return rig


TWO = (
    AudioDelta("r1", "i1", Audio("One", 1600), "One"),
    AudioDelta("r1", "i1", Audio(" two", 1600), " two"),
    AudioDelta("r1", "i2", Audio(" three", 1600), " three"),
)


@pytest.mark.parametrize(
    ("heard", "told"),
    [
        (0, [DeleteItem("i1"), DeleteItem("i2")]),
        (15, [DeleteItem("i1"), DeleteItem("i2")]),
        (640, [TruncateItem("i1", 40), DeleteItem("i2")]),
        (3200, [DeleteItem("i2")]),
        (3520, [TruncateItem("i2", 20)]),
        (4800, []),
    ],
)
def test_each_item_gets_its_own_position_from_its_own_zero(heard: int, told: list[Any]) -> None:
    rig = _spoken(*TWO)
    rig.get(ResponseEnded("r1"))
    rig.play(0, heard, UtteranceState.CUT)
    rig.stage.cut()
    assert rig.provider.taken() == told
    rig.stage.cut()
    assert rig.provider.taken() == []


def test_an_answer_that_was_interrupted_before_it_was_opened_leaves_its_place_to_the_next() -> None:
    rig = _spoken(*TWO[:1])
    rig.stage.interrupted(())
    rig.get(ResponseEnded("r1"), ResponseStarted("r2", "", 2))
    rig.round()
    rig.get(AudioDelta("r2", "i9", Audio("Nine", 1600), "Nine"))
    rig.play(1, 320, UtteranceState.CUT)
    rig.provider.taken()
    rig.stage.cut()
    assert rig.provider.taken() == [DeleteItem("i1"), TruncateItem("i9", 20)]


def test_an_item_that_is_incomplete_is_cut_at_what_was_received() -> None:
    rig = _spoken(*TWO[:2])
    rig.play(0, 3200, UtteranceState.CUT)
    rig.stage.cut()
    assert rig.provider.taken() == [TruncateItem("i1", 200)]


def test_nothing_is_told_before_the_cut_nor_to_a_provider_that_cannot_be_told() -> None:
    rig = _spoken(*TWO)
    rig.play(0, 640, UtteranceState.PLAYING)
    rig.stage.cut()
    assert rig.provider.taken() == []
    other = _spoken(*TWO, truncates=False)
    other.play(0, 640, UtteranceState.CUT)
    other.stage.cut()
    assert other.provider.taken() == []
