"""Programs that hooks steer, that hold media, or that are more than one run; see ``checkpoint_programs``."""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.edits import RemoveEdit, RequestPatch, TextEdit
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import Raw, Url
from bargein.pipelines.agent.parts import AudioPart, CallPart, ImagePart, TextPart
from bargein.pipelines.agent.run_settings import Document, ModelDescriptor, OutputMode, OutputSpec
from bargein.sim.effects.bus import EffectKind, Outcome, Status
from tests.pipelines.agent.checkpoint_kit import Before
from tests.pipelines.agent.checkpoint_programs import NOTE, PICTURE, answered_by, program
from tests.pipelines.agent.run_kit import MS, SCHEMA, Model, Tool, World, call, calls, text

SOUND = AudioPart(Raw(b"\0\1\2"), "audio/wav")
FAR = ImagePart(Url("https://example.test/a.png"))

# -- steering -------------------------------------------------------------------------------------------------------


@program()
def dispatches_of_hooks(before: Before) -> World:
    world = World(*before.rest(calls(call("add", "a"), call("add", "b")), text("done")), max_turns=2, delay_us=MS)
    answered_by(world, "add")
    world.bus.serve(NOTE, Tool(world.clock, {"$": "noted"}, 4 * MS))

    def note(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.kind is EffectKind.TOOL_CALL:
            moment.dispatch(EffectKind.CUSTOM, NOTE, {"$": [1, None, 0.5], "of": str(moment.effect.key)})

    world.on(At.JUDGE_OUTCOME, note)
    return world


@program()
def a_dispatch_as_the_run_ends(before: Before) -> World:
    script = (calls(call("final_result", "a", day=1, people=2), call("add", "b")),)
    world = World(*before.rest(*script), delay_us=MS, max_turns=3, output=OutputSpec(SCHEMA, OutputMode.TOOL))
    answered_by(world, "add")
    world.bus.serve(NOTE, Tool(world.clock, "noted", MS))

    def note(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.kind is EffectKind.TOOL_CALL:
            moment.dispatch(EffectKind.CUSTOM, NOTE, "it ran")

    world.on(At.JUDGE_OUTCOME, note)
    return world


@program()
def edits_and_patches(before: Before) -> World:
    script = (calls(call("add", "a")), calls(call("add", "b")), text("done"))
    world = World(*before.rest(*script), max_turns=3, preamble="Be brief.", delay_us=MS)
    answered_by(world, "add", "sub")

    def change(moment: Moment) -> None:
        assert moment.turn is not None
        moment.patch(RequestPatch(temperature=0.5, extra_context=(Document(f"d{moment.turn.number}", "x"),)))
        if moment.turn.number == 2:
            moment.edit(TextEdit(moment.run.history.ids(0)[0], "hi"), RemoveEdit(moment.run.history.ids(1)[0]))
            moment.patch(RequestPatch(active_tools=("sub",), tool_choice="auto", max_tokens=7))

    world.on(At.BEFORE_REQUEST, change)
    return world


@program(prompt=(TextPart("Look.", ({"cite": 1},)), PICTURE, SOUND, FAR))
def media(before: Before) -> World:
    script = (calls(TextPart("I see.", native={"id": 1}), PICTURE, call("show")), text("done"))
    world = World(*before.rest(*script), max_turns=2, delay_us=MS)
    world.tool("show", PICTURE, MS)
    return world


@program()
def verdicts_of_hooks(before: Before) -> World:
    script = (calls(*(call("add", name, x=1) for name in ("a", "b", "c", "d"))), text("done"))
    world = World(*before.rest(*script), max_turns=2, delay_us=MS)
    answered_by(world, "add")

    def gate(moment: Moment) -> None:
        assert moment.effect is not None
        asked = moment.effect.call
        if isinstance(asked, CallPart) and asked.id == "b":
            moment.deny("not b")
        elif isinstance(asked, CallPart) and asked.id == "c":
            moment.patch_arguments({"x": 9})

    def judge(moment: Moment) -> None:
        assert moment.effect is not None
        if moment.effect.call is not None and moment.effect.call.id == "a":
            moment.replace_outcome(Outcome(Status.OK, "other"))

    world.on(At.GATE, gate)
    world.on(At.JUDGE_OUTCOME, judge)
    return world


@program()
def another_model(before: Before) -> World:
    key = "golden/model:other"
    world = World(*before.rest(calls(call("add")), text("done")), max_turns=3, delay_us=MS)
    answered_by(world, "add")
    world.agent.routes = (ModelDescriptor(key, True),)
    world.bus.serve(key, Model(world.clock, *before.rest(calls(call("add")), key=key), delay_us=2 * MS))

    def select(moment: Moment) -> None:
        assert moment.turn is not None
        moment.select(key if moment.turn.number == 2 else world.agent.model.key)

    world.on(At.SELECT_MODEL, select)
    return world


# -- more than one run ----------------------------------------------------------------------------------------------


@program(loose=True, start=lambda world: [world.runs.spawn(world.agent, each) for each in ("one", "two", "three")])
def three_runs(before: Before) -> World:
    world = World(max_turns=2)
    answered_by(world, "add", delay_us=3 * MS)

    def answer(payload: Any) -> Any:
        rounds = sum(message.role == "assistant" for message in payload.request.chat_history)
        return text(f"done {payload.last_user_text}") if rounds else calls(call("add", x=payload.last_user_text))

    world.bus.replace("golden/model:default", Tool(world.clock, answer, 2 * MS))
    return world
