"""The finished tasks of a sweep on disk, one line each, so that a stopped sweep goes on where it was.

The file lies beside the result as ``<result>.partial`` and begins with a line that says which sweep it belongs to.
A line that was cut off by a crash is dropped when the file is read again. Left out: the result's own format
(``table``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bargein.sim.lab.sweep.rows import Row
from bargein.sim.scenario.places import ScenarioError

__all__ = ["Journal"]


class Journal:
    """Rows of finished chunks, appended as they come and read back in order.

    Args:
        path: of the file; made if it is not there.
        fingerprint: of the sweep.

    Attributes:
        done: where each finished chunk's line begins, by its number.

    Invariant: the file ends with a whole line.

    Raises:
        ScenarioError: the file belongs to another sweep.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.done: dict[int, int] = {}
        self._header = json.dumps({"sweep": fingerprint}).encode() + b"\n"
        self._file: BinaryIO = path.open("a+b")
        try:
            self._end = self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> int:
        """Find the whole lines, cut off what follows them, and return where the file ends."""
        self._file.seek(0)
        header = self._file.readline()
        if not header.endswith(b"\n"):
            self._file.truncate(0)
            return self._append(self._header, 0)
        if header != self._header:
            raise ScenarioError(
                f"{self.path}: it holds a sweep of other sessions that was stopped; accepted is another place for "
                "the result, or that the file is removed"
            )
        end = len(header)
        for line in self._file:
            try:
                number = json.loads(line)[0] if line.endswith(b"\n") else None
            except ValueError:
                number = None
            if number is None:
                break
            self.done[number] = end
            end += len(line)
        self._file.truncate(end)
        return end

    def _append(self, line: bytes, at: int) -> int:
        try:
            self._file.seek(at)
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self._cut(at)
            raise
        return at + len(line)

    def _cut(self, at: int) -> None:
        """Leave nothing of a line that did not fit; if even that fails, the next reader drops it."""
        try:
            os.truncate(self.path, at)
        except OSError:
            return

    def keep(self, number: int, rows: list[Row]) -> None:
        """Append a finished chunk; it is on the disk once this returns."""
        line = json.dumps([number, rows], ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        begin = self._end
        self._end = self._append(line, begin)
        self.done[number] = begin

    def rows(self) -> Iterator[Row]:
        """All rows, in the order of the sessions, one chunk in memory at a time."""
        for number in sorted(self.done):
            self._file.seek(self.done[number])
            found: list[Any] = json.loads(self._file.readline())
            yield from found[1]

    def close(self) -> None:
        """Close the file and leave it."""
        try:
            self._file.close()
        except OSError:
            return  # what could not be written was reported when it was

    def remove(self) -> None:
        """Close the file and delete it."""
        self.close()
        self.path.unlink(missing_ok=True)
