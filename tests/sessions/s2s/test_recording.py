"""A live call is recorded whole and replayed without its provider, to the byte; whatever differs is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.models.s2s.ears import Ears
from bargein.models.s2s.link import Lane
from bargein.models.s2s.server import LiveServer
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.replays import replay
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from tests.sessions.s2s.recorded import CALLS, recorded, resealed

LIVE = "agent/live:default"
MODEL = "agent/model:default"
AT = r"effect 2 \(agent/live:default\) at \d+ us: "


def live(records: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = [each for each in records if each["key"] == LIVE]
    return found


@pytest.fixture
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, nothing of a provider can be made."""

    def none(self: Any, *_: Any) -> None:
        raise AssertionError(f"a {type(self).__name__} was made in a replay")

    for each in (LiveServer, Ears, Lane):
        monkeypatch.setattr(each, "__init__", none)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("tie_seed", [None, 3])
def test_every_call_replays_to_the_byte_and_nothing_of_its_provider_is_made(
    name: str, tie_seed: int | None, request: pytest.FixtureRequest
) -> None:
    plain = run_plan(Plan(sim.load(CALLS[name])), tie_seed=tie_seed)
    log = recorded(name, tie_seed=tie_seed)
    assert log.header["result"]["digest"] == plain.digest  # being recorded moves nothing
    request.getfixturevalue("nobody_there")
    for visible in (False, True):
        again = replay(log, visible=visible)
        assert again.equal
        assert again.result.digest == plain.digest
        assert str(again.result.stopped) == str(plain.stopped)
        assert again.again.to_bytes() == log.to_bytes()
        assert (again.result.opened.model.provider, again.result.opened.model.requests) == (None, [])
        assert not any(body.runs for body in again.result.opened.tools.values())
        drawn = {name: stream.drawn for name, stream in again.result.opened.streams._streams.items()}
        assert (drawn["llm"], drawn["s2s"], drawn["stt"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("a barge-in that truncates", [("turn.barge_in", {}), ("s2s.sent", {"what": "conversation.item.truncate"})]),
        (
            "a barge-in that nobody tells the provider of",
            [("turn.barge_in", {}), ("s2s.sent", {"what": "toolResponse"})],
        ),
        ("tool calls at once", [("tool.finished", {"call": "t1.0"}), ("tool.finished", {"call": "t1.1"})]),
        ("calls that the provider withdraws", [("s2s.received", {"what": "toolCallCancellation"})]),
        ("late turn events", [("context.filled", {}), ("turn.barge_in", {})]),
        ("real audio", [("turn.barge_in", {"source": "provider"})]),
        ("a response that fails", [("llm.failed", {"reason": "overloaded"})]),
    ],
)
def test_the_calls_hold_what_they_are_called_after(name: str, seen: list[tuple[str, dict[str, Any]]]) -> None:
    records = sim.run(CALLS[name]).records
    for kind, fields in seen:
        assert [each for each in records if each["kind"] == kind and fields.items() <= each.items()], (kind, fields)


# -- what is recorded -------------------------------------------------------------------------------------------


def test_the_connection_is_one_effect_behind_the_others_and_renumbers_none() -> None:
    name = "tool calls at once"
    log, result = recorded(name), sim.run(CALLS[name])
    assert [(each.id, each.key, each.kind, each.scope, each.status) for each in log.records] == [
        (0, MODEL, "completion", "t1", "ok"),
        (1, "agent/tool:look#0", "tool_call", "t1", "ok"),
        (2, "agent/tool:look#0", "tool_call", "t1", "ok"),
        (3, MODEL, "completion", "t1", "ok"),
        (4, LIVE, "custom", "session", "ok"),
    ]
    assert [(each["id"], each["key"]) for each in result.effects] == [(each.id, each.key) for each in log.records]
    assert [each["effect"] for each in result.records if each["kind"] in ("llm.request", "tool.started")] == [
        0,
        1,
        2,
        3,
    ]
    handlers = log.header["handlers"]
    assert [(key, handlers[key]["family"], handlers[key]["kind"]) for key in (LIVE, MODEL)] == [
        (LIVE, "custom", "scripted"),
        (MODEL, "completion", "derived"),
    ]
    assert log.header["signature"][LIVE] == log.header["required"][LIVE] == "custom"


def test_its_items_are_everything_that_went_over_it() -> None:
    log = recorded("a response that fails")
    record = log.records[-1]
    assert (record.request, record.dispatched_at_us) == (
        {"connect": {"answers_turns": True, "continues": False, "truncates": True}},
        0,
    )
    told = [(name, *_brief(fields)) for item in record.items for name, fields in item.items() if name != "quiet"]
    assert told == [
        ("said", "configure"),
        ("sent", "session.update"),
        ("standing", False, False),  # the set-up is on its way,
        ("standing", True, False),  # and has arrived
        ("said", "placed"),
        ("standing", False, False),
        ("received", "input_audio_buffer.speech_started"),
        ("speech_started", 1),
        ("received", "input_audio_buffer.speech_stopped"),
        ("speech_stopped", 1),
        ("received", "response.created"),
        ("response_started", "resp_1"),
        ("received", "conversation.item.input_audio_transcription.completed"),
        ("transcript", 1),
        ("received", "response.output_audio.delta"),
        ("audio_delta", "resp_1"),
        ("standing", True, False),
        ("received", "response.done"),
        ("response_ended", "resp_1"),
        ("said", "sound_over"),
        ("said", "close"),
    ]


def _brief(fields: dict[str, Any]) -> tuple[Any, ...]:
    values = [key if type(value) is dict else value for key, value in fields.items()]
    return tuple(values) if all(type(value) is bool for value in values) else tuple(values[:1])


# -- the program is the recorded one ----------------------------------------------------------------------------


def refused(log: EffectLog, **options: Any) -> list[str]:
    with pytest.raises(ReplayRefused) as problem:
        replay(log, **options)
    return list(problem.value.sentences)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("s2s.provider", "gemini_live", 'scenario.s2s.provider: recorded was "realtime", found "gemini_live"'),
        ("s2s.latency", "60ms", 'scenario.s2s.latency: recorded was nothing, found "60ms"'),
        ("s2s.turns", "client", "scenario.s2s.turns: recorded was nothing"),
        ("s2s.turn_delay", "1s", "handlers.agent/live:default.made_of: recorded was"),
        ("llm.rules[0].text", "What?", "handlers.agent/live:default.made_of: recorded was"),
        ("agent.turn.min_silence", "1s", "settings.turn.min_silence_us: recorded was"),
        ("caller[1].say", "No.", 'scenario.caller[1].say: recorded was "Wait.", found "No."'),
    ],
)
def test_whatever_was_changed_is_refused_by_name(path: str, value: Any, told: str) -> None:
    name = "a barge-in that truncates"
    found = refused(recorded(name), scenario=sim.load(CALLS[name]).with_value(path, value))
    assert any(each.startswith(f"a.log: {told}") for each in found), found


def test_the_same_program_is_proven_to_be_the_same() -> None:
    name = "a barge-in that truncates"
    assert replay(recorded(name), scenario=sim.load(CALLS[name])).ok


# -- what runs is what was recorded -----------------------------------------------------------------------------


def at_item(record: dict[str, Any], name: str, nth: int = 0) -> int:
    """Where the nth thing of this name stands among the items, be it that it was said or that it came down."""
    return [at for at, item in enumerate(record["items"]) if name in item or name in item.get("said", {})][nth]


def said_otherwise(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "truncate_item")]["said"]["truncate_item"]["audio_end_ms"] = 1


def heard_otherwise(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "placed", 1)]["said"]["placed"]["text"] = "Stop."


def said_later(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    steps = [step for step in record["steps"] if step[2][:1] == ["hear"]]
    steps[-1][0] += 1


def another_word(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "audio_delta")]["audio_delta"]["text"] = "Ill"


def another_answer(_: Any, records: list[dict[str, Any]]) -> None:
    records[0]["items"][0]["text"] = "Ill"


def another_voice(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "audio_delta")]["audio_delta"]["speech"]["voice"] = "caller"


def no_event(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "transcript")] = {"laughter": {"turn": 1}}


def a_number_for_a_text(_: Any, records: list[dict[str, Any]]) -> None:
    record = live(records)
    record["items"][at_item(record, "transcript")]["transcript"]["text"] = 7


def one_more(header: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """The session is recorded to have said more than it says."""
    record = live(records)
    at_us = record["steps"][-1][0]
    record["steps"].append([at_us, 0, ["hear", "item"]])
    record["items"].append({"said": {"sound_over": {}}})
    header["deliveries"][-1:] = [[at_us, record["id"], header["deliveries"][-1][2] + 1, "land"]]


def another_end(_: Any, records: list[dict[str, Any]]) -> None:
    """What the session says last is recorded as something else."""
    live(records)["items"][-1] = {"said": {"sound_over": {}}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (said_otherwise, AT + r"said\.truncate_item\.audio_end_ms: recorded was 1, found \d+"),
        (heard_otherwise, AT + r'said\.placed\.text: recorded was "Stop\.", found "Wait\."'),
        (said_later, AT + r'it was told \{"close":\{\}\}; recorded was \{"close":\{\}\} at \d+1 us'),
        (another_word, r'effect 0 \(agent/model:default\): items\[0\]\.text: recorded was "Well,", found "Ill"'),
        (another_answer, r'effect 0 \(agent/model:default\): items\[0\]\.text: recorded was "Ill", found "Well,"'),
        (another_voice, AT + r"nobody says '.*' in the voice 'caller' as it was recorded"),
        (no_event, AT + r"\{'laughter': \{'turn': 1\}\} is no stream item"),
        (a_number_for_a_text, AT + r"transcript\.text: found 7; accepted is a text"),
        (one_more, AT + r"what it was told at \d+ us was never said"),
        (another_end, AT + r"said\.sound_over: recorded was \{\}, found nothing"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
@pytest.mark.parametrize("visible", [False, True])
def test_an_edited_log_is_refused_with_the_place(change: Callable[..., object], told: str, visible: bool) -> None:
    log = resealed(recorded("a barge-in that truncates"), change)
    (sentence,) = refused(log, visible=visible)
    assert re.match(f"a.log: {told}", sentence), sentence


def test_a_session_that_says_nothing_any_more_is_refused_where_that_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from bargein.pipelines.s2s import S2sStage

    log = recorded("a barge-in that truncates")
    monkeypatch.setattr(S2sStage, "cut", lambda self: None)
    (sentence,) = refused(log)
    told = AT + r'recorded was that it is told \{"truncate_item":.*\} before; it was not'
    assert re.match(f"a.log: {told}", sentence), sentence
