"""What a call is answered with: the tool's result as text, or a structured error.

The engine makes every answer here, and the runner the ones for calls it closes itself. An error is a JSON object
of kind, tool and detail (tool contract, "Error results"); sizes are bounded and cuts leave whole characters. Left
out: deciding which answer a call gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bargein.pipelines.agent.assembly import InvalidCall
from bargein.pipelines.agent.messages import Message, ToolCall, tool_answer
from bargein.pipelines.tools.bounded import NotJson, cut, json_prefix, json_size, to_json
from bargein.pipelines.tools.validation import Report
from bargein.pipelines.wordings import (
    CONFIRMATION_REQUIRED,
    INTERRUPTED,
    INVALID_TOOL_CALL,
    TRUNCATION_MARKER,
)

__all__ = [
    "MAX_DETAIL_BYTES",
    "MAX_TOOL_BYTES",
    "Answer",
    "ErrorKind",
    "confirmation_required",
    "error",
    "interrupted_message",
    "invalid_call_error",
    "result_text",
    "shown_name",
]

MAX_TOOL_BYTES = 64
MAX_DETAIL_BYTES = 512


class ErrorKind(StrEnum):
    """What went wrong, as the model reads it; the set is closed."""

    INVALID_CALL = INVALID_TOOL_CALL
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    ARGUMENTS_TOO_LARGE = "arguments_too_large"
    TOO_MANY_CALLS = "too_many_calls"
    BUDGET_EXHAUSTED = "budget_exhausted"
    STALE_TURN = "stale_turn"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    TOOL_FAILED = "tool_failed"
    RESULT_TOO_LARGE = "result_too_large"
    DUPLICATE_CALL = "duplicate_call"
    STORE_FULL = "store_full"
    UNKNOWN_OUTCOME = "unknown_outcome"
    ALREADY_DONE = "already_done"
    ALREADY_REPORTED = "already_reported"
    CONFIRMATION_REFUSED = "confirmation_refused"


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a tool message, without the id of the call it answers."""

    content: str
    is_error: bool = False

    def message(self, call_id: str) -> Message:
        """The tool message that answers ``call_id`` with it."""
        return tool_answer(call_id, self.content, self.is_error)


def shown_name(name: str) -> str:
    """A tool's name as it is shown: at most 64 bytes, whoever made it up."""
    return cut(name, MAX_TOOL_BYTES)


def error(kind: ErrorKind, tool: str, detail: str, report: Report | None = None) -> Answer:
    """A structured error.

    Args:
        report: what validation found; only invalid arguments have one.
    """
    body: dict[str, Any] = {"error": kind.value, "tool": shown_name(tool), "detail": cut(detail, MAX_DETAIL_BYTES)}
    if report is not None:
        body["issues"] = [{"path": issue.path, "reason": issue.reason} for issue in report.issues]
        body["truncated"] = report.truncated
    return Answer(to_json(body), True)


def invalid_call_error(call: InvalidCall) -> Answer:
    """The answer to a call that could not be read."""
    return error(ErrorKind.INVALID_CALL, call.name, call.reason)


def interrupted_message(call: ToolCall) -> Message:
    """The answer to a call that is closed from outside the engine (tool contract, item 8)."""
    return error(ErrorKind.INTERRUPTED, call.name, INTERRUPTED).message(call.id)


def confirmation_required(tool: str, call_id: str) -> Answer:
    """The answer to a gated call: nothing was done, and how the model gets on. Not an error."""
    body = {"status": "confirmation_required", "tool": tool, "call_id": call_id, "message": CONFIRMATION_REQUIRED}
    return Answer(to_json(body))


def result_text(value: Any, limit: int) -> tuple[str, bool]:
    """A tool's result as text of at most ``limit`` bytes: text as it is, anything else as compact JSON.

    Returns:
        The text, and whether it is whole; a cut one ends in the truncation marker, which the limit includes.

    Raises:
        NotJson: the value has no JSON text.
    """
    if isinstance(value, str):
        text = value
    elif json_size(value, limit) <= limit:
        text = to_json(value)
    else:
        try:
            text = json_prefix(value, limit)
        except (TypeError, RecursionError) as problem:
            raise NotJson(str(problem)) from None
    shown = cut(text, limit, TRUNCATION_MARKER)
    return shown, len(text) <= limit and (shown is text or len(text.encode("utf-8", "replace")) <= limit)
