"""A scripted tool's result filled in for one run: ``{run}``, ``{args.NAME}`` and counters.

The builder of a session hands it to the scripted tools. A text that is one placeholder takes the value with its
type; a placeholder inside a text becomes text; ``{counter: BK, from: 1001}`` is ``BK-1001`` for the first run.
Left out: anything that computes; a scenario is data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["fill"]

_PLACEHOLDER = re.compile(r"\{(run|args(?:\.[A-Za-z0-9_-]+)+)\}")


def fill(result: Any, args: Any, run: int) -> Any:
    """The result with its placeholders filled in; one that names an argument which is not there stays as it is.

    Args:
        result: JSON, as in the scenario.
        args: the arguments of the call.
        run: which run of the tool this is in the session, from 1.
    """
    if isinstance(result, str):
        whole = _PLACEHOLDER.fullmatch(result)
        if whole is not None:
            return _value(whole, args, run)
        return _PLACEHOLDER.sub(lambda found: str(_value(found, args, run)), result)
    if isinstance(result, Mapping):
        if set(result) == {"counter", "from"} and type(result["from"]) is int:
            return f"{result['counter']}-{result['from'] + run - 1}"
        return {key: fill(each, args, run) for key, each in result.items()}
    if isinstance(result, list):
        return [fill(each, args, run) for each in result]
    return result


def _value(found: re.Match[str], args: Any, run: int) -> Any:
    if found[1] == "run":
        return run
    value = args
    for key in found[1].split(".")[1:]:
        if not isinstance(value, Mapping) or key not in value:
            return found[0]
        value = value[key]
    return value
