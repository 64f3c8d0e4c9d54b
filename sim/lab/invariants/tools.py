"""Invariants of what tools do to the world: never twice, never early, never for a dead turn, and fillers on time.

Left out: whether a result was told (``context``).
"""

from __future__ import annotations

from collections.abc import Iterator

from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants.base import CheckSettings, ToolFacts, Violation
from bargein.sim.lab.invariants.facts import Facts, epoch_of_call
from bargein.sim.lab.invariants.repeats import forbidden_repeats

__all__ = ["effect_once", "filler_timing", "gate_respected", "no_dead_epoch_effect", "speculation_safe"]

_UNLISTED = ToolFacts()


def effect_once(facts: Facts, settings: CheckSettings) -> Iterator[Violation]:
    """No side effect runs twice where the contract forbids it (tool contract, item 6).

    The same call id or effect never runs twice. Two call ids that do the same thing are only told apart with
    ``settings.identities``; which repeats are forbidden then is ``repeats``' to say.
    """
    name = "effect_once"
    calls: set[str] = set()
    effects: set[object] = set()
    for started in facts.of("tool.started"):
        if not started["side_effect"]:
            continue
        if started["call"] in calls:
            text = f"call {started['call']} of {started['tool']} runs a second time"
            yield Violation(name, started["t"], text, started["seq"])
        elif started["effect"] in effects:
            text = f"effect {started['effect']} runs a second time, as call {started['call']}"
            yield Violation(name, started["t"], text, started["seq"])
        calls.add(started["call"])
        effects.add(started["effect"])
    if settings.identities:
        for started, first, why in forbidden_repeats(facts, settings):
            text = f"call {started['call']} of {started['tool']} does again what call {first['call']} did: {why}"
            yield Violation(name, started["t"], text, started["seq"])


def gate_respected(facts: Facts, settings: CheckSettings) -> Iterator[Violation]:
    """A gated call runs only after a later user turn confirmed it (tool contract, "Confirmation gate").

    A request is taken once, in time, and not after an interruption has cleared it.
    """
    gated = {name for name, tool in settings.tools.items() if tool.confirm}
    gated.update(record["tool"] for record in facts.of("confirm.requested"))
    waiting: dict[str, Record] = {}
    taken: dict[str, Record] = {}
    last_user = -1
    for record in facts.records:
        match record["kind"]:
            case "turn.user":
                last_user = record["seq"]
            case "confirm.requested":
                waiting[record["call"]] = record
            case "confirm.cleared":
                for call in record["requests"]:
                    waiting.pop(call, None)
            case "confirm.taken":
                request = waiting.pop(record["request"], None)
                problem = _gate_problem(record, request, last_user, settings)
                if problem is not None:
                    yield Violation("gate_respected", record["t"], problem, record["seq"])
                if request is not None:
                    taken[record["call"]] = request
            case "tool.started" if record["tool"] in gated:
                request = taken.pop(record["call"], None)
                if request is None or request["tool"] != record["tool"]:
                    text = f"call {record['call']} runs the gated {record['tool']}, but no request for it was confirmed"
                    yield Violation("gate_respected", record["t"], text, record["seq"])


def _gate_problem(taken: Record, request: Record | None, last_user: int, settings: CheckSettings) -> str | None:
    if request is None:
        return f"call {taken['call']} confirms {taken['request']}, which waits for no confirmation"
    if last_user < request["seq"]:
        return f"call {taken['call']} confirms {taken['request']} although the user has not replied since"
    if taken["t"] - request["t"] > settings.at(taken).confirm_ttl_us:
        return f"call {taken['call']} confirms {taken['request']} after it expired"
    return None


def speculation_safe(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """No side effect runs before its turn commits (tool contract, item 7)."""
    opened = facts.first("turn.user")
    commits = [record["seq"] for record in facts.of("turn.user") + facts.of("turn.ended")]
    held = {record["call"]: record["seq"] for record in facts.of("tool.held")}
    for started in facts.of("tool.started"):
        if not started["side_effect"]:
            continue
        epoch = epoch_of_call(started["call"], started["epoch"])
        turn = opened.get(epoch)
        held_at = held.get(started["call"])
        early = turn is None or turn["seq"] > started["seq"]
        unheld = held_at is not None and not any(held_at < seq < started["seq"] for seq in commits)
        if early or unheld:
            text = f"call {started['call']} of {started['tool']} runs before turn {epoch} is committed"
            yield Violation("speculation_safe", started["t"], text, started["seq"])


def no_dead_epoch_effect(facts: Facts, _: CheckSettings) -> Iterator[Violation]:
    """No call of an interrupted or unconfirmed response starts after it ended (tool contract, item 8)."""
    asked: set[str] = set()
    over: dict[int, str] = {}
    opened: set[int] = set()
    newest = 0
    for record in facts.records:
        match record["kind"]:
            case "context.pushed":
                asked.update(record["calls"])
            case "turn.user":
                newest = max(newest, record["epoch"])
                opened.add(record["epoch"])
            case "turn.interrupted":
                over[record["epoch"]] = "was interrupted"
            case "run.ended" if record["epoch"] in opened:  # before, it was a speculation that came to nothing
                over.setdefault(record["epoch"], "has ended")
            case "tool.started":
                epoch = epoch_of_call(record["call"], record["epoch"])
                if epoch in over:
                    why = f"of turn {epoch}, which {over[epoch]}"
                elif epoch < newest:
                    why = f"of turn {epoch}, which turn {newest} has replaced"
                elif record["call"] not in asked and epoch in opened:
                    why = "of a response that is not in the context"
                else:
                    continue
                text = f"call {record['call']} of {record['tool']} starts, {why}"
                yield Violation("no_dead_epoch_effect", record["t"], text, record["seq"])


def filler_timing(facts: Facts, settings: CheckSettings) -> Iterator[Violation]:
    """No filler before its delay, none once its result is in, none left out of the context (tool contract, item 9).

    The delay counts from the start of the tool round, is the smallest among its running calls, and a filler begins
    exactly at it. A spoken progress message is no filler. A filler is timed as its round begins: other settings, with
    which a session was resumed, leave it its instant.
    """
    rounds: dict[tuple[int, int], Record] = {}
    ended: set[tuple[int, int]] = set()
    spoken: set[tuple[int, int]] = set()
    running: dict[tuple[int, int], dict[str, str]] = {}
    current: dict[int, tuple[int, int]] = {}
    starts: dict[str, str] = {}
    settled: set[str] = set()
    dead: set[int] = set()
    progress: set[tuple[int, str]] = set()
    for record in facts.records:
        epoch = record["epoch"]
        match record["kind"]:
            case "tools.started":
                current[epoch] = key = (epoch, record["round"])
                rounds[key] = record
                # What was begun on speculation runs already; the rest starts after the round is announced.
                running[key] = {
                    call: starts[call] for call in record["calls"] if call in starts and call not in settled
                }
            case "tools.ended":
                ended.add((epoch, record["round"]))
            case "tool.started" | "tool.suspended":  # one that waits for an approval is waited for as well
                starts[record["call"]] = record["tool"]
                if epoch in current and current[epoch] not in ended:
                    running[current[epoch]][record["call"]] = record["tool"]
            case "tool.progress":
                progress.add((record["t"], record["text"]))
            case "tool.settled":
                settled.add(record["call"])
            case "turn.interrupted":
                dead.add(epoch)
            case "filler.spoken" if (record["t"], record["text"]) not in progress:
                key = (epoch, record["round"])
                calls = running.get(key, {})
                problem: str | None
                if epoch in dead:
                    problem = "after the turn was interrupted"
                elif key not in rounds:
                    problem = "outside a tool round"
                elif key in ended or all(call in settled for call in calls):
                    problem = "although every result of the round is in"
                elif key in spoken:
                    problem = "a second time in one round"
                elif not settings.at(record).fillers:
                    problem = "although fillers are off"
                else:
                    begun = rounds[key]
                    problem = _off_time(record["t"] - begun["t"], list(calls.values()), settings.at(begun))
                spoken.add(key)
                if problem is not None:
                    text = f"filler {record['text']!r} is spoken {problem}"
                    yield Violation("filler_timing", record["t"], text, record["seq"])
    yield from _left_out(facts)


def _off_time(waited_us: int, tools: list[str], settings: CheckSettings) -> str | None:
    """What is wrong with a filler spoken so long after its round began, by the settings of then; or ``None``."""
    known = [settings.tools.get(tool, _UNLISTED) for tool in tools]
    own = [tool.filler_after_us for tool in known if tool.filler_after_us is not None]
    if not own:
        return "for tools that want none"
    if settings.filler_delay_us is None and any(tool not in settings.tools for tool in tools):
        return None
    delay_us = min(own) if settings.filler_delay_us is None else settings.filler_delay_us
    if waited_us == delay_us:
        return None
    return f"{waited_us} us after its round began; its delay is {delay_us} us"


def _left_out(facts: Facts) -> Iterator[Violation]:
    end = facts.end
    for response in facts.responses.values():
        heard = response.heard_text()
        playing = any(u.started is not None and u.close is None for u in response.utterances)
        if response.source == "filler" and response.message is None and heard.strip() and not playing and end:
            text = f"the caller heard the filler {heard!r}, which is not in the context"
            yield Violation("filler_timing", end["t"], text, end["seq"])
