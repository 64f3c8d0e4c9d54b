"""Random streams: pinned draws, one component's independence of another, and the ranges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.sim.kernel.streams import Stream, Streams


def test_the_draws_of_a_seed_and_a_name_are_these_for_ever() -> None:
    stream = Stream(7, "tool/book_table")
    assert [stream.u64() for _ in range(3)] == [16550399378889423236, 9778678322743710963, 16919359166312038231]
    assert Stream(7, "tool/book_table").unit() == 0.8971989481047328
    assert [Stream(7, f"tool/{name}").below(6) for name in "abcdefgh"] == [2, 3, 1, 5, 3, 1, 1, 5]


def test_another_name_or_another_seed_is_another_stream() -> None:
    first = {Stream(seed, name).u64() for seed in range(20) for name in ("caller", "llm", "tts")}
    assert len(first) == 60


def test_a_new_component_leaves_the_draws_of_the_others_alone() -> None:
    alone = Streams(3)
    expected = [alone.stream("caller").u64() for _ in range(5)]
    shared = Streams(3)
    drawn = []
    for number in range(5):
        shared.stream("filler").u64()
        shared.stream(f"tool/{number}").below(9)
        drawn.append(shared.stream("caller").u64())
    assert drawn == expected


def test_a_name_is_one_stream_of_the_session() -> None:
    streams = Streams(3)
    assert streams.stream("caller") is streams.stream("caller")
    assert streams.stream("caller") is not streams.stream("llm")


def test_a_stream_counts_its_draws() -> None:
    stream = Stream(1, "x")
    stream.u64(), stream.below(3), stream.unit()
    assert (stream.name, stream.drawn) == ("x", 3)


@settings(deadline=None)
@given(st.integers(), st.text(), st.integers(1, 2**40))
def test_below_stays_below_and_unit_stays_inside(seed: int, name: str, bound: int) -> None:
    stream = Stream(seed, name)
    assert all(0 <= stream.below(bound) < bound for _ in range(5))
    assert all(0.0 < stream.unit() < 1.0 for _ in range(5))


def test_below_reaches_each_number_about_as_often_as_another() -> None:
    stream = Stream(1, "dice")
    counts = [0] * 6
    for _ in range(6_000):
        counts[stream.below(6)] += 1
    assert max(counts) - min(counts) < 150


@pytest.mark.parametrize("bound", [0, -3])
def test_below_takes_a_positive_bound(bound: int) -> None:
    with pytest.raises(ValueError, match=rf"^below\(\) takes a positive bound, not {bound}$"):
        Stream(1, "x").below(bound)


@pytest.mark.parametrize("u64", [0, 2**64 - 1])
def test_unit_is_inside_at_both_ends_of_a_draw(monkeypatch: pytest.MonkeyPatch, u64: int) -> None:
    monkeypatch.setattr(Stream, "u64", lambda self: u64)
    assert 0.0 < Stream(1, "x").unit() < 1.0
