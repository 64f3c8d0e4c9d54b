"""Layers around an agent's memory and its model: what they deny leaves no record, and fails the run as what it was."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.memory import Append, Load
from bargein.sim.effects.layers import Ask, Deny, Layer
from bargein.sim.effects.reports import Report, ReportKind
from tests.pipelines.agent.memory_kit import MEMORY, OLD, RememberingWorld
from tests.pipelines.agent.run_kit import failure, output, report, text

MODEL = "golden/model:default"


class Denying(Layer):
    """Denies what is asked with a payload of this type."""

    def __init__(self, of: type[Any]) -> None:
        self.of = of

    def before(self, ask: Ask) -> Deny | None:
        return Deny("not today") if isinstance(ask.payload, self.of) else None


def test_a_denied_load_leaves_no_record_and_fails_the_run_as_its_memory() -> None:
    world = RememberingWorld(text("hi"), old=OLD)
    world.bus.wrap(MEMORY, Denying(Load))
    run = world.run()
    assert (failure(run), report(run)) == ("Memory", Report(ReportKind.DENIED, "not today"))
    assert (world.log, world.model.requests) == ([], [])


def test_a_denied_model_leaves_no_record_and_fails_the_run_as_its_provider() -> None:
    world = RememberingWorld(text("hi"), old=OLD)
    world.bus.wrap(MODEL, Denying(object))
    run = world.run()
    assert (failure(run), report(run)) == ("Provider", Report(ReportKind.DENIED, "not today"))
    assert world.ops == ["Load"]
    world = RememberingWorld(text("hi"))
    world.agent.remembers = None
    world.bus.wrap(MODEL, Denying(object))
    assert (failure(world.run()), world.log) == ("Provider", [])


def test_a_denied_append_leaves_no_record_and_the_answer_stands() -> None:
    world = RememberingWorld(text("hi"), old=OLD)
    world.bus.wrap(MEMORY, Denying(Append))
    assert (output(world.run()), world.ops) == ("hi", ["Load", "C"])
    assert len(world.store.load("golden-conversation")) == 2


@pytest.mark.parametrize("outermost", [True, False])
def test_it_does_not_matter_which_of_several_layers_denies(outermost: bool) -> None:
    world = RememberingWorld(text("hi"), old=OLD)
    layers = [Denying(Load), Layer()]
    world.bus.wrap(MEMORY, *(layers if outermost else reversed(layers)))
    assert (failure(world.run()), world.log) == ("Memory", [])
