"""The runner's turn: streaming, tools, fillers, late notes and fallbacks, in whole short calls.

The first request of a short call is made at 400 ms and its first token comes at 750 ms; a response of calls alone is
complete there, so its tools start at 750 ms.
"""

from __future__ import annotations

import pytest

from bargein import sim

MS = 1_000
START = 750 * MS
"""When the tools of a response without text start."""

LOOK = {"look": {"latency": "1200ms", "result": {"n": 1}}}
BOOK = {"book": {"kind": "side_effect", "latency": "1s", "result": {"b": 1}}}
FALLBACK = "I'm sorry, something went wrong. Please try again."


def test_text_is_spoken_as_it_streams_and_the_call_runs_once_its_message_is_there(call, events):
    result = sim.run(call({"text": "Let me see.", "calls": [{"look": {}}]}, tools=LOOK))
    # Three words, 20 ms apart, then the call: complete at 810 ms; the last sentence ends with the text.
    rows = events(result, "tts.opened", "llm.done", "context.pushed", "tool.started")[1:5]
    assert [row[:7] for row in rows] == [
        (750 * MS, "tts.opened", 0, 0, "answer", None),
        (810 * MS, "llm.done", 0, "tool_calls", 1, 11),
        (810 * MS, "context.pushed", 1, "assistant", "answer", "Let me see.", ["t1.0"]),
        (810 * MS, "tool.started", "t1.0", "look", False, 1),
    ]
    assert events(result, "playout.started")[0] == (960 * MS, "playout.started", 0, "answer", 15_360)
    assert result.violations == []


def test_results_stand_in_issue_order_whoever_is_quicker(call, said):
    tools = {
        "slow": {"latency": "300ms", "result": "slow"},
        "quick": {"latency": "100ms", "result": "quick"},
    }
    result = sim.run(call({"calls": [{"slow": {}}, {"quick": {}}]}, tools=tools))
    assert said(result) == [
        ("user", "Hi."),
        ("assistant", ""),
        ("tool", "slow"),
        ("tool", "quick"),
        ("assistant", "All right."),
    ]


@pytest.mark.parametrize(("latency_us", "fillers"), [(1_199_999, 0), (1_200_000, 0), (1_200_001, 1)])
def test_a_result_on_the_instant_of_the_filler_delay_wins(call, events, latency_us, fillers):
    tools = {"look": {"latency": f"{latency_us}us", "result": 1}}
    result = sim.run(call({"calls": [{"look": {}}]}, tools=tools))
    due = [(START + 1_200_000, "filler.due", 0, "look")] * fillers
    assert events(result, "filler.due") == due
    assert result.violations == []


def test_under_permuted_ties_the_filler_may_come_first_and_the_call_stays_right(call, said):
    found = {}
    for tie_seed in range(12):
        result = sim.run(call({"calls": [{"look": {}}]}, tools=LOOK), tie_seed=tie_seed)
        spoken = result.counters["llm"]["fillers"]
        found[spoken] = said(result)
        assert [each for each in result.violations if each.invariant != "filler_timing"] == []
    calls = [("user", "Hi."), ("assistant", ""), ("tool", '{"n":1}')]
    assert found == {
        0: [*calls, ("assistant", "All right.")],
        1: [*calls, ("assistant", "One moment, please."), ("assistant", "All right.")],
    }


def test_a_filler_stands_behind_the_result_and_only_later_requests_have_it(call, said, cut_in):
    result = sim.run(call({"calls": [{"look": {}}]}, cut_in(9_000_000), tools={"look": {"latency": "3s"}}))
    requests = [
        [message.text for message in request.messages if message.text] for request in result.opened.model.requests
    ]
    assert requests == [["Hi."], ["Hi."], ["Hi.", "One moment, please.", "All right.", "Wait."]]
    assert [role for role, _ in said(result)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    assert result.counters["llm"] == {
        "fillers": 1,
        "filler_clips": 0,
        "interrupted_tool_calls": 0,
        "late_notes": 0,
        "fallbacks": 0,
        "fillers_in_context": 1,
    }


@pytest.mark.parametrize(
    ("decided_us", "filler"),
    [
        (START + 1_199_999, None),  # before the delay: none is spoken
        (START + 1_200_000, None),  # on it: the interruption comes first
        (START + 1_200_001, None),  # queued, to begin at 1960 ms
        (2_181_000, "One"),  # its first word has gone at 2195 ms, inside the frame that is cut at 2200 ms
        (2_800_000, "One moment,"),
    ],
)
def test_a_filler_that_is_interrupted_stays_as_far_as_it_was_heard(call, cut_in, said, decided_us, filler):
    agent = {"filler": {"clip": "wait", "phrases": ["One moment, please."]}}
    tools = {"book": {"kind": "side_effect", "latency": "2600ms", "result": {"b": 1}}}
    result = sim.run(call({"calls": [{"book": {}}]}, cut_in(decided_us, for_us=2_000_000), tools=tools, agent=agent))
    context = said(result)
    # Behind the answers to the calls that were open; then the note of the booking, then the user.
    assert [role for role, _ in context[1:]] == [
        "assistant",
        "tool",
        *(["assistant"] if filler else []),
        "system",
        "user",
        "assistant",
    ]
    if filler:
        assert context[3] == ("assistant", filler)
    counters = result.counters["llm"]
    assert (counters["fillers"], counters["fillers_in_context"]) == (
        int(decided_us > START + 1_200_000),
        int(bool(filler)),
    )
    assert result.violations == []


def test_each_slow_round_has_its_own_filler(call, events):
    rules = [{"when": {"round": number}, "calls": [{"look": {}}]} for number in (1, 2)]
    llm = {"rules": rules, "else": {"text": "All right."}}
    fillers = {"phrases": ["One.", "Two."]}
    result = sim.run(call("", llm=llm, tools={"look": {"latency": "3s"}}, agent={"filler": fillers}))
    # The second round starts 350 ms after the first has ended.
    assert events(result, "filler.spoken") == [
        (START + 1_200_000, "filler.spoken", 0, "look", "One.", None),
        (START + 3_350_000 + 1_200_000, "filler.spoken", 1, "look", "Two.", None),
    ]


def test_tools_go_on_while_a_filler_cannot_be_sent(call, events, cut_in):
    # The first filler is a clip that has to wait for a long sentence; the text of the second round waits for the
    # clip and fills the inbox, so the second filler cannot be sent.
    long = "Let me look that up in our calendar for you, it should only take a short while."
    rounds = [
        {"text": long, "calls": [{"first": {}}]},
        {"text": "And then.", "calls": [{"second": {}}]},
        {"text": "All right."},
    ]
    tools = {"first": {"latency": "1300ms"}, "second": {"latency": "1500ms"}}
    agent = {"filler": {"clip": "wait", "phrases": ["One moment, please."]}, "tts": {"inbox": 2}}
    data = call("", llm=[*rounds, {"text": "Yes?"}], tools=tools, agent=agent)
    result = sim.run(data)
    started = {row[3]: row[0] for row in events(result, "tool.started")}
    assert [(row[0], row[3]) for row in events(result, "tool.settled")] == [
        (started["first"] + 1_300_000, "first"),
        (started["second"] + 1_500_000, "second"),
    ]
    spoken = [row[0] for row in events(result, "filler.spoken")]
    assert spoken == [started["first"] + 1_200_000, started["second"] + 1_200_000]
    opened = [row[0] for row in events(result, "tts.opened") if row[4] == "filler"]
    assert opened[1] > started["second"] + 1_500_000
    assert result.heard == [long, "One moment, please.", "And then.", "One moment, please.", "All right."]
    assert result.violations == []

    # Interrupted while it cannot be sent, that filler was never heard and is in no context.
    data["caller"].append(cut_in(started["second"] + 1_300_000))
    cut = sim.run(data)
    counters = cut.counters["llm"]
    assert (counters["fillers"], counters["fillers_in_context"]) == (2, 1)
    assert [row[5] for row in events(cut, "context.pushed") if row[4] == "filler"] == ["One moment, please."]
    assert cut.violations == []


@pytest.mark.parametrize(
    ("decided_us", "result_of_look", "ran"),
    [(-1, "interrupted", []), (0, "", ["ok"]), (1, "", ["ok"])],
    ids=["before", "at", "after"],
)
def test_a_result_on_the_instant_of_the_barge_in_wins(call, cut_in, events, decided_us, result_of_look, ran):
    data = call({"calls": [{"look": {}}]}, cut_in(START + 1_200_000 + decided_us), tools=LOOK, agent={"filler": "off"})
    result = sim.run(data)
    (answer,) = [row for row in events(result, "context.pushed") if row[3] == "tool"]
    assert answer[8] == result_of_look
    assert [row[4] for row in events(result, "tool.finished")] == ran
    assert result.violations == []


@pytest.mark.parametrize("decided_us", [-1, 0, 1])
def test_a_side_effects_result_around_the_barge_in_is_told_exactly_once(call, cut_in, said, decided_us):
    data = call({"calls": [{"book": {}}]}, cut_in(START + 1_000_000 + decided_us), tools=BOOK, agent={"filler": "off"})
    result = sim.run(data)
    note = 'Result of an earlier call that had not finished in time: book (call t1.0): {"b":1}'
    told = [text for role, text in said(result) if '{"b":1}' in text]
    assert told == ([note] if decided_us < 0 else ['{"b":1}'])
    assert result.tools["book"]["runs"] == 1
    assert result.violations == []


def test_a_side_effect_in_flight_at_the_barge_in_runs_once_and_is_a_late_note_once(call, cut_in, said):
    data = call({"calls": [{"book": {}}]}, cut_in(START + 400_000, for_us=900_000), tools=BOOK)
    result = sim.run(data)
    assert said(result) == [
        ("user", "Hi."),
        ("assistant", ""),
        ("tool", '{"error":"interrupted","tool":"book","detail":"the user interrupted before the result arrived"}'),
        ("system", 'Result of an earlier call that had not finished in time: book (call t1.0): {"b":1}'),
        ("user", "Wait."),
        ("assistant", "All right."),
    ]
    assert result.tools["book"]["runs"] == 1
    assert result.counters["llm"]["interrupted_tool_calls"] == 1
    assert result.counters["llm"]["late_notes"] == 1
    assert result.violations == []


def test_a_response_cut_while_it_streams_leaves_its_heard_words_and_no_call(call, cut_in, events, said):
    reply = {
        "text": "One moment. I will look at it for you now.",
        "calls": [{"tool": "look", "args": {"day": "friday"}}],
        "delta": {"every": "200ms", "words": 1},
        "fragments": 4,
    }
    # Ten words from 750 ms on, then four fragments from 2750 ms on: at 3 s half of the call is there, and the second
    # sentence has not begun, since it is spoken once it is known to be whole.
    result = sim.run(call(reply, cut_in(3_000_000), tools=LOOK))
    assert said(result)[:3] == [("user", "Hi."), ("assistant", "One moment."), ("user", "Wait.")]
    assert events(result, "tool.started", "llm.done")[:-1] == []
    assert [message for message in result.context if message.get("tool_calls")] == []
    assert result.violations == []


@pytest.mark.parametrize(
    ("reply", "ending", "context"),
    [
        ({"error": "overloaded"}, "failed", [("user", "Hi."), ("assistant", FALLBACK)]),
        (
            {"text": "Let me see", "error": "overloaded"},
            "failed",
            [("user", "Hi."), ("assistant", "Let me see"), ("assistant", FALLBACK)],
        ),
        ({"text": ""}, "empty", [("user", "Hi.")]),
    ],
    ids=["fails at once", "fails in its stream", "says nothing"],
)
def test_a_model_that_fails_is_covered_by_the_fallback(call, events, said, reply, ending, context):
    result = sim.run(call(reply))
    assert [row[2] for row in events(result, "run.ended")] == [ending]
    assert said(result) == context
    assert result.heard == [text for role, text in context if role == "assistant"]
    assert result.violations == []


def test_the_calls_of_a_failed_response_are_never_run(call, events):
    result = sim.run(call({"calls": [{"look": {}}], "error": "overloaded"}, tools=LOOK))
    assert events(result, "tool.started") == []
    assert result.heard == [FALLBACK]


def test_after_six_rounds_of_tools_the_fallback_is_spoken(call, events):
    llm = {"rules": [{"when": {"user": "Hi"}, "calls": [{"look": {}}]}]}
    result = sim.run(call("", llm=llm, tools={"look": {"latency": "100ms"}}))
    assert result.tools["look"]["runs"] == 6
    assert len(result.opened.model.requests) == 6
    over = 400 * MS + 6 * (350 + 100) * MS
    assert events(result, "fallback.spoken", "run.ended") == [
        (over, "fallback.spoken", FALLBACK, "tool rounds"),
        (over, "run.ended", "fallback", 6),
    ]
    assert result.heard == [FALLBACK]
    assert result.violations == []


def test_a_turn_that_spends_its_budget_of_invalid_calls_ends_in_the_fallback(call, events):
    llm = {"rules": [{"when": {"user": "Hi"}, "calls": [{"tool": "look", "raw": "{"}]}]}
    result = sim.run(call("", llm=llm, tools=LOOK))
    assert [row[3] for row in events(result, "fallback.spoken")] == ["invalid calls"]
    assert result.tools["look"]["runs"] == 0
    assert len(result.opened.model.requests) == 3  # two malformed rounds are answered, the third ends the turn
    assert result.heard == [FALLBACK]
    assert result.violations == []


def test_a_fallback_is_cut_to_what_was_heard(call, cut_in, events, said):
    result = sim.run(call({"error": "overloaded"}, cut_in(2_000_000)))
    heard = "".join(row[4] for row in events(result, "playout.word") if row[0] <= 2_000_000)
    assert heard.startswith("I'm sorry,")
    assert said(result)[1] == ("assistant", heard)
    assert result.violations == []


def test_tools_are_listed_in_name_order_in_every_request(call):
    tools = {name: {} for name in ("zeta", "alpha", "mid")}
    result = sim.run(call({"calls": [{"mid": {}}]}, tools=tools))
    listed = [[advert.name for advert in request.tools] for request in result.opened.model.requests]
    assert listed == [["alpha", "mid", "zeta"]] * 2
