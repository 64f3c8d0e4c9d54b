"""Every kind of fault that people have met in the field, and the test here that shows what is right.

The kinds are those of a file of field reports that lies beside the project; where it is absent the comparison is
skipped and the table still has to name tests and scenarios that exist.
"""

from __future__ import annotations

import ast
from json import loads
from pathlib import Path

import pytest

from bargein import sim

HERE = Path(__file__).parent
REPORTS = Path(__file__).parents[4] / "shared" / "field_reports.jsonl"

COVERED = {
    "action-from-discarded-turn": "test_of_tools.py::test_action_from_discarded_turn",
    "clip-order": "test_of_speech.py::test_clip_order",
    "consent": "test_of_tools.py::test_consent",
    "context-has-unheard": "test_of_speech.py::test_context_has_unheard",
    "double-reply-per-turn": "test_of_turns.py::test_double_reply_per_turn",
    "end-of-session": "test_of_turns.py::test_end_of_session",
    "false-interruption": "test_of_turns.py::test_false_interruption",
    "filler-order": "test_of_speech.py::test_filler_order",
    "heard-lost-from-context": "test_of_speech.py::test_heard_lost_from_context",
    "late-or-timed-out-result": "test_of_tools.py::test_late_or_timed_out_result",
    "parallel-tool-group": "test_of_tools.py::test_parallel_tool_group",
    "preamble-vs-tool-result": "test_of_tools.py::test_preamble_vs_tool_result",
    "provider-wire-quirk": "test_of_tools.py::test_provider_wire_quirk",
    "remote-buffer-not-flushed": "test_of_speech.py::test_remote_buffer_not_flushed",
    "request-invalid-history": "test_of_tools.py::test_request_invalid_history",
    "response-collision": "test_of_turns.py::test_response_collision",
    "speculative-generation": "test_of_turns.py::test_speculative_generation",
    "stale-audio-after-interrupt": "test_of_speech.py::test_stale_audio_after_interrupt",
    "tool-cancel-race": "test_of_tools.py::test_tool_cancel_race",
    "tool-result-lost": "test_of_tools.py::test_tool_result_lost",
    "truncation-position": "test_of_speech.py::test_truncation_position",
    "turn-boundary": "test_of_turns.py::test_turn_boundary",
    "wait-cycle": "test_of_turns.py::test_wait_cycle",
    "word-timing-mixed": "test_of_speech.py::test_word_timing_mixed",
}
LATER = {
    "dtmf": "collecting digits from the caller is no part of the pipeline; it only sends them",
    "idle-timer": "the agent has no re-prompt and no idle limit whose timer could be lost",
    "s2s-call-unanswered": "needs the speech-to-speech stage",
    "uninterruptible-scope": "a tool cannot declare that it must not be interrupted",
}


def test_every_kind_in_the_reports_is_covered_or_put_off_with_a_reason() -> None:
    if not REPORTS.exists():
        pytest.skip(f"the field reports are not beside the project ({REPORTS.name})")
    kinds = {loads(line)["kind"] for line in REPORTS.read_text(encoding="utf-8").splitlines() if line.strip()}

    assert kinds - COVERED.keys() - LATER.keys() == set(), "new kinds"
    assert COVERED.keys() | LATER.keys() == kinds


def test_no_kind_is_both_covered_and_put_off() -> None:
    assert COVERED.keys() & LATER.keys() == set()


@pytest.mark.parametrize("kind", COVERED)
def test_the_test_of_a_kind_exists_and_is_named_for_it(kind: str) -> None:
    file, _, name = COVERED[kind].partition("::")
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))

    assert name == f"test_{kind.replace('-', '_')}"
    assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_every_covered_kind_has_a_built_in_scenario_that_expects_the_right_thing() -> None:
    kinds: dict[str, list[str]] = {}
    for name in sim.scenarios():
        scenario = sim.load(name)
        if scenario.kind is not None:
            kinds.setdefault(scenario.kind, []).append(name)
            expect = scenario.expect
            assert expect.context is not None, name
            assert expect.heard is not None, name
            assert any(event.at_us is not None for event in expect.events), name

    assert kinds.keys() == COVERED.keys()
