"""The steering of a scenario: rules that change single requests, send them to another model, or deny a tool's calls.

Part of the scenario model; ``model`` gathers it, ``checks`` asks what is wrong with it, and ``build`` hands the session
what it makes of it. Left out: what a rule does (``bargein.pipelines.steering``), and what other models say, which
stands beside ``llm`` under ``models``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.edits import RequestPatch
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.pipelines.steering import Steering, SteeringRule, Where
from bargein.pipelines.wordings import CONFIRM_PENDING_TOOL, RESULT_LIMIT_MARKER
from bargein.sim.effects.identity import canonical
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.suggest import either, unknown

if TYPE_CHECKING:
    from bargein.sim.scenario.model import Scenario

__all__ = ["Patch", "Steer", "SteerLimit", "SteerWhen", "hook_names", "steering_faults", "steering_of"]

_DOES = ("patch", "deny", "limit", "route")


@dataclass(frozen=True, slots=True)
class SteerWhen:
    """Which requests a rule is about: those of the turn ``epoch``, those that are the ``round``th of theirs, or all."""

    epoch: int | None = None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """How a request differs; what is not given stays.

    Attributes:
        system: in place of the agent's instructions; empty for none.
        temperature, max_tokens: sent along.
        extra: fields that the provider's request has besides.
        tools: the only tools on offer.
    """

    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SteerLimit:
    """How many bytes of a tool's result are sent, head and tail together, and what stands for the rest."""

    max_bytes: int
    marker: str = RESULT_LIMIT_MARKER


@dataclass(frozen=True, slots=True)
class Steer:
    """One rule: it does one thing, to the requests it is about.

    Attributes:
        patch: the request differs so; the conversation does not.
        deny: a tool; its calls are answered with ``reason`` and not served.
        limit: results of tools are sent shortened; the conversation keeps them whole.
        route: the label of the model that has the request, the agent's own among them.
    """

    when: SteerWhen = SteerWhen()
    patch: Patch | None = None
    deny: str | None = None
    reason: str = ""
    limit: SteerLimit | None = None
    route: str | None = None


def hook_names(rules: tuple[Steer, ...]) -> list[str]:
    """What the rules are called where a program declares its hooks, in their order: ``patch``, ``deny:book_table``."""
    names = []
    for rule in rules:
        does = next(key for key in _DOES if getattr(rule, key) is not None)
        about = getattr(rule, does)
        names.append(f"{does}:{about}" if isinstance(about, str) else does)
    return names


def steering_of(rules: tuple[Steer, ...]) -> Steering:
    """What the session is given."""
    return Steering(tuple([_rule(rule) for rule in rules]))


def _rule(rule: Steer) -> SteeringRule:
    patch, limit = rule.patch, rule.limit
    return SteeringRule(
        Where(rule.when.epoch, rule.when.round),
        None
        if patch is None
        else RequestPatch(
            preamble=patch.system,
            temperature=patch.temperature,
            max_tokens=patch.max_tokens,
            active_tools=patch.tools,
            additional_params=patch.extra or None,
        ),
        None if limit is None else ResultLimit(limit.max_bytes, limit.marker),
        rule.deny,
        rule.reason,
        rule.route,
    )


def steering_faults(scenario: Scenario) -> Iterator[Fault]:
    """Everything about the scenario's steering that cannot be."""
    if not scenario.steering:
        return
    if scenario.s2s is not None:
        yield Fault(("steering",), "it stands beside s2s, whose provider is sent no requests; accepted is one of them")
    tools = tuple(spec.name for spec in scenario.all_specs)
    for index, rule in enumerate(scenario.steering):
        path: Path = ("steering", index)
        given = [key for key in _DOES if getattr(rule, key) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} are given together" if given else "it does nothing"
            yield Fault(path, f"{found}; accepted is one of {either(_DOES)}")
        if rule.deny is not None:
            yield from _tool_faults(rule.deny, (*path, "deny"), tools)
            if not rule.reason:
                yield Fault(
                    path, f'"{rule.deny}" is denied without a reason; accepted is a text, which the model reads'
                )
        elif rule.reason:
            yield Fault((*path, "reason"), "there is nothing to deny; accepted is reason with deny")
        if rule.route is not None and rule.route not in scenario.scripts:
            yield Fault((*path, "route"), unknown("model", rule.route, scenario.scripts))
        if rule.patch is not None:
            yield from _patch_faults(rule.patch, (*path, "patch"), tools)


def _patch_faults(patch: Patch, path: Path, tools: tuple[str, ...]) -> Iterator[Fault]:
    for index, name in enumerate(patch.tools or ()):
        yield from _tool_faults(name, (*path, "tools", index), tools)
    for key in ("temperature", "extra"):
        try:
            canonical(getattr(patch, key))
        except (TypeError, ValueError, RecursionError):
            yield Fault((*path, key), "found what JSON cannot say; accepted is what a request can be sent with")


def _tool_faults(name: str, path: Path, tools: tuple[str, ...]) -> Iterator[Fault]:
    if name == CONFIRM_PENDING_TOOL:
        yield Fault(path, f'"{name}" goes with the tools that need it; accepted is one of these')
    elif name not in tools:
        yield Fault(path, unknown("tool", name, tools))
