"""Cancellation tokens: once, downwards, in a written order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bargein.sim.kernel.cancel import CancelToken, Cause


def test_a_token_is_cancelled_once_and_the_first_cause_stands() -> None:
    token = CancelToken("turn 1")
    assert (token.cancelled, token.cause) == (False, None)
    assert token.cancel(Cause.BARGE_IN)
    assert not token.cancel(Cause.HANG_UP)
    assert (token.cancelled, token.cause) == (True, Cause.BARGE_IN)


def test_listeners_are_told_in_the_order_they_came_and_then_the_children_depth_first() -> None:
    told: list[str] = []

    def listener(name: str) -> Callable[[Cause], None]:
        return lambda cause: told.append(f"{name} {cause}")

    turn = CancelToken("turn")
    first = CancelToken("first", turn)
    second = CancelToken("second", turn)
    below = CancelToken("below", first)
    for name, token in (("below", below), ("second", second), ("first", first), ("turn", turn)):
        token.listen(listener(name))
    turn.listen(listener("turn again"))
    turn.cancel(Cause.DEADLINE)
    assert told == ["turn deadline", "turn again deadline", "first deadline", "below deadline", "second deadline"]


def test_a_child_that_is_cancelled_leaves_its_parent_and_siblings_alone() -> None:
    turn = CancelToken("turn")
    first, second = CancelToken("first", turn), CancelToken("second", turn)
    first.cancel(Cause.REPLACED)
    assert (turn.cancelled, second.cancelled) == (False, False)
    turn.cancel(Cause.BARGE_IN)
    assert (first.cause, second.cause) == (Cause.REPLACED, Cause.BARGE_IN)


def test_a_child_of_a_cancelled_token_is_born_cancelled() -> None:
    turn = CancelToken("turn")
    turn.cancel(Cause.HANG_UP)
    assert CancelToken("late", turn).cause is Cause.HANG_UP


def test_who_listens_to_a_cancelled_token_is_told_at_once() -> None:
    token = CancelToken("turn")
    token.cancel(Cause.HANG_UP)
    told: list[Cause] = []
    token.forget(token.listen(told.append))
    assert told == [Cause.HANG_UP]


def test_a_listener_that_was_taken_back_is_not_told_and_the_others_are() -> None:
    token = CancelToken("turn")
    told: list[str] = []
    numbers = [token.listen(lambda _, name=name: told.append(name)) for name in "abc"]
    assert len(set(numbers)) == 3
    token.forget(numbers[0])
    token.forget(numbers[0])
    again = token.listen(lambda _: told.append("d"))
    assert again not in numbers[1:]
    token.cancel(Cause.BARGE_IN)
    token.forget(numbers[1])
    assert sorted(told) == ["b", "c", "d"]


def test_a_listener_may_take_back_another_that_has_not_been_told_yet() -> None:
    token = CancelToken("turn")
    told: list[str] = []
    token.listen(lambda _: token.forget(second))
    second = token.listen(lambda _: told.append("second"))
    token.listen(lambda _: told.append("third"))
    token.cancel(Cause.BARGE_IN)
    assert told == ["third"]


def test_a_listener_that_cancels_again_changes_nothing() -> None:
    token = CancelToken("turn")
    told: list[Cause] = []
    token.listen(lambda _: token.cancel(Cause.HANG_UP))
    token.listen(told.append)
    token.cancel(Cause.BARGE_IN)
    assert (told, token.cause) == ([Cause.BARGE_IN], Cause.BARGE_IN)


def test_the_set_of_causes_is_closed() -> None:
    assert [str(cause) for cause in Cause] == ["barge_in", "hang_up", "deadline", "replaced", "discarded"]
    with pytest.raises(ValueError, match="is not a valid Cause"):
        Cause("boredom")
