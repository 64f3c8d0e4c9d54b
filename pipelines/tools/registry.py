"""The tools a session may offer, checked and compiled once.

Built at start-up and shared by every session; an engine only looks tools up. A refused registration leaves no
trace (tool contract, "Registry"). The first gated tool brings the built-in ``confirm_pending`` with it. Left out:
what is on offer when (``offer``), and the handlers behind the keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bargein.pipelines.agent.request import Advert
from bargein.pipelines.tools.bounded import canonical_json, cut
from bargein.pipelines.tools.spec import ToolKind, ToolSpec
from bargein.pipelines.tools.validation import ArgumentValidator, SchemaProblem
from bargein.pipelines.wordings import CONFIRM_PENDING_DESCRIPTION, CONFIRM_PENDING_TOOL

__all__ = [
    "ConfirmNeedsSideEffect",
    "Duplicate",
    "InvalidName",
    "InvalidSchema",
    "RegisteredTool",
    "RegistryError",
    "RepeatableNeedsSideEffect",
    "ToolRegistry",
    "ZeroTimeout",
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class RegistryError(ValueError):
    """A tool that was not registered; one of the subclasses says why."""


class InvalidName(RegistryError):
    """The name is not 1 to 64 ASCII letters, digits, ``_`` or ``-``."""


class Duplicate(RegistryError):
    """The name is taken, or belongs to a built-in tool."""


class ZeroTimeout(RegistryError):
    """The timeout is not a positive, whole number of microseconds."""


class ConfirmNeedsSideEffect(RegistryError):
    """A read-only tool changes nothing that a user could confirm."""


class RepeatableNeedsSideEffect(RegistryError):
    """A read-only tool may always repeat."""


class InvalidSchema(RegistryError):
    """The parameters are no object schema, or do not compile offline."""


@dataclass(frozen=True, slots=True)
class RegisteredTool:
    """A tool as an engine uses it.

    Attributes:
        handler_key: where its calls go on the effect bus; empty for the built-in.
        validator: its schema, compiled.
    """

    spec: ToolSpec
    handler_key: str
    validator: ArgumentValidator


class ToolRegistry:
    """Tools by name."""

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        self._in_order: tuple[ToolSpec, ...] | None = ()
        self._compiled: dict[str, ArgumentValidator] = {}

    def fork(self) -> ToolRegistry:
        """A registry of one session's own, with the tools of this one; a schema that either saw is compiled once."""
        forked = ToolRegistry()
        forked._tools = dict(self._tools)
        forked._in_order = self._in_order
        forked._compiled = self._compiled
        return forked

    def register(self, spec: ToolSpec, handler_key: str | None = None) -> RegisteredTool:
        """Add a tool; its schema is compiled here and never again.

        Args:
            handler_key: where its calls go on the effect bus; ``agent/tool:<name>#0`` unless given.

        Raises:
            InvalidName, Duplicate, ZeroTimeout, ConfirmNeedsSideEffect, RepeatableNeedsSideEffect, InvalidSchema:
                the tool was not added.
        """
        self._check(spec)
        try:
            validator = self._validator(spec)
        except SchemaProblem as problem:
            raise InvalidSchema(f"tool {spec.name}: parameters: {problem}") from None
        tool = RegisteredTool(spec, handler_key or f"agent/tool:{spec.name}#0", validator)
        self._tools[spec.name] = tool
        if spec.confirm and CONFIRM_PENDING_TOOL not in self._tools:
            self._tools[CONFIRM_PENDING_TOOL] = _confirm_pending()
        self._in_order = None
        return tool

    def redeclare(self, spec: ToolSpec) -> None:
        """Give a tool that is here another declaration from now on; who serves it, and its kind and gate, stay.

        A call that was planned keeps the declaration that it was planned under.

        Raises:
            KeyError: there is no such tool.
            RegistryError: as of `register`; the tool keeps its declaration.
        """
        tool = self._tools.pop(spec.name)
        try:
            self.register(spec, tool.handler_key)
        except RegistryError:
            self._tools[spec.name] = tool
            raise

    def _validator(self, spec: ToolSpec) -> ArgumentValidator:
        try:
            text = canonical_json(spec.parameters)
        except (TypeError, ValueError, RecursionError):  # no JSON, which compiling says better
            return ArgumentValidator(spec.parameters)
        found = self._compiled.get(text)
        if found is None:
            found = self._compiled[text] = ArgumentValidator(spec.parameters)
        return found

    def _check(self, spec: ToolSpec) -> None:
        name = spec.name
        if _NAME.fullmatch(name) is None:
            raise InvalidName(
                f"{cut(name, 100)!r} is not a tool name; accepted are 1 to 64 ASCII letters, digits, _ and -"
            )
        if name == CONFIRM_PENDING_TOOL:
            raise Duplicate(f"tool {name} is built in; choose another name")
        if name in self._tools:
            raise Duplicate(f"a tool named {name} is registered already; choose another name")
        if type(spec.timeout_us) is not int or spec.timeout_us <= 0:
            raise ZeroTimeout(f"tool {name}: a timeout of {spec.timeout_us!r} us; accepted is an int of 1 us or more")
        if spec.confirm and not spec.side_effect:
            raise ConfirmNeedsSideEffect(f"tool {name}: confirm is for side effects; this tool is read-only")
        if spec.repeatable and not spec.side_effect:
            raise RepeatableNeedsSideEffect(f"tool {name}: repeatable is for side effects; this tool is read-only")

    # -- looking up ---------------------------------------------------------------------------------------

    def tool(self, name: str) -> RegisteredTool | None:
        """The tool of this name, ready for use."""
        return self._tools.get(name)

    def spec(self, name: str) -> ToolSpec | None:
        """The declaration of this name."""
        tool = self._tools.get(name)
        return None if tool is None else tool.spec

    def specs(self) -> tuple[ToolSpec, ...]:
        """The declarations in name order, whatever the order of registration."""
        if self._in_order is None:
            self._in_order = tuple([self._tools[name].spec for name in sorted(self._tools)])
        return self._in_order

    def adverts(self) -> tuple[Advert, ...]:
        """The tools as a model sees them, in name order."""
        return tuple([Advert(spec.name, spec.description, spec.parameters) for spec in self.specs()])

    def is_empty(self) -> bool:
        """Whether there is no tool."""
        return not self._tools

    def __len__(self) -> int:
        return len(self._tools)


def _confirm_pending() -> RegisteredTool:
    """The built-in that runs a gated call; held, recorded and replayed as the side effect it brings about."""
    parameters = {
        "type": "object",
        "properties": {"call_id": {"type": "string"}},
        "required": ["call_id"],
        "additionalProperties": False,
    }
    spec = ToolSpec(CONFIRM_PENDING_TOOL, CONFIRM_PENDING_DESCRIPTION, parameters, ToolKind.SIDE_EFFECT)
    return RegisteredTool(spec, "", ArgumentValidator(parameters))
