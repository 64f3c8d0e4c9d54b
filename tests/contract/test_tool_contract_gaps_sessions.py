"""What the tool contract asks of a whole call and no test of a single stage shows.

The calls are those of ``tests/conftest.py``: a turn at 400 ms, answered from 750 ms on.
"""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.stages import turns

MS = 1_000
LOOK = {"look": {"latency": "100ms", "result": "sunny"}}
BOOK = {"book": {"kind": "side_effect", "latency": "1s", "result": "BK-1001"}}
NOTE = "Result of an earlier call that had not finished in time: book (call t1.0): BK-1001"


def kinds(result: Any, since_us: int, until_us: int) -> list[tuple[int, str]]:
    """Instants and kinds of what happened in between, both ends included."""
    return [(row[0], row[1]) for row in result.timeline.rows if since_us <= row[0] <= until_us]


# -- responses and rounds ---------------------------------------------------------------------------------------


def test_the_33rd_call_of_a_response_is_refused_on_the_timeline_and_the_others_are_answered(call, events, said):
    result = sim.run(call({"calls": [{"look": {}}] * 33}, tools=LOOK))
    assert [row[3] for row in events(result, "llm.refused_delta")] == [
        "TooManyCalls: a response may ask for 32 calls; index 32 is one more"
    ]
    assert [content for role, content in said(result) if role == "tool"] == ["sunny"] * 32
    assert result.heard == ["All right."]
    assert result.violations == []


def test_a_late_note_follows_the_results_of_the_next_round_when_there_is_one(call, cut_in, said):
    rules = [
        {"when": {"user": "Hi", "round": 1}, "calls": [{"book": {}}]},
        {"when": {"round": 1}, "calls": [{"look": {}}]},
    ]
    llm = {"rules": rules, "else": {"text": "All right."}}
    tools = {**BOOK, "look": {"latency": "1s", "result": "sunny"}}
    data = call("", cut_in(1_000_000), llm=llm, tools=tools, agent={"filler": "off"})
    # The booking ends at 1750 ms, while the lookup of the second turn runs from 1650 to 2650 ms.
    assert said(sim.run(data))[3:] == [
        ("user", "Wait."),
        ("assistant", ""),
        ("tool", "sunny"),
        ("system", NOTE),
        ("assistant", "All right."),
    ]


def test_a_barge_in_ends_the_run_closes_its_calls_and_cuts_the_context_in_this_order(call, cut_in, events, said):
    reply = {"text": "Let me book that for you now.", "calls": [{"book": {}}]}
    result = sim.run(call(reply, cut_in(1_210_000), tools=BOOK))
    cut_us = 1_220_000
    seen = [each for each in kinds(result, 1_210_000, cut_us) if each[1] not in ("caller.started", "playout.word")]
    assert seen == [
        (1_210_000, "turn.barge_in"),
        (1_210_000, "turn.interrupted"),
        (1_210_000, "tool.settled"),
        (1_210_000, "context.pushed"),
        (1_210_000, "run.ended"),
        (cut_us, "playout.cut"),
        (cut_us, "context.truncated"),
    ]
    heard = "".join(row[4] for row in events(result, "playout.word") if row[0] <= cut_us)
    assert said(result)[1] == ("assistant", heard)
    assert [row[4] for row in events(result, "context.pushed") if 1_210_000 < row[0] < 1_510_000] == []


def test_each_timed_request_has_one_summary_and_the_turns_stages_take_the_first(call, events):
    rounds = [{"calls": [{"look": {}}], "ttft": "500ms"}, {"text": "All right.", "ttft": "300ms"}]
    result = sim.run(call("", llm=rounds, tools=LOOK))
    assert events(result, "llm.request_finished") == [
        (900 * MS, "llm.request_finished", 0, 500 * MS, 500 * MS),
        # The second request is made at 1 s; its two words are 20 ms apart.
        (1_320 * MS, "llm.request_finished", 1, 300 * MS, 320 * MS),
    ]
    [turn] = turns(result.records)
    assert turn.stages["first_token"] == 500 * MS


# -- speculation ------------------------------------------------------------------------------------------------

FRIDAY = {"say": "A table for two on Friday, please.", "at": "500ms"}


def speculative(call, switch, *lines, **keys):
    """The recogniser's final comes at 3 s, the turn ends at 4.1 s: in between the model may be asked ahead."""
    rules = [{"when": {"result": {"tool": "book", "is": "missing"}}, "calls": [{"book": {}}, {"look": {}}]}]
    agent = {"turn": {"min_silence": "1500ms"}, "filler": keys.pop("filler", "off")}
    if switch:
        agent["speculation"] = True
    tools = {"book": {**BOOK["book"], "latency": "2s"}, "look": {**LOOK["look"], "latency": "3s"}}
    data = call("", agent=agent, tools=tools, llm={"rules": rules, "else": {"text": "Done."}})
    return {**data, "caller": [FRIDAY, *lines]}


def test_speculation_is_off_unless_it_is_asked_for(call, events):
    result = sim.run(speculative(call, False))
    assert events(result, "speculation.started", "tool.held") == []
    assert [row[0] for row in events(result, "llm.request")] == [4_100 * MS, 7_470 * MS]


def test_a_speculative_booking_starts_at_the_commit_and_its_lookup_at_once(call, events):
    result = sim.run(speculative(call, True))
    assert events(result, "speculation.started", "tool.held", "speculation.committed", "tool.started") == [
        (3_000 * MS, "speculation.started", "A table for two on Friday, please."),
        (3_370 * MS, "tool.held", "t1.0", "book"),
        (3_370 * MS, "tool.started", "t1.1", "look", False, 1),
        (4_100 * MS, "speculation.committed"),
        (4_100 * MS, "tool.started", "t1.0", "book", True, 2),
    ]
    # Nothing of it is in the context before the commit.
    assert [row[0] for row in events(result, "context.pushed")][:2] == [4_100 * MS, 4_100 * MS]
    assert result.violations == []


def test_a_speculation_that_the_user_speaks_on_from_books_nothing(call, events):
    # The lookup and the held booking are there at 3.37 s; the user speaks on from 3.4 s.
    result = sim.run(speculative(call, True, {"say": "Wait, make it three.", "at": "3400ms"}))
    discarded = events(result, "speculation.discarded")
    assert [row[2] for row in discarded] == ["more speech"]
    at_us = discarded[0][0]
    assert [(row[0], row[3]) for row in events(result, "tool.dropped")] == [(at_us, "look")]
    turn_us = events(result, "turn.user")[0][0]
    assert [row[0] for row in events(result, "tool.started") if row[3] == "book"] == [turn_us]
    assert result.violations == []


def test_the_filler_delay_of_a_committed_speculation_counts_from_the_commit(call, events):
    result = sim.run(speculative(call, True, filler={"delay": "1.2s"}))
    assert events(result, "filler.due") == [(4_100 * MS + 1_200 * MS, "filler.due", 0, "book")]


# -- fillers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filler", "tool", "due_us"),
    [
        (None, {}, 1_200_000),
        (None, {"filler_after": "100ms"}, 1_200_000),
        (None, {"filler_after": None}, None),
        ({"delay": "400ms"}, {}, 400_000),
        ({"per_tool": True}, {}, 700_000),
        ({"per_tool": True}, {"filler_after": "300ms"}, 300_000),
        ("off", {}, None),
    ],
    ids=["default", "the tool's value is a switch", "opted out", "delay", "per tool", "the tool's own", "off"],
)
def test_a_session_fills_after_the_delay_of_its_configuration(call, events, filler, tool, due_us):
    agent = {} if filler is None else {"filler": filler}
    result = sim.run(call({"calls": [{"look": {}}]}, tools={"look": {"latency": "3s", **tool}}, agent=agent))
    spoken = [] if due_us is None else [(750 * MS + due_us, "One moment, please.")]
    assert [(row[0], row[4]) for row in events(result, "filler.spoken")] == spoken
    assert result.violations == []


def test_an_answer_that_is_ready_while_the_filler_speaks_follows_it_and_neither_is_cut(call, events):
    # The filler is due at 1950 ms and heard from 2100 ms on; the result is there at 2000 ms, the answer at 2350 ms.
    result = sim.run(call({"calls": [{"look": {}}]}, tools={"look": {"latency": "1250ms"}}))
    heard = [(row[0], row[1], row[2]) for row in events(result, "playout.started", "playout.ended", "playout.cut")]
    assert [each[1:] for each in heard] == [
        ("playout.started", 0),
        ("playout.ended", 0),
        ("playout.started", 1),
        ("playout.ended", 1),
    ]
    assert heard[2][0] >= heard[1][0] > 2_350 * MS
    assert result.heard == ["One moment, please.", "All right."]


# -- the confirmation gate --------------------------------------------------------------------------------------

TRANSFER = {"transfer": {"kind": "side_effect", "confirm": True, "latency": "100ms", "result": "transferred"}}


def gated(call, *lines):
    confirm = {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]}
    rules = [
        {"when": {"user": "Hi", "round": 1}, "calls": [{"transfer": {}}]},
        {"when": {"user": "Yes", "round": 1}, **confirm},
        {"when": {"user": "Hi", "round": 2}, "text": "Shall I transfer you to an agent of ours?"},
    ]
    return call("", *lines, llm={"rules": rules, "else": {"text": "All right."}}, tools=TRANSFER)


def test_a_gated_call_runs_in_the_turn_in_which_the_user_agreed(call, cut_in, events):
    result = sim.run(gated(call, cut_in(9_000_000, "Yes.")))
    assert events(result, "confirm.requested", "confirm.taken", "tool.started", "confirm.cleared") == [
        (750 * MS, "confirm.requested", "t1.0", "transfer"),
        (9_650 * MS, "confirm.taken", "t2.0", "t1.0"),
        (9_650 * MS, "tool.started", "t2.0", "transfer", True, 3),
    ]
    assert result.violations == []


def test_an_interruption_of_the_question_clears_the_request(call, cut_in, events, said):
    result = sim.run(gated(call, cut_in(1_500_000, "Yes.")))
    assert events(result, "confirm.taken", "tool.started", "confirm.cleared") == [
        (1_500 * MS, "confirm.cleared", ["t1.0"], "barge_in")
    ]
    [refusal] = [text for role, text in said(result) if role == "tool" and "confirmation_refused" in text]
    assert "no action is waiting under this call_id" in refusal
    assert result.violations == []


# -- delivery ---------------------------------------------------------------------------------------------------


def test_a_booking_done_while_its_filler_cannot_be_sent_is_told_once_and_not_made_again(call, cut_in, events, said):
    # A clip waits for a long sentence, the second answer's text waits for the clip and fills the inbox: the second
    # filler cannot be sent, and the booking that has ended meanwhile is not in the context when the caller cuts in.
    long = "Let me look that up in our calendar for you, it should only take a short while."
    rules = [
        {"when": {"user": "Hi", "round": 1}, "text": long, "calls": [{"look": {}}]},
        {"when": {"user": "Hi", "round": 2}, "text": "And then.", "calls": [{"book": {}}]},
        {"when": {"user": "Wait", "round": 1}, "calls": [{"book": {}}]},
    ]
    tools = {"look": {"latency": "1300ms"}, "book": {**BOOK["book"], "latency": "1500ms"}}
    agent = {"filler": {"clip": "wait", "phrases": ["One moment, please."]}, "tts": {"inbox": 2}}
    data = call("", llm={"rules": rules, "else": {"text": "All right."}}, tools=tools, agent=agent)
    [started_us] = [row[0] for row in events(sim.run(data), "tool.started") if row[3] == "book"]
    data["caller"].append(cut_in(started_us + 1_600_000))

    result = sim.run(data)

    assert [(row[0] - started_us, row[4]) for row in events(result, "tool.settled", "tool.late_result")[1:]] == [
        (1_500_000, "ok"),
        (1_600_000, "ok"),  # told late when its execution is discarded
        (1_600_000 + 300_000 + 350_000, "orphan_reported"),
    ]
    assert [text for _, text in said(result) if "BK-1001" in text] == [NOTE.replace("t1.0", "t1.1")]
    assert result.tools["book"]["runs"] == 1
    assert result.violations == []
