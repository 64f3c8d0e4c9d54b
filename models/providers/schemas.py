"""JSON Schema as providers take it: passed on, translated, or refused with the keyword that is in the way.

Tools declare draft 2020-12. Anthropic and OpenAI take most of it below an object at the top; Gemini's older field
takes a subset of OpenAPI and its newer one takes JSON Schema, so a schema is translated where that says the same.
Left out: checking arguments against it; the tool engine does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["openapi_subset", "top_level_fault"]

_COMBINATORS = ("oneOf", "anyOf", "allOf", "enum", "not")

_OPENAPI_KEYS = frozenset({
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties",
    "required", "propertyOrdering", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example",
    "anyOf", "default", "minimum", "maximum",
})  # fmt: skip
_FORMATS = {
    "string": ("enum", "date-time"),
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}
_ANNOTATIONS = frozenset({"$schema", "$id", "$comment"})


def top_level_fault(schema: Mapping[str, Any]) -> str | None:
    """Why Anthropic and OpenAI would refuse a tool's schema, or ``None``."""
    if schema.get("type", "object") != "object":
        return f"its schema has the type {schema['type']!r} at the top, where an object is accepted"
    for keyword in _COMBINATORS:
        if keyword in schema:
            return f"its schema has {keyword} at the top, which is accepted inside properties only"
    return None


def openapi_subset(schema: Any) -> dict[str, Any] | None:
    """The schema in Gemini's OpenAPI subset, or ``None`` where the subset cannot say it."""
    if not isinstance(schema, Mapping):
        return None
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _ANNOTATIONS:
            continue
        if key == "const":
            out["enum"] = [value]
        elif key not in _OPENAPI_KEYS:
            return None
        else:
            out[key] = value
    return out if _narrow(out) else None


def _narrow(out: dict[str, Any]) -> bool:
    """Translate the members of one schema in place; ``False`` where one cannot be said."""
    kind = out.get("type")
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        if len(kinds) != 1:
            return False
        out["type"] = kind = kinds[0]
        out["nullable"] = True
    enum = out.get("enum")
    if enum is not None and not all(type(each) is str for each in enum):
        return False
    if "format" in out and out["format"] not in _FORMATS.get(str(kind), ()):
        return False
    if "properties" in out:
        inner = {name: openapi_subset(each) for name, each in out["properties"].items()}
        if any(each is None for each in inner.values()):
            return False
        out["properties"] = inner
    if "items" in out:
        out["items"] = openapi_subset(out["items"])
        if out["items"] is None:
            return False
    if "anyOf" in out:
        out["anyOf"] = [openapi_subset(each) for each in out["anyOf"]]
        if any(each is None for each in out["anyOf"]):
            return False
    return True
