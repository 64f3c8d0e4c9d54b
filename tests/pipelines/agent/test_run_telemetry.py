"""Whether telemetry may hold what was said is the host's business: nothing that is asked or recorded shows it."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_settings import Agent, Settings, effective, specification
from bargein.sim.effects.identity import canonical
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.clock import Clock
from tests.pipelines.agent.run_kit import Model, Tool, World, call, calls, output, text

SETTING = "record_telemetry_content"


def recorded(agent_has: bool | None, run_has: bool | None, streamed: bool) -> list[bytes]:
    """The requests of a session with a tool call, as its records hold them."""
    clock = Clock()
    recorder = Recorder()
    bus = LayeredBus(recorder.open(clock))
    agent = Agent.named("golden", preamble="P", max_turns=2, record_telemetry_content=agent_has)
    bus.serve(agent.model.key, Model(recorder.clock, calls(call("add", x=1)), text("done")))
    bus.serve(agent.grant("add").key, Tool(recorder.clock, 42))
    runs = AgentRuns(clock, bus)
    run = runs.spawn(agent, "hello", streamed=streamed, settings=Settings(record_telemetry_content=run_has))
    clock.run()
    assert output(run) == "done"
    assert effective(run.settings, agent, SETTING) is (agent_has if run_has is None else run_has)
    return [canonical(record.to_dict()) for record in recorder.records(RunPlain())]


@pytest.mark.parametrize("streamed", [False, True])
def test_requests_and_records_are_the_same_to_the_byte_whatever_it_says(streamed: bool) -> None:
    without = recorded(None, None, streamed)
    assert len(without) == 3
    assert not any(b"telemetry" in each for each in without)
    for agent_has, run_has in ((True, None), (False, None), (True, False), (None, True)):
        assert recorded(agent_has, run_has, streamed) == without


def test_two_programs_that_differ_in_it_are_the_same_program() -> None:
    def spec(**settings: Any) -> dict[str, Any]:
        return specification(Agent.named("golden", **settings), Settings(**settings))

    assert spec(record_telemetry_content=True) == spec(record_telemetry_content=False) == spec()


@pytest.mark.parametrize(("content", "detail"), [(None, "done"), (True, "done"), (False, "")])
def test_the_timeline_holds_what_was_said_unless_it_may_not(content: bool | None, detail: str) -> None:
    world = World(text("done"), record_telemetry_content=content)
    assert output(world.run()) == "done"
    assert [each["detail"] for each in world.told("agent.run_ended")] == [detail]
