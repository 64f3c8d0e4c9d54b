"""Which of our documents a file is, so that a reader that was given another one can say so.

Every reader of a document asks it once it has seen that it was not given its own. A file is known by what stands at its
beginning, and nothing else in it is looked at: that it is what it begins as is for its own reader to see. Left out:
documents of other programs, and what they would mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import loads
from typing import Any

__all__ = [
    "AGENT",
    "CASSETTE",
    "CHECKPOINT",
    "HEAD",
    "LAUNCH",
    "LOGS",
    "RUNS",
    "SCENARIO",
    "TIMELINE",
    "sort_of",
    "sort_of_data",
]

LOGS = ("an effect log", "a log of agent runs", "the tail of a log")
HEAD = "the head of an effect log"
CHECKPOINT, RUNS = "a checkpoint of a session", "a checkpoint of agent runs"
CASSETTE, TIMELINE = "a recording of a wire", "a timeline"
SCENARIO, AGENT, LAUNCH = "a scenario", "an agent file", "launch settings"


def _log(data: Mapping[str, Any]) -> str:
    of_session, of_runs, tail = LOGS
    if "start" in data:
        return tail
    return of_runs if data.get("scenario") == {} else of_session


_BY_KEY: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "bargein_log": _log,
    "bargein_log_checkpoint": lambda _: HEAD,
    "bargein_checkpoint": lambda _: CHECKPOINT,
    "bargein_runs": lambda _: RUNS,
    "bargein_cassette": lambda _: CASSETTE,
}
"""Documents that say what they are, by the key that says it."""

_SHOWN_BYTES = 1024 * 1024
"""How much of a text that is no JSON is looked at."""
_TABLE = re.compile(rb"^[ \t]*\[[ \t]*agent[ \t]*\]", re.MULTILINE)
_KEY = re.compile(rb"""^["']?(scenario|agent|caller|provider|model)["']?[ \t]*:""", re.MULTILINE)


def sort_of(raw: bytes) -> str | None:
    """What a file is, in words, such as ``a checkpoint of agent runs``; ``None`` where it is none of ours.

    Args:
        raw: its bytes, or as many as there is time for.
    """
    text = raw.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"{":
        return _of_json(text)
    shown = raw[:_SHOWN_BYTES].removeprefix(b"\xef\xbb\xbf")
    keys = {found.decode(): None for found in _KEY.findall(shown)}
    if _TABLE.search(shown):
        return AGENT
    return sort_of_data(keys)


def _of_json(text: bytes) -> str | None:
    """Of the first line where that is a value of its own, else of the whole."""
    for part in (text.partition(b"\n")[0], text):
        try:
            return sort_of_data(loads(part))
        except (ValueError, RecursionError):
            continue
    return None


def sort_of_data(data: Any) -> str | None:
    """The same of what was read of a file: of its first line where each line is a value."""
    if not isinstance(data, Mapping):
        return None
    for key, told in _BY_KEY.items():
        if key in data:
            return told(data)
    if data.keys() >= {"t", "seq", "kind"}:
        return TIMELINE
    if "scenario" in data:
        return SCENARIO
    if "agent" in data and "caller" not in data:
        return AGENT
    return LAUNCH if data.keys() >= {"provider", "model"} else None
