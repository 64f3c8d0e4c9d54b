"""Random calls as scenario data: what the caller, the model and the tools may do, and where the caller cuts in.

Four families, so that each can go deep: ``scripted`` (any rounds of any calls, well formed or not), ``wanting`` (a
model that wants one effect and reads what became of it), ``consenting`` (an action that waits for a yes) and
``spoken`` (real speech, late finals, a slow voice). All answer by rules, so a call goes on sensibly wherever it is
cut, and the file of it stands alone.
Left out: running and judging them (``test_random_sessions``).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["FAMILIES", "interjections"]

Data = dict[str, Any]

LINES = ("Is my order ready?", "A table for two on Friday, please.", "Wait, make it three.", "Yes, please.")
TEXTS = ("", "Let me check.", "Let me book that for you.", "Done. A table for three on Friday.")


def durations(*values_ms: int) -> st.SearchStrategy[str]:
    """One of these, the simplest first; several coincide with others on purpose, so that there are ties."""
    return st.sampled_from([f"{value}ms" for value in values_ms])


def optional(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Data]:
    """Any subset of the keys; a shrunk example has none."""
    return st.fixed_dictionaries({}, optional=keys)


FILLERS = st.sampled_from(
    [
        "off",
        {"delay": "300ms"},
        {"delay": "350ms", "phrases": ["One moment, please."], "clip": "one_moment"},
        {"delay": "1.2s", "phrases": [{"text": "One moment, please.", "clip": "moment"}, "Still working on it."]},
        {"per_tool": True, "speak_progress": True},
    ]
)
AGENT = optional(
    filler=FILLERS,
    max_tool_rounds=st.sampled_from([6, 3, 1]),
    turn=optional(
        min_speech=durations(200, 100, 400),
        min_silence=durations(500, 200, 800),
        cooldown=durations(0, 700),
        barge_in=st.sampled_from(["active", "audible", "always", "never"]),
    ),
    engine=optional(
        max_invalid_rounds=st.integers(0, 2),
        idempotency_capacity=st.integers(1, 3),
        orphan_window=durations(120_000, 1000, 1),
        max_side_effect_runtime=durations(120_000, 6000),
        confirm_ttl=durations(120_000, 1500),
        max_result_bytes=st.sampled_from([65_536, 24]),
    ),
    tts=optional(inbox=st.sampled_from([64, 1]), clip_queue=st.sampled_from([4, 1])),
    speculation=st.booleans(),
)

RUNS = st.lists(
    st.fixed_dictionaries(
        {"latency": st.one_of(durations(400, 0, 50, 300, 350, 1000, 1200, 2400, 7000), st.just("never"))},
        optional={
            "result": st.sampled_from([{"id": 1}, "x" * 40, None]),
            "error": st.just("no table is free"),
            "crash": st.just("a bug in the tool"),
        },
    ).filter(lambda run: ("result" in run) + ("error" in run) + ("crash" in run) <= 1),
    min_size=1,
    max_size=3,
)
COUNTED = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "additionalProperties": False}


def _tool(**fixed: Any) -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries(
        {"results": RUNS, **{key: st.just(value) for key, value in fixed.items()}},
        optional={"timeout": durations(5000, 400, 1000), "filler_after": st.sampled_from(["700ms", "300ms", None])},
    )


TOOLS = st.fixed_dictionaries(
    {
        "look": _tool(parameters=COUNTED),
        "book": _tool(kind="side_effect", parameters=COUNTED),
        "tap": _tool(kind="side_effect", repeatable=True),
        "pay": _tool(kind="side_effect", confirm=True),
    }
)

GOOD_CALLS = st.one_of(
    st.sampled_from(["look", "book", "tap", "pay"]).map(lambda tool: {"tool": tool, "args": {}}),
    st.builds(lambda tool, n: {"tool": tool, "args": {"n": n}}, st.sampled_from(["look", "book"]), st.integers(1, 3)),
)
BAD_CALLS = st.sampled_from(
    [
        {"tool": "book", "args": {"n": 10}},
        {"tool": "book", "raw": '{"n":'},
        {"tool": "nothing", "args": {}, "unknown": True},
        {"tool": "confirm_pending", "args": {"call_id": "t9.9"}},
    ]
)
PAY = {"tool": "pay", "args": {}}
TWINS = GOOD_CALLS.map(lambda call: {**call, "id": "same"})  # a provider that repeats its ids
CALLS = st.lists(st.one_of(GOOD_CALLS, GOOD_CALLS, TWINS, BAD_CALLS), min_size=1, max_size=3)
CONFIRM = st.sampled_from(["t1.0", "t1.0", "t1.1", "t2.0"]).map(
    lambda call: [{"tool": "confirm_pending", "args": {"call_id": call}}]
)


def seldom(value: Any) -> st.SearchStrategy[Any]:
    """This value in one case of eight, else ``None``."""
    return st.integers(0, 7).map(lambda n: value if n == 7 else None)


@st.composite
def _round(draw: st.DrawFn, calls: st.SearchStrategy[list[Data]]) -> Data:
    keys = {
        "text": draw(st.sampled_from(TEXTS)),
        "calls": draw(calls),
        "text_after": draw(seldom(" One moment.")),
        "error": draw(seldom("the provider failed")),
        "ttft": draw(st.sampled_from([None, "1us", "50ms", "1.2s"])),
        "fragments": draw(st.sampled_from([None, None, "interleaved", 1, 3])),
    }
    return {key: value for key, value in keys.items() if value is not None}


@st.composite
def _lines(draw: st.DrawFn, level: st.SearchStrategy[str], least: int = 1) -> list[Data]:
    """One to three lines, none of which begins while another is spoken; perhaps the last hangs up."""
    lines: list[Data] = []
    at_ms = 100
    for text in LINES[: draw(st.integers(least, 3))]:
        spoken = draw(level)
        line: Data = {"say": text, "at": f"{at_ms}ms", "level": spoken}
        lasts_ms = 3000  # longer than the longest of the recordings
        if spoken == "decision":
            lasts_ms = draw(st.sampled_from([300, 50, 900]))
            line["for"] = f"{lasts_ms}ms"
        lines.append(line)
        at_ms += lasts_ms + draw(st.sampled_from([3000, 0, 350, 700, 1000, 8000]))
    if draw(seldom(True)):
        lines.append({"at": f"{at_ms}ms", "hang_up": True})
    return lines


@st.composite
def _rules(draw: st.DrawFn) -> Data:
    """Rounds for the turns of the lines and of the interjection, the same again when a line is said again.

    Later rounds like to ask for the calls of the first again, or to confirm one of them: that is where engines err.
    """
    first = draw(st.one_of(CALLS, CALLS, st.just([PAY])))
    wanted = CONFIRM if PAY in first else st.just(first)
    later = st.one_of(st.just([]), wanted, wanted, CALLS)
    rules = []
    for text in (*LINES[:3], "Stop"):
        rounds = draw(st.lists(_round(later), max_size=2))
        if text == LINES[0]:
            rounds.insert(0, draw(_round(st.just(first))))
        rules += [{"when": {"user": text, "round": number}, **each} for number, each in enumerate(rounds, 1)]
    return {"rules": rules, "else": {"text": "All right."}}


@st.composite
def _consent(draw: st.DrawFn) -> Data:
    """The first turn asks for the gated action; the later ones confirm it, ask for it again, or talk of something."""
    asked = draw(st.sampled_from([[PAY], [{"tool": "look", "args": {}}, PAY], [PAY, PAY]]))
    confirm = {"tool": "confirm_pending", "args": {"call_id": f"t1.{asked.index(PAY)}"}}
    rules: list[Data] = [{"when": {"user": LINES[0], "round": 1}, "text": draw(st.sampled_from(TEXTS)), "calls": asked}]
    answers = st.sampled_from([[confirm], [confirm, confirm], [PAY], []])
    for text in (*LINES[1:3], "Stop"):
        for number, calls in enumerate(draw(st.lists(answers, min_size=1, max_size=2)), 1):
            rules.append({"when": {"user": text, "round": number}, "text": "Let me check.", "calls": calls})
    return {"rules": rules, "else": {"text": "All right."}}


def _call(
    llm: st.SearchStrategy[Data], level: st.SearchStrategy[str], least: int = 1, **more: Any
) -> st.SearchStrategy[Data]:
    keys = {
        "scenario": st.just("random_call"),
        "agent": AGENT,
        "tools": TOOLS,
        "caller": _lines(level, least),
        "llm": llm,
    }
    return st.fixed_dictionaries({**keys, **more})


WANTING = st.builds(
    lambda behaviour, tool, ttft: {"behaviour": behaviour, "tool": tool, "args": {}, "ttft": ttft},
    st.sampled_from(["naive", "patient", "repeats"]),
    st.sampled_from(["book", "tap", "pay", "look"]),
    durations(350, 50),
)
PLACED = st.just("decision")
SPOKEN: dict[str, Any] = {
    "stt": optional(
        latency=durations(200, 0, 700),
        late_final=st.fixed_dictionaries({"after": durations(100, 300, 700, 1500)}, optional={"words": st.just(2)}),
    ),
    "tts": optional(ttfb=durations(150, 0, 900), speed=st.sampled_from([4, 1, 0.5])),
}

FAMILIES: dict[str, st.SearchStrategy[Data]] = {
    "scripted": _call(_rules(), PLACED),
    "wanting": _call(WANTING, PLACED),
    "consenting": _call(_consent(), PLACED, least=2),
    "spoken": _call(st.one_of(_rules(), WANTING), st.sampled_from(["audio", "decision"]), **SPOKEN),
}


def interjections() -> st.SearchStrategy[list[tuple[int, str]]]:
    """Four times a place in the list of instants that matter, and what the caller does there."""
    doing = st.sampled_from(["decision", "audio", "hang_up"])
    return st.lists(st.tuples(st.integers(0, 999), doing), min_size=4, max_size=4)
