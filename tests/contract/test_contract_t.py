"""Every item of the tool contract is shown by a test that exists, or is left out for a reason that is given.

The checklist is ``tool_contract.yaml``, the table beside it ``tool_contract_tests.yaml``; ``tool_contract_lists.yaml``
holds the two lists of what the contract's own tests cover. Tests are found by reading the files, so a renamed test
fails here. Left out: whether a test shows what it is named for; the planted faults (``tests/mutants``) see to that.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _read(name: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((HERE / name).read_text(encoding="utf-8"), loader)


def _area(item: str) -> str:
    return item.removeprefix("T-").rpartition("-")[0]


@cache
def _tests_in(path: str) -> frozenset[str]:
    """Names of the test functions of a file; none where there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    found = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def _unknown(ids: list[str]) -> list[str]:
    """Those that are not the id of a test; a parametrised one is written without its brackets."""
    return [each for each in ids if each.partition("::")[2] not in _tests_in(each.partition("::")[0])]


def _faults(items: list[str], table: dict[str, Any]) -> list[str]:
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
    faults += [f"{item}: there is no test {each}" for item, ids in covered.items() for each in _unknown(ids)]
    faults += [f"{item}: no reason" for item, reason in {**areas, **left_out, **partly}.items() if not reason]
    return faults


@pytest.fixture(scope="module")
def items() -> list[str]:
    return [item["id"] for item in _read("tool_contract.yaml")]


@pytest.fixture
def table() -> Any:
    return _read("tool_contract_tests.yaml")


def test_every_item_has_a_test_or_a_reason(items: list[str], table: dict[str, Any]) -> None:
    assert _faults(items, table) == []


def test_the_table_stands_in_the_order_of_the_contract(items: list[str], table: dict[str, Any]) -> None:
    assert list(table["covered"]) == [item for item in items if item in table["covered"]]


def test_what_is_wrong_with_a_table_is_told(items: list[str], table: dict[str, Any]) -> None:
    del table["covered"]["T-schema-01"]
    table["covered"]["T-schema-02"] = ["tests/pipelines/tools/test_spec.py::test_nothing"]
    table["covered"]["T-schema-03"] = ["tests/none.py::test_nothing"]
    table["covered"]["T-schema-99"] = []
    table["left_out"]["items"]["T-schema-04"] = ""
    assert _faults(items, table) == [
        "T-schema-04 is left out and covered",
        "T-schema-99 is no item of the contract",
        "T-schema-01 has no test",
        "T-schema-02: there is no test tests/pipelines/tools/test_spec.py::test_nothing",
        "T-schema-03: there is no test tests/none.py::test_nothing",
        "T-schema-04: no reason",
    ]


def test_each_behaviour_of_the_contracts_two_lists_has_a_test() -> None:
    lists = _read("tool_contract_lists.yaml")
    assert list(lists) == ["engine", "tool_ux"]
    assert [behaviour for behaviours in lists.values() for behaviour, ids in behaviours.items() if not ids] == []
    assert _unknown([each for behaviours in lists.values() for ids in behaviours.values() for each in ids]) == []
