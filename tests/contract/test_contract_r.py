"""Every item of the run contract is shown by a test that exists, or is left out for a reason that is given.

The checklist is ``run_contract.yaml``, the table beside it ``run_contract_tests.yaml``. Tests are found by reading
the files, so a renamed test fails here. Left out: what ``checking`` leaves out.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.checking import faults_of, read


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read("run_contract.yaml")
    return found


@pytest.fixture
def table() -> Any:
    return read("run_contract_tests.yaml")


def test_every_item_has_a_test_or_a_reason(items: list[dict[str, Any]], table: dict[str, Any]) -> None:
    assert faults_of([item["id"] for item in items], table) == []


def test_the_table_stands_in_the_order_of_the_contract(items: list[dict[str, Any]], table: dict[str, Any]) -> None:
    assert list(table["covered"]) == [item["id"] for item in items if item["id"] in table["covered"]]


def test_what_the_contract_drops_here_is_left_out(items: list[dict[str, Any]], table: dict[str, Any]) -> None:
    areas, left_out = table["left_out"]["areas"], table["left_out"]["items"]
    dropped = [item["id"] for item in items if "drop" in item]
    assert len(dropped) == 2
    assert [each for each in dropped if each.split("-")[1] not in areas and each not in left_out] == []


def test_what_is_wrong_with_a_table_is_told(items: list[dict[str, Any]], table: dict[str, Any]) -> None:
    del table["covered"]["R-request-03"]
    table["covered"]["R-request-04"] = ["tests/none.py::test_nothing"]
    assert faults_of([item["id"] for item in items], table) == [
        "R-request-03 has no test",
        "R-request-04: there is no test tests/none.py::test_nothing",
    ]
