"""Several models in one call: which of them has each request, and that everything else stays one conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bargein import sim
from bargein.models.cassettes import Cassette
from bargein.pipelines.steering import Steering, SteeringRule, Where
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.matching import matched
from bargein.sim.lab.programs import program_of
from bargein.sim.lab.replays import record, replay
from bargein.sim.lab.result import Result
from bargein.sim.live.recording import play
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.loading import load_text
from bargein.sim.scenario.model import Scenario, ScenarioError, dump

TOOLS: dict[str, Any] = {"look": {"description": "Looks.", "result": "red", "latency": "100ms"}}
LINES: list[dict[str, Any]] = [
    {"at": "0s", "level": "decision", "say": "Look first."},
    {"after": {"event": "playout.ended", "by": "1s"}, "level": "decision", "say": "Look second."},
]
OWN, FAST, LOOK = "agent/model:default", "agent/model:fast", "agent/tool:look#0"
LOOKS: dict[str, Any] = {"calls": [{"look": {}}]}
BY_ROUND: list[dict[str, Any]] = [{"when": {"round": 1}, "route": "fast"}]


def scenario(
    llm: Any, fast: Any, steering: list[Mapping[str, Any]] = BY_ROUND, lines: Any = LINES, **more: Any
) -> Scenario:
    data = {"scenario": "routed", "tools": TOOLS, "caller": lines, "llm": llm, "models": {"fast": fast}, **more}
    return Scenario.from_dict({**data, "steering": steering})


def two_turns(**more: Any) -> Scenario:
    """Each turn asks for a look through the fast model and speaks of it through the agent's own."""
    return scenario([{"text": "One."}, {"text": "Two."}], [LOOKS, LOOKS], **more)


def asked(result: Result) -> list[str]:
    return [each["key"] for each in result.effects]


def routed(result: Result) -> list[tuple[int, int, str]]:
    return [(each["epoch"], each["round"], each["model"]) for each in result.timeline.of("llm.routed")]


# -- who is asked ---------------------------------------------------------------------------------------------------


def test_the_requests_that_a_rule_names_go_to_its_model_and_rounds_are_taken_in_order_by_each() -> None:
    result = sim.run(two_turns())
    assert result.violations == []
    assert asked(result) == [FAST, LOOK, OWN, FAST, LOOK, OWN]
    assert routed(result) == [(1, 0, "fast"), (2, 0, "fast")]
    assert result.heard == ["One.", "Two."]
    assert [len(each.requests) for each in (result.opened.model, result.opened.others["fast"])] == [2, 2]


def test_each_model_answers_at_its_own_pace_and_no_other_draws_from_its_chance() -> None:
    drawn = {"dist": "uniform", "low": "100ms", "high": "900ms"}
    alone = {"rounds": [{"text": "One."}, {"text": "Two."}], "ttft": drawn}
    steady = sim.run(scenario(alone, {"rounds": [LOOKS, LOOKS], "ttft": "50ms"}))
    shaky = sim.run(scenario(alone, {"rounds": [LOOKS, LOOKS], "ttft": drawn}))
    waits = [
        [each["time_to_first_token_us"] for each in result.timeline.of("llm.request_finished") if each["round"]]
        for result in (steady, shaky)
    ]
    first = [each["time_to_first_token_us"] for each in steady.timeline.of("llm.request_finished")][0::2]
    assert waits[0] == waits[1]
    assert first == [50_000, 50_000]


def test_a_model_that_no_request_is_routed_to_is_required_and_never_asked() -> None:
    made = scenario([LOOKS, {"text": "One."}, {"text": "Two."}], [], steering=[{"when": {"epoch": 9}, "route": "fast"}])
    plain = Scenario.from_dict({**made.to_dict(), "models": {}, "steering": []})
    result = sim.run(made)
    assert result.digest == sim.run(plain).digest
    assert asked(result) == [OWN, LOOK, OWN, OWN]
    assert routed(result) == []
    assert program_of(Plan(made))["required"][FAST] == "completion"


@pytest.mark.parametrize(
    ("rules", "keys"),
    [
        ([{"route": "fast"}], [FAST, LOOK, FAST, FAST]),
        ([{"when": {"epoch": 2}, "route": "fast"}], [OWN, LOOK, OWN, FAST]),
        ([{"when": {"round": 2}, "route": "fast"}], [OWN, LOOK, FAST, OWN]),
        ([{"when": {"epoch": 1, "round": 1}, "route": "fast"}], [FAST, LOOK, OWN, OWN]),
        ([{"route": "fast"}, {"when": {"round": 2}, "route": "default"}], [FAST, LOOK, OWN, FAST]),
        ([{"when": {"round": 2}, "route": "default"}, {"route": "fast"}], [FAST, LOOK, FAST, FAST]),
        ([{"route": "fast"}, {"when": {"epoch": 2}, "patch": {"temperature": 1}}], [FAST, LOOK, FAST, FAST]),
    ],
)
def test_of_several_routes_the_later_rules_holds_and_one_may_lead_back(rules: Any, keys: list[str]) -> None:
    either = {"rules": [{"when": {"user": "first", "round": 1}, **LOOKS}], "else": {"text": "Yes."}}
    assert asked(sim.run(scenario(either, either, rules))) == keys


def test_a_rule_of_another_model_reads_the_turns_rounds_and_the_whole_conversation() -> None:
    """The fast model is asked for the second round only, after a reply that the agent's own has given."""
    fast = {"rules": [{"when": {"round": 2, "last_reply": "heard"}, "text": "I heard it."}]}
    llm = [{"text": "One."}, LOOKS]
    result = sim.run(scenario(llm, fast, [{"when": {"round": 2}, "route": "fast"}]))
    assert asked(result) == [OWN, OWN, LOOK, FAST]
    assert result.heard == ["One.", "I heard it."]


def test_calls_of_different_models_have_different_ids() -> None:
    calls = [call for each in sim.run(two_turns()).context for call in each.get("tool_calls", ())]
    assert [each["provider_id"] for each in calls] == ["call_0", "call_1"]
    mixed = sim.run(
        scenario([LOOKS, {"text": "One."}, {"text": "Two."}], [LOOKS], [{"when": {"round": 2}, "route": "fast"}])
    )
    calls = [call for each in mixed.context for call in each.get("tool_calls", ())]
    assert [each["provider_id"] for each in calls] == ["call_0", "call_1"]


def test_a_speculative_request_goes_where_its_turns_first_request_goes() -> None:
    spoken = [{"at": "0s", "say": "Look first."}]
    result = sim.run(
        scenario([{"text": "One."}], {"rounds": [LOOKS], "ttft": "50ms"}, lines=spoken, agent={"speculation": True})
    )
    kinds = [each["kind"] for each in result.timeline]
    assert kinds.index("llm.routed") < kinds.index("speculation.committed")
    assert asked(result) == [FAST, LOOK, OWN]


def test_a_call_that_is_interrupted_at_the_other_model_is_stopped_there() -> None:
    cut = [LINES[0], {"after": {"event": "llm.request", "by": "100ms"}, "level": "decision", "say": "Look second."}]
    result = sim.run(scenario([{"text": "Two."}], [{"text": "Lost."}, LOOKS], lines=cut))
    assert [(each["key"], each["status"]) for each in result.effects] == [
        (FAST, "cancelled"),
        (FAST, "ok"),
        (LOOK, "ok"),
        (OWN, "ok"),
    ]
    assert result.violations == []


def test_each_model_may_have_a_wire_of_its_own() -> None:
    llm = {"rounds": [{"text": "One."}, {"text": "Two."}], "wire": "openai"}
    made = scenario(llm, {"rounds": [LOOKS, LOOKS], "wire": "anthropic"})
    result = sim.run(made)
    assert result.violations == []
    assert result.heard == ["One.", "Two."]
    assert asked(result) == [FAST, LOOK, OWN, FAST, LOOK, OWN]


def test_each_model_may_have_a_profile_of_its_own() -> None:
    fast = {"rounds": [LOOKS, LOOKS], "profile": "thinking_medium"}
    waits = sim.run(scenario([{"text": "One."}, {"text": "Two."}], fast)).timeline.of("llm.request_finished")
    assert [each["time_to_first_token_us"] for each in waits] == [22_000_000, 350_000] * 2


def test_a_request_that_a_script_has_no_answer_to_is_told_with_the_models_place() -> None:
    with pytest.raises(ScenarioError) as caught:
        sim.run(load_text(dump(scenario([{"text": "One."}], [LOOKS])), "a.yaml"))
    assert caught.value.sentences[0].startswith("a.yaml:")
    assert ": models.fast: the model was asked a 2nd time (turn 2, round 1" in caught.value.sentences[0]
    unfit = scenario([{"text": "One."}], [{"expect_user": "Book", **LOOKS}])
    with pytest.raises(ScenarioError, match=r"^models\.fast\[0\]\.expect_user: round 1 expects a request"):
        sim.run(unfit)
    ruled = scenario([{"text": "One."}], {"rules": [{"when": {"user": "Book"}, "text": "No."}]})
    with pytest.raises(ScenarioError, match=r"^models\.fast\.rules: no rule fits the request"):
        sim.run(ruled)


def test_a_route_in_python_holds_where_its_rule_does() -> None:
    steering = Steering(
        (SteeringRule(route="a"), SteeringRule(Where(round=2), route="b"), SteeringRule(Where(epoch=3)))
    )
    assert [steering.at(*at).model for at in ((1, 1), (1, 2), (3, 2))] == ["a", "b", "b"]
    assert Steering().at(1, 1).model is None


# -- what a log says, and replay --------------------------------------------------------------------------------------


def test_a_log_names_every_model_the_routes_and_what_each_model_is_made_of() -> None:
    made = two_turns()
    log = record(Plan(made))[1]
    header = log.header
    models = {key: value for key, value in header["handlers"].items() if "/model:" in key}
    script = made.to_dict()
    assert models == {
        OWN: {"family": "completion", "kind": "scripted", "made_of": stable_hash(script["llm"])},
        FAST: {"family": "completion", "kind": "scripted", "made_of": stable_hash(script["models"]["fast"])},
    }
    assert header["required"] == {OWN: "completion", LOOK: "tool_call", FAST: "completion"}
    assert header["hooks"] == ["route:fast"]
    assert [each["required"] for each in header["programs"].values()] == [header["required"]] * 2
    assert header["signature"] == header["required"]


@pytest.mark.parametrize("visible", [False, True])
def test_a_routed_call_replays_and_no_model_is_asked(visible: bool) -> None:
    result, log = record(Plan(two_turns()))
    again = replay(EffectLog.from_bytes(log.to_bytes(), "a.log"), visible=visible)
    assert again.equal
    assert again.result.digest == result.digest == sim.run(two_turns()).digest
    assert [again.result.opened.model.requests, again.result.opened.others["fast"].requests] == [[], []]


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("models.fast[1].text", "Wait.", 'scenario.models.fast[1].text: recorded was nothing, found "Wait."'),
        ("models.fast.ttft", "1s", "scenario.models.fast: recorded was "),
        ("models.slow", [], 'required.agent/model:slow: recorded was nothing, found "completion"'),
        ("steering[0].route", "default", 'hooks[0]: recorded was "route:fast", found "route:default"'),
        ("steering[0].when.round", 2, "settings.steering.rules[0].where.round: recorded was 1, found 2"),
    ],
)
def test_another_model_or_another_route_is_refused_by_name(path: str, value: Any, told: str) -> None:
    log = record(Plan(two_turns()))[1]
    with pytest.raises(ReplayRefused) as refused:
        replay(log, scenario=two_turns().with_value(path, value))
    assert [each for each in refused.value.sentences if told in each] != []


# -- resuming, and what may be changed --------------------------------------------------------------------------------


def saved_at(when: str, made: Scenario) -> Checkpoint:
    return Checkpoint.from_bytes(take_checkpoint(Plan(made), When.parse(when))[2].to_bytes(), "a.json")


def test_a_routed_call_goes_on_from_any_instant_as_if_nothing_had_been() -> None:
    made, went_on = two_turns(), 0
    whole = sim.run(made)
    for at_us in range(0, whole.virtual_us - 1, 97_000):
        saved = saved_at(f"{at_us}us", made)
        if not saved.unresumable("python"):
            assert sim.resume(saved).result.digest == whole.digest
            went_on += 1
    assert went_on > 10


def test_the_state_of_every_model_is_saved_and_compared() -> None:
    saved = saved_at("tools.started:2", two_turns())
    assert [len(saved.parts["other_models"]["fast"]["requests"]), len(saved.parts["model"]["requests"])] == [2, 1]
    assert "other_models" not in saved_at("run.ended", sim.load("parallel_lookups")).parts


def test_what_another_model_is_still_to_say_can_be_changed() -> None:
    saved = saved_at("run.ended:1", two_turns())
    going = sim.resume(saved, set={"models.fast[1]": {"text": "At once."}}).result
    assert going.heard == ["One.", "At once."]
    slower = sim.resume(saved, set={"models.fast.ttft": "1s"}).result
    waits = [each["time_to_first_token_us"] for each in slower.timeline.of("llm.request_finished")]
    assert waits == [350_000, 350_000, 1_000_000, 350_000]


def test_a_call_that_is_resumed_can_be_routed_to_a_model_that_was_declared() -> None:
    made = scenario([{"text": "One."}, {"text": "Two."}], [{"text": "Quick."}], [])
    going = sim.resume(saved_at("run.ended:1", made), set={"steering": [{"route": "fast"}]}).result
    assert asked(going) == [OWN, FAST]
    assert going.heard == ["One.", "Quick."]


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (
            "models.fast[0]",
            {"text": "No."},
            "models.fast: its first 1 rounds were given already; accepted is to change",
        ),
        ("llm[0].text", "No.", "llm: its first 1 rounds were given already; accepted is to change a later one"),
        ("models.slow", [], "models.slow: it cannot be changed in the middle of a call; accepted are agent.filler"),
        ("models.fast.wire", "openai", "models.fast.wire: it cannot be changed in the middle of a call"),
        ("models.slow[0].text", "No.", 'models.slow[0].text: unknown model "slow"; accepted is fast'),
    ],
)
def test_what_another_model_has_said_already_cannot_be_changed(path: str, value: Any, told: str) -> None:
    saved = saved_at("run.ended:1", two_turns())
    with pytest.raises(ScenarioError) as refused:
        sim.resume(saved, set={path: value})
    assert told in str(refused.value)


def test_rounds_that_another_model_was_given_are_not_counted_for_this_one() -> None:
    """Two requests were sent and the agent's own had one of them, so its second round is still to come."""
    saved = saved_at("run.ended:1", two_turns())
    assert sim.resume(saved, set={"llm[1].text": "Later."}).result.heard == ["One.", "Later."]


def test_a_profile_goes_on_where_it_was_when_something_else_is_changed() -> None:
    llm = {"rounds": [{"text": "One."}, {"text": "Two."}], "profile": "cold_load"}
    made = scenario(llm, [], [])
    saved = saved_at("run.ended:1", made)
    waits = sim.resume(saved, set={"agent.system": "Be brief."}).result.timeline.of("llm.request_finished")
    assert [each["time_to_first_token_us"] > 1_000_000 for each in waits] == [True, False]


# -- exploring ------------------------------------------------------------------------------------------------------


def test_rounds_of_several_models_are_matched_in_the_order_in_which_the_call_takes_them() -> None:
    made = matched(two_turns())
    heard = [(rule.when.user, rule.when.round, rule.round.text, len(rule.round.calls)) for rule in made.llm.rules]
    assert heard == [
        ("Look first.", 1, "", 1),
        ("Look first.", 2, "One.", 0),
        ("Look first.", None, "All right.", 0),
        ("Look second.", 1, "", 1),
        ("Look second.", 2, "Two.", 0),
        ("Look second.", None, "All right.", 0),
    ]
    assert made.models["fast"].rules == made.llm.rules
    assert sim.run(made).digest == sim.run(two_turns()).digest
    assert load_text(dump(made)) == made


def test_a_round_that_expects_other_words_begins_a_turn_whoever_gives_it() -> None:
    """The first turn is cut short after its call, and the round that would be its second is not taken for it."""
    first = [{"when": {"epoch": 1, "round": 1}, "route": "fast"}]
    made = scenario([{"expect_user": "second", "text": "Two."}], [LOOKS], first)
    cues = [(rule.when.user, rule.when.round) for rule in matched(made).llm.rules if rule.when.round]
    assert cues == [("Look first.", 1), ("second", 1)]


def test_a_routed_call_can_be_explored() -> None:
    found = sim.explore(two_turns(), depth=2, budget=120, ties=1, hang_up=True)
    assert found.ok
    assert found.runs > 100
    assert sim.explore(sim.load("routed_to_a_second_model"), budget=60).ok


def test_rounds_beside_rules_of_another_model_are_not_explored() -> None:
    made = scenario([{"text": "One."}, {"text": "Two."}], {"rules": [{"when": {"round": 1}, **LOOKS}]})
    with pytest.raises(ScenarioError) as refused:
        sim.explore(made)
    assert refused.value.sentences == (
        "models.fast: it stands beside rounds of another model, which are taken in order; accepted are rules for both",
    )


# -- bad files ------------------------------------------------------------------------------------------------------

SHORT = """scenario: x
tools: {look: {}}
caller: [{say: Hi., at: 0s}]
llm: [{text: Hello.}]
steering: [{route: fast}]
models:
  fast: %s
"""

BAD = [
    ("[{calls: [{lok: {}}]}]", '7: models.fast[0].calls[0]: unknown tool "lok"; the nearest known one is "look" '
                               "(unknown: true if that is meant)"),
    ("{rounds: [{text: a}], rules: [{when: {}, text: b}]}", "7: models.fast: rounds and rules are given together; "
                                                            "accepted is one of them"),
    ("{rules: [{when: {result: {tool: lok, is: ok}}, text: b}]}", '7: models.fast.rules[0].when.result: unknown tool '
                                                                  '"lok"; the nearest known one is "look"'),
    ("[{txt: a}]", '7: models.fast[0].txt: unknown key "txt"; the nearest known one is "text"'),
    ("7", "7: models.fast: found 7; accepted is a list of rounds, a list of rules, or a mapping with rounds, rules, a "
          "behaviour or a cassette"),
    ("{behaviour: naive, tool: lok}", '7: models.fast.tool: unknown tool "lok"; the nearest known one is "look"'),
    ("{rounds: [{text: a}], wire: opnai}", '7: models.fast.wire: unknown wire "opnai"; the nearest known one is '
                                           '"openai"'),
    ("{rounds: [{text: a}], quirks: [a]}", "7: models.fast.quirks: quirks stands without wire; accepted is quirks "
                                           "beside the vendor it is of"),
    ("{cassette: a.jsonl}", "7: models.fast.cassette: a cassette holds what one model was asked; accepted is a "
                            "scenario without models"),
    ("{rounds: [{text: a}], profile: unkept_promise}", "7: models.fast.profile: unkept_promise ends turns before their "
     "rounds are used up, some of which may be another model's; accepted is unkept_promise beside rules"),
    ("[]\n  default: []", '8: models.default: "default" is the agent\'s own model, whose script is llm; accepted is '
                          "another label"),
    ("[]\n  a b: []", '6: models: found "a b"; accepted is a label of 1 to 64 letters, digits, _ and -'),
    ("[]\ns2s: {provider: realtime}", "6: models: it stands beside s2s, whose provider is the only model; accepted is "
                                      "one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("fast", "sentence"), BAD, ids=[fast for fast, _ in BAD])
def test_a_model_that_cannot_be_is_refused_in_a_sentence_with_its_place(fast: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_text(SHORT % fast, "bad.yaml")
    assert f"bad.yaml:{sentence}" in caught.value.sentences


def test_a_route_to_a_model_that_is_not_there_is_told_with_those_that_are() -> None:
    text = SHORT.replace("route: fast", "route: fats") % "[]"
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "bad.yaml")
    assert caught.value.sentences == (
        'bad.yaml:5: steering[0].route: unknown model "fats"; the nearest known one is "fast"',
    )


def test_a_tool_that_only_another_model_calls_is_one_that_may_be_waited_for() -> None:
    after = {"after": {"event": "tool.started", "tool": "look"}, "level": "decision", "say": "Look second."}
    made = scenario([{"text": "One."}], [LOOKS, {"text": "Two."}], lines=[LINES[0], after])
    assert asked(sim.run(made))[0] == FAST
    unknown = {"calls": [{"tool": "no", "unknown": True}]}
    expecting = scenario([{"text": "One."}], [unknown], expect={"outcomes": {"no": ["unknown_tool"]}}, lines=LINES[:1])
    assert sim.run(expecting).ok


def test_one_providers_answers_do_not_stand_for_several_models() -> None:
    with pytest.raises(ScenarioError, match=r"^models: a provider answers for one model; accepted is llm alone$"):
        play(Cassette("openai", "m", "x", ()), two_turns())


def test_models_say_themselves_and_are_read_back_equal() -> None:
    made = two_turns()
    assert made.to_dict()["models"] == {"fast": [{"calls": [{"look": {}}]}] * 2}
    assert load_text(dump(made)) == made
    assert "models" not in sim.load("parallel_lookups").to_dict()
    changed = made.with_value("models.fast[1].text", "Hm. ").with_value("models.fast.ttft", "1s")
    assert changed.to_dict()["models"]["fast"]["rounds"][1] == {"text": "Hm. ", "calls": [{"look": {}}]}
    assert changed.with_value("models.slow", [{"text": "Hm."}]).models["slow"].rounds[0].text == "Hm."
