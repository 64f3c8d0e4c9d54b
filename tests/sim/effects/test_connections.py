"""Connections: effects that go both ways, beside the others; recorded as they go, and replayed with their ties."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.log import EffectLog, EffectRecord, batches_of
from bargein.sim.effects.playing import ReplayRefused
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.errors import VoidRun

KEY = "agent/live:echo"


class Echo:
    """Says everything back, 10 us later on the instant of its own timers, and ends when it is told "bye"."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.heard: list[Any] = []

    def serve(self, effect: Effect) -> None:
        self.effect = effect
        effect.listen(self.hear)

    def hear(self, said: str) -> None:
        self.heard.append(said)
        if said == "bye":
            self.effect.land(Outcome(Status.OK, "ended"))
        else:
            self.effect.deliver(f"({said})")
            self.clock.call_in(10, Order.DELIVERY, self.effect.deliver, said)


class Plain:
    """What goes over this bus is plain as it is."""

    def request(self, effect: Effect) -> Any:
        return {"asked": effect.payload}

    def item(self, item: Any) -> Any:
        return {"text": item}

    def item_of(self, data: Any) -> Any:
        return data["text"]

    def value(self, outcome: Outcome) -> Any:
        return outcome.value

    def outcome_of(self, status: str, value: Any) -> Outcome:
        return Outcome(Status(status), value)


class Asker:
    """Opens a connection, says "one" at 5 us and, when that comes back, "two" and goodbye."""

    def __init__(self, clock: Clock, bus: EffectBus, says: tuple[tuple[int, str], ...] = ((5, "one"),)) -> None:
        self.clock = clock
        self.seen: list[tuple[int, Any]] = []
        self.effect = bus.connect(
            KEY, "open", scope="session", on_item=self.on_item, on_landed=lambda effect: self.note(effect.outcome)
        )
        for at_us, text in says:
            clock.call_at(at_us, Order.WORK, self.effect.say, text)

    def note(self, what: Any) -> None:
        self.seen.append((self.clock.now, what))

    def on_item(self, item: Any) -> None:
        self.note(item)
        if item == "one":
            self.effect.say("two")  # while the item is being delivered
            self.note("said two")
        elif item == "two":
            self.effect.say("bye")


SEEN = [
    (5, "(one)"),
    (15, "one"),
    (15, "(two)"),
    (15, "said two"),
    (25, "two"),
    (25, Outcome(Status.OK, "ended")),
]


def _log(recorder: Recorder) -> EffectLog:
    header: dict[str, Any] = {"deliveries": batches_of(recorder.deliveries)}
    return EffectLog(header, recorder.records(Plain()), "a.log")


def _recorded() -> tuple[Asker, EffectLog]:
    clock, recorder = Clock(), Recorder()
    bus = recorder.open(clock)
    bus.register(KEY, Echo(recorder.clock))
    asker = Asker(clock, bus)
    clock.run()
    return asker, _log(recorder)


def _again(log: EffectLog, *, visible: bool = True, **options: Any) -> tuple[Asker, Echo, Replay]:
    clock, playing = Clock(), Replay(log, Plain(), visible=visible)
    bus, nobody = playing.recorder.open(clock), Echo(clock)
    bus.register(KEY, nobody)
    asker = Asker(clock, bus, **options)
    clock.run()
    playing.finish()
    return asker, nobody, playing


def test_what_is_said_reaches_the_handler_at_once_and_what_it_delivers_the_asker() -> None:
    clock = Clock()
    bus, echo = EffectBus(clock), Echo(clock)
    bus.register(KEY, echo)
    asker = Asker(clock, bus)
    clock.run()
    assert asker.seen == SEEN
    assert (echo.heard, asker.effect.kind, bus.running) == (["one", "two", "bye"], EffectKind.CUSTOM, 0)
    asker.effect.say("still there?")
    assert echo.heard == ["one", "two", "bye"]


def test_a_connection_takes_no_number_of_those_that_are_dispatched() -> None:
    clock, recorder = Clock(), Recorder()
    bus = recorder.open(clock)
    for key in (KEY, "agent/tool:look#0"):
        bus.register(key, Echo(recorder.clock))
    effects = []
    for asked in ("first", "second"):
        bus.connect(KEY, asked, scope="session", on_item=print, on_landed=print)
        effects.append(bus.dispatch(EffectKind.TOOL_CALL, "agent/tool:look#0", asked, scope="t1", on_landed=print))
    assert [(each.id, each.payload) for each in effects] == [(0, "first"), (1, "second")]
    bus.connections[1].say("hello")
    records = recorder.records(Plain())
    assert [(each.id, each.key, each.request["asked"]) for each in records] == [
        (0, "agent/tool:look#0", "first"),
        (1, "agent/tool:look#0", "second"),
        (2, KEY, "first"),
        (3, KEY, "second"),
    ]
    assert batches_of(recorder.deliveries) == [[0, 3, 2, ""]]


def test_nobody_serves_it() -> None:
    with pytest.raises(VoidRun, match="no handler serves agent/live:echo; served are none"):
        EffectBus(Clock()).connect(KEY, "open", scope="session", on_item=print, on_landed=print)


def test_it_is_recorded_as_it_goes_and_what_was_said_is_an_item() -> None:
    asker, log = _recorded()
    assert asker.seen == SEEN
    (record,) = log.records
    assert record.items == [
        {"said": {"text": "one"}},
        {"text": "(one)"},
        {"text": "one"},
        {"said": {"text": "two"}},
        {"text": "(two)"},
        {"text": "two"},
        {"said": {"text": "bye"}},
    ]
    assert [(step.at_us, step.order, step.does) for step in record.steps] == [
        (0, 0, []),
        (5, 0, ["hear", "item", "item", 2]),
        (15, 1, ["item"]),
        (15, 0, ["hear", "item", "item", 4]),
        (25, 1, ["item"]),
        (25, 0, ["hear", "item", "land"]),
    ]
    assert log.header["deliveries"] == [[5, 0, 2, ""], [15, 0, 3, ""], [25, 0, 2, "land"]]


@pytest.mark.parametrize("visible", [False, True])
def test_a_replay_answers_it_and_asks_nobody(visible: bool) -> None:
    _, log = _recorded()
    asker, nobody, playing = _again(log, visible=visible)
    assert (asker.seen, nobody.heard) == (SEEN, [])
    assert _log(playing.recorder).records == log.records


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize(
    ("says", "told"),
    [
        (((5, "won"),), 'at 5 us: said.text: recorded was "one", found "won"'),
        (((6, "one"),), 'at 6 us: it was told {"text":"one"}; recorded was {"text":"one"} at 5 us'),
        (((5, "one"), (7, "and")), 'at 7 us: it was told {"text":"and"}; recorded was nothing'),
        ((), "at 0 us: what it was told at 5 us was never said"),
    ],
)
def test_what_is_said_otherwise_is_refused_in_both_modes(
    says: tuple[tuple[int, str], ...], told: str, visible: bool
) -> None:
    _, log = _recorded()
    with pytest.raises(ReplayRefused) as problem:
        _again(log, visible=visible, says=says)
    assert problem.value.sentences == (f"effect 0 ({KEY}) {told}",)


@pytest.mark.parametrize(
    ("steps", "sound"),
    [
        ([[0, 0, []], [5, 0, ["hear"]]], True),
        ([[0, 0, []], [5, 0, []]], False),
        ([[0, 0, [1]], [5, 0, ["hear"]]], False),
        ([[0, 0, [1]], [5, 0, ["item", "hear"]]], True),
    ],
)
def test_only_a_step_that_begins_with_hearing_is_timed_by_nobody(steps: list[Any], sound: bool) -> None:
    _, log = _recorded()
    data = {**log.records[0].to_dict(), "items": [], "steps": steps}
    data["items"] = [None] * sum(step[2].count("item") for step in steps)
    if sound:
        assert EffectRecord.from_dict(data, "it", 0).to_dict() == data
    else:
        with pytest.raises(DocumentError, match=r"it\.steps: each step after the first is timed once"):
            EffectRecord.from_dict(data, "it", 0)


def test_hearing_in_the_middle_of_a_step_is_refused() -> None:
    _, log = _recorded()
    log.records[0].steps[2].does.append("hear")
    with pytest.raises(ReplayRefused, match='effect 0 does "hear"; accepted is one of item, land'):
        Replay(log, Plain(), visible=False)
