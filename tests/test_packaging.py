"""What a user installs: every folder, every data file, and the same run from anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from bargein import sim

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]
FOLDERS = ("sim", "pipelines", "models", "audio_fixtures")


def files(*patterns: str) -> Iterator[str]:
    for folder in FOLDERS:
        for pattern in patterns:
            for path in (ROOT / folder).rglob(pattern):
                yield path.relative_to(ROOT).as_posix()


def test_the_list_of_packages_is_the_list_of_folders() -> None:
    folders = {Path(file).parent for file in files("*.py")}
    assert sorted(SETUPTOOLS["packages"]) == sorted(f"bargein.{'.'.join(folder.parts)}" for folder in folders)
    assert SETUPTOOLS["package-dir"] == {f"bargein.{folder}": folder for folder in FOLDERS}


def test_every_folder_of_code_is_a_package() -> None:
    assert sorted({Path(file).parent for file in files("*.py")}) == sorted(
        Path(file).parent for file in files("__init__.py")
    )


def test_each_dependency_is_imported_somewhere() -> None:
    names = {"PyYAML": "yaml"}
    source = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in files("*.py"))
    for wanted in PROJECT["project"]["dependencies"]:
        name = wanted.split(">=")[0]
        assert f"import {names.get(name, name)}" in source or f"from {names.get(name, name)}" in source, name


def builds() -> bool:
    """Whether this environment has the build requirements; nothing is fetched for a test."""
    return int(version("setuptools").split(".")[0]) >= 77


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel unpacked by pip, as in a user's site-packages."""
    if not builds():
        pytest.skip("building a wheel takes setuptools>=77; `make test` installs it")
    built, target, copy = (tmp_path_factory.mktemp(name) for name in ("wheel", "site", "source"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    for file in files("*"):  # a copy, since setuptools builds inside the source
        source = ROOT / file
        if source.is_file() and "__pycache__" not in file:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).write_bytes(source.read_bytes())
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", built, copy], check=True)
    (wheel,) = built.glob("bargein-*-py3-none-any.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", target, wheel], check=True)
    wheel.rename(target / "the.whl")
    return target


def test_the_wheel_holds_every_module_and_every_data_file_and_nothing_else(installed: Path) -> None:
    with zipfile.ZipFile(installed / "the.whl") as wheel:
        inside = {name.removeprefix("bargein/") for name in wheel.namelist() if name.startswith("bargein/")}
        others = {name.split("/")[0] for name in wheel.namelist() if not name.startswith("bargein/")}
    shipped = {file for file in files("*") if (ROOT / file).is_file() and "__pycache__" not in file}
    assert inside == {file for file in shipped if not file.endswith(".md")}  # a folder's README is for its readers
    assert {"sim/scenario/schema.json", "audio_fixtures/manifest.json", "sim/py.typed"} <= inside
    assert len(others) == 1, "nothing generic lands in site-packages"
    assert others.pop().endswith(".dist-info")


def from_the_wheel(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that has the dependencies of this one, and bargein only from the wheel."""
    libraries = Path(pytest.__file__).parents[1]  # on the path as a plain folder: the editable install stays unseen
    code = (
        "import sys\n"
        f"sys.path[:0] = [{str(installed)!r}, {str(libraries)!r}]\n"
        "from bargein.sim import cli\n"
        f"assert cli.__file__.startswith({str(installed)!r}), cli.__file__\n"
        "cli.main()"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "11"}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_installed_package_runs_from_anywhere_with_the_digest_of_the_checkout(
    installed: Path, tmp_path: Path
) -> None:
    ran = from_the_wheel(installed, tmp_path, "run", "barge_in_during_booking", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["digest"] == sim.run("barge_in_during_booking").digest
    assert list(tmp_path.iterdir()) == []


def test_the_installed_package_decodes_its_fixtures(installed: Path, tmp_path: Path) -> None:
    ran = from_the_wheel(installed, tmp_path, "run", "barge_in_during_booking", "--wav")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "call.wav").stat().st_size > 100_000


def test_the_command_is_an_entry_point() -> None:
    assert PROJECT["project"]["scripts"] == {"bargein": "bargein.sim.cli:main"}
