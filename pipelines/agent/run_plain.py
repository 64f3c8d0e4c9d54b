"""What an agent run sends over the bus as plain data, and what comes back read again: a run can be recorded and
replayed by the same recorder and replayer as a session (run contract, section 10).

Left out: what a voice session sends (``sim.lab.payloads``), reading requests back (a replay makes them anew and
compares), and what tools publish beside their replies.
"""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.answers import Answer, CallDone, PartDone, StreamError, ToolReply
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.parts import ImagePart, JsonPart, TextPart, part_from_dict, part_to_dict
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause

__all__ = ["RunPlain"]


class RunPlain:
    """The plain forms (``sim.effects.recording.Plain``)."""

    def request(self, effect: Effect) -> Any:
        """A request to the model, a call of a tool, or a hook's own payload as it is."""
        payload = effect.payload
        return payload.to_dict() if hasattr(payload, "to_dict") else payload

    def item(self, item: Any) -> dict[str, Any]:
        """An item of an answer that streams.

        Raises:
            TypeError: it is none.
        """
        if isinstance(item, TextDelta):
            return {"text": item.text}
        if isinstance(item, CallDelta):
            return {"call": item.index, "rest": [item.id, item.name, item.arguments, item.provider_data]}
        if isinstance(item, CallDone):
            return {"done": item.index}
        if isinstance(item, PartDone):
            return {"part": part_to_dict(item.part)}
        if isinstance(item, StreamError):
            return {"error": item.report.to_dict()}
        if isinstance(item, Report):
            return {"report": item.to_dict()}
        if isinstance(item, StreamEnd):
            return {"end": item.reason, "usage": dict(item.usage)}
        raise TypeError(f"a stream item of type {type(item).__name__} has no plain form")

    def item_of(self, data: Any) -> Any:
        """The item again.

        Raises:
            ValueError: it is none.
        """
        match data:
            case {"text": str(text)}:
                return TextDelta(text)
            case {"call": int(index), "rest": [id_, name, str(arguments), provider_data]}:
                return CallDelta(index, id_, name, arguments, provider_data)
            case {"done": int(index)}:
                return CallDone(index)
            case {"part": part}:
                return PartDone(part_from_dict(part))
            case {"error": report}:
                return StreamError(_report_of(report))
            case {"report": report}:
                return _report_of(report)
            case {"end": str(reason), "usage": dict(usage)}:
                return StreamEnd(reason, dict(usage))
        raise ValueError(f"{data!r} is no stream item; accepted are text, call, done, part, error, report and end")

    def value(self, outcome: Outcome) -> Any:
        """An outcome's value, tagged by what it is."""
        value = outcome.value
        if isinstance(value, Answer):
            parts = [part_to_dict(part) for part in value.parts]
            return {"answer": parts, "finish": value.finish, "usage": dict(value.usage), "raw": value.raw}
        if isinstance(value, ToolReply):
            return {"reply": [part_to_dict(item) for item in value.items], "status": value.status}
        if isinstance(value, TextPart | ImagePart | JsonPart):
            return {"item": part_to_dict(value)}
        if isinstance(value, StreamEnd):
            return {"stream": self.item(value)}
        if isinstance(value, Report):
            return {"report": value.to_dict()}
        return str(value) if isinstance(value, Cause) else {"value": value}

    def outcome_of(self, status: str, value: Any) -> Outcome:
        """The outcome again.

        Raises:
            ValueError: it is none.
        """
        kind = Status(status)
        if kind is Status.CANCELLED:
            return Outcome(kind, Cause(value))
        match value:
            case {"answer": list(parts), "finish": str(finish), "usage": dict(usage), "raw": raw}:
                return Outcome(kind, Answer(tuple(part_from_dict(part) for part in parts), finish, usage, raw))
            case {"reply": list(items), "status": str(said)}:
                read: Any = tuple(part_from_dict(item, inside=True) for item in items)
                return Outcome(kind, ToolReply(read, said))
            case {"item": item}:
                return Outcome(kind, part_from_dict(item, inside=True))
            case {"stream": end}:
                return Outcome(kind, self.item_of(end))
            case {"report": report}:
                return Outcome(kind, _report_of(report))
            case {"value": plain}:
                return Outcome(kind, plain)
        raise ContentError(f"{value!r}: it is no outcome; accepted are answer, reply, item, stream, report and value")


def _report_of(data: Any) -> Report:
    try:
        return Report(**{**data, "kind": ReportKind(data["kind"])})
    except (TypeError, KeyError, ValueError):
        raise ContentError(f"{data!r}: it is no report; accepted is one with kind and message") from None
