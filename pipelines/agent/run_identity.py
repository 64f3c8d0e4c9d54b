"""Which program an agent run is: the handlers it needs, and a hash of its effective settings.

A log names it under the run's scope, and before a run is replayed it is compared, by name, with the run that is there
(run contract, sections 6 and 10). What lies in code has no hash: hooks, their order, layers' ways. A program declares a
version of these, and without one it stays unverified that it is the same. Left out: writing logs (``run_logs``) and
replaying them (``run_replay``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent import retrieval, routes
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_settings import Grant, ToolAccess, effective, specification
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.identity import differences, stable_hash

if TYPE_CHECKING:
    from bargein.sim.effects.log import EffectLog

__all__ = [
    "Standing",
    "Verdict",
    "check_replayable",
    "effective_specification",
    "handlers_of",
    "identity_of",
    "required_of",
    "tools_of",
]

_PROGRAM = ("policy", "required")


def effective_specification(run: Run) -> dict[str, Any]:
    """What makes the program of one run: its specification over its agent's, and whether its answers stream."""
    return {**specification(run.agent, run.settings), "stream": run.streamed}


def required_of(run: Run) -> dict[str, str]:
    """The row of what a run needs served: each handler's key with its family.

    Models and declared routes, whether asked or not; every grant and every key that explicit access names; the memory
    and the links; and whatever its rounds could call, also where its access was changed since.
    """
    agent = run.agent
    row = routes.required(agent)
    row.update({grant.key: str(EffectKind.TOOL_CALL) for grant in agent.grants})
    access: ToolAccess = effective(run.settings, agent, "tool_access", ToolAccess())
    for bindings in (access.bindings or {}, *(turn.access.bindings for turn in run.turns)):
        for key in bindings.values():
            row.setdefault(key, Descriptor.of_key(key).family)
    remembers = agent.remembers if run.memory is None else run.memory.remembers
    if remembers is not None:
        row.update(remembers.required())
    row.update(retrieval.required(agent.retrieves))
    return row


def identity_of(run: Run) -> dict[str, Any]:
    """A run's program as a header holds it: the row, and the hash of its effective specification."""
    return {"required": required_of(run), "policy": stable_hash(effective_specification(run))}


def handlers_of(runs: AgentRuns) -> dict[str, dict[str, Any]]:
    """What is known of every handler that is served, with the layers that stand around it now."""
    served = runs.bus.bus.keys()
    return {key: runs.bus.descriptor(key).to_dict() for key in served}


def tools_of(runs: AgentRuns) -> dict[str, dict[str, Any]]:
    """How the tools of all agents are declared, by key."""
    grants: dict[str, Grant] = {}
    for run in runs.live.values():
        grants.update({grant.key: grant for grant in run.agent.grants})
    return {key: grant.to_dict() for key, grant in grants.items()}


# -- is it the recorded one -----------------------------------------------------------------------------------


class Standing(StrEnum):
    """Whether a run may be replayed from a log."""

    FINE = "fine"
    UNVERIFIED = "unverified"
    """Nothing speaks against it, and it is not known to be the same program."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run is the recorded one, and why not: a sentence for each reason, by name."""

    standing: Standing
    reasons: tuple[str, ...] = ()


def check_replayable(runs: AgentRuns, run: Run, log: EffectLog, *, declared: Sequence[str] | None = None) -> Verdict:
    """Compare a run with the program that a log names under exactly its scope (run contract, section 10).

    Replayers begin without layers; a program that was recorded within layers is the same one once they stand around
    its replayers again.

    Args:
        declared: the hooks and layers that the program declares now; not compared unless given.
    """
    place = f"programs.{run.scope}"
    program = log.header["programs"].get(run.scope)
    if type(program) is not dict or tuple(sorted(program)) != _PROGRAM:
        return Verdict(Standing.UNVERIFIED, (f"{place}: the program of this run is not recorded",))
    refused = list(_differences(runs, run, log, program, declared))
    if refused:
        return Verdict(Standing.REFUSED, tuple(refused))
    if not effective(run.settings, run.agent, "policy_version"):
        said = f"{place}: the program declares no policy version, so what is not in its settings may have changed"
        return Verdict(Standing.UNVERIFIED, (said,))
    return Verdict(Standing.FINE)


def _differences(
    runs: AgentRuns, run: Run, log: EffectLog, program: Mapping[str, Any], declared: Sequence[str] | None
) -> Iterator[str]:
    place, found = f"programs.{run.scope}", identity_of(run)
    yield from differences(program["policy"], found["policy"], f"{place}.policy")
    yield from differences(program["required"], found["required"], f"{place}.required")
    if declared is not None:
        yield from differences(log.header["hooks"], list(declared), "hooks")
    used = {record.key: record for record in log.records if record.scope == run.scope}
    for key in dict.fromkeys([*program["required"], *used]):
        if not runs.bus.serves(key):
            yield f"handlers.{key}: no handler serves it, and the recorded program needs it"
        elif key in log.header["handlers"]:
            now = runs.bus.descriptor(key).to_dict()
            yield from differences(log.header["handlers"][key], now, f"handlers.{key}")
    now_declared = {grant.key: grant.to_dict() for grant in run.agent.grants}
    for key, recorded in log.header["tools"].items():
        if key in now_declared:
            yield from differences(recorded, now_declared[key], f"tools.{key}")
