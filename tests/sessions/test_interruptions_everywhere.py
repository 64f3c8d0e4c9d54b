"""Every built-in, interrupted at every instant that matters, one microsecond before, at and after.

The invariants say what must hold wherever that is: side effects once, results once, a valid context that says what
was heard. The same with the ties of each instant permuted.
"""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.lab.probes import Probe, Prober, instants
from bargein.sim.scenario.build import Plan

TIE_SEEDS = (None, 1, 2)


@pytest.mark.parametrize("name", sim.scenarios())
def test_no_instant_breaks_an_invariant(name):
    prober = Prober(Plan(sim.load(name)))
    for tie_seed in TIE_SEEDS:
        for at_us in instants(prober.base().records):
            result = prober.run(Probe((at_us,), tie_seed))
            assert result.violations == [], (at_us, tie_seed)


@pytest.mark.parametrize("name", ["barge_in_during_booking", "clip_overtaking"])
@pytest.mark.parametrize("change", [{"hang_up": True}, {"level": "audio"}], ids=["hang-up", "audio"])
def test_nor_does_a_hang_up_or_real_speech(name, change):
    prober = Prober(Plan(sim.load(name)))
    for at_us in instants(prober.base().records):
        assert prober.run(Probe((at_us,), **change)).violations == [], at_us
