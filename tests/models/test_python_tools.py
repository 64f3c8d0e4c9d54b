"""A user's Python functions as tools: declared, served on the virtual clock, cancelled, and never let out of hand."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bargein.models.python_tools import Progress, SessionControl, Steps, ToolCallContext, ToolError, Tools
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.events import KINDS
from bargein.pipelines.settings import EngineConfig
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.execution import Execution
from bargein.pipelines.tools.invocation import IdempotencyKey
from bargein.pipelines.tools.registry import Duplicate, InvalidName, RepeatableNeedsSideEffect, ToolRegistry
from bargein.pipelines.tools.spec import SpecError, ToolKind, ToolSpec
from bargein.sim.effects.bus import EffectBus, EffectKind, Outcome, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

MS = 1_000


class Rig:
    """One engine with the tools of a registry; each call is its own response of turn 1 unless grouped."""

    def __init__(self, tools: Tools, session: str = "s", **config: Any) -> None:
        self.clock = Clock()
        self.bus = EffectBus(self.clock)
        self.timeline = Timeline(self.clock, KINDS)
        registry = ToolRegistry()
        for spec in tools.specs:
            self.bus.register(registry.register(spec).handler_key, tools.handler(spec.name, self.clock))
        self.engine = ToolEngine(self.clock, self.bus, self.timeline, registry, session, EngineConfig(**config))
        self.token = CancelToken("turn 1")
        self.seq = 0

    def execute(self, *calls: tuple[str, dict[str, Any]]) -> Execution:
        made = []
        for name, arguments in calls:
            made.append(ToolCall(f"t1.{self.seq}", name, arguments))
            self.seq += 1
        return self.engine.execute(made, 1, self.token)

    def run(self, *calls: tuple[str, dict[str, Any]]) -> list[tuple[str, bool]]:
        """Execute, let everything happen, and return each answer with whether it is an error."""
        execution = self.execute(*calls)
        self.clock.run()
        return [(message.result.content, message.result.is_error) for message in execution.results]

    def story(self, *kinds: str) -> list[tuple[Any, ...]]:
        return [
            (
                record["t"],
                record["kind"],
                *[record[key] for key in ("call", "status", "cause", "text") if key in record],
            )
            for record in self.timeline
            if record["kind"] in kinds
        ]


def failed(detail: str, tool: str) -> tuple[str, bool]:
    return json.dumps({"error": "tool_failed", "tool": tool, "detail": detail}, separators=(",", ":")), True


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.ERROR, "bargein.tools")
    return lambda: [record.message for record in caplog.records]


# -- declaring ------------------------------------------------------------------------------------------------------


def test_a_function_declares_itself_by_its_name_docstring_and_annotations(tools: Tools) -> None:
    @tools.read_only
    def get_weather(city: str) -> str:
        """Tells the weather.

        Not more.
        """
        return city

    assert tools.specs == (
        ToolSpec(
            "get_weather",
            "Tells the weather.",
            {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "additionalProperties": False,
                "required": ["city"],
            },
            ToolKind.READ_ONLY,
            5_000_000,
            700_000,
        ),
    )
    assert get_weather("Rome") == "Rome"


def test_every_option_is_in_the_declaration(tools: Tools) -> None:
    parameters = {"type": "object", "properties": {"day": {"type": "string"}}}

    @tools.side_effect(
        name="book-table",
        description="Books.",
        parameters=parameters,
        timeout="2s",
        filler_after=None,
        repeatable=True,
        confirm=True,
    )
    def book(day: str) -> str:
        return day

    parameters.clear()
    assert tools.specs == (
        ToolSpec(
            "book-table",
            "Books.",
            {"type": "object", "properties": {"day": {"type": "string"}}},
            ToolKind.SIDE_EFFECT,
            2_000_000,
            None,
            True,
            True,
        ),
    )


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"timeout": "2"}, SpecError, 'tool f: timeout: "2" is not a duration; accepted is'),
        ({"timeout": 2.5}, SpecError, "tool f: timeout: 2.5 is not a duration; accepted is"),
        ({"retries": 2}, SpecError, "tool f: 'retries' is not a field of a tool; accepted are name,"),
        ({"repeatable": 1}, SpecError, "tool f: repeatable: 1 is not a switch; accepted are true and false"),
        ({"repeatable": True}, RepeatableNeedsSideEffect, "tool f: repeatable is for side effects"),
        ({"name": "no spaces"}, InvalidName, "'no spaces' is not a tool name; accepted are 1 to 64"),
    ],
)
def test_a_bad_option_is_refused_where_it_is_declared(
    tools: Tools, options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as refused:
        tools.read_only(**options)(named("f"))
    assert str(refused.value).startswith(sentence)
    assert tools.specs == ()


def named(name: str, result: Any = None) -> Callable[[], Any]:
    def function() -> Any:
        return result

    function.__name__ = name
    return function


def test_a_name_is_declared_once_whatever_is_included(tools: Tools) -> None:
    other = Tools()
    other.read_only(named("there"))
    tools.read_only(named("here"))
    tools.include(other)
    for name in ("here", "there"):
        with pytest.raises(Duplicate):
            tools.side_effect(named(name))
        again = Tools()
        again.read_only(named(name))
        with pytest.raises(Duplicate, match=f"a tool named {name} is declared already; choose another name"):
            tools.include(again)
    assert [spec.name for spec in tools.specs] == ["here", "there"]


def test_an_asynchronous_generator_is_refused_in_one_sentence(tools: Tools) -> None:
    async def stream() -> Any:
        yield 1

    with pytest.raises(SpecError) as refused:
        tools.read_only(stream)
    sentence = "tool stream is an async generator; accepted is an async def that awaits, or a def that yields"
    assert str(refused.value) == sentence


def test_a_partial_needs_a_name(tools: Tools) -> None:
    with pytest.raises(SpecError, match="is no named function; accepted is a function, or name= beside it"):
        tools.read_only("f")  # type: ignore[type-var]


# -- results --------------------------------------------------------------------------------------------------------


def test_a_tool_returns_json_or_text_or_raises_an_error_with_one_message(tools: Tools) -> None:
    @tools.read_only
    def fail() -> None:
        raise ToolError("no")

    tools.read_only(named("json", {"a": 1}))
    tools.read_only(named("text", "hi"))
    tools.side_effect(named("nothing"))
    assert Rig(tools).run(("json", {}), ("text", {}), ("fail", {}), ("nothing", {})) == [
        ('{"a":1}', False),
        ("hi", False),
        failed("no", "fail"),
        ("null", False),
    ]


def test_a_plain_function_is_answered_on_the_instant_of_its_call(tools: Tools) -> None:
    tools.side_effect(named("book", "BK-1001"))
    rig = Rig(tools)
    rig.clock.call_at(300 * MS, Order.WORK, lambda _: rig.execute(("book", {})))
    rig.clock.run()
    assert rig.story("tool.started", "tool.finished", "tool.settled") == [
        (300 * MS, "tool.started", "t1.0"),
        (300 * MS, "tool.finished", "t1.0", "ok"),
        (300 * MS, "tool.settled", "t1.0"),
    ]


def test_a_generator_takes_the_time_it_yields_and_reports_progress_on_the_way(tools: Tools) -> None:
    @tools.side_effect
    def book(day: str, *, ctx: ToolCallContext) -> Steps:
        yield "400ms"
        yield Progress(f"asking for {day}")
        yield Progress(f"it is {ctx.now_us}")
        yield 20
        return {"day": day, "at": ctx.now_us}

    rig = Rig(tools)
    assert rig.run(("book", {"day": "friday"})) == [('{"day":"friday","at":400020}', False)]
    assert rig.story("tool.started", "tool.progress", "tool.finished") == [
        (0, "tool.started", "t1.0"),
        (400 * MS, "tool.progress", "t1.0", "asking for friday"),
        (400 * MS, "tool.progress", "t1.0", "it is 400000"),
        (400_020, "tool.finished", "t1.0", "ok"),
    ]


def test_calls_of_one_response_run_side_by_side(tools: Tools) -> None:
    @tools.read_only
    def look(ms: int) -> Steps:
        yield ms * MS
        return ms

    rig = Rig(tools)
    assert rig.run(("look", {"ms": 300}), ("look", {"ms": 100})) == [("300", False), ("100", False)]
    assert rig.story("tool.finished") == [
        (100 * MS, "tool.finished", "t1.1", "ok"),
        (300 * MS, "tool.finished", "t1.0", "ok"),
    ]


def test_a_call_gets_its_context(tools: Tools) -> None:
    seen: list[ToolCallContext] = []

    @tools.read_only
    def probe(ctx: ToolCallContext) -> str:
        seen.append(ctx)
        return "ok"

    @tools.side_effect
    def book(*, ctx: ToolCallContext) -> str:
        seen.append(ctx)
        return "ok"

    rig = Rig(tools, session="s7")
    rig.run(("probe", {}), ("book", {}))
    assert [(ctx.session, ctx.epoch, ctx.call_id, ctx.key) for ctx in seen] == [
        ("s7", 1, "t1.0", IdempotencyKey("s7", 1, "t1.0")),
        ("s7", 1, "t1.1", IdempotencyKey("s7", 1, "t1.1")),
    ]
    assert all(ctx.token is rig.token and ctx.clock is rig.clock for ctx in seen)


def test_what_a_function_does_to_its_arguments_or_its_result_later_is_its_own_affair(tools: Tools) -> None:
    book: dict[str, Any] = {"taken": []}

    @tools.read_only
    def take(seats: list[str]) -> dict[str, Any]:
        seats.append("mine")
        book["taken"] += seats
        return book

    rig = Rig(tools)
    arguments = {"seats": ["a"]}
    rig.run(("take", arguments))
    rig.run(("take", arguments))
    assert arguments == {"seats": ["a"]}
    assert [effect.outcome for effect in rig.bus.log] == [
        Outcome(Status.OK, {"taken": ["a", "mine"]}),
        Outcome(Status.OK, {"taken": ["a", "mine", "a", "mine"]}),
    ]


# -- crashes --------------------------------------------------------------------------------------------------------


def test_a_crash_is_answered_with_one_fixed_detail_and_its_siblings_are_answered(
    tools: Tools, log: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    @tools.read_only
    def at_call() -> None:
        raise ZeroDivisionError("secret")

    @tools.read_only
    def after_10_ms() -> Steps:
        yield "10ms"
        raise KeyError("secret")

    @tools.read_only
    def leaves() -> None:
        raise SystemExit(3)

    @tools.read_only
    def fine() -> Steps:
        yield "20ms"
        return "ok"

    rig = Rig(tools)
    crashed = "the tool panicked"
    assert rig.run(("at_call", {}), ("after_10_ms", {}), ("leaves", {}), ("fine", {})) == [
        failed(crashed, "at_call"),
        failed(crashed, "after_10_ms"),
        failed(crashed, "leaves"),
        ("ok", False),
    ]
    assert log() == [
        "tool at_call crashed in call t1.0: it raised ZeroDivisionError: secret",
        "tool leaves crashed in call t1.2: it raised SystemExit: 3",
        "tool after_10_ms crashed in call t1.1: it raised KeyError: 'secret'",
    ]
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[0] is ZeroDivisionError


def test_a_crashed_side_effect_leaves_open_what_it_did(tools: Tools) -> None:
    @tools.side_effect
    def book() -> Steps:
        yield "10ms"
        raise RuntimeError("gone")

    ((content, is_error),) = Rig(tools).run(("book", {}))
    assert (json.loads(content)["error"], is_error) == ("unknown_outcome", True)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (0.5, "it yielded 0.5: 0.5 is not a duration"),
        (-1, "it yielded -1: -1 is not a duration"),
        ("-1ms", "it yielded '-1ms': \"-1ms\" is negative"),
        ("soon", "it yielded 'soon': \"soon\" is not a duration"),
        (None, "it yielded None: None is not a duration"),
        (True, "it yielded True: True is not a duration"),
    ],
)
def test_yielding_anything_but_a_duration_is_a_crash_with_a_clear_log_line(
    tools: Tools, log: Callable[[], list[str]], step: Any, why: str
) -> None:
    closed = []

    @tools.read_only
    def look() -> Steps:
        try:
            yield step
        finally:
            closed.append(True)

    assert Rig(tools).run(("look", {})) == [failed("the tool panicked", "look")]
    assert [line.startswith(f"tool look crashed in call t1.0: {why}") for line in log()] == [True]
    assert closed == [True]


@pytest.mark.parametrize(
    ("result", "what"),
    [({1, 2}, "a set has no JSON text"), ([object()], "a object has no JSON text"), (float("nan"), "Out of range")],
)
def test_a_result_that_json_cannot_hold_is_a_crash_with_a_clear_log_line(
    tools: Tools, log: Callable[[], list[str]], result: Any, what: str
) -> None:
    tools.read_only(named("look", result))
    assert Rig(tools).run(("look", {})) == [failed("the tool panicked", "look")]
    (line,) = log()
    assert line.startswith(f"tool look crashed in call t1.0: its result is neither text nor JSON: {what}")


def test_a_tool_that_only_reports_progress_is_stopped(tools: Tools, log: Callable[[], list[str]]) -> None:
    @tools.read_only
    def chatty() -> Steps:
        while True:
            yield Progress("...")

    rig = Rig(tools)
    assert rig.run(("chatty", {})) == [failed("the tool panicked", "chatty")]
    assert len(rig.story("tool.progress")) == 1_001
    assert log() == ["tool chatty crashed in call t1.0: it reported progress more than 1000 times without waiting"]


# -- cancellation ---------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(tools: Tools) -> Iterator[list[tuple[int, str]]]:
    """Two tools of 500 ms each that note where, and when, they are closed."""
    seen: list[tuple[int, str]] = []

    def body(ctx: ToolCallContext) -> Steps:
        try:
            yield "200ms"
            seen.append((ctx.now_us, "half"))
            yield "300ms"
        except GeneratorExit:
            seen.append((ctx.now_us, "closed"))
            raise
        seen.append((ctx.now_us, "done"))
        return "done"

    tools.read_only(name="look", timeout="400ms")(body)
    tools.side_effect(name="book", timeout="250ms")(body)
    return seen  # type: ignore[return-value]


def interrupt(rig: Rig, at_us: int) -> None:
    rig.clock.call_at(at_us, Order.INTERRUPTION, lambda _: rig.token.cancel(Cause.BARGE_IN))


def test_an_interruption_closes_a_read_only_generator_on_its_instant(
    tools: Tools, watched: list[tuple[int, str]]
) -> None:
    rig = Rig(tools)
    interrupt(rig, 123_457)
    rig.run(("look", {}))
    assert watched == [(123_457, "closed")]
    assert rig.story("tool.dropped", "tool.finished") == [(123_457, "tool.dropped", "t1.0", Cause.BARGE_IN)]


def test_the_timeout_closes_a_read_only_generator(tools: Tools, watched: list[tuple[int, str]]) -> None:
    Rig(tools).run(("look", {}))
    assert watched == [(200 * MS, "half"), (400 * MS, "closed")]


def test_a_side_effect_runs_on_through_its_timeout_and_an_interruption(
    tools: Tools, watched: list[tuple[int, str]]
) -> None:
    rig = Rig(tools)
    interrupt(rig, 100 * MS)
    rig.run(("book", {}))
    assert watched == [(200 * MS, "half"), (500 * MS, "done")]
    assert [note.text for note in rig.engine.take_late_notes()] == [
        "Result of an earlier call that had not finished in time: book (call t1.0): done"
    ]


def test_the_backstop_closes_a_side_effect(tools: Tools, watched: list[tuple[int, str]]) -> None:
    Rig(tools, max_side_effect_runtime_us=450 * MS).run(("book", {}))
    assert watched == [(200 * MS, "half"), (450 * MS, "closed")]


def test_the_end_of_the_session_closes_whatever_runs(tools: Tools, watched: list[tuple[int, str]]) -> None:
    rig = Rig(tools)
    rig.clock.call_at(150 * MS, Order.WORK, lambda _: rig.engine.close())
    rig.run(("book", {}), ("look", {}))
    assert watched == [(150 * MS, "closed"), (150 * MS, "closed")]


def test_a_result_on_the_instant_of_the_interruption_stands(tools: Tools) -> None:
    @tools.read_only
    def look() -> Steps:
        yield "300ms"
        return "found"

    rig = Rig(tools)
    interrupt(rig, 300 * MS)
    assert rig.run(("look", {})) == [("found", False)]


def test_a_generator_that_will_not_close_is_logged_and_changes_nothing(
    tools: Tools, log: Callable[[], list[str]]
) -> None:
    @tools.read_only
    def clings() -> Steps:
        try:
            yield "1s"
        except GeneratorExit:
            yield "1s"

    @tools.read_only
    def stumbles() -> Steps:
        try:
            yield "1s"
        finally:
            raise ValueError("on the way out")

    rig = Rig(tools)
    interrupt(rig, 10 * MS)
    answers = rig.run(("clings", {}), ("stumbles", {}))
    assert [json.loads(content)["error"] for content, _ in answers] == ["interrupted", "interrupted"]
    assert log() == [
        "tool clings crashed in call t1.0: it raised RuntimeError on closing",
        "tool stumbles crashed in call t1.1: it raised ValueError on closing",
    ]


def test_a_call_given_up_while_it_reports_progress_goes_no_further(tools: Tools) -> None:
    seen: list[str] = []
    held: list[Steps] = []  # or its last reference going would close it

    def steps() -> Steps:
        try:
            yield Progress("half")
            seen.append("went on")
        finally:
            seen.append("closed")

    @tools.read_only
    def look() -> Steps:
        held.append(steps())
        return held[0]

    clock = Clock()
    bus = EffectBus(clock)
    bus.register("look", tools.handler("look", clock))
    context = SimpleNamespace(call_id="t1.0", arguments={}, context=None)
    bus.dispatch(
        EffectKind.TOOL_CALL,
        "look",
        context,
        scope="t1",
        on_landed=lambda effect: seen.append(str(effect.outcome.status)),
        on_item=lambda _: bus.log[0].cancel(Cause.REPLACED),
    )
    assert seen == ["cancelled", "closed"]


# -- sessions -------------------------------------------------------------------------------------------------------


class Control:
    def hang_up_when_silent(self) -> None: ...


def test_tools_that_keep_state_of_a_session_are_made_anew_for_each(tools: Tools) -> None:
    class Counter(Tools):
        def __init__(self, session: SessionControl | None = None) -> None:
            super().__init__()
            self.count = 0
            self.side_effect(repeatable=True)(self.up)

        def up(self) -> int:
            self.count += 1
            return self.count

        def for_session(self, session: SessionControl) -> Tools:
            return Counter(session)

    total: list[int] = []

    @tools.side_effect(repeatable=True)
    def everywhere() -> int:
        total.append(1)
        return len(total)

    assert tools.for_session(Control()) is tools
    tools.include(Counter())
    answers = [Rig(tools.for_session(Control())).run(("up", {}), ("up", {}), ("everywhere", {})) for _ in range(2)]
    assert answers == [
        [("1", False), ("2", False), ("1", False)],
        [("1", False), ("2", False), ("2", False)],
    ]


def test_an_unknown_tool_has_no_handler(tools: Tools) -> None:
    with pytest.raises(KeyError):
        tools.handler("nosuch", Clock())


def test_a_handler_counts_its_runs(tools: Tools) -> None:
    tools.read_only(named("look", 1))
    rig = Rig(tools)
    rig.run(("look", {}), ("look", {}))
    handler = rig.bus._handlers["agent/tool:look#0"]
    assert handler.runs == 2  # type: ignore[attr-defined]
