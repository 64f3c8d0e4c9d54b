"""By spans and per frame, the reference, a session has the same timeline: every built-in, in every kind of room."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.lab.probes import Probe, Prober
from bargein.sim.scenario.build import Plan

ROOMS = {
    "quiet": {},
    "noise": {"noise": {"kind": "pink", "snr_db": 30}},
    "babble": {"noise": {"kind": "babble", "snr_db": 12}},
    "echo": {"echo": {"delay": "60ms", "gain_db": -30}},
    "loud echo": {"echo": {"delay": "45ms", "gain_db": -6}},
    "both": {"noise": {"kind": "white", "snr_db": 30}, "echo": {"delay": "45ms", "gain_db": -6}},
}


def probers(name, acoustics):
    scenario = sim.load(name).with_value("acoustics", acoustics).with_value("session.max_duration", "30s")
    return [Prober(Plan(scenario.with_value("session.per_frame", per_frame))) for per_frame in (False, True)]


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("name", sim.scenarios())
def test_both_modes_agree(name, room):
    spans, frames = probers(name, ROOMS[room])
    for probe in (Probe(()), Probe((3_456_789,), level="audio")):
        result, reference = spans.run(probe), frames.run(probe)
        assert result.timeline.rows == reference.timeline.rows
        assert result.violations == reference.violations == []
