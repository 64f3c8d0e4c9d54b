"""The invariants of tools and fillers: a planted fault each, and what looks like one and is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bargein.sim.lab.invariants import INVARIANTS, CheckSettings, Facts, ToolFacts

BOOK = {"book": ToolFacts(side_effect=True)}
SAME = {"t1.0": "x", "t1.1": "x", "t2.0": "x", "t3.0": "x"}


def found(name, records, settings=None):
    settings = settings or CheckSettings(tools=BOOK)
    return [(v.t, v.seq, v.message) for v in INVARIANTS[name].check(Facts(records), settings)]


def at(records, kind, nth=0):
    record = [record for record in records if record["kind"] == kind][nth]
    return record["t"], record["seq"]


def call(story, ms, number, ident, *, done_ms=None, error="", outcome="ok", effect=None, runs=True):
    """One response with one call of ``book``: asked, started, done, settled and answered."""
    effect = number if effect is None else effect
    story.at(ms).push(number, "assistant", calls=[ident])
    if runs:
        story.add("tool.started", ident, "book", True, effect)
    story.at(ms if done_ms is None else done_ms)
    if runs and not outcome.endswith("running"):
        story.add("tool.finished", ident, "book", "failed" if error else "ok")
    story.add("tool.settled", ident, "book", outcome, 0, 0)
    return story.push(number + 1, "tool", call=ident, error=error)


# -- effect_once -----------------------------------------------------------------------------------------------


def test_a_call_id_or_an_effect_that_runs_twice_is_told(story):
    story.add("tool.started", "t1.0", "book", True, 1).add("tool.started", "t1.0", "book", True, 2)
    story.add("tool.started", "t1.1", "book", True, 2).add("tool.started", "t1.2", "look", False, 2)
    assert found("effect_once", story.records) == [
        (0, 1, "call t1.0 of book runs a second time"),
        (0, 2, "effect 2 runs a second time, as call t1.1"),
    ]


def repeats(story, settings=None, **more):
    values = {"tools": BOOK, "identities": SAME, **more}
    return found("effect_once", story.records, settings or CheckSettings(**values))


READ = "call t1.1 of book does again what call t1.0 did: its success was read in turn 1"
MISSED = (
    "call t2.0 of book does again what call t1.0 did: its result missed its own slot, and the orphan window is open"
)


def test_a_success_that_was_read_forbids_the_same_call_in_that_turn(story):
    call(call(story, 10, 0, "t1.0"), 20, 2, "t1.1")
    assert repeats(story) == [(*at(story.records, "tool.started", 1), READ)]


def test_what_is_no_repeat_may_run(story):
    call(call(story, 10, 0, "t1.0"), 20, 2, "t1.1")
    assert repeats(story, identities={"t1.0": "x", "t1.1": "y"}) == []
    assert repeats(story, tools={"book": ToolFacts(side_effect=True, repeatable=True)}) == []
    assert repeats(story, tools={"book": ToolFacts(side_effect=True, confirm=True)}) == []
    assert repeats(story, identities={}) == []


def test_a_failed_call_may_be_tried_again(story):
    call(call(story, 10, 0, "t1.0", error="tool_failed", outcome="failed"), 20, 2, "t1.1")
    assert repeats(story) == []


def test_a_remote_call_of_unknown_outcome_forbids_the_same_call_in_that_turn_alone(story):
    doubt = call(story, 10, 0, "t1.0", error="tool_failed", outcome="lost")
    call(call(doubt, 20, 2, "t1.1"), 30, 4, "t2.0")
    records = story.records
    assert found("effect_once", records, CheckSettings(tools=BOOK, identities=SAME)) == []
    next(record for record in records if record["kind"] == "tool.finished")["status"] = "lost"
    assert found("effect_once", records, CheckSettings(tools=BOOK, identities={"t1.0": "x", "t1.1": "x"})) == [
        (
            *at(records, "tool.started", 1),
            "call t1.1 of book does again what call t1.0 did: nobody knows what it did in turn 1",
        )
    ]
    repeatable = {"book": ToolFacts(side_effect=True, repeatable=True)}
    assert found("effect_once", records, CheckSettings(tools=repeatable, identities=SAME)) == []
    assert found("effect_once", records, CheckSettings(tools=BOOK, identities={"t1.0": "x", "t2.0": "x"})) == []


def test_the_next_turn_may_ask_again_for_what_was_delivered(story):
    call(call(story, 10, 0, "t1.0"), 20, 2, "t2.0")
    assert repeats(story) == []


def test_two_identical_calls_of_one_response_are_two_calls(story):
    story.push(0, "assistant", calls=["t1.0", "t1.1"])
    for number, ident in enumerate(("t1.0", "t1.1")):
        story.add("tool.started", ident, "book", True, number).add("tool.finished", ident, "book", "ok")
        story.add("tool.settled", ident, "book", "ok", 0, 0)
    story.push(1, "tool", call="t1.0").push(2, "tool", call="t1.1")
    assert repeats(story) == []


@pytest.mark.parametrize(
    ("outcome", "error"),
    [("interrupted_running", "interrupted"), ("timed_out_running", "timeout"), ("ok", "interrupted")],
)
def test_an_orphan_forbids_the_same_call_within_its_window(story, outcome, error):
    call(story, 10, 0, "t1.0", outcome=outcome, error=error)
    call(story, 120_010, 2, "t2.0")
    assert repeats(story) == [(*at(story.records, "tool.started", 1), MISSED)]
    assert repeats(story, tools={"book": ToolFacts(side_effect=True, repeatable=True)}) != []
    assert repeats(story, orphan_window_us=119_999_999) == []
    assert repeats(story, orphan_window_us=0) == []


def test_an_orphan_that_was_used_up_forbids_nothing_more(story):
    call(story, 10, 0, "t1.0", outcome="interrupted_running", error="interrupted")
    call(story, 20, 2, "t2.0", outcome="orphan_replayed", runs=False)
    call(story, 30, 4, "t3.0")
    assert repeats(story) == []


def test_an_orphan_whose_replay_was_discarded_still_forbids(story):
    call(story, 10, 0, "t1.0", outcome="interrupted_running", error="interrupted")
    call(story, 20, 2, "t2.0", outcome="orphan_replayed", error="interrupted", runs=False)
    call(story, 30, 4, "t3.0")
    assert repeats(story) == [(*at(story.records, "tool.started", 1), MISSED.replace("t2.0", "t3.0"))]


def test_an_answer_that_an_orphan_is_still_running_does_not_use_it_up(story):
    call(story, 10, 0, "t1.0", outcome="interrupted_running", error="interrupted")
    call(story, 20, 2, "t2.0", outcome="orphan_in_flight", error="duplicate_call", runs=False)
    call(story, 30, 4, "t3.0")
    assert repeats(story) == [(*at(story.records, "tool.started", 1), MISSED.replace("t2.0", "t3.0"))]


def test_a_replay_before_it_became_an_orphan_does_not_use_it_up(story):
    call(story, 5, 8, "t1.9", outcome="orphan_replayed", runs=False)
    call(story, 10, 0, "t1.0", outcome="interrupted_running", error="interrupted")
    call(story, 20, 2, "t2.0")
    assert repeats(story) == [(*at(story.records, "tool.started", 1), MISSED)]


def test_a_success_with_other_arguments_forbids_no_second_try(story):
    call(story, 10, 0, "t1.0", error="tool_failed", outcome="failed")
    call(story, 20, 2, "t1.2")
    call(story, 30, 4, "t1.1")
    assert repeats(story, identities={**SAME, "t1.2": "y"}) == []


def test_a_delivered_replay_is_a_success_read_in_its_turn(story):
    call(story, 10, 0, "t1.0", outcome="interrupted_running", error="interrupted")
    call(story, 20, 2, "t2.0", outcome="orphan_replayed", runs=False)
    call(story, 30, 4, "t2.1")
    assert repeats(story, identities={**SAME, "t2.1": "x"}) == [
        (
            *at(story.records, "tool.started", 1),
            "call t2.1 of book does again what call t1.0 did: its success was read in turn 2",
        )
    ]


def test_the_look_back_ends_after_32_side_effects(story):
    call(story, 10, 0, "t1.0")
    for number in range(32):
        call(story, 20 + number, 2 + 2 * number, f"t1.{number + 2}", effect=100 + number)
    call(story, 90, 90, "t1.1")
    assert repeats(story) == []


# -- gate_respected --------------------------------------------------------------------------------------------


def gated(story, *, user=True, clear=False, confirm_ms=20, taken=("t2.0", "t1.0"), start=("t2.0", "transfer")):
    story.epoch = 1
    story.at(10).add("confirm.requested", "t1.0", "transfer")
    if user:
        story.at(15).user(2, "Yes.", [], 0)
    if clear:
        story.at(16).add("confirm.cleared", ["t1.0"], "barge_in")
    story.at(confirm_ms)
    if taken:
        story.add("confirm.taken", *taken)
    return story.add("tool.started", *start, True, 1).records


@pytest.mark.parametrize("confirm_ms", [20, 120_010])
def test_a_gated_call_that_a_later_turn_confirmed_in_time_runs(story, confirm_ms):
    assert found("gate_respected", gated(story, confirm_ms=confirm_ms)) == []


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        ({"user": False}, "confirm.taken", "call t2.0 confirms t1.0 although the user has not replied since"),
        ({"confirm_ms": 120_011}, "confirm.taken", "call t2.0 confirms t1.0 after it expired"),
        (
            {"taken": None},
            "tool.started",
            "call t2.0 runs the gated transfer, but no request for it was confirmed",
        ),
    ],
)
def test_a_gate_that_is_passed_wrongly_is_told(story, fault, kind, message):
    records = gated(story, **fault)
    assert found("gate_respected", records) == [(*at(records, kind), message)]


@pytest.mark.parametrize("fault", [{"clear": True}, {"taken": ("t2.0", "t1.7")}])
def test_a_request_that_does_not_wait_cannot_be_confirmed(story, fault):
    records = gated(story, **fault)
    request = fault.get("taken", ("", "t1.0"))[1]
    assert found("gate_respected", records) == [
        (*at(records, "confirm.taken"), f"call t2.0 confirms {request}, which waits for no confirmation"),
        (*at(records, "tool.started"), "call t2.0 runs the gated transfer, but no request for it was confirmed"),
    ]


def test_a_confirmation_is_good_for_one_run_of_its_own_tool(story):
    gated(story)
    story.add("confirm.taken", "t2.1", "t1.0").add("tool.started", "t2.1", "transfer", True, 2)
    assert [message for _, _, message in found("gate_respected", story.records)] == [
        "call t2.1 confirms t1.0, which waits for no confirmation",
        "call t2.1 runs the gated transfer, but no request for it was confirmed",
    ]


def test_a_gated_tool_that_runs_without_any_request_is_known_from_the_settings(story):
    story.add("tool.started", "t1.0", "transfer", True, 1)
    settings = CheckSettings(tools={"transfer": ToolFacts(side_effect=True, confirm=True)})
    assert found("gate_respected", story.records, settings) == [
        (0, 0, "call t1.0 runs the gated transfer, but no request for it was confirmed")
    ]


# -- speculation_safe, no_dead_epoch_effect ----------------------------------------------------------------------


def test_a_side_effect_before_its_turn_opens_is_told_and_a_lookup_is_not(story):
    story.at(10).add("tool.started", "t1.0", "book", True, 1).add("tool.started", "t1.1", "look", False, 2)
    story.at(20).user(1, "Book.", [], 0)
    assert found("speculation_safe", story.records) == [
        (10_000, 0, "call t1.0 of book runs before turn 1 is committed")
    ]


def test_a_held_call_runs_only_after_a_commit(story):
    story.at(10).user(1, "Book.", [], 0).add("tool.held", "t1.0", "book")
    early = story.at(20).add("tool.started", "t1.0", "book", True, 1).records
    assert found("speculation_safe", early) == [(20_000, 3, "call t1.0 of book runs before turn 1 is committed")]
    held, started = early[2], early[3]
    committed = [*early[:2], held, {"t": 15_000, "seq": 3, "kind": "turn.ended", "epoch": 1}, {**started, "seq": 4}]
    assert found("speculation_safe", committed) == []


@pytest.mark.parametrize(
    ("kind", "values", "epoch", "why"),
    [
        ("turn.interrupted", ("barge_in",), 1, "of turn 1, which was interrupted"),
        ("run.ended", ("answered", 1), 1, "of turn 1, which has ended"),
        ("turn.user", ("More.", []), 2, "of turn 1, which turn 2 has replaced"),
    ],
)
def test_a_call_of_a_turn_that_is_over_does_not_start(story, kind, values, epoch, why):
    story.user(1, "Look.", [], 0).push(1, "assistant", calls=["t1.0"])
    story.add("tool.started", "t1.0", "look", False, 1)
    assert found("no_dead_epoch_effect", story.records) == []
    story.add(kind, *values, epoch=epoch).add("tool.started", "t1.0", "look", False, 2)
    assert found("no_dead_epoch_effect", story.records) == [(0, 5, f"call t1.0 of look starts, {why}")]


def test_a_call_of_a_response_that_was_never_pushed_does_not_start(story):
    story.user(1, "Look.", [], 0).add("tool.started", "t1.0", "look", False, 1)
    assert found("no_dead_epoch_effect", story.records) == [
        (0, 2, "call t1.0 of look starts, of a response that is not in the context")
    ]


# -- filler_timing ---------------------------------------------------------------------------------------------

FILLER = "filler 'One moment, please.' is spoken "


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"t": 4_299_999}, "1199999 us after its round began; its delay is 1200000 us"),
        ({"t": 4_300_001}, "1200001 us after its round began; its delay is 1200000 us"),
        ({"round": 3}, "outside a tool round"),
    ],
)
def test_a_filler_off_its_delay_is_told(interrupted_booking, spoil, fields, why):
    records = spoil(interrupted_booking).change("filler.spoken", **fields).records
    assert found("filler_timing", records) == [(*at(records, "filler.spoken"), FILLER + why)]


def filler(t, epoch=1, rnd=0):
    return ("filler.spoken", t, epoch, rnd, "book_table", "One moment, please.", None)


@pytest.mark.parametrize(
    ("spoken", "why"),
    [
        (filler(4_900_000), "a second time in one round"),
        (filler(5_013_000), "after the turn was interrupted"),
        (filler(7_300_000, 2), "although every result of the round is in"),
    ],
)
def test_a_filler_too_many_is_told(interrupted_booking, spoil, spoken, why):
    records = spoil(interrupted_booking).insert(*spoken).records
    assert found("filler_timing", records) == [(*at(records, "filler.spoken", 1), FILLER + why)]


def test_a_filler_after_the_result_but_before_the_end_of_the_round_is_told(interrupted_booking, spoil):
    spoiled = spoil(interrupted_booking)
    spoiled.insert(*filler(7_300_000, 2)).drop("tools.ended")
    assert found("filler_timing", spoiled.records) == [
        (*at(spoiled.records, "filler.spoken", 1), FILLER + "although every result of the round is in")
    ]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (CheckSettings(fillers=False), "although fillers are off"),
        (CheckSettings(tools={"book_table": ToolFacts(filler_after_us=None)}), "for tools that want none"),
        (
            CheckSettings(filler_delay_us=None, tools={"book_table": ToolFacts(filler_after_us=700_000)}),
            "1200000 us after its round began; its delay is 700000 us",
        ),
    ],
)
def test_a_filler_against_the_settings_is_told(interrupted_booking, settings, why):
    assert found("filler_timing", interrupted_booking, settings) == [
        (*at(interrupted_booking, "filler.spoken"), FILLER + why)
    ]


OFF, LATER = CheckSettings(fillers=False), CheckSettings(filler_delay_us=3_000_000)


@pytest.mark.parametrize(
    ("changed", "kind", "after", "why"),
    [
        (OFF, "filler.spoken", 1, ""),
        (OFF, "filler.spoken", 0, "although fillers are off"),
        (LATER, "filler.spoken", 1, ""),
        (LATER, "tools.started", 1, ""),  # the filler was timed, and keeps its instant
        (LATER, "tools.started", 0, "1200000 us after its round began; its delay is 3000000 us"),
    ],
)
def test_a_filler_is_judged_by_the_settings_of_then_where_they_were_changed(
    interrupted_booking, changed, kind, after, why
):
    settings = replace(changed, before=CheckSettings(), changed_at=at(interrupted_booking, kind)[1] + after)
    spoken = at(interrupted_booking, "filler.spoken")
    assert found("filler_timing", interrupted_booking, settings) == ([(*spoken, FILLER + why)] if why else [])


def test_each_tools_own_delay_is_the_filler_delay_where_it_is_asked_for(interrupted_booking):
    settings = CheckSettings(filler_delay_us=None, tools={"book_table": ToolFacts(filler_after_us=1_200_000)})
    assert found("filler_timing", interrupted_booking, settings) == []
    assert found("filler_timing", interrupted_booking, CheckSettings(filler_delay_us=None)) == []  # not known


def test_a_spoken_progress_message_is_no_filler(interrupted_booking, spoil):
    spoiled = spoil(interrupted_booking).insert("tool.progress", 4_900_000, 1, "t1.0", "book_table", "Still on it.")
    spoiled.insert("filler.spoken", 4_900_000, 1, 0, "book_table", "Still on it.", None)
    assert found("filler_timing", spoiled.records) == []


def test_a_filler_that_was_heard_but_left_out_of_the_context_is_told(interrupted_booking, spoil):
    spoiled = spoil(interrupted_booking).drop("context.pushed", 4).drop("context.truncated")
    assert found("filler_timing", spoiled.records) == [
        (
            *at(spoiled.records, "session.ended"),
            "the caller heard the filler 'One moment,', which is not in the context",
        )
    ]


def test_a_round_may_be_announced_after_its_calls_have_started(interrupted_booking, spoil):
    records = spoil(interrupted_booking).swap(("tools.started", 0), ("tool.started", 0)).records
    assert found("filler_timing", records) == []


def test_a_speculation_that_came_to_nothing_ends_no_turn(story):
    story.epoch = 1
    story.add("tool.started", "t1.0", "look", False, 1).add("run.ended", "cancelled", 1)
    story.user(1, "Look.", [], 0).push(1, "assistant", calls=["t1.1"]).add("tool.started", "t1.1", "look", False, 2)
    story.add("run.ended", "answered", 1)
    assert found("no_dead_epoch_effect", story.records) == []
    assert found("one_reply", story.records) == []
