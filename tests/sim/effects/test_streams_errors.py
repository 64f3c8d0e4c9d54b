"""Streams that bring errors and go on: each is kept at its position, and the first decides what the effect comes to."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from json import dumps, loads
from typing import Any

import pytest

from bargein.pipelines.agent.answers import StreamError
from bargein.pipelines.agent.deltas import TextDelta
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.effects.sources import Pause, PushHandler, SourceHandler
from bargein.sim.effects.streams import LiveStreams, error_in
from bargein.sim.kernel.clock import Clock, Order

KEY = "agent/model:default"
ONE, TWO = Report(ReportKind.PROVIDER_RESPONSE, "one"), Report(ReportKind.PROVIDER_RESPONSE, "two")
A, B = TextDelta("a"), TextDelta("b")
DONE = Outcome(Status.OK, "done")
FAILED = Outcome(Status.FAILED, ONE)


@dataclass(frozen=True)
class Told:
    """What became of one effect: its outcome and instant, its items, its errors, and the batches."""

    outcome: tuple[int | None, Outcome | None]
    items: list[Any]
    errors: list[tuple[int, Report]]
    batches: list[tuple[int, tuple[Any, ...]]]


def stream(*items: Any, outcome: Outcome = DONE, keep: int = 256, live: bool = True, push: bool = False) -> Told:
    """One effect whose stream brings these items, a millisecond apart, and ends with this outcome."""
    clock = Clock()
    bus = EffectBus(clock)
    streams = LiveStreams(clock, keep=keep)

    def source(_: Effect) -> Generator[Any, None, Outcome]:
        for item in items:
            yield Pause(1_000)
            yield item
        yield Pause(1_000)
        return outcome

    class Pushing:
        def serve(self, effect: Effect) -> None:
            for at, item in enumerate(items, 1):
                clock.call_in(at * 1_000, Order.DELIVERY, effect.deliver, item)
            clock.call_in((len(items) + 1) * 1_000, Order.DELIVERY, effect.land, outcome)

    if push:
        bus.register(KEY, PushHandler(clock, streams, Pushing()))
    else:
        bus.register(KEY, SourceHandler(clock, streams, source, streamed=lambda _: live, fold=list))
    batches: list[tuple[int, tuple[Any, ...]]] = []
    streams.observe(lambda batch: batches.append((batch.start, batch.items)))
    told: list[Any] = []
    effect = bus.dispatch(EffectKind.COMPLETION, KEY, {}, scope="s", on_item=told.append, on_landed=lambda _: None)
    streamed = streams.streamed(effect.id)  # before it has ended: what is not kept is forgotten then
    clock.run()
    return Told((effect.landed_at_us, effect.outcome), told, [] if streamed is None else streamed.errors, batches)


@pytest.mark.parametrize("keep", [0, 256])
@pytest.mark.parametrize("push", [True, False])
def test_every_error_is_kept_at_its_position_and_the_first_is_the_outcome_once_the_reply_has_ended(
    keep: int, push: bool
) -> None:
    told = stream(A, ONE, B, TWO, keep=keep, push=push)
    assert told.errors == [(1, ONE), (3, TWO)]
    assert told.outcome == (5_000, FAILED)
    assert told.items == [A, ONE, B, TWO]
    assert told.batches == [(0, (A,)), (1, (ONE,)), (2, (B,)), (3, (TWO,))]


def test_an_item_that_carries_a_report_is_an_error_too() -> None:
    told = stream(A, StreamError(ONE), B, StreamError(TWO))
    assert (told.errors, told.outcome) == ([(1, ONE), (3, TWO)], (5_000, FAILED))
    assert told.items == [A, StreamError(ONE), B, StreamError(TWO)]


def test_items_and_errors_are_kept_apart() -> None:
    clock = Clock()
    streams = LiveStreams(clock, by_hand=True)
    bus = EffectBus(clock)

    def source(_: Effect) -> Generator[Any, None, Outcome]:
        yield from (A, ONE, B, StreamError(TWO))
        return DONE

    bus.register(KEY, SourceHandler(clock, streams, source))
    bus.dispatch(EffectKind.COMPLETION, KEY, {}, scope="s", on_landed=lambda _: None)
    streams.step()
    streamed = streams.streamed(0)
    assert streamed is not None
    assert (streamed.items, streamed.count, streamed.error) == ([A, B], 4, ONE)
    assert streamed.errors == [(1, ONE), (3, TWO)]


def test_a_failing_end_after_an_error_is_one_more_error_and_changes_nothing() -> None:
    told = stream(A, ONE, outcome=Outcome(Status.FAILED, TWO))
    assert (told.errors, told.outcome, told.items) == ([(1, ONE), (2, TWO)], (3_000, FAILED), [A, ONE, TWO])


def test_an_end_that_repeats_the_error_adds_none() -> None:
    told = stream(A, ONE, outcome=FAILED)
    assert (told.errors, told.outcome, told.items) == ([(1, ONE)], (3_000, FAILED), [A, ONE])


def test_a_failing_end_alone_is_told_as_the_last_item_and_read_in_the_outcome() -> None:
    told = stream(A, outcome=FAILED)
    assert (told.errors, told.outcome, told.items) == ([(1, ONE)], (2_000, FAILED), [A])
    assert told.batches == [(0, (A,)), (1, (ONE,))]


def test_a_reply_in_one_piece_comes_to_its_first_error_and_shows_none() -> None:
    told = stream(A, ONE, B, TWO, live=False)
    assert told == Told((2_000, FAILED), [], [], [])
    assert stream(A, B, live=False).outcome == (3_000, Outcome(Status.OK, [A, B]))


def test_what_is_no_error() -> None:
    assert [error_in(item) for item in (A, "text", {"report": ONE}, None)] == [None] * 4
    assert error_in(StreamError(ONE)) is ONE


Session = tuple[list[Any], list[tuple[int, Report]], Outcome | None]


def session(recorder: Recorder, outcome: Outcome, *items: Any, streamed: bool = True) -> Session:
    """What the asker of one recorded effect is told, the errors that are known of it, and its outcome."""
    clock = Clock()
    bus = recorder.open(clock)
    streams = LiveStreams(recorder.clock)

    def source(_: Effect) -> Generator[Any, None, Outcome]:
        yield from items
        return outcome

    bus.register(KEY, SourceHandler(recorder.clock, streams, source, streamed=lambda _: streamed))
    told: list[Any] = []
    effect = bus.dispatch(EffectKind.COMPLETION, KEY, {}, scope="s", on_item=told.append, on_landed=lambda _: None)
    clock.run()
    known = streams.streamed(effect.id)
    return told, [] if known is None else known.errors, effect.outcome


def log_of(recorder: Recorder) -> EffectLog:
    (record,) = [loads(dumps(each.to_dict())) for each in recorder.records(RunPlain())]
    return EffectLog({"deliveries": batches_of(recorder.deliveries)}, [EffectRecord.from_dict(record, "records[0]", 0)])


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize(
    ("outcome", "items", "told", "errors"),
    [
        (DONE, (A, ONE, B, StreamError(TWO)), (A, ONE, B, StreamError(TWO)), [(1, ONE), (3, TWO)]),
        (Outcome(Status.FAILED, TWO), (A, ONE), (A, ONE, TWO), [(1, ONE), (2, TWO)]),
        (FAILED, (A, B), (A, B), [(2, ONE)]),
    ],
)
def test_a_log_keeps_the_errors_among_its_items_and_a_replay_makes_the_same_list_of_them(
    outcome: Outcome, items: tuple[Any, ...], told: tuple[Any, ...], errors: list[tuple[int, Report]], visible: bool
) -> None:
    recorder = Recorder()
    assert session(recorder, outcome, *items) == (list(told), errors, FAILED)
    log = log_of(recorder)
    replay = Replay(log, RunPlain(), visible=visible)
    assert session(replay.recorder, outcome) == (list(told), errors, FAILED)
    replay.finish()


@pytest.mark.parametrize("visible", [True, False])
def test_a_log_of_a_folded_reply_has_none_and_a_replay_adds_none(visible: bool) -> None:
    recorder = Recorder()
    assert session(recorder, DONE, A, ONE, B, TWO, streamed=False) == ([], [], FAILED)
    log = log_of(recorder)
    assert (log.records[0].items, log.records[0].value) == ([], {"report": ONE.to_dict()})
    replay = Replay(log, RunPlain(), visible=visible)
    assert session(replay.recorder, DONE, streamed=False) == ([], [], FAILED)
    replay.finish()


def test_an_error_by_itself_comes_back_from_plain_data() -> None:
    assert RunPlain().item_of(RunPlain().item(ONE)) == ONE
