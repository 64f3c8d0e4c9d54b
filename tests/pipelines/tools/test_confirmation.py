"""The confirmation gate: a later turn of the user's own, and one run."""

from __future__ import annotations

import logging

import pytest

ASK = (
    '{"status":"confirmation_required","tool":"transfer_call","call_id":"t1.0","message":"Not done yet: this action '
    "needs the user's confirmation. Tell the user exactly what you are about to do and ask them to confirm. Only if "
    "the user clearly agrees in their NEXT reply, call confirm_pending with this call_id. If they decline, change the "
    'request or say anything else, do not call it. Never confirm on your own."}'
)
NUMBER = {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]}


def gate(kit, latency=None, **config):
    latency = kit.S if latency is None else latency
    rig = kit.Rig(**config)
    return rig.tool("transfer_call", kit.SIDE_EFFECT, latency, "transferred", parameters=NUMBER, confirm=True)


def transfer(kit, call_id="t1.0", number="+90 555"):
    return kit.call(call_id, "transfer_call", number=number)


def confirm(kit, request, call_id="t2.0", **more):
    return kit.call(call_id, "confirm_pending", call_id=request, **more)


@pytest.fixture
def asked(kit):
    """A gated transfer that waits, its question delivered."""
    rig = gate(kit)
    rig.delivered(transfer(kit))
    return rig


def pending(rig):
    return [request.call_id for request in rig.engine.confirmations.pending]


def refusal(kit, execution, index=0):
    found = kit.body(execution, index)
    return found["error"], found["detail"]


NOT_REPLIED = ("confirmation_refused", "the user has not replied since you asked")
UNKNOWN = (
    "confirmation_refused",
    "no action is waiting under this call_id; it is unknown, was confirmed before, or was cleared",
)
EXPIRED = ("confirmation_refused", "the request has expired; ask the user again")


def test_a_gated_call_does_not_run_and_asks_in_the_pinned_words(kit):
    rig = gate(kit)
    execution = rig.execute(transfer(kit))
    [message] = execution.results
    assert (message.result.content, message.result.is_error) == (ASK, False)
    assert (rig.runs, pending(rig), rig.settled()) == ([], ["t1.0"], [(0, "t1.0", "confirmation_required", 0)])
    assert [(r["call"], r["tool"]) for r in rig.timeline.of("confirm.requested")] == [("t1.0", "transfer_call")]


def test_another_session_cannot_confirm_it(kit, asked):
    other = gate(kit)
    other.engine.confirmations.note_user_turn()
    assert refusal(kit, other.execute(confirm(kit, "t1.0"), epoch=2)) == UNKNOWN


def test_invalid_arguments_are_refused_as_always_and_create_no_request(kit):
    rig = gate(kit)
    assert kit.kinds(rig.execute(kit.call("t1.0", "transfer_call"))) == ["invalid_arguments"]
    assert (pending(rig), rig.engine.invalid_rounds(1)) == ([], 1)


def test_after_a_user_turn_the_call_runs_as_it_was_requested_under_the_confirming_calls_key(kit, asked):
    asked.engine.confirmations.note_user_turn()
    execution = asked.execute(confirm(kit, "t1.0"), epoch=2)
    asked.to(5 * kit.S)
    assert kit.contents(execution) == ["transferred"]
    assert asked.runs == [(100 * kit.MS, "transfer_call", {"number": "+90 555"})]
    [context] = asked.contexts
    assert (context.call_id, context.key, context.token) == ("t2.0", ("s", 2, "t2.0"), asked.token(2))
    assert [(r["call"], r["request"]) for r in asked.timeline.of("confirm.taken")] == [("t2.0", "t1.0")]
    assert [(r["call"], r["tool"]) for r in asked.timeline.of("tool.started")] == [("t2.0", "transfer_call")]
    assert asked.settled()[-1] == (100 * kit.MS + kit.S, "t2.0", "ok", kit.S)
    assert pending(asked) == []


def test_a_confirmation_cannot_bring_arguments_of_its_own(kit, asked):
    asked.engine.confirmations.note_user_turn()
    execution = asked.execute(confirm(kit, "t1.0", number="+1"), epoch=2)
    assert (kit.kinds(execution), pending(asked)) == (["invalid_arguments"], ["t1.0"])


def test_the_confirmed_run_has_its_tools_timeout_and_a_late_note(kit):
    rig = gate(kit, latency=6 * kit.S)
    rig.delivered(transfer(kit), after=0)
    rig.engine.confirmations.note_user_turn()
    execution = rig.delivered(confirm(kit, "t1.0"), epoch=2, after=5 * kit.S)
    assert (kit.kinds(execution), rig.settled()[-1][:3]) == (["timeout"], (5 * kit.S, "t2.0", "timed_out_running"))
    rig.to(6 * kit.S)
    assert rig.notes() == [kit.note("transferred", "t2.0", "transfer_call")]


def test_the_confirmed_run_has_a_backstop(kit):
    rig = gate(kit, latency=200 * kit.S)
    rig.delivered(transfer(kit), after=0)
    rig.engine.confirmations.note_user_turn()
    rig.execute(confirm(kit, "t1.0"), epoch=2)
    rig.to(120 * kit.S)
    assert rig.stops == [(120 * kit.S, "transfer_call", "deadline")]


def test_request_and_confirmation_never_share_a_user_turn_however_many_rounds_lie_between(kit, asked):
    together = asked.execute(transfer(kit, "t1.1", "+1"), confirm(kit, "t1.1", "t1.2"))
    assert refusal(kit, together, 1) == NOT_REPLIED
    for n in range(3, 6):
        assert refusal(kit, asked.execute(confirm(kit, "t1.0", f"t1.{n}"))) == NOT_REPLIED
    assert (pending(asked), asked.outcomes()[-1], asked.runs) == (["t1.0", "t1.1"], "confirmation_refused", [])
    assert asked.engine.invalid_rounds(1) == 0
    asked.engine.confirmations.note_user_turn()
    asked.execute(confirm(kit, "t1.0"), epoch=2)
    assert len(asked.runs) == 1


def test_a_user_turn_before_the_request_does_not_count(kit):
    rig = gate(kit)
    rig.engine.confirmations.note_user_turn()
    rig.execute(transfer(kit))
    assert refusal(kit, rig.execute(confirm(kit, "t1.0"), epoch=2)) == NOT_REPLIED


def test_speech_under_way_when_the_request_was_made_is_not_the_reply(kit):
    rig = gate(kit)
    gate_of = rig.engine.confirmations
    gate_of.note_user_speech_started()
    rig.execute(transfer(kit))
    gate_of.note_user_turn()
    assert refusal(kit, rig.execute(confirm(kit, "t1.0"), epoch=2)) == NOT_REPLIED
    gate_of.note_user_speech_started()
    gate_of.note_user_turn()
    rig.execute(confirm(kit, "t1.0", "t3.0"), epoch=3)
    assert len(rig.runs) == 1


def test_a_speech_start_that_led_to_no_turn_is_forgotten_with_the_next_one(kit):
    rig = gate(kit)
    gate_of = rig.engine.confirmations
    gate_of.note_user_speech_started()
    rig.execute(transfer(kit))
    gate_of.note_user_speech_started()
    gate_of.note_user_turn()
    rig.execute(confirm(kit, "t1.0"), epoch=2)
    assert len(rig.runs) == 1


def test_a_speech_start_counts_for_the_turn_it_led_to_only(kit):
    rig = gate(kit)
    rig.engine.confirmations.note_user_speech_started()
    rig.engine.confirmations.note_user_turn()
    rig.execute(transfer(kit))
    rig.engine.confirmations.note_user_turn()
    rig.execute(confirm(kit, "t1.0"), epoch=2)
    assert len(rig.runs) == 1


def test_an_unknown_request_is_refused(kit, asked):
    asked.engine.confirmations.note_user_turn()
    assert refusal(kit, asked.execute(confirm(kit, "t9.9"), epoch=2)) == UNKNOWN


def test_a_confirmation_of_an_older_turn_than_the_request_is_stale_and_the_request_stays(kit):
    rig = gate(kit)
    rig.execute(transfer(kit, "t4.0"), epoch=4)
    rig.engine.confirmations.note_user_turn()
    assert kit.kinds(rig.execute(confirm(kit, "t4.0", "t3.0"), epoch=3)) == ["stale_turn"]
    outcome, answer = rig.engine.confirmations.find("t4.0", 3)
    assert (outcome, answer.content) == (
        "stale_turn",
        '{"error":"stale_turn","tool":"confirm_pending",'
        '"detail":"the request belongs to a later turn than this confirmation"}',
    )
    assert pending(rig) == ["t4.0"]


@pytest.mark.parametrize(("ttl_us", "at_us", "runs"), [(None, 119, 1), (None, 120, 1), (None, 121, 0), (5, 6, 0)])
def test_a_request_lives_for_its_ttl(kit, ttl_us, at_us, runs):
    config = {} if ttl_us is None else {"confirm_ttl_us": ttl_us * kit.S}
    rig = gate(kit, **config)
    rig.delivered(transfer(kit), after=0)
    rig.engine.confirmations.note_user_turn()
    rig.to(at_us * kit.S)
    execution = rig.execute(confirm(kit, "t1.0"), epoch=2)
    assert len(rig.runs) == runs
    if not runs:
        assert refusal(kit, execution) == EXPIRED
        assert [(r["requests"], r["reason"]) for r in rig.timeline.of("confirm.cleared")] == [(["t1.0"], "expired")]


def test_a_barge_in_clears_every_request_and_a_new_question_works(kit, asked):
    asked.execute(transfer(kit, "t1.1", "+1"))
    asked.engine.confirmations.clear()
    asked.engine.confirmations.clear()
    assert [(r["requests"], r["reason"]) for r in asked.timeline.of("confirm.cleared")] == [
        (["t1.0", "t1.1"], "barge_in")
    ]
    asked.engine.confirmations.note_user_turn()
    assert refusal(kit, asked.execute(confirm(kit, "t1.0"), epoch=2)) == UNKNOWN
    again = asked.execute(transfer(kit, "t2.1"), epoch=2)
    assert '"call_id":"t2.1"' in kit.contents(again)[0]
    asked.engine.confirmations.note_user_turn()
    asked.execute(confirm(kit, "t2.1", "t3.0"), epoch=3)
    assert len(asked.runs) == 1


def test_a_request_is_used_once_and_redelivering_the_confirmation_answers_its_record(kit, asked):
    asked.engine.confirmations.note_user_turn()
    asked.delivered(confirm(kit, "t1.0"), epoch=2, after=2 * kit.S)
    second = asked.execute(confirm(kit, "t1.0", "t2.1"), epoch=2)
    replay = asked.execute(confirm(kit, "t1.0"), epoch=2)
    assert (refusal(kit, second), kit.contents(replay), len(asked.runs)) == (UNKNOWN, ["transferred"], 1)


def test_a_full_store_refuses_the_confirmation_and_the_request_stays(kit):
    rig = gate(kit, idempotency_capacity=1).book(latency=9 * kit.S)
    rig.execute(transfer(kit), kit.call("t1.1"))
    rig.engine.confirmations.note_user_turn()
    assert kit.kinds(rig.execute(confirm(kit, "t1.0"), epoch=2)) == ["store_full"]
    assert pending(rig) == ["t1.0"]


def test_the_ninth_request_pushes_out_the_oldest(kit):
    rig = gate(kit)
    for n in range(9):
        rig.execute(transfer(kit, f"t1.{n}", f"+{n}"))
    assert pending(rig) == [f"t1.{n}" for n in range(1, 9)]
    assert [r["reason"] for r in rig.timeline.of("confirm.cleared")] == ["crowded_out"]
    rig.engine.confirmations.note_user_turn()
    execution = rig.execute(*[confirm(kit, f"t1.{n}", f"t2.{n}") for n in range(9)], epoch=2)
    assert refusal(kit, execution) == UNKNOWN
    assert [arguments["number"] for _, _, arguments in rig.runs] == [f"+{n}" for n in range(1, 9)]


def test_asking_again_for_the_same_action_replaces_the_request(kit, asked):
    asked.execute(transfer(kit, "t1.1"))
    assert pending(asked) == ["t1.1"]
    asked.engine.confirmations.note_user_turn()
    assert refusal(kit, asked.execute(confirm(kit, "t1.0"), epoch=2)) == UNKNOWN
    asked.execute(confirm(kit, "t1.1", "t2.1"), epoch=2)
    assert len(asked.runs) == 1


def test_a_speculative_gated_call_is_held_and_its_request_made_at_the_commit(kit):
    rig = gate(kit)
    rig.speculate(transfer(kit)).discard()
    assert pending(rig) == []
    speculation = rig.speculate(transfer(kit, "t1.1"))
    assert pending(rig) == []
    execution = rig.commit(speculation)
    assert (pending(rig), execution.complete) == (["t1.1"], True)


def test_a_speculative_confirmation_is_held_too(kit, asked):
    asked.engine.confirmations.note_user_turn()
    speculation = asked.speculate(confirm(kit, "t1.0"), epoch=2)
    assert (asked.runs, pending(asked)) == ([], ["t1.0"])
    asked.commit(speculation)
    assert (len(asked.runs), pending(asked)) == (1, [])


def test_a_gated_request_is_neither_an_orphan_nor_a_late_note(kit):
    rig = gate(kit)
    rig.execute(transfer(kit)).discard()
    rig.engine.confirmations.clear()
    again = rig.execute(transfer(kit, "t2.0"), epoch=2)
    assert ('"call_id":"t2.0"' in kit.contents(again)[0], rig.notes(), rig.runs) == (True, [], [])


@pytest.mark.parametrize("epoch", [2, 3])
def test_a_confirmed_action_asked_for_again_makes_a_new_request(kit, asked, epoch):
    asked.engine.confirmations.note_user_turn()
    confirmed = asked.execute(confirm(kit, "t1.0"), epoch=2)
    asked.to(2 * kit.S)
    confirmed.discard() if epoch == 3 else confirmed.mark_delivered()
    asked.execute(transfer(kit, f"t{epoch}.1"), epoch=epoch)
    assert (pending(asked), asked.outcomes()[-1], len(asked.engine._desk.recent)) == (
        [f"t{epoch}.1"], "confirmation_required", 0
    )  # fmt: skip


def test_what_the_user_said_is_the_models_judgment(kit, asked):
    asked.engine.confirmations.note_user_turn()  # "What is the weather?"
    asked.execute(confirm(kit, "t1.0"), epoch=2)
    assert len(asked.runs) == 1


def test_the_log_line_names_the_request_and_no_argument(kit, caplog):
    rig = gate(kit)
    with caplog.at_level(logging.DEBUG, "bargein.tools"):
        rig.delivered(transfer(kit))
        rig.engine.confirmations.note_user_turn()
        rig.delivered(confirm(kit, "t1.0"), epoch=2, after=2 * kit.S)
    digest = rig.contexts[0].key.digest()
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.INFO] == [
        f"side effect runs tool=transfer_call epoch=2 key={digest} request=t1.0"
    ]
    assert "555" not in caplog.text + rig.timeline.to_jsonl()
