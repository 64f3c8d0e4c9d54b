"""Layers around the model and the memory: what is sent, what was never sent, and how the turn ends."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.pipelines.agent.deltas import TextDelta
from bargein.pipelines.agent.messages import user
from bargein.sim.effects.bus import Status
from bargein.sim.lab.result import Result
from tests.sessions.layers.layers_kit import (
    MODEL,
    MS,
    Approve,
    Deny,
    Fields,
    Judge,
    Replace,
    S,
    answers,
    log,
    run,
    told,
)

MEMORY = "agent/memory"
TALK: list[dict[str, Any]] = [{"text": "One two three."}, {"text": "Fine."}]
FALLBACK = "I'm sorry, something went wrong. Please try again."


def requests(result: Result) -> list[Any]:
    return [each.payload for each in result.opened.session.bus.log if each.kind == "completion"]


# -- denied -----------------------------------------------------------------------------------------------------------


def test_a_denied_request_was_never_sent_and_ends_the_turn_as_a_failed_one_does() -> None:
    result = run({MODEL: [Deny("Over budget.")]})
    assert told(result, "llm.", "run", "fallback") == [
        (100 * MS, "llm.failed", "0", "Over budget."),
        (100 * MS, "fallback.spoken", FALLBACK),
        (100 * MS, "run.ended", "failed"),
    ]
    assert (log(result), result.metrics["rounds"], result.heard) == ([], 0, [FALLBACK])
    assert result.opened.session.recorder.turns[1].rounds == []


def test_the_second_request_may_be_denied_when_its_tool_has_run() -> None:
    class Once(sim.Layer):
        asked = 0

        def before(self, ask: sim.Ask) -> sim.Deny | None:
            self.asked += 1
            return sim.Deny("Enough.") if self.asked > 1 else None

    result = run(lambda _: {MODEL: [Once()]})
    assert told(result, "llm.failed", "run") == [
        (950 * MS, "llm.failed", "1", "Enough."),
        (950 * MS, "run.ended", "failed"),
    ]
    assert answers(result) == [("t1.0", '{"booked":true}')]


def test_a_speculative_request_that_is_denied_fails_its_turn_only_if_it_comes() -> None:
    caller = [{"at": "0s", "say": "Book it."}]
    result = sim.run(_speculating(caller), layers=lambda _: {MODEL: [Deny("No.")]})
    assert result.violations == []
    assert [each["reason"] for each in result.timeline.of("llm.failed")] == ["No."]
    assert [each["ending"] for each in result.timeline.of("run.ended")] == ["failed"]


def _speculating(caller: list[dict[str, Any]]) -> Any:
    from tests.sessions.layers.layers_kit import scenario

    return scenario(agent={"speculation": True}).with_value("caller", caller)


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_a_request_is_sent_when_it_is_approved_and_timed_from_then_on() -> None:
    result = run(lambda clock: {MODEL: [Approve(clock, 1 * S)]}, llm=TALK)
    assert told(result, "llm.") == [
        (100 * MS, "llm.suspended", "0", "approve"),
        (1100 * MS, "llm.request", "0"),
        (1450 * MS, "llm.first_token", "0"),
        (1490 * MS, "llm.done", "0"),
    ]
    assert log(result) == [(MODEL, "ok", 1100 * MS, 1490 * MS)]
    assert result.metrics["llm_ttft_us"] == 350 * MS
    timed = result.opened.session.recorder.turns[1].rounds[0]
    assert (timed.requested_at_us, timed.time_to_first_token_us) == (1100 * MS, 350 * MS)


def test_an_interruption_withdraws_a_request_that_waits() -> None:
    stop = {"at": "500ms", "level": "decision", "for": "100ms", "say": "Stop."}
    result = run(lambda clock: {MODEL: [Approve(clock, 1 * S)]}, llm=TALK[1:], caller=[stop])
    assert told(result, "llm.", "run", "turn.interrupted") == [
        (100 * MS, "llm.suspended", "0", "approve"),
        (500 * MS, "turn.interrupted", "barge_in"),
        (500 * MS, "llm.withdrawn", "0", "barge_in"),
        (500 * MS, "run.ended", "cancelled"),
        (600 * MS, "llm.suspended", "0", "approve"),
        (1600 * MS, "llm.request", "0"),
        (1950 * MS, "llm.first_token", "0"),
        (1950 * MS, "llm.done", "0"),
        (1950 * MS, "run.ended", "answered"),
    ]
    assert log(result) == [(MODEL, "cancelled", 500 * MS, 500 * MS), (MODEL, "ok", 1600 * MS, 1950 * MS)]


def test_a_denial_that_comes_later_fails_the_turn_then() -> None:
    result = run(lambda clock: {MODEL: [Approve(clock, 1 * S, "No.")]})
    assert told(result, "llm.", "run") == [
        (100 * MS, "llm.suspended", "0", "approve"),
        (1100 * MS, "llm.failed", "0", "No."),
        (1100 * MS, "run.ended", "failed"),
    ]


def test_a_call_in_which_nobody_answers_is_stuck_and_says_where() -> None:
    result = run(
        lambda clock: {MODEL: [Approve(clock, None)]}, broken=("deadlock", "turn_answered", "quiet_end", "quiet_end")
    )
    assert "the run of turn 1 waits for the model's answer, round 0" in result.violations[0].message
    assert result.violations[3].message == "the run of turn 1 is still open"


# -- patched ----------------------------------------------------------------------------------------------------------


def test_what_the_innermost_layer_asks_is_sent_and_recorded_and_no_message_is_changed() -> None:
    result = run(
        {MODEL: [Fields(temperature=0.5, max_tokens=9), Fields(temperature=1.0, messages=(user("Hm."),))]}, llm=TALK
    )
    sent = requests(result)[0]
    assert (sent.temperature, sent.max_tokens, sent.messages) == (1.0, 9, (user("Hm."),))
    assert result.timeline.of("llm.request")[0]["messages"] == 1
    assert [each["text"] for each in result.context] == ["Book it.", "One two three."]


def test_a_tool_that_a_layer_has_left_out_of_a_request_is_none_that_its_response_may_ask_for() -> None:
    result = run({MODEL: [Fields(tools=())]})
    assert told(result, "tool.") == [(450 * MS, "tool.settled", "t1.0", "unknown_tool")]
    assert result.timeline.of("llm.request")[0]["tools"] == 0


# -- the answer -------------------------------------------------------------------------------------------------------


def test_a_layer_that_stops_the_stream_fails_the_turn_and_what_was_said_stays_said() -> None:
    class Cutting(sim.Layer):
        def keeps(self, ask: sim.Ask, item: Any) -> bool:
            return not (isinstance(item, TextDelta) and "three" in item.text)

    result = run({MODEL: [Cutting()]}, llm=TALK)
    assert told(result, "llm.", "run")[2:] == [
        (490 * MS, "llm.failed", "0", "discarded"),
        (490 * MS, "run.ended", "failed"),
    ]
    assert log(result) == [(MODEL, "cancelled", 100 * MS, 490 * MS)]
    assert result.heard == ["One two", FALLBACK]


def test_a_failure_in_the_place_of_an_answer_keeps_its_calls_from_running() -> None:
    result = run({MODEL: [Replace("Not that.", Status.FAILED)]})
    assert told(result, "llm.", "tool.", "run") == [
        (100 * MS, "llm.request", "0"),
        (450 * MS, "llm.first_token", "0"),
        (450 * MS, "llm.done", "0"),
        (450 * MS, "llm.failed", "0", "Not that."),
        (450 * MS, "run.ended", "failed"),
    ]
    assert log(result) == [(MODEL, "ok", 100 * MS, 450 * MS)]


def test_calls_run_once_the_response_that_asks_for_them_was_let_through() -> None:
    result = run(lambda clock: {MODEL: [Judge(clock, 1 * S)]})
    assert told(result, "llm.", "tool.")[2:7] == [
        (450 * MS, "llm.done", "0"),
        (450 * MS, "llm.withheld", "0", "judge"),
        (1450 * MS, "tool.started", "t1.0"),
        (1950 * MS, "tool.finished", "t1.0", "ok"),
        (1950 * MS, "tool.settled", "t1.0", "ok"),
    ]


def test_a_layer_around_one_model_leaves_the_others_alone() -> None:
    rules = [{"when": {"round": 2}, "route": "fast"}]
    models = {"fast": [{"text": "Quick."}]}
    result = run({"agent/model:fast": [Deny("No.")]}, steering=rules, models=models)
    assert told(result, "llm.failed") == [(950 * MS, "llm.failed", "1", "No.")]


# -- the memory -------------------------------------------------------------------------------------------------------

REMEMBERING: dict[str, Any] = {"memory": {"latency": "50ms", "messages": [{"user": "I am Kaya."}]}}


def test_a_denied_load_leaves_the_call_without_a_memory_and_no_record() -> None:
    result = run({MEMORY: [Deny("Private.")]}, llm=TALK, **REMEMBERING)
    assert told(result, "memory") == [(0, "memory.failed", "load", "Private.")]
    assert [key for key, *_ in log(result)] == [MODEL]
    assert [each["text"] for each in result.context] == ["Book it.", "One two three."]


def test_a_load_that_a_layer_has_replaced_is_what_the_call_remembers_and_the_record_is_the_stores() -> None:
    kept = [user("I am Jo.").to_dict(), user("Really.").to_dict()]

    class Loads(sim.Layer):
        def after(self, ask: sim.Ask, outcome: sim.Outcome) -> sim.Outcome:
            return sim.Outcome(Status.OK, kept) if ask.payload.to_dict()["op"] == "load" else outcome

    result = run({MEMORY: [Loads()]}, llm=TALK, **REMEMBERING)
    assert [each["text"] for each in result.context][:2] == ["I am Jo.", "Really."]
    assert [each["text"] for each in result.opened.session.bus.log[0].outcome.value] == ["I am Kaya."]


@pytest.mark.parametrize(("after_us", "memory"), [(1 * S, "memory.loaded"), (None, "memory.failed")])
def test_a_turn_waits_for_a_load_that_waits_and_not_for_ever(after_us: int | None, memory: str) -> None:
    class Loads(Approve):
        def before(self, ask: sim.Ask) -> sim.Suspend | None:  # type: ignore[override]
            return super().before(ask) if ask.payload.to_dict()["op"] == "load" else None

    result = run(lambda clock: {MEMORY: [Loads(clock, after_us)]}, llm=TALK, **REMEMBERING)
    loaded_us = 1050 * MS if after_us else 5 * S
    assert (told(result, "memory")[0][:2], told(result, "llm.")[0]) == (
        (loaded_us, memory),
        (loaded_us, "llm.request", "0"),
    )
