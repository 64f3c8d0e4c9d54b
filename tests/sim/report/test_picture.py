"""Properties of the pictures: their size, their lanes, and that no text lies on another."""

from __future__ import annotations

import struct

import pytest

from bargein.sim.report.latency_plot import draw_latencies, write_latencies
from bargein.sim.report.picture import draw, write_picture


def size(path):
    """Width and height in pixels, from the PNG's header."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def texts(figure):
    axes = figure.axes[0]
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts if text.get_text()]


def crowded(story, seconds):
    """Barge-ins close together, tools side by side, labels wider than what they name."""
    for second in range(seconds):
        ms = 1_000 * second
        story.at(ms).add("caller.started", second, "Some $5 more, please, quickly.", 200_000, "audio")
        story.at(ms + 20).add("playout.started", second, "answer", 16 * (ms + 20))
        story.at(ms + 100).add("tools.started", 0, ["t1.0", "t1.1", "t1.2"])
        for number in range(3):
            story.add("tool.started", f"t{second}.{number}", "look_up_the_weather", False, number)
        story.at(ms + 150).add("turn.barge_in", 1_000 * ms, "audio").at(ms + 160)
        story.add("playout.cut", second, 2_240, 4_800).add("filler.spoken", 0, "look_up_the_weather", "Wait.", None)
        story.at(ms + 200).add("caller.ended", second)
        for number in range(3):
            story.add("tool.finished", f"t{second}.{number}", "look_up_the_weather", "ok")
    return story.records


def test_the_picture_has_every_lane_and_grows_with_the_session(interrupted_booking, story, tmp_path):
    figure = draw(interrupted_booking, "a booking")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "caller", "VAD", "LLM", "tools", "filler", "bot", "waits",
    ]  # fmt: skip
    assert axes.get_title(loc="left") == "a booking"
    short = size(write_picture(tmp_path / "short.png", interrupted_booking))
    assert short[0] > 1_500
    assert short[1] > 700
    assert size(write_picture(tmp_path / "long.png", crowded(story, 20)))[0] > short[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.png", "short.png"]


def test_the_legend_names_only_what_is_shown(interrupted_booking, story):
    names = [text.get_text() for text in draw(interrupted_booking).legends[0].get_texts()]
    assert names == [
        "caller speaks",
        "speech seen by the VAD",
        "LLM, until its first token",
        "LLM streams",
        "side effect",
        "still running after its slot was answered",
        "filler or fallback heard",
        "bot heard",
        "received, never heard",
        "end of turn decided",
        "late note",
        "barge-in decided",
        "playout cut",
    ]
    story.at(0).add("caller.started", 0, "Hi.", 1_000, "audio").at(1).add("caller.ended", 0)
    assert [text.get_text() for text in draw(story.records).legends[0].get_texts()] == ["caller speaks"]


def test_no_label_lies_on_another(interrupted_booking, story):
    for figure in (draw(interrupted_booking), draw(crowded(story, 6))):
        boxes = texts(figure)
        assert len(boxes) > 8
        for at, (name, box) in enumerate(boxes):
            assert [other for other, there in boxes[at + 1 :] if box.overlaps(there)] == [], name


def test_the_same_timeline_is_the_same_picture(interrupted_booking, tmp_path):
    first = write_picture(tmp_path / "a.png", interrupted_booking).read_bytes()
    assert write_picture(tmp_path / "b.png", interrupted_booking).read_bytes() == first


@pytest.mark.parametrize("records", [[], [{"t": 0, "seq": 0, "kind": "session.started", "epoch": 0}]])
def test_a_session_without_events_is_still_a_picture(records, tmp_path):
    assert size(write_picture(tmp_path / "a.png", records, "nothing"))[0] > 1_000
    assert size(write_latencies(tmp_path / "b.png", records))[0] > 1_000


def test_the_latency_plot_has_a_row_for_each_turn(interrupted_booking, story, tmp_path):
    figure = draw_latencies(interrupted_booking, "a booking")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["turn 1", "turn 2"]
    assert [text.get_text() for text in axes.texts] == ["1.06s", "2.22s"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "endpoint", "STT", "LLM first token", "tools", "LLM, the rest", "speech",
    ]  # fmt: skip
    assert size(write_latencies(tmp_path / "a.png", interrupted_booking)) == (1_350, 382)
    story.user(1, "Hi.", [], 0)
    assert [text.get_text() for text in draw_latencies(story.records).axes[0].texts] == ["no answer heard"]
