"""Where in which file a key stands, and the one sentence that an error about it is.

The loader makes a ``Place`` from the marks of the YAML parser; data given in Python has one without lines. The
checks raise or collect ``Fault``s, which know only key paths; ``ScenarioError`` is what a user sees.
Left out: how the sentence is shown; the command line does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Fault", "Path", "Place", "ScenarioError", "path_text"]

Path: TypeAlias = tuple[str | int, ...]


def path_text(path: Path) -> str:
    """A key path as people write it: ``caller[0].after.event``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class Fault(Exception):
    """Something wrong at a key path: what was found, and what is accepted."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(path, problem)

    @property
    def path(self) -> Path:
        """The keys and list positions that lead to it."""
        return self.args[0]  # type: ignore[no-any-return]

    @property
    def problem(self) -> str:
        """What was found, and what is accepted."""
        return self.args[1]  # type: ignore[no-any-return]


class ScenarioError(ValueError):
    """A scenario that cannot be used; the arguments are sentences, one for each thing wrong, in file order."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each thing wrong: place, what was found, what is accepted."""
        return tuple(str(each) for each in self.args)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Place:
    """A file and the lines of its key paths.

    Attributes:
        file: how the user called it; empty for data given in Python.
        lines: the line, from 1, of each key and list item.
        parts: places of what stands in files of its own, by key path; paths go on in them as they are.
    """

    file: str = ""
    lines: Mapping[Path, int] = field(default_factory=dict)
    parts: Mapping[Path, Place] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of ``path``, or of the nearest key around it that has one."""
        for length in range(len(path), -1, -1):
            found = self.lines.get(path[:length])
            if found is not None:
                return found
        return None

    def sentence(self, fault: Fault) -> str:
        """The fault with its place in front: ``FILE:LINE: key.path: problem``."""
        for path, part in self.parts.items():
            if fault.path[: len(path)] == path:
                return part.sentence(fault)
        line = self.line(fault.path)
        where = f"{self.file}:{line}" if self.file and line is not None else self.file
        return ": ".join(part for part in (where, path_text(fault.path), fault.problem) if part)

    def error(self, faults: Iterable[Fault]) -> ScenarioError:
        """All of them as one error, in the order of the file."""
        ordered = sorted(faults, key=lambda fault: self.line(fault.path) or 0)
        return ScenarioError(*dict.fromkeys(self.sentence(fault) for fault in ordered))
