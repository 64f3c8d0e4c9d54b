"""The structure of a scenario, by the JSON Schema that ships with the package, as sentences about key paths.

``Scenario.from_dict`` asks it first, and ``agent_file`` about the schema of its own. The schema's own keyword
``accepted`` holds what an error says is accepted; unions are written with ``if`` so that an error names the leaf that
is wrong, not that no branch fits. Left out: what a structure cannot say (which tools exist, what overlaps); ``checks``
does that.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from bargein.sim.kernel.durations import DurationError, parse_duration
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.suggest import either, unknown

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["AGENT", "SCENARIO", "scenario_schema", "show", "structure_faults"]

SCENARIO = "schema.json"
AGENT = "agent.schema.json"

_SHOWN_CHARS = 60
_TYPES = {"object": "a mapping", "array": "a list", "string": "a text", "boolean": "true or false"}
_UNITS = 'a number with a unit: us, ms, s, min or h (such as "400ms" or "1.2s")'


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, draft 2020-12."""
    return _schema(SCENARIO)


@cache
def _schema(name: str) -> dict[str, Any]:
    text = files("bargein.sim.scenario").joinpath(name).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def structure_faults(data: Any, schema: str = SCENARIO) -> list[Fault]:
    """Everything about the data that a schema of this package refuses; empty where it fits."""
    return [fault for error in _validator(schema).iter_errors(data) for fault in _faults(error)]


def show(value: Any) -> str:
    """A value as an error shows it, at a bounded length."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 4]}..."


@cache
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_schema(schema))


def _faults(error: ValidationError) -> list[Fault]:
    path: Path = tuple(error.absolute_path)
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    found: Any = error.instance
    if error.validator == "additionalProperties":
        known = schema.get("properties", {})
        return [Fault((*path, key), unknown("key", str(key), known)) for key in found if key not in known]
    if error.validator == "required":
        missing = [key for key in schema["required"] if key not in found]
        # jsonschema reports each missing key apart; the message says which one this is about.
        about = next((key for key in missing if error.message.startswith(repr(key))), missing[0])
        return [Fault(path, f'the key "{about}" is missing; accepted is {_accepted(schema)}')]
    if error.validator == "not":
        return [Fault(path, str(schema["not"]["accepted"]))]
    if schema.get("title") == "duration":
        return [Fault(path, _duration_problem(found))]
    if error.validator == "enum" and isinstance(found, str) and "accepted" not in schema:
        values = [each for each in schema["enum"] if isinstance(each, str)]
        return [Fault(path, unknown("value", found, values))]
    return [Fault(path, f"found {show(found)}; accepted is {_accepted(schema)}")]


def _accepted(schema: dict[str, Any]) -> str:
    if "accepted" in schema:
        return str(schema["accepted"])
    if "enum" in schema:
        return either(str(each) for each in schema["enum"])
    return _TYPES.get(schema.get("type", ""), "another value")


def _duration_problem(value: Any) -> str:
    if isinstance(value, str):
        try:
            parse_duration(value)
        except DurationError as error:
            return str(error)
    if type(value) in (int, float):
        if value < 0:
            return f"{value} is negative; accepted is zero or more, with a unit"
        return f"{value} has no unit; accepted is {_UNITS}"
    return f"found {show(value)}; accepted is {_UNITS}"
