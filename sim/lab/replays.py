"""Recording a session, and running a recorded one again without its models.

``sim.run(record=...)`` and ``sim.replay`` call it. A replay builds the session of the log's scenario with replayers
in place of all handlers; before anything runs, the program is compared with the recorded one, and what has changed is
refused by name. Left out: what the text of a log is (``sim.effects.log``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from json import loads
from pathlib import Path
from typing import Any, NoReturn

from bargein.models.python_tools import Tools
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.documents import DocumentError, read_bytes
from bargein.sim.effects.identity import content_digest, tool_key, written
from bargein.sim.effects.log import FORMAT, START, EffectLog, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.lab.payloads import PlainPayloads
from bargein.sim.lab.programs import DERIVED, PYTHON, policy_of, program_differences, program_of
from bargein.sim.lab.result import Result
from bargein.sim.lab.session import judge
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.contents import files_now, names_files
from bargein.sim.scenario.layering import MakeLayers
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import Place, ScenarioError

__all__ = ["Replayed", "log_of", "plan_of", "read_log", "record", "replay"]


def record(plan: Plan, seed: int | None = None, tie_seed: int | None = None) -> tuple[Result, EffectLog]:
    """Run one session and record it.

    Raises:
        ScenarioError: the script has no answer to a request, or something that went over the bus has no plain form.
    """
    recorder = Recorder()
    opened = plan.open(seed, tie_seed, recorder=recorder)
    result = judge(plan, opened, opened.session.run, seed, tie_seed)
    return result, log_of(plan, recorder, result)


def log_of(plan: Plan, recorder: Recorder, result: Result) -> EffectLog:
    """The log of a session that was recorded.

    Raises:
        ScenarioError: something that went over the bus has no plain form.
    """
    try:
        records = recorder.records(PlainPayloads())
    except (TypeError, ValueError) as problem:
        raise ScenarioError(f"the session cannot be recorded: {problem}") from None
    program = program_of(plan)
    used = {each.key: each.kind for each in records}
    identity = {"required": program["required"], "policy": policy_of(plan)}
    header = {
        "bargein_log": FORMAT,
        **program,
        "seed": result.seed,
        "tie_seed": result.tie_seed,
        "signature": used,
        "programs": {each.scope: identity for each in records},
        "deliveries": batches_of(recorder.deliveries),
        "result": {
            "digest": result.digest,
            "but_links": digest_but_links(result),
            "virtual_us": result.virtual_us,
            "events": len(result.timeline),
            "stopped": None if result.stopped is None else str(result.stopped),
        },
    }
    return EffectLog(header, records)


def digest_but_links(result: Result) -> str:
    """The digest of the timeline without the messages on links; the timeline's own where there is no link."""
    if result.scenario.remote is None:
        return result.digest
    rows = [list(row) for row in result.timeline.rows if not row[1].startswith("link.")]
    return content_digest(written(rows))


def read_log(path: str | os.PathLike[str]) -> EffectLog:
    """The log in a file.

    Raises:
        DocumentError: there is none, or it cannot be used.
    """
    name = os.fspath(path)
    raw = read_bytes(name, "an effect log").replace(b"\r\n", b"\n")  # as some checkouts have it; no line holds a CR
    log = EffectLog.from_bytes(raw, name)
    _check_sort(log)
    return log


def _check_sort(log: EffectLog) -> None:
    """That it is the whole log of a session.

    Raises:
        DocumentError: it is of agent runs, which only their program can run again, or begins in the middle.
    """
    accepted = "accepted is the log of a session, as run --record writes it"
    if START in log.header:
        raise DocumentError(f"{log.name}: it is the tail of a log, with which no session begins; {accepted}")
    if log.of_runs:
        raise DocumentError(f"{log.name}: it is a log of agent runs, which are replayed by their program; {accepted}")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay.

    Attributes:
        result: the session, as any other run's.
        log: what was replayed; again: what the replay recorded in turn.
        visible: whether it was a policy-visible replay.
    """

    result: Result
    log: EffectLog
    again: EffectLog
    visible: bool

    @property
    def equal(self) -> bool:
        """Whether the timeline is the recorded one, to the byte.

        What went over the link of a remote agent is left aside: in a replay nobody is called behind it.
        """
        recorded = self.log.header["result"]
        if self.result.scenario.remote is None:
            return bool(self.result.digest == recorded.get("digest"))
        return bool(digest_but_links(self.result) == recorded.get("but_links"))

    @property
    def ok(self) -> bool:
        """Whether it is, and every invariant and expectation held."""
        return self.equal and self.result.ok

    def to_json(self) -> dict[str, Any]:
        """The object that ``bargein replay --json`` prints: a run's, and what is of the replay."""
        told = {
            "log": self.log.name,
            "mode": "visible" if self.visible else "exchange",
            "effects": len(self.log.records),
            "recorded_digest": self.log.header["result"].get("digest"),
            "equal": self.equal,
        }
        return {**self.result.to_json(), "replay": told}


def replay(
    log: EffectLog,
    *,
    scenario: Scenario | None = None,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    visible: bool = False,
    folder: Path | None = None,
) -> Replayed:
    """Run a recorded session again; nothing but the log answers its effects.

    Args:
        scenario: what the program is now, where it is to be proven that it is still the recorded one; the log's own
            scenario unless given.
        tools: likewise, the program's own tools; they are not called.
        layers: makes the layers of the session; they stand around what the log answers and decide again.
        visible: also reproduce what became visible when, and in which batches.
        folder: where the files are that the scenario reads, if it reads any.

    Raises:
        DocumentError: the log's scenario is none, or it is no session's log.
        ReplayRefused: the program is not the recorded one, or what it does is not what was recorded.
    """
    _check_sort(log)
    header = log.header
    plan = plan_of(header, log.name, folder, tools) if scenario is None else Plan(scenario, tools)
    plan = plan if layers is None else plan.under(layers)
    found = [f"{log.name}: {each}" for each in program_differences(header, program_of(plan))]
    if not found:
        found = [f"{log.name}: {each}" for each in _unverified(log, plan)]
    if found:
        raise ReplayRefused(*found)
    try:
        own = [key for key, handler in header["handlers"].items() if handler["kind"] == DERIVED]
        playing = Replay(log, PlainPayloads(), visible=visible, own=own)
    except ReplayRefused as refused:
        _refuse(log, refused)
    try:
        opened = plan.open(header["seed"], header["tie_seed"], recorder=playing.recorder)
        result = judge(plan, opened, opened.session.run, header["seed"], header["tie_seed"])
        playing.finish()
    except ReplayRefused as refused:
        _refuse(log, refused)
    return Replayed(result, log, log_of(plan, playing.recorder, result), visible)


def _refuse(log: EffectLog, refused: ReplayRefused) -> NoReturn:
    raise ReplayRefused(f"{log.name}: {refused}") from None


def _unverified(log: EffectLog, plan: Plan) -> list[str]:
    """What cannot be taken for the recorded program, run by run (run contract, section 10)."""
    policy = policy_of(plan)
    required = program_of(plan)["required"]
    wrong = []
    for scope in dict.fromkeys(each.scope for each in log.records):
        program = log.header["programs"].get(scope)
        if type(program) is not dict or program.keys() != {"required", "policy"}:
            wrong.append(f"programs.{scope}: the program of this run is not recorded, so it is unverified")
        elif program["policy"] != policy:
            wrong.append(f"programs.{scope}.policy: recorded was {program['policy']!r}, found {policy!r}")
        elif program["required"] != required:
            wrong.append(f"programs.{scope}.required: it needs other handlers than the program has")
    wrong += [
        f"effect {each.id} ({each.key}): no handler of that key is in the program"
        for each in log.records
        if each.key not in required
    ]
    return wrong


# -- a header's scenario --------------------------------------------------------------------------------------


def plan_of(header: dict[str, Any], name: str, folder: Path | None = None, tools: Tools | None = None) -> Plan:
    """The plan of the scenario in a header; own tools that are not given are there by their declarations alone.

    Raises:
        DocumentError: the scenario is none, or does not fit its tools.
    """
    data = header["scenario"]
    try:
        if tools is not None:
            return Plan(_scenario(written(data), folder, tools.specs), tools)
        return _plan(written(data), written(_own_tools(header)), folder, files_now(data, folder))
    except (ScenarioError, ValueError, TypeError, KeyError) as error:
        told = "; ".join(error.sentences) if isinstance(error, ScenarioError) else error
        beside = f" (its files are looked for beside {name})" if names_files(data) and folder is not None else ""
        raise DocumentError(f"{name}: the scenario in it cannot be used: {told}{beside}") from None


def _own_tools(header: dict[str, Any]) -> dict[str, Any]:
    """The declarations of the program's own tools, in the order in which it brought them."""
    names = [name for name in header["tools"] if _kind(header, name) == PYTHON]
    order = list(header["handlers"])
    return {name: header["tools"][name] for name in sorted(names, key=lambda name: order.index(_key(name)))}


def _kind(header: dict[str, Any], tool: str) -> Any:
    handler = header["handlers"].get(_key(tool))
    return handler.get("kind") if type(handler) is dict else None


def _key(tool: str) -> str:
    return tool_key("agent", tool, 0)


def _scenario(text: bytes, folder: Path | None, specs: tuple[ToolSpec, ...] = ()) -> Scenario:
    return Scenario.from_dict(loads(text), Place(), folder=folder, tools=specs)


@lru_cache(maxsize=32)
def _plan(text: bytes, own: bytes, folder: Path | None, contents: tuple[str | None, ...]) -> Plan:
    """Checked and compiled once, however often it is replayed or resumed, as long as its files are what they were.

    Args:
        contents: of the files that it reads.
    """
    declared = loads(own)
    if not declared:
        return Plan(_scenario(text, folder))
    tools = Tools()
    for name, spec in declared.items():
        declare = tools.side_effect if spec["kind"] == "side_effect" else tools.read_only
        options = (
            {"repeatable": spec["repeatable"], "confirm": spec["confirm"]} if spec["kind"] == "side_effect" else {}
        )
        declare(
            name=name,
            description=spec["description"],
            parameters=spec["parameters"],
            timeout=spec["timeout_us"],
            filler_after=spec["filler_after_us"],
            **options,
        )(_absent)
    return Plan(_scenario(text, folder, tools.specs), tools)


def _absent(**_: Any) -> NoReturn:
    """The body of a tool that only its record stands for."""
    raise ReplayRefused("a tool of the program was called, and the program was not given; accepted is one with tools=")
