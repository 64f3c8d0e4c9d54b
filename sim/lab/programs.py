"""The identity of a scenario's program: what a log's header says of it, and whether it is still the same.

A header names the effective settings, the declarations of the tools, the handlers with a hash of what each is made
of, and for each run the handlers it needs and the hash of its specification (run contract, sections 6 and 10). A
replay builds all of it anew from the log's scenario and compares, so that a default or a wording that has changed in
the code is noticed as well as an edited file. What a call reads from files is known by content, whatever they are
called. Left out: the records (``sim.effects``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from bargein.pipelines.response_stream import model_key
from bargein.pipelines.s2s_connection import live_key
from bargein.pipelines.settings import SessionSettings
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.identity import differences, memory_key, stable_hash, tool_key
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.contents import without_names
from bargein.sim.scenario.steering import hook_names

__all__ = [
    "DERIVED",
    "PYTHON",
    "judged_apart",
    "policy_of",
    "program_differences",
    "program_of",
    "specification",
]

PACKAGE = "bargein"
SCRIPTED, PACKAGED, PYTHON, REMOTE, DERIVED = "scripted", "packaged", "python", "remote", "derived"
"""The kinds of handler: made of the scenario's script, an application of this package, the program's own Python,
an agent behind a link, the session itself from what others answer."""

_JUDGED_APART = ("about", "expect", "invariants", "kind")
_PARTS = ("hooks", "recordings", "settings", "tools", "handlers", "required")


@lru_cache(maxsize=32)
def program_of(plan: Plan) -> Mapping[str, Any]:
    """What identifies the program, as the fields of a log's header; made once for a plan, and nobody changes it."""
    scenario = plan.scenario
    script, recordings = scenario.to_dict(), plan.recordings
    read = without_names(script, recordings)
    own = {spec.name for spec in scenario.own_tools}
    completion, tool_call = str(EffectKind.COMPLETION), str(EffectKind.TOOL_CALL)
    llm = {"family": completion, "kind": SCRIPTED, "made_of": stable_hash(read.get("llm"))}
    handlers: dict[str, dict[str, Any]] = {model_key(scenario.agent.model): llm}
    if scenario.s2s is not None:  # the provider answers on its connection, and the session makes responses of it
        spoken = stable_hash([script["s2s"], script.get("llm")])
        live = {"family": str(EffectKind.CUSTOM), "kind": SCRIPTED, "made_of": spoken}
        handlers = {live_key(scenario.agent.model): live, model_key(scenario.agent.model): {**llm, "kind": DERIVED}}
    for spec in scenario.specs:
        made_of: Any = _plain(spec)
        kind = PYTHON
        if spec.name not in own:
            kind = PACKAGED if scenario.tools[spec.name].builtin else SCRIPTED
            made_of = [script["tools"][spec.name], scenario.session.starts_at]
        key = tool_key("agent", spec.name, 0)
        handlers[key] = {"family": tool_call, "kind": kind, "made_of": stable_hash(made_of)}
    for label in scenario.models:
        made_of = stable_hash(script["models"][label])
        handlers[model_key(label)] = {"family": completion, "kind": SCRIPTED, "made_of": made_of}
    if scenario.memory is not None:
        made_of = stable_hash(read["memory"])
        handlers[memory_key("agent")] = {"family": str(EffectKind.MEMORY), "kind": SCRIPTED, "made_of": made_of}
    if scenario.remote is not None:
        made_of = stable_hash(script["remote"])
        for spec in scenario.remote.specs:
            handlers[tool_key("link", spec.name, 0)] = {"family": tool_call, "kind": REMOTE, "made_of": made_of}
    layering = plan.layering
    if layering is not None:
        for key, names in layering.declared.items():
            handlers[key]["layers"] = names
    return {
        "version": version(PACKAGE),
        "scenario": script,
        "recordings": recordings,
        "settings": _plain(plan.settings),
        "tools": {spec.name: _plain(spec) for spec in plan.registry.specs()},
        "handlers": handlers,
        "required": {key: handler["family"] for key, handler in handlers.items()},
        "hooks": [*hook_names(scenario.steering), *([] if layering is None else layering.hooks)],
    }


def policy_of(plan: Plan) -> str:
    """The hash that stands for the program of each of the session's runs (run contract, section 10).

    All its runs have one: steering changes what single requests say, and is named among the hooks.
    """
    return stable_hash(specification(plan.settings, plan.scenario.agent.policy_version))


def specification(settings: SessionSettings, policy_version: str = "") -> dict[str, Any]:
    """What a run's program is hashed from: the fields of run contract, section 6, with the effective values.

    Args:
        policy_version: what the program calls its own ways; no field of its own where it calls them nothing.
    """
    agent = settings.agent
    version = {"policy_version": policy_version} if policy_version else {}
    return {
        **version,
        "preamble": agent.system or None,
        "static_context": [],
        "additional_params": agent.additional_params or None,
        "max_tokens": agent.max_tokens,
        "temperature": agent.temperature,
        "tool_choice": None,
        "max_turns": settings.max_tool_rounds,
        "max_invalid_tool_call_retries": settings.engine.max_invalid_rounds,
        "output_schema": None,
        "output_mode": "Auto",
        "output_tool_name": None,
        "output_tool_description": None,
        "augment_output_preamble": True,
        "unhandled_invalid_tool_call": "answer",
    }


def program_differences(header: Mapping[str, Any], present: Mapping[str, Any]) -> Iterator[str]:
    """How the program in a header differs from the present one, a sentence for each difference, by name."""
    if header["version"] != present["version"]:
        yield f"version: recorded was {PACKAGE} {header['version']}, this is {PACKAGE} {present['version']}"
    recorded, found = (without_names(judged_apart(each["scenario"])) for each in (header, present))
    yield from differences(recorded, found, "scenario")
    for part in _PARTS:
        yield from differences(header[part], present[part], part)


def judged_apart(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario's data without what only judges the call."""
    return {key: value for key, value in scenario.items() if key not in _JUDGED_APART}


def _plain(value: Any) -> Any:
    """Settings as plain data: their fields by name."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
