"""Layers around tools that decide at once: what is served, what is recorded, and what the model reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bargein import sim
from bargein.pipelines.tools.orphans import call_digest
from bargein.sim.effects.bus import EffectKind, Status
from tests.sessions.layers.layers_kit import (
    BOOK,
    LOOK,
    MS,
    Arguments,
    Deny,
    Note,
    Replace,
    answers,
    log,
    remembered,
    run,
    scenario,
    told,
)

TWICE: list[dict[str, Any]] = [
    {"calls": [{"book": {"people": 2}}]},
    {"calls": [{"book": {"people": 2}}]},
    {"text": "."},
]


def test_layers_that_let_everything_pass_leave_the_timeline_as_it_is() -> None:
    seen: list[str] = []
    plain = sim.run(scenario())
    layered = run({"book": [Note("outer", seen), Note("inner", seen)]})
    assert layered.digest == plain.digest
    assert layered.effects == plain.effects
    assert seen == [f"outer in {BOOK}", f"inner in {BOOK}", "inner out ok", "outer out ok"]


@pytest.mark.parametrize(
    "name", ["barge_in_during_booking", "orphan_replay", "clip_overtaking", "yes_to_another_question"]
)
def test_so_they_do_in_every_sort_of_call(name: str) -> None:
    loaded = sim.load(name)
    passing = {key: [sim.Layer()] for key in ("agent/model:default", *loaded.tools)}
    assert sim.run(name, layers=lambda _: passing).digest == sim.run(name).digest


# -- denied -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["book", BOOK])
def test_a_denied_side_effect_leaves_no_record_and_the_model_reads_the_reason(around: str) -> None:
    result = run({around: [Deny("Not on a Friday.")]})
    assert told(result, "tool.", "llm.request") == [
        (100 * MS, "llm.request", "0"),
        (450 * MS, "tool.settled", "t1.0", "denied"),
        (450 * MS, "llm.request", "1"),
    ]
    assert [key for key, *_ in log(result)] == ["agent/model:default", "agent/model:default"]
    assert answers(result) == [("t1.0", "Not on a Friday.")]
    assert [each["is_error"] for each in result.context if each["role"] == "tool"] == [False]


def test_a_denied_call_is_remembered_by_nothing_and_counts_as_no_run() -> None:
    result = run({"book": [Deny()]}, llm=TWICE)
    assert remembered(result) == (0, 0)
    assert result.tools == {"book": {"runs": 0, "outcomes": {"denied": 2}}}  # the second is asked for anew
    assert (result.metrics["tool_runs"], result.metrics["side_effect_runs"], result.metrics["tool_calls"]) == (0, 0, 2)
    assert result.counters["tools"] == dict.fromkeys(result.counters["tools"], 0)


def test_a_denied_lookup_is_answered_alike() -> None:
    result = run({"look": [Deny("No weather.")]}, llm=[{"calls": [{"look": {}}]}, {"text": "Well."}])
    assert told(result, "tool.") == [(450 * MS, "tool.settled", "t1.0", "denied")]
    assert answers(result) == [("t1.0", "No weather.")]


def test_one_call_of_a_batch_is_denied_and_its_sibling_runs() -> None:
    result = run({"look": [Deny()]}, llm=[{"calls": [{"look": {}}, {"book": {}}]}, {"text": "Half."}])
    assert answers(result) == [("t1.0", "Not here."), ("t1.1", '{"booked":true}')]
    assert result.tools["book"] == {"runs": 1, "outcomes": {"ok": 1}}


def test_steering_denies_before_any_layer_is_asked() -> None:
    seen: list[str] = []
    result = run({"book": [Note("layer", seen)]}, steering=[{"deny": "book", "reason": "By rule."}])
    assert (answers(result), seen) == ([("t1.0", "By rule.")], [])


def test_a_gated_call_that_was_confirmed_and_is_denied_has_used_its_request_up() -> None:
    confirm = {"confirm_pending": {"call_id": "t1.0"}}
    result = run(
        {"book": [Deny("Closed.")]},
        tools={"book": {"confirm": True}},
        caller=[{"after": {"event": "playout.ended", "by": "100ms"}, "level": "decision", "say": "Yes."}],
        llm=[
            {"calls": [{"book": {"people": 2}}]},
            {"text": "Sure?"},
            {"calls": [confirm]},
            {"calls": [confirm]},
            {"text": "No."},
        ],
    )
    settled = [(each[2], each[3]) for each in told(result, "tool.settled")]
    assert settled == [("t1.0", "confirmation_required"), ("t2.0", "denied"), ("t2.1", "confirmation_refused")]
    assert answers(result)[1] == ("t2.0", "Closed.")
    assert remembered(result) == (0, 0)


# -- asked for otherwise, and answered otherwise ---------------------------------------------------------------------


def test_the_record_has_the_innermost_arguments_and_the_conversation_the_models() -> None:
    result = run({"book": [Arguments(people=3, day="friday"), Arguments(people=4)]})
    call = result.opened.session.bus.log[1].payload
    assert (call.call_id, call.arguments) == ("t1.0", {"people": 4, "day": "friday"})
    asked = [each["arguments"] for message in result.context for each in message.get("tool_calls", ())]
    assert asked == [{"people": 2}]


def test_the_handler_is_asked_what_the_innermost_layer_asks() -> None:
    tools, got = sim.Tools(), []

    @tools.side_effect
    def book(people: int) -> str:
        got.append(people)
        return "done"

    made = scenario(tools={})
    sim.run(made, tools=tools, layers=lambda _: {"book": [Arguments(people=9)]})
    assert got == [9]


def test_two_calls_that_a_layer_makes_alike_are_two_calls_as_the_model_asked_for_them() -> None:
    different = [{"calls": [{"book": {"people": 5}}]}, {"calls": [{"book": {"people": 6}}]}, {"text": "."}]
    result = run({"book": [Arguments(people=4)]}, llm=different)
    assert result.tools["book"]["outcomes"] == {"ok": 2}
    identities = result.check_settings.identities
    assert identities["t1.0"] == call_digest("book", {"people": 5}).hex()
    assert identities["t1.1"] == call_digest("book", {"people": 6}).hex()


def test_identical_calls_are_a_repeat_whatever_a_layer_makes_of_them() -> None:
    class Counting(sim.Layer):
        count = 0

        def before(self, ask: sim.Ask) -> sim.Patch:
            self.count += 1
            return sim.Patch(replace(ask.payload, arguments={"people": self.count}))

    result = run(lambda _: {"book": [Counting()]}, llm=TWICE)
    assert result.tools["book"] == {"runs": 1, "outcomes": {"ok": 1, "repeat_refused": 1}}


def test_the_record_has_the_handlers_answer_and_the_conversation_the_outer_verdict() -> None:
    result = run({"book": [Replace("Kept."), Replace({"seen": 1})]})
    effect = result.opened.session.bus.log[1]
    assert (effect.outcome.status, effect.outcome.value) == (Status.OK, {"booked": True})
    assert answers(result) == [("t1.0", "Kept.")]


def test_a_layer_may_make_a_failure_of_a_result_and_a_result_of_a_failure() -> None:
    failing = run({"book": [Replace("It is full.", Status.FAILED)]})
    assert answers(failing) == [("t1.0", '{"error":"tool_failed","tool":"book","detail":"It is full."}')]
    assert told(failing, "tool.finished", "tool.settled")[-2:] == [
        (950 * MS, "tool.finished", "t1.0", "ok"),
        (950 * MS, "tool.settled", "t1.0", "failed"),
    ]
    fails = {"fails": {"description": "Fails.", "latency": "100ms", "error": "down"}}
    mended = run({"fails": [Replace("rain")]}, tools=fails, llm=[{"calls": [{"fails": {}}]}, {"text": "."}])
    assert answers(mended) == [("t1.0", "rain")]
    assert told(mended, "tool.finished") == [(550 * MS, "tool.finished", "t1.0", "failed")]


def test_a_patch_into_another_family_is_a_failed_result_of_a_call_that_never_ran() -> None:
    class Turning(sim.Layer):
        def before(self, ask: sim.Ask) -> sim.Patch:
            return sim.Patch(ask.payload, EffectKind.CUSTOM)

    result = run({"book": [Turning()]})
    problem = "a layer turned a tool_call into a custom; the family has to stay"
    assert answers(result) == [("t1.0", f'{{"error":"tool_failed","tool":"book","detail":"{problem}"}}')]
    assert told(result, "tool.") == [(450 * MS, "tool.settled", "t1.0", "failed")]
    assert remembered(result) == (0, 0)


@pytest.mark.parametrize("around", ["book", "look", "agent/model:default"])
def test_a_patch_that_is_no_call_and_no_request_voids_the_run_and_says_so(around: str) -> None:
    class Wrong(sim.Layer):
        def before(self, ask: sim.Ask) -> sim.Patch:
            return sim.Patch({"people": 2})

    llm = [{"calls": [{"look": {}}]}, {"text": "."}] if around == "look" else [{"calls": [{"book": {}}]}, {"text": "."}]
    result = sim.run(scenario(llm=llm), layers=lambda _: {around: [Wrong()]})
    assert result.violations[0].invariant == "crash"
    key = {"book": BOOK, "look": LOOK}.get(around, around)
    assert result.violations[0].message.startswith(f"TypeError: a layer around {key} asks for a dict; accepted is the ")


@pytest.mark.parametrize(
    ("slip", "kind"),
    [
        (False, "a bool"),
        (sim.Deny, "the class Deny"),
        ("denied", "a str"),
        (sim.Later(sim.Approval()), "a Later"),
    ],
)
def test_a_decision_that_is_none_of_the_four_lets_nothing_pass(slip: Any, kind: str) -> None:
    class Slipping(sim.Layer):
        name = "guard"

        def before(self, ask: sim.Ask) -> Any:
            return slip

    result = sim.run(scenario(), layers=lambda _: {"book": [Slipping()]})
    assert result.violations[0].message == (
        f"TypeError: guard.before() gave {kind} for {BOOK}; accepted is a Deny, a Patch, a Suspend, or None to "
        "let it pass"
    )
    assert result.timeline.of("tool.started") == []


def test_a_verdict_that_is_none_voids_the_run_and_says_so() -> None:
    class Forgetful(sim.Layer):
        name = "guard"

        def after(self, ask: sim.Ask, outcome: sim.Outcome) -> Any:
            """Looks at it, and returns nothing."""

    result = sim.run(scenario(), layers=lambda _: {"book": [Forgetful()]})
    assert result.violations[0].message == (
        f"TypeError: guard.after() gave a NoneType for {BOOK}; accepted is an Outcome, such as the one it was given, "
        "or Later"
    )


# -- stopped ----------------------------------------------------------------------------------------------------------


def test_a_layer_that_stops_a_tool_at_what_it_says_leaves_open_what_it_did() -> None:
    class Stopping(sim.Layer):
        def keeps(self, ask: sim.Ask, item: Any) -> bool:
            return "half" not in item

    steps = {"latency": "500ms", "progress": [{"at": "200ms", "text": "half way"}]}
    result = run({"book": [Stopping()]}, tools={"book": steps})
    assert told(result, "tool.") == [
        (450 * MS, "tool.started", "t1.0"),
        (650 * MS, "tool.dropped", "t1.0", "discarded"),
        (650 * MS, "tool.settled", "t1.0", "lost"),
    ]
    assert '"error":"unknown_outcome"' in answers(result)[0][1]
