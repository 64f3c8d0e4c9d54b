"""The scenario as it stands and with other tools under it: immediate ones, and ones that hang.

Exploration tries each variant that was asked for. Left out: packaged tools, whose time is not the scenario's to say,
and tools that a program brings.
"""

from __future__ import annotations

from dataclasses import replace

from bargein.models.latency import NEVER, Constant, Latency
from bargein.sim.scenario.model import Scenario, Tool

__all__ = ["AS_WRITTEN", "HUNG", "INSTANT", "variant"]

AS_WRITTEN = ""
INSTANT = "instant tools"
HUNG = "hung tools"
_LATENCY: dict[str, Latency] = {INSTANT: Constant(0), HUNG: NEVER}


def variant(scenario: Scenario, name: str) -> Scenario:
    """The scenario in the variant of this name."""
    if name == AS_WRITTEN:
        return scenario
    latency = _LATENCY[name]
    return replace(scenario, tools={tool: _timed(each, latency) for tool, each in scenario.tools.items()})


def _timed(tool: Tool, latency: Latency) -> Tool:
    if tool.builtin is not None:
        return tool
    return replace(tool, latency=latency, results=tuple(replace(run, latency=None) for run in tool.results))
