"""The session as one self-contained page: lanes to zoom, sound in step with them, the context at any instant.

``bargein run --html`` writes it. What the page shows is put together here as data; how it looks and behaves is in
``page/`` (a template, a style sheet and hand-written scripts), which are placed into it, so that it needs no network
and its content policy allows none. Left out: the lanes themselves (``lanes``) and the words (``console``).
"""

from __future__ import annotations

import re
import wave
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from io import BytesIO
from json import dumps
from typing import TYPE_CHECKING, Any

from bargein.sim.kernel.frames import SAMPLE_RATE_HZ
from bargein.sim.kernel.timeline import Record
from bargein.sim.report.console import metric_rows, story
from bargein.sim.report.lanes import LANES, lanes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bargein.sim.lab.result import Result

__all__ = ["context_changes", "page"]

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_SCRIPTS = ("instant.js", "lanes.js", "hands.js", "panels.js", "start.js")
"""Parts of one function, in this order."""
_EVENT = re.compile(r"events\[(\d+)\]")
_BIN_SAMPLES = SAMPLE_RATE_HZ // 50


def page(result: Result) -> str:
    """The page as text; the same session gives the same page."""
    folder = files("bargein.sim.report").joinpath("page")
    caller, agent = result.sound()
    parts = {
        "title": escape(result.scenario.name),
        "style": folder.joinpath("page.css").read_text(encoding="utf-8"),
        "script": "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS),
        "session": _embedded({**_session(result), "sound": [_peaks(caller), _peaks(agent)]}),
        "audio": "data:audio/wav;base64," + b64encode(_wav(caller, agent)).decode(),
    }
    template = folder.joinpath("page.html").read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: parts[place[1]], template)  # one pass: what is placed is not searched again


def context_changes(
    records: Sequence[Record], contents: Mapping[str, str] = {}, arguments: Mapping[str, Any] = {}
) -> list[dict[str, Any]]:
    """What happened to the context, in order: messages pushed, truncated to what was heard, removed.

    Args:
        contents: what tool messages say, by call id; a timeline does not hold it.
        arguments: tool and arguments of calls in words, by call id; nor does it hold these.
    """
    changes: list[dict[str, Any]] = []
    for record in records:
        change = {"t": record["t"], "message": record.get("message")}
        match record["kind"]:
            case "context.pushed":
                told = record["role"] == "tool" or record["source"] == "note"
                text = record["text"] or (contents.get(record["call"], "") if told else "")
                calls = [arguments.get(call, call) for call in record["calls"]]
                names = ("role", "source", "call", "error")
                changes.append({**change, **{name: record[name] for name in names}, "text": text, "calls": calls})
            case "context.truncated":
                changes.append({**change, "text": record["text"]})
            case "context.removed":
                changes.append({**change, "removed": True})
    return changes


def _session(result: Result) -> dict[str, Any]:
    """Everything that the page shows but the sound."""
    records = result.records
    shown = lanes(records)
    contents, arguments = _not_on_the_timeline(result)
    return {
        "about": result.scenario.about,
        "ok": result.ok,
        "seed": result.seed,
        "tie_seed": result.tie_seed,
        "digest": result.digest,
        "end_us": result.virtual_us,
        "lanes": [[lane, shown.rows(lane)] for lane in LANES],
        "bars": [[bar.lane, bar.row, bar.start_us, bar.end_us, bar.look, bar.label] for bar in shown.bars],
        "marks": [[mark.lane, mark.row, mark.at_us, mark.look] for mark in shown.marks],
        "lines": [[line.at_us, line.look] for line in shown.lines],
        "waits": [[wait.start_us, wait.end_us, wait.label] for wait in shown.waits],
        "story": story(records),
        "system": result.scenario.agent.system,
        "context": context_changes(records, contents, arguments),
        "findings": _findings(result),
        "metrics": metric_rows(result.metrics),
    }


def _not_on_the_timeline(result: Result) -> tuple[dict[str, str], dict[str, str]]:
    """What the final context says that the timeline does not: results and arguments, by call id."""
    contents: dict[str, str] = {}
    arguments: dict[str, str] = {}
    for message in result.context:
        if message["role"] == "tool":
            contents[message["call_id"]] = message["content"]
        for call in message.get("tool_calls", ()):
            text = dumps(call["arguments"], ensure_ascii=False)
            arguments[call["id"]] = f"{call['id']} {call['name']} {text}"
    return contents, arguments


def _findings(result: Result) -> list[dict[str, Any]]:
    """Violations, then expectations, each with the instant to look at where it has one."""
    announced = set(result.scenario.expect.violations)
    found: list[dict[str, Any]] = [
        {
            "kind": "announced violation" if each.invariant in announced else "violation",
            "name": each.invariant,
            "ok": each.invariant in announced,
            "t": each.t,
            "message": each.message,
        }
        for each in result.violations
    ]
    for each in result.expectations:
        at_us = _expected_at(result, each.name)
        found.append({"kind": "expectation", "name": each.name, "ok": each.ok, "t": at_us, "message": each.message})
    return found


def _expected_at(result: Result, name: str) -> int | None:
    """The instant of an expected event: where it was found, else where it was wanted."""
    match = _EVENT.fullmatch(name)
    if match is None:
        return None
    wanted = result.scenario.expect.events[int(match[1])]
    times = [record["t"] for record in result.records if wanted.match.fits(record)]
    if len(times) >= wanted.nth:
        return int(times[wanted.nth - 1])
    at_us = wanted.at_us if wanted.between_us is None else wanted.between_us[0]
    return None if at_us is None else min(at_us, result.virtual_us)


def _embedded(data: Any) -> str:
    """JSON that may stand inside a script element: no ``<`` can end it there."""
    text = dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode().replace("<", "\\u003c")


def _peaks(side: NDArray[np.int16]) -> list[int]:
    """The loudest sample of each 20 ms, from 0 to 99, for the outline of the sound."""
    import numpy as np

    bins = -(-len(side) // _BIN_SAMPLES)
    padded = np.zeros(bins * _BIN_SAMPLES, np.int32)
    padded[: len(side)] = np.abs(side.astype(np.int32))
    return [int(peak) * 100 // 32769 for peak in padded.reshape(bins, _BIN_SAMPLES).max(axis=1, initial=0)]


def _wav(caller: NDArray[np.int16], agent: NDArray[np.int16]) -> bytes:
    """The call as a WAV in memory: caller left, agent right."""
    import numpy as np

    buffer = BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(np.column_stack((caller, agent)).astype("<i2").tobytes())
    return buffer.getvalue()
