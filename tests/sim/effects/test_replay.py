"""Replay: nothing but the log answers, and whatever differs from the recording is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.identity import content_digest, stable_hash, written
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab import programs
from bargein.sim.lab.replays import Replayed, record, replay
from bargein.sim.scenario.build import Plan

CHANCE: dict[str, Any] = {
    "scenario": "chance",
    "seed": 3,
    "tools": {
        "look": {
            "description": "Looks.",
            "parameters": {"type": "object"},
            "latency": {"dist": "lognorm", "median": "800ms", "p95": "2s"},
            "progress": [{"at": "100ms", "text": "Looking."}],
            "result": {"b": 1, "a": [2.5, None]},
        }
    },
    "caller": [{"say": "Look twice.", "at": "500ms", "level": "decision", "for": "300ms"}],
    "llm": {
        "ttft": {"dist": "uniform", "low": "200ms", "high": "600ms"},
        "rounds": [{"text": "Yes. ", "calls": [{"look": {}}, {"look": {"city": "Oslo"}}]}, {"text": "It is so."}],
    },
}


def recorded(scenario: Any, **options: Any) -> EffectLog:
    return EffectLog.from_bytes(record(Plan(sim.load(scenario)), **options)[1].to_bytes(), "a.log")


def handlers_called(again: Replayed) -> list[Any]:
    opened = again.result.opened
    return [*opened.model.requests, *(name for name, body in opened.tools.items() if body.runs)]


@pytest.mark.parametrize("name", sim.scenarios())
@pytest.mark.parametrize("tie_seed", [None, 5])
@pytest.mark.parametrize("visible", [False, True])
def test_every_built_in_replays_to_an_equal_timeline_and_no_handler_is_called(
    name: str, tie_seed: int | None, visible: bool
) -> None:
    log = recorded(name, tie_seed=tie_seed)
    again = replay(log, visible=visible)
    assert again.equal
    assert again.result.digest == sim.run(name, tie_seed=tie_seed).digest
    assert again.ok
    assert handlers_called(again) == []
    assert again.again.to_bytes() == log.to_bytes()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tie_seed", [None, 1])
def test_what_chance_decided_is_in_the_log(seed: int, tie_seed: int | None) -> None:
    log = recorded(CHANCE, seed=seed, tie_seed=tie_seed)
    again = replay(log, visible=True)
    assert again.equal
    assert handlers_called(again) == []
    drawn = {name: stream.drawn for name, stream in again.result.opened.streams._streams.items()}
    assert drawn == {"llm": 0, "stt": 0, "tts": 0, "tool/look": 0}


def test_a_tool_that_ends_the_call_ends_it_in_the_replay_too() -> None:
    call = {
        "scenario": "farewell",
        "tools": {"end_call": {"builtin": "end_call"}},
        "caller": [{"say": "Bye.", "at": "100ms", "level": "decision", "for": "300ms"}],
        "llm": [{"text": "Goodbye. ", "calls": [{"end_call": {}}]}, {"text": "Take care."}],
    }
    log = recorded(call)
    assert log.records[1].steps[0].does == ["hang_up_when_silent", "land"]
    again = replay(log, visible=True)
    assert again.equal
    assert again.result.records[-1]["reason"] == "agent_hung_up"


def test_a_session_that_was_stopped_replays_to_where_it_was_stopped() -> None:
    call = {**CHANCE, "session": {"max_duration": "2s"}, "llm": [{"text": "Hm.", "ttft": "never"}]}
    log = recorded(call)
    assert (log.records[0].status, log.records[0].landed_at_us) == (None, None)
    again = replay(log, visible=True)
    assert again.equal
    assert str(again.result.stopped) == log.header["result"]["stopped"]
    assert "waits for the model's answer" in str(again.result.stopped)


# -- the program is the recorded one, or is refused by name -----------------------------------------------------


def refused(log: EffectLog, **options: Any) -> list[str]:
    with pytest.raises(ReplayRefused) as problem:
        replay(log, **options)
    return list(problem.value.sentences)


def test_the_same_program_is_proven_to_be_the_same() -> None:
    log = recorded(CHANCE)
    assert replay(log, scenario=sim.load(CHANCE)).equal
    judged = sim.load({**CHANCE, "about": "Other words.", "expect": {"counts": {"llm.request": 2}}})
    assert replay(log, scenario=judged).ok


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("agent.filler.delay", "1s", "settings.filler.config.delay_us: recorded was 1200000, found 1000000"),
        ("agent.max_tool_rounds", 5, "settings.max_tool_rounds: recorded was 6, found 5"),
        ("agent.model", "other", "handlers.agent/model:default: recorded was"),
        ("tools.look.timeout", "9s", "tools.look.timeout_us: recorded was 5000000, found 9000000"),
        ("tools.look.result", 3, "handlers.agent/tool:look#0.made_of: recorded was"),
        (
            "llm.ttft",
            "1s",
            'scenario.llm.ttft: recorded was {"dist":"uniform","high":"600ms","low":"200ms"}, found "1s"',
        ),
        ("caller[0].say", "Look once.", 'scenario.caller[0].say: recorded was "Look twice.", found "Look once."'),
    ],
)
def test_whatever_was_changed_is_refused_by_name(path: str, value: Any, told: str) -> None:
    changed = sim.load(CHANCE).with_value(path, value)
    assert any(each.startswith(f"a.log: {told}") for each in refused(recorded(CHANCE), scenario=changed))


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    log = recorded(CHANCE)
    monkeypatch.setattr(programs, "version", lambda _: "9.9.9")
    programs.program_of.cache_clear()
    found = refused(log)
    programs.program_of.cache_clear()
    assert found == [f"a.log: version: recorded was bargein {log.header['version']}, this is bargein 9.9.9"]


def resealed(log: EffectLog, change: Callable[[dict[str, Any], list[dict[str, Any]]], object]) -> EffectLog:
    """The log edited by somebody who knows how to make its checks fit."""
    header, *rest = [json.loads(line) for line in log.to_bytes().splitlines()][:-1]
    change(header, rest)
    body = b""
    for each in (header, *rest):
        if "request" in each:
            each["hash"] = stable_hash(each["request"])
        text = written({key: value for key, value in each.items() if key != "check"})
        body += b'{"check":"' + content_digest(text)[:16].encode() + b'",' + text[1:] + b"\n"
    end = written({"end": {"records": len(rest), "sha256": content_digest(body)}}) + b"\n"
    return EffectLog.from_bytes(body + end, "a.log")


def test_a_hook_that_the_program_does_not_have_is_refused() -> None:
    log = resealed(recorded(CHANCE), lambda header, _: header.update(hooks=["count"]))
    assert refused(log) == ['a.log: hooks[0]: recorded was "count", found nothing']


def test_a_run_whose_program_is_not_recorded_is_unverified_and_another_one_is_refused() -> None:
    log = resealed(recorded(CHANCE), lambda header, _: header.update(programs={}))
    assert refused(log) == ["a.log: programs.t1: the program of this run is not recorded, so it is unverified"]
    other = resealed(recorded(CHANCE), lambda header, _: header["programs"]["t1"].update(policy="0" * 16))
    assert [each.partition(" found")[0] for each in refused(other)] == [
        "a.log: programs.t1.policy: recorded was '0000000000000000',"
    ]


# -- what runs is what was recorded -----------------------------------------------------------------------------


def test_another_request_is_refused_with_the_place_at_which_it_differs() -> None:
    def other_words(_: Any, records: list[dict[str, Any]]) -> None:
        records[3]["request"]["messages"][1]["text"] = "It is."

    assert refused(resealed(recorded(CHANCE), other_words))[0].endswith(
        'messages[1].text: recorded was "It is.", found "Yes. "'
    )


def test_records_that_are_missing_or_too_many_are_refused() -> None:
    def missing(header: Any, records: list[dict[str, Any]]) -> None:
        del records[3]
        header["deliveries"] = [each for each in header["deliveries"] if each[1] != 3]

    def more(header: Any, records: list[dict[str, Any]]) -> None:
        records.append({**records[3], "id": 4})

    log = recorded(CHANCE)
    assert "was never recorded: the log has no more of that key" in refused(resealed(log, missing))[0]
    assert refused(resealed(log, more)) == [
        f"a.log: effect 4 (agent/model:default), recorded at {log.records[3].dispatched_at_us} us, was never asked for"
    ]


def swap_identical_calls(header: Any, records: list[dict[str, Any]]) -> None:
    records[1]["key"] = records[2]["key"] = "agent/tool:look#0"
    records[1]["request"], records[2]["request"] = records[2]["request"], records[1]["request"]


def test_two_dispatches_that_change_places_are_noticed_although_their_ids_match() -> None:
    assert "recorded was" in refused(resealed(recorded(CHANCE), swap_identical_calls))[0]


def test_a_record_of_another_run_is_refused() -> None:
    def of_another(header: Any, records: list[dict[str, Any]]) -> None:
        records[3]["scope"] = "t2"
        header["programs"]["t2"] = header["programs"]["t1"]

    assert refused(resealed(recorded(CHANCE), of_another)) == [
        "a.log: effect 3 (agent/model:default): recorded as a completion of t2, found a completion of t1"
    ]


# -- cancellations ----------------------------------------------------------------------------------------------

CUT = "cut_while_the_model_writes"


def uncancelled(header: Any, records: list[dict[str, Any]]) -> None:
    """As if the first answer had been cancelled sooner than anybody does."""
    record = records[0]
    record["landed_at_us"] -= 5_000
    header["deliveries"] = [
        [record["landed_at_us"], *each[1:]] if each[1:2] == [0] and each[3] else each for each in header["deliveries"]
    ]


def test_a_cancellation_that_does_not_come_again_is_refused_in_policy_visible_mode() -> None:
    log = resealed(recorded(CUT), uncancelled)
    assert log.records[0].cancelled
    at_us = log.records[0].landed_at_us
    assert refused(log, visible=True) == [
        f"a.log: effect 0 (agent/model:default) was cancelled at {at_us} us in the recording, and now nobody cancels it"
    ]


def test_in_exchange_mode_whoever_does_not_cancel_is_answered_as_cancelled() -> None:
    log = resealed(recorded(CUT), uncancelled)
    again = replay(log)
    failed = again.result.timeline.of("llm.failed")
    assert [(each["t"], each["reason"]) for each in failed] == [(log.records[0].landed_at_us, "barge_in")]
    assert not again.equal
    assert not again.ok


# -- policy-visible mode ----------------------------------------------------------------------------------------


def test_the_mode_needs_the_deliveries() -> None:
    log = resealed(recorded(CHANCE), lambda header, _: header.update(deliveries=[]))
    assert replay(log).equal
    assert refused(log, visible=True) == [
        "a.log: it has no deliveries, so what became visible when is not known; accepted is a log that has them"
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda made: made[0].__setitem__(2, 99), "deliveries[0]: effect 0 shows 99 items, and its stream has 4"),
        (
            lambda made: made[0].__setitem__(1, 9),
            "deliveries[0]: there is no effect 9; accepted is one of the 4 records",
        ),
        (lambda made: made.reverse(), "deliveries[1]: "),
        (lambda made: made.pop(), "effect 3: its deliveries do not show all that came of it"),
        (lambda made: made[0].append("x"), "deliveries[0]: accepted is [instant, effect, items, end]"),
        (lambda made: made[0].append(2), "deliveries[0]: accepted is [instant, effect, items, end]"),
        (lambda made: made.__setitem__(0, 7), "deliveries[0]: accepted is [instant, effect, items, end]"),
        (lambda made: made.insert(2, made[1]), "deliveries[3]: effect 0 shows 5 items"),
    ],
)
def test_deliveries_that_contradict_the_records_are_refused_before_anything_runs(
    change: Callable[[list[Any]], object], told: str
) -> None:
    log = resealed(recorded(CHANCE), lambda header, _: change(header["deliveries"]))
    assert refused(log, visible=True)[0].startswith(f"a.log: {told}")
    assert replay(log).equal


def later(header: Any, records: list[dict[str, Any]]) -> None:
    """The last word comes 7 ms later; nobody asks for anything else because of it."""
    last = records[3]
    before = last["landed_at_us"]
    last["landed_at_us"] += 7_000
    for step in last["steps"]:
        step[0] += 7_000 if step[0] == before else 0
    header["deliveries"][-1][0] += 7_000


def test_other_instants_are_what_the_log_says_and_only_the_timeline_tells() -> None:
    log = resealed(recorded(CHANCE), later)
    for visible in (False, True):
        again = replay(log, visible=visible)
        assert not again.equal
        assert again.again.header["deliveries"] == log.header["deliveries"]


def test_batches_that_come_otherwise_are_refused() -> None:
    def torn(header: Any, _: Any) -> None:
        at_us, effect, items, end = header["deliveries"][-1]
        header["deliveries"][-1:] = [[at_us - 1, effect, 1, ""], [at_us, effect, items - 1, end]]

    log = resealed(recorded(CHANCE), torn)
    at_us = log.header["deliveries"][-1][0]
    assert refused(log, visible=True) == [
        f"a.log: recorded was 1 item of effect 3 at {at_us - 1} us; now it was 2 items and the outcome of effect 3 at "
        f"{at_us} us"
    ]
    assert replay(log).equal


def test_another_instant_of_dispatch_is_refused() -> None:
    log = recorded(CHANCE)
    at_us = log.records[3].dispatched_at_us
    moved = resealed(log, lambda _, records: records[3].update(dispatched_at_us=at_us - 1))
    assert refused(moved, visible=True) == [
        f"a.log: effect 3 (agent/model:default) was recorded at {at_us - 1} us, and now nobody has asked for it by "
        f"{at_us - 1} us"
    ]
    assert replay(moved).equal
    later = resealed(log, lambda _, records: records[3].update(dispatched_at_us=at_us + 1))
    assert refused(later, visible=True) == [
        f"a.log: effect 3 (agent/model:default) was recorded as effect 3 at {at_us + 1} us, and was dispatched at "
        f"{at_us} us"
    ]


def test_an_act_that_no_handler_can_do_is_refused() -> None:
    log = resealed(recorded(CHANCE), lambda _, records: records[0]["steps"][0][2].append("rm"))
    assert refused(log) == ['a.log: effect 0 does "rm"; accepted is one of item, land, hang_up_when_silent']


# -- Python --------------------------------------------------------------------------------------------------


def own_tools(runs: list[str]) -> sim.Tools:
    tools = sim.Tools()

    @tools.side_effect(filler_after=None)
    def book(day: str) -> Any:
        """Books."""
        runs.append(day)
        yield "200ms"
        yield sim.Progress("Nearly.")
        yield "100ms"
        return {"day": day}

    return tools


OWN = {
    "scenario": "own",
    "caller": [{"say": "Book it.", "at": "100ms", "level": "decision", "for": "300ms"}],
    "llm": [{"calls": [{"book": {"day": "friday"}}]}, {"text": "It is booked."}],
}


@pytest.mark.parametrize("tie_seed", [None, 1, 2])
def test_a_program_s_own_tools_are_neither_called_nor_needed(tmp_path: Any, tie_seed: int | None) -> None:
    runs: list[str] = []
    live = sim.run(OWN, tools=own_tools(runs), tie_seed=tie_seed, record=tmp_path / "a.log")
    for tools in (None, own_tools(runs)):
        again = sim.replay(tmp_path / "a.log", tools=tools, visible=True)
        assert again.result.digest == live.digest
        assert [each["text"] for each in again.result.timeline.of("tool.progress")] == ["Nearly."]
    assert runs == ["friday"]


def _same(day: str) -> str:
    return day


def test_own_tools_that_are_declared_otherwise_are_refused(tmp_path: Any) -> None:
    sim.run(OWN, tools=own_tools([]), record=tmp_path / "a.log")
    tools = sim.Tools()
    tools.side_effect(name="book", timeout="1s", filler_after=None)(_same)
    with pytest.raises(ReplayRefused, match=r"tools\.book\.timeout_us: recorded was 5000000, found 1000000"):
        sim.replay(tmp_path / "a.log", scenario=sim.load(OWN, tools=tools), tools=tools)


def test_a_remote_agent_is_not_called_and_only_its_link_is_silent() -> None:
    tool = {"description": "Looks.", "parameters": {"type": "object"}, "latency": "300ms", "result": {"b": 1, "a": 2}}
    far = {
        **OWN,
        "scenario": "far",
        "remote": {"link": {"latency": "20ms", "jitter": "15ms"}, "tools": {"book": {**tool, "kind": "side_effect"}}},
    }
    log = recorded(far)
    assert [each.key for each in log.records] == ["agent/model:default", "link/tool:book#0", "agent/model:default"]
    assert log.header["handlers"]["link/tool:book#0"]["kind"] == "remote"
    again = replay(log, visible=True)
    assert again.equal

    def calls_on_the_link(records: list[dict[str, Any]]) -> list[str]:
        return [each["what"] for each in records if each["kind"] == "link.sent" and each["call"]]

    assert calls_on_the_link(sim.run(far).records) == ["tool.call", "tool.result"]
    assert calls_on_the_link(again.result.records) == []


def test_what_cannot_be_published_is_refused() -> None:
    log = resealed(recorded(CHANCE), lambda _, records: records[1].update(published={"seat": 4}))
    (told,) = refused(log)
    assert told.startswith("a.log: effect 1 (agent/tool:look#0) at ")
    assert told.endswith(" us: recorded was that it published seat; nothing can be published for it")
