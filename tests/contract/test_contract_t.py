"""Every item of the tool contract is shown by a test that exists, or is left out for a reason that is given.

The checklist is ``tool_contract.yaml``, the table beside it ``tool_contract_tests.yaml``; ``tool_contract_lists.yaml``
holds the two lists of what the contract's own tests cover. Tests are found by reading the files, so a renamed test
fails here. Left out: whether a test shows what it is named for; the planted faults (``tests/mutants``) see to that.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.checking import faults_of, read, unknown


@pytest.fixture(scope="module")
def items() -> list[str]:
    return [item["id"] for item in read("tool_contract.yaml")]


@pytest.fixture
def table() -> Any:
    return read("tool_contract_tests.yaml")


def test_every_item_has_a_test_or_a_reason(items: list[str], table: dict[str, Any]) -> None:
    assert faults_of(items, table) == []


def test_the_table_stands_in_the_order_of_the_contract(items: list[str], table: dict[str, Any]) -> None:
    assert list(table["covered"]) == [item for item in items if item in table["covered"]]


def test_what_is_wrong_with_a_table_is_told(items: list[str], table: dict[str, Any]) -> None:
    del table["covered"]["T-schema-01"]
    table["covered"]["T-schema-02"] = ["tests/pipelines/tools/test_spec.py::test_nothing"]
    table["covered"]["T-schema-03"] = ["tests/none.py::test_nothing"]
    table["covered"]["T-schema-99"] = []
    table["left_out"]["items"]["T-schema-04"] = ""
    assert faults_of(items, table) == [
        "T-schema-04 is left out and covered",
        "T-schema-99 is no item of the contract",
        "T-schema-01 has no test",
        "T-schema-02: there is no test tests/pipelines/tools/test_spec.py::test_nothing",
        "T-schema-03: there is no test tests/none.py::test_nothing",
        "T-schema-04: no reason",
    ]


def test_each_behaviour_of_the_contracts_two_lists_has_a_test() -> None:
    lists = read("tool_contract_lists.yaml")
    assert list(lists) == ["engine", "tool_ux"]
    assert [behaviour for behaviours in lists.values() for behaviour, ids in behaviours.items() if not ids] == []
    assert unknown([each for behaviours in lists.values() for ids in behaviours.values() for each in ids]) == []
