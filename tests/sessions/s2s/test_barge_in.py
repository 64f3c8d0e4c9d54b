"""A barge-in every 10 ms of a live reply: silence at the boundary, a true position on the wire and a true context."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.kernel.frames import next_boundary_us, samples_to_us
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.model import Line
from tests.sessions.s2s.live import LATENCY_US, call

REPLY = "Hello there, Sam. We close at ten, on Sunday too."


def _plan(provider: str, **s2s: Any) -> Plan:
    rules = [{"when": {"user": "Wait"}, "text": "All right."}]
    line = {"say": "Hi.", "at": "0ms", "level": "decision", "for": "100ms"}
    return Plan(sim.load(call(provider, {"rules": rules, "else": {"text": REPLY, "ttft": "100ms"}}, line, s2s=s2s)))


def _cut(plan: Plan, at_us: int) -> Any:
    return run_plan(plan, more_lines=[Line(say="Wait.", at_us=at_us, level="decision", for_us=300_000)])


def _words_until(result: Any, limit_us: int) -> str:
    return "".join(row[5] for row in result.timeline.rows if row[1] == "playout.word" and row[0] <= limit_us)


SHAPES = {
    "realtime": ("realtime", {}),
    "gemini_live": ("gemini_live", {}),
    "slow audio": ("realtime", {"audio_speed": 0.9}),
    "the client's turns": ("realtime", {"turns": "client"}),
    "late turn events": ("realtime", {"turn_delay": "150ms"}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_swept_over_the_reply(shape: str) -> None:
    provider, s2s = SHAPES[shape]
    plan = _plan(provider, **s2s)
    whole = run_plan(plan)
    ended = next(row for row in whole.timeline.rows if row[1] == "playout.ended")
    texts = []
    for at_us in range(200_000, ended[0], 10_000):
        result = _cut(plan, at_us)
        assert result.violations == [], at_us
        decisions = [
            r for r in result.records if r["kind"] in ("turn.barge_in", "turn.interrupted") and r["epoch"] == 1
        ]
        if not decisions:
            continue  # the provider's word of it came after the last sample
        boundary_us = next_boundary_us(decisions[0]["t"])
        book = result.opened.session.book.utterances
        first = next((u for u in book if u.epoch == 1), None)
        spans = [] if first is None else first.spans
        assert all(samples_to_us(at + count) <= boundary_us for at, _, count in spans), at_us
        text = _words_until(whole, boundary_us)
        assert [m["text"] for m in result.context if m["role"] == "assistant"] == [
            *([text] if text else []),
            "All right.",
        ]
        assert "".join(u.heard_text() for u in book if u.epoch > 1) == "All right.", at_us
        _check_positions(result, first, boundary_us, provider)
        texts.append(text)
    words = [row[5] for row in whole.timeline.rows if row[1] == "playout.word"]
    found = list(dict.fromkeys(texts))
    assert found == ["".join(words[:count]) for count in range(len(found))]
    assert len(found) >= len(words)


def _check_positions(result: Any, first: Any, boundary_us: int, provider: str) -> None:
    """At most one message on how much was heard: the exact position in this item, within what was received."""
    records = [r for r in result.records if r["kind"] == "s2s.sent" and r["item"] is not None]
    server = result.opened.model.server
    assert [code for code in server.refusals if code != "response_cancel_not_active"] == []
    if provider == "gemini_live":
        assert records == []
        return
    if first is None or not first.heard:
        assert [r["what"] for r in records] in ([], ["conversation.item.delete"])  # audio had come, or it had not
    elif first.state.value == "ended":
        assert records == []
    else:
        told = [(r["t"], r["what"], r["item"], r["at_ms"]) for r in records]
        assert told == [(boundary_us, "conversation.item.truncate", "resp_1_item_1", first.heard // 16)]
        deltas = [r for r in result.records if r["kind"] == "s2s.received" and r["item"] == "resp_1_item_1"]
        assert 0 < first.heard // 16 <= sum(r["samples"] for r in deltas if r["t"] <= boundary_us) // 16


@pytest.mark.parametrize("latency_ms", [0, 50, 200])
def test_the_record_of_a_barge_in_stands_at_the_providers_event(latency_ms: int) -> None:
    plan = _plan("realtime", latency=f"{latency_ms}ms")
    result = _cut(plan, 1_500_000)
    (barge_in,) = [r for r in result.records if r["kind"] == "turn.barge_in"]
    assert (barge_in["t"], barge_in["onset_us"], barge_in["source"]) == (
        1_500_000 + 2 * latency_ms * 1000,
        1_500_000,
        "provider",
    )


def test_what_the_provider_remembers_is_what_was_heard() -> None:
    plan = _plan("realtime")
    result = _cut(plan, 1_500_000)
    heard = _words_until(result, next_boundary_us(1_500_000 + 2 * LATENCY_US))
    assert heard.startswith("Hello")
    # Asked again after the cut, it holds the reply up to the last word that was heard.
    third = run_plan(
        plan,
        more_lines=[
            Line(say="Wait.", at_us=1_500_000, level="decision", for_us=300_000),
            Line(say="Wait, again.", at_us=5_000_000, level="decision", for_us=300_000),
        ],
    )
    spoken = [m.text for m in third.opened.model.requests[-1].messages if m.role.value == "assistant"]
    assert spoken == [heard, "All right."]
