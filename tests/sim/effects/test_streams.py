"""Live delivery: fair, bounded collection, and observers that all see the same batches at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest

from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.reports import Report, ReportKind, failed
from bargein.sim.effects.sources import Pause, PushHandler, Source, SourceHandler
from bargein.sim.effects.streams import Batch, LiveStreams
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Limits, Order
from bargein.sim.kernel.errors import EventStorm, VoidRun

KEY = "agent/model:default"
DONE = Outcome(Status.OK, "done")
Reply = Generator[Any, None, Outcome]


def says(*steps: Any, outcome: Outcome = DONE) -> Source:
    """A source of these items and pauses."""

    def source(_: Effect) -> Reply:
        yield from steps
        return outcome

    return source


class Studio:
    """A clock, a bus with streams, and notes of what is told and what lands."""

    def __init__(self, **streams: Any) -> None:
        self.clock = Clock(limits=Limits(same_instant=2_000))
        self.bus = EffectBus(self.clock)
        self.streams = LiveStreams(self.clock, **streams)
        self.notes: list[tuple[Any, ...]] = []

    def serve(self, source: Source, key: str = KEY, **more: Any) -> None:
        self.bus.register(key, SourceHandler(self.clock, self.streams, source, **more))

    def ask(self, key: str = KEY, payload: Any = None) -> Effect:
        return self.bus.dispatch(
            EffectKind.COMPLETION,
            key,
            payload,
            scope="t1",
            on_item=lambda item: self.notes.append((self.clock.now, "item", item)),
            on_landed=lambda effect: self.notes.append((self.clock.now, "landed", effect.id, effect.outcome)),
        )

    def observe(self) -> list[tuple[int, int, int, tuple[Any, ...]]]:
        """What an observer is told: instant, effect, start and items."""
        seen: list[tuple[int, int, int, tuple[Any, ...]]] = []
        self.streams.observe(lambda batch: seen.append((self.clock.now, batch.id, batch.start, batch.items)))
        return seen


# -- what is told -----------------------------------------------------------------------------------------------


def test_each_batch_is_told_with_its_effect_and_the_number_of_items_before_it() -> None:
    studio = Studio()
    studio.serve(says(Pause(100), 1, 2, 3, Pause(200), 4, 5))
    seen = studio.observe()
    effect = studio.ask()
    batches: list[Batch] = []
    studio.streams.observe(batches.append)
    studio.clock.run()
    assert seen == [(100, 0, 0, (1, 2, 3)), (300, 0, 3, (4, 5))]
    assert all(batch.effect is effect for batch in batches)


def test_a_retry_is_an_attempt_of_its_own_and_counts_from_nothing() -> None:
    studio = Studio()
    down = failed(ReportKind.PROVIDER_RESPONSE, "503")
    attempts = iter([says("a", "b", outcome=down), says("c")])
    studio.serve(lambda effect: next(attempts)(effect))
    seen = studio.observe()
    studio.ask()
    studio.clock.run()
    studio.ask()
    studio.clock.run()
    assert seen == [(0, 0, 0, ("a", "b", down.value)), (0, 1, 0, ("c",))]


def test_what_was_accumulated_holds_a_batch_before_it_is_told_and_the_outcome_comes_after() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(5), "b"))
    effect = studio.ask()

    def observe(batch: Batch) -> None:
        streamed = studio.streams.streamed(batch.id)
        assert streamed is not None
        studio.notes.append(("told", batch.items, list(streamed.items), streamed.count, effect.outcome, effect.items))

    studio.streams.observe(observe)
    studio.clock.run()
    assert studio.notes == [
        ("told", ("a",), ["a"], 1, None, 0),
        (0, "item", "a"),
        ("told", ("b",), ["a", "b"], 2, None, 1),
        (5, "item", "b"),
        (5, "landed", 0, DONE),
    ]


@pytest.mark.parametrize(
    "outcome", [failed(ReportKind.OTHER, "broken"), Outcome(Status.FAILED, "broken"), Outcome(Status.CRASHED, "broken")]
)
def test_an_error_is_the_last_item_and_only_observers_see_it_as_one(outcome: Outcome) -> None:
    studio = Studio()
    studio.serve(says("a", outcome=outcome))
    seen = studio.observe()
    studio.ask()
    studio.clock.run()
    kind = ReportKind.INTERNAL if outcome.status is Status.CRASHED else ReportKind.OTHER
    assert seen == [(0, 0, 0, ("a", Report(kind, "broken")))]
    assert studio.notes == [(0, "item", "a"), (0, "landed", 0, outcome)]
    streamed = studio.streams.streamed(0)
    assert streamed is not None
    assert (streamed.items, streamed.count, streamed.error) == (["a"], 2, Report(kind, "broken"))


def test_neither_an_end_nor_a_cancellation_is_told_as_an_item() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(10), "never"))
    studio.serve(says(), "agent/model:silent")
    studio.serve(says(outcome=Outcome(Status.CANCELLED, Cause.DISCARDED)), "agent/model:drops")
    seen = studio.observe()
    effect = studio.ask()
    studio.ask("agent/model:silent")
    studio.ask("agent/model:drops")
    studio.clock.call_in(5, Order.INTERRUPTION, effect.cancel, Cause.BARGE_IN)
    studio.clock.run()
    assert seen == [(0, 0, 0, ("a",))]
    assert not studio.clock.busy


def test_a_reply_in_one_piece_over_a_streaming_source_is_told_to_nobody() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(10), "b"), streamed=lambda effect: effect.payload == "stream", fold="".join)
    seen = studio.observe()
    studio.ask(payload="unary")
    studio.clock.run()
    assert seen == []
    assert studio.notes == [(10, "landed", 0, Outcome(Status.OK, "ab"))]
    assert studio.streams.streamed(0) is None
    assert studio.streams.open_streams == ()


def test_a_reply_in_one_piece_that_fails_or_crashes_is_told_as_an_outcome_only() -> None:
    def crashes(_: Effect) -> Reply:
        yield "a"
        raise ZeroDivisionError("by zero")

    studio = Studio()
    studio.serve(says("a", outcome=failed(ReportKind.OTHER, "down")), streamed=lambda _: False)
    studio.serve(crashes, "agent/model:crashes", streamed=lambda _: False)
    seen = studio.observe()
    studio.ask()
    studio.ask("agent/model:crashes")
    studio.clock.run()
    assert seen == []
    assert studio.notes == [
        (0, "landed", 0, failed(ReportKind.OTHER, "down")),
        (0, "landed", 1, Outcome(Status.CRASHED, "ZeroDivisionError: by zero")),
    ]


@pytest.mark.parametrize("keep", [0, 256])
@pytest.mark.parametrize("recorded", [False, True])
def test_neither_recording_nor_keeping_decides_what_is_told(keep: int, recorded: bool) -> None:
    clock = Clock()
    bus = Recorder().open(clock) if recorded else EffectBus(clock)
    streams = LiveStreams(clock, keep=keep)
    bus.register(KEY, SourceHandler(clock, streams, says("a", "b", Pause(7), "c")))
    seen: list[Any] = []
    streams.observe(lambda batch: seen.append((clock.now, batch.start, batch.items)))
    bus.dispatch(EffectKind.COMPLETION, KEY, None, scope="t1", on_landed=lambda _: None)
    clock.run()
    assert seen == [(0, 0, ("a", "b")), (7, 2, ("c",))]


def test_a_batch_belongs_to_whoever_was_told_and_never_changes() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(1), "b"))
    batches: list[Batch] = []
    studio.streams.observe(batches.append)
    studio.ask()
    studio.clock.run()
    assert [batch.items for batch in batches] == [("a",), ("b",)]
    assert type(batches[0].items) is tuple


def test_only_so_many_ended_streams_are_kept_and_the_oldest_go_first() -> None:
    studio = Studio(keep=2)
    studio.serve(says("a"))
    for _ in range(4):
        studio.ask()
        studio.clock.run()
    assert [studio.streams.streamed(id) is not None for id in range(4)] == [False, False, True, True]


# -- observers --------------------------------------------------------------------------------------------------


def test_several_observers_are_told_the_same_batch() -> None:
    studio = Studio()
    studio.serve(says("a", "b"))
    seen: dict[str, list[Batch]] = {"one": [], "other": []}
    for batches in seen.values():
        studio.streams.observe(batches.append)
    studio.ask()
    studio.clock.run()
    assert len(seen["one"]) == 1
    assert seen["one"][0] is seen["other"][0]


def test_one_that_comes_late_is_told_what_follows_and_reads_what_was() -> None:
    studio = Studio()
    studio.serve(says("a", "b", "c", Pause(10), "d"))
    studio.ask()
    studio.clock.run(5)
    streamed = studio.streams.streamed(0)
    assert streamed is not None
    assert streamed.items == ["a", "b", "c"]
    seen = studio.observe()
    studio.clock.run()
    assert seen == [(10, 0, 3, ("d",))]


def test_one_that_was_closed_is_told_nothing_more_until_it_is_attached_again() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(10), "b", Pause(10), "c"))
    seen: list[Any] = []
    observation = studio.streams.observe(lambda batch: seen.append(batch.items))
    studio.ask()
    studio.clock.run(5)
    observation.close()
    observation.close()
    studio.clock.run(15)
    studio.streams.observe(lambda batch: seen.append(batch.items))
    studio.clock.run()
    assert seen == [("a",), ("c",)]


def test_one_that_closes_another_during_a_batch_has_it_told_no_more() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(1), "b"))
    seen: list[Any] = []
    studio.streams.observe(lambda _: other.close())
    other = studio.streams.observe(lambda batch: seen.append(batch.items))
    studio.ask()
    studio.clock.run()
    assert seen == []


def test_an_observer_that_ends_an_effect_leaves_the_others_its_batch_and_its_siblings_theirs() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(10), "never"))
    studio.serve(says("b", Pause(10), "never"), "agent/model:other")
    effects: list[Effect] = []

    def ends_both(batch: Batch) -> None:
        for effect in effects:
            effect.cancel(Cause.DISCARDED)

    studio.streams.observe(ends_both)
    seen = studio.observe()
    effects += [studio.ask(), studio.ask("agent/model:other")]
    studio.clock.run()
    assert seen == [(0, 0, 0, ("a",)), (0, 1, 0, ("b",))]
    assert [note[1:3] for note in studio.notes] == [("landed", 0), ("landed", 1)]
    assert studio.streams.open_streams == ()
    assert not studio.clock.busy


def _waits_in_a_generator(_: Batch) -> Any:
    yield


async def _waits_in_a_coroutine(_: Batch) -> None:
    return None


@pytest.mark.parametrize("kind", ["generator", "coroutine", "event", "step"])
def test_an_observer_that_wants_to_wait_voids_the_run(kind: str) -> None:
    studio = Studio()
    studio.serve(says("a"))
    observers: dict[str, Callable[[Batch], Any]] = {
        "generator": _waits_in_a_generator,
        "coroutine": _waits_in_a_coroutine,
        "event": lambda _: studio.clock.timeout(1),
        "step": lambda _: studio.streams.step(),
    }
    studio.streams.observe(observers[kind])
    studio.ask()
    with pytest.raises(VoidRun, match="an observer"):
        studio.clock.run()


# -- steps ------------------------------------------------------------------------------------------------------


def busy(studio: Studio, streams: int, items: int) -> list[list[tuple[int, int]]]:
    """So many streams with so many ready items each; for each step, the effects told of and their items."""
    for number in range(streams):
        studio.serve(says(*range(items)), f"agent/model:{number}", capacity=items)
    steps: list[list[tuple[int, int]]] = []
    step = studio.streams.step

    studio.streams.observe(lambda batch: steps[-1].append((batch.id, len(batch.items))))
    for number in range(streams):
        studio.ask(f"agent/model:{number}")
    while True:
        steps.append([])
        if not step():
            return steps


def test_a_step_takes_at_most_64_items_of_one_stream() -> None:
    steps = busy(Studio(by_hand=True), 1, 1_000)
    assert steps == [[(0, 64)]] * 15 + [[(0, 40)]]


def test_a_step_takes_at_most_4096_items_in_all() -> None:
    steps = busy(Studio(by_hand=True), 100, 64)
    assert [sum(count for _, count in step) for step in steps[:2]] == [4_096, 2_304]
    assert steps[0] == [(id, 64) for id in range(64)]


def test_the_next_step_goes_on_after_the_last_stream_served_and_wraps_once() -> None:
    steps = busy(Studio(by_hand=True), 65, 1_000)
    assert [id for id, _ in steps[0]] == list(range(64))
    assert [id for id, _ in steps[1]] == [64, *range(63)]
    assert [id for id, _ in steps[2]] == [63, 64, *range(62)]
    told = [sum(count for step in steps for id, count in step if id == each) for each in range(65)]
    assert told == [1_000] * 65


def test_an_empty_queue_costs_one_look_and_ends_the_streams_turn() -> None:
    studio = Studio(by_hand=True)
    waiting = 4_096 - 64
    studio.serve(says(Pause(None)), "agent/model:idle")
    studio.serve(says(*range(65)), capacity=100)
    seen = studio.observe()
    for _ in range(waiting + 1):
        studio.ask("agent/model:idle")
    studio.ask()
    assert studio.streams.step()
    assert [len(items) for *_, items in seen] == [63]  # 4,033 looks into empty queues, and 63 are left


def test_steps_follow_on_one_instant_until_nothing_is_left() -> None:
    studio = Studio()
    studio.serve(says(*range(150), Pause(5), "last"), capacity=200)
    seen = studio.observe()
    studio.ask()
    studio.clock.run()
    assert [(at_us, start, len(items)) for at_us, _, start, items in seen] == [
        (0, 0, 64),
        (0, 64, 64),
        (0, 128, 22),
        (5, 150, 1),
    ]
    assert studio.notes[-1] == (5, "landed", 0, DONE)


def test_a_session_driven_by_hand_sees_nothing_until_it_steps() -> None:
    studio = Studio(by_hand=True)
    studio.serve(says("a", "b"))
    seen = studio.observe()
    effect = studio.ask()
    studio.clock.run()
    assert (seen, effect.outcome) == ([], None)
    assert not studio.streams.step()
    assert (seen, effect.outcome) == ([(0, 0, 0, ("a", "b"))], DONE)


def test_the_outcome_waits_until_every_item_was_told() -> None:
    studio = Studio(by_hand=True)
    studio.serve(says(*range(65)), capacity=100)
    effect = studio.ask()
    assert studio.streams.step()
    assert (effect.items, effect.outcome) == (64, None)
    assert not studio.streams.step()
    assert (effect.items, effect.outcome) == (65, DONE)


# -- sources ----------------------------------------------------------------------------------------------------


def counting(drawn: list[int], items: int) -> Source:
    def source(_: Effect) -> Reply:
        for number in range(items):
            drawn.append(number)
            yield number
        return DONE

    return source


@pytest.mark.parametrize(("capacity", "slots"), [(0, 1), (-3, 1), (1, 1), (5, 5)])
def test_a_source_is_at_most_its_queue_and_one_item_ahead(capacity: int, slots: int) -> None:
    studio = Studio(by_hand=True)
    drawn: list[int] = []
    studio.serve(counting(drawn, 100), capacity=capacity)
    effect = studio.ask()
    ahead = [len(drawn)]
    while studio.streams.step():
        ahead.append(len(drawn) - effect.items)
    assert ahead[0] == slots + 1
    assert max(ahead) == slots + 1
    assert (effect.items, effect.outcome) == (100, DONE)


def test_an_endless_source_without_a_pause_is_reported_and_not_waited_for() -> None:
    def endless(_: Effect) -> Reply:
        while True:
            yield "more"

    studio = Studio()
    studio.serve(endless)
    studio.ask()
    with pytest.raises(EventStorm):
        studio.clock.run()


def test_what_comes_in_on_the_instant_of_an_interruption_is_told_before_it() -> None:
    for at_us, told in ((9, ()), (10, ("a",))):
        studio = Studio()
        studio.serve(says(Pause(10), "a", Pause(10), "b"))
        seen = studio.observe()
        effect = studio.ask()
        studio.clock.call_at(at_us, Order.INTERRUPTION, effect.cancel, Cause.BARGE_IN)
        studio.clock.run()
        assert [items for *_, items in seen] == ([told] if told else [])
        assert effect.outcome == Outcome(Status.CANCELLED, Cause.BARGE_IN)


@pytest.mark.parametrize("situation", ["setting up", "folding", "blocked"])
def test_cancelling_closes_the_source_wherever_it_stands(situation: str) -> None:
    closed: list[str] = []

    def source(_: Effect) -> Reply:
        try:
            if situation == "setting up":
                yield Pause(1_000)
            while True:
                yield "item"
                if situation == "folding":
                    yield Pause(1_000)
        finally:
            closed.append(situation)

    studio = Studio(by_hand=True)
    studio.serve(source, capacity=2, streamed=lambda _: situation != "folding")
    seen = studio.observe()
    effect = studio.ask()
    assert effect.cancel(Cause.HANG_UP)
    assert closed == [situation]
    assert not studio.streams.step()
    assert (seen, studio.streams.open_streams) == ([], ())
    studio.clock.run()
    assert not studio.clock.busy
    assert studio.notes == [(0, "landed", 0, Outcome(Status.CANCELLED, Cause.HANG_UP))]


def test_a_source_that_is_cancelled_while_it_acts_changes_nothing_afterwards() -> None:
    def source(effect: Effect) -> Reply:
        yield Pause(10)
        effect.cancel(Cause.REPLACED)
        yield "late"
        return DONE

    studio = Studio()
    studio.serve(source)
    seen = studio.observe()
    effect = studio.ask()
    studio.clock.run()
    assert (seen, effect.items, effect.outcome) == ([], 0, Outcome(Status.CANCELLED, Cause.REPLACED))


def test_a_source_that_raises_is_a_recorded_failure() -> None:
    def source(_: Effect) -> Reply:
        yield "a"
        raise ValueError("lost the thread")

    studio = Studio()
    studio.serve(source)
    seen = studio.observe()
    effect = studio.ask()
    studio.clock.run()
    report = Report(ReportKind.INTERNAL, "ValueError: lost the thread")
    assert [items for *_, items in seen] == [("a", report)]
    assert effect.outcome == Outcome(Status.CRASHED, "ValueError: lost the thread")


def test_a_stream_holds_its_serial_key_until_its_reply_has_ended() -> None:
    studio = Studio()
    bus = LayeredBus(studio.bus)
    bus.serve(KEY, SourceHandler(studio.clock, studio.streams, says("a", Pause(10), "b")), serial=True)
    seen = studio.observe()
    for _ in range(2):
        bus.dispatch(EffectKind.COMPLETION, KEY, None, scope="t1", on_landed=lambda _: None)
    studio.clock.run()
    assert [(at_us, id, items) for at_us, id, _, items in seen] == [
        (0, 0, ("a",)),
        (10, 0, ("b",)),
        (10, 1, ("a",)),
        (20, 1, ("b",)),
    ]


def test_nothing_runs_or_waits_once_the_reply_has_ended() -> None:
    studio = Studio()
    studio.serve(says("a", Pause(10), "b"))
    studio.ask()
    studio.clock.run()
    assert studio.streams.open_streams == ()
    assert (studio.bus.running, studio.clock.busy, studio.clock.tasks) == (0, False, {})


# -- handlers that push -----------------------------------------------------------------------------------------


class Pushing:
    """Delivers at its instants and lands at the last, and is told when it is stopped."""

    def __init__(self, clock: Clock, items: Iterable[tuple[int, Any]], end_us: int, late: bool = False) -> None:
        self.clock, self.items, self.end_us, self.late = clock, list(items), end_us, late
        self.stopped: list[Cause] = []

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        for at_us, item in self.items:
            self.clock.call_in(at_us, Order.DELIVERY, effect.deliver, item)
        self.clock.call_in(self.end_us, Order.DELIVERY, effect.land, Outcome(Status.OK, effect.payload))
        if self.late:
            self.clock.call_in(self.end_us + 1, Order.DELIVERY, effect.deliver, "late")
            self.clock.call_in(self.end_us + 1, Order.DELIVERY, effect.land, Outcome(Status.FAILED, "late"))
        return self.stopped.append


def test_what_a_handler_pushes_on_one_instant_is_one_batch() -> None:
    studio = Studio()
    handler = Pushing(studio.clock, [(5, "a"), (5, "b"), (9, "c")], 9)
    studio.bus.register(KEY, PushHandler(studio.clock, studio.streams, handler))
    seen = studio.observe()
    studio.ask(payload="echo")
    studio.clock.run()
    assert seen == [(5, 0, 0, ("a", "b")), (9, 0, 2, ("c",))]
    assert studio.notes[-1] == (9, "landed", 0, Outcome(Status.OK, "echo"))


def test_what_a_handler_pushes_past_its_end_is_not_read() -> None:
    studio = Studio()
    handler = Pushing(studio.clock, [(5, "a")], 9, late=True)
    studio.bus.register(KEY, PushHandler(studio.clock, studio.streams, handler))
    seen = studio.observe()
    effect = studio.ask()
    studio.clock.run()
    assert seen == [(5, 0, 0, ("a",))]
    assert (effect.items, effect.outcome) == (1, Outcome(Status.OK))


def test_a_cancellation_reaches_the_handler_that_pushes_and_what_it_does_later_counts_for_nothing() -> None:
    studio = Studio()
    handler = Pushing(studio.clock, [(5, "a"), (8, "b")], 9)
    studio.bus.register(KEY, PushHandler(studio.clock, studio.streams, handler))
    seen = studio.observe()
    effect = studio.ask()
    studio.clock.call_at(7, Order.INTERRUPTION, effect.cancel, Cause.BARGE_IN)
    studio.clock.run()
    assert handler.stopped == [Cause.BARGE_IN]
    assert seen == [(5, 0, 0, ("a",))]
    assert effect.outcome == Outcome(Status.CANCELLED, Cause.BARGE_IN)
