"""Known kinds of fault, each planted by overriding one rule of one stage.

A mutant names the invariants that must catch it when the built-in scenarios are explored, or the tests that must
fail. ``test_mutants.py`` plants each in turn; nothing here is imported by the product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

__all__ = ["MUTANTS", "Mutant", "mutant"]

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A planted fault.

    Attributes:
        name: the fault, in words joined by underscores.
        about: what is wrong with it.
        plant: overrides the rule.
        invariants: at least one of these is violated somewhere when the built-ins are explored; or else
        tests: node ids of tests of which at least one fails.
    """

    name: str
    about: str
    plant: Plant
    invariants: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


MUTANTS: dict[str, Mutant] = {}


def mutant(*invariants: str, tests: tuple[str, ...] = ()) -> Callable[[Plant], Plant]:
    """Enter a planted fault under its function's name; its docstring says what is wrong."""

    def enter(plant: Plant) -> Plant:
        name = plant.__name__
        assert name not in MUTANTS, name
        assert plant.__doc__, name
        assert bool(invariants) != bool(tests), f"{name} is caught by exploring or by tests, and names one of the two"
        MUTANTS[name] = Mutant(name, plant.__doc__, plant, invariants, tests)
        return plant

    return enter
