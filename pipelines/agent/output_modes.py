"""How a run asks for a structured answer, and how it reads one.

Natively, through a tool that the model calls with its answer, or in words; which of them is settled by a pure
function of what was asked for and what the model can do (run contract, sections 2 and 3). Every sentence is pinned in
``wordings``. Left out: checking an answer against more of its schema than the fields it requires.
"""

from __future__ import annotations

from collections.abc import Collection
from json import dumps, loads
from typing import Any

from bargein.pipelines.agent.run_settings import OutputMode, OutputToolConfig
from bargein.pipelines.wordings import (
    MISSING_FIELD_REPROMPT,
    OUTPUT_TOOL,
    OUTPUT_TOOL_AUGMENTATION,
    PROMPTED_AUGMENTATION,
    TEXT_REPROMPT,
)

__all__ = [
    "augmentation",
    "compact",
    "free_name",
    "missing_field_reprompt",
    "missing_fields",
    "permits",
    "resolve_output",
    "satisfies",
    "text_reprompt",
]


def resolve_output(
    mode: OutputMode, has_schema: bool, granted_tools: bool, callable_: bool, provider_composes_native: bool
) -> OutputMode:
    """The mode of one round; never ``Auto``.

    Args:
        granted_tools: whether the agent has any tool.
        callable_: whether the tool choice lets the output tool be called.
        provider_composes_native: whether the model gives structured answers while it has tools.
    """
    if not has_schema or mode is OutputMode.NATIVE:
        return OutputMode.NATIVE
    if mode is OutputMode.PROMPTED:
        return OutputMode.PROMPTED
    if mode is OutputMode.TOOL:
        return OutputMode.TOOL if callable_ else OutputMode.NATIVE
    through_tool = granted_tools and callable_ and not provider_composes_native
    return OutputMode.TOOL if through_tool else OutputMode.NATIVE


def permits(tool_choice: Any, name: str) -> bool:
    """Whether a tool of this name may be called: not under ``none``, nor where others are named."""
    if isinstance(tool_choice, dict):
        return name in tool_choice.get("specific", {}).get("function_names", ())
    return bool(tool_choice != "none")


def free_name(taken: Collection[str]) -> str:
    """The first name of the output tool that nobody has."""
    name, number = OUTPUT_TOOL, 0
    while name in taken:
        number += 1
        name = f"{OUTPUT_TOOL}_{number}"
    return name


def augmentation(mode: OutputMode, schema: Any, tool: str, config: OutputToolConfig) -> str:
    """What the mode adds to the system message; nothing where it is empty."""
    if mode is OutputMode.TOOL and config.augment:
        return OUTPUT_TOOL_AUGMENTATION.replace("{name}", tool)
    if mode is OutputMode.PROMPTED:
        canonical = dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return f"{PROMPTED_AUGMENTATION}\n{canonical}"
    return ""


def missing_fields(schema: Any, arguments: Any) -> list[str]:
    """The fields that the schema requires and ``arguments`` lack, in the schema's order."""
    required = schema.get("required", ()) if isinstance(schema, dict) else ()
    given = arguments if isinstance(arguments, dict) else {}
    return [name for name in required if name not in given]


def satisfies(schema: Any, text: str) -> bool:
    """Whether ``text`` is a JSON object with every required field: the answer, through the wrong channel."""
    try:
        value = loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and not missing_fields(schema, value)


def text_reprompt(name: str) -> str:
    """What the model is told that answered in words."""
    return TEXT_REPROMPT.replace("{name}", name)


def missing_field_reprompt(name: str, missing: list[str]) -> str:
    """What the model is told whose answer lacks fields."""
    return MISSING_FIELD_REPROMPT.replace("{name}", name).replace("{fields}", ", ".join(missing))


def compact(value: Any) -> str:
    """JSON without spaces, keys as they stand."""
    return dumps(value, ensure_ascii=False, separators=(",", ":"))
