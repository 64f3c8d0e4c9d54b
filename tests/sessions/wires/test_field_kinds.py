"""Faults that people met on real wires: provider quirks and invalid histories, on every wire that can have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.models.providers.catalogue import WIRES
from bargein.models.providers.presets import PRESETS
from bargein.models.vendors.answer import QUIRKS

TOOLS = {"show": {"latency": "200ms", "result": {"shown": "{args.n}"}}, "now": {"result": "noon"}}
SHOW_TWO = [{"show": {"n": 1}}, {"show": {"n": 2}}]


def _run(call: Callable[..., dict[str, Any]], wire: str, *quirks: str, **first: Any) -> Any:
    llm = {"rounds": [first, {"text": "There."}], "wire": wire, "quirks": list(quirks), "fragments": 4}
    return sim.run({**call("Hi."), "tools": TOOLS, "llm": llm})


@pytest.mark.parametrize("wire", PRESETS)
def test_provider_wire_quirk_every_split_of_a_call_is_the_same_call(
    wire: str, call: Callable[..., dict[str, Any]]
) -> None:
    whole = _run(call, wire, calls=SHOW_TWO).context

    for quirk in sorted(set(QUIRKS) - {"same_ids", "empty_ids"}):
        assert _run(call, wire, quirk, calls=SHOW_TWO).context == whole, quirk


@pytest.mark.parametrize("wire", WIRES)
def test_provider_wire_quirk_missing_arguments_are_an_empty_object(
    wire: str, call: Callable[..., dict[str, Any]]
) -> None:
    result = _run(call, wire, "no_arguments", calls=[{"now": {}}])

    assert (result.tools["now"]["outcomes"], result.violations) == ({"ok": 1}, [])


@pytest.mark.parametrize("wire", [*PRESETS, "anthropic", "openai_responses", "xai_responses"])
def test_provider_wire_quirk_two_calls_with_one_id_are_answered_separately(
    wire: str, call: Callable[..., dict[str, Any]]
) -> None:
    result = _run(call, wire, "same_ids", text="Here.", calls=SHOW_TWO)

    answers = [(each["call_id"], each["content"]) for each in result.context if each["role"] == "tool"]
    assert answers == [("t1.0", '{"shown":1}'), ("t1.1", '{"shown":2}')]
    assert result.violations == []
    assert result.heard == ["Here.", "There."]


def test_provider_wire_quirk_a_signature_outlives_an_interruption(
    call: Callable[..., dict[str, Any]], cut_in: Callable[..., dict[str, Any]]
) -> None:
    first = {"text": "I show you both of them now.", "calls": SHOW_TWO}
    rounds = [{"when": {"user": "Hi", "round": 1}, **first}, {"when": {"user": "Wait"}, "text": "Yes?"}]
    llm = {"rules": rounds, "else": {"text": "There."}, "wire": "gemini"}

    result = sim.run({**call("Hi.", cut_in(1_500_000)), "tools": TOOLS, "llm": llm})

    parts = [part for content in result.opened.model.wire.bodies[-1]["contents"] for part in content["parts"]]
    asked = [part for part in parts if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in asked] == ["signature_1", None]
    assert result.violations == []


@pytest.mark.parametrize("kind", ["read_only", "side_effect"])
@pytest.mark.parametrize("wire", WIRES)
def test_request_invalid_history_the_user_speaks_while_a_slow_tool_runs(
    wire: str, kind: str, call: Callable[..., dict[str, Any]], cut_in: Callable[..., dict[str, Any]]
) -> None:
    """No later request holds a call without an answer directly after it, whatever becomes of the tool."""
    slow = {"show": {"kind": kind, "latency": "4s", "result": "shown"}}
    rules = [
        {"when": {"user": "Hi", "round": 1}, "text": "One moment.", "calls": SHOW_TWO},
        {"when": {"user": "Wait", "round": 1}, "text": "I am still on it, and it takes a while."},
    ]
    lines = [cut_in(2_000_000), cut_in(9_000_000, "And now?")]

    result = sim.run(
        {**call("Hi.", *lines), "tools": slow, "llm": {"rules": rules, "else": {"text": "So."}, "wire": wire}}
    )

    assert len(result.opened.model.wire.bodies) == len(result.opened.model.requests) >= 3
    assert [each["kind"] for each in result.records if each["kind"] == "llm.request_refused"] == []
    assert result.violations == []


@pytest.mark.parametrize("wire", WIRES)
def test_request_invalid_history_a_long_call_outgrows_its_context(
    wire: str, call: Callable[..., dict[str, Any]], cut_in: Callable[..., dict[str, Any]]
) -> None:
    lines = [cut_in(at * 1_000_000, f"Show me number {at}.") for at in range(4, 40, 4)]
    rules = [{"when": {"round": 1}, "text": "One moment, please.", "calls": SHOW_TWO}]
    llm = {"rules": rules, "else": {"text": "There it is."}, "wire": wire}

    result = sim.run({**call("Hi.", *lines), "agent": {"max_context_tokens": 60}, "tools": TOOLS, "llm": llm})

    assert len(result.opened.model.wire.bodies) == 20
    assert max(len(request.messages) for request in result.opened.model.requests) <= 6
    assert result.violations == []


@pytest.mark.parametrize("wire", WIRES)
def test_request_invalid_history_a_tool_that_never_reports_is_answered(
    wire: str, call: Callable[..., dict[str, Any]]
) -> None:
    silent = {"show": {"latency": "never", "timeout": "1s"}}
    llm = {"rounds": [{"calls": [{"show": {"n": 1}}]}, {"text": "It does not answer."}], "wire": wire}

    result = sim.run({**call("Hi."), "tools": silent, "llm": llm})

    assert len(result.opened.model.wire.bodies) == 2
    assert (result.tools["show"]["outcomes"], result.violations) == ({"timed_out": 1}, [])
