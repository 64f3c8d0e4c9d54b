"""How a scripted response streams: its pieces, and the instant of each."""

from __future__ import annotations

from dataclasses import dataclass
from json import loads
from typing import Any

import pytest

from bargein.models.llm_stream import Playback, call_deltas, text_deltas
from bargein.pipelines.agent.deltas import CallDelta, Delta, StreamEnd, TextDelta
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order


@dataclass
class Call:
    tool: str
    args: Any = None
    raw: str | None = None
    id: str | None = None


@pytest.mark.parametrize(
    ("words", "pieces"),
    [
        (1, ["Let", " me", " look", " that", " up."]),
        (2, ["Let me", " look that", " up."]),
        (9, ["Let me look that up."]),
    ],
)
def test_text_comes_some_words_at_a_time(words: int, pieces: list[str]) -> None:
    assert list(text_deltas("Let me look that up.", words)) == [TextDelta(piece) for piece in pieces]
    assert text_deltas("", words) == ()


BOOK = Call("book", {"day": "friday", "people": 2})
TEXT = '{"day":"friday","people":2}'


def test_a_whole_call_is_one_fragment() -> None:
    assert call_deltas([BOOK, Call("look", {}, id="mine")], 3, "whole") == [
        [CallDelta(0, "call_3", "book", TEXT)],
        [CallDelta(1, "mine", "look", "{}")],
    ]


def test_a_call_in_pieces_names_itself_on_the_first() -> None:
    assert call_deltas([BOOK], 0, 10) == [
        [CallDelta(0, "call_0", "book", '{"day":"fr')],
        [CallDelta(0, arguments='iday","peo')],
        [CallDelta(0, arguments='ple":2}')],
    ]


def test_interleaved_calls_take_turns_and_the_longer_one_ends_alone() -> None:
    mixed = call_deltas([BOOK, Call("look", {"id": "A-17"})], 0, "interleaved")
    assert [delta.index for (delta,) in mixed] == [0, 1, 0, 1, 0, 0]
    joined = {at: "".join(delta.arguments for (delta,) in mixed if delta.index == at) for at in (0, 1)}
    assert {at: loads(text) for at, text in joined.items()} == {0: BOOK.args, 1: {"id": "A-17"}}


@pytest.mark.parametrize("fragments", ["whole", "interleaved", 1])
def test_raw_arguments_are_sent_as_they_are_and_empty_ones_still_name_the_call(fragments: str | int) -> None:
    broken = call_deltas([Call("book", raw='{"day":')], 0, fragments)
    assert "".join(delta.arguments for (delta,) in broken) == '{"day":'
    assert call_deltas([Call("book", raw="")], 0, fragments) == [[CallDelta(0, "call_0", "book", "")]]


# -- playback -------------------------------------------------------------------------------------------------------


class Player:
    """Plays deltas into an effect of a bus and writes down what comes out."""

    def __init__(self, deltas: list[Delta], failure: str | None = None) -> None:
        self.clock = Clock()
        self.log: list[tuple[int, object]] = []
        self.deltas = deltas
        self.failure = failure
        bus = EffectBus(self.clock)
        bus.register("model", self)
        self.effect = bus.dispatch(
            EffectKind.COMPLETION,
            "model",
            None,
            scope="t1",
            on_item=lambda item: self.log.append((self.clock.now, item)),
            on_landed=lambda effect: self.log.append((self.clock.now, effect.outcome)),
        )

    def serve(self, effect: Effect) -> Any:
        return Playback(self.clock, effect, self.deltas, 100, 20, StreamEnd("stop"), self.failure).stop


ONE, TWO = TextDelta("One,"), TextDelta(" two.")


def test_the_first_delta_comes_after_its_time_the_next_at_their_distance_and_the_end_with_the_last() -> None:
    player = Player([ONE, TWO])
    player.clock.run()
    assert player.log == [(100, ONE), (120, TWO), (120, StreamEnd("stop")), (120, Outcome(Status.OK))]


def test_an_empty_response_ends_at_its_first_token_time() -> None:
    player = Player([])
    player.clock.run()
    assert player.log == [(100, StreamEnd("stop")), (100, Outcome(Status.OK))]


def test_a_failure_takes_the_place_of_the_end_after_what_was_said() -> None:
    player = Player([ONE, TWO], "overloaded")
    player.clock.run()
    assert player.log == [(100, ONE), (120, TWO), (120, Outcome(Status.FAILED, "overloaded"))]


@pytest.mark.parametrize(("at_us", "heard"), [(99, []), (110, [(100, ONE)]), (119, [(100, ONE)])])
def test_a_cancelled_response_says_nothing_more(at_us: int, heard: list[tuple[int, object]]) -> None:
    player = Player([ONE, TWO])
    player.clock.call_at(
        at_us, Order.INTERRUPTION, lambda _: (player.effect.cancel(Cause.BARGE_IN), player.clock.stop())
    )
    player.clock.run()
    assert player.log == [*heard, (at_us, Outcome(Status.CANCELLED, Cause.BARGE_IN))]
    assert not player.clock.busy


def test_a_delta_on_the_instant_of_the_cancellation_comes_first() -> None:
    player = Player([ONE, TWO])
    player.clock.call_at(100, Order.INTERRUPTION, lambda _: player.effect.cancel(Cause.BARGE_IN))
    player.clock.run()
    assert player.log == [(100, ONE), (100, Outcome(Status.CANCELLED, Cause.BARGE_IN))]
