"""Programs of every sort, to be saved wherever they can be; see ``checkpoint_kit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bargein.pipelines.agent.answers import PartDone, StreamError
from bargein.pipelines.agent.deltas import StreamEnd, TextDelta
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.media_sources import Base64
from bargein.pipelines.agent.parts import (
    ImagePart,
    OpaquePart,
    ReasoningPart,
    TextPart,
)
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.pipelines.agent.retrieval import Retrieves, What
from bargein.pipelines.agent.run_settings import (
    Backoff,
    Document,
    InvalidCalls,
    OutputMode,
    OutputSpec,
    ToolAccess,
    Unhandled,
)
from bargein.pipelines.agent.run_state import Resolution, ResolutionKind
from bargein.sim.effects.bus import Effect, EffectKind, Outcome, Status
from bargein.sim.effects.layers import Dispatch
from bargein.sim.effects.reports import ReportKind, failed
from bargein.sim.kernel.cancel import Cause
from tests.pipelines.agent.checkpoint_kit import Before, Program
from tests.pipelines.agent.memory_kit import CONTEXT, OLD, TOOLS, RememberingWorld, found
from tests.pipelines.agent.run_kit import (
    BUSY,
    MS,
    SCHEMA,
    Tool,
    World,
    call,
    calls,
    delta,
    named,
    refused,
    text,
)

PICTURE = ImagePart(Base64("iVBORw0KGgo="), "image/png", "low", {"crop": [0, 1]}, {"vendor": 1})
NOTE = "x:note"
PROGRAMS: dict[str, Program] = {}


def program(*, loose: bool = False, **more: Any) -> Callable[[Callable[[Before], World]], Program]:
    """Enter a program under the name of the function that builds its world; ``more`` is for its one run."""

    def enter(build: Callable[[Before], World]) -> Program:
        prompt = more.pop("prompt", "hello")
        history = more.pop("history", ())
        start = more.pop("start", lambda world: world.runs.spawn(world.agent, prompt, history, **more))
        PROGRAMS[build.__name__] = Program(build, start, loose)
        return PROGRAMS[build.__name__]

    return enter


def answered_by(world: World, *names: str, delay_us: int = 10 * MS, **more: Any) -> None:
    """Tools whose answers their arguments decide."""
    for name in names:
        world.tool(name, lambda request: [request.name, request.arguments], delay_us, **more)


# -- tools ----------------------------------------------------------------------------------------------------------


@program()
def serial_tools(before: Before) -> World:
    script = (
        calls(call("add", "a", x=1), call("sub", "b", x=2), call("add", "c", x=3), usage=5),
        calls(call("add", "d"), TextPart("more")),
        text("done", usage=7),
    )
    world = World(*before.rest(*script), delay_us=5 * MS, max_turns=4, tool_context={"who": "me"})
    answered_by(world, "add", "sub")
    return world


@program()
def concurrent_tools(before: Before) -> World:
    script = (calls(*(call("add", f"c{at}", x=at) for at in range(4))), text("done"))
    world = World(*before.rest(*script), max_turns=2, concurrency=2, result_limit=ResultLimit(4))
    answered_by(world, "add")
    return world


@program()
def tools_that_wait_for_a_place(before: Before) -> World:
    script = (calls(*(call("add", f"c{at}", x=at) for at in range(3))), text("done"))
    world = World(*before.rest(*script), max_turns=2, concurrency=3)
    answered_by(world, "add", serial=True)
    return world


@program()
def outcomes_of_every_sort(before: Before) -> World:
    script = (calls(call("fail", "a"), call("refuse", "b"), call("wrong", "c"), call("show", "d")), text("done"))
    world = World(*before.rest(*script), max_turns=2, concurrency=2)
    for name, value in (
        ("fail", failed(ReportKind.OTHER, "broken")),
        ("refuse", refused("not today")),
        ("wrong", text("an answer")),
        ("show", PICTURE),
    ):
        world.tool(name, value, MS)
    return world


@program()
def a_cancelled_outcome(before: Before) -> World:
    world = World(*before.rest(calls(call("add", "a"), call("sub", "b"))), max_turns=2)
    world.tool("add", Outcome(Status.CANCELLED, Cause.DISCARDED), MS)
    answered_by(world, "sub")
    return world


@program()
def turns_that_are_spent(before: Before) -> World:
    world = World(*before.rest(calls(call("add")), calls(call("add"))), max_turns=2)
    answered_by(world, "add")
    return world


class Nesting:
    """Asks for a custom effect on behalf of what it serves, and answers with what comes of it."""

    def __init__(self, world: World, key: str) -> None:
        self.world = world
        self.key = key

    def serve(self, effect: Effect) -> None:
        def landed(dispatch: Dispatch) -> None:
            assert dispatch.outcome is not None
            effect.land(dispatch.outcome)

        self.world.bus.dispatch(
            EffectKind.CUSTOM, self.key, "look", scope=effect.scope, on_landed=landed, parent=effect.id
        )


@program(loose=True)
def nested_effects(before: Before) -> World:
    world = World(*before.rest(calls(call("lookup")), text("done")), max_turns=2)
    world.bus.serve(NOTE, Tool(world.clock, "noted", 3 * MS))
    world.bus.serve("x:relay", Nesting(world, NOTE))
    world.bus.serve(world.agent.grant("lookup").key, Nesting(world, "x:relay"))
    return world


# -- memory and retrieval -------------------------------------------------------------------------------------------


@program()
def memory(before: Before) -> World:
    script = before.rest(calls(call("add"), PICTURE), text("done"))
    world = RememberingWorld(*script, max_turns=2, old=before.old(*OLD), delay_us=MS)
    answered_by(world, "add")
    return world


@program()
def retrieval(before: Before) -> World:
    script = before.rest(calls(call("sub", "a")), calls(call("add", "b")), text("done"))
    world = RememberingWorld(*script, max_turns=3, old=before.old(), delay_us=MS)
    answered_by(world, "add", "sub")
    world.agent.context.append(Document("static", "always"))
    world.look_up(Retrieves(CONTEXT, 2), Retrieves(TOOLS, 1, What.TOOLS), retrievable=("sub",))
    documents = found([0.5, "d1", {"a": 1}], [0.25, "static", "again"]), found([0.5, "d2", "x"]), found()
    tools = found([1, "sub"]), found(), found([0.125, "ghost"])
    world.index(CONTEXT, *before.rest(*documents, key=CONTEXT), delay_us=2 * MS)
    world.index(TOOLS, *before.rest(*tools, key=TOOLS), delay_us=3 * MS)
    return world


# -- answers --------------------------------------------------------------------------------------------------------


@program()
def an_output_tool(before: Before) -> World:
    script = (calls(call("final_result", day=1)), calls(call("final_result", "c2", day=1, people=2)))
    output = OutputSpec(SCHEMA, OutputMode.TOOL)
    world = World(*before.rest(*script), delay_us=MS, max_turns=3, output=output)
    answered_by(world, "add")
    return world


@program()
def an_output_tool_beside_another(before: Before) -> World:
    script = (calls(call("final_result", "a", day=1, people=2), call("add", "b")),)
    world = World(*before.rest(*script), delay_us=MS, max_turns=3, output=OutputSpec(SCHEMA, OutputMode.TOOL))
    answered_by(world, "add")
    return world


@program()
def an_incomplete_output_beside_a_tool(before: Before) -> World:
    script = (calls(call("final_result", "a", day=1), call("add", "b")), text('{"day":1,"people":2}'))
    world = World(*before.rest(*script), delay_us=MS, max_turns=3, output=OutputSpec(SCHEMA, OutputMode.TOOL))
    answered_by(world, "add")
    return world


@program()
def answers_that_are_asked_again(before: Before) -> World:
    script = (calls(ReasoningPart("", "sealed"), OpaquePart({"vendor": [1]}), TextPart("No.")), text("Yes."))
    world = World(*before.rest(*script), delay_us=MS, max_turns=3)

    def judge(moment: Moment) -> None:
        if moment.turn is not None and moment.turn.number == 1:
            moment.retry("Say yes.")

    world.on(At.JUDGE_ROUND, judge)
    return world


@program()
def errors_that_pass(before: Before) -> World:
    script = (BUSY, calls(call("add")), BUSY, BUSY, text("done"))
    world = World(*before.rest(*script), delay_us=MS, max_turns=2, backoff=Backoff(20 * MS, 30 * MS))
    answered_by(world, "add")
    return world


# -- invalid calls --------------------------------------------------------------------------------------------------


def resolving(world: World, **resolutions: Resolution) -> World:
    """Each call that is not allowed is resolved by its id; one that is not named is left to the settings."""

    def resolve(moment: Moment) -> None:
        assert moment.invalid is not None
        chosen = resolutions.get(moment.invalid.call.provider_id.removeprefix("p-"))
        if chosen is not None:
            moment.resolve(chosen)

    world.on(At.INVALID_CALL, resolve)
    return world


@program()
def invalid_calls(before: Before) -> World:
    script = (
        calls(call("nope", "again"), call("add", "x1")),
        calls(call("nope", "skip"), call("add", "x2")),
        calls(call("nope", "mend", y=1), call("ghost", "leave"), call("add", "x3")),
        text("done"),
    )
    policy = InvalidCalls(Unhandled.IGNORE, 1)
    world = World(*before.rest(*script), delay_us=MS, max_turns=4, invalid_calls=policy)
    answered_by(world, "add")
    return resolving(
        world,
        again=Resolution(ResolutionKind.RETRY, "There is no nope."),
        skip=Resolution(ResolutionKind.SKIP, "Skipped."),
        mend=Resolution(ResolutionKind.REPAIR, "add"),
    )


@program()
def an_invalid_call_that_fails(before: Before) -> World:
    script = (calls(call("nope", "a"), call("add", "b")),)
    access = ToolAccess({"add": "golden/tool:add#0"}, ("add",))
    world = World(*before.rest(*script), delay_us=MS, max_turns=2, tool_access=access)
    answered_by(world, "add")
    return world


@program(streamed=True)
def invalid_calls_in_a_stream(before: Before) -> World:
    first = [(MS, TextDelta("So ")), named("nope", 2 * MS, 0, "{}", "again"), named("add", 3 * MS, 1), (4 * MS, _END)]
    second = [named("nope", MS, 0, '{"y":1}', "mend"), (2 * MS, PartDone(call("add", "x"))), (3 * MS, _END)]
    script = before.rest(first, second, delta("done", every_us=MS))
    world = World(*script, max_turns=3, invalid_calls=InvalidCalls(Unhandled.IGNORE, 1))
    answered_by(world, "add")
    return resolving(
        world,
        again=Resolution(ResolutionKind.RETRY, "There is no nope."),
        mend=Resolution(ResolutionKind.REPAIR, "add"),
    )


_END = StreamEnd("tool_calls", {"total": 3})


# -- streams --------------------------------------------------------------------------------------------------------


@program(streamed=True)
def streams(before: Before) -> World:
    first = [(MS, TextDelta("Let me ")), (2 * MS, TextDelta("see.")), named("add", 3 * MS, 0, "{}"), (4 * MS, _END)]
    world = World(*before.rest(first, delta("It is ", "so.", every_us=MS)), max_turns=2)
    answered_by(world, "add")
    return world


@program(streamed=True)
def a_stream_that_breaks(before: Before) -> World:
    broken = [(MS, TextDelta("Lost")), (2 * MS, StreamError(BUSY)), (3 * MS, TextDelta("late")), (4 * MS, _END)]
    return World(*before.rest(broken, delta("Kept.", every_us=MS)), max_turns=1, backoff=Backoff(MS, MS))


@program()
def a_stream_that_nobody_sees(before: Before) -> World:
    first = [(MS, TextDelta("Let me see.")), named("add", 2 * MS, 0, "{}"), (3 * MS, PartDone(PICTURE)), (4 * MS, _END)]
    world = World(*before.rest(first, delta("It is ", "so.", every_us=MS)), max_turns=2)
    answered_by(world, "add")
    return world
