"""A session's life: hanging up, limits, being stuck, the quiet end, and who waits for what."""

from __future__ import annotations

import pytest

from bargein import sim

MS = 1_000
BOOK = {"book": {"kind": "side_effect", "latency": "2s", "result": {"b": 1}}}
REPLY = "Hello there, Sam. We close at ten, on Sunday too."
NEVER = {"ttft": "never", "rules": [{"when": {"round": 1}, "text": "Hello."}]}


def hang_up(at):
    return {"hang_up": True, "at": at}


def test_a_call_ends_quietly_with_its_last_sample(call, events):
    result = sim.run(call(REPLY))
    (ended,) = events(result, "playout.ended")
    assert result.timeline.rows[-1][:2] == (ended[0], "session.ended")
    assert events(result, "session.ended")[0][2] == "quiet"
    assert result.heard == [REPLY]
    assert result.violations == []


def test_it_does_not_end_while_a_booking_runs_and_tells_its_result(call, cut_in, events, said):
    # The reply of the second turn is over long before the booking, which takes until 8.75 s.
    tools = {"book": {"kind": "side_effect", "latency": "8s", "timeout": "20s", "result": {"b": 1}}}
    result = sim.run(call({"calls": [{"book": {}}]}, cut_in(1_000_000), tools=tools))
    assert events(result, "session.ended") == [(8_750 * MS, "session.ended", "quiet")]
    assert said(result)[-1] == (
        "system",
        'Result of an earlier call that had not finished in time: book (call t1.0): {"b":1}',
    )
    assert result.violations == []


def test_a_hang_up_cuts_what_is_heard_on_the_next_boundary(call, events, said):
    # "Hello there, Sam." is heard from 960 ms on; its second word ends at 1610 ms.
    result = sim.run(call(REPLY, hang_up("1801ms")))
    assert events(result, "caller.hung_up", "turn.interrupted", "playout.cut", "session.ended") == [
        (1801 * MS, "caller.hung_up"),
        (1801 * MS, "turn.interrupted", "hang_up"),
        (1820 * MS, "playout.cut", 0, 860 * 16, 39_040),
        (1820 * MS, "session.ended", "hang_up"),
    ]
    assert said(result) == [("user", "Hi."), ("assistant", "Hello there,")]
    assert result.violations == []


def test_a_hang_up_during_a_booking_records_it_as_lost_and_says_so_in_a_note(call, events, said):
    result = sim.run(call({"calls": [{"book": {}}]}, hang_up("1500ms"), tools=BOOK))
    assert events(result, "tool.dropped", "tool.late_result", "session.ended") == [
        (1500 * MS, "tool.dropped", "t1.0", "book", "hang_up"),
        (1500 * MS, "tool.late_result", "t1.0", "book", "lost"),
        (1500 * MS, "session.ended", "hang_up"),
    ]
    note = said(result)[-1]
    assert note[0] == "system"
    assert note[1].startswith('Result of an earlier call that had not finished in time: book (call t1.0): {"error":')
    assert result.tools["book"]["runs"] == 1
    assert result.violations == []


def test_a_hang_up_between_a_decision_and_its_cut_waits_for_the_cut(call, cut_in, events):
    result = sim.run(call(REPLY, cut_in(1_805_000), hang_up("1810ms")))
    assert events(result, "turn.interrupted", "caller.hung_up", "session.ended") == [
        (1805 * MS, "turn.interrupted", "barge_in"),
        (1810 * MS, "caller.hung_up"),
        (1820 * MS, "session.ended", "hang_up"),
    ]
    assert result.violations == []


def test_a_hang_up_in_silence_ends_the_call_at_once(call, events):
    result = sim.run(call(REPLY, {"hang_up": True, "at": "50ms"}))
    assert events(result, "session.ended") == [(50 * MS, "session.ended", "hang_up")]
    assert result.violations == []


def test_the_time_limit_ends_the_call_like_a_hang_up(call, events, said):
    result = sim.run(call(REPLY, session={"max_duration": "1801ms"}))
    assert events(result, "caller.hung_up", "session.ended") == [(1820 * MS, "session.ended", "time_limit")]
    assert said(result)[-1] == ("assistant", "Hello there,")
    assert result.violations == []


def test_a_turn_that_comes_between_a_decision_and_its_cut_follows_the_cut(call, events, said):
    short = {"say": "Wait.", "at": "1801ms", "level": "decision", "for": "5ms"}
    result = sim.run(call(REPLY, short))
    rows = events(result, "turn.barge_in", "turn.ended", "playout.cut", "turn.user")
    assert rows[2:] == [
        (1801 * MS, "turn.barge_in", 1801 * MS, "decision"),
        (1806 * MS, "turn.ended", 1806 * MS),
        (1820 * MS, "playout.cut", 0, 860 * 16, 39_040),
        (1820 * MS, "turn.user", "Wait.", [2]),
    ]
    assert said(result)[1:3] == [("assistant", "Hello there,"), ("user", "Wait.")]
    assert result.violations == []


def test_two_turns_between_a_decision_and_its_cut_become_one(call, said):
    lines = [
        {"say": say, "at": f"{at}ms", "level": "decision", "for": "3ms"} for say, at in (("Wait.", 1801), ("No.", 1806))
    ]
    result = sim.run(call(REPLY, *lines))
    assert said(result)[1:3] == [("assistant", "Hello there,"), ("user", "Wait. No.")]
    assert result.violations == []


STUCK = [
    ({"llm": NEVER}, 400, "the run of turn 1 waits for the model's answer, round 0"),
    ({"tts": {"ttfb": "never"}}, 930, "utterance 0 waits for its audio"),
]


@pytest.mark.parametrize(("keys", "last_ms", "who"), STUCK, ids=["model", "voice"])
@pytest.mark.parametrize(
    "surroundings",
    [{}, {"session": {"per_frame": True}}, {"acoustics": {"noise": {"snr_db": 30}}}],
    ids=["quiet", "frames", "noisy"],
)
def test_a_call_that_cannot_go_on_says_who_waits_for_what(call, keys, last_ms, who, surroundings):
    result = sim.run({**call(REPLY), **keys, **surroundings})
    sentence = f"nothing more happens after {last_ms * MS} us, and the session is not over; {who}"
    assert str(result.stopped) == sentence
    assert (result.violations[0].invariant, result.violations[0].message) == ("deadlock", sentence)


def test_a_recogniser_that_never_answers_is_named_with_its_segment(call):
    data = {**call(REPLY), "caller": [{"say": "Wait.", "at": "100ms"}], "stt": {"latency": "never"}}
    assert str(sim.run(data).stopped).endswith("is not over; segment 1 waits for its transcript")


def test_noise_that_the_detector_takes_for_speech_runs_into_the_time_limit(call, events):
    noise = {"noise": {"kind": "pink", "snr_db": 20}}  # on the threshold: speech that never stops
    data = {**call(REPLY), "acoustics": noise, "caller": [{"say": "Wait.", "at": "100ms"}]}
    result = sim.run({**data, "session": {"max_duration": "20s"}})
    assert events(result, "session.ended") == [(20_000 * MS, "session.ended", "time_limit")]
    assert events(result, "vad.stopped") == []


def test_a_line_whose_event_never_comes_is_a_failed_expectation(call):
    line = {"say": "No.", "after": {"event": "filler.spoken"}}
    result = sim.run(call({"calls": [{"book": {}}]}, line, tools={"book": {"latency": "100ms"}}))
    assert [(each.name, each.ok) for each in result.expectations] == [("caller[1].after", False)]
    assert not result.ok
    assert result.violations == []


def test_a_slow_voice_starves_the_playout_word_by_word(call, events):
    # Half as fast as it plays: "Hello" (325 ms) comes at 940 ms and the next word, which lasts as long, 650 ms later,
    # at 1590 ms; it goes on with the boundary at 1600 ms. The third comes at 2240 ms, a boundary, with the end.
    result = sim.run(call("Hello there, Sam.", tts={"speed": 0.5}))
    rows = events(result, "playout.started", "playout.word", "playout.starved", "playout.resumed", "playout.ended")
    assert [(row[0] // MS, row[1].removeprefix("playout."), row[3]) for row in rows] == [
        (940, "started", "answer"),
        (1265, "word", 0),
        (1265, "starved", 5200),
        (1600, "resumed", 25_600),
        (1925, "word", 1),
        (1925, "starved", 10_400),
        (2240, "resumed", 35_840),
        (2520, "word", 2),
        (2520, "ended", 14_880),
    ]
    assert result.violations == []


@pytest.mark.parametrize(("decided_ms", "heard"), [(1300, "Hello"), (1610, "Hello"), (1925, "Hello there,")])
def test_a_slow_voice_is_cut_to_what_was_heard(call, cut_in, said, decided_ms, heard):
    result = sim.run(call("Hello there, Sam.", cut_in(decided_ms * MS), tts={"speed": 0.5}))
    assert said(result)[1] == ("assistant", heard)
    assert result.violations == []


def test_always_means_that_an_idle_bots_epoch_ends_too(call, events):
    data = {
        **call(REPLY),
        "caller": [{"say": "A table for two on Friday, please.", "at": "100ms"}],
        "agent": {"turn": {"barge_in": "always"}},
    }
    result = sim.run(data)
    assert events(result, "turn.barge_in") == [(300 * MS, "turn.barge_in", 100 * MS, "audio")]
    assert result.heard == ["All right."]
    assert result.violations == []


def test_an_idle_bot_that_is_interrupted_again_answers_in_an_epoch_of_its_own(call, events):
    # The first line interrupts the reply; the second follows in the same turn, when nothing is under way any more.
    lines = [
        {"say": "Wait.", "at": "1500ms"},
        {"say": "Make it three.", "after": {"event": "caller.ended", "nth": 2, "by": "350ms"}},
    ]
    result = sim.run(call(REPLY, *lines, agent={"turn": {"barge_in": "always"}}))
    epochs = [(row[1], row[2]) for row in result.timeline.rows if row[1] in ("turn.barge_in", "turn.user")]
    assert epochs == [("turn.user", 1), ("turn.barge_in", 1), ("turn.barge_in", 2), ("turn.user", 3)]
    assert result.context[-2]["text"] == "Wait. Make it three."
    assert result.violations == []


@pytest.mark.parametrize(("when", "decided_ms"), [("audible", 920), ("active", 840), ("never", None)])
def test_speech_over_a_thinking_bot_interrupts_it_once_that_is_allowed(call, events, when, decided_ms):
    # Speech from 640 ms on falls on a run that works on its answer: due at 840 ms. Its first sentence is known with
    # the second word, at 770 ms, and queued to be heard at 920 ms.
    line = {"say": "Wait, make it three.", "at": "640ms"}
    result = sim.run(call("Yes. We close at ten, on Sunday too.", line, agent={"turn": {"barge_in": when}}))
    found = [row[:3] for row in events(result, "turn.barge_in")]
    assert found == ([] if decided_ms is None else [(decided_ms * MS, "turn.barge_in", 640 * MS)])
    assert result.heard[-1] == "All right."
    assert result.violations == []


def test_the_bot_interrupts_itself_when_its_echo_is_above_the_threshold(call, events):
    echo = {"acoustics": {"echo": {"delay": "60ms", "gain_db": -30}}}
    low = {"vad": {"on_db": -60, "off_db": -66}}
    heard = sim.run(call(REPLY, **echo, **low))
    # Heard from 960 ms on, it comes back at 1020 ms, and has lasted the minimum of 200 ms at 1220 ms.
    assert events(heard, "turn.barge_in") == [(1220 * MS, "turn.barge_in", 1020 * MS, "audio")]
    assert heard.violations == []


def test_the_bot_does_not_interrupt_itself_with_the_bundled_settings(call, events):
    result = sim.run(call(REPLY, acoustics={"echo": {}}))
    assert events(result, "turn.barge_in", "vad.started") == []
    assert result.heard == [REPLY]
    assert result.violations == []


def test_lines_that_follow_closely_are_two_sentences_of_one_turn(call, events):
    lines = [{"say": "Wait.", "at": "100ms"}, {"say": "No.", "after": {"event": "caller.ended", "by": "100ms"}}]
    result = sim.run({**call(REPLY), "caller": lines})
    assert [row[2] for row in events(result, "turn.user")] == ["Wait. No."]
