"""Calls of a remote agent's tools in whole sessions: what goes over the link when, and what the model reads."""

from __future__ import annotations

import json

from bargein import sim
from bargein.pipelines.tools.invocation import IdempotencyKey

BOOK = {"kind": "side_effect", "latency": "1s", "result": "BK-1"}
LOOK = {"latency": "1s", "result": "sunny"}
CALL_BOOK = {"calls": [{"book": {}}]}
CALL_LOOK = {"calls": [{"look": {}}]}
SAY = {"text": "So be it."}
CUT_IN = {"say": "Stop.", "at": "3s", "level": "decision", "for": "100ms"}


def tool_answers(result):
    """What each call was answered with."""
    return [message["content"] for message in result.context if message["role"] == "tool"]


def notes(result):
    return [
        (record["t"] // 1_000, record["call"])
        for record in result.timeline.of("context.pushed")
        if record["source"] == "note"
    ]


def test_a_call_is_a_message_out_and_a_message_back(run, messages, answers):
    result = run([CALL_BOOK, SAY], {"book": BOOK}, wait=False)
    assert messages(result) == [
        (0, "sent", "session.accept", ""),
        (100, "received", "session.accept", ""),
        (2_000, "sent", "tool.call", "t1.0"),
        (2_100, "received", "tool.call", "t1.0"),
        (3_100, "sent", "tool.result", "t1.0"),
        (3_200, "received", "tool.result", "t1.0"),
    ]
    assert answers(result) == [(3_200, "t1.0", "ok")]
    assert tool_answers(result) == ["BK-1"]
    assert result.opened.remote.calls == [("t1.0", IdempotencyKey("s", 1, "t1.0").digest())]


def test_a_remote_failure_and_a_remote_crash_read_like_local_ones(run, answers):
    local = sim.run(
        {
            "scenario": "local",
            "caller": [{"say": "Please do it.", "at": "500ms", "level": "decision", "for": "500ms"}],
            "tools": {
                "fail": {"error": "no table"},
                "crash": {"kind": "side_effect", "crash": "boom"},
                "look": {"crash": "boom"},
            },
            "llm": {"rounds": [{"calls": [{"fail": {}}, {"crash": {}}, {"look": {}}]}, SAY]},
        }
    )
    tools = {
        "fail": {"error": "no table"},
        "crash": {"kind": "side_effect", "crash": "boom"},
        "look": {"crash": "boom"},
    }
    result = run([{"calls": [{"fail": {}}, {"crash": {}}, {"look": {}}]}, SAY], tools)
    assert tool_answers(result) == tool_answers(local)
    assert sorted(outcome for _, _, outcome in answers(result)) == ["failed", "failed", "lost"]


def test_invalid_arguments_never_leave(run, messages, answers):
    wanted = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    result = run([CALL_BOOK, SAY], {"book": {**BOOK, "parameters": wanted}})
    assert answers(result) == [(2_000, "t1.0", "invalid_arguments")]
    assert [what for _, _, what, _ in messages(result)] == ["session.accept"] * 2


def test_the_local_rules_on_repeats_and_orphans_hold(run, answers):
    repeated = run([CALL_BOOK, CALL_BOOK, SAY], {"book": BOOK})
    assert [outcome for *_, outcome in answers(repeated)] == ["ok", "repeat_refused"]
    assert len(repeated.opened.remote.calls) == 1
    interrupted = run([CALL_BOOK, CALL_BOOK, SAY], {"book": {**BOOK, "latency": "1500ms"}}, caller=[CUT_IN])
    assert answers(interrupted) == [(3_000, "t1.0", "interrupted_running"), (4_100, "t2.0", "orphan_replayed")]
    assert len(interrupted.opened.remote.calls) == 1


def test_a_repeatable_remote_tool_runs_again_and_breaks_no_invariant(run):
    result = run([CALL_BOOK, CALL_BOOK, SAY], {"book": {**BOOK, "repeatable": True}})
    assert [call for call, _ in result.opened.remote.calls] == ["t1.0", "t1.1"]


def test_results_are_bounded_and_the_budget_is_spent_as_for_local_tools(run, answers):
    agent = {"engine": {"max_result_bytes": 40, "max_invalid_rounds": 1}}
    large = run([CALL_LOOK, SAY], {"look": {**LOOK, "result": "x" * 100}}, agent=agent)
    assert answers(large) == [(3_200, "t1.0", "result_too_large")]
    wrong = {"calls": [{"tool": "look", "raw": "{"}]}
    spent = run([wrong, wrong, SAY], {"look": LOOK}, agent=agent)
    assert [outcome for *_, outcome in answers(spent)] == ["malformed", "budget_exhausted"]


def test_the_filler_follows_the_declared_delay(run):
    agent = {"filler": {"per_tool": True}}
    result = run([CALL_LOOK, SAY], {"look": {**LOOK, "filler_after": "300ms"}}, agent=agent)
    assert [record["t"] for record in result.timeline.of("filler.due")] == [2_300_000]


def test_speculation_sends_reads_ahead_and_holds_side_effects(run, messages):
    caller = [{"say": "And this.", "after": {"event": "turn.user", "by": "30s"}}]
    result = run(
        [SAY, {"calls": [{"look": {}}, {"book": {}}], "ttft": "50ms"}, SAY],
        {"look": LOOK, "book": BOOK},
        caller=caller,
        agent={"speculation": True, "turn": {"min_silence": "1s"}},
    )
    (held,) = result.timeline.of("tool.held")
    (committed,) = [r for r in result.timeline.of("speculation.committed") if r["epoch"] == 2]
    assert held["t"] < committed["t"]
    sent = [(at, call) for at, kind, what, call in messages(result) if (kind, what) == ("sent", "tool.call")]
    assert sent == [(held["t"] // 1_000, "t2.0"), (committed["t"] // 1_000, "t2.1")]


# -- giving up ----------------------------------------------------------------------------------------------------


def test_a_read_dropped_by_a_barge_in_is_cancelled_at_the_agent_and_its_result_ignored(run, messages, answers):
    result = run([CALL_LOOK, SAY], {"look": {**LOOK, "latency": "850ms"}}, caller=[CUT_IN])
    assert messages(result)[2:] == [
        (2_000, "sent", "tool.call", "t1.0"),
        (2_100, "received", "tool.call", "t1.0"),
        (2_950, "sent", "tool.result", "t1.0"),
        (3_000, "sent", "tool.cancel", "t1.0"),
        (3_050, "received", "tool.result", "t1.0"),
        (3_100, "received", "tool.cancel", "t1.0"),
    ]
    assert answers(result) == [(3_000, "t1.0", "interrupted")]
    assert [json.loads(content)["error"] for content in tool_answers(result)] == ["interrupted"]


def test_a_read_that_takes_too_long_is_cancelled_and_the_agent_stops(run, messages):
    result = run([CALL_LOOK, SAY], {"look": {**LOOK, "latency": "9s", "timeout": "2s"}})
    assert messages(result)[4:] == [
        (4_000, "sent", "tool.cancel", "t1.0"),
        (4_100, "received", "tool.cancel", "t1.0"),
    ]


def test_a_result_on_the_instant_of_the_barge_in_wins(run, answers):
    result = run([CALL_LOOK, SAY], {"look": {**LOOK, "latency": "800ms"}}, caller=[CUT_IN])
    assert answers(result) == [(3_000, "t1.0", "ok")]


def test_a_late_side_effect_is_one_note(run, answers):
    late = {**BOOK, "latency": "19800ms"}
    caller = [{"say": "And now?", "at": "30s", "level": "decision", "for": "100ms"}]
    result = run([CALL_BOOK, SAY, SAY], {"book": late}, caller=caller)
    assert answers(result) == [(7_000, "t1.0", "timed_out_running")]
    assert [(r["t"], r["outcome"]) for r in result.timeline.of("tool.late_result")] == [(22_000_000, "ok")]
    assert notes(result) == [(30_100, "t1.0")]


def test_after_sixty_seconds_nobody_knows_what_a_side_effect_did(run, messages):
    caller = [{"say": "And now?", "at": "70s", "level": "decision", "for": "100ms"}]
    result = run([CALL_BOOK, SAY, CALL_BOOK, SAY], {"book": {**BOOK, "latency": "never"}}, caller=caller)
    assert [(r["t"], r["status"]) for r in result.timeline.of("tool.finished")] == [(62_000_000, "lost")]
    assert [(r["t"], r["outcome"]) for r in result.timeline.of("tool.late_result")] == [(62_000_000, "lost")]
    (note,) = [message["text"] for message in result.context if message["role"] == "system"]
    assert note.endswith('{"error":"tool_failed","tool":"book","detail":"the outcome is unknown"}')
    assert [what for _, kind, what, _ in messages(result) if kind == "sent"] == ["session.accept", "tool.call"]


# -- the link breaks ----------------------------------------------------------------------------------------------


UNKNOWN = {"error": "tool_failed", "tool": "book", "detail": "the outcome is unknown"}


def test_a_link_that_breaks_during_a_side_effect_leaves_the_outcome_unknown(run, messages, answers):
    result = run([CALL_BOOK, SAY], {"book": BOOK}, link={"down": [{"at": "2500ms"}]})
    assert answers(result) == [(2_500, "t1.0", "lost")]
    assert [json.loads(content) for content in tool_answers(result)] == [UNKNOWN]
    assert messages(result)[2:] == [
        (2_000, "sent", "tool.call", "t1.0"),
        (2_100, "received", "tool.call", "t1.0"),
        (3_100, "lost", "tool.result", "t1.0"),
    ]


def test_an_identical_call_after_that_is_not_run_again_in_its_turn(run, answers):
    result = run(
        [CALL_BOOK, CALL_BOOK, {"calls": [{"book": {"day": "friday"}}]}, SAY],
        {"book": BOOK},
        link={"down": [{"at": "2500ms", "for": "1s"}]},
    )
    assert answers(result)[:2] == [(2_500, "t1.0", "lost"), (3_500, "t1.1", "lost")]
    assert json.loads(tool_answers(result)[1])["error"] == "unknown_outcome"
    assert [call for call, _ in result.opened.remote.calls] == ["t1.0", "t1.2"]


def test_the_caller_may_ask_again_in_a_later_turn(run, answers):
    caller = [{"say": "Try again.", "at": "20s", "level": "decision", "for": "100ms"}]
    result = run(
        [CALL_BOOK, SAY, CALL_BOOK, SAY], {"book": BOOK}, link={"down": [{"at": "2500ms", "for": "1s"}]}, caller=caller
    )
    assert [(call, outcome) for _, call, outcome in answers(result)] == [("t1.0", "lost"), ("t2.0", "ok")]


def test_an_identical_call_of_the_next_turn_after_an_unknown_note_answers_unknown_outcome(run, answers):
    cut = {"say": "Wait.", "at": "2200ms", "level": "decision", "for": "100ms"}
    result = run(
        [CALL_BOOK, CALL_BOOK, SAY], {"book": BOOK}, link={"down": [{"at": "2500ms", "for": "1s"}]}, caller=[cut]
    )
    assert answers(result) == [(2_200, "t1.0", "interrupted_running"), (3_300, "t2.0", "orphan_lost")]
    assert json.loads(tool_answers(result)[1])["error"] == "unknown_outcome"
    assert len(result.opened.remote.calls) == 1


def test_a_link_that_breaks_during_a_read_is_a_failure(run, answers):
    result = run([CALL_LOOK, SAY], {"look": LOOK}, link={"down": [{"at": "2500ms"}]})
    assert answers(result) == [(2_500, "t1.0", "failed")]
    detail = "the link to the tool broke before the result arrived"
    assert json.loads(tool_answers(result)[0])["detail"] == detail


def test_a_call_to_a_broken_link_fails_at_once_and_may_be_tried_again(run, messages, answers):
    result = run([CALL_BOOK, CALL_BOOK, SAY], {"book": BOOK}, link={"down": [{"at": "1500ms", "for": "1s"}]})
    assert answers(result) == [(2_000, "t1.0", "failed"), (4_200, "t1.1", "ok")]
    assert json.loads(tool_answers(result)[0])["detail"] == "the link to the tool is down; the call was not sent"
    assert [call for call, _ in result.opened.remote.calls] == ["t1.1"]


def test_a_result_that_arrives_as_the_link_breaks_has_arrived(run, answers):
    result = run([CALL_BOOK, SAY], {"book": BOOK}, link={"down": [{"at": "3200ms"}]})
    assert answers(result) == [(3_200, "t1.0", "ok")]


def test_a_crowded_queue_fails_a_call_at_once(run, answers):
    both = {"calls": [{"look": {"n": 1}}, {"look": {"n": 2}}, {"look": {"n": 3}}]}
    result = run([both, SAY], {"look": LOOK}, link={"pace": "500ms", "queue": 2})
    assert answers(result) == [(2_040, "t1.2", "failed"), (4_240, "t1.0", "ok"), (4_740, "t1.1", "ok")]
    detail = "too many messages wait for the link to the tool; the call was not sent"
    assert json.loads(tool_answers(result)[2])["detail"] == detail


def test_a_thirty_third_call_on_one_link_fails_at_once(run, answers):
    many = {"calls": [{"book": {"n": n}} for n in range(32)]}
    caller = [{"say": "And one more.", "at": "20s", "level": "decision", "for": "100ms"}]
    result = run(
        [many, SAY, {"calls": [{"book": {"n": 99}}]}, SAY],
        {"book": {**BOOK, "latency": "never", "timeout": "3s"}},
        caller=caller,
    )
    assert answers(result)[-1] == (21_100, "t2.0", "failed")
    detail = json.loads(tool_answers(result)[-1])["detail"]
    assert detail == "32 calls already wait on the link to the tool; this one was not sent"
    assert len(result.opened.remote.calls) == 32


def test_a_lost_datagram_is_a_call_that_never_ends(run, answers):
    result = run([CALL_LOOK, SAY], {"look": LOOK}, link={"transport": "datagram", "loss": 1}, tools={"look": LOOK})
    assert [r["reason"] for r in result.timeline.of("link.lost")] == ["lost"]
    assert result.opened.remote.calls == []
    assert answers(result) == [(3_000, "t1.0", "ok")]  # the scenario's own; nothing was declared


def test_a_loss_on_a_stream_only_costs_time(run, messages):
    result = run([CALL_LOOK, SAY], {"look": LOOK}, link={"loss": 0.5, "retransmit": "50ms"}, seed=4)
    sent = {number: at for at, number in _instants(result, "link.sent")}
    delays = [(at - sent[number]) // 1_000 for at, number in _instants(result, "link.received")]
    assert delays == [100, 150, 150]


def _instants(result, kind):
    return [(record["t"], record["message"]) for record in result.timeline.of(kind)]


def test_the_same_session_gives_the_same_bytes(run):
    link = {"jitter": "30ms", "loss": 0.3, "transport": "datagram", "reorder": 0.3}
    first, second = (run([CALL_LOOK, SAY], {"look": LOOK}, link=link, seed=3) for _ in range(2))
    assert first.digest == second.digest


def test_the_link_of_a_session_leaves_the_other_draws_alone(run):
    tools = {"here": {"latency": {"dist": "uniform", "low": "100ms", "high": "900ms"}}}
    took = set()
    for link in ({}, {"jitter": "50ms", "loss": 0.5}):
        result = run([{"calls": [{"here": {}}]}, SAY], {"look": LOOK}, link=link, tools=tools, seed=4)
        took.add(result.timeline.of("tool.settled")[0]["duration_us"])
    assert len(took) == 1
