"""Telephony in whole sessions: tones, one transfer a call, and a farewell that is heard to its last sample."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bargein.models.apps.telephony import Line, Telephony
from bargein.models.python_tools import ToolCallContext
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.sim import run
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.lab.result import Result


def scenario(rounds: list[dict[str, Any]], *lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "scenario": "call",
        "agent": {"filler": "off"},
        "caller": [{"say": "Thank you, that was all.", "at": "500ms"}, *lines],
        "llm": {"rounds": rounds},
        **more,
    }


def outcomes(result: Result) -> list[tuple[str, str]]:
    return [(record["tool"], record["outcome"]) for record in result.records if record["kind"] == "tool.settled"]


def when(result: Result, kind: str) -> list[int]:
    return [record["t"] for record in result.records if record["kind"] == kind]


FAREWELL = [{"text": "Thank you for calling, goodbye.", "calls": [{"end_call": {}}]}, {"text": ""}]
LATER = {"say": "Are you still there?", "at": "60s"}


@pytest.mark.parametrize("per_frame", [False, True])
def test_end_call_plays_the_farewell_to_its_last_sample_and_then_hangs_up(per_frame: bool) -> None:
    result = run(scenario(FAREWELL, LATER, session={"per_frame": per_frame}), tools=Telephony())
    (ended,) = [record for record in result.records if record["kind"] == "session.ended"]
    assert result.heard == ["Thank you for calling, goodbye."]
    assert ended["reason"] == "agent_hung_up"
    assert ended["t"] == when(result, "playout.ended")[-1] > when(result, "tool.finished")[-1]
    assert when(result, "playout.cut") == []
    assert result.violations == []


def test_what_the_agent_says_after_end_call_is_part_of_the_farewell() -> None:
    rounds = [{"calls": [{"end_call": {}}]}, {"text": "Goodbye then."}]
    result = run(scenario(rounds, LATER), tools=Telephony())
    assert result.heard == ["Goodbye then."]
    assert result.virtual_us == when(result, "playout.ended")[-1]
    assert result.violations == []


def test_an_interruption_of_the_farewell_keeps_the_call() -> None:
    wait = {"say": "Wait!", "after": {"event": "playout.started", "by": "300ms"}, "level": "decision", "for": "400ms"}
    result = run(scenario([*FAREWELL, {"text": "I am still here."}], wait), tools=Telephony())
    assert outcomes(result) == [("end_call", "ok")]
    assert result.heard[-1] == "I am still here."
    assert result.records[-1]["reason"] == "quiet"
    assert result.violations == []


@pytest.mark.parametrize(("late_us", "reason"), [(-1, "quiet"), (0, "quiet"), (1, "agent_hung_up")])
def test_an_interruption_counts_up_to_the_instant_of_the_last_sample(late_us: int, reason: str) -> None:
    end_us = run(scenario(FAREWELL, LATER), tools=Telephony()).virtual_us
    wait = {"say": "Wait!", "at": f"{end_us + late_us}us", "level": "decision", "for": "400ms"}
    result = run(scenario([*FAREWELL, {"text": "I am still here."}], wait), tools=Telephony())
    assert result.records[-1]["reason"] == reason
    assert when(result, "turn.interrupted") == ([end_us + late_us] if reason == "quiet" else [])
    assert result.violations == []


def test_the_call_is_hung_up_again_when_the_farewell_is_said_again() -> None:
    wait = {"say": "Wait!", "after": {"event": "playout.started", "by": "300ms"}, "level": "decision", "for": "400ms"}
    again = [{"text": "Bye.", "calls": [{"end_call": {}}]}, {"text": ""}]
    result = run(scenario([*FAREWELL, *again], wait, LATER), tools=Telephony())
    assert outcomes(result) == [("end_call", "ok"), ("end_call", "ok")]
    assert result.records[-1]["reason"] == "agent_hung_up"
    assert result.heard[-1] == "Bye."


def test_keys_sound_one_after_another_and_may_be_pressed_again() -> None:
    rounds = [
        {"calls": [{"send_dtmf": {"digits": "1#"}}]},
        {"calls": [{"send_dtmf": {"digits": "1#"}}]},
        {"text": "Ok."},
    ]
    result = run(scenario(rounds), tools=Telephony())
    assert outcomes(result) == [("send_dtmf", "ok"), ("send_dtmf", "ok")]
    started, finished = when(result, "tool.started"), when(result, "tool.finished")
    assert [end - start for start, end in zip(started, finished, strict=True)] == [400_000, 400_000]
    line = result.opened.tools["send_dtmf"]._function.__self__  # type: ignore[attr-defined]
    assert line.tones == "1#1#"
    assert result.violations == []


def test_end_call_in_a_turn_that_is_over_leaves_the_call_alone() -> None:
    asked: list[str] = []
    line = Line(SimpleNamespace(hang_up_when_silent=lambda: asked.append("hang up")))
    token = CancelToken("t1")
    context = ToolCallContext("s", 1, "t1.0", token, IdempotencyKey("s", 1, "t1.0"), Clock())
    line.end_call(ctx=context)
    assert asked == ["hang up"]
    token.cancel(Cause.BARGE_IN)
    line.end_call(ctx=context)
    assert asked == ["hang up"]


def test_only_keys_are_pressed() -> None:
    result = run(scenario([{"calls": [{"send_dtmf": {"digits": "12x"}}]}, {"text": "Ok."}]), tools=Telephony())
    assert outcomes(result) == [("send_dtmf", "invalid_arguments")]


def test_an_identical_transfer_in_one_turn_is_done_already() -> None:
    rounds = [
        {"calls": [{"transfer_call": {"to": "desk"}}]},
        {"calls": [{"transfer_call": {"to": "desk"}}]},
        {"text": "Ok."},
    ]
    assert outcomes(run(scenario(rounds), tools=Telephony())) == [
        ("transfer_call", "ok"),
        ("transfer_call", "repeat_refused"),
    ]


def test_a_call_is_transferred_once_and_another_call_once_too() -> None:
    rounds = [{"calls": [{"transfer_call": {"to": to}} for to in ("desk", "cellar")]}, {"text": "Ok."}]
    tools = Telephony()
    for _ in range(2):
        result = run(scenario(rounds), tools=tools)
        assert outcomes(result) == [("transfer_call", "ok"), ("transfer_call", "failed")]
        told = [message["content"] for message in result.context if message["role"] == "tool"]
        assert "this call was transferred to desk already; it cannot be moved again" in told[1]


def test_only_tones_are_repeatable() -> None:
    assert {spec.name: (spec.side_effect, spec.repeatable) for spec in Telephony().specs} == {
        "send_dtmf": (True, True),
        "transfer_call": (True, False),
        "end_call": (True, False),
    }
