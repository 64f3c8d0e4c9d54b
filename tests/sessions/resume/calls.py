"""A call of every kind that is recorded, replayed, saved and resumed, and a walk that saves it at each of its events.

``CALLS`` holds them by name; each is given a folder, into which it puts the files that it reads. The callers speak at
placed instants, and what is to go wrong does (a barge-in, an outage, a loss), so that much is open at many places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bargein import sim
from bargein.models.cassettes import Cassette, Exchange, dump_cassette
from bargein.models.memory_sqlite import SqliteStore
from bargein.models.profiles import PROFILES
from bargein.models.providers.catalogue import WIRES, adapter
from bargein.models.vendors.wire import answer_class
from bargein.pipelines.agent.messages import assistant, system, user
from bargein.pipelines.agent.request import Request
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.recording import Recorder
from bargein.sim.lab.checkpoints import checkpoint_of
from bargein.sim.lab.result import Result
from bargein.sim.scenario.build import Plan

__all__ = ["CALLS", "Call", "Desk", "saved_everywhere", "side_effects", "write_cassette", "written"]

WHERE = {"type": "object", "properties": {"where": {"type": "string"}}}
LOOK = {"description": "Looks.", "parameters": WHERE, "latency": "300ms", "result": {"seen": "{args.where}"}}
BOOK = {
    "description": "Books.",
    "kind": "side_effect",
    "latency": "1s",
    "progress": [{"at": "600ms", "text": "Nearly."}],
    "result": "BK-1",
}
FIRST = {"say": "Please book it.", "at": "100ms", "level": "decision", "for": "900ms"}
CUT_IN = {"say": "Wait.", "level": "decision", "for": "300ms"}


@dataclass(frozen=True)
class Call:
    """A call.

    Attributes:
        write: puts it into a folder, with the files that it reads; returns its scenario.
        tie_seed: permutes what falls on the same instant.
        tools: makes the program's own tools, if it has any.
    """

    write: Callable[[Path], Path]
    tie_seed: int | None = None
    tools: Callable[[], sim.Tools] | None = None

    def plan(self, folder: Path) -> Plan:
        """What is run of it, written to ``folder``."""
        tools = None if self.tools is None else self.tools()
        return Plan(sim.load(self.write(folder), tools=tools), tools)


def written(data: dict[str, Any]) -> Callable[[Path], Path]:
    """Writes a call that reads no files."""

    def write(folder: Path) -> Path:
        path = folder / "call.scenario.json"
        path.write_text(json.dumps({"scenario": "call", **data}), encoding="utf-8")
        return path

    return write


# -- models ---------------------------------------------------------------------------------------------------------

ROUNDS: list[dict[str, Any]] = [
    {"text": "I look.", "calls": [{"look": {"where": "a"}}, {"book": {}}, {"look": {}}]},
    {"text": "It is booked for you now."},
    {"text": "All right then."},
]
TOOLS = {"look": LOOK, "book": BOOK}


def on_a_wire(wire: str) -> Call:
    """Every quirk of the vendor at once, its arguments in small pieces, and a barge-in while it answers.

    But one: calls whose heads are split as well as numbered zero cannot be told apart, by anybody.
    """
    quirks = sorted(answer_class(wire).SUPPORTED - {"zero_index"})
    rounds = [ROUNDS[0], {**ROUNDS[1], "reasoning": "So it is."}, ROUNDS[2]]
    llm = {"rounds": rounds, "wire": wire, "quirks": quirks, "fragments": 3, "chunking": 40}
    cut_in = {**CUT_IN, "after": {"event": "playout.started", "nth": 2, "by": "250ms"}}
    return Call(written({"tools": TOOLS, "caller": [FIRST, cut_in], "llm": llm}))


def with_profile(profile: str) -> Call:
    """A model that is slow or goes wrong, over chained calls and two turns."""
    rounds = [
        {"expect_user": "book", "calls": [{"look": {"where": 7}}]},
        {"calls": [{"book": {}}]},
        {"text": "It is booked for you now."},
        {"expect_user": "Wait", "text": "All right then."},
    ]
    cut_in = {**CUT_IN, "at": "90s"}
    script = {"rounds": rounds, "profile": profile}
    return Call(written({"tools": TOOLS, "caller": [FIRST, cut_in], "llm": script}))


def write_cassette(path: Path, *said: str, asked: str = "Please book it.", last_us: int = 700_001) -> None:
    """A cassette of one exchange; each piece of what is said comes 100 ms after the last."""
    event = 'data: {{"choices":[{{"index":0,"delta":{},"finish_reason":{}}}]}}\n\n'.format
    pieces = [event(json.dumps({"content": each}), "null").encode() for each in said]
    pieces += [event("{}", '"stop"').encode(), b"data: [DONE]\n\n"]
    at_us = [300_007 + 100_000 * number for number in range(len(said))] + [last_us, last_us]
    body = adapter("openai", "m").encode(Request((system("Be brief."), user(asked)), ()))
    exchange = Exchange(body, 200, 0, tuple(zip(at_us, pieces, strict=True)), last_us)
    path.write_text(dump_cassette(Cassette("openai", "m", "call", (exchange,))), encoding="utf-8")


def with_cassette(folder: Path) -> Path:
    write_cassette(folder / "kept.jsonl", "Hello", " out", " there.")
    cut_in = {**CUT_IN, "transcript": "", "after": {"event": "playout.word", "by": "1ms"}}
    call = {"agent": {"system": "Be brief."}, "caller": [FIRST, cut_in], "llm": {"cassette": "kept.jsonl"}}
    return written(call)(folder)


ROUTED = {
    "tools": TOOLS,
    "caller": [FIRST, {**CUT_IN, "after": {"event": "playout.started", "nth": 2, "by": "250ms"}}],
    "steering": [
        {"when": {"round": 1}, "route": "fast"},
        {"when": {"round": 2}, "patch": {"temperature": 0.5}},
        {"deny": "look", "reason": "Closed."},
        {"limit": {"max_bytes": 8}},
    ],
    "models": {"fast": {"ttft": "100ms", "rounds": [ROUNDS[0], {"text": "All right then."}]}},
    "llm": {"ttft": {"dist": "uniform", "low": "200ms", "high": "600ms"}, "rounds": [ROUNDS[1]]},
}


# -- tools ----------------------------------------------------------------------------------------------------------


def with_remote(**link: Any) -> Call:
    """A remote agent whose tools are called, cut in on, and told late."""
    remote = {"link": {"latency": "100ms", **link}, "tools": TOOLS}
    caller = [FIRST, {**CUT_IN, "at": "3s"}, {"hang_up": True, "at": "20s"}]
    rounds = [ROUNDS[0], {"calls": [{"look": {"where": "b"}}]}, {"text": "So be it."}]
    llm = {"ttft": "1s", "rounds": [*rounds, *[{"text": "All right then."}] * 3]}
    return Call(written({"seed": 4, "caller": caller, "llm": llm, "remote": remote}))


class Desk:
    """What really happened, outside of any session."""

    def __init__(self) -> None:
        self.booked: list[str] = []

    def tools(self) -> sim.Tools:
        """Its tools."""
        tools = sim.Tools()

        @tools.side_effect(filler_after="100ms")
        def reserve(day: str) -> Any:
            """Reserves."""
            yield "400ms"
            self.booked.append(day)
            return {"reserved": day}

        @tools.read_only()
        def free(day: str) -> Any:
            """Tells whether a day is free."""
            yield "200ms"
            return day

        return tools


OWN = {
    "tools": {"look": LOOK},
    "caller": [FIRST, {**CUT_IN, "at": "4s"}],
    "llm": [
        {"calls": [{"free": {"day": "friday"}}, {"reserve": {"day": "friday"}}, {"look": {"where": "a"}}]},
        {"text": "Friday is booked."},
        {"calls": [{"reserve": {"day": "monday"}}]},
        {"text": "Monday is booked."},
    ],
}


# -- memory ---------------------------------------------------------------------------------------------------------

BEFORE = [{"user": "My name is Ada."}, {"agent": "Hello Ada."}]


def with_memory(**memory: Any) -> Call:
    """A call that remembers another, and is cut in on."""
    latency = {"dist": "uniform", "low": "20ms", "high": "900ms"}
    call = {
        "memory": {"latency": latency, **memory},
        "tools": TOOLS,
        "caller": [FIRST, {**CUT_IN, "after": {"event": "playout.started", "nth": 2, "by": "250ms"}}],
        "llm": ROUNDS,
    }

    def write(folder: Path) -> Path:
        if "path" in memory:
            (folder / memory["path"]).unlink(missing_ok=True)
            with SqliteStore(folder / memory["path"]) as store:
                said = [user("My name is Ada."), assistant("Hello Ada.")]
                store.append("caller", [each.to_dict() for each in said])
        return written(call)(folder)

    return Call(write)


# -- the call itself ------------------------------------------------------------------------------------------------

TIED = {
    "tools": {name: {**LOOK, "latency": "300ms"} for name in ("look", "see", "hear")},
    "agent": {"filler": {"delay": "300ms", "phrases": ["One moment."]}},
    "caller": [FIRST, {**CUT_IN, "at": "1650ms"}],
    "llm": {
        "rounds": [{"calls": [{"look": {}}, {"see": {}}, {"hear": {}}]}, {"text": "Done."}, {"text": "All right."}],
        "ttft": "350ms",
    },
}
PER_FRAME = {
    "session": {"per_frame": True},
    "tools": TOOLS,
    "acoustics": {"noise": {"kind": "babble", "snr_db": 25}},
    "caller": [
        {"say": "Please book it.", "at": "500ms"},
        {"say": "Wait.", "after": {"event": "tool.started", "by": "2s"}},
    ],
    "llm": ROUNDS,
}
BY_A_NETWORK = {**PER_FRAME, "acoustics": {}, "session": {}, "vad": {"engine": "silero"}}
BY_A_NETWORK["caller"] = [{"say": "A table for two on Friday, please.", "at": "500ms"}]

CALLS: dict[str, Call] = {
    **{f"wire {wire}": on_a_wire(wire) for wire in WIRES},
    **{f"profile {profile}": with_profile(profile) for profile in PROFILES},
    "cassette": Call(with_cassette),
    "steering": Call(written(ROUTED)),
    "remote": with_remote(jitter="30ms"),
    "remote that loses": with_remote(loss=0.3, retransmit="50ms"),
    "remote that loses for good": with_remote(transport="datagram", loss=0.2, reorder=0.3),
    "remote that is cut off": with_remote(down=[{"at": "2500ms", "for": "1s"}]),
    "memory": with_memory(messages=BEFORE),
    "memory in a database": with_memory(store="sqlite", messages=BEFORE),
    "memory in a file": with_memory(store="sqlite", path="kept.db"),
    "memory that is kept": with_memory(store="sqlite", path="kept.db", keep=True),
    "own tools": Call(written(OWN), tools=lambda: Desk().tools()),
    "ties": Call(written(TIED), tie_seed=3),
    "frames": Call(written(PER_FRAME)),
    "frames with ties": Call(written(PER_FRAME), tie_seed=5),
    "a network that hears": Call(written(BY_A_NETWORK)),
}


# -- saving ---------------------------------------------------------------------------------------------------------


def saved_everywhere(plan: Plan, tie_seed: int | None = None) -> Iterator[tuple[Checkpoint, str]]:
    """A checkpoint after every event of the timeline, on one way through the call, and the kind of that event."""
    recorder = Recorder()
    opened = plan.open(tie_seed=tie_seed, recorder=recorder)
    session, seen = opened.session, 0
    session.start()
    while True:
        kind, seen = session.timeline.rows[-1][1], len(session.timeline)
        yield checkpoint_of(plan, opened, recorder, kind, tie_seed=tie_seed), kind
        if not session.clock.run_while(lambda _, before=seen: len(session.timeline) == before):
            return


def side_effects(result: Result) -> list[str]:
    """The calls that ran a side effect, in order."""
    return [each["call"] for each in result.timeline.of("tool.started") if each["side_effect"]]
