"""Field faults about turns: one reply each, where one ends, who interrupts whom, and how the call ends."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.models.voice import speak
from bargein.sim.kernel.frames import samples_to_us


def _of(result: Any, *kinds: str) -> list[dict[str, Any]]:
    return [record for record in result.records if record["kind"] in kinds]


def test_double_reply_per_turn() -> None:
    result = sim.run("late_second_final")

    assert result.ok, result.expectations
    assert [turn["segments"] for turn in _of(result, "turn.user")] == [[1], [2]]
    assert len(result.heard) == 1


@pytest.mark.parametrize("after_ms", [0, 99, 100, 101, 300, 500, 700, 1500, 4000])
@pytest.mark.parametrize("tie_seed", [None, 1, 2])
def test_each_final_is_in_one_turn_and_each_turn_gets_one_reply(after_ms: int, tie_seed: int | None) -> None:
    # The first final comes 100 ms before the turn ends: the second joins it, or opens a turn of its own.
    result = sim.run("late_second_final", tie_seed=tie_seed, set={"stt.late_final.after": f"{after_ms}ms"})

    segments = [segment for turn in _of(result, "turn.user") for segment in turn["segments"]]
    assert segments == [final["segment"] for final in _of(result, "stt.final")]
    assert len(_of(result, "run.ended")) == len(_of(result, "turn.user"))
    assert result.violations == []


def test_end_of_session() -> None:
    result = sim.run("farewell_cut_at_hang_up")

    assert result.ok, result.expectations
    played = _of(result, "playout.started")[-1]["t"] + samples_to_us(speak("agent", "Goodbye.").length)
    assert [(r["t"], r["kind"]) for r in result.records[-2:]] == [(played, "playout.ended"), (played, "session.ended")]
    assert result.virtual_us == played  # to the microsecond of the last sample


def test_a_caller_who_interrupts_the_farewell_stays_on_the_line() -> None:
    stays = {"say": "Wait.", "after": {"event": "playout.started", "by": "300ms"}, "level": "decision", "for": "500ms"}
    goodbye = {"say": "Thank you, goodbye.", "at": "500ms"}
    rounds = [{"text": "Goodbye.", "calls": [{"end_call": {}}]}, {}, {"text": "Let me check."}]
    result = sim.run("farewell_cut_at_hang_up", set={"caller": [goodbye, stays], "llm": rounds})

    assert result.heard == ["Let me check."]  # no word of the farewell was over
    assert result.records[-1]["reason"] == "quiet"
    assert result.violations == []


def test_false_interruption() -> None:
    result = sim.run("backchannel_during_the_answer")

    assert result.ok, result.expectations
    assert len(_of(result, "turn.user")) == 1


def test_no_audio_interrupts_inside_the_warm_up() -> None:
    text = "Let me look that up in our calendar for you, it should only take a short while."
    script = {"rules": [{"when": {"user": "Sunday"}, "text": text}], "else": {"text": "All right."}}

    def sounds(warm_up: str) -> list[str]:
        turn = {"min_speech": "100ms", "warm_up": warm_up}
        result = sim.run("backchannel_during_the_answer", set={"agent.turn": turn, "llm": script})
        return [each["kind"] for each in _of(result, "turn.barge_in", "playout.cut")]

    assert sounds("10s") == []
    assert sounds("0s")[:2] == ["turn.barge_in", "playout.cut"]


def test_response_collision() -> None:
    result = sim.run("cut_while_the_model_writes")

    assert result.ok, result.expectations
    completions = [each for each in result.effects if each["kind"] == "completion"]
    assert len(completions) == 2
    assert completions[0]["status"] == "cancelled"
    assert completions[0]["landed_at_us"] <= completions[1]["dispatched_at_us"]


def test_speculative_generation() -> None:
    result = sim.run("speculation_in_vain")

    assert result.ok, result.expectations
    (booked,) = (call for message in result.context for call in message.get("tool_calls", ()))
    assert booked["arguments"] == {"day": "friday", "people": 3}  # not what it wanted on half a sentence
    assert result.tools["book_table"]["runs"] == 1
    assert [r["kind"] for r in _of(result, "speculation.discarded", "speculation.committed")] == [
        "speculation.discarded",
        "speculation.committed",
    ]


@pytest.mark.parametrize("at_us", [2_999_999, 3_000_000, 3_000_001, 3_050_000, 3_100_000, 5_400_000])
def test_a_hang_up_leaves_no_speculation_open(at_us: int) -> None:
    # The model is asked ahead of the turn at 3 s, again at 4.96 s, and the turn would open at 5.46 s.
    lines = sim.load("speculation_in_vain").to_dict()["caller"]
    result = sim.run("speculation_in_vain", set={"caller": [*lines, {"at": f"{at_us}us", "hang_up": True}]})

    assert _of(result, "tool.started") == []
    assert result.records[-1]["reason"] == "hang_up"
    assert result.violations == []


def test_a_speculation_that_was_right_costs_no_second_request() -> None:
    speculative = {"agent.speculation": True}
    lines = [{"say": "What is the weather where I live?", "at": "500ms"}]
    guessed = sim.run("chained_lookups", set={**speculative, "caller": lines})
    waited = sim.run("chained_lookups")

    assert len(_of(guessed, "llm.request")) == len(_of(waited, "llm.request")) == 4
    assert guessed.context == waited.context
    first_sounds = [_of(result, "playout.started")[0]["t"] for result in (guessed, waited)]
    assert first_sounds[0] < first_sounds[1]


def test_turn_boundary() -> None:
    result = sim.run("pause_inside_a_sentence")

    assert result.ok, result.expectations
    (turn,) = _of(result, "turn.ended")
    assert turn["t"] - turn["speech_end_us"] == 900_000  # no reply sooner than the silence asked for


def test_a_longer_pause_makes_two_turns_with_a_reply_each() -> None:
    rules = {"rules": [{"when": {"user": "three"}, "text": "Sorry, for three then."}], "else": {"text": "All right."}}
    lines = [
        {"say": "Wait, make it three.", "at": "500ms"},
        {"say": "Yes, please.", "after": {"event": "playout.ended", "by": "500ms"}},
    ]
    result = sim.run("pause_inside_a_sentence", set={"caller": lines, "llm": rules})

    assert [turn["text"] for turn in _of(result, "turn.user")] == ["Wait, make it three.", "Yes, please."]
    assert result.heard == ["Sorry, for three then.", "All right."]


def test_wait_cycle() -> None:
    result = sim.run("tool_that_never_returns")

    assert result.ok, result.expectations
    (dropped,) = _of(result, "tool.dropped")
    (started,) = _of(result, "tool.started")
    assert dropped["t"] - started["t"] == 3_000_000


@pytest.mark.parametrize("by_ms", [0, 1200, 1201, 1500, 2999, 3000, 3001])
@pytest.mark.parametrize("kind", ["read_only", "side_effect"])
def test_every_wait_ends_when_a_tool_hangs_and_the_caller_cuts_in(kind: str, by_ms: int) -> None:
    lines = [
        {"say": "Is my order ready?", "at": "100ms", "level": "decision", "for": "900ms"},
        {"say": "Hello?", "after": {"event": "tool.started", "by": f"{by_ms}ms"}, "level": "decision", "for": "300ms"},
    ]
    script = {
        "rules": [{"when": {"user": "order", "round": 1}, "calls": [{"order_status": {"order": "A-17"}}]}],
        "else": {"text": "Still working on it."},
    }
    changes = {"caller": lines, "llm": script, "tools.order_status.kind": kind}
    result = sim.run("tool_that_never_returns", set=changes)

    assert result.stopped is None
    assert result.records[-1]["kind"] == "session.ended"
    assert result.opened.session.engine.running_calls == ()
    assert result.violations == []
