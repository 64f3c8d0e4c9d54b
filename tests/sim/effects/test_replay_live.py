"""Live observers in a replay: told what they were told, and in policy-visible mode in the same batches."""

from __future__ import annotations

from collections.abc import Callable, Generator
from json import dumps, loads
from typing import Any

import pytest

from bargein.pipelines.agent.answers import StreamError
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.effects.reports import Report, ReportKind, failed
from bargein.sim.effects.sources import Pause, SourceHandler
from bargein.sim.effects.streams import Batch, LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from tests.pipelines.agent.run_kit import BUSY

S = 1_000_000
DONE = Outcome(Status.OK, StreamEnd())
OTHER = Report(ReportKind.OTHER, "again")
Seen = tuple[int, int, int, tuple[Any, ...]]


def words(*said: str) -> list[Any]:
    return [TextDelta(each) for each in said]


class Studio:
    """Sources by name, an observer, and notes of what askers are told."""

    def __init__(self, recorder: Recorder, sources: dict[str, list[Any]], **streams: Any) -> None:
        self.clock = Clock()
        self.bus: EffectBus = recorder.open(self.clock)
        self.streams = LiveStreams(self.clock, **streams)
        self.drawn: list[str] = []
        self.seen: list[Seen] = []
        self.told: list[tuple[int, Any]] = []
        self.landed: list[Effect] = []
        for name, steps in sources.items():
            handler = SourceHandler(recorder.clock, self.streams, self.source(name, steps), streamed=is_streamed)
            self.bus.register(name, handler)
        self.streams.observe(self.note)

    def source(self, name: str, steps: list[Any]) -> Callable[[Effect], Generator[Any, None, Outcome]]:
        def source(_: Effect) -> Generator[Any, None, Outcome]:
            outcome = DONE
            for step in steps:
                self.drawn.append(name)
                if isinstance(step, Outcome):
                    outcome = step
                else:
                    yield step
            return outcome

        return source

    def note(self, batch: Batch) -> None:
        self.seen.append((self.clock.now, batch.id, batch.start, batch.items))

    def ask(self, name: str, *, stream: bool = True) -> Effect:
        return self.bus.dispatch(
            EffectKind.COMPLETION,
            name,
            {"stream": stream},
            scope="t1",
            on_item=lambda item: self.told.append((self.clock.now, item)),
            on_landed=self.landed.append,
        )


def is_streamed(effect: Effect) -> bool:
    return bool(effect.payload["stream"])


def log_of(recorder: Recorder) -> EffectLog:
    records = loads(dumps([each.to_dict() for each in recorder.records(RunPlain())]))
    read = [EffectRecord.from_dict(data, f"records[{at}]", at) for at, data in enumerate(records)]
    return EffectLog({"deliveries": batches_of(recorder.deliveries)}, read)


def played(
    sources: dict[str, list[Any]], go: Callable[[Studio], object], **streams: Any
) -> tuple[Studio, EffectLog, dict[bool, tuple[Studio, EffectLog]]]:
    """What was recorded, and its replays in exchange and in policy-visible mode."""
    recorder = Recorder()
    live = Studio(recorder, sources, **streams)
    go(live)
    live.clock.run()
    log, again = log_of(recorder), {}
    for visible in (False, True):
        replay = Replay(log, RunPlain(), visible=visible)
        studio = Studio(replay.recorder, sources, **streams)
        go(studio)
        studio.clock.run()
        replay.finish()
        assert studio.drawn == []
        again[visible] = studio, log_of(replay.recorder)
    return live, log, again


def items(seen: list[Seen]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for _, id, _, told in seen:
        found.setdefault(id, []).extend(told)
    return found


# -- batches ------------------------------------------------------------------------------------------------------

MANY = words(*(f"w{at}" for at in range(70)))


def test_batches_of_one_instant_are_apart_and_come_again_as_they_were() -> None:
    sources = {"a": [*words("x", "y"), Pause(S), *words("z", "u", "v")], "b": [Pause(S), *MANY]}

    def go(studio: Studio) -> None:
        studio.ask("a")
        studio.ask("b")

    live, log, again = played(sources, go)
    assert log.header["deliveries"] == [
        [0, 0, 2, "", 0],
        [S, 0, 3, "", 0],
        [S, 1, 64, "", 1],
        [S, 0, 0, "land", 1],
        [S, 1, 6, "land", 0],
    ]
    assert [(at, id, start, len(told)) for at, id, start, told in live.seen] == [
        (0, 0, 0, 2),
        (S, 0, 0 + 2, 3),
        (S, 1, 0, 64),
        (S, 1, 64, 6),
    ]
    for visible, (studio, recorded) in again.items():
        assert items(studio.seen) == items(live.seen)
        assert studio.told == live.told
        assert [each.items for each in recorded.records] == [each.items for each in log.records]
        if visible:
            assert studio.seen == live.seen
            assert recorded.header == log.header


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_batch_of_one_and_one_of_three_with_an_error_in_the_middle(by_hand: bool) -> None:
    sources = {"a": [*words("x"), Pause(S), *words("y"), StreamError(BUSY), *words("z")]}

    def go(studio: Studio) -> None:
        studio.ask("a")
        for at_us in (0, S) if by_hand else ():
            studio.clock.call_at(at_us, Order.TIMER, lambda _: studio.streams.step())

    live, log, again = played(sources, go, by_hand=by_hand)
    assert log.header["deliveries"] == [[0, 0, 1, "", 0], [S, 0, 3, "land", 0]]
    assert [each[2:] for each in live.seen] == [
        (0, (TextDelta("x"),)),
        (1, (TextDelta("y"), StreamError(BUSY), TextDelta("z"))),
    ]
    for studio, _ in again.values():
        assert studio.seen == live.seen
        kept = studio.streams.streamed(0)
        assert kept is not None
        assert kept.errors == [(2, BUSY)]
        assert [each.outcome for each in studio.landed] == [Outcome(Status.FAILED, BUSY)]


@pytest.mark.parametrize(
    ("end", "told"), [(failed(ReportKind.OTHER, "broken"), "broken"), (Outcome(Status.LOST, "line"), "line")]
)
def test_what_a_stream_fails_with_is_told_last_and_recorded_as_its_outcome_alone(end: Outcome, told: str) -> None:
    live, log, again = played({"a": [*words("x"), Pause(S), end]}, lambda studio: studio.ask("a"))
    assert log.records[0].items == [{"text": "x"}]
    assert log.header["deliveries"] == [[0, 0, 1, "", 0], [S, 0, 0, "land", 0]]
    for studio, _ in again.values():
        assert studio.seen == live.seen
        assert [item.message for item in studio.seen[-1][3]] == [told]
        assert studio.told == [(0, TextDelta("x"))]


def test_two_errors_are_rebuilt_at_their_places_and_a_folded_reply_has_none() -> None:
    sources = {"a": [*words("x"), StreamError(BUSY), *words("y"), OTHER]}

    def go(studio: Studio) -> None:
        studio.ask("a")
        studio.ask("a", stream=False)

    live, log, again = played(sources, go)
    assert log.header["deliveries"] == [[0, 0, 4, "land", 0], [0, 1, 0, "land", 1]]
    for studio in (live, *(studio for studio, _ in again.values())):
        kept = studio.streams.streamed(0)
        assert kept is not None
        assert kept.errors == [(1, BUSY), (3, OTHER)]
        assert studio.streams.streamed(1) is None
        assert [each.outcome for each in studio.landed] == [Outcome(Status.FAILED, BUSY)] * 2


# -- cancellations ------------------------------------------------------------------------------------------------


def cancels(studio: Studio, id: int, at: int) -> None:
    """An observer that has enough of an effect once so many items have come."""

    def look(batch: Batch) -> None:
        if batch.id == id and batch.start + len(batch.items) >= at and studio.bus.log[id].running:
            studio.bus.log[id].cancel(Cause.DISCARDED)

    studio.streams.observe(look)


def test_a_stream_that_is_cut_is_read_as_far_as_it_was_and_cut_again() -> None:
    ten = [step for word in words(*"abcdefghij") for step in (word, Pause(S))]

    def go(studio: Studio) -> None:
        cancels(studio, 0, 4)
        studio.ask("a")

    live, log, again = played({"a": ten}, go)
    assert [each["text"] for each in log.records[0].items] == list("abcd")
    assert log.header["deliveries"][-2:] == [[3 * S, 0, 1, "", 0], [3 * S, 0, 0, "cancelled"]]
    for studio, recorded in again.values():
        assert studio.seen == live.seen
        assert recorded.records[0].items == log.records[0].items
        assert [each.outcome for each in studio.landed] == [Outcome(Status.CANCELLED, Cause.DISCARDED)]
        assert studio.streams.open_streams == ()


def test_without_who_cut_it_nothing_is_read_beyond_and_no_error_is_made_up() -> None:
    recorder = Recorder()
    live = Studio(recorder, {"a": [step for word in words(*"abcdef") for step in (word, Pause(S))]})
    cancels(live, 0, 4)
    live.ask("a")
    live.clock.run()
    log = log_of(recorder)
    for visible in (False, True):
        replay = Replay(log, RunPlain(), visible=visible)
        studio = Studio(replay.recorder, {"a": []})
        studio.ask("a")
        if visible:
            with pytest.raises(
                ReplayRefused, match=r"effect 0 \(a\) was cancelled at 3000000 us in the recording, and"
            ):
                studio.clock.run()
            assert studio.landed == []
        else:
            studio.clock.run()
            assert [each.outcome for each in studio.landed] == [Outcome(Status.CANCELLED, Cause.DISCARDED)]
        assert items(studio.seen) == {0: words(*"abcd")}
        assert log_of(replay.recorder).records[0].items == log.records[0].items


def test_what_was_taken_with_it_is_told_although_an_observer_cancels_its_effect_meanwhile() -> None:
    sources = {"a": [*words("x"), Pause(None)], "b": [*words("y"), Pause(None)]}

    def go(studio: Studio) -> None:
        studio.streams.observe(lambda batch: studio.bus.log[1].cancel(Cause.DISCARDED) if batch.id == 0 else None)
        studio.ask("a")
        studio.ask("b")
        studio.clock.call_at(S, Order.TIMER, lambda _: studio.bus.log[0].cancel(Cause.HANG_UP))

    live, log, again = played(sources, go)
    assert log.header["deliveries"] == [
        [0, 0, 1, "", 0],
        [0, 1, 1, "", 1],
        [0, 1, 0, "cancelled"],
        [S, 0, 0, "cancelled"],
    ]
    assert live.told == [(0, TextDelta("x"))]
    for studio, _ in again.values():
        assert studio.seen == live.seen
        assert studio.told == live.told


# -- by hand ------------------------------------------------------------------------------------------------------


def test_steps_that_are_taken_by_hand_collect_what_they_collected() -> None:
    def go(studio: Studio) -> None:
        studio.ask("a")
        studio.streams.step()
        for at_us in (S, 3 * S):
            studio.clock.call_at(at_us, Order.TIMER, lambda _: studio.streams.step())

    sources = {"a": [*words("x"), Pause(S), *words("y"), Pause(S), *words("z"), Pause(S)]}
    live, log, again = played(sources, go, by_hand=True)
    assert log.header["deliveries"] == [[0, 0, 1, "", 0], [S, 0, 1, "", 0], [3 * S, 0, 1, "land", 0]]
    for studio, recorded in again.values():
        assert studio.seen == live.seen
        assert recorded.header == log.header


# -- logs that do not know -----------------------------------------------------------------------------------------


def test_a_log_that_was_not_collected_live_tells_observers_in_either_mode() -> None:
    recorder = Recorder()
    clock = Clock()
    bus = recorder.open(clock)

    class Plain:
        def serve(self, effect: Effect) -> None:
            recorder.clock.call_in(0, Order.DELIVERY, effect.deliver, TextDelta("x"))
            recorder.clock.call_in(S, Order.DELIVERY, effect.land, DONE)

    bus.register("a", Plain())
    bus.dispatch(EffectKind.COMPLETION, "a", {"stream": True}, scope="t1", on_landed=lambda _: None)
    clock.run()
    log = log_of(recorder)
    assert log.header["deliveries"] == [[0, 0, 1, ""], [S, 0, 0, "land"]]
    for visible in (False, True):
        replay = Replay(log, RunPlain(), visible=visible)
        studio = Studio(replay.recorder, {"a": []})
        studio.ask("a")
        studio.clock.run()
        replay.finish()
        assert studio.seen == [(0, 0, 0, (TextDelta("x"),))]


def test_another_grouping_is_refused_in_policy_visible_mode() -> None:
    recorder = Recorder()
    live = Studio(recorder, {"a": [*words("x", "y"), Pause(S)]})
    live.ask("a")
    live.clock.run()
    log = log_of(recorder)
    assert log.header["deliveries"] == [[0, 0, 2, "", 0], [S, 0, 0, "land", 0]]
    log.header["deliveries"][:1] = [[0, 0, 1, "", 0], [0, 0, 1, "", 0]]
    replay = Replay(log, RunPlain(), visible=True)
    studio = Studio(replay.recorder, {"a": []})
    studio.ask("a")
    studio.clock.run()
    replay.finish()
    assert [each[3] for each in studio.seen] == [(each,) for each in words("x", "y")]
    log.header["deliveries"][:2] = [[0, 0, 2, "", 0]]
    replay = Replay(log, RunPlain(), visible=True)
    studio = Studio(replay.recorder, {"a": []})
    studio.ask("a")
    studio.clock.call_at(0, Order.FRAME, lambda _: studio.bus.log[0].deliver(TextDelta("w")))
    studio.clock.run()
    with pytest.raises(ReplayRefused, match="recorded was 2 items of effect 0 at 0 us; now it was 1 item of effect 0"):
        replay.finish()
