"""Who serves what after a load: handlers by key, how much they may differ, and what the destination has already."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent.endings import Failed
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_restore import RestoreMode, Supplied, load_runs, validate_runs
from bargein.pipelines.agent.saved_errors import (
    CheckpointError,
    DescriptorMismatch,
)
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.sim.effects.bus import LAST_ID, EffectKind, Outcome, Status
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.layers import Layer
from bargein.sim.effects.reports import ReportKind, report_of
from tests.pipelines.agent.checkpoint_kit import MODEL, edited, only_run, refusal, reread, said
from tests.pipelines.agent.run_kit import MS, Model, S, Tool, World, call, calls, failure, output, text

ADD, X = "golden/tool:add#0", "x:other"
BOTH = list(RestoreMode)


class Audit(Layer):
    """A layer with a name of its own."""

    name = "audit"


def asking(first_id: int = 0, runs: int = 1, number: int = 1) -> World:
    """A world in which a call of ``add`` is under way, or one for each of several runs, numbered from ``number``."""
    world = World(*[calls(call("add", x=at)) for at in range(runs)], max_turns=2)
    world.bus.bus.next_id, world.runs.next_run = first_id, number
    world.tool("add", delay_us=S)
    for _ in range(runs):
        world.runs.spawn(world.agent, "hello")
    world.clock.run(MS)
    return world


def saved(world: World | None = None) -> RunCheckpoint:
    return reread(save_runs((world or asking()).runs))


def bare(*script: Any, records: int = 0) -> World:
    """A destination that serves nothing but its model, and has done something already."""
    world = World(*[text("before")] * records, *script)
    for _ in range(records):
        world.runs.remove(world.run())
    return world


def left_alone(world: World, checkpoint: RunCheckpoint, *given: Any, mode: RestoreMode = RestoreMode.STRICT) -> str:
    """That a load is refused and nothing of the destination has changed, and what was said."""
    return said(refusal(world, checkpoint, *given, mode=mode))


# -- what is required -----------------------------------------------------------------------------------------------


def test_what_has_to_be_served_is_read_from_a_checkpoint_alone() -> None:
    world = asking()
    world.bus.serve(X, Tool(world.clock, 1), Audit(), descriptor=Descriptor(X, "embed", "e5", {"dimensions": 3}))
    assert saved(world).requirements() == {
        MODEL: Descriptor(MODEL, "completion", "default"),
        ADD: Descriptor(ADD, "tool_call"),
        X: Descriptor(X, "embed", "e5", {"dimensions": 3}, ("audit",)),
    }


def test_a_checkpoint_is_validated_where_nobody_serves_anything_yet() -> None:
    world = bare()
    validate_runs(saved(), world.runs)
    assert (world.runs.live, world.runs.next_run, world.bus.bus.next_id) == ({}, 1, 0)
    broken = edited(saved(), lambda entities: entities[-1].update(parent=len(entities)))
    with pytest.raises(CheckpointError, match="accepted is the position of an entity before it"):
        validate_runs(broken, world.runs)


def test_a_load_hands_back_what_it_made_by_its_position_and_kind() -> None:
    checkpoint = saved()
    world = bare(text("done"))
    loaded = load_runs(checkpoint, world.runs, [(ADD, Tool(world.clock, 42))])
    assert loaded.kinds == tuple(each["kind"] for each in checkpoint.entities)
    assert loaded.runs == (only_run(world),)
    ((at, run),) = loaded.of("run").items()
    assert (run, checkpoint.entities[at]["kind"]) == (only_run(world), "run")
    assert list(loaded.of("effect").values()) == only_run(world).effects
    assert list(loaded.of("agent").values()) == [only_run(world).agent]
    assert set(loaded.of("handler").values()) == {None}


# -- handlers by key ------------------------------------------------------------------------------------------------


def test_a_handler_is_installed_under_the_key_it_was_given_for_whatever_it_was_built_for() -> None:
    world = bare(text("done"))
    tool = Tool(world.clock, 42)
    load_runs(saved(), world.runs, [(ADD, Supplied(tool, descriptor=Descriptor("golden/tool:old#9", "tool_call")))])
    assert world.bus.descriptor(ADD) == Descriptor(ADD, "tool_call")
    world.clock.run()
    assert (len(tool.started), output(only_run(world))) == (1, "done")


@pytest.mark.parametrize("mode", BOTH)
def test_a_binding_whose_descriptor_names_another_key_is_refused_in_either_mode(mode: RestoreMode) -> None:
    checkpoint = edited(saved(), lambda entities: entities[1]["descriptor"].update(key=X))
    world = bare()
    told = left_alone(world, checkpoint, (ADD, Tool(world.clock, 42)), mode=mode)
    assert told == f"KeyMismatch: the checkpoint: entities[1]: it binds {ADD}, and its descriptor is of {X}"


def supplied(world: World, field: str) -> Supplied:
    """A handler for ``add`` that differs in one field."""
    tool = Tool(world.clock, 42)
    if field == "layers":
        return Supplied(tool, (Audit(),))
    changes: dict[str, Any] = {"family": "custom", "label": "other", "capabilities": {"fast": True}}
    return Supplied(tool, descriptor=Descriptor(**{"key": ADD, "family": "tool_call"} | {field: changes[field]}))


@pytest.mark.parametrize(
    ("field", "was", "now"),
    [
        ("family", "'tool_call'", "'custom'"),
        ("label", "''", "'other'"),
        ("capabilities", "{}", "{'fast': True}"),
        ("layers", "()", "('audit',)"),
    ],
)
@pytest.mark.parametrize("installed", [False, True])
def test_strictly_a_handler_differs_in_nothing_that_is_known_of_it(
    field: str, was: str, now: str, installed: bool
) -> None:
    world = bare()
    given = supplied(world, field)
    if installed:
        world.bus.serve(ADD, given.handler, *given.layers, descriptor=given.descriptor)
    told = left_alone(world, saved(), *([] if installed else [(ADD, given)]))
    assert told == f"DescriptorMismatch: {ADD}: its {field} was {was} when it was saved, and is {now}"


@pytest.mark.parametrize("field", ["label", "capabilities", "layers"])
def test_a_replacement_may_differ_within_its_family(field: str) -> None:
    world = bare(text("done"))
    load_runs(saved(), world.runs, [(ADD, supplied(world, field))], RestoreMode.REPLACE)
    world.clock.run()
    assert output(only_run(world)) == "done"


def test_a_replacement_of_another_family_is_refused() -> None:
    world = bare()
    tool = Supplied(Tool(world.clock, 42), descriptor=Descriptor(ADD, "tool_call"))
    told = left_alone(world, saved(), (ADD, tool), (MODEL, tool), mode=RestoreMode.REPLACE)
    assert told == (f"DescriptorMismatch: {MODEL}: its family was 'completion' when it was saved, and is 'tool_call'")


def test_the_layers_of_a_supplied_handler_stand_around_it_in_their_order() -> None:
    world = asking()
    other = bare(text("done"))
    layers = (Audit(), Layer())
    world.bus.replace(ADD, Tool(world.clock, 42), layers=layers)
    load_runs(saved(world), other.runs, [(ADD, Supplied(Tool(other.clock, 42), layers))])
    assert (other.bus.layers(ADD), other.bus.descriptor(ADD).layers) == (layers, ("audit", "layer"))


def test_a_mode_that_does_not_exist_is_refused_and_its_name_will_do() -> None:
    world = bare()
    with pytest.raises(ValueError, match="'lenient' is not a valid RestoreMode"):
        load_runs(saved(), world.runs, [(ADD, supplied(world, "label"))], "lenient")  # type: ignore[arg-type]
    with pytest.raises(DescriptorMismatch):
        load_runs(saved(), world.runs, [(ADD, supplied(world, "label"))], "strict")  # type: ignore[arg-type]
    assert world.runs.live == {}


def test_a_capacity_that_is_none_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(ValueError, match="capacity is 0; accepted is a whole number from 1"):
        Supplied(Tool(World().clock, 42), capacity=0)


def test_a_handler_may_be_given_places() -> None:
    world = World(calls(call("add", "a"), call("add", "b")), max_turns=2, concurrency=2)
    world.tool("add", None)
    world.run()
    other = bare(text("done"))
    tool = Tool(other.clock, 42, S)
    load_runs(saved(world), other.runs, [(ADD, Supplied(tool, capacity=1))])
    other.clock.run()
    assert [at_us for at_us, _ in tool.started] == [0, S]


# -- what is there already ------------------------------------------------------------------------------------------


def test_a_key_that_is_not_given_stays_with_whom_it_is() -> None:
    world = bare(text("done"))
    world.bus.serve(ADD, tool := Tool(world.clock, 42))
    load_runs(saved(), world.runs)
    world.clock.run()
    assert (len(tool.started), output(only_run(world))) == (1, "done")


def test_a_key_that_is_given_is_installed_even_where_nothing_is_known_to_differ() -> None:
    world = bare(text("done"))
    world.bus.serve(ADD, old := Tool(world.clock, "old"))
    load_runs(saved(), world.runs, [(ADD, new := Tool(world.clock, "new"))])
    world.clock.run()
    assert (old.started, len(new.started)) == ([], 1)


def test_a_key_that_nobody_serves_refuses_the_load_and_installs_nothing() -> None:
    checkpoint = saved()
    world = World()
    other = Tool(world.clock, 1)
    assert left_alone(world, checkpoint, (MODEL, other)) == (
        f"MissingHandler: {ADD}: nobody serves it, and no handler was given; accepted is one of either"
    )
    assert left_alone(world, checkpoint, (ADD, other), (ADD, other)) == (
        f"DuplicateHandler: {ADD}: it was given two handlers; accepted is one"
    )
    assert left_alone(world, checkpoint, (ADD, other), (X, other)) == (
        f"ExtraneousHandler: {X}: nothing that was saved needs it; accepted is {MODEL}, {ADD}"
    )


def test_what_is_being_served_stays_with_whom_it_is_and_the_next_goes_to_the_new_one() -> None:
    world = World(calls(call("add", x=0)), text("done"), max_turns=2)
    old = world.tool("add", "old", S)
    world.runs.spawn(world.agent, "there already")
    world.clock.run(MS)
    source = asking(first_id=5, runs=2)
    source.runs.remove(source.runs.live[1])
    new = Tool(world.clock, "new")
    load_runs(saved(source), world.runs, [(ADD, new)], RestoreMode.REPLACE)
    world.model.script.append(text("also done"))
    world.clock.run()
    assert (len(old.started), [args for _, args in new.started]) == (1, ['{"x":1}'])
    assert world.runs.live[1].messages[2].parts[0].items[0].text == "old"  # type: ignore[union-attr]
    assert [output(run) for run in world.runs.live.values()] == ["also done", "done"]


# -- numbers --------------------------------------------------------------------------------------------------------


def test_ids_go_on_after_all_that_were_given_anywhere() -> None:
    source = asking()
    source.bus.bus.next_id = 7
    checkpoint = edited(saved(source), lambda entities: entities[-1].update(id=20))
    assert checkpoint.next_id == 7
    world = bare(text("done"), records=2)
    world.bus.bus.next_id = 12
    load_runs(checkpoint, world.runs, [(ADD, Tool(world.clock, 42))])
    assert world.bus.bus.next_id == 21
    world.clock.run()
    assert [effect.id for effect in world.bus.bus.log] == [0, 1, 20, 21]


@pytest.mark.parametrize(("ours", "theirs", "next_id"), [(3, 30, 30), (40, 30, 40)])
def test_numbers_that_were_used_stay_used_when_their_effects_are_gone(ours: int, theirs: int, next_id: int) -> None:
    source = World()
    source.bus.bus.next_id = theirs
    source.runs.next_run = theirs
    world = World()
    world.bus.bus.next_id, world.runs.next_run = ours, ours
    load_runs(saved(source), world.runs)
    assert (world.bus.bus.next_id, world.runs.next_run) == (next_id, next_id)


def test_the_last_id_is_given_to_nobody() -> None:
    assert LAST_ID == 18446744073709551615
    world = World(text("never"))
    source = World()
    source.bus.bus.next_id = LAST_ID
    load_runs(saved(source), world.runs)
    run = world.run()
    assert (failure(run), world.records, world.bus.bus.next_id) == ("Provider", "", LAST_ID)
    assert isinstance(run.ending, Failed)
    assert run.ending.report is not None
    assert run.ending.report.kind is ReportKind.REQUEST


@pytest.mark.parametrize(("id_", "asked"), [(LAST_ID, 0), (LAST_ID - 1, 1)])
def test_an_effect_of_the_last_id_is_refused_and_the_one_below_it_goes_out(id_: int, asked: int) -> None:
    checkpoint = edited(saved(), lambda entities: entities[-1].update(id=id_))
    world = bare()
    load_runs(checkpoint, world.runs, [(ADD, tool := Tool(world.clock, None))])
    world.clock.run()
    effect = only_run(world).effects[1]
    assert (len(tool.started), world.bus.bus.next_id) == (asked, LAST_ID)
    assert [each.id for each in world.bus.bus.log] == [id_] * asked
    if not asked:
        assert effect.outcome is not None
        assert report_of(effect.outcome).kind is ReportKind.REQUEST


# -- a destination with a past --------------------------------------------------------------------------------------


def test_what_was_loaded_follows_all_records_in_the_order_in_which_it_was_asked_whichever_run_it_is_of() -> None:
    source = World(calls(call("add", x=1)), calls(call("add", x=2)), max_turns=2)
    source.bus.bus.next_id = 5
    source.tool("add", None)
    source.bus.replace(MODEL, slow := _Turns(source, (3 * MS, MS)))
    for _ in range(2):
        source.runs.spawn(source.agent, "hello")
    source.clock.run()
    assert [(each.id, each.scope) for each in source.bus.bus.log[2:]] == [(7, "r2"), (8, "r1")]
    assert slow.left == []
    world = bare(records=5)
    load_runs(saved(source), world.runs, [(ADD, Tool(world.clock, None))])
    world.clock.run()
    log = world.bus.bus.log
    assert [each.id for each in log] == [0, 1, 2, 3, 4, 7, 8]
    assert [each.scope for each in log[5:]] == ["r2", "r1"]


class _Turns:
    """A model that answers each request with a call, after delays of its own."""

    def __init__(self, world: World, delays_us: tuple[int, ...]) -> None:
        self.world = world
        self.left = list(delays_us)

    def serve(self, effect: Any) -> Any:
        return Model(self.world.clock, self.world.model.script.pop(0), delay_us=self.left.pop(0)).serve(effect)


def test_a_run_of_a_number_that_is_here_is_refused() -> None:
    checkpoint = saved(asking(first_id=9))
    world = World(None)
    world.tool("add")
    world.run()
    assert left_alone(world, checkpoint).startswith("RunTaken: the checkpoint: run 1 is here already")


def test_a_run_of_a_number_that_was_promised_to_another_is_refused() -> None:
    checkpoint = saved(asking(first_id=9))
    world = World(text("mine"))
    world.tool("add")
    number = world.runs.queue_spawn(world.agent, "queued")
    assert left_alone(world, checkpoint).startswith("RunTaken: the checkpoint: run 1 is here already")
    world.clock.run()
    assert output(world.runs.live[number]) == "mine"


def test_an_effect_that_has_to_go_out_again_under_an_id_that_was_given_here_is_refused() -> None:
    world = bare(records=2)
    world.bus.serve(ADD, Tool(world.clock, 42))
    assert left_alone(world, saved(asking(number=3))) == (
        f"IdTaken: the checkpoint: effect 1 ({ADD}) has to go out again, and another effect here has its id"
    )


def test_an_effect_that_has_to_go_out_again_under_the_id_of_another_that_has_to_is_refused() -> None:
    world = bare()
    world.bus.serve(ADD, Tool(world.clock, 42))
    load_runs(saved(), world.runs)
    told = left_alone(world, saved(asking(number=3)))
    assert told.startswith(f"IdTaken: the checkpoint: effect 1 ({ADD}) has to go out again")


def test_an_effect_on_behalf_of_one_that_is_not_here_is_served_all_the_same() -> None:
    source = asking()
    source.bus.serve(X, Tool(source.clock, None))
    asked = source.runs.ask(only_run(source), EffectKind.CUSTOM, X, 1)
    assert asked is not None
    asked.parent = 0
    source.clock.run(2 * MS)
    world = bare()
    world.bus.bus.next_id = 9
    world.bus.serve(X, Tool(world.clock, "served", S), capacity=1)
    world.bus.dispatch(EffectKind.CUSTOM, X, 0, scope="s", on_landed=lambda _: None)
    load_runs(saved(source), world.runs, [(ADD, Tool(world.clock, None))])
    world.clock.run()
    assert only_run(world).effects[-1].outcome == Outcome(Status.OK, "served")
    assert [(each.id, each.parent, each.landed_at_us) for each in world.bus.bus.log[::2]] == [
        (9, None, S),
        (2, 0, 2 * S),
    ]
