"""Field faults about speech: its order, its end, its position, and what of it the context may claim."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bargein import sim
from bargein.models.voice import speak
from bargein.sim.kernel.frames import next_boundary_us, samples_to_us

LONG_ANSWER = "Let me look that up in our calendar for you, it should only take a short while."
ANSWER = "On Sunday we close at ten in the evening."


def _spans(result: Any) -> list[tuple[int, int, int]]:
    """``(utterance, first sample, one past its last)`` of what was heard, in order."""
    first = {r["utterance"]: r["at_sample"] for r in result.records if r["kind"] == "playout.started"}
    over = {r["utterance"]: r["samples"] for r in result.records if r["kind"] in ("playout.ended", "playout.cut")}
    return [(number, at, at + over[number]) for number, at in first.items()]


def _assistant(result: Any) -> list[str]:
    return [message["text"] for message in result.context if message["role"] == "assistant" and message["text"]]


def test_clip_order() -> None:
    result = sim.run("clip_overtaking")

    assert result.ok, result.expectations
    spans = _spans(result)
    assert [number for number, _, _ in spans] == [0, 1, 2]
    assert all(end <= begin for (_, _, end), (_, begin, _) in pairwise(spans))


@pytest.mark.parametrize("latency", ["1.2s", "1.200001s", "1.3s", "2s", "4.4s", "6s"])
@pytest.mark.parametrize("clip", [True, False])
def test_what_is_said_is_heard_in_order_for_every_mix_of_latencies(latency: str, clip: bool) -> None:
    missing = [] if clip else ["one_moment"]  # a clip that is not there is synthesised, behind a queue
    result = sim.run("clip_overtaking", set={"tools.opening_hours.latency": latency, "tts": {"missing_clips": missing}})

    filler = [] if latency == "1.2s" else ["One moment, please."]
    assert result.heard == [LONG_ANSWER, *filler, ANSWER]
    assert result.violations == []


def test_context_has_unheard() -> None:
    result = sim.run("cut_before_the_first_word")

    assert result.ok, result.expectations
    assert _assistant(result) == ["Let me check."]


def test_the_context_holds_the_words_heard_wherever_the_answer_is_cut() -> None:
    words = speak("agent", ANSWER).words
    ends_us = [samples_to_us(word.end) for word in words]
    for index, end_us in enumerate(ends_us):
        for by_us in (end_us - 20_001, end_us - 1, end_us, end_us + 1):
            result = sim.run("cut_before_the_first_word", set={"caller[1].after.by": f"{by_us}us"})
            started = next(r["t"] for r in result.records if r["kind"] == "playout.started")
            silent_us = next_boundary_us(started + by_us) - started
            heard = "".join(w.text for w, e in zip(words, ends_us, strict=True) if e <= silent_us).strip()
            assert _assistant(result) == ([heard] if heard else []) + ["Let me check."], (index, by_us)


def test_an_answer_cut_before_its_first_frame_takes_nothing_from_the_one_before() -> None:
    placed = {"level": "decision", "for": "50ms"}
    lines = [
        {"say": "What time do you close on Sunday?", "at": "100ms", **placed},
        {"say": "Again, please.", "after": {"event": "playout.ended", "by": "500ms"}, **placed},
        {"say": "Is my order ready?", "after": {"event": "tts.opened", "nth": 2, "by": "10ms"}, **placed},
    ]
    rounds = [{"text": ANSWER}, {"text": ANSWER}, {"text": "Yes, your order is ready."}]
    result = sim.run("cut_before_the_first_sample", set={"caller": lines, "llm": rounds})

    assert _assistant(result) == [ANSWER, "Yes, your order is ready."]
    assert result.heard == [ANSWER, "Yes, your order is ready."]
    assert result.violations == []


def test_filler_order() -> None:
    result = sim.run("answer_ready_inside_the_filler")

    assert result.ok, result.expectations
    (_, _, filler_end), (_, answer, _) = _spans(result)
    assert answer - filler_end < 320  # the answer begins with the frame after the filler
    assert result.metrics["fillers_cut"] == 0


def test_the_request_for_the_answer_does_not_wait_for_the_filler() -> None:
    result = sim.run("answer_ready_inside_the_filler")
    silent = sim.run("answer_ready_inside_the_filler", set={"agent.filler": "off"})

    def requests(run: Any) -> list[int]:
        return [r["t"] for r in run.records if r["kind"] == "llm.request"]

    assert requests(result) == requests(silent)


def test_heard_lost_from_context() -> None:
    result = sim.run("last_word_before_the_cut")

    assert result.ok, result.expectations
    word = [r for r in result.records if r["kind"] == "playout.word"][3]
    decision = next(r for r in result.records if r["kind"] == "turn.barge_in")
    assert (word["word"], word["t"]) == (" close", decision["t"])


def test_an_answer_that_is_not_interrupted_is_in_the_context_to_its_last_word() -> None:
    result = sim.run("last_word_before_the_cut", set={"caller[1].after": {"event": "playout.ended"}})

    assert _assistant(result)[0] == ANSWER


def test_remote_buffer_not_flushed() -> None:
    result = sim.run("cut_when_all_audio_has_arrived")

    assert result.ok, result.expectations
    cut = next(r for r in result.records if r["kind"] == "playout.cut")
    assert cut["received"] == speak("agent", LONG_ANSWER).length
    assert result.metrics["stop_latencies_us"] == [0]  # decided on a frame boundary, silent there


@pytest.mark.parametrize("speed", [0.5, 1, 4, 1000])
def test_the_bot_is_silent_within_a_frame_however_far_ahead_the_audio_is(speed: float) -> None:
    result = sim.run(
        "cut_when_all_audio_has_arrived",
        set={"tts.speed": speed, "caller[1].after": {"event": "playout.started", "by": "1.003s"}},
    )

    decision = next(r for r in result.records if r["kind"] == "turn.barge_in")
    cut = next(r for r in result.records if r["kind"] == "playout.cut")
    assert 0 <= cut["t"] - decision["t"] < 20_000
    assert result.violations == []


def test_stale_audio_after_interrupt() -> None:
    result = sim.run("cut_before_the_first_sample")

    assert result.ok, result.expectations
    assert [r["epoch"] for r in result.records if r["kind"] == "playout.started"] == [2]


@pytest.mark.parametrize("by_us", [0, 159_999, 160_000, 399_999, 559_999, 560_000, 560_001, 570_000])
def test_audio_of_a_turn_is_of_its_own_text_wherever_the_question_falls(by_us: int) -> None:
    # The text is complete 160 ms after the context was opened, the first byte comes 400 ms later.
    result = sim.run("cut_before_the_first_sample", set={"caller[1].after.by": f"{by_us}us"})

    assert result.heard[-1] == "Yes, your order is ready."
    assert all(ANSWER.startswith(text) for text in result.heard[:-1])
    assert result.violations == []


def test_truncation_position() -> None:
    result = sim.run("cut_in_the_second_sentence")

    assert result.ok, result.expectations
    cut = next(r for r in result.records if r["kind"] == "playout.cut")
    started = [r for r in result.records if r["kind"] == "playout.started"][1]
    assert cut["utterance"] == started["utterance"]
    assert samples_to_us(cut["samples"]) == cut["t"] - started["t"]  # from this one's start, not from the first's


@pytest.mark.parametrize("by_us", [0, 1, 500_000])
def test_an_utterance_that_was_not_reached_is_removed_and_the_one_before_is_cut(by_us: int) -> None:
    # The answer is queued 515 ms into the sentence before it, which plays for 1.1 s.
    after = {"event": "tts.ended", "nth": 2, "by": f"{by_us}us"}
    result = sim.run("cut_in_the_second_sentence", set={"caller[1].after": after})

    cut = next(r for r in result.records if r["kind"] == "playout.cut")
    assert (cut["utterance"], cut["samples"] > 0) == (0, True)
    assert "Checking the calendar.".startswith(_assistant(result)[0])
    assert _assistant(result)[1:] == ["Goodbye."]
    assert result.violations == []


def test_word_timing_mixed() -> None:
    result = sim.run("reply_right_behind_a_cut")

    assert result.ok, result.expectations
    words = [(r["utterance"], r["word"]) for r in result.records if r["kind"] == "playout.word"]
    assert words == [
        (0, "On"),
        (0, " Sunday"),
        *((1, word) for word in ("Yes,", " your", " order", " is", " ready.")),
    ]
