"""Faults that people met with live providers, as the orders of events that led to them; each is answered right here."""

from __future__ import annotations

from typing import Any

from bargein import sim
from bargein.models.voice import speak
from bargein.sim.kernel.frames import next_boundary_us
from tests.sessions.s2s.live import TURN_US, call, line, placed, received, sent

LOOKUP = {"lookup": {"latency": "10ms", "result": "42"}}
SLOW = {"lookup": {"latency": "2s", "result": "42"}}


def _positions(result: Any) -> list[tuple[Any, ...]]:
    return [(r["what"], r["item"], r["at_ms"]) for r in result.records if r["kind"] == "s2s.sent" and r["item"]]


def _utterances(result: Any) -> list[Any]:
    return result.opened.session.book.utterances


# -- s2s-call-unanswered --------------------------------------------------------------------------------------


def test_a_call_in_the_middle_of_an_utterance_leaves_its_audio_to_play_out() -> None:
    """lk6569: generation is over long before the ear has heard it; the result goes out and every word is heard."""
    text = "Let me look that up for you, it takes a moment only."
    llm = [{"text": text, "calls": [{"lookup": {}}]}, {"text": "It is 42."}]
    for provider in ("realtime", "gemini_live"):
        result = sim.run(call(provider, llm, tools=LOOKUP))

        assert result.heard == [text, "It is 42."]
        answered_us = next(t for t, _, calls in sent(result) if calls)
        assert answered_us < next(r["t"] for r in result.records if r["kind"] == "playout.ended")
        assert [calls for _, _, calls in sent(result) if calls] == [["call_0"]]
        assert result.violations == []


def test_calls_of_an_interrupted_turn_are_still_answered() -> None:
    """lj2249: the provider would take no more audio while it waits for the answer to a call that was dropped."""
    lines = (placed("Look it up."), line("Never mind.", 2_000_000, 2_500_000))
    rules = [{"when": {"user": "Never"}, "text": "All right."}]
    llm = {"rules": rules, "else": {"calls": [{"lookup": {}}, {"lookup": {}}]}}
    result = sim.run(call("realtime", llm, *lines, tools=SLOW))

    interrupted_us = 2_100_000
    assert sent(result) == [(interrupted_us, "conversation.item.create", [f"call_{n}"]) for n in range(2)]
    told = [m.result.content for m in result.opened.model.requests[-1].messages if m.result is not None]
    assert [text.startswith('{"error":"interrupted"') for text in told] == [True, True]
    assert (result.heard, result.violations) == (["All right."], [])


def test_calls_that_the_provider_withdraws_are_not_answered() -> None:
    """The other wire takes its calls back when the user speaks; an answer to them is nothing it waits for."""
    lines = (placed("Look it up."), line("Never mind.", 2_000_000, 2_500_000))
    llm = {"rules": [{"when": {"user": "Never"}, "text": "All right."}], "else": {"calls": [{"lookup": {}}]}}
    result = sim.run(call("gemini_live", llm, *lines, tools=SLOW))

    assert received(result, "toolCallCancellation", "serverContent.interrupted") == [
        (2_100_000, "toolCallCancellation", None),
        (2_100_000, "serverContent.interrupted", None),
    ]
    assert sent(result) == []
    assert (result.heard, result.violations) == (["All right."], [])


def test_a_result_reaches_the_provider_without_the_user_although_it_goes_on_speaking() -> None:
    """lk4887: text after the call is generated faster than it plays; the result follows the end of generation."""
    rest = " Meanwhile, let me tell you that we are open on Sunday too, from ten to four."
    llm = [{"text": "One moment.", "calls": [{"lookup": {}}], "text_after": rest}, {"text": "It is 42."}]
    result = sim.run(call("realtime", llm, tools=LOOKUP))

    (ended_us, *_) = [t for t, _, _ in received(result, "response.done")]
    assert sent(result) == [
        (ended_us + 10_000, "conversation.item.create", ["call_0"]),
        (ended_us + 10_000, "response.create", []),
    ]
    assert result.heard == [f"One moment.{rest}", "It is 42."]
    assert result.violations == []


# -- truncation-position --------------------------------------------------------------------------------------


def _interrupted(llm: Any, at_us: int, **more: Any) -> Any:
    lines = (placed("Hi."), line("Wait.", at_us, at_us + 300_000))
    rules = [{"when": {"user": "Wait"}, "text": "All right."}, *llm]
    return sim.run(call("realtime", {"rules": rules}, *lines, **more))


def test_the_position_is_what_was_heard_and_not_the_time_since_the_first_audio() -> None:
    """op4122, op2059: a provider slower than the ear; the playout starves, and time goes on without it."""
    llm = [{"when": {"user": "Hi"}, "text": "Hello there, Sam, and welcome to the Corner House."}]
    result = _interrupted(llm, 3_000_000, s2s={"audio_speed": 0.3})

    utterance = _utterances(result)[0]
    assert [r["kind"] for r in result.records if r["kind"] == "playout.starved"] != []
    since_first_ms = (3_100_000 - utterance.spans[0][0] * 125 // 2) // 1000
    assert _positions(result) == [("conversation.item.truncate", "resp_1_item_1", utterance.heard // 16)]
    assert utterance.heard // 16 <= utterance.received // 16 < since_first_ms
    assert result.opened.model.server.refusals == []
    assert result.violations == []


def test_an_item_that_was_played_whole_is_not_truncated_on_the_next_turn() -> None:
    """pc2106: a constant excess counted as part of the item; here nothing is sent at all."""
    lines = (placed("Hi."), line("Thanks.", 6_000_000, 6_500_000))
    result = sim.run(call("realtime", [{"text": "Hello there."}, {"text": "Bye."}], *lines))

    assert sent(result) == []
    assert (result.heard, result.violations) == (["Hello there.", "Bye."], [])


def test_positions_restart_at_zero_for_each_item() -> None:
    """pc3677: speech, a tool, speech again; the cut counts in the second response's item only."""
    first = "One moment, I am looking."
    llm = [
        {"when": {"round": 1}, "text": first, "calls": [{"lookup": {}}]},
        {"when": {"round": 2}, "text": "It is forty-two, and so it was yesterday."},
    ]
    begun_us = 1_460_000 + speak("agent", first).length * 125 // 2
    result = _interrupted(llm, begun_us + 900_000, tools=LOOKUP)

    whole, cut = _utterances(result)[:2]
    assert whole.state.value == "ended"
    assert _positions(result) == [("conversation.item.truncate", "resp_2_item_1", cut.heard // 16)]
    assert 0 < cut.heard < cut.received
    assert (result.opened.model.server.refusals, result.violations) == ([], [])


def test_with_one_item_playing_and_one_behind_it_each_gets_its_own_word() -> None:
    """oc138592: the first is cut where it was, the second was not heard and goes."""
    llm = [
        {
            "when": {"user": "Hi"},
            "text": "One moment, I am looking it up.",
            "calls": [{"lookup": {}}],
            "text_after": " It takes a while.",
        }
    ]
    result = _interrupted(llm, 2_200_000, tools=SLOW)

    utterance = _utterances(result)[0]
    assert _positions(result) == [
        ("conversation.item.truncate", "resp_1_item_1", utterance.heard // 16),
        ("conversation.item.delete", "resp_1_item_2", None),
    ]
    held = [m.text for m in result.opened.model.requests[-1].messages if m.role.value == "assistant" and m.text]
    assert held == [utterance.heard_text()]
    assert (result.opened.model.server.refusals, result.violations) == ([], [])


def test_an_item_of_which_nothing_was_heard_is_deleted_and_not_cut_at_zero() -> None:
    """lk6249: the interruption falls between the first audio and the frame on which it would begin."""
    first_audio_us = TURN_US + 2 * 50_000 + 350_000  # 1.45 s; the frame begins at 1.46 s
    llm = [{"when": {"user": "Hi"}, "text": "Hello there."}]
    result = _interrupted(llm, first_audio_us + 5_000 - 100_000)

    assert next_boundary_us(first_audio_us + 5_000) == 1_460_000
    assert _positions(result) == [("conversation.item.delete", "resp_1_item_1", None)]
    assert (result.heard, result.opened.model.server.refusals, result.violations) == (["All right."], [], [])


# -- response-collision ---------------------------------------------------------------------------------------


def test_parallel_results_ask_for_one_response_when_none_is_active() -> None:
    """op2971: each result asked for a response, the provider refused all but one, and nobody asked again."""
    llm = [{"calls": [{"lookup": {}}, {"lookup": {}}]}, {"text": "It is 42."}]
    result = sim.run(call("realtime", llm, tools=LOOKUP))

    assert [what for _, what, _ in sent(result)] == ["conversation.item.create"] * 2 + ["response.create"]
    assert (result.heard, result.opened.model.server.refusals, result.violations) == (["It is 42."], [], [])


def test_a_second_response_is_asked_for_once_the_first_is_confirmed_to_have_ended() -> None:
    """lk2064: the client cancels, and its next request waits for the acknowledgement, however far the provider is."""
    lines = (placed("Hi."), line("Wait.", 2_000_000, 2_100_000))
    long = "Well, let me tell you everything about the house, its kitchen, its cellar and its garden. " * 3
    llm = {"rules": [{"when": {"user": "Wait"}, "text": "All right."}], "else": {"text": long}}
    s2s = {"turns": "client", "latency": "300ms", "audio_speed": 1}
    result = sim.run(call("realtime", llm, *lines, s2s=s2s))

    (acknowledged_us, _) = [t for t, _, _ in received(result, "response.done")]
    assert [(t, what) for t, what, _ in sent(result) if what.startswith("response.")] == [
        (TURN_US + 600_000, "response.create"),
        (2_600_000, "response.cancel"),
        (acknowledged_us, "response.create"),
    ]
    # The turn ended before the cancelled response did: the request has waited.
    assert next(r["t"] for r in result.records if r["kind"] == "turn.user" and r["epoch"] == 2) < acknowledged_us
    assert result.counters["s2s"]["requests_deferred"] == 1
    assert result.opened.model.server.refusals == []
    assert result.heard[-1] == "All right."
    assert result.violations == []


def test_a_request_that_meets_the_providers_own_response_leaves_one_reply() -> None:
    """The turn ends as the results go out: where the request is refused, the provider's own answer is the reply."""
    lines = (placed("Hi."), line("Wait.", 1_400_000, 1_500_000))
    llm = {"rules": [{"when": {"user": "Wait"}, "text": "All right."}], "else": {"calls": [{"lookup": {}}]}}
    refused = 0
    for lookup_ms in range(0, 400, 10):
        tools = {"lookup": {"latency": f"{lookup_ms}ms", "result": "42"}}
        result = sim.run(call("realtime", {**llm, "ttft": "200ms"}, *lines, tools=tools, s2s={"turn_delay": "400ms"}))

        refused += result.opened.model.server.refusals.count("conversation_already_has_active_response")
        assert result.heard == ["All right."], lookup_ms
        assert result.violations == [], lookup_ms
    assert refused  # the collision did happen
