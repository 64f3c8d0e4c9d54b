"""YAML and JSON text as plain data with the line of each key, within limits; and plain data as YAML text.

``loading`` reads files with it, ``setting`` the values of ``--set``, and ``dump`` writes with it. YAML is data only:
no tags, no dates, no ``1:30`` in sixties; ``on``, ``off``, ``yes`` and ``no`` are texts. Depth and the number of
values are bounded, aliases counted as what they stand for, so that a small file cannot fill the memory.
Left out: merge keys (``<<``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bargein.sim.scenario.places import Path, Place, ScenarioError, path_text

__all__ = ["MAX_DEPTH", "MAX_VALUES", "parse_json", "parse_yaml", "to_yaml"]

MAX_DEPTH = 40
MAX_VALUES = 20_000

_PLAIN: dict[str, re.Pattern[str]] = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"),
    "float": re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"),
}
"""What an unquoted scalar is, where it is not a text: much as in JSON, for reading and for writing."""
_MAX_DIGITS = 18
_TAG = "tag:yaml.org,2002:"
_TOO_DEEP = f"nested more than {MAX_DEPTH} deep; accepted is up to {MAX_DEPTH}"


def parse_yaml(text: str, file: str = "") -> tuple[Any, Place]:
    """Plain data of YAML text, and the line of each of its keys.

    Raises:
        ScenarioError: it is no YAML, or not within the limits, or not plain data.
    """
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f":{mark.line + 1}"
        raise ScenarioError(f"{file or 'YAML'}{line}: {error.problem or 'it'}; accepted is YAML") from None
    except yaml.YAMLError as error:
        raise ScenarioError(f"{file or 'YAML'}: {_one_line(error)}; accepted is YAML") from None
    except _Refused as refused:
        problem, at = refused.args
        raise ScenarioError(f"{file or 'YAML'}:{at}: {problem}") from None
    if node is None:
        return None, Place(file, {(): 1})
    reader = _Reader(file)
    return reader.value(node, ()), Place(file, reader.lines)


def parse_json(text: str, file: str = "") -> tuple[Any, Place]:
    """Plain data of JSON text, and the line of each of its keys.

    Raises:
        ScenarioError: it is no JSON, or not within the limits.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{file}:{error.lineno}: {error.msg}; accepted is JSON") from None
    except ValueError as error:
        raise ScenarioError(f"{file}: {error}; accepted is JSON") from None
    except RecursionError:
        raise ScenarioError(f"{file}: {_TOO_DEEP}") from None
    # JSON is YAML but for its tabs, which only stand between tokens; read as such it gives limits and lines.
    _again, place = parse_yaml(text.replace("\t", " "), file)
    return data, place


def to_yaml(data: Any) -> str:
    """Plain data as YAML that ``parse_yaml`` reads back to equal data; the same text for equal data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


class _Refused(Exception):
    """What is wrong, and the line."""


class _Loader(yaml.SafeLoader):
    """The parser up to nodes: bounds depth and number, refuses tags. Plain scalars stay texts; the reader decides."""

    _depth = 0
    _nodes = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = tag.replace(_TAG, "!!")
            raise _Refused(f"found the tag {shown}; accepted is plain data without tags", event.start_mark.line + 1)
        self._nodes += index is not None  # keys come without an index
        if self._nodes > MAX_VALUES:
            raise _Refused(_too_many(), event.start_mark.line + 1)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Refused(_TOO_DEEP, event.start_mark.line + 1)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {}


class _Reader:
    """Nodes to data: counts values, alias by alias, and keeps the line of each key."""

    def __init__(self, file: str) -> None:
        self.lines: dict[Path, int] = {}
        self._file = file
        self._count = 0

    def value(self, node: Node, path: Path) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise ScenarioError(f"{self._file or 'YAML'}:{node.start_mark.line + 1}: {_too_many()}")
        if len(path) > MAX_DEPTH:
            raise ScenarioError(f"{self._file or 'YAML'}:{node.start_mark.line + 1}: {_TOO_DEEP}")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        assert isinstance(node, MappingNode)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key in data:
                first = self.lines[(*path, key)]
                raise self._error(key_node, (*path, key), f"the key is in line {first} already; accepted is once")
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            data[key] = self.value(value_node, (*path, key))
        return data

    def _key(self, node: Node, path: Path) -> str:
        if isinstance(node, ScalarNode):
            key = self._scalar(node, path)
            if isinstance(key, str):
                return key
            raise self._error(node, path, f"found the key {node.value or 'null'}; accepted is a text, in quotes")
        raise self._error(node, path, "found a key that is a mapping or a list; accepted is a text")

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text: str = node.value
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            # JSON writes a character beyond 16 bits as two escapes, which PyYAML leaves apart.
            try:
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                problem = "found half of a surrogate pair; accepted is text that is Unicode"
                raise self._error(node, path, problem) from None
        kind = "text"
        if node.style is None:
            kind = next((name for name, form in _PLAIN.items() if form.match(text)), kind)
        if kind == "int" and len(text) > _MAX_DIGITS:
            raise self._error(node, path, f"found a number of {len(text)} digits; accepted is up to {_MAX_DIGITS}")
        return _READ[kind](text)

    def _error(self, node: Node, path: Path, problem: str) -> ScenarioError:
        where = f"{self._file}:{node.start_mark.line + 1}" if self._file else ""
        return ScenarioError(": ".join(part for part in (where, path_text(path), problem) if part))


_READ: dict[str, Callable[[str], Any]] = {
    "text": str,
    "null": lambda text: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
}


class _Dumper(yaml.SafeDumper):
    """Writes what the reader above reads: quotes the texts, and only those, that it would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.yaml_implicit_resolvers = {}
for _name, _form in _PLAIN.items():
    _Dumper.add_implicit_resolver(_TAG + _name, _form, None)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"found {name}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _too_many() -> str:
    return f"more than {MAX_VALUES} values, aliases counted as what they stand for; accepted is up to {MAX_VALUES}"
