"""Audacity labels, read back by a reader of such files."""

from __future__ import annotations

import pytest

from bargein.sim.report.labels import labels


def test_a_reader_of_label_files_finds_every_bar_mark_line_and_wait(interrupted_booking, tmp_path):
    io = pytest.importorskip("mir_eval.io", reason="mir_eval is not installed")
    path = tmp_path / "labels.txt"
    path.write_text(labels(interrupted_booking), encoding="utf-8")
    found = list(zip(*io.load_delimited(str(path), [float, float, str], delimiter="\t"), strict=True))
    assert found == [
        (0.5, 2.1, "caller: A table for two on Friday, please."),
        (0.5, 2.1, "VAD: speech seen by the VAD"),
        (2.1, 3.16, "response latency 1.06s"),
        (2.6, 2.6, "VAD: end of turn decided"),
        (2.65, 3.0, "LLM: LLM, until its first token round 0"),
        (3.0, 3.1, "LLM: LLM streams"),
        (3.1, 4.3, "filler delay 1.2s"),
        (3.1, 5.013, "tools: side effect book_table"),
        (3.16, 4.16, "bot: Let me book that for you."),
        (4.3, 5.02, "filler: One moment,"),
        (4.7, 5.02, "stop latency 320ms"),
        (4.7, 5.6, "caller: Wait, make it three."),
        (4.7, 5.6, "VAD: speech seen by the VAD"),
        (5.013, 5.013, "barge-in decided"),
        (5.013, 5.5, "tools: still running after its slot was answered"),
        (5.02, 5.02, "playout cut"),
        (5.02, 5.8, "filler: received, never heard"),
        (5.6, 6.52, "response latency 920ms"),
        (6.1, 6.1, "VAD: end of turn decided"),
        (6.15, 6.15, "tools: late note"),
        (6.15, 6.4, "LLM: LLM, until its first token round 0"),
        (6.4, 6.5, "LLM: LLM streams"),
        (6.5, 7.3, "tools: side effect book_table"),
        (6.52, 7.32, "bot: Sorry, for three then."),
        (7.3, 7.7, "LLM: LLM, until its first token round 1"),
        (7.7, 7.75, "LLM: LLM streams"),
        (7.82, 8.82, "bot: Done. For three."),
    ]


def test_a_label_stays_on_its_line_whatever_was_said(story):
    story.add("caller.started", 0, "one\ttwo\nthree\u2028four", 20_000, "audio").at(20).add("caller.ended", 0)
    assert labels(story.records) == "0.000000\t0.020000\tcaller: one two three four\n"


def test_nothing_gives_an_empty_file():
    assert labels([]) == ""
