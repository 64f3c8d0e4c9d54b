"""The options of ``bargein run`` that write further files."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bargein.sim.cli import main
from bargein.sim.report.exports import EXPORTS

SCENARIO = "slow_tool_filler"


@pytest.mark.parametrize("name", EXPORTS)
def test_each_option_writes_its_files_and_no_others(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["run", SCENARIO, f"--{name}"])
    assert (ran.exit_code, ran.stderr) == (0, "".join(f"wrote {file}\n" for file in EXPORTS[name].files))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(EXPORTS[name].files)


def test_together_they_go_where_out_says_and_are_the_same_each_time(tmp_path):
    kept = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        options = [f"--{name}" for name in EXPORTS]
        ran = CliRunner().invoke(main, ["run", SCENARIO, "--json", "--out", str(folder), *options])
        assert (ran.exit_code, ran.stderr) == (0, "")
        kept.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert kept[0] == kept[1]
    files = [file for export in EXPORTS.values() for file in export.files]
    assert sorted(kept[0]) == sorted([*files, "timeline.jsonl"])
