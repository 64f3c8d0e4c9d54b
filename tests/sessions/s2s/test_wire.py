"""S1 to S3 on the wire: answers in call order, one continuation a batch, each at its exact instant 50 ms away."""

from __future__ import annotations

from typing import Any

from bargein import sim
from tests.sessions.s2s.live import LATENCY_US, TURN_US, call, received, sent

TTFT_US = 350_000
FIRST_US = TURN_US + 2 * LATENCY_US + TTFT_US
"""The first content of the first response: the sound goes up, the answer comes down."""
AGAIN_US = 2 * LATENCY_US + TTFT_US
"""From a request for a response to its first content."""


def _cities(provider: str) -> dict[str, Any]:
    results = [{"latency": f"{ms}ms", "result": {"sky": sky}} for ms, sky in ((30, "sun"), (20, "rain"), (10, "fog"))]
    tools = {"get_weather": {"parameters": {"type": "object"}, "results": results}}
    asked = [{"get_weather": {"city": city}} for city in ("Izmir", "Ankara", "Istanbul")]
    return call(provider, [{"calls": asked}, {"text": "Sun, rain and fog."}], tools=tools)


def _chain(provider: str) -> dict[str, Any]:
    tools = {
        name: {"latency": f"{ms}ms", "result": name} for name, ms in (("country", 15), ("capital", 12), ("sky", 18))
    }
    return call(provider, [*({"calls": [{name: {}}]} for name in tools), {"text": "Sunny."}], tools=tools)


def _twice(provider: str) -> dict[str, Any]:
    tools = {"book": {"kind": "side_effect", "latency": "40ms", "result": "BK-1"}}
    return call(provider, [{"calls": [{"book": {}}]}, {"calls": [{"book": {}}]}, {"text": "Booked."}], tools=tools)


def test_s1_three_results_go_in_call_order_and_one_request_follows() -> None:
    result = sim.run(_cities("realtime"))

    done_us = FIRST_US + 30_000
    assert sent(result) == [
        *((done_us, "conversation.item.create", [f"call_{n}"]) for n in range(3)),
        (done_us, "response.create", []),
    ]
    starts = [(r["t"], r["call"]) for r in result.records if r["kind"] == "tool.started"]
    ends = [(r["t"], r["call"]) for r in result.records if r["kind"] == "tool.finished"]
    assert starts == [(FIRST_US, f"t1.{n}") for n in range(3)]
    assert ends == [(FIRST_US + 10_000 * n, f"t1.{3 - n}") for n in (1, 2, 3)]
    assert received(result, "response.created", "response.done") == [
        (TURN_US + 2 * LATENCY_US, "response.created", "resp_1"),
        (FIRST_US, "response.done", "resp_1"),
        (done_us + 2 * LATENCY_US, "response.created", "resp_2"),
        (received(result, "response.output_audio.delta")[-1][0], "response.done", "resp_2"),
    ]
    assert result.heard == ["Sun, rain and fog."]
    assert result.counters["s2s"]["responses_requested"] == 1
    assert result.opened.model.server.refusals == []
    assert result.violations == []


def test_s1_in_one_message_each_way_on_the_wire_that_goes_on_by_itself() -> None:
    result = sim.run(_cities("gemini_live"))

    done_us = FIRST_US + 30_000
    assert sent(result) == [(done_us, "toolResponse", ["call_0", "call_1", "call_2"])]
    assert received(result, "toolCall") == [(FIRST_US, "toolCall", None)]
    assert received(result, "serverContent.modelTurn")[0][0] == done_us + AGAIN_US
    assert [r["t"] for r in result.records if r["kind"] == "llm.request"] == [TURN_US + 2 * LATENCY_US, done_us]
    assert result.counters["s2s"]["responses_requested"] == 1
    assert (result.heard, result.violations) == (["Sun, rain and fog."], [])


def test_s2_a_chain_sends_one_result_and_one_request_a_round() -> None:
    result = sim.run(_chain("realtime"))

    first_us = FIRST_US + 15_000
    second_us = first_us + AGAIN_US + 12_000
    third_us = second_us + AGAIN_US + 18_000
    assert sent(result) == [
        each
        for number, at_us in enumerate((first_us, second_us, third_us))
        for each in ((at_us, "conversation.item.create", [f"call_{number}"]), (at_us, "response.create", []))
    ]
    assert result.counters["s2s"]["responses_requested"] == 3
    assert (result.heard, result.violations) == (["Sunny."], [])


def test_s2_is_three_tool_responses_on_the_wire_that_goes_on_by_itself() -> None:
    result = sim.run(_chain("gemini_live"))

    first_us = FIRST_US + 15_000
    second_us = first_us + AGAIN_US + 12_000
    third_us = second_us + AGAIN_US + 18_000
    assert sent(result) == [
        (at_us, "toolResponse", [f"call_{n}"]) for n, at_us in enumerate((first_us, second_us, third_us))
    ]
    assert (result.heard, result.violations) == (["Sunny."], [])


def test_s3_the_repeated_booking_is_answered_already_done_on_either_wire() -> None:
    for provider in ("realtime", "gemini_live"):
        result = sim.run(_twice(provider))

        done_us = FIRST_US + 40_000
        assert [calls for _, _, calls in sent(result) if calls] == [["call_0"], ["call_1"]]
        assert [t for t, _, calls in sent(result) if calls] == [done_us, done_us + AGAIN_US]
        assert result.tools["book"]["runs"] == 1
        told = result.opened.model.requests[-1].messages[-1].result
        assert told.content.startswith('{"error":"already_done","tool":"book"')
        assert (result.heard, result.violations) == (["Booked."], [])
