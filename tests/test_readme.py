"""The README shows only what runs: its files, its commands, its outputs and its Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[tuple[str, str]]:
    """Each fenced block of a language, with the comment line above it if there is one."""
    pattern = re.compile(rf"(?:<!-- ([^\n]+) -->\n)?```{language}\n(.*?)```", re.DOTALL)
    return [(note or "", text) for note, text in pattern.findall(README)]


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the files that the README shows."""
    for note, text in blocks("yaml"):
        if note.startswith("file: "):
            path = tmp_path / note.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return tmp_path


def test_the_commands_run_and_print_what_is_shown(folder: Path) -> None:
    ran = 0
    for _, text in blocks("console"):
        steps = re.split(r"^\$ ", text, flags=re.MULTILINE)
        for step in steps[1:]:
            command, _, shown = step.partition("\n")
            done = shell(command, folder)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            for line in shown.splitlines():
                assert line in done.stdout.splitlines(), (command, line)
            ran += 1
    assert ran >= 2


def test_the_excerpts_are_real_output(folder: Path) -> None:
    excerpts = [
        (note.removeprefix("output of: "), text) for note, text in blocks("text") if note.startswith("output of: ")
    ]
    assert excerpts
    for command, text in excerpts:
        assert text in shell(command, folder).stdout, command


def test_what_is_shown_of_a_notebook_is_in_its_outputs() -> None:
    shown = [(note.removeprefix("from: "), text) for note, text in blocks("text") if note.startswith("from: ")]
    assert shown
    for path, text in shown:
        cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
        printed = ["".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", [])]
        assert any(text in each for each in printed), path


def test_the_make_targets_exist() -> None:
    targets = re.findall(r"^make (\w+)", "".join(text for _, text in blocks("console")), flags=re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets[:2] == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_python_runs(folder: Path) -> None:
    code = "\n".join(text for _, text in blocks("python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "200000"


def test_the_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
