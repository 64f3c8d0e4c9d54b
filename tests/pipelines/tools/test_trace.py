"""What the engine tells: one settle a call, every outcome, no arguments."""

from __future__ import annotations

import logging

import pytest

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.tools.outcomes import ToolOutcome


def test_the_outcomes_are_a_closed_set():
    assert sorted(ToolOutcome) == [
        "arguments_too_large", "budget_exhausted", "confirmation_refused", "confirmation_required", "denied",
        "duplicate", "failed", "held", "interrupted", "interrupted_running", "invalid_arguments", "late_result", "lost",
        "malformed", "not_started", "ok", "ok_truncated", "orphan_in_flight", "orphan_lost", "orphan_replayed",
        "orphan_reported", "recorded", "repeat_refused", "result_too_large", "stale_turn", "store_full", "timed_out",
        "timed_out_running", "too_many_calls", "unknown_tool",
    ]  # fmt: skip


def test_a_settle_record_has_exactly_its_fields_and_an_exact_duration(kit):
    rig = kit.Rig().look(latency=123_456)
    rig.to(1_000)
    rig.execute(kit.call("t3.0", "look"), epoch=3)
    rig.clock.run()
    assert rig.timeline.of("tool.settled") == [
        {"t": 124_456, "seq": 2, "kind": "tool.settled", "epoch": 3, "call": "t3.0", "tool": "look",
         "outcome": "ok", "duration_us": 123_456, "retries": 0}
    ]  # fmt: skip


def test_retries_are_the_malformed_rounds_up_to_the_admission(rig, kit):
    rig.execute(InvalidCall("t1.0", "book", "{", "cut off"))
    rig.execute(InvalidCall("t1.1", "book", "{", "cut off"))
    rig.execute(kit.call("t1.2", "look"))
    rig.execute(InvalidCall("t1.3", "book", "{", "cut off"))
    rig.clock.run()
    assert [(r["call"], r["retries"]) for r in rig.timeline.of("tool.settled")] == [
        ("t1.0", 1), ("t1.1", 2), ("t1.3", 3), ("t1.2", 2)
    ]  # fmt: skip


def test_a_made_up_name_is_bounded_and_the_timeline_still_has_a_digest(rig, kit):
    rig.execute(kit.call("t1.0", "x" * 200), kit.call("t1.1", "\ud800"))
    assert [record["tool"] for record in rig.timeline] == ["x" * 61 + "…", "?"]
    assert len(rig.timeline.digest()) == 64


def test_each_answered_call_settles_once(rig, kit):
    calls = [kit.call("t1.0"), kit.call("t1.1", "look"), kit.call("t1.2", "nope"), kit.call("t1.0")]
    execution = rig.delivered(*calls)
    assert sorted(r["call"] for r in rig.timeline.of("tool.settled")) == sorted(
        message.result.call_id for message in execution.results
    )


def test_bodies_tell_their_own_end_or_who_stopped_them(kit):
    rig = kit.Rig().look(latency=[10, 20, 30, None], result=["x", kit.failed("no"), kit.crashed(), "x"])
    rig.execute(*[kit.call(f"t1.{n}", "look") for n in range(4)])
    rig.clock.run()
    ends = [(r["t"], r["call"], r["status"]) for r in rig.timeline.of("tool.finished")]
    assert ends == [(10, "t1.0", "ok"), (20, "t1.1", "failed"), (30, "t1.2", "crashed")]
    assert [(r["t"], r["call"], r["tool"], r["cause"]) for r in rig.timeline.of("tool.dropped")] == [
        (5 * kit.S, "t1.3", "look", "deadline")
    ]
    assert [r["effect"] for r in rig.timeline.of("tool.started")] == [effect.id for effect in rig.bus.log]


def test_progress_is_told_and_handed_on_while_the_call_has_no_answer_and_is_never_a_result(kit):
    says = ((kit.S, "halfway"), (6 * kit.S, "nearly"), (7 * kit.S, 42))
    rig = kit.Rig().book(latency=8 * kit.S, progress=says).look(latency=8 * kit.S, progress=says)
    heard = []
    execution = rig.execute(kit.call("t1.0"), kit.call("t1.1", "look"))
    execution.on_progress(lambda tool, text: heard.append((rig.clock.now, tool, text)))
    rig.clock.run()
    assert [(r["t"], r["call"], r["text"]) for r in rig.timeline.of("tool.progress")] == [
        (kit.S, "t1.0", "halfway"), (kit.S, "t1.1", "halfway"), (6 * kit.S, "t1.0", "nearly")
    ]  # fmt: skip
    assert heard == [(kit.S, "book", "halfway"), (kit.S, "look", "halfway")]
    assert kit.kinds(execution) == ["timeout", "timeout"]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING])
def test_log_lines_by_level(kit, caplog, level):
    rig = kit.Rig(session="call-7").book(latency=2 * kit.S).look(latency=10)
    with caplog.at_level(level, "bargein.tools"):
        rig.execute(kit.call("t1.0", secret="canary")).discard()
        rig.to(2 * kit.S)
        rig.commit(rig.speculate(kit.call("t2.0", secret="canary"), kit.call("t2.1", "look", secret="canary"), epoch=2))
        rig.to(3 * kit.S)
    runs = f"side effect runs tool=book epoch=1 key={rig.contexts[0].key.digest()}"
    lines = [
        (logging.INFO, runs),
        (logging.DEBUG, "late_result session=call-7 epoch=1 call=t1.0 tool=book outcome=ok"),
        (logging.DEBUG, "tool call held session=call-7 epoch=2 call=t2.0 tool=book"),
        (logging.DEBUG, "tool call settled session=call-7 epoch=2 call=t2.0 tool=book outcome=orphan_replayed "
                        "duration_us=0 retries=0"),
        (logging.DEBUG, "tool call settled session=call-7 epoch=2 call=t2.1 tool=look outcome=ok duration_us=10 "
                        "retries=0"),
    ]  # fmt: skip
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [line for line in lines if line[0] >= level]


def test_a_silent_logger_costs_no_digest(rig, kit, monkeypatch):
    monkeypatch.setattr("bargein.pipelines.tools.invocation.IdempotencyKey.digest", None)
    rig.execute(kit.call("t1.0"))
    assert len(rig.runs) == 1


def test_argument_values_appear_in_no_record(kit, caplog):
    rig = kit.Rig(max_result_bytes=50).book(latency=6 * kit.S, result=kit.crashed("canary")).look()
    with caplog.at_level(logging.DEBUG):
        execution = rig.execute(kit.call("t1.0", secret="canary"), kit.call("t1.1", "look", secret="canary"),
                                kit.call("t1.2", "nope", secret="canary"))  # fmt: skip
        rig.to(7 * kit.S)
        execution.discard()
        rig.execute(kit.call("t2.0", secret="canary"), epoch=2)
    assert "canary" not in rig.timeline.to_jsonl() + caplog.text
