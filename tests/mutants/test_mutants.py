"""Every planted fault is found, and without one nothing is found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from time import perf_counter

import pytest

from bargein import sim
from bargein.sim.lab.probes import Probe, Prober, instants
from bargein.sim.scenario.build import Plan
from tests.mutants import engine, engine_delivery, engine_memory, engine_words, stages
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.nested import run_tests

FAULTS = (engine, engine_delivery, engine_memory, engine_words, stages)
"""Importing them enters their faults."""

Record = Callable[[str, object], None]
EXPLORED = [each for each in MUTANTS.values() if each.invariants]
TESTED = [each for each in MUTANTS.values() if each.tests]
NAMED = sorted({each for planted in TESTED for each in planted.tests})


def _probes(prober: Prober, seldom: int) -> list[Probe]:
    """The call itself, then the instants that matter; every ``seldom``-th of them."""
    base = prober.base()
    return [Probe(()), *(Probe((at_us,)) for at_us in instants(base.records)[::seldom])]


@pytest.fixture(scope="module")
def probes() -> list[tuple[Prober, Probe]]:
    """Every probe of every built-in, one of each call in turn, found while no fault is planted."""
    calls = []
    for name in sim.scenarios():
        prober = Prober(Plan(sim.load(name)))
        calls.append([(prober, probe) for probe in _probes(prober, 1)])
    return [each for row in zip_longest(*calls) for each in row if each is not None]


@pytest.mark.parametrize("planted", EXPLORED, ids=lambda each: each.name)
def test_exploring_the_built_ins_finds_the_planted_fault(
    planted: Mutant,
    probes: list[tuple[Prober, Probe]],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
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


@pytest.fixture(scope="module")
def loaded() -> None:
    """The named tests' modules are imported before any fault is planted, or they would keep one for good."""
    seen = run_tests(NAMED, "--collect-only")
    assert seen.status == pytest.ExitCode.OK, seen.output


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("planted", TESTED, ids=lambda each: each.name)
def test_the_named_tests_find_the_planted_fault(
    planted: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    started = perf_counter()
    planted.plant(monkeypatch)
    seen = run_tests(planted.tests, "-x")
    assert seen.status == pytest.ExitCode.TESTS_FAILED, f"{planted.name}: {planted.tests}\n{seen.output}"
    assert seen.failed, f"{planted.name}: no test came as far as finding it\n{seen.misfit}\n{seen.output}"
    record_property("mutant", f"{planted.name}: {next(iter(seen.failed))}, {perf_counter() - started:.2f} s")


def test_without_a_planted_fault_the_named_tests_pass() -> None:
    seen = run_tests(NAMED)
    assert (seen.status, seen.failed, seen.misfit) == (pytest.ExitCode.OK, {}, {}), seen.output
