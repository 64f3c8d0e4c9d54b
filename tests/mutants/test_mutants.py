"""Every planted fault is found, and without one nothing is found."""

from __future__ import annotations

from time import perf_counter

import pytest

from bargein import sim
from bargein.sim.lab.probes import Probe, Prober, instants
from bargein.sim.scenario.build import Plan
from tests.mutants import engine, stages
from tests.mutants.catalogue import MUTANTS, Mutant

assert engine
assert stages

EXPLORED = [each for each in MUTANTS.values() if each.invariants]
TESTED = [each for each in MUTANTS.values() if each.tests]


def _probes(prober: Prober, seldom: int) -> list[Probe]:
    """The call itself, then the instants that matter; every ``seldom``-th of them."""
    base = prober.base()
    return [Probe(()), *(Probe((at_us,)) for at_us in instants(base.records)[::seldom])]


@pytest.mark.parametrize("planted", EXPLORED, ids=lambda each: each.name)
def test_exploring_the_built_ins_finds_the_planted_fault(
    planted: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: pytest.RecordProperty
) -> None:
    probers = [Prober(Plan(sim.load(name))) for name in sim.scenarios()]
    probes = [(prober, probe) for prober in probers for probe in _probes(prober, 1)]
    started = perf_counter()
    planted.plant(monkeypatch)
    found: dict[str, int] = {}
    tried = 0
    for prober, probe in probes:
        tried += 1
        for violation in prober.run(probe).violations:
            found.setdefault(violation.invariant, tried)
        if any(name in found for name in planted.invariants):
            break
    caught = [name for name in planted.invariants if name in found]
    assert caught, f"{planted.name}: {tried} runs violated {sorted(found) or 'nothing'}; wanted {planted.invariants}"
    record_property("mutant", f"{planted.name}: {caught[0]} after {tried} runs, {perf_counter() - started:.2f} s")


def test_without_a_planted_fault_nothing_is_found() -> None:
    for name in sim.scenarios():
        prober = Prober(Plan(sim.load(name)))
        for probe in _probes(prober, 5):
            assert prober.run(probe).violations == [], (name, probe)
