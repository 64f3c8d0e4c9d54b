"""What goes over the effect bus as plain data, and back: requests, calls, deltas and outcomes.

Logs and checkpoints hold it (run contract, section 10); ``sim.effects`` knows only plain data. What has no plain form
is refused, and then a session cannot be recorded. Left out: reading requests back, which nobody needs: a replay makes
them anew and compares.
"""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.deltas import CallDelta, ResponseData, StreamEnd, TextDelta
from bargein.pipelines.agent.live_line import Connect
from bargein.pipelines.agent.memory import Append, Clear, Load
from bargein.pipelines.agent.request import Request
from bargein.pipelines.ports import RequestRefused
from bargein.pipelines.tools.invocation import ToolInvocation
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.lab.live_payloads import connect_to_plain, live_item_of, live_to_plain

__all__ = ["PlainPayloads"]


class PlainPayloads:
    """The plain forms (``sim.effects.recording.Plain``)."""

    def request(self, effect: Effect) -> dict[str, Any]:
        """A request to the model, a call of a tool, an operation of a memory, or a live connection.

        Raises:
            TypeError: it is none of them.
        """
        payload = effect.payload
        if type(payload) is Request:
            data: dict[str, Any] = {
                "messages": [message.to_dict() for message in payload.messages],
                "tools": [
                    {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                    for tool in payload.tools
                ],
                "temperature": payload.temperature,
                "max_tokens": payload.max_tokens,
                "additional_params": payload.additional_params,
            }
            return data
        if type(payload) is ToolInvocation:
            return {
                "session": payload.context.session,
                "epoch": payload.context.epoch,
                "call_id": payload.call_id,
                "tool": payload.tool,
                "arguments": payload.arguments,
            }
        if type(payload) in (Load, Append, Clear):
            operation: dict[str, Any] = payload.to_dict()
            return operation
        if type(payload) is Connect:
            return connect_to_plain(payload)
        raise TypeError(f"effect {effect.id} ({effect.key}) has a {type(payload).__name__}, which has no plain form")

    def item(self, item: Any) -> dict[str, Any]:
        """A delta of a response, what a tool says of its progress, or what goes over a live connection.

        Raises:
            TypeError: it is none of them.
        """
        if type(item) is TextDelta:
            return {"text": item.text}
        if type(item) is CallDelta:
            data: dict[str, Any] = {"call": item.index, "arguments": item.arguments}
            for name in ("id", "name", "provider_data"):
                if getattr(item, name) is not None:
                    data[name] = getattr(item, name)
            return data
        if type(item) is StreamEnd:
            return {"end": item.reason, "usage": item.usage}
        if type(item) is ResponseData:
            return {"response_data": item.value}
        if type(item) is str:
            return {"progress": item}
        live = live_to_plain(item)
        if live is not None:
            return live
        raise TypeError(f"a stream item of type {type(item).__name__} has no plain form")

    def item_of(self, data: Any) -> Any:
        """The item again.

        Raises:
            ValueError: it is none.
        """
        try:
            match data:
                case {"text": str(text)}:
                    return TextDelta(text)
                case {"call": int(index)}:
                    return CallDelta(index, **{name: value for name, value in data.items() if name != "call"})
                case {"end": str(reason), "usage": dict(usage)}:
                    return StreamEnd(reason, dict(usage))
                case {"response_data": value}:
                    return ResponseData(value)
                case {"progress": str(text)}:
                    return text
        except TypeError:
            pass
        live = live_item_of(data)
        if live is not None:
            return live
        raise ValueError(
            f"{data!r} is no stream item; accepted are text, call, end, response_data, progress, and what comes down a "
            "live connection"
        )

    def value(self, outcome: Outcome) -> Any:
        """An outcome's value; plain already, or one of two of our own."""
        value = outcome.value
        if type(value) is RequestRefused:
            return {"refused_by": value.provider, "reason": value.reason}
        if type(value) is Report:
            return {"report": value.to_dict()}
        return str(value) if isinstance(value, Cause) else value

    def outcome_of(self, status: str, value: Any) -> Outcome:
        """The outcome again.

        Raises:
            ValueError: it is none.
        """
        kind = Status(status)
        if kind is Status.CANCELLED:
            return Outcome(kind, Cause(value))
        if kind is Status.FAILED and type(value) is dict and value.keys() == {"refused_by", "reason"}:
            return Outcome(kind, RequestRefused(value["refused_by"], value["reason"]))
        if kind is Status.FAILED and type(value) is dict and value.keys() == {"report"}:
            return Outcome(kind, _report_of(value["report"]))
        return Outcome(kind, value)


def _report_of(data: Any) -> Report:
    """The report again.

    Raises:
        ValueError: it is none.
    """
    try:
        return Report(**{**data, "kind": ReportKind(data["kind"])})
    except (TypeError, KeyError):
        raise ValueError(f"{data!r} is no report") from None
