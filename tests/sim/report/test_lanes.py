"""What a picture shows of the hand-made sessions, as data."""

from __future__ import annotations

from bargein.sim.report.lanes import Bar, Lanes, Line, Look, Mark, Wait, lanes


def test_every_bar_mark_line_and_wait_of_an_interrupted_booking(interrupted_booking):
    shown = lanes(interrupted_booking)
    assert shown == Lanes(
        end_us=9_500_000,
        bars=[
            Bar("caller", 0, 500_000, 2_100_000, Look.CALLER, "A table for two on Friday, please."),
            Bar("VAD", 0, 500_000, 2_100_000, Look.VOICED),
            Bar("LLM", 0, 2_650_000, 3_000_000, Look.FIRST_TOKEN, "round 0", "0"),
            Bar("LLM", 0, 3_000_000, 3_100_000, Look.STREAM),
            Bar("bot", 0, 3_160_000, 4_160_000, Look.BOT, "Let me book that for you."),
            Bar("filler", 0, 4_300_000, 5_020_000, Look.FILLER, "One moment,"),
            Bar("filler", 0, 5_020_000, 5_800_000, Look.UNHEARD),
            Bar("tools", 0, 3_100_000, 5_013_000, Look.SIDE_EFFECT, "book_table"),
            Bar("tools", 0, 5_013_000, 5_500_000, Look.TAIL),
            Bar("caller", 0, 4_700_000, 5_600_000, Look.CALLER, "Wait, make it three."),
            Bar("VAD", 0, 4_700_000, 5_600_000, Look.VOICED),
            Bar("LLM", 0, 6_150_000, 6_400_000, Look.FIRST_TOKEN, "round 0", "0"),
            Bar("LLM", 0, 6_400_000, 6_500_000, Look.STREAM),
            Bar("tools", 0, 6_500_000, 7_300_000, Look.SIDE_EFFECT, "book_table"),
            Bar("bot", 0, 6_520_000, 7_320_000, Look.BOT, "Sorry, for three then."),
            Bar("LLM", 0, 7_300_000, 7_700_000, Look.FIRST_TOKEN, "round 1", "1"),
            Bar("LLM", 0, 7_700_000, 7_750_000, Look.STREAM),
            Bar("bot", 0, 7_820_000, 8_820_000, Look.BOT, "Done. For three."),
        ],
        marks=[
            Mark("VAD", 0, 2_600_000, Look.TURN_ENDED),
            Mark("VAD", 0, 6_100_000, Look.TURN_ENDED),
            Mark("tools", 0, 6_150_000, Look.NOTE),
        ],
        lines=[Line(5_013_000, Look.BARGE_IN), Line(5_020_000, Look.CUT)],
        waits=[
            Wait(2_100_000, 3_160_000, "response latency 1.06s"),
            Wait(3_100_000, 4_300_000, "filler delay 1.2s"),
            Wait(4_700_000, 5_020_000, "stop latency 320ms"),
            Wait(5_600_000, 6_520_000, "response latency 920ms"),
        ],
    )


def test_tools_that_run_together_have_rows_of_their_own_and_give_them_back(story):
    story.at(0).add("tool.started", "t1.0", "a", False, 1).add("tool.started", "t1.1", "b", False, 2)
    story.at(10).add("tool.finished", "t1.0", "a", "ok").add("tool.started", "t1.2", "c", False, 3)
    story.at(20).add("tool.finished", "t1.1", "b", "ok").add("tool.dropped", "t1.2", "c", "deadline")
    assert lanes(story.records).bars == [
        Bar("tools", 0, 0, 10_000, Look.READ_ONLY, "a"),
        Bar("tools", 1, 0, 20_000, Look.READ_ONLY, "b"),
        Bar("tools", 0, 10_000, 20_000, Look.READ_ONLY, "c"),
    ]
    assert lanes(story.records).rows("tools") == 2


def test_what_is_open_at_the_end_is_shown_up_to_there(story):
    story.at(0).add("caller.started", 0, "Hi.", 100_000, "audio").add("vad.started", 0).add("llm.request", 0, 1, 1, 0)
    story.add("tool.started", "t1.0", "a", True, 1).at(20).add("playout.started", 1, "answer", 320)
    story.at(40).add("session.ended", "time_limit")
    assert lanes(story.records).bars == [
        Bar("caller", 0, 0, 40_000, Look.CALLER, "Hi."),
        Bar("LLM", 0, 0, 40_000, Look.FIRST_TOKEN, "round 0", "0"),
        Bar("tools", 0, 0, 40_000, Look.SIDE_EFFECT, "a"),
        Bar("bot", 0, 20_000, 40_000, Look.BOT),
        Bar("VAD", 0, 0, 40_000, Look.VOICED),
    ]


def test_what_was_never_heard_ends_where_something_else_is_heard(story):
    story.at(20).add("playout.started", 1, "answer", 320).at(40).add("playout.cut", 1, 320, 32_000)
    story.at(60).add("playout.started", 2, "answer", 960).at(80).add("playout.ended", 2, 320)
    assert lanes(story.records).bars == [
        Bar("bot", 0, 20_000, 40_000, Look.BOT),
        Bar("bot", 0, 40_000, 60_000, Look.UNHEARD),
        Bar("bot", 0, 60_000, 80_000, Look.BOT),
    ]


def test_a_timeline_without_events_has_nothing_to_show():
    assert lanes([]) == Lanes()


def test_an_end_without_a_beginning_shows_nothing(story):
    story.user(1, "Hi.", [], 0).add("caller.ended", 0).add("vad.stopped", 0).add("llm.done", 0, "stop", 0, 0)
    story.add("tool.finished", "t1.0", "look", "ok").add("filler.spoken", 0, "look", "Wait.", None)
    story.add("playout.resumed", 1, 320).add("playout.word", 1, 0, "Hi").add("playout.ended", 1, 320)
    story.at(20).add("playout.cut", 2, 0, 320).at(40).add("playout.started", 3, "answer", 640)
    story.at(60).add("playout.starved", 3, 320).at(80).add("playout.cut", 3, 320, 320)
    assert lanes(story.records) == Lanes(end_us=80_000, bars=[Bar("bot", 0, 40_000, 60_000, Look.BOT)])
