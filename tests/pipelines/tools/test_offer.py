"""What is on offer, and what the engine does with calls to what was not."""

from __future__ import annotations

import pytest

from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.tools.offer import ToolOffer
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.tools.spec import ToolKind, ToolSpec
from bargein.sim.effects.bus import Outcome, Status


def spec(name, kind=ToolKind.READ_ONLY, **more):
    return ToolSpec(name, "", {"type": "object"}, kind, **more)


@pytest.fixture
def offer(rig):
    return ToolOffer(rig.registry, rig.bus, rig.timeline)


def names(offered):
    return [advert.name for advert in offered.adverts]


def test_everything_is_on_offer_in_name_order_and_made_once(offer):
    assert names(offer.current) == ["book", "look"]
    assert offer.current is offer.current


def test_narrowing_names_what_nobody_has_and_changes_the_next_offer_only(offer, kit):
    before = offer.current
    assert offer.narrow(["look", "ghost"]) == ("ghost",)
    assert (names(before), names(offer.current)) == (["book", "look"], ["look"])
    calls = [kit.call("t1.0"), ToolCall("t1.1", "ghost", {}), kit.call("t1.2", "look")]
    assert offer.withheld(calls, before) == frozenset()
    assert offer.withheld(calls, offer.current) == {"book"}


def test_a_declared_tool_is_served_and_a_taken_name_is_not(offer, rig):
    class Body:
        def serve(self, effect):
            effect.land(Outcome(Status.OK, "hello"))

    assert offer.declare(spec("greet"), Body()) is None
    assert offer.declare(spec("look"), Body()) == "a tool named look is registered already; choose another name"
    assert names(offer.current) == ["book", "greet", "look"]
    execution = rig.execute(ToolCall("t1.0", "greet", {}))
    assert [message.result.content for message in execution.results] == ["hello"]


def test_a_tool_that_is_declared_after_narrowing_is_not_on_offer_unless_it_is_named(offer):
    offer.narrow(["later"])
    offer.declare(spec("later"), object())
    offer.declare(spec("other"), object())
    assert names(offer.current) == ["later"]


def test_a_fork_adds_nothing_to_the_registry_it_came_from():
    shared = ToolRegistry()
    shared.register(spec("a"))
    fork = shared.fork()
    fork.register(spec("b", ToolKind.SIDE_EFFECT, confirm=True))
    assert [each.name for each in shared.specs()] == ["a"]
    assert [each.name for each in fork.specs()] == ["a", "b", "confirm_pending"]
    again = shared.fork().register(spec("b", ToolKind.SIDE_EFFECT))
    assert again.validator is fork.tool("b").validator


def test_a_withheld_call_is_answered_before_anything_is_planned(rig, kit):
    calls = [ToolCall("t1.0", "book", {"n": n}) for n in range(2)]
    execution = rig.engine.execute(calls, 1, rig.token(1), withheld=frozenset({"book"}))
    assert (execution.complete, kit.kinds(execution)) == (True, ["unknown_tool"] * 2)
    assert (rig.runs, rig.engine.invalid_rounds(1)) == ([], 0)


def test_a_withheld_call_is_told_so_even_in_a_round_whose_budget_is_spent(kit):
    rig = kit.Rig(max_invalid_rounds=0).book()
    calls = [kit.call("t1.0"), ToolCall("t1.1", "ghost", {})]
    execution = rig.engine.execute(calls, 1, rig.token(1), withheld=frozenset({"book"}))
    assert kit.kinds(execution) == ["unknown_tool", "budget_exhausted"]


# -- effects of which nobody knows the outcome ----------------------------------------------------------------------


LOST = Outcome(Status.LOST, "the outcome is unknown")


def test_a_side_effect_in_doubt_reads_as_a_failure_and_is_recorded_as_lost(kit):
    rig = kit.Rig().book(result=LOST)
    execution = rig.delivered(kit.call("t1.0"))
    assert kit.body(execution) == {"error": "tool_failed", "tool": "book", "detail": "the outcome is unknown"}
    assert rig.outcomes() == ["lost"]
    assert kit.kinds(rig.execute(kit.call("t1.0"))) == ["unknown_outcome"]  # the same key
    assert len(rig.runs) == 1


def test_a_side_effect_in_doubt_is_not_run_again_in_its_turn(kit):
    rig = kit.Rig().book(result=[LOST, "BK-2"])
    rig.delivered(kit.call("t1.0", n=1))
    assert kit.kinds(rig.delivered(kit.call("t1.1", n=1))) == ["unknown_outcome"]
    assert kit.kinds(rig.delivered(kit.call("t1.2", n=2))) == ["ok"]
    assert kit.kinds(rig.delivered(kit.call("t2.0", n=1), epoch=2)) == ["ok"]


def test_a_read_in_doubt_is_a_plain_failure(kit):
    rig = kit.Rig().look(result=LOST)
    execution = rig.delivered(kit.call("t1.0", "look"))
    assert (kit.kinds(execution), rig.outcomes()) == (["tool_failed"], ["failed"])
