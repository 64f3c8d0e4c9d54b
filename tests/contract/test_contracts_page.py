"""The page about the contracts speaks of every area, and of files that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "pipelines/CONTRACTS.md").read_text(encoding="utf-8")


def _areas(name: str) -> list[str]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    items = yaml.load((HERE / name).read_text(encoding="utf-8"), loader)
    return list(dict.fromkeys(item["id"].split("-")[1] for item in items))


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`([a-z_]+/[\w/.]+)`", PAGE)
    assert len(named) > 50
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_area_of_both_contracts_is_spoken_of() -> None:
    tool, run = PAGE.split("## The run contract")
    rows = {word for cell in re.findall(r"^\| ([a-z, ]+) \|", run, re.M) for word in cell.split(", ")}
    assert [area for area in _areas("run_contract.yaml") if area not in rows] == []
    rows = set(re.findall(r"^\| ([a-z]+) \|", tool, re.M)) | set(re.findall(r"\(([a-z0-9]+)\)", tool))
    assert [area for area in _areas("tool_contract.yaml") if area not in rows] == []
