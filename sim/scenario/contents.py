"""The files that a scenario names and reads, and what is in them: content identifies a program, and a name does not.

``Plan.recordings`` says it of a plan, and whoever compares programs (``sim.lab.programs``) leaves the names of these
files out, so that a file may be moved and may not be changed. An agent file is no part of it: what it says is put into
the scenario when that is loaded. Left out: a memory's file that the call is written to, which no two calls find alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from bargein.models.recordings import Recording
from bargein.models.vad_silero import DECISIONS_FILE, SileroDecisions
from bargein.sim.effects.identity import content_digest, stable_hash
from bargein.sim.scenario.folders import inside
from bargein.sim.scenario.places import Fault, Path

if TYPE_CHECKING:
    from bargein.models.cassettes import Cassette
    from bargein.sim.scenario.model import Scenario

__all__ = ["contents_of", "files_now", "names_files", "without_names"]

UNNAMED = "a file"
"""What stands in the place of a name whose content is not asked for."""


def contents_of(
    scenario: Scenario, cassette: Cassette | None, decisions: SileroDecisions | None, spoken: Sequence[Recording]
) -> dict[str, str]:
    """The content keys of what a call reads besides its audio, by place.

    Args:
        cassette: the scenario's, as it was read.
        decisions: of the neural detector, about the lines ``spoken``, where it is the one that decides.

    Raises:
        ScenarioError: a file cannot be read.
    """
    found = {}
    if cassette is not None:
        found["llm.cassette"] = cassette.content
    memory = scenario.memory
    if memory is not None and memory.path is not None and not memory.keep:
        try:
            found["memory.path"] = content_digest(((scenario.folder or FilePath()) / memory.path).read_bytes())
        except OSError as error:
            problem = f"{memory.path}: it cannot be read ({error.strerror}); accepted is a readable file"
            raise scenario.place.error([Fault(("memory", "path"), problem)]) from None
    if decisions is not None:
        found["vad.engine"] = stable_hash([decisions.levels(each).tolist() for each in spoken])
    return found


# -- in a scenario's data, which may be anybody's -------------------------------------------------------------


def without_names(data: Mapping[str, Any], contents: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A scenario's data with no name of a file whose content says more, and with its content key in its place.

    Args:
        contents: the content keys by place, as ``Plan.recordings`` has them; the same for all files unless given.
    """
    copied = dict(data)
    for place, key, _ in _names(data):
        content = UNNAMED if contents is None else contents.get(key, UNNAMED)
        _put(copied, place, content)
    return copied


def names_files(data: Mapping[str, Any]) -> bool:
    """Whether there are any."""
    return next(_names(data), None) is not None


def files_now(data: Mapping[str, Any], folder: FilePath | None) -> tuple[str | None, ...]:
    """What is in the files now, so that what was made of them before can be told from what they hold.

    Returns:
        The content key of each, ``None`` where it cannot be read; nothing for a scenario that reads none.
    """
    if folder is None:
        return ()
    names = [name for _, _, name in _names(data)]
    if _mapping(data, "vad").get("engine") == "silero":
        names.append(DECISIONS_FILE)
    return tuple([_content(folder, name) for name in names])


def _content(folder: FilePath, name: str) -> str | None:
    path = inside(folder, name)
    try:
        return None if path is None else content_digest(path.read_bytes())
    except OSError:
        return None


def _names(data: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """Each file: where its name stands, under which place its content is known, and the name."""
    lines = data.get("caller")
    for at, line in enumerate(lines if type(lines) is list else ()):
        if type(line) is dict and type(line.get("wav")) is str:
            yield ("caller", at, "wav"), f"caller[{at}]", line["wav"]
    cassette = _mapping(data, "llm").get("cassette")
    if type(cassette) is str:
        yield ("llm", "cassette"), "llm.cassette", cassette
    memory = _mapping(data, "memory")
    if type(memory.get("path")) is str and not memory.get("keep"):
        yield ("memory", "path"), "memory.path", memory["path"]


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _put(data: Any, place: Path, value: str) -> None:
    """Put a value into data of which ``data`` itself is a copy, copying what is on the way."""
    for step in place[:-1]:
        inner = data[step]
        data[step] = list(inner) if isinstance(inner, list) else dict(inner)
        data = data[step]
    data[place[-1]] = value
