"""Arguments against a tool's schema: compiled once, checked fast, reported within bounds.

The registry compiles a validator when a tool is registered and every session shares it; the planner asks it
(tool contract, item 4 and "Validation"). A schema is read as draft 2020-12 and nothing is ever fetched. Valid
arguments build no error values. Left out: the size cap on arguments, which the planner checks before any of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from bargein.pipelines.tools.bounded import canonical_json, cut

__all__ = ["MAX_ISSUES", "ROOT", "ArgumentValidator", "Issue", "Report", "SchemaProblem"]

MAX_ISSUES = 5
MAX_PATH_BYTES = 128
MAX_REASON_BYTES = 200
MAX_REASON_SOURCE = 16 * 1024
"""Characters of a reason that are looked at before it is cut: it may quote the whole of the arguments."""
ROOT = "(root)"
_ENDLESS = "checking this refers back to itself without end"


MAX_REMEMBERED = 256
"""How many valid arguments a tool remembers, and of which length at most."""
MAX_REMEMBERED_BYTES = 512


class SchemaProblem(ValueError):
    """The schema cannot be compiled offline."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong: where (a JSON pointer, or ``(root)``) and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The first problems found, and whether there were more."""

    issues: tuple[Issue, ...]
    truncated: bool


class ArgumentValidator:
    """The compiled schema of one tool.

    Args:
        schema: JSON Schema whose top level says ``"type": "object"``.

    Raises:
        SchemaProblem: it is no such schema, or refers to something that is not inside it.
    """

    __slots__ = ("_known", "_validator")

    def __init__(self, schema: Any) -> None:
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise SchemaProblem('the top level has to say "type": "object"')
        self._validator = _compile(schema)
        self._known: dict[str, None] = {}

    def is_valid(self, arguments: dict[str, Any]) -> bool:
        """Whether the arguments match, without saying why not.

        Arguments that matched are remembered by their text: calls of one tool, and sessions of one scenario, ask for
        the same again and again, and the library's walk costs a hundred times the look-up.
        """
        text = canonical_json(arguments)
        if text in self._known:
            return True
        try:
            valid = bool(self._validator.is_valid(arguments))
        except RecursionError:
            return False
        if valid and len(text) <= MAX_REMEMBERED_BYTES:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            self._known[text] = None
        return valid

    def report(self, arguments: dict[str, Any]) -> Report:
        """What is wrong with arguments that do not match, in the order of the schema's keywords."""
        try:
            errors = list(islice(self._validator.iter_errors(arguments), MAX_ISSUES + 1))
        except RecursionError:
            return Report((Issue(ROOT, _ENDLESS),), False)
        issues = [Issue(_pointer(error.absolute_path), _reason(error.message)) for error in errors[:MAX_ISSUES]]
        return Report(tuple(issues), len(errors) > MAX_ISSUES)


def _pointer(path: Any) -> str:
    if not path:
        return ROOT
    steps = [str(step).replace("~", "~0").replace("/", "~1") for step in path]
    return cut("/" + "/".join(steps), MAX_PATH_BYTES)


def _reason(message: str) -> str:
    return cut(message[:MAX_REASON_SOURCE], MAX_REASON_BYTES)


# -- compiling --------------------------------------------------------------------------------------------------


def _compile(schema: dict[str, Any]) -> Any:
    from jsonschema.exceptions import SchemaError
    from referencing.jsonschema import EMPTY_REGISTRY

    # A "$schema" would make the library pick another dialect, and another class, when it comes back to the root.
    schema = {key: value for key, value in schema.items() if key != "$schema"}
    dialect = _dialect()
    try:
        dialect.check_schema(schema)
        _check_references(schema)
        validator = dialect(schema, registry=EMPTY_REGISTRY)
        validator.is_valid({})
    except SchemaError as error:
        raise SchemaProblem(f"{_pointer(error.absolute_path)}: {_reason(error.message)}") from None
    except RecursionError:
        raise SchemaProblem(_ENDLESS) from None
    return validator


@cache
def _dialect() -> Any:
    """Draft 2020-12 with a ``uniqueItems`` that takes linear time; the library's own compares every pair."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    make: Any = extend
    return make(Draft202012Validator, {"uniqueItems": _unique_items})


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[Any]:
    if not wanted or not validator.is_type(instance, "array"):
        return
    seen = set()
    for item in instance:
        key = _identity(item)
        if key in seen:
            from jsonschema.exceptions import ValidationError

            yield ValidationError(f"{instance!r} has non-unique elements")
            return
        seen.add(key)


def _identity(value: Any) -> Any:
    """A hashable that is equal for equal JSON values: ``1`` is ``1.0``, but neither is ``true``."""
    kind = type(value)
    if kind is bool:
        return ("bool", value)
    if kind is list:
        return ("array", *[_identity(item) for item in value])
    if kind is dict:
        return ("object", frozenset([(key, _identity(item)) for key, item in value.items()]))
    return value


def _check_references(schema: dict[str, Any]) -> None:
    """Resolve every reference now: the library would do it, or fail to, in the middle of a call."""
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    root = DRAFT202012.create_resource(schema)
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[Any, Any]] = [(root, EMPTY_REGISTRY.resolver_with_root(root))]
    while waiting:
        resource, resolver = waiting.pop()
        for keyword in ("$ref", "$dynamicRef"):
            reference = resource.contents.get(keyword) if isinstance(resource.contents, dict) else None
            if isinstance(reference, str) and (resolver._base_uri, reference) not in seen:
                seen.add((resolver._base_uri, reference))
                try:
                    found = resolver.lookup(reference)
                except Unresolvable:
                    raise SchemaProblem(f"{keyword} {cut(reference, 200)} is not inside the schema") from None
                waiting.append((DRAFT202012.create_resource(found.contents), found.resolver))
        for child in resource.subresources():
            waiting.append((child, resolver.in_subresource(child)))
