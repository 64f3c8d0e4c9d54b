"""The turn-taking trace: who was audible when, and what happened meanwhile, for evaluation in seconds.

JSON lines, one for each instant at which something changed or happened, in order; two calls at once have two. Each
has ``time`` and, from that instant on, ``caller_audio_active`` and ``agent_audio_active``; what happened then stands
beside them under its own key. ``caller_onsets`` is the list that goes beside the WAV: the start of each caller line.
Left out: audio and arguments of calls; the WAV and the effect log hold them.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps
from typing import Any

from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record

__all__ = ["caller_onsets", "turn_trace"]

_HAPPENED: dict[str, tuple[str, tuple[str, ...]]] = {
    "caller.started": ("caller_text", ("text",)),
    "turn.ended": ("end_of_turn", ()),
    "turn.user": ("user_turn", ("epoch", "text")),
    "turn.barge_in": ("barge_in", ()),
    "tool.started": ("tool_call", ("call", "tool", "side_effect")),
    "tool.suspended": ("tool_waits", ("call", "tool", "layer")),
    "tool.withdrawn": ("tool_withdrawn", ("call", "tool")),
    "tool.settled": ("tool_result", ("call", "tool", "outcome")),
    "filler.spoken": ("filler", ("text",)),
    "fallback.spoken": ("fallback", ("text", "reason")),
    "playout.word": ("agent_word", ("word",)),
    "session.ended": ("session_end", ("reason",)),
}
"""Kind to its key and the fields that it tells: none is ``true``, one is the value itself, several are an object."""

_AUDIBLE = ("playout.started", "playout.resumed")
_SILENT = ("playout.starved", "playout.ended", "playout.cut")


def turn_trace(records: Iterable[Record]) -> str:
    """The trace as text, each line ended; times are seconds with up to six decimals, exact to the microsecond."""
    speaking: set[Any] = set()
    playing: set[Any] = set()
    moments: list[tuple[int, dict[str, Any]]] = [(0, _state(speaking, playing))]
    for at_us, record in sorted(_placed(records), key=lambda each: each[0]):
        kind = record["kind"]
        if kind == "caller.started":
            speaking.add(record["line"])
        elif kind == "caller.ended":
            speaking.discard(record["line"])
        elif kind in _AUDIBLE:
            playing.add(record["utterance"])
        elif kind in _SILENT:
            playing.discard(record["utterance"])
        elif kind not in _HAPPENED:
            continue
        _note(moments, at_us, {**_state(speaking, playing), **_happened(record)})
    return "".join(dumps({"time": at_us / 1e6, **moment}, ensure_ascii=False) + "\n" for at_us, moment in moments)


def caller_onsets(records: Iterable[Record]) -> str:
    """The start of each caller line in seconds, one a line, as readers of onset annotations take them."""
    starts = [record["t"] for record in records if record["kind"] == "caller.started"]
    return "".join(f"{t // 1_000_000}.{t % 1_000_000:06d}\n" for t in starts)


def _placed(records: Iterable[Record]) -> Iterable[tuple[int, Record]]:
    """Each record with its instant; a playout starts at its first sample, which may be a little later."""
    for record in records:
        yield (samples_to_us(record["at_sample"]) if record["kind"] in _AUDIBLE else record["t"]), record


def _state(speaking: set[Any], playing: set[Any]) -> dict[str, Any]:
    return {"caller_audio_active": bool(speaking), "agent_audio_active": bool(playing)}


def _happened(record: Record) -> dict[str, Any]:
    key, fields = _HAPPENED.get(record["kind"], ("", ()))
    if not key:
        return {}
    if len(fields) == 1:
        return {key: record[fields[0]]}
    return {key: {name: record[name] for name in fields} or True}


def _note(moments: list[tuple[int, dict[str, Any]]], at_us: int, moment: dict[str, Any]) -> None:
    """Add a line, or put it into that of the same instant where that has no such key; skip what changes nothing."""
    last_us, last = moments[-1]
    events = moment.keys() - {"caller_audio_active", "agent_audio_active"}
    if last_us == at_us and not events & last.keys():
        last.update(moment)
    elif events or any(last[name] != value for name, value in moment.items()):
        moments.append((at_us, moment))
