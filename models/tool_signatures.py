"""From the signature of a Python function to the JSON Schema of a tool's arguments.

`Tools` calls it for each function that is declared without a schema of its own. What the annotations say is all
there is: no docstring is parsed, and no value is converted when the tool is called. Left out: default values, which
only make an argument optional; the function fills them in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from bargein.pipelines.tools.spec import SpecError

__all__ = ["CONTEXT", "parameters_of", "takes_context"]

CONTEXT = "ctx"
"""The parameter that a function asks for its call's context with."""

_PLAIN = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    NoneType: "null",
}
_ACCEPTED = "str, int, float, bool, list, dict, Literal, Optional or a union of these; or give parameters="


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter ``ctx``."""
    return CONTEXT in inspect.signature(function).parameters


def parameters_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The JSON Schema of the function's arguments; nothing beside them is allowed.

    A parameter with a default is not required. In ``Annotated[str, "the day"]`` a text describes the argument and a
    mapping adds keywords (``Annotated[int, {"minimum": 1}]``).

    Args:
        name: of the tool, for errors.

    Raises:
        SpecError: a parameter has no annotation, one without a JSON form, or cannot be passed by its name.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters = {key: each for key, each in inspect.signature(function).parameters.items() if key != CONTEXT}
    hints = _hints(function, parameters, name)
    for key, parameter in parameters.items():
        where = f"tool {name}: parameter {key}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise SpecError(f"{where} is {parameter.kind.description}; accepted is one that is passed by its name")
        if key not in hints:
            raise SpecError(f"{where} has no annotation; accepted is {_ACCEPTED}")
        properties[key] = _schema(hints[key], where)
        if parameter.default is parameter.empty:
            required.append(key)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _hints(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], name: str) -> dict[str, Any]:
    """The annotations as types; that of the context, which may name what is only imported for checkers, is left."""
    given = {
        key: parameter.annotation
        for key, parameter in parameters.items()
        if parameter.annotation is not parameter.empty
    }
    plain = inspect.unwrap(function)
    names = getattr(getattr(plain, "__func__", plain), "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__=given), globalns=names, include_extras=True)
    except (NameError, TypeError, SyntaxError) as problem:
        raise SpecError(f"tool {name}: an annotation cannot be read ({problem}); accepted is {_ACCEPTED}") from None


def _schema(hint: Any, where: str) -> dict[str, Any]:
    if hint is Any:
        return {}
    if isinstance(hint, type) and hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(_schema(inner[0], where), inner[1:])
    if origin is Literal and all(each is None or type(each) in (str, int, bool) for each in inner):
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return _either([_schema(each, where) for each in inner])
    if origin is list:
        return {"type": "array", "items": _schema(inner[0], where)}
    if origin is dict and inner[0] is str:
        return {"type": "object", "additionalProperties": _schema(inner[1], where)}
    raise SpecError(f"{where}: {getattr(hint, '__name__', hint)} has no JSON form; accepted is {_ACCEPTED}")


def _annotated(schema: dict[str, Any], extras: tuple[Any, ...]) -> dict[str, Any]:
    for extra in extras:
        if isinstance(extra, str):
            schema = {**schema, "description": extra}
        elif isinstance(extra, Mapping):
            schema = {**schema, **extra}
    return schema


def _either(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """A union; one of plain types is written as a list of them, which models read best."""
    if all(list(schema) == ["type"] for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}
