"""Every cause for which saved runs are refused, with its sentence and what lies beneath; and what cannot be saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from json import loads
from typing import Any

import pytest

from bargein import sim
from bargein.models.cassettes import Cassette, CassetteError, dump_cassette, read_cassette
from bargein.pipelines.agent import saved_errors
from bargein.pipelines.agent.assets import AssetLimits, BinaryAssets
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_restore import Supplied, load_runs
from bargein.pipelines.agent.run_settings import Settings
from bargein.pipelines.agent.saved_errors import BadBinary, CheckpointError, NotACheckpoint, NotSaved
from bargein.pipelines.agent.saved_graph import save_runs
from bargein.pipelines.agent.saved_values import ValueFault
from bargein.sim.effects.bus import Outcome
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.layers import Approval, Ask, Later, Layer
from bargein.sim.effects.log import EffectLog
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.scenario.build import Plan
from tests.pipelines.agent.checkpoint_kit import MODEL, destination, full_world, refusal, said, sealed
from tests.pipelines.agent.run_kit import MS, Tool, World, call, calls, delta

ADD = "golden/tool:add#0"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def saved() -> RunCheckpoint:
    return save_runs(full_world().runs)


def changed(change: Callable[[Any], object], name: str = "a.json") -> RunCheckpoint:
    """The document with a change and the check that fits it, read again."""
    data = loads(saved().to_bytes())
    change(data)
    return RunCheckpoint.from_bytes(sealed(data), name)


def first(data: Any, kind: str) -> Any:
    return next(each for each in data["entities"] if each["kind"] == kind)


def streaming() -> RunCheckpoint:
    world = World(delta("So ", "it is."))
    world.run(streamed=True, until_us=150 * MS)
    return save_runs(world.runs)


class Pondering(Layer):
    """Lets everything be served, and never comes to a verdict on it."""

    def after(self, ask: Ask, outcome: Outcome) -> Later:
        return Later(Approval())


def over_its_verdict() -> RunCheckpoint:
    """The tool has answered, so it must not run again, and the run has not been told."""
    world = World(calls(call("add")), max_turns=2)
    world.tool("add", layers=(Pondering(),))
    world.run()
    return save_runs(world.runs)


def unsaved() -> None:
    world = World(None)
    run = world.run()
    run.settings.tool_context = {"who": object()}
    save_runs(world.runs)


def into_destination(checkpoint: RunCheckpoint, *handlers: Any) -> None:
    world = destination()
    problem = refusal(world, checkpoint, *handlers)
    raise problem


def into_nothing(checkpoint: RunCheckpoint, *handlers: Any) -> None:
    raise refusal(World(), checkpoint, *handlers)


def overfull() -> None:
    world = World()
    world.runs.assets.limits = AssetLimits(max_payload_bytes=6)
    raise refusal(world, saved(), (ADD, TOOL))


TOOL = Tool(World().clock, 42)
CAUSES: dict[str, tuple[Callable[[], object], str, type[BaseException] | None]] = {
    "NotSaved": (
        unsaved,
        "the runs cannot be saved: r1.settings.tool_context.who: found object; accepted are plain data and "
        "the values of a run",
        ValueFault,
    ),
    "NotACheckpoint": (
        lambda: RunCheckpoint.from_bytes(b'{"bargein_runs":2,', "a.json"),
        "a.json, character 19: Expecting property name enclosed in double quotes; accepted is JSON",
        DocumentError,
    ),
    "OtherFormat": (
        lambda: changed(lambda data: data.update(bargein_runs=1)),
        "a.json: it has format 1; accepted is format 2",
        None,
    ),
    "UnknownKind": (
        lambda: into_destination(changed(lambda data: first(data, "agent").update(kind="spy"))),
        "a.json: entities[2].kind: found 'spy'; accepted is one of handler, agent, run, message, part, turn, edit, "
        "invalid_call, effect",
        None,
    ),
    "UnknownField": (
        lambda: into_destination(changed(lambda data: first(data, "part").update(mood="good"))),
        "a.json: entities[5].mood: an entity of kind part has no mood; accepted is parent, id, part, status",
        None,
    ),
    "UnknownHostState": (
        lambda: into_destination(changed(lambda data: first(data, "run")["host"].update(notes=[]))),
        "a.json: entities[3].host.notes: nobody registered it here; accepted is nothing, since nobody registered any",
        None,
    ),
    "BadValue": (
        lambda: into_destination(changed(lambda data: first(data, "run").update(cursor="1"))),
        "a.json: entities[3].cursor: found str; accepted is int",
        ValueFault,
    ),
    "BadParent": (
        lambda: into_destination(changed(lambda data: first(data, "message").update(parent=99))),
        "a.json: entities[4].parent: found 99; accepted is the position of an entity before it",
        None,
    ),
    "BadLink": (
        lambda: into_destination(changed(lambda data: first(data, "turn").update(assistant=3))),
        "a.json: entities[11].assistant: entity 3 is of kind run, which does not fit",
        None,
    ),
    "BadContent": (
        lambda: into_destination(changed(lambda data: first(data, "message").update(role="system"))),
        "a.json: entities[6]: parts[0]: found image; a system message holds text",
        ContentError,
    ),
    "BadHold": (
        lambda: into_destination(changed(lambda data: first(data, "effect").update(held=True))),
        "a.json: entities[12].held: found True; its owners are none",
        None,
    ),
    "BadBinary": (
        lambda: changed(lambda data: data["binaries"].update({EMPTY: "QQ=="})),
        f"a.json: binaries.{EMPTY}: its 1 bytes have another digest; it was edited",
        None,
    ),
    "MissingBinary": (
        lambda: into_destination(changed(lambda data: data["binaries"].clear())),
        "a.json: entities[6].part.source: payload 2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97 is "
        "not among the binaries",
        None,
    ),
    "UnfinishedStream": (
        lambda: into_nothing(streaming()),
        f"the checkpoint: effect 0 ({MODEL}) is in the middle of its stream, after 1 items, and there is no cursor to "
        "go on from; accepted is a place where no answer is streaming",
        None,
    ),
    "PendingVerdict": (
        lambda: into_nothing(over_its_verdict()),
        f"the checkpoint: effect 1 ({ADD}) was answered, and a layer was still over its verdict; accepted is a place "
        "before it goes out or after the verdict",
        None,
    ),
    "MissingContract": (
        lambda: into_destination(changed(lambda data: data["entities"][15].update(key="x:gone"))),
        "a.json: an effect for x:gone is unfinished, and no handler of its key was saved with it",
        None,
    ),
    "IdTaken": (
        lambda: into_destination(changed(lambda data: data["entities"][14].update(id=100))),
        f"a.json: effect 100 ({ADD}) has to go out again, and another effect here has its id",
        None,
    ),
    "RunTaken": (
        lambda: into_destination(save_runs(destination().runs)),
        "the checkpoint: run 10 is here already; accepted is a session without a run of this number",
        None,
    ),
    "KeyMismatch": (
        lambda: into_destination(changed(lambda data: first(data, "handler")["descriptor"].update(key=ADD))),
        f"a.json: entities[0]: it binds {MODEL}, and its descriptor is of {ADD}",
        None,
    ),
    "DuplicateHandler": (
        lambda: into_destination(saved(), (ADD, TOOL), (ADD, TOOL)),
        f"{ADD}: it was given two handlers; accepted is one",
        None,
    ),
    "ExtraneousHandler": (
        lambda: into_destination(saved(), ("x:more", TOOL)),
        f"x:more: nothing that was saved needs it; accepted is {MODEL}, {ADD}",
        None,
    ),
    "MissingHandler": (
        lambda: into_nothing(saved()),
        f"{ADD}: nobody serves it, and no handler was given; accepted is one of either",
        None,
    ),
    "DescriptorMismatch": (
        lambda: into_destination(saved(), (ADD, Supplied(TOOL, descriptor=Descriptor(ADD, "tool_call", "new")))),
        f"{ADD}: its label was '' when it was saved, and is 'new'",
        None,
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_every_cause_has_a_class_a_sentence_and_what_lies_beneath(name: str) -> None:
    act, sentence, beneath = CAUSES[name]
    with pytest.raises(CheckpointError) as caught:
        act()
    problem = caught.value
    assert said(problem) == f"{name}: {sentence}"
    assert type(problem.__cause__) is (beneath or type(None))
    assert problem.args == (sentence,)


def test_no_cause_is_left_out() -> None:
    assert sorted([*CAUSES, "CheckpointError"]) == saved_errors.__all__


# -- the document ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data.pop("at_us"), "a.json: at_us is missing; it was cut off or edited"),
        (lambda data: data.update(at_us=-1), "a.json.at_us: found -1; accepted is a whole number from 0"),
        (lambda data: data.update(at_us=True), "a.json.at_us: found true; accepted is a whole number"),
        (lambda data: data.update(more=1), "a.json.more: nothing of that name belongs here; accepted is bargein_runs,"),
        (lambda data: data.update(entities={}), "a.json.entities: found a mapping of 0; accepted is a list"),
        (lambda data: data["entities"].append([]), "a.json: entities[34]: it is no entity; accepted is a mapping with"),
        (lambda data: data["entities"].append({"kind": 1}), "a.json: entities[34]: it is no entity; accepted is a map"),
        (lambda data: data["counters"].update(next_id="7"), 'a.json: counters.next_id: found "7"; accepted is a who'),
        (lambda data: data["counters"].update(next_id=2**64), f"a.json: counters.next_id: found {2**64}; accepted is "),
        (lambda data: data["counters"].pop("next_run"), "a.json: counters: next_run is missing; it was cut off or ed"),
    ],
)
def test_a_document_whose_outside_is_not_sound_is_refused_at_its_place(change: Any, sentence: str) -> None:
    with pytest.raises(NotACheckpoint) as caught:
        changed(change)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("binaries", "sentence", "beneath"),
    [
        ({EMPTY: "###"}, f"a.json: binaries.{EMPTY}: it is no base64", ValueError),
        ({EMPTY: 7}, f"a.json: binaries.{EMPTY}: it is no base64", TypeError),
        ({"short": ""}, "a.json: binaries.short: its 0 bytes have another digest; it was edited", type(None)),
    ],
)
def test_a_payload_that_is_not_what_its_digest_says_is_refused(binaries: Any, sentence: str, beneath: Any) -> None:
    with pytest.raises(BadBinary) as caught:
        changed(lambda data: data["binaries"].update(binaries))
    assert str(caught.value) == sentence
    assert isinstance(caught.value.__cause__, beneath)


def test_payloads_beyond_the_limits_of_the_destination_are_refused_together_with_what_it_has() -> None:
    world = destination()
    limits = world.runs.assets.limits
    checkpoint = saved()
    for narrow, sentence in (
        (AssetLimits(max_payload_bytes=6), "asset of 7 bytes: accepted are up to 6"),
        (AssetLimits(max_retained_bytes=10), "asset of 7 bytes: the store holds 4 of 10"),
        (AssetLimits(max_assets=1), "one asset more: the store holds 1, which is all it may"),
    ):
        world.runs.assets.limits = narrow
        problem = refusal(world, checkpoint)
        (digest,) = checkpoint.binaries
        assert said(problem) == f"BadBinary: the checkpoint: binaries.{digest}: {sentence}"
        assert type(problem.__cause__) is ContentError
    world.runs.assets.limits = limits
    load_runs(checkpoint, world.runs)
    assert world.runs.assets.retained_bytes == 11


def test_payloads_that_the_destination_has_already_take_no_more_room() -> None:
    world = World()
    world.runs.assets = BinaryAssets(AssetLimits(max_assets=1))
    load_runs(saved(), world.runs, [(ADD, TOOL)])
    second = saved()
    fewer = replace(second, entities=(), name="again")
    load_runs(fewer, world.runs)
    assert len(world.runs.assets) == 1


def test_logs_checkpoints_and_recordings_are_not_taken_for_runs_nor_runs_for_them() -> None:
    _, log, session = take_checkpoint(Plan(sim.load("chained_lookups")), When.parse("tool.committed:1"))
    cassette = dump_cassette(Cassette("openai_chat", "m", "a", ()))
    told = []
    for raw in (log.to_bytes(), session.to_bytes(), cassette.encode(), b"{}\n", b"[]\n"):
        with pytest.raises(NotACheckpoint) as caught:
            RunCheckpoint.from_bytes(raw, "a")
        told.append(str(caught.value))
    assert told == [
        f"a: it is {what}; accepted is a checkpoint of agent runs"
        for what in (
            "an effect log",
            "a checkpoint of a session",
            "a recording of a wire",
            "something else",
            "something else",
        )
    ]
    raw = saved().to_bytes()
    for read in (EffectLog.from_bytes, Checkpoint.from_bytes):
        with pytest.raises(DocumentError, match=r"^a: it is a checkpoint of agent runs; accepted is a"):
            read(raw, "a")
    with pytest.raises(CassetteError, match="line 1: found no head; accepted is an object with bargein_cassette"):
        read_cassette(raw.decode())


# -- what cannot be saved -------------------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (object(), "found object; accepted are plain data and the values of a run"),
        (float("nan"), "found float; accepted are plain data and the values of a run"),
        ({1: 2}, "found the key 1; accepted are texts"),
        (deep(5000), "it is nested too deep; a document holds up to 100 levels"),
    ],
)
def test_what_has_no_saved_form_is_refused_with_its_place_as_it_is_saved(value: Any, sentence: str) -> None:
    world = World()
    world.runs.create(world.agent, Settings(tool_context={"it": value}))
    with pytest.raises(NotSaved) as caught:
        save_runs(world.runs)
    assert str(caught.value).startswith("the runs cannot be saved: r1.settings.tool_context.it")
    assert str(caught.value).endswith(sentence)


def test_a_value_that_could_not_be_read_again_is_refused_as_it_is_saved() -> None:
    world = World()
    run = world.runs.create(world.agent)
    run.usage = {"total": 0.5}
    with pytest.raises(
        NotSaved, match=r"^the runs cannot be saved: r1\.usage: found dict; accepted is dict of int or nothing$"
    ):
        save_runs(world.runs)


@pytest.mark.parametrize("levels", range(80, 100))
def test_whatever_is_saved_can_be_read_again_however_deep_it_is(levels: int) -> None:
    for value in (deep(levels), _tagged(levels // 3)):
        world = World()
        run: Any = world.runs.create(world.agent)
        run.settings.additional_params = value
        try:
            checkpoint = save_runs(world.runs)
        except NotSaved:
            assert levels > 85
            continue
        again = RunCheckpoint.from_bytes(checkpoint.to_bytes())
        other = World()
        load_runs(again, other.runs)
        assert other.runs.live[1].settings.additional_params == value


def _tagged(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"$": value}
    return value


def test_a_host_whose_state_is_no_data_or_cannot_be_read_is_told_where() -> None:
    world = World()
    run = world.runs.create(world.agent)
    run.host["notes"] = object()
    world.runs.host_state["notes"] = (lambda notes: notes, lambda notes: notes)
    with pytest.raises(NotSaved, match=r"r1: host\.notes: found object"):
        save_runs(world.runs)
    run.host["notes"] = 7
    other = World()
    for wrong in (lambda _: [][0], lambda _: int("x"), lambda data: data.text, lambda data: data["a"]):
        other.runs.host_state["notes"] = (lambda notes: notes, wrong)
        problem = refusal(other, save_runs(world.runs))
        assert said(problem).startswith("BadValue: the checkpoint: entities[2].host.notes: it cannot be read: ")
        assert problem.__cause__ is not None
