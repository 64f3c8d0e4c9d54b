"""The phase in which a run opens, stopping in each of the four, and the order in which what landed is read."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent import materialise
from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.memory import Append, Load
from bargein.pipelines.agent.retrieval import Retrieves, What
from bargein.pipelines.agent.run import STAGES
from bargein.pipelines.agent.run_settings import OutputMode, OutputSpec
from tests.pipelines.agent.memory_kit import OLD, TOOLS, RememberingWorld, found, remembered
from tests.pipelines.agent.run_kit import BUSY, MS, SCHEMA, S, World, call, calls, failure, text


def opened(world: World, *history: Any) -> list[str]:
    """The phases of a run as it opens, link by link, until its first round has begun."""
    phases: list[str] = []
    run = world.runs.spawn(world.agent, "hello", history)
    assert run.phase is None
    advance, _ = STAGES[1]
    for stage, _ in STAGES:
        stage(world.runs, run)
        phases.append(str(run.phase))
        if stage is advance:
            return phases
    raise AssertionError(phases)


def test_a_run_opens_assembling_unless_its_memory_has_to_load_first() -> None:
    assert opened(RememberingWorld(None, old=OLD)) == ["LoadingMemory", "LoadingMemory"]
    assert opened(RememberingWorld(None, old=OLD), *OLD) == ["Assembling", "Assembling"]
    assert opened(World(None)) == ["Assembling", "Assembling"]


@pytest.mark.parametrize(
    ("world", "history", "ops"),
    [
        (RememberingWorld(text("done"), old=OLD), (), ["Load", "C", "Append"]),
        (RememberingWorld(text("done"), old=OLD), OLD, ["C"]),
    ],
    ids=["none", "some"],
)
def test_a_run_that_brought_no_history_asks_for_one_load(world: RememberingWorld, history: Any, ops: Any) -> None:
    run = world.run("hello", *history)
    assert world.ops == ops
    loads = [effect.payload for effect in world.log if isinstance(effect.payload, Load | Append)]
    assert [each.conversation for each in loads] == ["golden-conversation"] * len(loads)
    assert [said for _, said in world.said(1)] == ["Earlier.", "Indeed.", "hello"]
    assert remembered(run) == [not history, not history, False, False]


def loading() -> World:
    return RememberingWorld(text("never"), old=OLD)


def assembling() -> World:
    world = RememberingWorld(text("never"))
    world.agent.remembers = None
    world.look_up(Retrieves(TOOLS, 1, What.TOOLS))
    world.index(TOOLS, found(), delay_us=S)
    return world


def awaiting() -> World:
    return World(text("never"), delay_us=S)


def resolving() -> World:
    world = World(calls(call("add")), text("never"), max_turns=2)
    world.tool("add", delay_us=S)
    return world


@pytest.mark.parametrize(
    ("build", "phase"),
    [
        (loading, "LoadingMemory"),
        (assembling, "Assembling"),
        (awaiting, "AwaitingModel"),
        (resolving, "ResolvingTools"),
    ],
)
def test_a_stop_takes_the_phase_and_has_the_round_read_and_nothing_follows(build: Any, phase: str) -> None:
    world = build()
    run = world.runs.spawn(world.agent, "hello")
    while run.phase != phase:
        world.clock.step()
    asked = len(world.bus.bus.log)
    called: list[Any] = []
    for at in At:
        world.on(at, lambda moment: called.append(moment.at))
    world.runs.cancel(run, "enough")
    assert (failure(run), run.phase, all(turn.read for turn in run.turns)) == ("Cancelled", None, True)
    stored = run.messages
    world.clock.run()
    assert (run.messages, len(world.bus.bus.log), called) == (stored, asked, [At.RUN_ENDED])
    assert len(world.told("agent.run_ended")) == 1


def test_what_landed_on_one_instant_is_read_link_by_link_and_run_by_run(monkeypatch: pytest.MonkeyPatch) -> None:
    output = OutputSpec(SCHEMA, OutputMode.TOOL)
    script = (BUSY, calls(call("add")), calls(call("final_result")), None, None)
    world = World(*script, delay_us=MS, max_turns=2, output=output)
    world.tool("add", delay_us=S)
    order: list[tuple[str, str]] = []
    for prompt in ("fails", "calls", "answers"):
        world.runs.spawn(world.agent, prompt)
    world.clock.run(MS)
    stages = [(_noting(stage, order) if stage in materialise.CHAIN else stage, ended) for stage, ended in STAGES]
    monkeypatch.setattr("bargein.pipelines.agent.run.STAGES", tuple(stages))
    world.clock.run(MS + 1)
    links = [link.__name__ for link in materialise.CHAIN]
    first_step = order[: 3 * len(links)]
    assert first_step == [(link, scope) for link in links for scope in ("r1", "r2", "r3")]
    told = [(each["kind"], each["scope"]) for each in world.runs.timeline if each["t"] == MS]
    assert told == [("agent.provider_retry", "r1")]
    assert [str(run.phase) for run in world.runs.live.values()] == ["AwaitingModel", "ResolvingTools", "AwaitingModel"]


def _noting(stage: Any, order: list[tuple[str, str]]) -> Any:
    def noting(runs: Any, run: Any) -> None:
        order.append((stage.__name__, run.scope))
        stage(runs, run)

    return noting


@pytest.mark.parametrize(
    ("results", "offered"),
    [
        ([[1, "subtract"]], ["subtract", "add"]),
        ([], ["add"]),
        ([[1, "ghost"], [1, "add"]], ["add"]),
        ([[1, "subtract"], [0, "multiply"], [0, "subtract"]], ["subtract", "multiply", "add"]),
    ],
)
def test_a_round_offers_what_was_found_and_may_be_then_its_static_tools(results: Any, offered: list[str]) -> None:
    world = RememberingWorld(text("done"))
    for name in ("add", "multiply", "subtract"):
        world.tool(name)
    world.look_up(Retrieves(TOOLS, 3, What.TOOLS), retrievable=("multiply", "subtract"))
    world.index(TOOLS, found(*results))
    world.run()
    assert [tool["name"] for tool in world.request(1)["tools"]] == offered
