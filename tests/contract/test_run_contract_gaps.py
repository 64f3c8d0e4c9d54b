"""What the run contract says of logs, replays and checkpoints, where no part's own tests show it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.cassettes import Cassette, CassetteError, dump_cassette, read_cassette
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.parts import ResultPart, TextPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_settings import Agent, InvalidCalls, Settings, Unhandled, specification
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import Effect, EffectBus, EffectKind, Outcome, Status
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog, batches_of
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay, ReplayRefused
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.replays import read_log, record, replay
from bargein.sim.scenario.build import Plan
from tests.pipelines.agent.run_kit import MS, Model, S, Tool, call, calls, output, text

ROOT = Path(__file__).parents[2]
TOOL = {"description": "Looks.", "parameters": {"type": "object"}, "latency": "300ms", "result": 1}
CALL: dict[str, Any] = {
    "scenario": "two_turns",
    "tools": {"look": TOOL, "spare": TOOL},
    "caller": [
        {"say": "Hi.", "at": "100ms", "level": "decision", "for": "300ms"},
        {"say": "And?", "at": "4s", "level": "decision", "for": "300ms"},
    ],
    "llm": [{"calls": [{"look": {}}]}, {"text": "It is so."}, {"text": "No more."}],
}


def recorded(scenario: Any = CALL) -> EffectLog:
    return record(Plan(sim.load(scenario)))[1]


def refused(log: EffectLog, **options: Any) -> list[str]:
    with pytest.raises(ReplayRefused) as problem:
        replay(log, **options)
    return list(problem.value.sentences)


# -- headers and identity ---------------------------------------------------------------------------------------


def test_each_run_has_its_program_under_its_scope_and_there_is_no_other_hash() -> None:
    header = recorded().header
    assert list(header["programs"]) == ["t1", "t2"]
    assert [sorted(each) for each in header["programs"].values()] == [["policy", "required"]] * 2
    assert "run_spec" not in header


def test_an_effective_setting_is_in_the_policy_and_a_filler_is_not() -> None:
    def policy(**agent: Any) -> str:
        found: str = recorded({**CALL, "agent": agent}).header["programs"]["t1"]["policy"]
        return found

    assert policy() == policy(filler="off")
    assert len({policy(), policy(max_tool_rounds=5), policy(system="Be brief.")}) == 3


def test_what_a_run_overrides_is_in_its_own_specification_and_not_in_its_agents() -> None:
    agent = Agent.named("golden", preamble="P", max_turns=2)
    before = stable_hash(specification(agent))
    ignoring = Settings(invalid_calls=InvalidCalls(Unhandled.IGNORE))
    effective = [specification(agent, run) for run in (Settings(), Settings(max_turns=3), ignoring)]
    assert stable_hash(effective[0]) == before == stable_hash(specification(agent))
    changed = [[key for key in each if each[key] != effective[0][key]] for each in effective]
    assert changed == [[], ["max_turns"], ["unhandled_invalid_tool_call"]]
    assert len({stable_hash(each) for each in effective}) == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda log: log.header["programs"]["t2"].update(policy="0" * 16),
            "programs.t2.policy: recorded was '0000000000000000', found",
        ),
        (
            lambda log: log.header["programs"]["t2"].update(required={}),
            "programs.t2.required: it needs other handlers than the program has",
        ),
        (
            lambda log: setattr(log.records[1], "key", "agent/tool:gone#0"),
            "effect 1 (agent/tool:gone#0): no handler of that key is in the program",
        ),
    ],
)
def test_another_policy_another_row_and_a_missing_handler_are_refused_each_by_name(
    change: Callable[[EffectLog], object], told: str
) -> None:
    log = recorded()
    log.header["programs"]["t2"] = {**log.header["programs"]["t2"]}
    change(log)
    assert [each.removeprefix(f"{log.name}: ").startswith(told) for each in refused(log)] == [True]


def test_a_tool_that_was_never_called_is_served_in_the_replay_too() -> None:
    log = recorded()
    assert "agent/tool:spare#0" not in log.header["signature"]
    again = replay(log)
    assert again.equal
    assert again.again.header["required"] == log.header["required"]
    served = again.result.opened.session.bus.keys()
    assert set(served) == set(log.header["required"])


# -- replays apart from what they replay ------------------------------------------------------------------------


def imported_by(path: Path) -> set[str]:
    """The modules that a file imports by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return found


def imported(folder: str) -> set[str]:
    """The modules that the files of a folder import by name."""
    return {name for path in sorted((ROOT / folder).rglob("*.py")) for name in imported_by(path)}


def behind(*roots: str) -> set[str]:
    """What modules of the pipelines import, and what those import in turn."""
    found: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        path = ROOT / f"{name.removeprefix('bargein.').replace('.', '/')}.py"
        if name not in found and name.startswith("bargein.pipelines") and path.is_file():
            left += imported_by(path)
        found.add(name)
    return found


def test_what_runs_knows_of_no_replay_and_no_checkpoint() -> None:
    names = behind("bargein.pipelines.session", "bargein.pipelines.agent.run")
    assert {"bargein.sim.effects.bus", "bargein.pipelines.agent.run_steps"} <= names
    apart = ("replay", "checkpoint", "log", "recording", "tails", "playing")
    assert names.isdisjoint(f"bargein.sim.effects.{each}" for each in apart)
    apart = ("run_logs", "run_identity", "run_replay", "run_checkpoint", "run_restore", "restored_graph", "saved_graph")
    assert names.isdisjoint(f"bargein.pipelines.agent.{each}" for each in apart)
    assert not any(each.startswith("bargein.sim.lab") for each in imported("pipelines"))


def test_what_runs_opens_no_connection() -> None:
    for folder in ("pipelines", "sim/effects", "sim/kernel"):
        roots = {each.partition(".")[0] for each in imported(folder)}
        assert roots.isdisjoint({"aiohttp", "http", "httpx", "requests", "socket", "ssl", "urllib", "websockets"})


def log_of(recorder: Recorder) -> EffectLog:
    return EffectLog({"deliveries": batches_of(recorder.deliveries)}, recorder.records(RunPlain()))


class Playing:
    """Runs on a recorder's bus, and what their hooks were told."""

    def __init__(self, recorder: Recorder, *, reverse: bool = False) -> None:
        self.clock = Clock()
        self.bus = LayeredBus(recorder.open(self.clock))
        self.hooks = Hooks()
        self.runs = AgentRuns(self.clock, self.bus, self.hooks)
        self.agents = {name: Agent.named(name, max_turns=2, concurrency=2) for name in ("one", "other")}
        self.told: list[tuple[int, str, str]] = []
        for name in sorted(self.agents, reverse=reverse):
            agent = self.agents[name]
            script = calls(call("slow"), call("quick", "c2")), text(f"{name} is done")
            self.bus.serve(f"{name}/model:default", Model(recorder.clock, *script, delay_us=MS))
            for tool, delay_us in (("slow", 2 * S), ("quick", S)):
                self.bus.serve(agent.grant(tool).key, Tool(recorder.clock, tool, delay_us))
        for at in (At.JUDGE_OUTCOME, At.JUDGE_ROUND, At.CHECKPOINT, At.RUN_ENDED):
            self.hooks.on(at, self.note)

    def note(self, moment: Moment) -> None:
        effect = moment.effect
        self.told.append((self.clock.now, str(moment.at), moment.run.scope if effect is None else effect.key))

    def go(self, *names: str) -> list[Run]:
        made = [self.runs.spawn(self.agents[name], "hello") for name in names]
        self.clock.run()
        return made


def test_both_kinds_of_observer_see_the_same_order_live_and_replayed() -> None:
    recorder = Recorder()
    live = Playing(recorder)
    live.go("one")
    tools = ["one/tool:quick#1", "one/tool:slow#0"]
    assert [each for each in live.told if each[2] in tools] == [
        (S + MS, "judge_outcome", tools[0]),
        (2 * S + MS, "judge_outcome", tools[1]),
    ]
    for visible in (False, True):
        playing = Replay(log_of(recorder), RunPlain(), visible=visible)
        again = Playing(playing.recorder)
        again.go("one")
        playing.finish()
        assert again.told == live.told


@pytest.mark.parametrize("first", ["one", "other"])
def test_what_falls_on_one_instant_is_handled_in_the_order_of_the_runs(first: str) -> None:
    order = [first, "other" if first == "one" else "one"]
    plain, reversed_ = Playing(Recorder()), Playing(Recorder(), reverse=True)
    for world in (plain, reversed_):
        assert [output(run) for run in world.go(*order)] == [f"{name} is done" for name in order]
    assert plain.told == reversed_.told
    assert plain.runs.timeline.to_jsonl() == reversed_.runs.timeline.to_jsonl()
    assert [each[2] for each in plain.told if each[1] == "run_ended"] == ["r1", "r2"]


def test_an_answer_that_is_given_while_outcomes_are_judged_is_judged_on_the_same_instant_a_step_later() -> None:
    world = Playing(Recorder())

    def answers(moment: Moment) -> None:
        if moment.effect is not None and moment.effect.key == "one/tool:quick#1":
            slow = world.bus.bus.log[1]
            slow.land(Outcome(Status.OK, "sooner"))
            world.told.append((world.clock.now, "given", slow.key))

    world.hooks.on(At.JUDGE_OUTCOME, answers)
    (run,) = world.go("one")
    assert [each for each in world.told if each[0] == S + MS] == [
        (S + MS, "judge_outcome", "one/tool:quick#1"),
        (S + MS, "given", "one/tool:slow#0"),
        (S + MS, "checkpoint", "r1"),
        (S + MS, "judge_outcome", "one/tool:slow#0"),
        (S + MS, "checkpoint", "r1"),
    ]
    assert [part.items for part in run.messages[2].parts if isinstance(part, ResultPart)] == [
        (TextPart("sooner"),),
        (TextPart("quick"),),
    ]


# -- cancellations in a replay ----------------------------------------------------------------------------------

KEY = "x:slow"


class Silent:
    def serve(self, effect: Effect) -> None:
        return None


def asking(recorder: Recorder, steps: int | None) -> Effect:
    """Something that is asked for, and cancelled after a second, so many steps of that instant later."""
    clock = Clock()
    bus = recorder.open(clock)
    bus.register(KEY, Silent())
    effect = bus.dispatch(EffectKind.CUSTOM, KEY, {}, scope="s", on_landed=lambda _: None)

    def think(left: int) -> None:
        if left:
            clock.call_in(0, Order.TIMER, think, left - 1)
        else:
            effect.cancel(Cause.REPLACED)

    if steps is not None:
        clock.call_in(S, Order.WORK, think, steps)
    clock.run(2 * S)
    return effect


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_policy_may_think_for_some_steps_of_the_instant_before_it_cancels(steps: int) -> None:
    recorder = Recorder()
    asking(recorder, 0)
    playing = Replay(log_of(recorder), RunPlain(), visible=True)
    assert asking(playing.recorder, steps).outcome == Outcome(Status.CANCELLED, Cause.REPLACED)
    playing.finish()


def test_a_policy_that_does_nothing_about_it_is_refused() -> None:
    recorder = Recorder()
    asking(recorder, 0)
    playing = Replay(log_of(recorder), RunPlain(), visible=True)
    with pytest.raises(ReplayRefused, match=r"effect 0 \(x:slow\) was cancelled at 1000000 us in the recording"):
        asking(playing.recorder, None)


# -- kinds of file ----------------------------------------------------------------------------------------------


def test_logs_checkpoints_and_cassettes_are_not_taken_for_each_other() -> None:
    _, log, saved = take_checkpoint(Plan(sim.load("chained_lookups")), When.parse("tool.committed:1"))
    cassette = dump_cassette(Cassette("openai_chat", "m", "a", ()))
    said = []
    for raw in (saved.to_bytes(), cassette.encode()):
        with pytest.raises(DocumentError) as problem:
            EffectLog.from_bytes(raw, "a")
        said.append(str(problem.value))
    for raw in (log.to_bytes(), cassette.encode()):
        with pytest.raises(DocumentError) as problem:
            Checkpoint.from_bytes(raw, "a")
        said.append(str(problem.value))
    assert [each.partition(";")[0] for each in said] == [
        "a: it is a checkpoint of a session",
        "a: it is a recording of a wire",
        "a: it is an effect log",
        "a: it is a recording of a wire",
    ]
    for raw in (log.to_bytes(), saved.to_bytes()):
        with pytest.raises(CassetteError, match="line 1: found no head; accepted is an object with bargein_cassette"):
            read_cassette(raw.decode())


# -- handlers ---------------------------------------------------------------------------------------------------


def test_a_handler_may_be_asked_for_anything_under_its_key() -> None:
    class Echo:
        def serve(self, effect: Effect) -> None:
            effect.land(Outcome(Status.OK, str(effect.kind)))

    bus = EffectBus(Clock())
    bus.register("x:echo", Echo())
    asked = [bus.dispatch(kind, "x:echo", {}, scope="s", on_landed=lambda _: None) for kind in EffectKind]
    assert [effect.outcome for effect in asked] == [Outcome(Status.OK, str(kind)) for kind in EffectKind]


# -- checkpoints ------------------------------------------------------------------------------------------------


def test_the_effects_of_a_checkpoint_are_the_head_of_the_log_and_none_but_the_next_request_is_open() -> None:
    _, log, saved = take_checkpoint(Plan(sim.load("chained_lookups")), When.parse("tool.committed:1"))
    saved = Checkpoint.from_bytes(saved.to_bytes(), "a")
    *landed, asked = saved.records
    assert [each.kind for each in landed] == ["completion", "tool_call"]
    assert [each.to_dict() for each in landed] == [each.to_dict() for each in log.records[:2]]
    assert [each.status for each in saved.records] == ["ok", "ok", None]
    assert (asked.kind, asked.id, asked.hash) == ("completion", log.records[2].id, log.records[2].hash)
    assert len(log.records) > len(saved.records)


@pytest.mark.parametrize(
    ("when", "open_effect"),
    [("20ms", 0), ("200ms", None), ("tool.committed", 3), ("5255001us", 5)],
    ids=["loading", "loaded", "answered", "appending"],
)
def test_a_call_with_a_memory_goes_on_with_one_load_and_one_append(
    tmp_path: Path, when: str, open_effect: int | None
) -> None:
    remembered = [{"user": "I am Ann."}, {"agent": "Hello."}]
    plan = Plan(sim.load({**CALL, "memory": {"messages": remembered, "latency": "50ms"}}))
    whole, log, saved = take_checkpoint(plan, When.parse(when))
    assert [each.id for each in saved.records if each.status is None] == ([] if open_effect is None else [open_effect])
    result = sim.resume(saved, record=tmp_path / "a.log").result
    again = read_log(tmp_path / "a.log").records
    assert result.digest == whole.digest
    assert [each.to_dict() for each in again] == [each.to_dict() for each in log.records]
    operations = [(each.id, each.request["op"]) for each in again if each.kind == "memory"]
    assert operations == [(0, "load"), (5, "append")]


@pytest.mark.parametrize("change", ["fewer", "more"])
def test_tools_too_few_and_too_many_are_refused_before_any_of_them_runs(tmp_path: Path, change: str) -> None:
    ran: list[str] = []

    def tools(*names: str) -> sim.Tools:
        made = sim.Tools()
        for name in names:
            made.read_only(name=name, description="Looks.", parameters={"type": "object"})(lambda: ran.append("x"))
        return made

    answers = [{"text": "Hello."}, {"calls": [{"a": {}}]}, {"text": "Done."}]
    own = {"scenario": "own", "caller": CALL["caller"], "llm": answers}
    sim.run(own, tools=tools("a", "b"), checkpoint_at="playout.started", checkpoint=tmp_path / "a.json")
    ran.clear()
    given = tools("a") if change == "fewer" else tools("a", "b", "c")
    with pytest.raises((ReplayRefused, DocumentError), match=r"tools\.[bc]"):
        sim.resume(tmp_path / "a.json", tools=given)
    assert ran == []
