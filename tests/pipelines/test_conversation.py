"""The conversation: fillers find their place, and every message says what was heard of it."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.pipelines.agent.assembly import Response
from bargein.pipelines.agent.messages import ToolCall, tool_answer
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.events import KINDS
from bargein.pipelines.playout_book import PlayoutBook, Source, UtteranceState
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.timeline import Timeline


class Sound:
    length = 300
    words = (("One", 100), (" moment,", 200), (" please.", 300))

    def pcm(self):
        return np.zeros(300, dtype=np.int16)


class Rig:
    def __init__(self):
        self.timeline = Timeline(Clock(), KINDS)
        self.book = PlayoutBook()
        self.conversation = Conversation(self.timeline, self.book)
        self.conversation.push_user("Hi.")

    def speak(self, source, heard, state=UtteranceState.CUT):
        """A response of which so many samples were heard."""
        ordinal = self.book.next_ordinal()
        utterance = self.book.register(0, ordinal, source)
        utterance.text.append("One moment, please.")
        utterance.receive(Sound())
        utterance.heard, utterance.state = heard, state
        return ordinal

    @property
    def said(self):
        return [(str(each.role), each.text) for each in self.conversation.context]

    def records(self, kind):
        return [row[3:] for row in self.timeline.rows if row[1] == kind]


@pytest.fixture
def rig():
    return Rig()


@pytest.mark.parametrize(
    ("heard", "text"), [(0, None), (99, None), (100, "One"), (299, "One moment,"), (300, "One moment, please.")]
)
def test_a_cut_answer_keeps_the_words_heard(rig, heard, text):
    ordinal = rig.speak(Source.ANSWER, heard)
    rig.conversation.push_response(ordinal, Response("One moment, please.", ()))
    rig.conversation.settle()
    assert rig.said[1:] == ([] if text is None else [("assistant", text)])
    assert rig.book.ties() == []


def test_an_answer_with_calls_keeps_them_though_nothing_was_heard(rig):
    call = ToolCall("t0.0", "book", {})
    ordinal = rig.speak(Source.ANSWER, 0)
    rig.conversation.push_response(ordinal, Response("One moment, please.", (call,)))
    assert rig.conversation.close_pending() == (call,)
    rig.conversation.settle()
    assert rig.conversation.context.messages[1].calls == (call,)
    assert rig.said[1] == ("assistant", "")


def test_a_filler_is_placed_ahead_of_the_answer_once_no_call_is_open(rig):
    rig.conversation.push_response(None, Response("", (ToolCall("t0.0", "look", {}),)))
    rig.conversation.filler_spoken(rig.speak(Source.FILLER, 300, UtteranceState.ENDED), "One moment, please.")
    rig.conversation.context.push(tool_answer("t0.0", "{}"))
    rig.conversation.push_response(rig.speak(Source.ANSWER, 300, UtteranceState.ENDED), Response("Yes.", ()))
    assert rig.said[1:] == [
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "One moment, please."),
        ("assistant", "Yes."),
    ]
    assert rig.conversation.fillers_in_context == 1
    assert [record[2] for record in rig.records("context.pushed")] == ["", "answer", "", "filler", "answer"]


@pytest.mark.parametrize(("heard", "text"), [(0, None), (250, "One moment,")])
def test_a_filler_that_was_cut_is_placed_as_it_was_heard(rig, heard, text):
    rig.conversation.filler_spoken(rig.speak(Source.FILLER, heard), "One moment, please.")
    rig.conversation.settle()
    assert rig.said[1:] == ([] if text is None else [("assistant", text)])
    assert rig.conversation.fillers_in_context == (0 if text is None else 1)


def test_a_filler_that_never_reached_the_speech_stage_is_not_placed(rig):
    rig.conversation.filler_spoken(rig.book.next_ordinal(), "One moment, please.")
    rig.conversation.settle()
    assert rig.said == [("user", "Hi.")]
    assert rig.conversation.fillers_in_context == 0


def test_a_response_cut_while_it_streamed_is_its_heard_words_behind_the_filler(rig):
    rig.conversation.filler_spoken(rig.speak(Source.FILLER, 300, UtteranceState.ENDED), "One moment, please.")
    rig.conversation.settle(streaming=rig.speak(Source.ANSWER, 150))
    assert rig.said[1:] == [("assistant", "One moment, please."), ("assistant", "One")]


def test_a_response_cut_while_it_streamed_unheard_leaves_nothing(rig):
    rig.conversation.settle(streaming=rig.speak(Source.ANSWER, 50))
    assert rig.said == [("user", "Hi.")]


def test_a_message_changes_no_more_once_it_is_settled(rig):
    ordinal = rig.speak(Source.ANSWER, 200)
    rig.conversation.push_response(ordinal, Response("One moment, please.", ()))
    rig.conversation.settle()
    rig.book.of_response(ordinal).heard = 0
    rig.conversation.settle()
    assert rig.said[1:] == [("assistant", "One moment,")]
    assert rig.records("context.truncated") == [(1, "One moment,")]
