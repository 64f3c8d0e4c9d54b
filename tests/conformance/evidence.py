"""What recorded answers held, member by member, read from their raw lines without any decoder.

An exception in the comparison (a member that we kept, an answer that the program edited) counts only where the
answers themselves say so. Left out: what a member means.
"""

from __future__ import annotations

from json import dumps, loads
from typing import Any

__all__ = ["Evidence"]


class Evidence:
    """Members of all answers so far."""

    def __init__(self) -> None:
        self._values: dict[str, set[str]] = {}
        self._joined: dict[str, str] = {}

    def add(self, answer: bytes) -> None:
        """Take another answer."""
        for line in answer.decode("utf-8", "replace").splitlines():
            if line.startswith("data:"):
                try:
                    self._walk(loads(line.removeprefix("data:")))
                except ValueError:
                    continue

    def _walk(self, value: Any) -> None:
        if type(value) is list:
            for each in value:
                self._walk(each)
        elif type(value) is dict:
            for key, each in value.items():
                self._values.setdefault(key, set()).add(_spelled(each))
                if type(each) is str:
                    self._joined[key] = self._joined.get(key, "") + each
                self._walk(each)

    def holds(self, key: str, value: Any) -> bool:
        """Whether a member ``key`` had this value, in one piece or as text in several."""
        if type(value) is list and value and all(type(each) is dict for each in value):
            return all(self.holds(name, inner) for each in value for name, inner in each.items())
        in_pieces = type(value) is str and bool(value) and value in self._joined.get(key, "")
        return in_pieces or _spelled(value) in self._values.get(key, ())

    def called(self, name: str, arguments: dict[str, Any]) -> bool:
        """Whether a call of this name was asked, with these arguments; none prove nothing."""
        texts = (self._joined.get(key, "") for key in ("arguments", "partial_json"))
        spellings = (_spelled(arguments), dumps(arguments, ensure_ascii=False))
        given = self.holds("args", arguments) or any(each in text for text in texts for each in spellings)
        return self.holds("name", name) and bool(arguments) and given


def _spelled(value: Any) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
