"""Scenarios as Python objects: the file and the object are the same thing."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bargein.models.latency import Constant, Lognorm
from bargein.pipelines.settings import EngineConfig, TtsSettings, TurnSettings
from bargein.sim.scenario.codec import key_of
from bargein.sim.scenario.loading import builtin_names, load, load_text
from bargein.sim.scenario.model import (
    ABSENT,
    Acoustics,
    After,
    Agent,
    Behaviour,
    Call,
    Delta,
    Echo,
    Expect,
    Filler,
    LateFinal,
    Line,
    Link,
    Llm,
    Narrowing,
    Noise,
    Outage,
    Patch,
    Phrase,
    Range,
    Remote,
    ResultWhen,
    Round,
    Rule,
    Scenario,
    ScenarioError,
    Session,
    Steer,
    SteerLimit,
    SteerWhen,
    Stt,
    Tool,
    ToolRun,
    Tts,
    Vad,
    When,
    dump,
)
from bargein.sim.scenario.schema import scenario_schema
from bargein.sim.scenario.setting import parse_path, split_assignment

EVERYTHING = """\
scenario: everything
about: Every key once.
seed: 9
kind: none
agent:
  system: Be brief.
  model: small
  max_context_tokens: 1000
  filler:
    per_tool: true
    phrases: [Hm., {text: One moment., clip: one}]
    tool_phrases: {book: [{text: Booking., clip: b}]}
    clip: c
  fallback: Sorry.
  max_tool_rounds: 2
  speculation: true
  turn: {min_speech: 100ms, min_silence: 400ms, cooldown: 1s, warm_up: 20us, barge_in: audible}
  engine: {max_invalid_rounds: 1, orphan_window: 1min, max_result_bytes: 100}
  tts: {clip_queue: 2, clip_wait_limit: 3s}
tools:
  book:
    kind: side_effect
    description: Books.
    parameters: {type: object, properties: {day: {type: string}}}
    timeout: 2s
    filler_after: null
    repeatable: true
    confirm: true
    latency: {dist: lognorm, median: 800ms, p95: 3s}
    progress: [{at: 100ms, text: half}]
    results: [{error: full}, {crash: boom, latency: never}, {result: null}]
  look: {result: {n: "{run}"}}
caller:
  - {say: Hello., at: 500ms}
  - {say: Wait., after: {event: tool.started, tool: book, by: 900ms, nth: 2}, level: decision, for: 400ms}
  - {say: Again., transcript: A gain., after: caller.ended}
  - {after: {event: vad.stopped, speech_end: 2s}, hang_up: true}
llm:
  rules:
    - {when: {user: Hello, result: {tool: book, is: refused, error: busy}}, text: Hm., calls: [{look: {}}]}
    - when: {user_matches: "^W", result: [{tool: book, is: ok}, {tool: look, is: missing}], last_reply: cut, epoch: 2}
      calls: [{tool: book, raw: '{"day":', id: c1}, {tool: nosuch, unknown: true}, {book: [1]}]
      delta: {every: 10ms, words: 3}
      fragments: 7
      finish: length
  else: {text: No., text_after: Bye., error: gone, ttft: 1s, expect_user: x}
  ttft: 200ms
  fragments: interleaved
expect:
  tool_runs: {book: 1}
  outcomes: {book: [ok, failed]}
  events: [{kind: playout.cut, at: 4.18s, nth: 2}, {kind: tool.started, tool: book, between: [1s, 2s]}, stt.final]
  order: [vad.started, {kind: tool.settled, duration: 3ms}]
  counts: {filler.spoken: 1, playout.cut: {min: 1}}
  context: [{role: user, text: Hello.}, {role: tool, error: timeout, calls: [t1.0], contains: x}]
  heard: [Hm., "off"]
  spoken: [Hm.]
  metrics: {stop_latency: {max: 200ms}, rounds: 2}
  violations: [effect_once]
invariants: {off: [one_reply]}
acoustics: {noise: {kind: babble, snr_db: 5.5}, echo: {delay: 30ms, gain_db: -20}}
vad: {engine: silero, on_db: -30, off_db: -35, onset_frames: 3, hangover: 100ms}
stt: {latency: {dist: gamma, mean: 1s, sd: 1ms}, late_final: {after: 300ms, words: 2}}
tts: {ttfb: 10ms, speed: 2.5, voice: caller, missing_clips: [one]}
steering:
  - {when: {epoch: 1, round: 2}, patch: {system: "", temperature: 0.5, max_tokens: 9, extra: {a: [1]}, tools: [look]}}
  - {deny: look, reason: Not now.}
  - {limit: {max_bytes: 10, marker: cut}}
session: {id: s9, max_duration: 1h, per_frame: true}
"""


def test_every_key_of_a_file_becomes_its_object() -> None:
    made = load_text(EVERYTHING)
    assert made.agent == Agent(
        system="Be brief.",
        model="small",
        max_context_tokens=1000,
        filler=Filler(
            per_tool=True,
            phrases=(Phrase("Hm."), Phrase("One moment.", "one")),
            tool_phrases={"book": (Phrase("Booking.", "b"),)},
            clip="c",
        ),
        fallback="Sorry.",
        max_tool_rounds=2,
        speculation=True,
        turn=TurnSettings(100_000, 400_000, 1_000_000, 20, made.agent.turn.barge_in),
        engine=EngineConfig(max_invalid_rounds=1, orphan_window_us=60_000_000, max_result_bytes=100),
        tts=TtsSettings(clip_queue=2, clip_wait_limit_us=3_000_000),
    )
    assert made.tools["look"] == Tool(result={"n": "{run}"})
    assert made.tools["book"].latency == Lognorm(800_000, 3_000_000)
    assert made.tools["book"].filler_after_us is None
    assert made.tools["book"].results[2] == ToolRun(result=None)
    assert made.caller == (
        Line("Hello.", at_us=500_000),
        Line("Wait.", after=After("tool.started", 900_000, 2, {"tool": "book"}), level="decision", for_us=400_000),
        Line("Again.", transcript="A gain.", after=After("caller.ended")),
        Line(after=After("vad.stopped", where={"speech_end_us": 2_000_000}), hang_up=True),
    )
    assert made.llm.rules == (
        Rule(
            When(user="Hello", result=(ResultWhen("book", "refused", "busy"),)),
            Round(text="Hm.", calls=(Call("look"),)),
        ),
        Rule(
            When(
                user_matches="^W",
                result=(ResultWhen("book", "ok"), ResultWhen("look", "missing")),
                last_reply="cut",
                epoch=2,
            ),
            Round(
                calls=(Call("book", raw='{"day":', id="c1"), Call("nosuch", unknown=True), Call("book", [1])),
                delta=Delta(10_000, 3),
                fragments=7,
                finish="length",
            ),
        ),
    )
    assert made.llm.else_ == Round("x", "No.", (), "Bye.", Constant(1_000_000), error="gone")
    assert made.expect.metrics == {"stop_latency": Range(max=200_000), "rounds": Range(is_=2)}
    assert made.expect.heard == ("Hm.", "off")
    assert made.acoustics == Acoustics(Noise("babble", 5.5), Echo(30_000, -20))
    assert made.vad == Vad("silero", -30, -35, 3, 100_000)
    assert made.stt.late_final == LateFinal(300_000, 2)
    assert made.tts == Tts(Constant(10_000), 2.5, "caller", ("one",))
    assert made.steering == (
        Steer(SteerWhen(1, 2), Patch("", 0.5, 9, {"a": [1]}, ("look",))),
        Steer(deny="look", reason="Not now."),
        Steer(limit=SteerLimit(10, "cut")),
    )
    assert made.session == Session("s9", 3_600_000_000, True)


def test_a_scenario_says_itself_and_is_read_back_equal() -> None:
    made = load_text(EVERYTHING)
    assert Scenario.from_dict(made.to_dict()) == made
    assert load_text(dump(made)) == made
    assert dump(load_text(dump(made))) == dump(made)


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_scenario_says_what_it_shows_and_is_read_back_equal(name: str) -> None:
    made = load(name)
    assert made.name == name
    assert made.about.endswith(".")
    assert load_text(dump(made)) == made


def test_the_built_in_scenarios_are_named_for_themselves_and_in_order() -> None:
    names = builtin_names()
    assert list(names) == sorted(names)
    assert [load(name).name for name in names] == list(names)
    promised = "barge_in_during_booking orphan_replay clip_overtaking parallel_lookups chained_lookups repeated_booking"
    assert {*promised.split(), "invalid_argument", "slow_tool_filler", "interrupted_booking"} <= set(names)


@pytest.mark.parametrize(
    "text", ["off", "on", "yes", "1:30", "2026-01-02", "010", "true", "null", "~", "1", "1.5", "", "a: b", "x\ny"]
)
def test_a_text_stays_a_text_whatever_yaml_would_make_of_it(text: str) -> None:
    made = Scenario("x", about=text)
    assert load_text(dump(made)).about == text


@pytest.mark.parametrize("text", ["off", "on", "yes", "1:30", "2026-01-02", "010"])
def test_what_old_yaml_takes_for_something_else_is_a_text_without_quotes(text: str) -> None:
    assert load_text(f"scenario: x\nabout: {text}\n").about == text


@pytest.mark.parametrize("off", ["off", "false", '"off"'])
def test_the_filler_is_off_however_off_is_written(off: str) -> None:
    made = load_text(f"scenario: x\nagent: {{filler: {off}}}\n")
    assert made.agent.filler == Filler(enabled=False)
    assert made.to_dict() == {"scenario": "x", "agent": {"filler": "off"}}


def test_a_behaviour_keeps_what_streams_apart_from_what_it_says() -> None:
    text = "scenario: x\ntools: {book: {}}\nllm: {behaviour: naive, tool: book, args: {n: 1}, done: Done., ttft: 1s}\n"
    made = load_text(text)
    assert made.llm == Llm(behaviour=Behaviour("naive", "book", {"n": 1}, done="Done."), ttft=Constant(1_000_000))
    assert load_text(dump(made)) == made


def test_a_list_of_rules_may_end_with_else() -> None:
    made = load_text("scenario: x\nllm:\n- {when: {user: a}, text: b}\n- else: {text: c}\n")
    assert made.llm == Llm(rules=(Rule(When("a"), Round(text="b")),), else_=Round(text="c"))


SMALL = "scenario: x\ntools: {book: {}}\ncaller: [{say: Hello., at: 500ms}]\nllm: [{text: a}, {text: b}]\n"


@pytest.mark.parametrize(
    ("path", "value", "data"),
    [
        ("agent.filler.delay", "800ms", {"agent": {"filler": {"delay": "800ms"}}}),
        ("agent.filler", "off", {"agent": {"filler": "off"}}),
        ("tools.book.latency", "2s", {"tools": {"book": {"latency": "2s"}}}),
        ("tools.cook", {"kind": "side_effect"}, {"tools": {"book": {}, "cook": {"kind": "side_effect"}}}),
        ("caller[0].at", "1s", {"caller": [{"say": "Hello.", "at": "1s"}]}),
        ("caller.0.at", "1s", {"caller": [{"say": "Hello.", "at": "1s"}]}),
        ("llm[1].text", "c", {"llm": [{"text": "a"}, {"text": "c"}]}),
        ("llm.ttft", "1s", {"llm": {"rounds": [{"text": "a"}, {"text": "b"}], "ttft": "1s"}}),
        ("seed", 4, {"seed": 4}),
    ],
)
def test_one_value_is_changed_by_its_path(path: str, value: Any, data: dict[str, Any]) -> None:
    small = load_text(SMALL)
    before = small.to_dict()
    assert small.with_value(path, value).to_dict() == {**before, **data}
    assert small.to_dict() == before


def test_a_value_in_a_script_that_streams_is_still_found_by_position() -> None:
    changed = load_text(SMALL).with_value("llm.ttft", "1s").with_value("llm[0].text", "c")
    assert [each.text for each in changed.llm.rounds] == ["c", "b"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "agent.fillr.delay",
            "1s",
            'agent.fillr.delay=1s: agent.fillr: unknown key "fillr"; the nearest known one is "filler"',
        ),
        (
            "agent.filler.dlay",
            "1s",
            'agent.filler.dlay=1s: agent.filler.dlay: unknown key "dlay"; the nearest known one is "delay"',
        ),
        ("tools.bok.latency", "1s", 'tools.bok.latency: unknown tool "bok"; the nearest known one is "book"'),
        ("caller[1].at", "1s", "caller[1].at: caller has no item 1; accepted is an item from 0 to 0"),
        ("caller.first.at", "1s", "caller.first.at: caller has no item first; accepted is an item from 0 to 0"),
        ("agent[0]", "1s", "agent[0]: agent is no list; accepted is a key"),
        (
            "agent..filler",
            "1s",
            '"agent..filler" is not a path; accepted is keys joined by dots, such as agent.filler.delay',
        ),
        ("", "1s", '"" is not a path; accepted is keys joined by dots, such as agent.filler.delay'),
        ("seed", "4", 'seed=4: seed: found "4"; accepted is a whole number, zero or more'),
    ],
)
def test_a_path_or_a_value_that_is_none_is_refused_in_a_sentence(path: str, value: Any, sentence: str) -> None:
    small = load_text(SMALL)
    with pytest.raises(ScenarioError) as caught:
        small.with_value(path, value).with_value(path, value)
    assert str(caught.value) == sentence


def test_an_assignment_is_a_path_and_a_yaml_value() -> None:
    assert split_assignment("agent.filler.delay=800ms") == ("agent.filler.delay", "800ms")
    assert split_assignment("seed=4") == ("seed", 4)
    assert split_assignment("tools.b.result={a: [1, x=y]}") == ("tools.b.result", {"a": [1, "x=y"]})
    with pytest.raises(ScenarioError, match='"seed" sets nothing; accepted is key=value'):
        split_assignment("seed")
    assert parse_path("caller[1].after.by") == ("caller", 1, "after", "by")


def test_the_folder_is_where_the_file_lies_and_survives_a_change(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(SMALL)
    made = load(tmp_path / "x.yaml")
    assert made.folder == tmp_path
    assert made.with_value("seed", 2).folder == tmp_path
    assert made == load_text(SMALL)


def test_runs_of_a_tool_take_its_results_in_turn() -> None:
    assert Tool().run(1) == ToolRun({"ok": True}, None, None, Constant(100_000), ())
    listed = Tool(results=(ToolRun(error="full"), ToolRun(latency=Constant(5))), result=7)
    assert listed.run(1) == ToolRun(ABSENT, "full", None, Constant(100_000), ())
    assert listed.run(2) == ToolRun(7, None, None, Constant(5), ())
    assert listed.run(3) == ToolRun(7, None, None, Constant(100_000), ())
    assert Tool(results=(ToolRun(1), ToolRun(2))).run(9).result == 2


@pytest.mark.parametrize(
    ("where", "cls"),
    [
        (("$defs", "agent", "properties", "turn"), TurnSettings),
        (("$defs", "agent", "properties", "engine"), EngineConfig),
        (("$defs", "agent", "properties", "tts"), TtsSettings),
        (("$defs", "agent"), Agent),
        (("$defs", "tool"), Tool),
        (("$defs", "tool", "properties", "results", "items"), ToolRun),
        (("$defs", "line"), Line),
        (("$defs", "round"), Round),
        (("$defs", "rule", "properties", "when"), When),
        (("$defs", "expect"), Expect),
        (("properties", "vad"), Vad),
        (("properties", "stt"), Stt),
        (("properties", "tts"), Tts),
        (("properties", "session"), Session),
        (("properties", "steering", "items"), Steer),
        (("properties", "steering", "items", "properties", "when"), SteerWhen),
        (("properties", "steering", "items", "properties", "patch"), Patch),
        (("properties", "steering", "items", "properties", "limit"), SteerLimit),
        (("properties", "remote"), Remote),
        (("properties", "remote", "properties", "link"), Link),
        (("properties", "remote", "properties", "link", "properties", "down", "items"), Outage),
        (("properties", "remote", "properties", "set", "items"), Narrowing),
        ((), Scenario),
    ],
)
def test_the_schema_has_exactly_the_fields_of_the_objects(where: tuple[str, ...], cls: type) -> None:
    schema = scenario_schema()
    for key in where:
        schema = schema[key]
    named = set(schema["properties"]) - ({"file"} if cls is Agent else set())  # what a file says is settled before
    assert named == {key_of(each.name) for each in fields(cls) if not each.metadata.get("apart")}


def test_the_schema_is_one_and_names_its_draft() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(scenario_schema())
    assert scenario_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
