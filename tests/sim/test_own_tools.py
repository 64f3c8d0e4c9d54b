"""A program's own tools in a run: from Python, from the command line, and as part of the user's own program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bargein import sim
from bargein.sim.cli import main
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.loading import load_text
from bargein.sim.scenario.model import Scenario, ScenarioError

MODULE = """
from bargein.sim import Tools

registry = Tools()
number = 7

@registry.side_effect(timeout="2s")
def book_table(day: str, people: int, *, ctx):
    "Books a table."
    yield "250ms"
    return {"booking": f"{day} for {people} by {ctx.call_id}"}

@registry.read_only
def get_menu():
    "Reads the menu."
    return "soup"
"""

MENU: dict[str, Any] = {
    "scenario": "menu",
    "agent": {"filler": "off"},
    "caller": [{"say": "What is there to eat?", "at": "500ms"}],
    "llm": [{"calls": [{"get_menu": {}}]}, {"text": "There is soup."}],
    "expect": {"tool_runs": {"get_menu": 1}, "events": [{"kind": "tool.started", "tool": "get_menu"}]},
}


@pytest.fixture
def tools() -> sim.Tools:
    made = sim.Tools()

    @made.side_effect
    def book_table(day: str, people: int, *, ctx: sim.ToolCallContext) -> Any:
        """Books."""
        yield "250ms"
        return {"booking": f"{day} for {people} by {ctx.call_id}"}

    @made.read_only
    def get_menu() -> str:
        return "soup"

    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, with a module of tools and a scenario that needs them."""
    (tmp_path / "own_module.py").write_text(MODULE)
    (tmp_path / "menu.scenario.yaml").write_text(json.dumps(MENU))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("own_module", "broken_module"):
        sys.modules.pop(name, None)


def command(*arguments: str, **more: Any) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False, **more)


# -- from Python ----------------------------------------------------------------------------------------------------


def test_an_own_tool_replaces_the_scenarios_of_its_name_declaration_and_body(tools: sim.Tools) -> None:
    scripted = {"kind": "read_only", "description": "Scripted.", "latency": "1s", "result": "scripted"}
    data = {
        **MENU,
        "tools": {"book_table": scripted},
        "llm": [{"calls": [{"book_table": {"day": "friday", "people": 2}}]}, {"text": "Booked."}],
        "expect": {"tool_runs": {"book_table": 1}},
    }
    assert sim.run(data).context[2]["content"] == "scripted"
    result = sim.run(data, tools=tools)
    assert result.ok
    assert [(spec.description, spec.kind) for spec in result.scenario.specs] == [
        ("Books.", "side_effect"),
        ("", "read_only"),
    ]
    (started,) = [record["t"] for record in result.records if record["kind"] == "tool.started"]
    (finished,) = [record["t"] for record in result.records if record["kind"] == "tool.finished"]
    assert finished - started == 250_000
    assert result.context[2]["content"] == '{"booking":"friday for 2 by t1.0"}'


def test_a_scenario_may_call_a_tool_that_only_the_program_has(tools: sim.Tools) -> None:
    result = sim.run(MENU, tools=tools)
    assert result.ok
    assert result.tools["get_menu"]["runs"] == 1
    with pytest.raises(ScenarioError, match='unknown tool "get_menu"'):
        sim.run(MENU)


def test_the_tools_are_kept_when_a_value_is_changed(tools: sim.Tools) -> None:
    chosen = sim.load(MENU, tools=tools)
    assert sim.run(chosen, tools=tools, set={"agent.system": "Be brief."}).ok
    assert chosen.with_value("seed", 3).own_tools == tools.specs


def test_a_loaded_scenario_takes_tools_and_is_checked_again(tools: sim.Tools) -> None:
    missing = {**MENU, "llm": [{"calls": [{"tool": "get_menu", "unknown": True}]}, {"text": "?"}]}
    scenario = sim.load(missing)
    with pytest.raises(ScenarioError, match='the tool "get_menu" exists; accepted is unknown: true on one that does'):
        sim.run(scenario, tools=tools)


def test_a_scenario_that_was_loaded_for_tools_is_not_run_without_them(tools: sim.Tools) -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.run(sim.load(MENU, tools=tools))
    assert str(refused.value) == "tools: it was loaded for the tools book_table, get_menu; run it with them"


def test_a_gated_tool_of_the_program_brings_the_gate_into_the_scenario() -> None:
    tools = sim.Tools()

    @tools.side_effect(confirm=True)
    def transfer(to: str) -> str:
        return to

    data = {
        **MENU,
        "caller": [
            {"say": "Transfer me.", "at": "500ms"},
            {"say": "Yes.", "after": {"event": "confirm.requested", "by": "4s"}},
        ],
        "llm": [
            {"calls": [{"transfer": {"to": "desk"}}]},
            {"text": "To the desk?"},
            {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]},
            {"text": "Done."},
        ],
        "expect": {"outcomes": {"transfer": ["confirmation_required"], "confirm_pending": ["ok"]}},
    }
    result = sim.run(data, tools=tools)
    assert result.violations == []
    assert [each.message for each in result.expectations if not each.ok] == []


def test_equal_runs_have_equal_digests(tools: sim.Tools) -> None:
    assert sim.run(MENU, tools=tools).digest == sim.run(MENU, tools=tools).digest


def test_one_plan_opens_many_sessions(tools: sim.Tools) -> None:
    plan = Plan(sim.load(MENU, tools=tools), tools)
    first, second = plan.open().tools["get_menu"], plan.open().tools["get_menu"]
    assert first is not second


def test_what_tools_are_written_with_comes_from_one_import() -> None:
    from bargein.sim import Progress, ToolCallContext, ToolError, Tools

    assert [each.__name__ for each in (Progress, ToolCallContext, ToolError, Tools)] == [
        "Progress",
        "ToolCallContext",
        "ToolError",
        "Tools",
    ]
    with pytest.raises(AttributeError, match=r"module 'bargein.sim' has no attribute 'Toolz'"):
        _ = sim.Toolz


# -- from the command line ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_run_takes_tools_from_a_module_in_the_current_directory() -> None:
    done = command("run", "menu.scenario.yaml", "--tools", "own_module:registry", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tools"]["get_menu"]["runs"] == 1


@pytest.mark.usefixtures("folder")
def test_check_knows_the_tools() -> None:
    assert command("check", "menu.scenario.yaml", "--tools", "own_module:registry").exit_code == 0
    without = command("check", "menu.scenario.yaml")
    assert (without.exit_code, without.stderr.count('unknown tool "get_menu"')) == (2, 3)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("own_module", '--tools "own_module" names no tools; accepted is module:attribute, such as my_tools:registry'),
        (":registry", '--tools ":registry" names no tools; accepted is module:attribute, such as my_tools:registry'),
        (
            "nosuch:registry",
            "--tools nosuch:registry: nosuch cannot be imported (ModuleNotFoundError: No module named 'nosuch'); "
            "accepted is a module that is importable here",
        ),
        (
            "broken_module:registry",
            "--tools broken_module:registry: broken_module cannot be imported (ZeroDivisionError: division by zero); "
            "accepted is a module that is importable here",
        ),
        (
            "torn_module:registry",
            "--tools torn_module:registry: torn_module cannot be imported (ValueError: two lines); "
            "accepted is a module that is importable here",
        ),
        (
            "own_module:regisrty",
            '--tools own_module:regisrty: unknown attribute "regisrty"; the nearest known one is "registry"',
        ),
        (
            "own_module:number",
            "--tools own_module:number: it is of type int; accepted is an instance of bargein.sim.Tools",
        ),
    ],
)
def test_tools_that_cannot_be_had_are_one_sentence_and_exit_status_2(folder: Path, place: str, sentence: str) -> None:
    (folder / "broken_module.py").write_text("1 / 0")
    (folder / "torn_module.py").write_text("raise ValueError('two\\nlines')")
    for arguments in (("run", "menu.scenario.yaml"), ("check", "menu.scenario.yaml")):
        done = command(*arguments, "--tools", place)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", sentence + "\n")


def test_a_program_runs_the_command_with_its_own_tools(
    folder: Path, tools: sim.Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        sim.main(tools, ["run", "menu.scenario.yaml", "--json"])
    assert left.value.code == 0
    assert json.loads(capsys.readouterr().out)["tools"]["get_menu"]["runs"] == 1


# -- the packaged ones ----------------------------------------------------------------------------------------------

PACKAGED = """
scenario: packaged
agent: {filler: off}
session: {starts_at: "2026-03-01T23:00:00+01:00"}
tools:
  get_time: {builtin: get_time}
  note: {builtin: save_note, timeout: 1s, description: Notes it down.}
  hang_up: {builtin: end_call}
caller:
  - {say: "What time is it in Tokyo?", at: 500ms}
llm:
  - {calls: [{get_time: {timezone: Asia/Tokyo}}, {note: {text: asked}}]}
  - {text: It is early., calls: [{hang_up: {}}]}
  - {text: Goodbye.}
expect:
  outcomes: {get_time: [ok], note: [ok], hang_up: [ok]}
"""


def test_a_scenario_asks_for_packaged_tools_by_name() -> None:
    result = sim.run(load_text(PACKAGED))
    assert result.ok
    at_us = next(record["t"] for record in result.records if record["kind"] == "tool.started")
    answers = [message["content"] for message in result.context if message["role"] == "tool"]
    assert answers[0] == f'{{"timezone":"Asia/Tokyo","time":"2026-03-02T07:00:0{at_us / 1_000_000:.6f}+09:00"}}'
    assert answers[1:] == ['{"note":"N-1"}', '{"status":"ending"}']
    assert result.records[-1]["reason"] == "agent_hung_up"


def test_every_session_of_a_plan_begins_with_empty_stores() -> None:
    from bargein.sim.lab.session import run_plan

    plan = Plan(load_text(PACKAGED))
    assert run_plan(plan).digest == run_plan(plan).digest


def test_a_packaged_tool_is_written_as_it_was_read() -> None:
    scenario = load_text(PACKAGED)
    assert scenario.to_dict()["tools"] == {
        "get_time": {"builtin": "get_time"},
        "note": {"builtin": "save_note", "timeout": "1s", "description": "Notes it down."},
        "hang_up": {"builtin": "end_call"},
    }
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    gated = scenario.with_value("tools.hang_up.confirm", True)
    assert [spec.name for spec in gated.specs if spec.confirm] == ["hang_up"]


def test_the_schema_offers_every_packaged_tool() -> None:
    from bargein.models.apps.builtin import builtin_specs
    from bargein.sim.scenario.schema import scenario_schema

    offered = scenario_schema()["$defs"]["tool"]["properties"]["builtin"]["enum"]
    assert offered == sorted(builtin_specs())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"tools": {"end": {"builtin": "end_cal"}}},
            'tools.end.builtin: unknown value "end_cal"; the nearest known one is "end_call"',
        ),
        (
            {"tools": {"end": {"builtin": "end_call", "latency": "1s"}}},
            "tools.end: a builtin tool has a kind, parameters and a body of its own; accepted beside builtin are "
            "description, timeout, filler_after, repeatable and confirm",
        ),
        (
            {"tools": {"time": {"builtin": "get_time", "confirm": True}}},
            "tools.time.confirm: a read_only tool has confirm; accepted is confirm on a side_effect",
        ),
        (
            {"session": {"starts_at": "noon"}},
            'session.starts_at: "noon" is no wall time; accepted is ISO 8601 with an offset, such as '
            "2026-01-05T09:00:00Z",
        ),
    ],
)
def test_a_packaged_tool_that_cannot_be_is_refused(change: dict[str, Any], sentence: str) -> None:
    data = {"scenario": "x", "caller": [{"say": "Hi.", "at": "0s"}], "llm": [{"text": "Hi."}], **change}
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_dict(data)
    assert refused.value.sentences == (sentence,)
