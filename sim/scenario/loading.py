"""Scenario files: found by name or path, read within limits, and made into scenarios.

The command line, the pytest plugin and Python callers use ``load``. Left out: what the text is as data (``texts``)
and what the data means (``schema``, ``checks``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path as FilePath

from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.document_sorts import AGENT, SCENARIO, sort_of, sort_of_data
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown
from bargein.sim.scenario.texts import parse_json, parse_yaml

__all__ = ["MAX_BYTES", "builtin_names", "load", "load_text"]

MAX_BYTES = 1024 * 1024

_SUFFIX = ".scenario.yaml"


def load(name_or_path: str | FilePath, *, tools: Sequence[ToolSpec] = ()) -> Scenario:
    """A built-in scenario by its name, else the scenario in a file.

    Args:
        tools: declarations of tools that the program brings.

    Raises:
        ScenarioError: there is none, or it cannot be used; a sentence for each thing wrong.
    """
    name = str(name_or_path)
    path = FilePath(name_or_path)
    if name in builtin_names():
        text = files("bargein.sim.scenario.builtin").joinpath(name + _SUFFIX).read_text(encoding="utf-8")
        return load_text(text, name + _SUFFIX, tools=tools)
    if not path.exists():
        if path.suffix or len(path.parts) > 1:
            raise ScenarioError(f"{name}: there is no such file; accepted is a scenario file or a built-in scenario")
        raise ScenarioError(f"{name}: {unknown('scenario', name, builtin_names())}; a path to a file is accepted too")
    return load_text(_text(path, name), name, folder=path.resolve().parent, tools=tools)


def load_text(text: str, file: str = "", *, folder: FilePath | None = None, tools: Sequence[ToolSpec] = ()) -> Scenario:
    """A scenario from the text of a file.

    Args:
        text: YAML, or JSON where ``file`` ends in ``.json``.
        file: what errors call it.
        folder: where its recordings are; without one it can have none.
        tools: declarations of tools that the program brings.

    Raises:
        ScenarioError: a sentence for each thing wrong.
    """
    if file.endswith(".toml"):
        _refuse_other(AGENT, file)
    try:
        data, place = parse_json(text, file) if file.endswith(".json") else parse_yaml(text, file)
    except ScenarioError:
        _refuse_other(sort_of(text.encode("utf-8", "surrogatepass")), file)
        raise
    _refuse_other(sort_of_data(data), file)
    if data is None:
        raise ScenarioError(f"{file or 'scenario'}: it is empty; accepted is a mapping with scenario, caller and llm")
    return Scenario.from_dict(data, place, folder=folder, tools=tools)


def _refuse_other(sort: str | None, file: str) -> None:
    """Say what a file is, where it is another of our documents.

    Raises:
        ScenarioError: it is.
    """
    if sort is not None and sort != SCENARIO:
        accepted = ", which may name it as agent: {file: ...}" if sort == AGENT else ""
        raise ScenarioError(f"{file or 'scenario'}: it is {sort}; accepted is a scenario{accepted}")


@cache
def builtin_names() -> tuple[str, ...]:
    """The names of the scenarios that ship with the package, in name order."""
    found = (item.name for item in files("bargein.sim.scenario.builtin").iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def _text(path: FilePath, name: str) -> str:
    if not path.is_file():
        raise ScenarioError(f"{name}: it is not a file; accepted is a scenario file")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{name}: it cannot be read ({error.strerror}); accepted is a readable file") from None
    if len(raw) > MAX_BYTES:
        _refuse_other(sort_of(raw), name)
        size = path.stat().st_size
        raise ScenarioError(f"{name}: it has {size} bytes; accepted is a scenario of up to {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{name}:{line}: found bytes that are no UTF-8; accepted is text in UTF-8") from None
