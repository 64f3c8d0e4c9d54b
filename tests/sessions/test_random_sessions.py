"""Random calls: whatever the script and the settings, no invariant breaks and both modes agree."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bargein import sim
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan


def ms(*values):
    return st.sampled_from([f"{value}ms" for value in values])


AGENT = st.fixed_dictionaries(
    {
        "filler": st.sampled_from(
            [
                "off",
                {"delay": "100ms", "phrases": ["One moment, please."], "clip": "wait"},
                {"delay": "1200ms", "phrases": ["One moment, please."], "clip": "wait"},
                {"delay": "300ms", "phrases": ["One moment, please."]},
            ]
        ),
        "turn": st.fixed_dictionaries(
            {
                "min_speech": ms(100, 200, 400),
                "min_silence": ms(100, 300, 500, 800),
                "cooldown": ms(0, 500, 2000),
                "warm_up": ms(0, 300),
                "barge_in": st.sampled_from(["audible", "active", "always", "never"]),
            }
        ),
        "tts": st.fixed_dictionaries({"inbox": st.sampled_from([1, 2, 64]), "clip_queue": st.sampled_from([1, 4])}),
    }
)
TOOLS = st.fixed_dictionaries(
    {
        "book": st.fixed_dictionaries(
            {"kind": st.just("side_effect"), "latency": ms(50, 200, 1000, 2000, 7000), "result": st.just({"b": 1})}
        ),
        "look": st.fixed_dictionaries({"latency": ms(50, 500, 3000), "result": st.just(1)}),
    }
)
BOOK, LOOK = {"book": {}}, {"look": {}}
MODEL = st.fixed_dictionaries(
    {
        "rules": st.tuples(
            st.fixed_dictionaries(
                {
                    "when": st.just({"result": {"tool": "book", "is": "missing"}}),
                    "text": st.sampled_from(["", "Let me book that for you."]),
                    "calls": st.sampled_from([[BOOK], [BOOK, LOOK]]),
                }
            ),
            st.fixed_dictionaries(
                {
                    "when": st.just({"result": {"tool": "book", "is": "pending"}}),
                    "text": st.just("Still on it. Please wait."),
                    "calls": st.sampled_from([[], [BOOK]]),
                }
            ),
            st.fixed_dictionaries(
                {
                    "when": st.just({"round": 1}),
                    "text": st.just("Hm, let me see. That could be so."),
                    "calls": st.sampled_from([[], [LOOK], [BOOK]]),
                }
            ),
        ).map(list),
        "else": st.just({"text": "It is done, and I wish you a nice evening. Good bye for now."}),
        "delta": st.fixed_dictionaries({"every": ms(0, 20, 70), "words": st.sampled_from([1, 3])}),
    }
)
SAY = st.sampled_from(["Wait.", "No.", "Wait, make it three.", "Hello? Is it booked?"])
LEVEL = st.sampled_from([{}, {"level": "decision", "for": "100ms"}, {"level": "decision", "for": "900ms"}])
MOMENT = st.fixed_dictionaries(
    {
        "event": st.sampled_from(
            ["session.started", "playout.started", "playout.word", "playout.ended", "tool.started", "llm.first_token"]
        ),
        "nth": st.sampled_from([1, 2]),
        "by": st.one_of(ms(0, 20, 333), st.integers(0, 9_000_000).map(lambda us: f"{us}us")),
    }
)
LINES = st.lists(
    st.tuples(SAY, LEVEL, MOMENT).map(lambda line: {"say": line[0], **line[1], "after": line[2]}), max_size=3
)
CALLS = st.fixed_dictionaries(
    {
        "scenario": st.just("random"),
        "agent": AGENT,
        "tools": TOOLS,
        "caller": LINES.map(lambda lines: [{"say": "A table for two on Friday, please.", "at": "500ms"}, *lines]),
        "stt": st.fixed_dictionaries(
            {"latency": ms(0, 200, 600, 900)},
            optional={"late_final": st.sampled_from([{"after": "50ms"}, {"after": "900ms"}])},
        ),
        "tts": st.fixed_dictionaries({"speed": st.sampled_from([0.5, 0.8, 1, 4]), "ttfb": ms(0, 150, 400)}),
        "acoustics": st.sampled_from([{}, {}, {"echo": {}}, {"echo": {"delay": "0ms", "gain_db": -6}}]),
        "llm": MODEL,
        "session": st.just({"max_duration": "60s"}),
    }
)
QUICK = settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(data=CALLS, tie_seed=st.none() | st.integers(0, 9))
def test_no_invariant_breaks(data, tie_seed):
    result = run_plan(Plan(sim.load(data)), tie_seed=tie_seed)
    assert result.violations == []


@QUICK
@given(data=CALLS)
def test_both_modes_agree(data):
    spans = run_plan(Plan(sim.load(data)))
    frames = run_plan(Plan(sim.load({**data, "session": {**data["session"], "per_frame": True}})))
    assert spans.timeline.rows == frames.timeline.rows
