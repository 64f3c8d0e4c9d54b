"""The notebooks run, assert their own numbers, and are committed with the outputs that a run gives."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.run_notebooks import execute, notebooks, tidy, write

NOTEBOOKS = {path.stem: path for path in notebooks()}
MACHINE = re.compile(r"/tmp/|/home/|/root/|/Users/|site-packages|\b20\d\d-\d\d-\d\d\b|0x[0-9a-f]{6,}")
"""What only one machine would print: its paths, the date, an address in memory."""


def read(name: str) -> Any:
    return nbformat.read(NOTEBOOKS[name], as_version=4)


def texts(notebook: Any) -> list[str]:
    """All that the cells print or show as text."""
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown.append(output.text if output.output_type == "stream" else output.data.get("text/plain", ""))
    return shown


def streams(notebook: Any) -> set[str]:
    return {output.name for cell in notebook.cells for output in cell.get("outputs", []) if "name" in output}


def is_quick(notebook: Any) -> bool:
    return all("parameters" not in cell.metadata.get("tags", []) for cell in notebook.cells)


def test_the_notebooks_are_these() -> None:
    assert list(NOTEBOOKS) == [
        "01_first_session",
        "02_tune_filler_delay",
        "03_reproduce_an_interruption_bug",
        "04_latency_budget",
        "05_replay_and_what_if",
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_what_it_asserts_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that needs no fewer callers to be quick also prints what is committed."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    committed = read(name)
    ran = execute(NOTEBOOKS[name], work, fast=True)
    assert streams(ran) <= {"stdout"}
    assert any("assert " in cell.source for cell in ran.cells if cell.cell_type == "code")
    assert list(work.iterdir()) == []  # it leaves nothing beside itself
    if is_quick(committed):
        assert texts(ran) == texts(committed)
    else:
        switches = [cell.source for cell in ran.cells if "parameters" in cell.metadata.get("tags", [])]
        assert ["FAST = True" in switch for switch in switches] == [True]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_committed_whole_and_without_traces_of_a_machine(name: str, tmp_path: Path) -> None:
    notebook = read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    images = [output for cell in code for output in cell.outputs if "image/png" in output.get("data", {})]
    assert images
    assert streams(notebook) <= {"stdout"}
    assert [text for text in texts(notebook) if MACHINE.search(text)] == []
    assert os.path.getsize(NOTEBOOKS[name]) < 600_000
    write(tidy(notebook), tmp_path / "again.ipynb")
    assert (tmp_path / "again.ipynb").read_bytes() == NOTEBOOKS[name].read_bytes()
