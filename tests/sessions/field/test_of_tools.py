"""Field faults about tools: lost, doubled and late results, calls of dead turns, consent, and broken histories."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim

TABLE = {"day": "friday", "people": 2}


def _moved(name: str, line: int, by_us: int) -> Any:
    """A built-in with one caller line that many microseconds after its event."""
    return sim.run(name, set={f"caller[{line}].after.by": f"{by_us}us"})


def _calls(result: Any) -> dict[str, dict[str, Any]]:
    """Every call in the context, by its id."""
    return {call["id"]: call for message in result.context for call in message.get("tool_calls", ())}


def _outcomes(result: Any) -> list[tuple[str, str]]:
    return [(r["call"], str(r["outcome"])) for r in result.records if r["kind"] == "tool.settled"]


def _told(result: Any, text: str) -> list[str]:
    """The roles of the messages that hold a text."""
    return [m["role"] for m in result.context if text in (m.get("content") or m.get("text") or "")]


def test_action_from_discarded_turn() -> None:
    result = sim.run("farewell_to_a_caller_who_goes_on")

    assert result.ok, result.expectations
    assert result.effects == [each for each in result.effects if each["kind"] == "completion"]
    assert result.records[-1]["reason"] == "quiet"  # the line stays open for the caller who goes on


@pytest.mark.parametrize(("say_at_us", "runs"), [(1_649_999, 0), (1_650_000, 0), (1_650_001, 1), (2_100_000, 1)])
def test_an_interruption_keeps_the_line_although_the_hang_up_ran(say_at_us: int, runs: int) -> None:
    # The call is complete 650 ms after the turn; on that instant an interruption precedes the work that it causes.
    rules = {
        "rules": [
            {"when": {"user": "Thank you", "round": 1}, "text": "Goodbye.", "calls": [{"end_call": {}}]},
            {"when": {"user": "for two"}, "text": "Let me check."},
        ],
        "else": {},
        "delta": {"every": "300ms"},
    }
    changes = {"llm": rules, "caller[1].at": f"{say_at_us}us"}
    result = sim.run("farewell_to_a_caller_who_goes_on", set=changes)

    assert result.tools.get("end_call", {"runs": 0})["runs"] == runs
    assert result.records[-1]["reason"] == "quiet"
    assert result.heard[-1] == "Let me check."
    assert result.violations == []


def test_consent() -> None:
    result = sim.run("yes_to_another_question")

    assert result.ok, result.expectations
    assert [each["key"] for each in result.effects if each["kind"] == "tool_call"] == []


def test_consent_given_to_a_question_that_was_heard_carries_the_action_out() -> None:
    asks, _, says_yes = sim.load("yes_to_another_question").to_dict()["caller"]
    rounds = [
        {"calls": [{"transfer_call": {"to": "100"}}]},
        {"text": "Shall I transfer you now?"},
        {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]},
        {"text": "I am transferring you."},
    ]
    result = sim.run("yes_to_another_question", set={"caller": [asks, says_yes], "llm": rounds})

    assert _outcomes(result) == [("t1.0", "confirmation_required"), ("t2.0", "ok")]
    assert result.tools["transfer_call"]["runs"] == 1
    assert result.violations == []


def test_late_or_timed_out_result() -> None:
    result = sim.run("timed_out_booking_asked_again")

    assert result.ok, result.expectations
    assert _told(result, "BK-1001") == ["system"]
    assert _told(result, "BK-1002") == []


@pytest.mark.parametrize("latency_us", [1_000_000, 1_000_001, 1_349_999, 1_350_000, 1_350_001, 1_700_000, 9_000_000])
def test_a_late_result_is_told_once_wherever_it_falls(latency_us: int) -> None:
    # The timeout is 1 s, the second request is answered 350 ms later, the third 350 ms after that.
    result = sim.run("timed_out_booking_asked_again", set={"tools.book_table.latency": f"{latency_us}us"})

    assert result.tools["book_table"]["runs"] == 1
    assert len(_told(result, "BK-1001")) == 1
    assert result.violations == []


def test_a_result_with_nothing_in_between_is_an_ordinary_result() -> None:
    result = sim.run("timed_out_booking_asked_again", set={"tools.book_table.latency": "0us"})

    assert _outcomes(result)[0] == ("t1.0", "ok")
    assert _told(result, "BK-1001") == ["tool"]
    assert result.counters["llm"]["late_notes"] == 0


def test_parallel_tool_group() -> None:
    result = sim.run("parallel_lookups")

    assert result.ok, result.expectations
    requests = [r["t"] for r in result.records if r["kind"] == "llm.request"]
    last = max(r["t"] for r in result.records if r["kind"] == "tool.finished")
    assert requests[1:] == [last]  # one inference for the group, when its last call is answered
    assert [r["kind"] for r in result.records].count("response.started") == 1


def test_preamble_vs_tool_result() -> None:
    result = sim.run("preamble_and_a_fast_tool")

    assert result.ok, result.expectations
    second = result.opened.model.requests[1]
    first_word = next(r["t"] for r in result.records if r["kind"] == "playout.word")
    asked = [r["t"] for r in result.records if r["kind"] == "llm.request"][1]
    assert asked < first_word
    assert [message.text for message in second.messages if message.calls] == ["Checking the calendar."]


def test_text_of_two_sentences_before_a_call_is_voiced_whole() -> None:
    text = "Let me check. Checking the calendar."
    result = sim.run("preamble_and_a_fast_tool", set={"llm.rules[0].text": text})

    assert result.heard[0] == text
    assert result.violations == []


def test_provider_wire_quirk() -> None:
    result = sim.run("provider_repeats_its_ids")

    assert result.ok, result.expectations
    assert {call: (each["provider_id"], each["arguments"]) for call, each in _calls(result).items()} == {
        "t1.0": ("call", {"day": "sunday"}),
        "t1.1": ("call", {}),
    }


@pytest.mark.parametrize("fragments", ["whole", "interleaved", 1, 2, 3, 7])
def test_calls_are_the_same_however_the_stream_is_cut(fragments: str | int) -> None:
    result = sim.run("provider_repeats_its_ids", set={"llm[0].fragments": fragments})

    whole = sim.run("provider_repeats_its_ids")
    assert result.context == whole.context
    assert _outcomes(result) == _outcomes(whole)


def test_request_invalid_history() -> None:
    result = sim.run("question_during_a_slow_lookup")

    assert result.ok, result.expectations
    for request in result.opened.model.requests:
        _assert_paired(request.messages)


@pytest.mark.parametrize("by_us", [0, 1, 1_000_000, 3_999_999, 4_000_000, 4_000_001, 4_349_999, 4_350_000])
def test_requests_stay_valid_wherever_the_question_falls(by_us: int) -> None:
    result = sim.run(
        "question_during_a_slow_lookup",
        set={
            "caller[1].after.by": f"{by_us}us",
            "llm": {
                "rules": [{"when": {"user": "order", "round": 1}, "calls": [{"order_status": {"order": "A-17"}}]}],
                "else": {"text": "On Sunday we close at ten in the evening."},
            },
        },
    )

    assert result.violations == []
    assert len(result.opened.model.requests) >= 4
    for request in result.opened.model.requests:
        _assert_paired(request.messages)


def _assert_paired(messages: Any) -> None:
    """Results directly follow the message that holds their calls, one for each."""
    at = 0
    while at < len(messages):
        calls = [call.id for call in messages[at].calls]
        answers = [each.result.call_id for each in messages[at + 1 : at + 1 + len(calls)] if each.result is not None]
        assert answers == calls
        at += 1 + len(calls)


def test_tool_cancel_race() -> None:
    result = sim.run("cut_as_the_tool_starts")

    assert result.ok, result.expectations
    assert _outcomes(result) == [("t1.0", "interrupted"), ("t1.1", "interrupted_running")]


@pytest.mark.parametrize("tie_seed", range(20))
@pytest.mark.parametrize("by_us", [0, 1, 399_999, 400_000])
def test_every_call_has_one_ending_whichever_comes_first(by_us: int, tie_seed: int) -> None:
    rules = [
        {
            "when": {"user": "for two", "round": 1},
            "calls": [{"opening_hours": {"day": "friday"}}, {"book_table": TABLE}],
        }
    ]
    changes = {"caller[1].after.by": f"{by_us}us", "llm": {"rules": rules, "else": {"text": "It is booked already."}}}
    result = sim.run("cut_as_the_tool_starts", tie_seed=tie_seed, set=changes)

    assert sorted(call for call, _ in _outcomes(result)) == ["t1.0", "t1.1"]
    assert len(_told(result, "BK-1001")) == 1
    assert result.violations == []


def test_tool_result_lost() -> None:
    for name in ("result_lost_with_its_reply", "interrupted_booking", "orphan_replay"):
        result = sim.run(name)

        assert result.ok, (name, result.expectations)
        assert result.tools["book_table"]["runs"] == 1
        assert len(_told(result, "BK-1001")) == 1


@pytest.mark.parametrize("by_us", [0, 1, 100_000, 350_000, 409_999, 410_000, 559_999, 560_000, 900_000])
def test_a_completed_booking_is_in_every_later_request(by_us: int) -> None:
    result = _moved("result_lost_with_its_reply", 1, by_us)

    later = result.opened.model.requests[1:]
    assert later
    for request in later:
        assert "BK-1001" in "".join(f"{m.text}{m.result.content if m.result else ''}" for m in request.messages)
    assert result.tools["book_table"]["runs"] == 1
    assert result.violations == []
