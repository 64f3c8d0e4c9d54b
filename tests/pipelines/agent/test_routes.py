"""Routes: a choice is honoured in the round in which it is made, and stays until another replaces it."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.messages import assistant
from bargein.pipelines.agent.routes import ByRound, ModelRoute, Routes
from bargein.sim.effects.bus import Outcome, Status
from tests.pipelines.agent.small_run import MODEL, Desk, Select, calls

FAST, LATE = "golden/model:fast", "golden/model:late"
DECLARED = Routes(MODEL, {"fast": FAST})


def keys(routes: Routes, select: Select | None) -> list[str]:
    """The keys to which the completions of a run of three rounds went."""
    desk = Desk(calls("add"), calls("add"), assistant("Done."))
    desk.serve("golden/tool:add#0", [Outcome(Status.OK, "1")] * 2)
    for key in (FAST, LATE):
        desk.bus.serve(key, desk.model)  # whichever is asked gives the next answer of the run
    desk.run(routes=routes, select=select)
    return [each.key for each in desk.log if each.kind == "completion"]


def test_without_a_choice_every_round_goes_to_the_agents_own_model() -> None:
    assert keys(DECLARED, None) == [MODEL, MODEL, MODEL]


def test_a_choice_stays_for_the_rounds_that_follow() -> None:
    assert keys(DECLARED, ByRound("fast", first=2)) == [MODEL, FAST, FAST]


def test_a_choice_for_one_round_puts_the_default_back_on_the_next() -> None:
    assert keys(DECLARED, ByRound("fast", 1, 1)) == [FAST, MODEL, MODEL]
    assert keys(DECLARED, ByRound("fast", 2, 2)) == [MODEL, FAST, MODEL]


def test_a_route_bound_later_can_be_chosen_in_the_first_round_and_stands_in_no_row() -> None:
    def select(number: int, route: ModelRoute) -> None:
        if number == 1:
            route.bind("late", LATE)
        route.use("late")

    assert keys(DECLARED, select) == [LATE, LATE, LATE]
    assert DECLARED.required() == {MODEL: "completion", FAST: "completion"}


def test_a_declared_route_stands_in_the_row_although_nobody_selects_it() -> None:
    assert DECLARED.required() == {"golden/model:default": "completion", "golden/model:fast": "completion"}
    assert FAST not in keys(DECLARED, None)


def test_the_first_selection_is_kept_by_the_run() -> None:
    route = ModelRoute(DECLARED)
    assert route.key is None
    assert (route.select(), route.key) == (MODEL, MODEL)
    route.use("fast")
    assert (route.select(), route.select()) == (FAST, FAST)
    route.use_default()
    assert route.select() == MODEL


def test_what_cannot_be_chosen_or_bound_is_said() -> None:
    route = ModelRoute(DECLARED)
    with pytest.raises(LookupError, match="route slow is not bound; bound are fast"):
        route.use("slow")
    with pytest.raises(ValueError, match="route fast leads to golden/model:fast; a label names one model"):
        route.bind("fast", LATE)
    with pytest.raises(LookupError, match="bound are none"):
        ModelRoute(Routes(MODEL)).use("fast")
    assert route.key is None


@pytest.mark.parametrize(("first", "last"), [(0, None), (3, 2)])
def test_rounds_count_from_one_and_run_forwards(first: int, last: int | None) -> None:
    with pytest.raises(ValueError, match=f"a route takes rounds from 1, first to last, not {first} to {last}"):
        ByRound("fast", first, last)
