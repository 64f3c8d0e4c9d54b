"""What makes a well-formed scenario impossible: tools that do not exist, lines that overlap, events that cannot come.

``Scenario.from_dict`` asks it after the structure was found right. Left out: the recordings and the caller's
moments, which ``calls`` checks; whether the run fits the script, which only the run shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bargein.models.apps.clock import parse_start
from bargein.pipelines.events import KINDS
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.validation import ArgumentValidator, SchemaProblem
from bargein.pipelines.wordings import CONFIRM_PENDING_TOOL
from bargein.sim.scenario.agent_file import use_faults
from bargein.sim.scenario.calls import caller_faults
from bargein.sim.scenario.moments import EventMatch, field_faults
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.remembering import memory_faults
from bargein.sim.scenario.remote import remote_faults
from bargein.sim.scenario.script import Call, Llm, Round
from bargein.sim.scenario.sources import source_faults
from bargein.sim.scenario.steering import steering_faults
from bargein.sim.scenario.suggest import unknown
from bargein.sim.scenario.toolbox import Tool, ToolRun
from bargein.sim.scenario.wires import wire_faults

if TYPE_CHECKING:
    from bargein.sim.scenario.model import Phrase, Scenario

__all__ = ["INVARIANT_NAMES", "faults_of", "known_tools"]

INVARIANT_NAMES = (
    "calls_answered",
    "context_heard",
    "context_valid",
    "effect_once",
    "filler_timing",
    "gate_respected",
    "no_dead_epoch_effect",
    "no_stale_audio",
    "one_reply",
    "playout_order",
    "position_true",
    "quiet_end",
    "result_once",
    "speculation_safe",
    "stop_bound",
    "turn_answered",
)


def faults_of(scenario: Scenario, data: Mapping[str, Any]) -> list[Fault]:
    """Everything that cannot be, in the order of the keys.

    Args:
        scenario: as read.
        data: what it was read from, which says whether the script is a bare list.
    """
    return [
        *_agent_faults(scenario),
        *_tools_faults(scenario),
        *(() if scenario.remote is None else remote_faults(scenario.remote, known_tools(scenario))),
        *caller_faults(scenario, known_tools(scenario)),
        *_script_faults(scenario, scenario.llm, ("llm",), bare=isinstance(data.get("llm"), list)),
        *_model_faults(scenario, data),
        *_expect_faults(scenario),
        *_name_faults(scenario.invariants.off, ("invariants", "off"), "invariant", INVARIANT_NAMES),
        *_world_faults(scenario),
        *_live_faults(scenario, data),
        *memory_faults(scenario),
        *steering_faults(scenario),
    ]


def known_tools(scenario: Scenario) -> tuple[str, ...]:
    """The tools that exist in a run of the scenario."""
    specs = scenario.all_specs
    gated = any(spec.confirm for spec in specs)
    return (*(spec.name for spec in specs), *((CONFIRM_PENDING_TOOL,) if gated else ()))


def _agent_faults(scenario: Scenario) -> Iterator[Fault]:
    yield from use_faults(scenario.agent.tools, scenario.agent.confirm_tools, scenario.provided)
    tools = [spec.name for spec in scenario.all_specs]
    filler = scenario.agent.filler
    said: dict[str, str] = {}
    given: list[tuple[Path, Phrase]] = [(("phrases", at), phrase) for at, phrase in enumerate(filler.phrases)]
    for name, phrases in filler.tool_phrases.items():
        given += [(("tool_phrases", name, at), phrase) for at, phrase in enumerate(phrases)]
    for path, phrase in given:
        clip = phrase.clip or filler.clip
        if clip is not None and said.setdefault(clip, phrase.text) != phrase.text:
            problem = f'clip {clip} says "{said[clip]}" and not "{phrase.text}"; accepted is a clip for each text'
            yield Fault(("agent", "filler", *path), problem)
    for name in filler.tool_phrases:
        if name not in tools:
            yield Fault(("agent", "filler", "tool_phrases", name), unknown("tool", name, tools))


def _tools_faults(scenario: Scenario) -> Iterator[Fault]:
    if scenario.remote is not None:
        for name, tool in scenario.remote.tools.items():
            yield from _all_outcome_faults(tool, ("remote", "tools", name))
    for name, tool in scenario.tools.items():
        path: Path = ("tools", name)
        if name == CONFIRM_PENDING_TOOL:
            yield Fault(path, "this name is the engine's own; accepted is another one")
        if tool.timeout_us == 0:
            yield Fault((*path, "timeout"), "found 0us; accepted is a duration above zero")
        for key, given in (("confirm", tool.confirm), ("repeatable", tool.repeatable)):
            if given and not tool.side_effect:
                yield Fault((*path, key), f"a read_only tool has {key}; accepted is {key} on a side_effect")
        yield from _all_outcome_faults(tool, path)
        problem = _schema_problem(json.dumps(tool.parameters))
        if problem:
            yield Fault((*path, "parameters"), f"{problem}; accepted is a JSON Schema of an object, draft 2020-12")


def _all_outcome_faults(tool: Tool, path: Path) -> Iterator[Fault]:
    yield from _outcome_faults(tool, path)
    for index, run in enumerate(tool.results):
        yield from _outcome_faults(run, (*path, "results", index))


def _outcome_faults(run: Tool | ToolRun, path: Path) -> Iterator[Fault]:
    own = ToolRun(run.result, run.error, run.crash)
    given = [key for key in ("result", "error", "crash") if ToolRun(**{key: getattr(own, key)}).decided]
    if len(given) > 1:
        yield Fault(path, f"{' and '.join(given)} are given together; accepted is one of result, error and crash")


@lru_cache(maxsize=256)
def _schema_problem(schema: str) -> str | None:
    """What the tool engine would refuse about a schema; kept, since a sweep makes a scenario many times."""
    try:
        ArgumentValidator(json.loads(schema))
    except SchemaProblem as problem:
        return " ".join(str(problem).split())
    return None


def _model_faults(scenario: Scenario, data: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the scripts of other models than the agent's own."""
    for label, script in scenario.models.items():
        path: Path = ("models", label)
        if label == scenario.agent.model:
            yield Fault(path, f'"{label}" is the agent\'s own model, whose script is llm; accepted is another label')
        yield from _script_faults(scenario, script, path, bare=isinstance(data["models"][label], list))


def _script_faults(scenario: Scenario, script: Llm, root: Path, *, bare: bool) -> Iterator[Fault]:
    given = [key for key in ("rounds", "rules", "behaviour") if getattr(script, key)]
    if len(given) > 1:
        yield Fault(root, f"{' and '.join(given)} are given together; accepted is one of them")
    if script.else_ is not None and not script.rules:
        yield Fault((*root, "else"), "else stands without rules; accepted is else after rules")
    tools = known_tools(scenario)
    for path, rounded in _rounds(script, root, bare):
        for index, call in enumerate(rounded.calls):
            yield from _call_faults(call, (*path, "calls", index), tools)
    for index, rule in enumerate(script.rules):
        when: Path = (*root, index, "when") if bare else (*root, "rules", index, "when")
        for state in rule.when.result:
            if state.tool not in tools:
                yield Fault((*when, "result"), unknown("tool", state.tool, tools))
        if rule.when.user_matches is not None and not _compiles(rule.when.user_matches):
            yield Fault((*when, "user_matches"), f'found "{rule.when.user_matches}"; accepted is a regular expression')
    if script.behaviour is not None and script.behaviour.tool not in tools:
        yield Fault((*root, "tool"), unknown("tool", script.behaviour.tool, tools))
    yield from wire_faults(script, root, [(path, each.reasoning) for path, each in _rounds(script, root, bare)])
    yield from source_faults(scenario, script, root)


def _rounds(script: Llm, root: Path, bare: bool) -> Iterator[tuple[Path, Round]]:
    for index, each in enumerate(script.rounds):
        yield (*root, index) if bare else (*root, "rounds", index), each
    for index, rule in enumerate(script.rules):
        yield (*root, index) if bare else (*root, "rules", index), rule.round
    if script.else_ is not None:
        yield (*root, len(script.rules), "else") if bare else (*root, "else"), script.else_


def _call_faults(call: Call, path: Path, tools: tuple[str, ...]) -> Iterator[Fault]:
    if call.unknown and call.tool in tools:
        yield Fault(path, f'the tool "{call.tool}" exists; accepted is unknown: true on one that does not')
    elif not call.unknown and call.tool not in tools:
        yield Fault(path, f"{unknown('tool', call.tool, tools)} (unknown: true if that is meant)")


def _expect_faults(scenario: Scenario) -> Iterator[Fault]:
    expect = scenario.expect
    given = [each for script in scenario.scripts.values() for _, each in _rounds(script, (), False)]
    meant = [call.tool for each in given for call in each.calls if call.unknown]
    tools = (*known_tools(scenario), *meant)
    for key in ("tool_runs", "outcomes"):
        yield from _name_faults(tuple(getattr(expect, key)), ("expect", key), "tool", tools, keyed=True)
    for tool, outcomes in expect.outcomes.items():
        yield from _name_faults(outcomes, ("expect", "outcomes", tool), "outcome", tuple(ToolOutcome))
    yield from _name_faults(tuple(expect.counts), ("expect", "counts"), "event", tuple(KINDS), keyed=True)
    for index, each in enumerate(expect.events):
        yield from _match_faults(each.match, ("expect", "events", index), tools)
    for index, match in enumerate(expect.order):
        yield from _match_faults(match, ("expect", "order", index), tools)
    yield from _name_faults(expect.violations, ("expect", "violations"), "invariant", INVARIANT_NAMES)


def _match_faults(match: EventMatch, path: Path, tools: tuple[str, ...]) -> Iterator[Fault]:
    yield from field_faults(match, (*path, "kind"), path)
    tool = match.where.get("tool")
    if isinstance(tool, str) and "tool" in KINDS.get(match.kind, ()) and tool and tool not in tools:
        yield Fault((*path, "tool"), unknown("tool", tool, tools))


def _name_faults(
    names: tuple[str, ...], path: Path, what: str, known: tuple[str, ...], *, keyed: bool = False
) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name not in known:
            yield Fault((*path, name if keyed else index), unknown(what, name, known))


def _world_faults(scenario: Scenario) -> Iterator[Fault]:
    vad = scenario.vad
    if vad.off_db > vad.on_db:
        yield Fault(("vad", "off_db"), f"{vad.off_db} is above on_db {vad.on_db}; accepted is an off_db no greater")
    if vad.hangover_us == 0 or vad.hangover_us % 20_000:
        yield Fault(("vad", "hangover"), f"{vad.hangover_us}us is no number of frames; accepted is a multiple of 20ms")
    try:
        parse_start(scenario.session.starts_at)
    except ValueError as problem:
        yield Fault(("session", "starts_at"), str(problem))
    if scenario.session.max_duration_us == 0:
        yield Fault(("session", "max_duration"), "found 0us; accepted is a duration above zero")


def _live_faults(scenario: Scenario, data: Mapping[str, Any]) -> Iterator[Fault]:
    s2s = scenario.s2s
    if s2s is None:
        return
    if s2s.provider == "gemini_live" and s2s.turns == "client":
        yield Fault(("s2s", "turns"), "gemini_live takes turns itself; accepted is provider")
    if scenario.agent.speculation:
        yield Fault(("agent", "speculation"), "it stands beside s2s, where the provider decides; accepted is false")
    if "stt" in data:
        yield Fault(("stt",), "it stands beside s2s, which hears for itself; accepted is one of them")
    if scenario.llm.wire is not None:
        yield Fault(("llm", "wire"), "it stands beside s2s, which is a wire of its own; accepted is one of them")
    if scenario.models:
        yield Fault(("models",), "it stands beside s2s, whose provider is the only model; accepted is one of them")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
