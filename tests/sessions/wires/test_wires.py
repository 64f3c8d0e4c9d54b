"""Whole sessions over vendors' bytes: the same call on every wire, what the requests say, refusals and failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.models.providers.catalogue import WIRES
from bargein.models.vendors.wire import answer_class
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.request import Request, derive_request
from tests.sessions.verification.scripts import SCENARIOS, Shape

LOOK = {"look": {"parameters": {"type": "object", "properties": {"where": {"type": "string"}}}, "result": "red"}}


def _scenario(name: str, wire: str, **llm: Any) -> dict[str, Any]:
    return SCENARIOS[name](Shape(wire, {"wire": wire, "fragments": "whole", **llm}, None))[0]


def _two_rounds(call: Callable[..., dict[str, Any]], first: dict[str, Any], **llm: Any) -> dict[str, Any]:
    rounds = {"rounds": [first, {"text": "It is red."}], **llm}
    return {**call("Hi."), "llm": rounds, "tools": LOOK}


def _shape(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what the provider alone reads."""
    calls = [{**each, "provider_id": "", "provider_data": None} for each in message.get("tool_calls", ())]
    return {**message, "provider_data": None, "tool_calls": calls}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_wire_gives_the_same_context_and_the_same_internal_ids(name: str) -> None:
    contexts = [[_shape(each) for each in sim.run(_scenario(name, wire)).context] for wire in WIRES]

    assert all(each == contexts[0] for each in contexts)


@pytest.mark.parametrize("wire", WIRES)
def test_chunking_leaves_the_timeline_as_it_is(wire: str) -> None:
    digests = {sim.run(_scenario("S1", wire, chunking=chunking)).digest for chunking in ("event", 1, 2, 7, 1000)}

    assert len(digests) == 1


def test_a_proxy_that_buffers_gives_everything_with_the_end(
    call: Callable[..., dict[str, Any]], events: Callable[..., list[tuple[Any, ...]]]
) -> None:
    llm = {"rounds": [{"text": "One two three."}], "wire": "openai", "chunking": "answer"}

    result = sim.run({**call("Hi."), "llm": llm})

    assert events(result, "llm.first_token") == [(790_000, "llm.first_token", 0)]
    assert result.violations == []


def _bodies(name: str, wire: str) -> list[dict[str, Any]]:
    return list(sim.run(_scenario(name, wire)).opened.model.wire.bodies)


def test_results_go_to_the_wire_in_call_order() -> None:
    """Three lookups that finish in reverse order (tool contract, "Verification")."""
    chat = _bodies("S1", "openai")[1]["messages"]
    anthropic = _bodies("S1", "anthropic")[1]["messages"]
    gemini = _bodies("S1", "gemini")[1]["contents"]
    responses = _bodies("S1", "openai_responses")[1]["input"]

    ids = ["call_0", "call_1", "call_2"]
    assert [each.get("tool_call_id") for each in chat if each["role"] == "tool"] == ids
    assert [(each["type"], each["tool_use_id"]) for each in anthropic[2]["content"]] == [
        ("tool_result", id) for id in ids
    ]
    assert (len(anthropic), anthropic[2]["role"]) == (3, "user")
    assert [each["functionResponse"]["name"] for each in gemini[2]["parts"]] == ["get_weather"] * 3
    assert [each["functionResponse"]["response"]["result"]["city"] for each in gemini[2]["parts"]] == [
        "Izmir",
        "Ankara",
        "Istanbul",
    ]
    assert [each["call_id"] for each in responses if each["type"] == "function_call_output"] == ids


def test_a_filler_and_the_answer_after_it_are_one_turn_where_turns_alternate(
    call: Callable[..., dict[str, Any]],
) -> None:
    for wire, key, role in (("anthropic", "messages", "assistant"), ("gemini", "contents", "model")):
        data = _two_rounds(call, {"calls": [{"look": {"where": "a"}}]}, wire=wire)
        data["tools"] = {"look": {**LOOK["look"], "latency": "3s"}}
        data["caller"] = [*data["caller"], {"say": "Thanks.", "at": "12s", "level": "decision", "for": "300ms"}]
        data["llm"]["rounds"] = [*data["llm"]["rounds"], {"text": "Bye."}]

        result = sim.run(data)

        assert result.violations == []
        turns = result.opened.model.wire.bodies[2][key]
        texts = [[part.get("text") for part in turn.get("content") or turn.get("parts")] for turn in turns]
        assert [turn["role"] for turn in turns] == ["user", role, "user", role, "user"]
        assert texts[3] == ["One moment, please.", "It is red."]


@pytest.mark.parametrize(
    ("wire", "signed"),
    [
        ("anthropic", {"type": "thinking", "thinking": "Let me see.", "signature": "signature_1"}),
        (
            "openai_responses",
            {
                "type": "reasoning",
                "id": "rs_1_0",
                "summary": [{"type": "summary_text", "text": "Let me see."}],
                "encrypted_content": "sealed_1",
            },
        ),
        ("gemini", {"functionCall": {"name": "look", "args": {"where": "a"}}, "thoughtSignature": "signature_1"}),
        (
            "openrouter",
            {
                "type": "reasoning.text",
                "text": "Let me see.",
                "format": "plain",
                "index": 0,
                "signature": "signature_1",
            },
        ),
        ("deepseek", "Let me see."),
    ],
)
def test_what_the_provider_signed_comes_back_byte_for_byte(
    wire: str, signed: Any, call: Callable[..., dict[str, Any]]
) -> None:
    first = {"reasoning": "Let me see.", "text": "I look.", "calls": [{"look": {"where": "a"}}]}

    result = sim.run(_two_rounds(call, first, wire=wire))

    assert result.violations == []
    assert signed in list(_values(result.opened.model.wire.bodies[1]))


def _values(value: Any) -> Any:
    yield value
    inner = value.values() if type(value) is dict else value if type(value) is list else ()
    for each in inner:
        yield from _values(each)


@pytest.mark.parametrize(("wire", "quirk"), [(w, q) for w in WIRES for q in sorted(answer_class(w).SUPPORTED)])
def test_every_quirk_is_survived_by_a_whole_call(wire: str, quirk: str, call: Callable[..., dict[str, Any]]) -> None:
    calls = [{"look": {"where": "a"}}, {"look": {"where": "b"}}, {"look": {}}]
    first = {"text": "I look.", "calls": calls}

    result = sim.run(_two_rounds(call, first, wire=wire, quirks=[quirk], fragments=3))

    assert result.violations == []
    assert [each["content"] for each in result.context if each["role"] == Role.TOOL] == ["red"] * 3
    assert result.heard == ["I look.", "It is red."]


def test_a_request_that_the_provider_would_refuse_is_named_on_the_timeline(
    call: Callable[..., dict[str, Any]], events: Callable[..., list[tuple[Any, ...]]]
) -> None:
    data = _two_rounds(call, {"text": "Hi."}, wire="anthropic")
    data["tools"] = {"look": {"parameters": {"type": "object", "anyOf": [{"required": ["where"]}]}, "result": "red"}}

    result = sim.run(data)

    reason = "of the tool look: its schema has anyOf at the top, which is accepted inside properties only"
    assert events(result, "llm.request_refused") == [(400_000, "llm.request_refused", 0, "Anthropic", reason)]
    assert [(each.invariant, each.message) for each in result.violations] == [
        ("context_valid", f"Anthropic would refuse this request, because {reason}")
    ]
    assert events(result, "run.ended") == [(400_000, "run.ended", "failed", 1)]


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("openai", "OpenAI would refuse this request, because call call_0 is not answered"),
        ("anthropic", "Anthropic would refuse this request, because it ends on an assistant message"),
        ("gemini", "Gemini would refuse this request, because the call of look has no response"),
    ],
)
def test_a_history_that_lost_a_result_is_refused_in_the_providers_name(
    wire: str, message: str, call: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault is planted behind the context, where only the wire can see it."""

    def without_results(agent: Any, conversation: Any, adverts: Any) -> Request:
        return derive_request(agent, [each for each in conversation if each.role is not Role.TOOL], adverts)

    monkeypatch.setattr("bargein.pipelines.response_stream.derive_request", without_results)

    result = sim.run(_two_rounds(call, {"calls": [{"look": {"where": "a"}}]}, wire=wire))

    assert [(each.invariant, each.message) for each in result.violations] == [("context_valid", message)]


def test_a_failure_in_mid_stream_ends_the_round_and_runs_no_call(
    call: Callable[..., dict[str, Any]], events: Callable[..., list[tuple[Any, ...]]]
) -> None:
    first = {"text": "I look.", "calls": [{"look": {"where": "a"}}], "error": "Overloaded"}

    result = sim.run(_two_rounds(call, first, wire="anthropic"))

    ((_, _, number, reason),) = events(result, "llm.failed")
    assert number == 0
    assert reason == "Anthropic, event 9 at byte 988: the provider reports overloaded_error: Overloaded"
    assert events(result, "tool.started") == []


def test_an_answer_that_is_all_reasoning_says_nothing_and_is_reported(
    call: Callable[..., dict[str, Any]], events: Callable[..., list[tuple[Any, ...]]]
) -> None:
    llm = {"rounds": [{"reasoning": "Hm. Hm. Hm.", "finish": "length"}], "wire": "llamacpp"}

    result = sim.run({**call("Hi."), "llm": llm})

    assert result.heard == []
    assert events(result, "llm.done", "run.ended") == [
        (790_000, "llm.done", 0, "length", 0, 0),
        (790_000, "run.ended", "empty", 1),
    ]


def test_arguments_that_are_no_json_are_answered_and_not_run(call: Callable[..., dict[str, Any]]) -> None:
    first = {"calls": [{"tool": "look", "raw": '{"where": "a'}]}
    for wire in WIRES:
        result = sim.run(_two_rounds(call, first, wire=wire))
        assert result.tools.get("look", {"runs": 0})["runs"] == 0, wire
