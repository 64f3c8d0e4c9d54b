"""Every planted fault that names tests makes one of them fail; `test_explore` finds the others by exploring."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest

from tests.mutants import (
    engine,
    engine_delivery,
    engine_memory,
    engine_words,
    identities,
    memory,
    python_tools,
    routes,
    run_checkpoints,
    run_endings,
    run_logs,
    runs,
    s2s_effects,
    serving,
    stages,
    voice_layers,
)
from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.nested import run_tests

FAULTS = (
    engine,
    engine_delivery,
    engine_memory,
    engine_words,
    identities,
    memory,
    python_tools,
    routes,
    run_checkpoints,
    run_endings,
    run_logs,
    runs,
    s2s_effects,
    serving,
    stages,
    voice_layers,
)
"""Importing them enters their faults."""

Record = Callable[[str, object], None]
EXPLORED = [each for each in MUTANTS.values() if each.invariants]
TESTED = [each for each in MUTANTS.values() if each.tests]
NAMED = sorted({each for planted in TESTED for each in planted.tests})


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
