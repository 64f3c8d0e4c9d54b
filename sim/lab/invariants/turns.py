"""Invariants of turns: one reply each, every one answered, and a session that ends with nothing left open.

Left out: what the reply says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.base import CheckSettings, Violation
from bargein.sim.lab.invariants.facts import Facts

__all__ = ["one_reply", "quiet_end", "turn_answered"]

_AFTER_SUSPENSION = ("tool.started", "tool.withdrawn", "tool.settled")


def one_reply(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """One user turn gets at most one reply, and each final transcript belongs to exactly one turn.

    A transcript that comes after the last turn of a session that was cut short may stay without one.
    """
    name = "one_reply"
    finals: dict[Any, int] = {}
    turns: dict[Any, int] = {}
    opened: set[int] = set()
    ended: set[int] = set()
    begun: set[tuple[int, Any]] = set()
    for record in facts.records:
        epoch, text = record["epoch"], None
        match record["kind"]:
            case "stt.final":
                if record["segment"] in finals:
                    text = f"segment {record['segment']} is finished a second time"
                finals.setdefault(record["segment"], record["seq"])
            case "turn.user":
                if epoch in opened:
                    text = f"turn {epoch} is opened a second time"
                opened.add(epoch)
                for segment in record["segments"]:
                    if segment in turns:
                        text = f"segment {segment} belongs to turn {turns[segment]} and to turn {epoch}"
                    elif segment not in finals:
                        text = f"turn {epoch} is made of segment {segment}, which has no final transcript"
                    turns.setdefault(segment, epoch)
            case "run.ended":
                if epoch in ended:
                    text = f"the run of turn {epoch} ends a second time"
                if epoch in opened:  # before, it was a speculation that came to nothing
                    ended.add(epoch)
            case "response.started":
                if (epoch, record["ordinal"]) in begun:
                    text = f"response {record['ordinal']} of turn {epoch} begins a second time"
                elif epoch in ended:
                    text = f"turn {epoch} gets another response after its run ended"
                begun.add((epoch, record["ordinal"]))
        if text is not None:
            yield Violation(name, record["t"], text, record["seq"])
    end = facts.end
    if end is not None and end.get("reason") == "quiet":
        for final in facts.of("stt.final"):
            if final["segment"] not in turns and final["text"].strip():
                text = f"segment {final['segment']} {final['text']!r} belongs to no turn"
                yield Violation(name, final["t"], text, final["seq"])


def turn_answered(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Every user turn is answered, or its ending says why.

    A run that ended with an answer or a fallback was heard, unless an interruption or the end of the call came first.
    """
    runs = facts.first("run.ended")
    interrupted = facts.first("turn.interrupted")
    heard = {utterance.epoch for utterance in facts.utterances.values() if utterance.heard}
    end = facts.end
    left = end is not None and end.get("reason") != "quiet"
    for turn in facts.of("turn.user"):
        epoch = turn["epoch"]
        run = runs.get(epoch)
        if run is None:
            text = f"turn {epoch} {turn['text']!r} has no ending"
            yield Violation("turn_answered", turn["t"], text, turn["seq"])
        elif run["ending"] in ("answered", "fallback") and epoch not in heard | interrupted.keys() and not left:
            text = f"turn {epoch} ended as {run['ending']}, but the caller heard nothing"
            yield Violation("turn_answered", run["t"], text, run["seq"])


def quiet_end(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """The session ends with no tool, run or utterance left open, after its last sample was heard."""
    name = "quiet_end"
    end = facts.end
    if end is None:
        return
    ends = facts.of("session.ended")
    if not ends:
        yield Violation(name, end["t"], "the session never ends", end["seq"])
    elif end["kind"] != "session.ended":
        yield Violation(name, end["t"], f"{end['kind']} comes after the end of the session", end["seq"])
    for again in ends[1:]:
        yield Violation(name, again["t"], "the session ends a second time", again["seq"])
    closed = {record["call"] for record in facts.of("tool.finished") + facts.of("tool.dropped")}
    for started in facts.of("tool.started"):
        if started["call"] not in closed:
            text = f"call {started['call']} of {started['tool']} is still running"
            yield Violation(name, end["t"], text, started["seq"])
    closed = {record["call"] for kind in _AFTER_SUSPENSION for record in facts.of(kind)}
    for suspended in facts.of("tool.suspended"):
        if suspended["call"] not in closed:
            text = f"call {suspended['call']} of {suspended['tool']} still waits for an approval"
            yield Violation(name, end["t"], text, suspended["seq"])
    for epoch, request in _open_runs(facts).items():
        yield Violation(name, end["t"], f"the run of turn {epoch} is still open", request["seq"])
    for utterance in facts.utterances.values():
        opened = utterance.opened or utterance.started
        if utterance.close is None and opened is not None:
            text = f"utterance {utterance.number} is still open"
            yield Violation(name, end["t"], text, opened["seq"])


def _open_runs(facts: Facts) -> dict[int, Record]:
    """The runs that asked the model and have no end, by turn, with their first request.

    A speculation that was discarded ends with that; its turn may never come.
    """
    asked: dict[int, Record] = {}
    for record in facts.records:
        if record["kind"] in ("llm.request", "llm.suspended"):
            asked.setdefault(record["epoch"], record)
        elif record["kind"] in ("run.ended", "speculation.discarded"):
            asked.pop(record["epoch"], None)
    return asked
