"""Invariants of the conversation: valid at every request, every call answered, every result told once, and heard.

The context is rebuilt from its edits, so that a fault in the one that ran cannot hide itself. Left out: what the
messages mean to a model.
"""

from __future__ import annotations

from collections.abc import Iterator

from bargein.sim.kernel.frames import next_boundary_us
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.base import CheckSettings, Violation
from bargein.sim.lab.invariants.facts import Facts, Response

__all__ = ["calls_answered", "context_heard", "context_valid", "result_once"]

RESULT_ERRORS = frozenset({"", "tool_failed", "unknown_outcome"})
"""Errors of a tool message that tell how the call itself went; the others say that it has not, or not yet."""


def calls_answered(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Every call is answered once, in issue order, before any other message (tool contract, item 5)."""
    name = "calls_answered"
    due: list[str] = []
    asked: set[str] = set()
    for push in facts.of("context.pushed"):
        if push["role"] != "tool":
            if due:
                text = f"a {push['role']} message stands before the answer to call {due[0]}"
                yield Violation(name, push["t"], text, push["seq"])
                due = []
            for call in push["calls"]:
                if call in asked:
                    text = f"call id {call} is asked twice"
                    yield Violation(name, push["t"], text, push["seq"])
            asked.update(push["calls"])
            due = list(push["calls"])
        elif push["call"] not in due:
            known = "is answered again" if push["call"] in asked else "is answered but was never asked"
            yield Violation(name, push["t"], f"call {push['call']} {known}", push["seq"])
        else:
            if push["call"] != due[0]:
                text = f"call {push['call']} is answered before call {due[0]}, which was asked first"
                yield Violation(name, push["t"], text, push["seq"])
            due.remove(push["call"])
    end = facts.end
    if end is not None:
        for call in due:
            yield Violation(name, end["t"], f"call {call} is never answered", end["seq"])


def context_valid(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Every request sent is valid, and valid for the provider it is sent to.

    Providers refuse a call without its result, an empty assistant message, and a conversation that ends on the
    assistant. A request of a turn that has not opened yet is speculative: its user message is not in the context.
    """
    alive: dict[int, tuple[Record, str]] = {}
    due: list[str] = []
    opened: set[int] = set()
    for record in facts.records:
        match record["kind"]:
            case "turn.user":
                opened.add(record["epoch"])
            case "context.pushed":
                yield from _pushed(record, alive, due)
            case "context.truncated" | "context.removed":
                yield from _edited(record, alive)
            case "llm.request_refused":
                yield _invalid(record, f"{record['provider']} would refuse this request, because {record['reason']}")
            case "llm.request":
                spoken = any(message["role"] != "system" for message, _ in alive.values())
                if due:
                    yield _invalid(record, f"a request is sent while call {due[0]} has no answer")
                elif record["epoch"] not in opened:
                    continue
                elif not spoken:
                    yield _invalid(record, "a request is sent with nothing to answer")
                elif next(reversed(alive.values()))[0]["role"] == "assistant":
                    yield _invalid(record, "a request is sent that ends on an assistant message")


def _invalid(record: Record, text: str) -> Violation:
    return Violation("context_valid", record["t"], text, record["seq"])


def _pushed(record: Record, alive: dict[int, tuple[Record, str]], due: list[str]) -> Iterator[Violation]:
    if record["message"] in alive:
        yield _invalid(record, f"message number {record['message']} is taken")
    if record["role"] == "assistant" and not record["text"] and not record["calls"]:
        yield _invalid(record, f"assistant message {record['message']} is empty")
    alive[record["message"]] = (record, record["text"])
    if record["role"] == "tool":
        if record["call"] in due:
            due.remove(record["call"])
    else:
        due[:] = record["calls"]


def _edited(record: Record, alive: dict[int, tuple[Record, str]]) -> Iterator[Violation]:
    number = record["message"]
    pushed, text = alive.get(number, (None, ""))
    if pushed is None or pushed["role"] != "assistant":
        yield _invalid(record, f"message {number} is edited, but there is no such assistant message")
    elif record["kind"] == "context.removed":
        if pushed["calls"]:
            yield _invalid(record, f"message {number} is removed although it asks for calls")
        del alive[number]
    else:
        if not text.startswith(record["text"]):
            yield _invalid(record, f"message {number} is cut to {record['text']!r}, which it does not begin with")
        if not record["text"] and not pushed["calls"]:
            yield _invalid(record, f"message {number} is left empty")
        alive[number] = (pushed, record["text"])


def result_once(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Every side effect's result reaches the context exactly once (tool contract, items 5, 6 and 8).

    As its own tool message, as a late note, or as the answer to an identical later call; the last of them are told
    when the session ends. One whose note is recorded as dropped may stay untold.
    """
    name = "result_once"
    told: dict[str, list[Record]] = {}
    for push in facts.of("context.pushed"):
        slot = push["role"] == "tool" and push["error"] in RESULT_ERRORS
        if slot or (push["role"] == "system" and push["source"] == "note"):
            told.setdefault(push["call"], []).append(push)
    replays = _replays(facts, told)
    dropped = {record["call"] for record in facts.of("note.dropped")}
    ends: dict[str, Record] = {}
    for record in sorted(facts.of("tool.finished") + facts.of("tool.dropped"), key=lambda record: record["seq"]):
        ends.setdefault(record["call"], record)
    users = [push for push in facts.of("context.pushed") if push["role"] == "user"]
    over = bool(facts.of("session.ended"))
    for started in facts.of("tool.started"):
        if not started["side_effect"]:
            continue
        call, ended = started["call"], ends.get(started["call"])
        for again in told.get(call, [])[1:]:
            yield Violation(name, again["t"], f"the result of call {call} is told a second time", again["seq"])
        if call in told or ended is None:
            continue
        replay = next((r for r in replays if r["tool"] == started["tool"] and r["seq"] > ended["seq"]), None)
        if replay is not None:
            replays.remove(replay)
        elif call not in dropped and (over or (users and users[-1]["seq"] > ended["seq"])):
            yield Violation(name, ended["t"], f"the result of call {call} never reaches the context", ended["seq"])
    for replay in replays:
        text = f"call {replay['call']} is answered with a result that the context holds already"
        yield Violation(name, replay["t"], text, replay["seq"])


def _replays(facts: Facts, told: dict[str, list[Record]]) -> list[Record]:
    """Settled calls that were answered from the record of an orphan, where the answer reached the context."""
    outcomes = {"orphan_replayed", "orphan_lost"}
    return [r for r in facts.of("tool.settled") if r["outcome"] in outcomes and r["call"] in told]


def context_heard(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """Assistant text in the context is what was heard, no more and no less.

    Judged where nothing more of a response can be heard: at the cut of its epoch, and at the end. White space at
    either end of a text has no sound and is not compared.
    """
    reported: set[int] = set()
    for interrupted in facts.of("turn.interrupted"):
        settled = _settled_after(facts, interrupted)
        if settled is not None:
            for response in facts.responses.values():
                if response.epoch == interrupted["epoch"] and response.started["seq"] < settled["seq"]:
                    yield from _compare(response, settled, settled["seq"], reported)
    end = facts.end
    if end is not None:
        for response in facts.responses.values():
            if all(u.started is None or u.close is not None for u in response.utterances):
                yield from _compare(response, end, None, reported)
        for message in facts.messages.values():
            spoken = message.response is None and message.pushed["role"] == "assistant" and message.text_at()
            if spoken and message.pushed["source"] not in ("", "memory"):
                text = f"message {message.pushed['message']} says {spoken!r}, which nobody set out to say"
                yield Violation("context_heard", message.pushed["t"], text, message.pushed["seq"])


def _settled_after(facts: Facts, interrupted: Record) -> Record | None:
    """The first record after the frame boundary at which an interruption is cut; ``None`` if there is none."""
    boundary = next_boundary_us(interrupted["t"])
    for at in range(interrupted["seq"] - facts.records[0]["seq"], len(facts.records)):
        if facts.records[at]["t"] > boundary:
            return facts.records[at]
    return None


def _compare(response: Response, at: Record, before_seq: int | None, reported: set[int]) -> Iterator[Violation]:
    heard = response.heard_text(before_seq)
    message = response.message
    if before_seq is not None and message is not None and message.pushed["seq"] >= before_seq:
        message = None  # a filler is placed later: not missing yet, the end will tell
        if response.source == "filler":
            return
    key = response.started["seq"]
    if key in reported:
        return
    if message is None:
        # A filler that was left out is filler_timing's to report.
        if heard.strip() and response.source != "filler":
            reported.add(key)
            text = f"the caller heard {heard!r}, which is not in the context"
            yield Violation("context_heard", at["t"], text, at["seq"])
        return
    text_now = message.text_at(before_seq) or ""
    if text_now.strip() != heard.strip():
        reported.add(key)
        text = f"message {message.pushed['message']} says {text_now!r}, but the caller heard {heard!r}"
        yield Violation("context_heard", at["t"], text, at["seq"])
