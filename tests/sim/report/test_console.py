"""The story and the tables, as a pipe and as a terminal get them."""

from __future__ import annotations

from io import StringIO

from bargein.pipelines.events import KINDS
from bargein.sim.lab.metrics import metrics
from bargein.sim.report import console
from bargein.sim.report.console import _SENTENCES, metric_rows, print_metrics, print_story, story


class Terminal(StringIO):
    def isatty(self):
        return True


def test_the_story_tells_what_a_listener_would_ask_about(interrupted_booking):
    told = story(interrupted_booking)
    assert told[:4] == [
        (0, "the call begins"),
        (500_000, 'caller: "A table for two on Friday, please."'),
        (2_100_000, "the caller is silent"),
        (2_600_000, "the turn has ended (500ms after the speech)"),
    ]
    assert [text for t, text in told if 5_013_000 <= t <= 6_150_000] == [
        "barge-in decided (313ms after its onset)",
        "turn 1 is interrupted (barge_in)",
        "t1.0 is answered: interrupted_running",
        "the run of turn 1 ends: cancelled",
        "utterance 2 is cut: 11520 of 24000 samples heard",
        'the context keeps what was heard: "One moment,"',
        "book_table is done: ok",
        "t1.0 has a late result: ok",
        "the caller is silent",
        "the turn has ended (500ms after the speech)",
        "a late note tells of t1.0",
        'turn 2 opens: "Wait, make it three."',
        "LLM asked (round 0)",
    ]


def test_every_sentence_is_about_a_kind_and_its_own_fields():
    for kind, sentence in _SENTENCES.items():
        record = {"t": 1, "seq": 0, "kind": kind, "epoch": 1, **dict.fromkeys(KINDS[kind], 1)}
        assert sentence(record)


def test_the_story_tells_what_a_memory_a_provider_a_gate_and_a_link_did(story):
    story.add("memory.loaded", 1).add("memory.appended", 2).add("memory.failed", "load", "gone")
    story.add("llm.request_refused", 0, "anthropic", "messages: empty").add("confirm.cleared", ["t1.0"], "barge_in")
    story.add("link.down", None).add("link.up").add("link.refused", "session.accept", "book", "it is taken")
    assert [text for _, text in console.story(story.records)] == [
        "the memory holds 1 message of earlier calls",
        "the memory takes 2 messages of this call",
        "the memory fails (load): gone",
        "anthropic would refuse the request (round 0): messages: empty",
        "what waits for the user's confirmation is dropped (barge_in)",
        "the link to the remote agent is down",
        "the link to the remote agent is up again",
        "the remote agent's book is refused (session.accept): it is taken",
    ]


def test_metrics_have_a_value_with_its_unit_and_a_definition(interrupted_booking):
    rows = metric_rows(metrics(interrupted_booking))
    assert rows[0] == (
        "response latency",
        "1.06s",
        "longest wait of a turn: end of the caller's speech, as the VAD saw it, to first sample",
    )
    assert ("words lost", "1", "bot words known to be meant for the ear, but not heard to their end") in rows
    assert dict(row[:2] for row in metric_rows(metrics([])))["stop latency"] == "-"


def test_a_pipe_gets_plain_columns(story):
    out = StringIO()
    story.at(1_500).add("caller.started", 0, "Say [bold]hi[/bold].", 1, "audio").at(12_000).add("caller.ended", 0)
    print_story(story.records, out)
    assert out.getvalue() == (
        ' time (s)  what happens\n 1.500000  caller: "Say [bold]hi[/bold]."\n12.000000  the caller is silent\n'
    )


def test_a_terminal_gets_a_table_with_the_same_words(story):
    out = Terminal()
    story.at(1_500).add("caller.started", 0, "Say [bold]hi[/bold].", 1, "audio")
    print_story(story.records, out)
    assert 'caller: "Say [bold]hi[/bold]."' in out.getvalue()
    metrics_out = Terminal()
    print_metrics({"rounds": 3}, metrics_out)
    assert [word for word in metrics_out.getvalue().split() if word.isdigit()] == ["3"]
