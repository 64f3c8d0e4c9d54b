"""The messages between a session and a remote agent, and what a declaration in one of them means.

Both ends build and read messages with it (tool contract, "Remote tools"); durations on the link are whole
milliseconds. Left out: when a message is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bargein.models.links import Message
from bargein.pipelines.tools.invocation import ToolInvocation
from bargein.pipelines.tools.spec import DEFAULT_FILLER_AFTER_US, DEFAULT_TIMEOUT_US, SpecError, ToolSpec

__all__ = [
    "ACCEPT",
    "CALL",
    "CANCEL",
    "ERROR",
    "MAX_TIMEOUT_MS",
    "MAX_TOOLS",
    "PROGRESS",
    "RESULT",
    "SET",
    "accept",
    "call",
    "declaration",
    "link_error",
    "read_declaration",
]

ACCEPT = "session.accept"
CALL = "tool.call"
RESULT = "tool.result"
CANCEL = "tool.cancel"
PROGRESS = "tool.progress"
SET = "tools.set"
ERROR = "error"
STAGE = "agent_link"

MAX_TOOLS = 64
MAX_TIMEOUT_MS = 30_000


def accept(tools: Sequence[ToolSpec]) -> Message:
    """The agent takes the session and declares its tools."""
    return {"type": ACCEPT, "tools": [declaration(spec) for spec in tools]}


def call(invocation: ToolInvocation) -> Message:
    """The session asks for one call; the digest of its key lets the agent know a call again."""
    return {
        "type": CALL,
        "call_id": invocation.call_id,
        "tool": invocation.tool,
        "arguments": invocation.arguments,
        "idempotency_key": invocation.context.key.digest(),
    }


def link_error(reason: str, tool: str = "") -> Message:
    """The session does not accept what the agent said."""
    message = {"type": ERROR, "stage": STAGE, "message": reason}
    return {**message, "tool": tool} if tool else message


def declaration(spec: ToolSpec) -> dict[str, Any]:
    """A tool as the agent declares it; what is as usual is left out."""
    data: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "kind": str(spec.kind),
    }
    if spec.timeout_us != DEFAULT_TIMEOUT_US:
        data["timeout_ms"] = spec.timeout_us // 1_000
    if spec.filler_after_us != DEFAULT_FILLER_AFTER_US:
        data["filler_after_ms"] = None if spec.filler_after_us is None else spec.filler_after_us // 1_000
    for switch in ("repeatable", "confirm"):
        if getattr(spec, switch):
            data[switch] = True
    return data


def read_declaration(data: Mapping[str, Any]) -> ToolSpec:
    """The tool that a declaration means.

    Raises:
        SpecError: a field is unknown, missing or of the wrong sort, or the timeout is too long.
    """
    fields = dict(data)
    for field, ours in (("timeout_ms", "timeout"), ("filler_after_ms", "filler_after")):
        if ours in fields:
            raise SpecError(f"{ours!r} is not a field of a remote tool; accepted is {field}")
        if field in fields:
            fields[ours] = _microseconds(field, fields.pop(field))
    if fields.get("timeout", 0) is None:
        raise SpecError("timeout_ms: null is no duration; accepted is a whole number of milliseconds")
    if fields.get("timeout", 0) > MAX_TIMEOUT_MS * 1_000:
        raise SpecError(f"timeout_ms: {fields['timeout'] // 1_000} is too long; accepted is up to {MAX_TIMEOUT_MS}")
    return ToolSpec.from_dict(fields)


def _microseconds(field: str, value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise SpecError(f"{field}: {value!r} is no duration; accepted is a whole number of milliseconds")
    return value * 1_000
