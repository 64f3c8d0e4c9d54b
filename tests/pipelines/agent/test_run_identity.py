"""Whether a run is the recorded one: a verdict as data, with a sentence for whatever speaks against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein.pipelines.agent.hooks import At
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_identity import Standing, Verdict, check_replayable, effective_specification
from bargein.pipelines.agent.run_settings import (
    Agent,
    InvalidCalls,
    ModelDescriptor,
    Settings,
    ToolAccess,
    Unhandled,
    specification,
)
from bargein.sim.effects.bus import EffectBus
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.layers import Layer, LayeredBus
from bargein.sim.effects.log import EffectLog
from bargein.sim.kernel.clock import Clock
from tests.pipelines.agent.log_kit import MODEL, Again, Recorded, an_agent
from tests.pipelines.agent.run_kit import Model, call, calls, output, text

ADD = "golden/tool:add#0"


class Named(Layer):
    def __init__(self, name: str) -> None:
        self.name = name


def recorded(agent: Agent | None = None, *layers: Layer, **more: Any) -> EffectLog:
    world = Recorded(calls(call("add", x=1)), text("done"), agent=agent)
    world.bus.wrap(ADD, *layers)
    world.go(**more)
    return world.log()


def verdict(
    log: EffectLog, agent: Agent | None = None, change: Callable[[Again], object] | None = None, **more: Any
) -> Verdict:
    """Of a fresh world's run, before it goes on."""
    again = Again(log, agent)
    if change is not None:
        change(again)
    return again.world.check(again.runs, again.runs.spawn(again.agent, "hello", **more))


# -- what makes a program -----------------------------------------------------------------------------------------


def test_a_policy_version_and_explicit_access_stand_in_a_specification_where_they_are_set() -> None:
    plain, agent = specification(Agent.named("golden")), Agent.named("golden", policy_version="v1")
    assert not {"policy_version", "tool_access", "stream"} & plain.keys()
    assert specification(agent) == {**plain, "policy_version": "v1"}
    assert specification(agent, Settings(policy_version="v2"))["policy_version"] == "v2"
    assert specification(agent, Settings(policy_version="")) == plain
    access = ToolAccess({"add": ADD}, ("add",))
    assert specification(Agent.named("golden", tool_access=access))["tool_access"] == {
        "bindings": {"add": ADD},
        "allowed": ["add"],
    }
    assert specification(Agent.named("golden", tool_access=ToolAccess()))["tool_access"] == {
        "bindings": None,
        "allowed": None,
    }


def test_what_a_run_sets_keeps_its_policy_apart_and_its_agents_hash_together() -> None:
    script = [text("done") for _ in range(6)]
    world = Recorded(*script)
    ways: list[dict[str, Any]] = [
        {},
        {"max_turns": 3},
        {"settings": Settings(invalid_calls=InvalidCalls(Unhandled.IGNORE))},
        {"settings": Settings(tool_access=ToolAccess(allowed=("add",)))},
        {"settings": Settings(policy_version="v2")},
    ]
    builder = stable_hash(specification(world.agent))
    for way in ways:
        world.go(**way)
    streaming = world.runs.create(world.agent, streamed=True)
    assert effective_specification(streaming)["stream"] is True
    policies = [each["policy"] for each in world.log().header["programs"].values()]
    assert len(set(policies)) == len(policies) == len(ways) + 1
    assert stable_hash(specification(world.agent)) == builder


def test_a_limit_on_results_and_a_hook_change_no_policy() -> None:
    log = recorded()
    limited = an_agent(result_limit=ResultLimit(10))
    assert verdict(log, limited) == Verdict(Standing.FINE)
    assert verdict(log, change=lambda again: again.hooks.on(At.GATE, lambda _: None)) == Verdict(Standing.FINE)


# -- the verdict --------------------------------------------------------------------------------------------------


def test_the_same_program_is_fine_and_goes_on_to_the_same_answer_and_records() -> None:
    log = recorded()
    again = Again(log, visible=True, instants=True)
    run = again.runs.spawn(again.agent, "hello")
    assert again.world.check(again.runs, run) == Verdict(Standing.FINE)
    again.clock.run()
    again.world.finish()
    assert output(run) == "done"
    assert again.world.again(again.runs).to_bytes() == log.to_bytes()


def other_model() -> Agent:
    agent = an_agent()
    agent.model = ModelDescriptor("golden/model:other")
    return agent


def one_tool_more() -> Agent:
    agent = an_agent()
    agent.grant("more")
    return agent


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (other_model(), ['required.golden/model:default: recorded was "completion", found nothing',
                         'required.golden/model:other: recorded was nothing, found "completion"']),
        (one_tool_more(), ['required.golden/tool:more#2: recorded was nothing, found "tool_call"']),
        (an_agent(temperature=0.5), ["policy"]),
        (an_agent(policy_version="v2"), ["policy"]),
        (an_agent(policy_version=None), ["policy"]),
        (an_agent(tool_access=ToolAccess()), ["policy"]),
    ],
)  # fmt: skip
def test_another_policy_or_row_is_refused_by_name(agent: Agent, told: list[str]) -> None:
    log = recorded()
    found = verdict(log, agent)
    assert found.standing is Standing.REFUSED
    if told == ["policy"]:
        recorded_policy = log.header["programs"]["r1"]["policy"]
        assert [each.partition(", found")[0] for each in found.reasons] == [
            f'programs.r1.policy: recorded was "{recorded_policy}"'
        ]
    else:
        assert list(found.reasons) == [f"programs.r1.{each}" for each in told]


def test_a_handler_that_is_not_there_is_refused_by_name() -> None:
    log = recorded()
    clock = Clock()
    bus = LayeredBus(EffectBus(clock))
    bus.serve(MODEL, Model(clock), descriptor=Descriptor(MODEL, "completion", "m-1", {"vision": True}))
    runs = AgentRuns(clock, bus)
    assert check_replayable(runs, runs.spawn(an_agent(), "hello"), log).reasons == (
        "handlers.golden/tool:add#0: no handler serves it, and the recorded program needs it",
        "handlers.golden/tool:spare#1: no handler serves it, and the recorded program needs it",
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": "m-2"}, 'label: recorded was "m-1", found "m-2"'),
        ({"capabilities": {"vision": False}}, "capabilities.vision: recorded was true, found false"),
        ({"capabilities": {}}, "capabilities.vision: recorded was true, found nothing"),
    ],
)
def test_another_model_behind_the_key_is_refused_by_name(change: dict[str, Any], told: str) -> None:
    class Nobody:
        def serve(self, effect: Any) -> None: ...

    def installed(again: Again) -> None:
        bus: EffectBus = again.bus.bus
        known = Descriptor(MODEL, "completion", "m-1", {"vision": True})
        bus.replace(MODEL, Nobody(), replace(known, **change))

    found = verdict(recorded(), change=installed)
    assert found == Verdict(Standing.REFUSED, (f"handlers.{MODEL}.{told}",))


def test_a_layered_program_is_the_same_one_within_the_same_layers_only() -> None:
    log = recorded(None, Named("l"))
    bare = verdict(log)
    assert bare == Verdict(Standing.REFUSED, (f'handlers.{ADD}.layers[0]: recorded was "l", found nothing',))
    assert verdict(log, change=lambda again: again.bus.wrap(ADD, Named("l"))) == Verdict(Standing.FINE)
    other = verdict(log, change=lambda again: again.bus.wrap(ADD, Named("m")))
    assert other == Verdict(Standing.REFUSED, (f'handlers.{ADD}.layers[0]: recorded was "l", found "m"',))


def test_a_tool_that_is_declared_otherwise_is_refused_by_name() -> None:
    agent = an_agent()
    agent.grants[0] = replace(agent.grants[0], description="Adds up.")
    assert verdict(recorded(), agent).reasons == (f'tools.{ADD}.description: recorded was "Adds.", found "Adds up."',)


def test_without_a_policy_version_it_is_unverified_and_a_difference_is_still_refused() -> None:
    log = recorded(an_agent(policy_version=None))
    assert verdict(log, an_agent(policy_version=None)) == Verdict(
        Standing.UNVERIFIED,
        ("programs.r1: the program declares no policy version, so what is not in its settings may have changed",),
    )
    assert verdict(log, an_agent(policy_version="")).standing is Standing.UNVERIFIED
    assert verdict(log, an_agent(policy_version=None, temperature=0.5)).standing is Standing.REFUSED


@pytest.mark.parametrize("programs", [{}, {"r2": 0}, {"r1": {"run_spec": "0"}}, {"r1": {"policy": "0"}}])
def test_a_scope_that_is_not_recorded_is_unverified_and_compared_with_nothing_else(programs: Any) -> None:
    log = recorded()
    log.header["programs"] = {**programs, "other": log.header["programs"]["r1"]}
    for agent in (an_agent(), an_agent(temperature=0.5)):
        assert verdict(log, agent) == Verdict(
            Standing.UNVERIFIED, ("programs.r1: the program of this run is not recorded",)
        )


def test_the_scope_is_exactly_the_runs() -> None:
    log = recorded(max_turns=3)
    again = Again(log)
    run = again.runs.spawn(again.agent, "hello", max_turns=3)
    other = again.runs.spawn(again.agent, "hello", max_turns=3)
    assert again.world.check(again.runs, run) == Verdict(Standing.FINE)
    assert again.world.check(again.runs, other).reasons == ("programs.r2: the program of this run is not recorded",)


def test_declared_hooks_are_compared_where_they_are_given() -> None:
    world = Recorded(text("done"))
    world.go()
    log = world.log(hooks=["DynamicContext"], layers=["l"])
    again = Again(log)
    run = again.runs.spawn(again.agent, "hello")
    assert check_replayable(again.runs, run, log).standing is Standing.FINE
    assert check_replayable(again.runs, run, log, declared=["DynamicContext", "l"]).standing is Standing.FINE
    assert check_replayable(again.runs, run, log, declared=["l"]).reasons == (
        'hooks[0]: recorded was "DynamicContext", found "l"',
        'hooks[1]: recorded was "l", found nothing',
    )
