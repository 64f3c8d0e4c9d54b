"""The first step of a round: look at each call and refuse what cannot run. Nothing runs here.

Six things make a call malformed: a position past the cap, arguments that were not JSON, no name, an unknown tool,
arguments that are too large or do not match the schema (tool contract, "Validation" and "Rounds", step 1). Left
out: whether the round runs at all (``budget``), and what a side effect's history says (``side_effects``).
"""

from __future__ import annotations

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.messages import ToolCall
from bargein.pipelines.tools.bounded import NotJson, json_size
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.registry import RegisteredTool, ToolRegistry
from bargein.pipelines.tools.results import Answer, ErrorKind, error, invalid_call_error
from bargein.pipelines.tools.validation import ROOT, Issue, Report
from bargein.pipelines.wordings import (
    ARGUMENTS_TOO_LARGE,
    INVALID_ARGUMENTS,
    TOO_MANY_CALLS,
    UNKNOWN_TOOL_DETAIL,
)

__all__ = ["MAX_CALLS", "Planner", "Refusal"]

MAX_CALLS = 32
"""Calls of one response that may run, whatever the assembler was allowed to collect."""

Refusal = tuple[ToolOutcome, Answer]
"""How a call that does not run is settled, and what the model is told."""


class Planner:
    """Finds the tool of a call, or the reason why it is malformed.

    Args:
        registry: the tools.
        max_argument_bytes: what serialized arguments may take.
    """

    __slots__ = ("max_argument_bytes", "registry")

    def __init__(self, registry: ToolRegistry, max_argument_bytes: int) -> None:
        self.registry = registry
        self.max_argument_bytes = max_argument_bytes

    def plan(self, position: int, call: ToolCall | InvalidCall) -> RegisteredTool | Refusal:
        """Judge the call at ``position`` (from 0) of its response, without side effects and in no virtual time."""
        if position >= MAX_CALLS:
            detail = TOO_MANY_CALLS.format(limit=MAX_CALLS)
            return ToolOutcome.TOO_MANY_CALLS, error(ErrorKind.TOO_MANY_CALLS, call.name, detail)
        if isinstance(call, InvalidCall):
            return ToolOutcome.MALFORMED, invalid_call_error(call)
        tool = self.registry.tool(call.name)
        if tool is None:
            return ToolOutcome.UNKNOWN_TOOL, error(ErrorKind.UNKNOWN_TOOL, call.name, UNKNOWN_TOOL_DETAIL)
        return self._argument_refusal(call, tool) or tool

    def _argument_refusal(self, call: ToolCall, tool: RegisteredTool) -> Refusal | None:
        try:
            fits = json_size(call.arguments, self.max_argument_bytes) <= self.max_argument_bytes
        except NotJson as problem:
            return self._invalid(call, Report((Issue(ROOT, str(problem)),), False))
        if not fits:
            detail = ARGUMENTS_TOO_LARGE.format(limit=self.max_argument_bytes)
            return ToolOutcome.ARGUMENTS_TOO_LARGE, error(ErrorKind.ARGUMENTS_TOO_LARGE, call.name, detail)
        if not tool.validator.is_valid(call.arguments):
            return self._invalid(call, tool.validator.report(call.arguments))
        return None

    @staticmethod
    def _invalid(call: ToolCall, report: Report) -> Refusal:
        answer = error(ErrorKind.INVALID_ARGUMENTS, call.name, INVALID_ARGUMENTS, report)
        return ToolOutcome.INVALID_ARGUMENTS, answer
