"""Every invariant on a clean session, and on sessions with one planted fault each."""

from __future__ import annotations

import pytest

from bargein.sim.lab.invariants import INVARIANTS, CheckSettings, Facts, Kind, ToolFacts, Violation, check

IDENTITIES = {"t1.0": "two", "t2.0": "three"}
CLEAN = CheckSettings(tools={"book_table": ToolFacts(side_effect=True)}, identities=IDENTITIES)


def found(name, records, settings=CLEAN):
    """What one checker says."""
    return [(v.t, v.seq, v.message) for v in INVARIANTS[name].check(Facts(records), settings)]


def at(records, kind, nth=0):
    """Instant and number of a record, as a violation names them."""
    record = [record for record in records if record["kind"] == kind][nth]
    return record["t"], record["seq"]


def test_a_clean_session_breaks_nothing(interrupted_booking):
    assert check(interrupted_booking, CLEAN) == []


def test_no_records_break_nothing():
    assert check([]) == []


def test_the_registry_names_what_the_design_promises():
    assert list(INVARIANTS) == [
        "effect_once",
        "result_once",
        "calls_answered",
        "context_valid",
        "context_heard",
        "playout_order",
        "no_stale_audio",
        "stop_bound",
        "filler_timing",
        "gate_respected",
        "speculation_safe",
        "no_dead_epoch_effect",
        "one_reply",
        "turn_answered",
        "position_true",
        "quiet_end",
    ]
    liveness = [name for name, invariant in INVARIANTS.items() if invariant.kind is Kind.LIVENESS]
    assert liveness == ["turn_answered", "quiet_end"]


def test_an_invariant_that_is_off_is_not_checked(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("session.ended").records
    t, seq = records[-1]["t"], records[-1]["seq"]
    assert check(records, CLEAN) == [Violation("quiet_end", t, "the session never ends", seq)]
    assert check(records, CheckSettings(off=frozenset({"quiet_end"}))) == []


def test_turning_off_an_unknown_invariant_names_the_nearest():
    with pytest.raises(LookupError) as caught:
        check([], CheckSettings(off=frozenset({"quiet_ends"})))
    assert caught.value.args == ('no invariant is called "quiet_ends"; did you mean "quiet_end"?',)


# -- audio ---------------------------------------------------------------------------------------------------


def test_audio_that_overlaps_is_out_of_order(interrupted_booking, spoil):
    records = spoil(interrupted_booking).change("playout.started", 3, at_sample=116_800, t=7_300_000).records
    assert found("playout_order", records) == [
        (
            7_300_000,
            at(records, "playout.started", 3)[1],
            "utterance 4 begins at sample 116800 while utterance 3 still plays",
        )
    ]


def test_an_utterance_that_begins_before_the_one_before_has_closed_is_out_of_order(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("playout.ended", 1).records
    assert found("playout_order", records) == [
        (*at(records, "playout.started", 3), "utterance 4 begins at sample 125120 while utterance 3 still plays")
    ]


def test_a_clip_that_is_overtaken_is_out_of_order(story):
    story.at(100).add("response.started", 0, "filler").add("tts.opened", 1, 0, "filler", "one_moment")
    story.at(200).add("response.started", 1, "answer").add("tts.opened", 2, 1, "answer", None)
    story.at(300).add("playout.started", 2, "answer", 4_800)
    story.at(340).add("playout.ended", 2, 640).add("playout.started", 1, "filler", 5_440)
    story.at(380).add("playout.ended", 1, 640)
    assert found("playout_order", story.records) == [
        (340_000, 6, "utterance 1 plays after utterance 2, which was meant to follow it")
    ]


def test_audio_that_was_never_opened_is_out_of_order(story):
    story.at(20).add("playout.started", 9, "answer", 320)
    assert found("playout_order", story.records) == [(20_000, 0, "utterance 9 plays although it was never opened")]


def test_an_utterance_of_an_interrupted_epoch_is_stale(interrupted_booking, spoil):
    records = spoil(interrupted_booking).insert("playout.started", 5_040_000, 1, 9, "answer", 80_640).records
    assert found("no_stale_audio", records) == [
        (*at(records, "playout.started", 2), "utterance 9 of epoch 1 plays after that epoch ended")
    ]


def test_an_utterance_that_resumes_after_its_epoch_is_stale(interrupted_booking, spoil):
    records = spoil(interrupted_booking).insert("playout.resumed", 5_040_000, 1, 2, 80_640).records
    assert found("no_stale_audio", records) == [
        (*at(records, "playout.resumed"), "utterance 2 of epoch 1 plays after that epoch ended")
    ]


def test_a_word_after_the_cut_is_stale_and_one_in_the_last_frame_is_not(interrupted_booking, spoil):
    late = spoil(interrupted_booking).insert("playout.word", 5_020_000, 1, 2, 2, " please.").records
    assert found("no_stale_audio", late) == [
        (5_020_000, at(late, "playout.word", 8)[1], "word ' please.' of utterance 2 is heard after its end")
    ]
    early = spoil(interrupted_booking).insert("playout.word", 5_013_000, 1, 2, 2, " please.").records
    assert found("no_stale_audio", early) == []


def test_a_cut_one_frame_late_breaks_the_stop_bound(interrupted_booking, spoil):
    records = spoil(interrupted_booking).change("playout.cut", t=5_040_000, samples=11_840).records
    assert found("stop_bound", records) == [
        (
            5_013_000,
            at(records, "playout.cut")[1],
            "utterance 2 is heard until sample 80640, 20000 us past the frame boundary after the barge-in",
        )
    ]


def test_speech_that_is_never_cut_breaks_the_stop_bound(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("playout.cut").records
    assert found("stop_bound", records) == [
        (
            *at(records, "turn.barge_in"),
            "utterance 2 is heard until sample 152000, 4480000 us past the frame boundary after the barge-in",
        )
    ]


@pytest.mark.parametrize(
    ("kind", "nth", "fields", "message"),
    [
        ("playout.started", 0, {"at_sample": 50_561}, "begins at sample 50561, which no frame begins with"),
        ("playout.started", 0, {"at_sample": 50_240}, "begins at sample 50240, which is heard at 3140000 us"),
        ("playout.cut", 0, {"samples": 24_001}, "was heard for 24001 samples, but only 24000 were received"),
        ("playout.cut", 0, {"samples": 11_521}, "was heard for 11521 samples, but there was time for 11520"),
        ("playout.cut", 0, {"samples": 11_200}, "was cut after 11200 samples, but 11520 had left by then"),
        ("playout.ended", 0, {"samples": 15_999}, "ended after 15999 samples, but 16000 were received"),
        ("playout.ended", 0, {"t": 4_180_001}, "is reported at 16000 samples later than it got there"),
        ("playout.word", 1, {"index": 2}, "reports word 2 where word 1 is due"),
        ("playout.word", 0, {"t": 3_159_999}, "reports word 0 before it plays"),
    ],
)
def test_a_position_that_is_not_true_is_told(interrupted_booking, spoil, kind, nth, fields, message):
    records = spoil(interrupted_booking).change(kind, nth, **fields).records
    number = 2 if kind == "playout.cut" else 1
    assert found("position_true", records)[0] == (*at(records, kind, nth), f"utterance {number} {message}")


def test_positions_across_a_pause_are_true(story):
    story.add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    story.at(20).add("playout.started", 1, "answer", 320)
    story.at(40).add("playout.starved", 1, 320)
    story.at(80).add("playout.resumed", 1, 1_280)
    story.at(85).add("tts.ended", 1, 700)
    story.at(104).add("playout.ended", 1, 700)
    assert found("position_true", story.records) == []
    story.at(140).add("tts.opened", 2, 0, "answer", None).add("playout.started", 2, "answer", 2_240)
    story.at(160).add("playout.starved", 2, 320)
    story.at(200).add("playout.cut", 2, 640, 640)
    assert found("position_true", story.records) == [
        (200_000, 10, "utterance 2 was heard for 640 samples, but there was time for 320")
    ]


def test_a_word_that_ends_with_the_last_frame_is_not_stale(story):
    story.add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    story.at(20).add("playout.started", 1, "answer", 320).at(33).add("turn.interrupted", "barge_in")
    story.words(1, (40, "Yes")).add("playout.cut", 1, 320, 3_200)
    assert found("no_stale_audio", story.records) == []


def test_speech_that_had_run_dry_before_a_barge_in_is_silent_already(story):
    story.add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    story.at(20).add("playout.started", 1, "answer", 320).at(40).add("playout.starved", 1, 320)
    story.at(50).add("turn.barge_in", 0, "audio").at(500).add("session.ended", "quiet")
    assert found("stop_bound", story.records) == []


def test_a_position_that_goes_back_is_not_true(story):
    story.add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    story.at(20).add("playout.started", 1, "answer", 320).at(60).add("playout.starved", 1, 640)
    story.at(80).add("playout.resumed", 1, 1_280).at(100).add("playout.starved", 1, 320)
    story.at(120).add("tts.dropped", 1, "lost")
    assert found("position_true", story.records) == [
        (100_000, 5, "utterance 1 was heard for 320 samples, fewer than the 640 before")
    ]


# -- context -------------------------------------------------------------------------------------------------


def test_a_message_before_the_answer_to_a_call_is_told(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.pushed", 3).records
    assert found("calls_answered", records) == [
        (*at(records, "context.pushed", 3), "a assistant message stands before the answer to call t1.0")
    ]


def test_answers_out_of_order_twice_unasked_or_missing_are_told(story):
    story.push(0, "assistant", calls=["t1.0", "t1.1", "t1.2"])
    story.push(1, "tool", call="t1.1").push(2, "tool", call="t1.0").push(3, "tool", call="t1.0")
    story.push(4, "tool", call="t9.0")
    assert found("calls_answered", story.records) == [
        (0, 1, "call t1.1 is answered before call t1.0, which was asked first"),
        (0, 3, "call t1.0 is answered again"),
        (0, 4, "call t9.0 is answered but was never asked"),
        (0, 4, "call t1.2 is never answered"),
    ]


def test_a_call_id_asked_twice_is_told(story):
    story.push(0, "assistant", calls=["t1.0"]).push(1, "tool", call="t1.0")
    story.push(2, "assistant", calls=["t1.0"]).push(3, "tool", call="t1.0")
    assert found("calls_answered", story.records) == [(0, 2, "call id t1.0 is asked twice")]


def test_a_request_with_an_open_call_is_invalid(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.pushed", 8).records
    assert found("context_valid", records) == [
        (*at(records, "llm.request", 2), "a request is sent while call t2.0 has no answer")
    ]


def test_a_request_that_ends_on_the_assistant_is_invalid(interrupted_booking, spoil):
    records = spoil(interrupted_booking).insert("llm.request", 8_900_000, 2, 2, 9, 10, 1).records
    assert found("context_valid", records) == [
        (*at(records, "llm.request", 3), "a request is sent that ends on an assistant message")
    ]


def test_a_request_with_nothing_to_answer_is_invalid_but_a_speculative_one_is_not(story):
    story.push(0, "system", "Be brief.").add("llm.request", 0, 1, 1, 0, epoch=1)
    assert found("context_valid", story.records) == []
    story.add("turn.user", "Hi.", [], epoch=1).add("llm.request", 0, 2, 1, 0, epoch=1)
    assert found("context_valid", story.records) == [(0, 3, "a request is sent with nothing to answer")]


def test_messages_and_edits_that_no_provider_takes_are_invalid(story):
    story.push(0, "user", "Hi.").push(0, "assistant", "Hello there.").add("context.truncated", 0, "Help")
    story.add("context.truncated", 0, "").push(1, "assistant").push(2, "assistant", "Wait.", calls=["t1.0"])
    story.add("context.removed", 2).add("context.removed", 7)
    assert found("context_valid", story.records) == [
        (0, 1, "message number 0 is taken"),
        (0, 2, "message 0 is cut to 'Help', which it does not begin with"),
        (0, 3, "message 0 is left empty"),
        (0, 4, "assistant message 1 is empty"),
        (0, 6, "message 2 is removed although it asks for calls"),
        (0, 7, "message 7 is edited, but there is no such assistant message"),
    ]


def test_a_request_with_one_of_two_calls_answered_is_invalid(story):
    story.user(1, "Look.", [], 0).push(1, "assistant", calls=["t1.0", "t1.1"]).push(2, "tool", call="t1.0")
    story.add("llm.request", 1, 2, 3, 0)
    assert found("context_valid", story.records) == [(0, 4, "a request is sent while call t1.1 has no answer")]
    story.push(3, "tool", call="t1.1").add("llm.request", 1, 3, 4, 0)
    assert len(found("context_valid", story.records)) == 1


def test_a_message_that_was_never_heard_may_be_removed(story):
    story.user(1, "Look.", [], 0).push(1, "assistant", "Well.", "answer").add("context.removed", 1)
    assert found("context_valid", story.add("llm.request", 0, 1, 1, 0).records) == []


def test_text_that_is_not_cut_to_what_was_heard_is_told_at_the_cut(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.truncated").records
    assert found("context_heard", records) == [
        (*at(records, "tool.finished"), "message 4 says 'One moment, please.', but the caller heard 'One moment,'")
    ]


def test_text_that_is_cut_only_later_is_told_at_the_cut(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.truncated")
    records = records.insert("context.truncated", 5_700_000, 1, 4, "One moment,").records
    assert found("context_heard", records) == [
        (*at(records, "tool.finished"), "message 4 says 'One moment, please.', but the caller heard 'One moment,'")
    ]


def say(story, ms, utterance, ordinal, word):
    story.at(ms).add("tts.opened", utterance, ordinal, "answer", None).add(
        "playout.started", utterance, "answer", 16 * ms
    )
    return story.words(utterance, (ms + 20, word)).add("playout.ended", utterance, 320)


def test_an_answer_belongs_to_the_newest_response_and_a_failed_one_stays_behind(story):
    story.user(1, "Hi.", [], 0).add("response.started", 0, "answer").add("llm.failed", 0, "lost")
    story.add("response.started", 1, "answer").push(1, "assistant", "Yes.", "answer", calls=["t1.0"])
    story.push(2, "tool", call="t1.0").push(3, "assistant", "", "answer", calls=["t1.1"]).push(4, "tool", call="t1.1")
    say(story, 20, 1, 1, "Yes.")
    assert found("context_heard", story.records) == []
    say(story, 60, 2, 0, "Well")
    assert found("context_heard", story.records) == [
        (80_000, len(story.records) - 1, "the caller heard 'Well', which is not in the context")
    ]


def test_fillers_are_pushed_in_the_order_they_were_spoken(story):
    story.user(1, "Hi.", [], 0).add("response.started", 0, "filler").add("response.started", 1, "filler")
    say(story, 20, 1, 0, "First.")
    say(story, 60, 2, 1, "Second.").push(1, "assistant", "First.", "filler").push(2, "assistant", "Second.", "filler")
    assert found("context_heard", story.records) == []


def test_what_still_plays_when_the_timeline_breaks_off_is_not_judged(interrupted_booking, spoil):
    before_the_last_word = [r for r in interrupted_booking if r["t"] < 8_820_000]
    assert found("context_heard", before_the_last_word) == []
    at_the_cut = [r for r in interrupted_booking if r["t"] <= 5_020_000]
    assert found("context_heard", at_the_cut) == []
    assert found("context_heard", spoil(at_the_cut).drop("context.truncated").records) == [
        (5_020_000, len(at_the_cut) - 2, "message 4 says 'One moment, please.', but the caller heard 'One moment,'")
    ]


def test_a_filler_may_be_placed_after_its_cut_but_an_answer_may_not(story):
    story.user(1, "Hi.", [], 0).add("response.started", 0, "answer").add("response.started", 1, "filler")
    story.at(20).add("tts.opened", 1, 1, "filler", None).add("playout.started", 1, "filler", 320)
    story.words(1, (40, "Well,")).add("turn.interrupted", "barge_in").add("playout.cut", 1, 320, 3_200)
    story.at(90).push(1, "assistant", "Well,", "filler")
    assert found("context_heard", story.records) == []
    late = [{**r, "source": "answer"} if r.get("source") == "filler" else r for r in story.records]
    assert found("context_heard", late) == [(90_000, 9, "the caller heard 'Well,', which is not in the context")]


def test_text_cut_too_far_or_removed_is_told(interrupted_booking, spoil):
    short = spoil(interrupted_booking).change("context.truncated", text="One").records
    assert found("context_heard", short) == [
        (*at(short, "tool.finished"), "message 4 says 'One', but the caller heard 'One moment,'")
    ]
    gone = spoil(interrupted_booking).drop("context.truncated").insert("context.removed", 5_020_000, 1, 4).records
    assert found("context_heard", gone) == [
        (*at(gone, "tool.finished"), "message 4 says '', but the caller heard 'One moment,'")
    ]


def test_an_answer_that_was_heard_only_in_part_is_told_at_the_end(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("playout.word", 14).records
    assert found("context_heard", records) == [
        (*at(records, "session.ended"), "message 9 says 'Done. For three.', but the caller heard 'Done. For'")
    ]


def test_an_answer_that_was_heard_but_not_pushed_is_told(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.pushed", 9).records
    assert found("context_heard", records) == [
        (*at(records, "session.ended"), "the caller heard 'Done. For three.', which is not in the context")
    ]


def test_assistant_text_that_was_never_meant_to_be_spoken_is_told(interrupted_booking, spoil):
    values = (10, "assistant", "answer", "By the way.", [], "", "", "0" * 8)
    records = spoil(interrupted_booking).insert("context.pushed", 9_000_000, 2, *values).records
    assert found("context_heard", records) == [
        (*at(records, "context.pushed", 10), "message 10 says 'By the way.', which nobody set out to say")
    ]


def test_a_response_of_calls_alone_says_nothing(story):
    story.user(1, "Hi.", [], 0).push(1, "assistant", "", "answer", calls=["t1.0"]).push(2, "tool", call="t1.0")
    story.add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    story.push(3, "assistant", "Yes.", "answer")
    story.at(20).add("playout.started", 1, "answer", 320).words(1, (40, "Yes.")).add("playout.ended", 1, 320)
    assert found("context_heard", story.records) == []


def test_a_result_that_never_reaches_the_context_is_told(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("context.pushed", 5).records
    assert found("result_once", records) == [
        (*at(records, "tool.finished"), "the result of call t1.0 never reaches the context")
    ]


def test_a_result_may_stay_untold_while_the_call_goes_on_or_where_its_note_was_dropped(interrupted_booking, spoil):
    clean = (
        spoil(interrupted_booking).drop("context.pushed", 5).insert("note.dropped", 5_500_000, 1, "t1.0", "book_table")
    )
    assert found("result_once", clean.records) == []
    last = [r for r in interrupted_booking if r["t"] < 6_150_000]
    assert found("result_once", last) == []


def test_a_result_is_told_before_the_next_user_message_and_before_the_call_ends(story):
    story.user(1, "Book.", [], 0).push(1, "assistant", calls=["t1.0"]).add("tool.started", "t1.0", "book", True, 1)
    story.push(2, "tool", call="t1.0", error="timeout").add("tool.finished", "t1.0", "book", "ok")
    story.push(3, "assistant", "It takes a while.", "answer")
    assert found("result_once", story.records) == []
    untold = [(0, 5, "the result of call t1.0 never reaches the context")]
    ended = {"t": 0, "seq": len(story.records), "kind": "session.ended", "epoch": 1, "reason": "quiet"}
    assert found("result_once", [*story.records, ended]) == untold
    assert found("result_once", story.user(2, "And?", [], 4).records) == untold


def test_the_result_of_a_lookup_need_not_be_told(story):
    story.user(1, "Look.", [], 0).push(1, "assistant", calls=["t1.0"]).add("tool.started", "t1.0", "look", False, 1)
    story.add("tool.dropped", "t1.0", "look", "barge_in").push(2, "tool", call="t1.0", error="interrupted")
    assert found("result_once", story.user(2, "And?", [], 3).records) == []


def test_a_result_told_twice_is_told(interrupted_booking, spoil):
    values = (10, "system", "note", "It was booked.", [], "t2.0", "", "0" * 8)
    records = spoil(interrupted_booking).insert("context.pushed", 9_000_000, 2, *values).records
    assert found("result_once", records) == [
        (*at(records, "context.pushed", 10), "the result of call t2.0 is told a second time")
    ]


def orphaned(story, *, note, answer_outcome, answer_error=""):
    """A booking that was interrupted and done later; the next turn asks for it again and does not run it."""
    story.user(1, "Book.", [], 0).push(1, "assistant", calls=["t1.0"]).add("tool.started", "t1.0", "book", True, 1)
    story.at(10).add("turn.interrupted", "barge_in").add(
        "tool.settled", "t1.0", "book", "interrupted_running", 10_000, 0
    )
    story.push(2, "tool", call="t1.0", error="interrupted")
    if note:
        story.at(20).add("tool.finished", "t1.0", "book", "ok").push(3, "system", "Booked.", "note", call="t1.0")
    story.at(30).user(2, "Again.", [], 4)
    if not note:
        story.at(35).add("tool.finished", "t1.0", "book", "ok")
    story.at(40).push(5, "assistant", calls=["t2.0"]).add("tool.settled", "t2.0", "book", answer_outcome, 0, 0)
    return story.push(6, "tool", call="t2.0", error=answer_error).user(3, "Thanks.", [], 7)


def test_a_replay_is_how_the_result_of_an_orphan_is_told(story):
    assert found("result_once", orphaned(story, note=False, answer_outcome="orphan_replayed").records) == []


def test_a_replay_of_another_tool_does_not_tell_the_result(story, spoil):
    records = orphaned(story, note=False, answer_outcome="orphan_replayed").records
    other = spoil(records).change("tool.settled", 1, tool="cancel").records
    assert [message for _, _, message in found("result_once", other)] == [
        "the result of call t1.0 never reaches the context",
        "call t2.0 is answered with a result that the context holds already",
    ]


def test_a_replay_beside_a_note_tells_the_result_twice(story):
    records = orphaned(story, note=True, answer_outcome="orphan_replayed").records
    assert found("result_once", records) == [
        (
            40_000,
            at(records, "tool.settled", 1)[1],
            "call t2.0 is answered with a result that the context holds already",
        )
    ]


def test_already_reported_is_no_result(story):
    records = orphaned(story, note=True, answer_outcome="orphan_reported", answer_error="already_reported").records
    assert found("result_once", records) == []


# -- turns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "nth", "fields", "message"),
    [
        ("stt.final", 1, {"segment": 0}, "segment 0 is finished a second time"),
        ("turn.user", 1, {"segments": [0]}, "segment 0 belongs to turn 1 and to turn 2"),
        ("turn.user", 1, {"segments": [1, 7]}, "turn 2 is made of segment 7, which has no final transcript"),
        ("turn.user", 1, {"epoch": 1}, "turn 1 is opened a second time"),
        ("run.ended", 1, {"epoch": 1}, "the run of turn 1 ends a second time"),
        ("response.started", 3, {"ordinal": 2}, "response 2 of turn 2 begins a second time"),
    ],
)
def test_a_turn_with_two_of_something_is_told(interrupted_booking, spoil, kind, nth, fields, message):
    records = spoil(interrupted_booking).change(kind, nth, **fields).records
    assert found("one_reply", records)[0] == (*at(records, kind, nth), message)


def test_a_response_after_the_run_ended_is_a_second_reply(interrupted_booking, spoil):
    records = spoil(interrupted_booking).insert("response.started", 9_000_000, 2, 4, "answer").records
    assert found("one_reply", records) == [
        (*at(records, "response.started", 4), "turn 2 gets another response after its run ended")
    ]


def test_a_transcript_without_a_turn_is_told_when_the_session_ended_by_itself(interrupted_booking, spoil):
    quiet = spoil(interrupted_booking).insert("stt.final", 9_000_000, 2, 2, "Hello?")
    assert found("one_reply", quiet.records) == [
        (*at(quiet.records, "stt.final", 2), "segment 2 'Hello?' belongs to no turn")
    ]
    assert found("one_reply", quiet.change("session.ended", reason="hang_up").records) == []


def test_a_turn_without_an_ending_is_unanswered(interrupted_booking, spoil):
    records = spoil(interrupted_booking).drop("run.ended", 1).records
    assert found("turn_answered", records) == [
        (*at(records, "turn.user", 1), "turn 2 'Wait, make it three.' has no ending")
    ]


def test_an_answer_that_nobody_heard_is_none(story):
    story.user(1, "Hi.", [], 0).at(10).add("run.ended", "answered", 1).at(20).add("session.ended", "quiet")
    assert found("turn_answered", story.records) == [
        (10_000, 2, "turn 1 ended as answered, but the caller heard nothing")
    ]
    for excuse in ({"ending": "failed"}, {"ending": "empty"}):
        records = [{**r, **excuse} if r["kind"] == "run.ended" else r for r in story.records]
        assert found("turn_answered", records) == []
    left = [{**r, "reason": "hang_up"} if r["kind"] == "session.ended" else r for r in story.records]
    assert found("turn_answered", left) == []


@pytest.mark.parametrize(
    ("kind", "nth", "message", "shows_at"),
    [
        ("tool.finished", 1, "call t2.0 of book_table is still running", ("tool.started", 1)),
        ("run.ended", 1, "the run of turn 2 is still open", ("llm.request", 1)),
        ("playout.ended", 2, "utterance 4 is still open", ("tts.opened", 3)),
    ],
)
def test_what_is_left_open_at_the_end_is_told(interrupted_booking, spoil, kind, nth, message, shows_at):
    records = spoil(interrupted_booking).drop(kind, nth).records
    assert found("quiet_end", records) == [(9_500_000, at(records, *shows_at)[1], message)]


def test_a_session_that_ends_early_twice_or_never_is_not_quiet(interrupted_booking, spoil):
    early = spoil(interrupted_booking).insert("playout.word", 9_600_000, 2, 4, 3, " More.").records
    assert found("quiet_end", early) == [
        (*at(early, "playout.word", 15), "playout.word comes after the end of the session")
    ]
    twice = spoil(interrupted_booking).insert("session.ended", 9_600_000, 2, "quiet").records
    assert found("quiet_end", twice) == [(*at(twice, "session.ended", 1), "the session ends a second time")]
