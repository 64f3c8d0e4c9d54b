"""The numbers of one hand-made session, each worked out by hand, and of sessions that lack what they measure."""

from __future__ import annotations

from bargein.sim.lab.metrics import METRICS, metrics, tool_summary
from bargein.sim.lab.stages import STAGES, TurnStages, turns


def test_every_metric_of_an_interrupted_booking(interrupted_booking):
    assert metrics(interrupted_booking) == {
        "response_latency_us": 1_060_000,  # 2.1 s to 3.16 s
        "response_latencies_us": [1_060_000, 920_000],
        "endpoint_delay_us": 500_000,
        "endpoint_delays_us": [500_000, 500_000],
        "stt_latency_us": 350_000,
        "stt_latencies_us": [350_000, 350_000],
        "llm_ttft_us": 400_000,
        "llm_ttfts_us": [350_000, 250_000, 400_000],
        "llm_duration_us": 450_000,
        "llm_durations_us": [450_000, 350_000, 450_000],
        "tool_duration_us": 2_400_000,
        "tool_durations_us": [2_400_000, 800_000],
        "tts_ttfb_us": 150_000,
        "tts_ttfbs_us": [150_000, 100_000, 100_000],  # the clip has none
        "stop_latency_us": 320_000,  # onset 4.7 s to the cut at 5.02 s
        "stop_latencies_us": [320_000],
        "talk_over_us": 320_000,
        "dead_air_us": 1_060_000,
        "fillers": 1,
        "fillers_cut": 1,
        "fallbacks": 0,
        "words_heard": 15,
        "words_lost": 1,  # "please."
        "barge_ins": 1,
        "turns": 2,
        "rounds": 3,
        "tool_calls": 2,
        "tool_runs": 2,
        "side_effect_runs": 2,
        "late_notes": 1,
    }


def test_a_session_without_events_has_none_of_each_duration():
    values = metrics([])
    assert list(values) == list(METRICS)
    singles = {name: value for name, value in values.items() if not isinstance(value, list)}
    assert {name for name, value in singles.items() if value is None} == {
        name for name in singles if name.endswith("_us") and name != "talk_over_us"
    }
    assert all(value == [] for value in values.values() if isinstance(value, list))


def test_names_of_durations_end_in_us():
    assert all(name.endswith("_us") == (unit == "us") for name, (unit, _) in METRICS.items())


def test_dead_air_counts_the_silence_after_a_filler_too(story):
    story.at(0).add("caller.started", 0, "Hi.", 100_000, "audio").at(100).add("caller.ended", 0)
    story.at(200).add("playout.started", 1, "filler", 3_200).at(300).add("playout.ended", 1, 1_600)
    story.at(900).add("playout.started", 2, "answer", 14_400).at(1_000).add("playout.ended", 2, 1_600)
    assert metrics(story.records)["dead_air_us"] == 600_000


def test_a_silence_that_the_caller_ends_is_no_dead_air(story):
    story.at(0).add("caller.started", 0, "Hi.", 100_000, "audio").at(100).add("caller.ended", 0)
    story.at(5_000).add("caller.started", 1, "Hello?", 100_000, "audio").at(5_100).add("caller.ended", 1)
    assert metrics(story.records)["dead_air_us"] is None


def test_a_silence_before_the_caller_first_spoke_is_no_dead_air(story):
    story.at(0).add("playout.started", 1, "answer", 0).at(100).add("playout.ended", 1, 1_600)
    story.at(900).add("playout.started", 2, "answer", 14_400).at(1_000).add("playout.ended", 2, 1_600)
    assert metrics(story.records)["dead_air_us"] is None


def test_talk_over_leaves_out_the_pauses_of_the_bot(story):
    story.at(0).add("caller.started", 0, "Hi.", 100_000, "audio").add("playout.started", 1, "answer", 0)
    story.at(20).add("playout.starved", 1, 320).at(60).add("playout.resumed", 1, 960)
    story.at(100).add("caller.ended", 0).at(120).add("playout.ended", 1, 1_280)
    assert metrics(story.records)["talk_over_us"] == 60_000


def test_a_barge_in_that_cuts_nothing_audible_has_no_stop_latency(story):
    story.at(10).add("tts.opened", 1, 0, "filler", "c").add("turn.barge_in", 0, "audio")
    story.at(20).add("playout.cut", 1, 0, 320)
    values = metrics(story.records)
    assert (values["stop_latencies_us"], values["fillers_cut"], values["barge_ins"]) == ([], 1, 1)


def test_a_lookup_an_answer_cut_a_clip_and_a_prompt_are_not_counted_as_something_else(story):
    story.push(0, "system", "Be brief.").push(1, "system", "Now.").add("tool.started", "t1.0", "look", False, 1)
    story.add("tts.opened", 1, 0, "filler", "c").at(5).add("tts.first_byte", 1).add("tts.opened", 2, 1, "answer", None)
    story.at(20).add("playout.cut", 2, 0, 0)
    values = metrics(story.records)
    assert (values["side_effect_runs"], values["tool_runs"], values["late_notes"]) == (0, 1, 0)
    assert (values["fillers_cut"], values["tts_ttfbs_us"]) == (0, [])


def test_an_end_without_a_beginning_counts_for_nothing(story):
    """The caller's decisions may be placed without audio, and a timeline may be a part of one."""
    story.user(1, "Hi.", [], 0).add("stt.final", 0, "Hi.").add("llm.first_token", 0).add("llm.done", 0, "stop", 0, 0)
    story.add("tool.finished", "t1.0", "look", "ok").add("tts.first_byte", 1).add("caller.ended", 0)
    story.add("playout.started", 1, "answer", 0).add("playout.ended", 2, 0)
    values = metrics(story.records)
    assert [name for name, value in values.items() if value and name != "turns"] == []


def test_tools_are_counted_by_name_and_outcome(interrupted_booking):
    assert tool_summary(interrupted_booking) == {
        "book_table": {"runs": 2, "outcomes": {"interrupted_running": 1, "ok": 1}}
    }


def test_the_stages_of_a_turn_add_up_to_its_wait(interrupted_booking):
    found = turns(interrupted_booking)
    assert found == [
        TurnStages(
            1,
            "A table for two on Friday, please.",
            {"endpoint": 500_000, "stt": 50_000, "first_token": 350_000, "tools": 0, "llm": 0, "speech": 160_000},
            1_060_000,
            1_060_000,
        ),
        TurnStages(
            2,
            "Wait, make it three.",
            {
                "endpoint": 500_000,
                "stt": 50_000,
                "first_token": 250_000,
                "tools": 800_000,
                "llm": 500_000,
                "speech": 120_000,
            },
            2_220_000,
            920_000,
        ),
    ]
    for turn in found:
        assert list(turn.stages) == list(STAGES)
        assert sum(turn.stages.values()) == turn.total_us


def test_a_turn_without_an_audible_answer_has_no_stages(story):
    story.user(1, "Hi.", [], 0).at(10).add("run.ended", "empty", 1)
    assert turns(story.records) == [TurnStages(1, "Hi.", {}, None, None)]
