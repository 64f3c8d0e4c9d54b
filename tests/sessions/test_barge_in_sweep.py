"""A barge-in decided every 10 ms of a reply: silence from the next boundary on, and a context true to the ear."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.kernel.frames import next_boundary_us, samples_to_us
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.model import Line

REPLY = "Hello there, Sam. We close at ten, on Sunday too."
TURN_AT_US = 400_000
"""When the short call's turn begins: the run is active from here on."""


@pytest.fixture(scope="module")
def plans(call):
    """The call by spans and per frame, its schemas and audio made once."""
    return [Plan(sim.load(call(REPLY, session={"per_frame": per_frame}))) for per_frame in (False, True)]


@pytest.fixture(scope="module")
def whole(plans):
    return run_plan(plans[0])


def interrupted(plan, at_us):
    return run_plan(plan, more_lines=[Line(say="Wait.", at_us=at_us, level="decision", for_us=300_000)])


def words_by(result, limit_us):
    return "".join(row[5] for row in result.timeline.rows if row[1] == "playout.word" and row[0] <= limit_us)


def test_swept_over_the_reply(plans, whole):
    end_us = next(row[0] for row in whole.timeline.rows if row[1] == "playout.ended")
    texts = []
    for at_us in range(TURN_AT_US, end_us + 40_000, 10_000):
        result, reference = (interrupted(plan, at_us) for plan in plans)
        assert result.timeline.rows == reference.timeline.rows, at_us
        assert result.violations == [], at_us
        boundary_us = next_boundary_us(at_us)
        first = [utterance for utterance in result.opened.session.book.utterances if utterance.epoch == 1]
        heard_until = [samples_to_us(at + count) for each in first for at, _, count in each.spans]
        assert all(until_us <= boundary_us for until_us in heard_until), at_us
        # Exactly the words that the uninterrupted call speaks up to the boundary.
        text = words_by(whole, boundary_us)
        assert result.context[1] == (
            {"role": "assistant", "text": text, "tool_calls": [], "provider_data": None}
            if text
            else {"role": "user", "text": "Wait."}
        ), at_us
        texts.append(text)
    words = [row[5] for row in whole.timeline.rows if row[1] == "playout.word"]
    assert list(dict.fromkeys(texts)) == ["".join(words[:count]) for count in range(len(words) + 1)]


@pytest.mark.parametrize("aside_us", [-1, 0, 1])
def test_one_microsecond_around_every_event_of_the_reply(plans, whole, aside_us):
    for at_us in sorted({row[0] for row in whole.timeline.rows if row[0] >= TURN_AT_US}):
        result, reference = (interrupted(plan, at_us + aside_us) for plan in plans)
        assert result.timeline.rows == reference.timeline.rows, at_us
        assert result.violations == [], at_us
        text = words_by(whole, next_boundary_us(at_us + aside_us))
        assert [each["text"] for each in result.context if each["role"] == "assistant"] == [
            *([text] if text else []),
            "All right.",
        ]
