"""Calls that wait for somebody's approval: what happens meanwhile, and what the model reads of it."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.decisions import Approval
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.scenario.build import Plan
from tests.sessions.layers.layers_kit import (
    BOOK,
    LOOK,
    MODEL,
    MS,
    Approve,
    MakeLayers,
    Note,
    S,
    answers,
    log,
    notes,
    remembered,
    run,
    scenario,
    told,
)

ASKED = 450 * MS
NOT_STARTED = (
    '{"error":"interrupted","tool":"%s","detail":"the user interrupted before the call was started; it did not run"}'
)
NOT_APPROVED = '{"error":"timeout","tool":"%s","detail":"the call was not approved within %s; it did not run"}'
LOOKING: list[dict[str, Any]] = [{"calls": [{"look": {}}]}, {"text": "Well."}, {"text": "Fine."}]
AGAIN: list[dict[str, Any]] = [{"calls": [{"book": {"people": 2}}]}] * 2 + [{"text": "Done."}]


def approved_after(after_us: int | None, around: str = "book", denial: str | None = None) -> MakeLayers:
    return lambda clock: {around: [Approve(clock, after_us, denial)]}


def cutting_in(at: str, say: str = "Stop.") -> dict[str, Any]:
    return {"at": at, "level": "decision", "for": "100ms", "say": say}


# -- approved, and denied after all -----------------------------------------------------------------------------------


def test_an_approved_call_runs_from_the_approval_on() -> None:
    result = run(approved_after(2 * S))
    assert told(result, "tool.", "filler") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1650 * MS, "filler.spoken", "One moment, please."),
        (2450 * MS, "tool.started", "t1.0"),
        (2950 * MS, "tool.finished", "t1.0", "ok"),
        (2950 * MS, "tool.settled", "t1.0", "ok"),
    ]
    assert log(result)[1] == (BOOK, "ok", 2450 * MS, 2950 * MS)
    assert answers(result) == [("t1.0", '{"booked":true}')]
    assert remembered(result) == (1, 1)
    settled = result.timeline.of("tool.settled")[0]
    assert (settled["duration_us"], result.metrics["tool_duration_us"]) == (2500 * MS, 500 * MS)


def test_a_call_that_is_denied_after_all_is_answered_then_and_forgotten() -> None:
    result = run(approved_after(2 * S, denial="The boss says no."))
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (2450 * MS, "tool.settled", "t1.0", "denied"),
    ]
    assert [key for key, *_ in log(result)] == [MODEL, MODEL]
    assert answers(result) == [("t1.0", "The boss says no.")]
    assert (remembered(result), result.tools["book"]) == ((0, 0), {"runs": 0, "outcomes": {"denied": 1}})


def test_an_approval_that_is_there_already_keeps_nobody_waiting() -> None:
    class Ready(sim.Layer):
        def before(self, ask: sim.Ask) -> sim.Suspend:
            approval = sim.Approval()
            approval.approve()
            return sim.Suspend(approval)

    assert run({"book": [Ready()]}).digest == sim.run(scenario()).digest


def test_each_layer_may_want_an_approval_of_its_own() -> None:
    seen: list[str] = []

    def layers(clock: Clock) -> dict[str, list[sim.Layer]]:
        outer, inner = Approve(clock, 1 * S), Approve(clock, 500 * MS)
        inner.name = "boss"
        return {"book": [outer, Note("between", seen), inner]}

    assert told(run(layers), "tool.")[:3] == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1450 * MS, "tool.suspended", "t1.0", "boss"),
        (1950 * MS, "tool.started", "t1.0"),
    ]
    assert seen == [f"between in {BOOK}", "between out ok"]


def test_a_lookup_waits_as_well() -> None:
    result = run(approved_after(300 * MS, "look"), llm=LOOKING)
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (750 * MS, "tool.started", "t1.0"),
        (850 * MS, "tool.finished", "t1.0", "ok"),
        (850 * MS, "tool.settled", "t1.0", "ok"),
    ]


def test_a_sibling_runs_while_one_call_waits_and_the_results_keep_their_order() -> None:
    result = run(approved_after(1 * S), llm=[{"calls": [{"book": {}}, {"look": {}}]}, {"text": "Done."}])
    assert [(each[0], each[1], each[2]) for each in told(result, "tool.")] == [
        (470 * MS, "tool.suspended", "t1.0"),
        (470 * MS, "tool.started", "t1.1"),
        (570 * MS, "tool.finished", "t1.1"),
        (570 * MS, "tool.settled", "t1.1"),
        (1470 * MS, "tool.started", "t1.0"),
        (1970 * MS, "tool.finished", "t1.0"),
        (1970 * MS, "tool.settled", "t1.0"),
    ]
    assert [call for call, _ in answers(result)] == ["t1.0", "t1.1"]


# -- interrupted ------------------------------------------------------------------------------------------------------


def test_a_booking_that_waits_is_withdrawn_by_an_interruption_and_the_model_reads_that_it_did_not_run() -> None:
    result = run(approved_after(2 * S), caller=[cutting_in("1500ms")])
    assert told(result, "tool.", "turn.") == [
        (100 * MS, "turn.user", "Book it."),
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1500 * MS, "turn.interrupted", "barge_in"),
        (1500 * MS, "tool.withdrawn", "t1.0", "barge_in"),
        (1500 * MS, "tool.settled", "t1.0", "not_started"),
        (1600 * MS, "turn.user", "Stop."),
    ]
    assert log(result)[1] == (BOOK, "cancelled", 1500 * MS, 1500 * MS)  # it was asked for, so there is a record
    assert answers(result) == [("t1.0", NOT_STARTED % "book")]
    assert (remembered(result), notes(result)) == ((0, 0), [])
    counters = result.counters["tools"]
    assert {name: count for name, count in counters.items() if count} == {"not_started_cancelled": 1}


def test_an_identical_call_of_the_next_turn_is_no_repeat_and_asks_for_its_own_approval() -> None:
    result = run(approved_after(1 * S), caller=[cutting_in("1s", "Again.")], llm=AGAIN)
    assert told(result, "tool.")[2:] == [
        (1000 * MS, "tool.settled", "t1.0", "not_started"),
        (1450 * MS, "tool.suspended", "t2.0", "approve"),
        (2450 * MS, "tool.started", "t2.0"),
        (2950 * MS, "tool.finished", "t2.0", "ok"),
        (2950 * MS, "tool.settled", "t2.0", "ok"),
    ]
    assert [key for key, *_ in log(result)].count(BOOK) == 2
    assert result.metrics["side_effect_runs"] == 1


def test_a_lookup_that_waits_is_counted_as_not_started() -> None:
    result = run(approved_after(2 * S, "look"), caller=[cutting_in("1500ms")], llm=LOOKING)
    assert told(result, "tool.")[1:] == [
        (1500 * MS, "tool.withdrawn", "t1.0", "barge_in"),
        (1500 * MS, "tool.settled", "t1.0", "not_started"),
    ]
    assert answers(result) == [("t1.0", NOT_STARTED % "look")]
    assert {name: n for name, n in result.counters["tools"].items() if n} == {"not_started_cancelled": 1}
    assert log(result)[1] == (LOOK, "cancelled", 1500 * MS, 1500 * MS)


def test_an_approval_on_the_instant_of_the_interruption_comes_first_and_the_booking_runs_on() -> None:
    result = run(approved_after(1050 * MS), caller=[cutting_in("1500ms")])
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1500 * MS, "tool.started", "t1.0"),
        (1500 * MS, "tool.settled", "t1.0", "interrupted_running"),
        (2000 * MS, "tool.finished", "t1.0", "ok"),
        (2000 * MS, "tool.late_result", "t1.0", "ok"),
    ]
    assert len(notes(result)) == 1


def test_one_that_is_given_by_a_later_order_of_that_instant_comes_too_late() -> None:
    class Slow(Approve):
        def approval(self) -> Approval:
            approval = Approval()
            self.clock.call_in(1050 * MS, Order.TIMER, lambda _: approval.approve())
            return approval

    result = run(lambda clock: {"book": [Slow(clock, None)]}, caller=[cutting_in("1500ms")])
    assert told(result, "tool.")[1:] == [
        (1500 * MS, "tool.withdrawn", "t1.0", "barge_in"),
        (1500 * MS, "tool.settled", "t1.0", "not_started"),
    ]


def test_an_approval_that_comes_after_all_is_over_does_nothing() -> None:
    given: list[bool] = []

    class Late(Approve):
        def answer(self, approval: Approval) -> None:
            given.append(approval.approve())

    result = run(lambda clock: {"book": [Late(clock, 1300 * MS)]}, caller=[cutting_in("1500ms")])
    assert (given, result.metrics["tool_runs"]) == ([False], 0)


def test_a_booking_that_was_approved_and_is_interrupted_is_an_orphan_like_any_other() -> None:
    result = run(approved_after(900 * MS), caller=[cutting_in("1500ms", "Again.")], llm=AGAIN)
    assert told(result, "tool.")[-2:] == [
        (1850 * MS, "tool.late_result", "t1.0", "ok"),
        (1950 * MS, "tool.settled", "t2.0", "orphan_replayed"),
    ]
    assert result.metrics["side_effect_runs"] == 1


# -- not approved in time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["book", "look"])
def test_the_time_limit_counts_from_the_call_and_the_model_reads_that_it_did_not_run(tool: str) -> None:
    result = run(
        approved_after(2 * S, tool), tools={tool: {"timeout": "1s"}}, llm=[{"calls": [{tool: {}}]}, {"text": "No."}]
    )
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1450 * MS, "tool.withdrawn", "t1.0", "deadline"),
        (1450 * MS, "tool.settled", "t1.0", "timed_out"),
    ]
    assert answers(result) == [("t1.0", NOT_APPROVED % (tool, "1s"))]
    assert (remembered(result), notes(result)) == ((0, 0), [])
    assert log(result)[1][1:] == ("cancelled", 1450 * MS, 1450 * MS)


def test_it_may_be_asked_for_again_in_that_very_turn() -> None:
    made: list[int] = []

    def layers(clock: Clock) -> dict[str, list[sim.Layer]]:
        class Slow(Approve):
            def approval(self) -> Approval:
                made.append(1)
                self.after_us = 3 * S if len(made) == 1 else 100 * MS
                return super().approval()

        return {"book": [Slow(clock, None)]}

    result = run(layers, tools={"book": {"timeout": "1s"}}, llm=AGAIN)
    assert result.tools["book"] == {"runs": 1, "outcomes": {"ok": 1, "timed_out": 1}}


def test_a_booking_that_was_approved_late_has_the_rest_of_the_limit_and_then_is_told_late() -> None:
    result = run(approved_after(700 * MS), tools={"book": {"timeout": "1s"}})
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1150 * MS, "tool.started", "t1.0"),
        (1450 * MS, "tool.settled", "t1.0", "timed_out_running"),
        (1650 * MS, "tool.finished", "t1.0", "ok"),
        (1650 * MS, "tool.late_result", "t1.0", "ok"),
    ]


def test_the_backstop_counts_from_the_start_of_the_body() -> None:
    engine = {"max_side_effect_runtime": "1s"}
    slow = {"book": {"timeout": "1s", "latency": "10s"}}
    result = run(approved_after(700 * MS), tools=slow, agent={"engine": engine})
    assert told(result, "tool.") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1150 * MS, "tool.started", "t1.0"),
        (1450 * MS, "tool.settled", "t1.0", "timed_out_running"),
        (2150 * MS, "tool.dropped", "t1.0", "deadline"),
        (2150 * MS, "tool.late_result", "t1.0", "lost"),
    ]


def test_a_waiting_call_never_meets_the_backstop() -> None:
    engine = {"max_side_effect_runtime": "1s"}
    result = run(approved_after(None), tools={"book": {"timeout": "1s"}}, agent={"engine": engine})
    assert told(result, "tool.")[1:] == [
        (1450 * MS, "tool.withdrawn", "t1.0", "deadline"),
        (1450 * MS, "tool.settled", "t1.0", "timed_out"),
    ]
    assert remembered(result) == (0, 0)


# -- the end of the call, and of what was begun in vain --------------------------------------------------------------


def test_a_hang_up_withdraws_what_waits() -> None:
    result = run(approved_after(2 * S), caller=[{"at": "1500ms", "hang_up": True}])
    assert told(result, "tool.", "session") == [
        (ASKED, "tool.suspended", "t1.0", "approve"),
        (1500 * MS, "tool.withdrawn", "t1.0", "hang_up"),
        (1500 * MS, "tool.settled", "t1.0", "not_started"),
        (1500 * MS, "session.ended", "hang_up"),
    ]
    assert answers(result) == [("t1.0", NOT_STARTED % "book")]


def test_waiting_calls_take_places_in_the_store_while_they_wait_and_give_them_back() -> None:
    first, second = [{"book": {"people": 1}}, {"book": {"people": 2}}], [{"book": {"people": 3}}]
    result = run(
        approved_after(2 * S, denial="No."),
        llm=[{"calls": first}, {"calls": second}, {"text": "."}],
        agent={"engine": {"idempotency_capacity": 1}},
    )
    assert told(result, "tool.settled") == [
        (470 * MS, "tool.settled", "t1.1", "store_full"),
        (2470 * MS, "tool.settled", "t1.0", "denied"),
        (4820 * MS, "tool.settled", "t1.2", "denied"),
    ]


def test_a_speculative_lookup_waits_too_and_is_withdrawn_with_its_speculation() -> None:
    lines = [
        {"at": "500ms", "say": "A table for two on Friday, please."},
        {"after": {"event": "caller.ended", "line": 1, "by": "700ms"}, "say": "Wait, make it three."},
    ]
    rules = [{"when": {"round": 1}, "calls": [{"look": {}}], "ttft": "50ms"}]
    spoken = scenario(
        agent={"speculation": True, "turn": {"min_silence": "900ms"}}, llm={"rules": rules, "else": {"text": "."}}
    )
    result = sim.run(spoken, set={"caller": lines}, layers=approved_after(2 * S, "look"))
    assert result.violations == []
    assert told(result, "tool.", "turn.user", "speculation") == [
        (3000 * MS, "speculation.started"),
        (3050 * MS, "tool.suspended", "t1.0", "approve"),
        (3340 * MS, "speculation.discarded", "more speech"),
        (3340 * MS, "tool.withdrawn", "t1.0", "discarded"),
        (4960 * MS, "speculation.started"),
        (5010 * MS, "tool.suspended", "t1.0", "approve"),
        (5460 * MS, "turn.user", "A table for two on Friday, please. Wait, make it three."),
        (5460 * MS, "speculation.committed"),
        (7010 * MS, "tool.started", "t1.0"),
        (7110 * MS, "tool.finished", "t1.0", "ok"),
        (7110 * MS, "tool.settled", "t1.0", "ok"),
    ]


def test_which_calls_wait_can_be_asked() -> None:
    opened = Plan(scenario(), layers=approved_after(2 * S)).open()
    session = opened.session
    session.start()
    session.clock.run_while(lambda at_us: at_us < 1 * S)
    assert (session.engine.suspended_calls, session.engine.running_calls) == ((("t1.0", "book"),), ())
    session.clock.run_while(lambda at_us: at_us < 2500 * MS)
    assert (session.engine.suspended_calls, session.engine.running_calls) == ((), ("t1.0",))
    session.go_on()
