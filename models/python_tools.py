"""A user's own Python functions as tools of a session.

`Tools` is what users write against: its decorators declare functions, ``sim.run(..., tools=registry)`` and
``bargein run --tools module:registry`` bring them in. `PythonTool` serves the calls of one of them in one session
(tool contract, "Tool trait"). A function answers at once, or takes virtual time: as a generator, where each ``yield``
of a duration waits that long and cancelling closes it there, or as an ``async def`` that awaits (``async_tools``).

Determinism is the function's own part: it must not read a wall clock, draw from a global random generator or depend
on the order of a set. ``ctx.now_us`` is the clock. What outlives a session lives in the user's own object; what
belongs to one comes from ``ctx``.

Left out: whether a call runs, which the tool engine decided before.

Ties: a function goes on at its instant as a delivery, so what it returns there comes before an interruption or a
timeout on the same instant.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Generator
from copy import deepcopy
from dataclasses import dataclass
from sys import maxsize
from typing import Any, NamedTuple, Protocol, Self, TypeVar, overload
from weakref import WeakKeyDictionary

from bargein.models.tool_signatures import CONTEXT, parameters_of, takes_context
from bargein.pipelines.tools.bounded import NotJson, json_size
from bargein.pipelines.tools.invocation import ToolCallContext
from bargein.pipelines.tools.registry import Duplicate, ToolRegistry
from bargein.pipelines.tools.spec import DEFAULT_FILLER_AFTER_US, DEFAULT_TIMEOUT_US, SpecError, ToolKind, ToolSpec
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.durations import DurationError, as_us

__all__ = ["Progress", "PythonTool", "SessionControl", "Steps", "ToolCallContext", "ToolError", "Tools"]

MAX_PROGRESS_AT_ONCE = 1_000
"""Progress that a tool may report without waiting: one that never waits would stop the clock."""

_log = logging.getLogger("bargein.tools")

Function = TypeVar("Function", bound=Callable[..., Any])
Steps = Generator[Any, None, Any]
"""What a function that takes time returns: it yields durations and `Progress`, and returns the result."""


class ToolError(Exception):
    """Raised by a tool to report a failure; the model reads the message, so it says what to tell or try."""


class Progress(NamedTuple):
    """Yielded by a tool to say how far it is; it goes on at once."""

    text: str


class SessionControl(Protocol):
    """What a tool that belongs to one session may ask of it."""

    def hang_up_when_silent(self) -> None:
        """End the call once the agent has nothing more to say; an interruption withdraws it."""
        ...


@dataclass(frozen=True, slots=True)
class _Declared:
    spec: ToolSpec
    function: Callable[..., Any]
    takes_context: bool


_METHODS: WeakKeyDictionary[Any, dict[Any, tuple[ToolSpec, bool]]] = WeakKeyDictionary()
"""What was read of methods whose objects are made anew for each session: a signature is looked at once."""

_SCHEMAS = ToolRegistry()
"""Holds no tool. What is forked from it shares compiled schemas: tools made anew for each session compile none."""


class Tools:
    """Tools made of Python functions.

    The decorators give the function back unchanged, so that it can still be called and tested. They are used bare
    or with options: ``name`` (the function's), ``description`` (the first line of its docstring), ``parameters`` (a
    JSON Schema; made of the annotations unless given), ``timeout`` and ``filler_after`` (text with a unit or an int
    of microseconds; ``filler_after=None`` wants no filler) and, for side effects, ``repeatable`` and ``confirm``.

    A function that has a parameter ``ctx`` is given the `ToolCallContext` of the call. It returns text or a value
    that JSON can hold, or raises `ToolError`; any other exception is a crash, whose traceback goes to the logger
    ``bargein.tools`` and never to the model. A generator function yields durations and `Progress`; an ``async def``
    waits with ``asyncio.sleep`` and whatever else of asyncio needs no thread and no socket.
    """

    def __init__(self) -> None:
        self._declared: dict[str, _Declared] = {}
        self._included: list[Tools] = []
        self._checked = _SCHEMAS.fork()

    # -- declaring ----------------------------------------------------------------------------------------

    @overload
    def read_only(self, function: Function, /) -> Function: ...
    @overload
    def read_only(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: dict[str, Any] | None = None,
        timeout: int | str = DEFAULT_TIMEOUT_US,
        filler_after: int | str | None = DEFAULT_FILLER_AFTER_US,
    ) -> Callable[[Function], Function]: ...
    def read_only(self, function: Any = None, /, **options: Any) -> Any:
        """Declare a function that changes nothing: it may run speculatively, and an interruption drops it.

        Raises:
            SpecError: an option or the signature cannot be used.
            RegistryError: the registry refuses the declaration; its subclasses say why.
        """
        return self._decorate(ToolKind.READ_ONLY, function, options)

    @overload
    def side_effect(self, function: Function, /) -> Function: ...
    @overload
    def side_effect(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: dict[str, Any] | None = None,
        timeout: int | str = DEFAULT_TIMEOUT_US,
        filler_after: int | str | None = DEFAULT_FILLER_AFTER_US,
        repeatable: bool = False,
        confirm: bool = False,
    ) -> Callable[[Function], Function]: ...
    def side_effect(self, function: Any = None, /, **options: Any) -> Any:
        """Declare a function that changes the world: it runs once, to its own end, whoever hangs on for it.

        Raises:
            SpecError, RegistryError: as for `read_only`.
        """
        return self._decorate(ToolKind.SIDE_EFFECT, function, options)

    def include(self, other: Tools) -> Self:
        """Offer the tools of ``other`` too.

        Raises:
            Duplicate: a name is taken.
        """
        for spec in other.specs:
            if self._find(spec.name) is not None:
                raise Duplicate(f"a tool named {spec.name} is declared already; choose another name")
        self._included.append(other)
        return self

    def _decorate(self, kind: ToolKind, function: Any, options: dict[str, Any]) -> Any:
        def declare(body: Function) -> Function:
            self._declare(kind, body, **options)
            return body

        return declare if function is None else declare(function)

    def _declare(
        self,
        kind: ToolKind,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        name = name or getattr(function, "__name__", None)
        if name is None or not callable(function):
            raise SpecError(f"{function!r} is no named function; accepted is a function, or name= beside it")
        if inspect.isasyncgenfunction(function):
            raise SpecError(
                f"tool {name} is an async generator; accepted is an async def that awaits, or a def that yields"
            )
        spec, wants_context = _described(kind, function, name, description, parameters, options)
        if any(spec.name == name for included in self._included for spec in included.specs):
            raise Duplicate(f"a tool named {name} is declared already; choose another name")
        self._checked.register(spec)
        self._declared[name] = _Declared(spec, function, wants_context)

    # -- using --------------------------------------------------------------------------------------------

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The declarations, in the order in which they were made; included ones last."""
        own = [declared.spec for declared in self._declared.values()]
        return (*own, *(spec for included in self._included for spec in included.specs))

    def for_session(self, session: SessionControl) -> Tools:
        """The tools as one session uses them: these, unless a subclass makes some anew for each session."""
        if not self._included:
            return self
        opened = Tools()
        opened._declared = self._declared
        opened._included = [included.for_session(session) for included in self._included]
        return opened

    def handler(self, name: str, clock: Clock) -> PythonTool:
        """What serves one tool's calls in one session.

        Raises:
            KeyError: there is no such tool.
        """
        declared = self._find(name)
        if declared is None:
            raise KeyError(name)
        return PythonTool(clock, name, declared.function, declared.takes_context)

    def _find(self, name: str) -> _Declared | None:
        found = self._declared.get(name)
        for included in self._included:
            found = found or included._find(name)
        return found


def _described(
    kind: ToolKind,
    function: Callable[..., Any],
    name: str,
    description: str | None,
    parameters: dict[str, Any] | None,
    options: dict[str, Any],
) -> tuple[ToolSpec, bool]:
    """The declaration of a function, and whether it wants its call's context; of a method the same each time."""
    method = getattr(function, "__func__", None)
    if method is None or parameters is not None:
        return _read(kind, function, name, description, parameters, options)
    known = _METHODS.setdefault(method, {})
    key = (kind, name, description, repr(sorted(options.items())))
    if key not in known:
        known[key] = _read(kind, function, name, description, None, options)
    return known[key]


def _read(
    kind: ToolKind,
    function: Callable[..., Any],
    name: str,
    description: str | None,
    parameters: dict[str, Any] | None,
    options: dict[str, Any],
) -> tuple[ToolSpec, bool]:
    if description is None:
        description = (inspect.getdoc(function) or "").partition("\n")[0]
    schema = parameters_of(function, name) if parameters is None else deepcopy(parameters)
    fields = {"name": name, "description": description, "parameters": schema, "kind": kind, **options}
    try:
        return ToolSpec.from_dict(fields), takes_context(function)
    except SpecError as problem:
        raise SpecError(f"tool {name}: {problem}") from None


class PythonTool:
    """Serves the calls of one function in one session (``effects.Handler``).

    Attributes:
        runs: how often it was started.
    """

    def __init__(self, clock: Clock, name: str, function: Callable[..., Any], takes_context: bool) -> None:
        self._clock = clock
        self._name = name
        self._function = function
        self._takes_context = takes_context
        self.runs = 0

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Start one call; it goes on by itself until it lands."""
        self.runs += 1
        call = effect.payload
        # The arguments are shared with the context and the log, and a function may do with its own what it likes.
        arguments = deepcopy(call.arguments)
        if self._takes_context:
            arguments[CONTEXT] = call.context
        value: Any
        try:
            value = self._function(**arguments)
        except (Exception, SystemExit) as problem:
            effect.land(self._failure(problem, call.call_id))
            return None
        if inspect.iscoroutine(value):
            return self._start(value, effect)
        if not inspect.isgenerator(value):
            effect.land(self._result(value, call.call_id))
            return None
        run = _Run(self, effect, value)
        run.go_on()
        return run.stop

    def _start(self, steps: Coroutine[Any, Any, Any], effect: Effect) -> Callable[[Cause], object]:
        """Have an ``async def`` go on by itself; asyncio is imported by those who use it."""
        from bargein.models.async_tools import start

        call_id = effect.payload.call_id

        def ended(value: Any, problem: BaseException | None) -> Outcome:
            return self._result(value, call_id) if problem is None else self._failure(problem, call_id)

        return start(steps, self._clock, effect, ended, lambda why: self._crash(call_id, why))

    # -- how a call ends ----------------------------------------------------------------------------------

    def _result(self, value: Any, call_id: str) -> Outcome:
        try:
            json_size(value, maxsize)
        except NotJson as problem:
            return self._crash(call_id, f"its result is neither text nor JSON: {problem}")
        return Outcome(Status.OK, deepcopy(value))

    def _failure(self, problem: BaseException, call_id: str) -> Outcome:
        if isinstance(problem, ToolError):
            return Outcome(Status.FAILED, str(problem))
        return self._crash(call_id, f"it raised {type(problem).__name__}: {problem}", problem)

    def _crash(self, call_id: str, why: str, problem: BaseException | None = None) -> Outcome:
        _log.error("tool %s crashed in call %s: %s", self._name, call_id, why, exc_info=problem)
        return Outcome(Status.CRASHED, why)


class _Run:
    """One call of a generator function on its way.

    Invariant: the generator is suspended whenever a timer is armed, and closed once the effect has landed.
    """

    __slots__ = ("_effect", "_steps", "_timer", "_tool")

    def __init__(self, tool: PythonTool, effect: Effect, steps: Generator[Any, Any, Any]) -> None:
        self._tool = tool
        self._effect = effect
        self._steps = steps
        self._timer: Timer | None = None

    def go_on(self, _: object = None) -> None:
        """Let the function run to its next wait, or to its end."""
        self._timer = None
        effect, call_id = self._effect, self._effect.payload.call_id
        for _ in range(MAX_PROGRESS_AT_ONCE + 1):
            try:
                step = next(self._steps)
            except StopIteration as end:
                effect.land(self._tool._result(end.value, call_id))
                return
            except (Exception, SystemExit) as problem:
                effect.land(self._tool._failure(problem, call_id))
                return
            if type(step) is not Progress:
                self._wait(step)
                return
            effect.deliver(str(step.text))
            if not effect.running:  # whoever heard it gave the call up
                self._close()
                return
        self._end_badly(f"it reported progress more than {MAX_PROGRESS_AT_ONCE} times without waiting")

    def _wait(self, step: Any) -> None:
        try:
            delay_us = as_us(step)
        except DurationError as problem:
            self._end_badly(f"it yielded {step!r}: {problem}")
        else:
            self._timer = self._tool._clock.call_in(delay_us, Order.DELIVERY, self.go_on)

    def _end_badly(self, why: str) -> None:
        self._close()
        self._effect.land(self._tool._crash(self._effect.payload.call_id, why))

    def stop(self, _: Cause) -> None:
        """The call was cancelled: close the function where it waits, on this instant."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._close()

    def _close(self) -> None:
        """Close the generator; what it does wrong on its way out is logged and changes nothing."""
        try:
            self._steps.close()
        except (Exception, SystemExit) as problem:
            self._tool._crash(self._effect.payload.call_id, f"it raised {type(problem).__name__} on closing", problem)
