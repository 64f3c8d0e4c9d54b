"""Per-request metrics: first marks win, each mark counts once, and 32 requests of a turn are timed."""

from __future__ import annotations

from bargein.pipelines.round_metrics import MAX_LLM_ROUNDS, RoundMetrics, TimelineStats, TurnMarks, TurnRecorder


def test_each_request_of_a_turn_is_a_round_and_the_turn_keeps_its_first_instants() -> None:
    recorder = TurnRecorder()
    assert [recorder.llm_request(1, at_us) for at_us in (100, 500, 900)] == [0, 1, 2]
    assert recorder.llm_first_token(1, 0, 150)
    assert recorder.llm_first_token(1, 1, 560)
    assert recorder.llm_done(1, 1, 600)
    assert recorder.turns == {
        1: TurnMarks(
            1, 100, 150, False, [RoundMetrics(0, 100, 150), RoundMetrics(1, 500, 560, 600), RoundMetrics(2, 900)]
        )
    }
    assert recorder.stats == TimelineStats(recorded=6)


def test_a_round_is_timed_from_its_own_marks_only() -> None:
    full = RoundMetrics(1, 100_000, 450_000, 900_000)
    assert (full.time_to_first_token_us, full.duration_us) == (350_000, 800_000)
    silent = RoundMetrics(0, 100_000, None, 900_000)
    assert (silent.time_to_first_token_us, silent.duration_us) == (None, 800_000)
    cut = RoundMetrics(0, 100_000, 450_000)
    assert (cut.time_to_first_token_us, cut.duration_us) == (350_000, None)


def test_a_round_is_found_by_its_number() -> None:
    recorder = TurnRecorder()
    recorder.llm_request(1, 100)
    turn = recorder.turns[1]
    assert turn.llm_round(0) is turn.rounds[0]
    assert (turn.llm_round(1), turn.llm_round(-1)) == (None, None)


def test_the_first_mark_wins_and_a_second_one_counts_as_repeated() -> None:
    recorder = TurnRecorder()
    number = recorder.llm_request(1, 100)
    assert recorder.llm_first_token(1, number, 200)
    assert not recorder.llm_first_token(1, number, 300)
    assert recorder.llm_done(1, number, 400)
    assert not recorder.llm_done(1, number, 500)
    assert recorder.turns[1].rounds == [RoundMetrics(0, 100, 200, 400)]
    assert recorder.stats == TimelineStats(recorded=3, repeated=2)


def test_marks_of_a_finished_turn_are_late_and_change_nothing() -> None:
    recorder = TurnRecorder()
    recorder.llm_request(1, 100)
    recorder.finish(1)
    assert recorder.llm_request(1, 200) is None
    assert not recorder.llm_first_token(1, 0, 200)
    assert not recorder.llm_done(1, 0, 200)
    assert recorder.turns == {1: TurnMarks(1, 100, None, True, [RoundMetrics(0, 100)])}
    assert recorder.stats == TimelineStats(recorded=1, late=3)


def test_the_33rd_request_of_a_turn_is_not_timed_and_is_counted_as_dropped() -> None:
    recorder = TurnRecorder()
    assert MAX_LLM_ROUNDS == 32
    numbers = [recorder.llm_request(1, at_us) for at_us in range(33)]
    assert numbers == [*range(32), None]
    assert not recorder.llm_done(1, None, 50)
    assert len(recorder.turns[1].rounds) == 32
    assert recorder.stats == TimelineStats(recorded=32, repeated=2, llm_rounds_dropped=1)
    assert recorder.llm_request(2, 60) == 0


def test_turns_are_timed_apart() -> None:
    recorder = TurnRecorder()
    recorder.llm_request(1, 100)
    recorder.finish(1)
    recorder.llm_request(2, 200)
    recorder.llm_first_token(2, 0, 250)
    assert recorder.turns == {
        1: TurnMarks(1, 100, None, True, [RoundMetrics(0, 100)]),
        2: TurnMarks(2, 200, 250, False, [RoundMetrics(0, 200, 250)]),
    }
