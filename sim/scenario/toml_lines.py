"""TOML text as plain data with the line of each key, which the standard library does not tell.

``agent_file`` reads with it. The library parses; what it accepted is then walked once more for positions, so the
walk may take well-formed text for granted. Left out: TOML's dates, which no file of ours has a use for.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import date, time
from typing import Any

from bargein.sim.scenario.places import Path, Place, ScenarioError, path_text

__all__ = ["parse_toml"]

_WHERE = re.compile(r"(?P<problem>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_KEY = re.compile(r"""(?P<bare>[A-Za-z0-9_-]+)|"(?P<basic>(?:[^"\\]|\\.)*)"|'(?P<literal>[^']*)'""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' r"|'''.*?'{3,5}(?!')" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'", re.DOTALL
)
_OTHER = re.compile(r"[^,\]}\n#]*")


def parse_toml(text: str, file: str = "") -> tuple[dict[str, Any], Place]:
    """Plain data of TOML text, and the line of each of its keys and list items.

    Raises:
        ScenarioError: it is no TOML, or holds a date or a time.
    """
    from tomllib import TOMLDecodeError, loads

    try:
        data = loads(text)
    except TOMLDecodeError as error:
        found = _WHERE.fullmatch(str(error))
        problem = found["problem"] if found else str(error)
        line = (found["line"] if found else None) or str(text.count("\n") + 1)
        raise ScenarioError(f"{file}:{line}: {problem[:1].lower()}{problem[1:]}; accepted is TOML") from None
    except RecursionError:
        raise ScenarioError(f"{file}: nested too deeply; accepted is an agent file") from None
    lines = _Walk(text.replace("\r\n", "\n")).lines
    place = Place(file, lines)
    _refuse_dates(data, (), place)
    return data, place


def _refuse_dates(value: Any, path: Path, place: Place) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            _refuse_dates(each, (*path, key), place)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            _refuse_dates(each, (*path, index), place)
    elif isinstance(value, date | time):
        raise ScenarioError(
            f"{place.file}:{place.line(path)}: {path_text(path)}: found a date or a time; accepted is a text in quotes"
        )


class _Walk:
    """One pass over well-formed TOML.

    Attributes:
        lines: the line of each key path and list item.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [at for at, sign in enumerate(text) if sign == "\n"]
        self._at = 0
        self._tables: dict[Path, int] = {}
        """How many tables each list of tables holds so far."""
        self.lines: dict[Path, int] = {(): 1}
        table: Path = ()
        self._skip(_SPACE)
        while self._at < len(text):
            if text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SPACE)

    def _skip(self, form: re.Pattern[str]) -> None:
        match = form.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _mark(self, path: Path) -> None:
        line = bisect_left(self._ends, self._at) + 1
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _keys(self) -> list[str]:
        """A dotted key; stands behind it and its blanks afterwards."""
        keys = []
        while True:
            self._skip(_BLANKS)
            match = _KEY.match(self._text, self._at)
            assert match is not None
            basic = match["basic"]
            keys.append(_plain(basic) if basic is not None else match["bare"] or match["literal"] or "")
            self._at = match.end()
            self._skip(_BLANKS)
            if self._text[self._at : self._at + 1] != ".":
                return keys
            self._at += 1

    def _header(self) -> Path:
        start = self._at
        listed = self._text.startswith("[[", start)
        self._at += 2 if listed else 1
        keys = self._keys()
        end = self._at + (2 if listed else 1)
        path: Path = ()
        for number, key in enumerate(keys):
            path = (*path, key)
            if listed and number == len(keys) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            if path in self._tables:
                path = (*path, self._tables[path])
        self._at = start
        self._mark(path)
        self._at = end
        return path

    def _pair(self, table: Path) -> None:
        start = self._at
        path = (*table, *self._keys())
        behind, self._at = self._at, start
        self._mark(path)
        self._at = behind + 1  # the equals sign
        self._skip(_BLANKS)
        self._value(path)

    def _value(self, path: Path) -> None:
        match self._text[self._at]:
            case "[":
                self._items(path)
            case "{":
                self._inline(path)
            case "'" | '"':
                self._skip(_STRING)
            case _:
                self._skip(_OTHER)

    def _items(self, path: Path) -> None:
        self._at += 1
        index = 0
        self._skip(_SPACE)
        while self._text[self._at] != "]":
            self._mark((*path, index))
            self._value((*path, index))
            index += 1
            self._comma()
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        self._skip(_SPACE)
        while self._text[self._at] != "}":
            self._pair(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        self._skip(_SPACE)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_SPACE)


def _plain(basic: str) -> str:
    """The text of a quoted key."""
    from tomllib import loads

    return str(loads(f'x = "{basic}"')["x"])
