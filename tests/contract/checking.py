"""Whether a table says of every item of a contract which tests show it, or why none does.

A contract's own test reads its two files and asks here. Left out: whether a test shows what it is named for; the
planted faults (``tests/mutants``) see to that.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["faults_of", "read", "unknown"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def read(name: str) -> Any:
    """A file beside this one."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((HERE / name).read_text(encoding="utf-8"), loader)


def unknown(ids: list[str]) -> list[str]:
    """Those that are not the id of a test; a parametrised one is written without its brackets."""
    return [each for each in ids if each.partition("::")[2] not in _tests_in(each.partition("::")[0])]


def faults_of(items: list[str], table: dict[str, Any]) -> list[str]:
    """What is wrong with the table, as sentences."""
    covered, partly = table["covered"], table["partly"]
    areas, left_out = table["left_out"]["areas"], table["left_out"]["items"]
    known = set(items)
    faults = [f"{item} is left out and covered" for item in [*left_out, *covered] if _area(item) in areas]
    faults += [f"{item} is left out and covered" for item in left_out if item in covered]
    faults += [f"{item} is said to be shown in part and has no test" for item in partly if item not in covered]
    faults += [f"{item} is no item of the contract" for item in [*covered, *partly, *left_out] if item not in known]
    faults += [f"{area} is no area of the contract" for area in areas if area not in map(_area, items)]
    for item in items:
        if _area(item) not in areas and item not in left_out and not covered.get(item):
            faults.append(f"{item} has no test")
    faults += [f"{item}: there is no test {each}" for item, ids in covered.items() for each in unknown(ids)]
    faults += [f"{item}: no reason" for item, reason in {**areas, **left_out, **partly}.items() if not reason]
    return faults


def _area(item: str) -> str:
    return item[2:].rpartition("-")[0]


@cache
def _tests_in(path: str) -> frozenset[str]:
    """Names of the test functions of a file; none where there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    found = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
