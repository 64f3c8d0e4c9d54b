"""Routes: a choice is honoured in the round in which it is made, and stays until another replaces it."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.hooks import At, Hook
from bargein.pipelines.agent.routes import ByRound, required
from bargein.pipelines.agent.run_settings import Agent, ModelDescriptor
from tests.pipelines.agent.run_kit import World, call, calls, text

MODEL, FAST, LATE = "golden/model:default", "golden/model:fast", "golden/model:late"


def keys(select: Hook | None) -> list[str]:
    """The keys to which the completions of a run of three rounds went."""
    world = World(calls(call("add")), calls(call("add", "c2")), text("Done."), max_turns=3)
    world.tool("add")
    world.agent.routes = (ModelDescriptor(FAST),)
    for key in (FAST, LATE):
        world.bus.serve(key, world.model)  # whichever is asked gives the next answer of the run
    if isinstance(select, ByRound):
        select.attach(world.hooks)
    elif select is not None:
        world.on(At.SELECT_MODEL, select)
    world.run()
    return [each.key for each in world.bus.bus.log if each.kind == "completion"]


def test_without_a_choice_every_round_goes_to_the_agents_own_model() -> None:
    assert keys(None) == [MODEL, MODEL, MODEL]


def test_a_choice_stays_for_the_rounds_that_follow() -> None:
    assert keys(ByRound(FAST, first=2)) == [MODEL, FAST, FAST]


@pytest.mark.parametrize(
    ("first", "last", "seen"),
    [(1, 1, [FAST, MODEL, MODEL]), (2, 2, [MODEL, FAST, MODEL]), (2, 3, [MODEL, FAST, FAST]), (4, 4, [MODEL] * 3)],
)
def test_a_choice_for_some_rounds_puts_the_default_back_on_the_next(first: int, last: int, seen: list[str]) -> None:
    assert keys(ByRound(FAST, first, last)) == seen


def test_a_route_that_the_agent_did_not_declare_can_be_chosen_in_the_first_round() -> None:
    assert keys(lambda moment: moment.select(LATE)) == [LATE, LATE, LATE]


def test_a_declared_route_stands_in_the_row_selected_or_not_and_no_other_does() -> None:
    agent = Agent.named("golden")
    agent.routes = (ModelDescriptor(FAST),)
    assert required(agent) == {"golden/model:default": "completion", "golden/model:fast": "completion"}


def test_a_choice_is_one_runs_own() -> None:
    world = World(text("One."), text("Two."))
    world.bus.serve(FAST, world.model)
    first = world.run()
    first.uses_model = FAST
    second = world.run()
    assert (first.uses_model, second.uses_model) == (FAST, MODEL)


@pytest.mark.parametrize(("first", "last"), [(0, None), (3, 2)])
def test_rounds_count_from_one_and_run_forwards(first: int, last: int | None) -> None:
    with pytest.raises(ValueError, match=f"a route takes rounds from 1, first to last, not {first} to {last}"):
        ByRound(FAST, first, last)
