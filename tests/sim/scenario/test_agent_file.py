"""Agent files: read, checked with places, and in a scenario."""

from __future__ import annotations

import re
import socket
from importlib.resources import files

import pytest
from click.testing import CliRunner

from bargein import sim
from bargein.models.apps import demo
from bargein.pipelines.settings import BargeInWhen
from bargein.sim.cli import main
from bargein.sim.scenario.agent_file import check_agent_file, read_agent
from bargein.sim.scenario.model import Filler, Phrase, dump
from bargein.sim.scenario.places import ScenarioError

TOML = """
[agent]
system = "You help."
tools = ["a", "end_call"]
confirm_tools = ["end_call"]
max_tool_rounds = 2

[llm]
model = "m"

[filler]
delay_ms = 900
phrases = ["One second."]

[interruption]
when = "audible"
min_speech_ms = 120
"""
YAML = """
agent:
  system: You help.
  tools: [a, end_call]
  confirm_tools: [end_call]
  max_tool_rounds: 2
llm: {model: m}
filler:
  delay_ms: 900
  phrases: [One second.]
interruption: {when: audible, min_speech_ms: 120}
"""
SCENARIO = """
scenario: desk
agent: {file: FILE}
tools:
  a: {result: A}
  b: {result: B}
  c: {result: C}
caller:
  - {say: Hello there., at: 500ms, level: decision, for: 500ms}
llm:
  - {calls: CALLS}
  - {text: Done.}
"""


def write(folder, agent, calls="[{a: {}}]", name="agent.toml", scenario=SCENARIO):
    """A scenario beside an agent file; the scenario's path."""
    (folder / name).write_text(agent, encoding="utf-8")
    path = folder / "desk.scenario.yaml"
    path.write_text(scenario.replace("FILE", name).replace("CALLS", calls), encoding="utf-8")
    return path


def outcomes(result):
    return [(record["tool"], record["outcome"]) for record in result.timeline.of("tool.settled")]


def invoke(*arguments):
    outcome = CliRunner().invoke(main, [str(each) for each in arguments])
    return outcome.exit_code, outcome.output


# -- what a file means ------------------------------------------------------------------------------------------


def test_toml_and_yaml_say_the_same():
    agent = read_agent(TOML, "agent.toml")
    assert agent == read_agent(YAML, "agent.yaml")
    assert agent.block == {
        "system": "You help.",
        "tools": ["a", "end_call"],
        "confirm_tools": ["end_call"],
        "max_tool_rounds": 2,
        "model": "m",
        "filler": {"phrases": ["One second."], "delay": "900ms"},
        "turn": {"min_speech": "120ms", "barge_in": "audible"},
    }


def test_a_scenario_that_names_a_file_has_its_settings(tmp_path):
    scenario = sim.load(write(tmp_path, TOML))
    agent = scenario.agent
    assert (agent.system, agent.model, agent.max_tool_rounds) == ("You help.", "m", 2)
    assert agent.filler == Filler(delay_us=900_000, phrases=(Phrase("One second."),))
    assert (agent.turn.barge_in, agent.turn.min_speech_us) == (BargeInWhen.AUDIBLE, 120_000)


def test_a_file_without_a_table_keeps_the_defaults_and_has_no_tools(tmp_path):
    scenario = sim.load(write(tmp_path, '[agent]\nsystem = "x"\n', calls="[]"))
    plain = sim.load({"scenario": "desk", "agent": {"system": "x", "tools": []}})
    assert (scenario.agent, scenario.specs) == (plain.agent, ())


def test_fillers_can_be_switched_off_or_follow_each_tool(tmp_path):
    off = sim.load(write(tmp_path, TOML.replace("delay_ms = 900", "enabled = false")))
    per_tool = sim.load(write(tmp_path, TOML.replace("delay_ms = 900", "per_tool = true")))
    assert (off.agent.filler.enabled, per_tool.agent.filler.per_tool) == (False, True)


def test_the_provider_is_the_wire_unless_the_scenario_names_one(tmp_path):
    agent = TOML.replace('model = "m"', 'provider = "anthropic"') + '[tts]\nvoice = "caller"\n'
    scenario = sim.load(write(tmp_path, agent))
    assert (scenario.llm.wire, scenario.tts.voice) == ("anthropic", "caller")
    chosen = SCENARIO.replace("llm:\n", "tts: {voice: agent}\nllm:\n  wire: gemini\n  rounds:\n").replace(
        "  - {calls", "  - {calls"
    )
    kept = sim.load(write(tmp_path, agent, scenario=chosen))
    assert (kept.llm.wire, kept.tts.voice) == ("gemini", "agent")


def test_keys_beside_the_file_win_over_it(tmp_path):
    scenario = SCENARIO.replace("{file: FILE}", "{file: FILE, system: Mine., filler: off}")
    agent = sim.load(write(tmp_path, TOML, scenario=scenario)).agent
    assert (agent.system, agent.filler.enabled, agent.model) == ("Mine.", False, "m")


def test_a_loaded_scenario_stands_without_its_agent_file(tmp_path):
    scenario = sim.load(write(tmp_path, TOML))
    (tmp_path / "agent.toml").unlink()
    again = tmp_path / "again.scenario.yaml"
    again.write_text(dump(scenario), encoding="utf-8")
    assert sim.load(again) == scenario
    assert scenario.with_value("agent.filler.delay", "1s").agent.filler.delay_us == 1_000_000


# -- which tools there are --------------------------------------------------------------------------------------


def test_the_agent_has_the_tools_that_it_lists_and_no_others(tmp_path):
    agent = '[agent]\nsystem = "x"\ntools = ["a", "c"]\n'
    result = sim.run(write(tmp_path, agent, calls="[{a: {}}, {tool: b, unknown: true}, {c: {}}]"))
    assert sorted(outcomes(result)) == [("a", "ok"), ("b", "unknown_tool"), ("c", "ok")]
    assert [record["tools"] for record in result.timeline.of("llm.request")] == [2, 2]


def test_a_packaged_tool_that_it_lists_is_there(tmp_path):
    agent = '[agent]\nsystem = "x"\ntools = ["end_call"]\n'
    assert outcomes(sim.run(write(tmp_path, agent, calls="[{end_call: {}}]"))) == [("end_call", "ok")]


def test_the_scenarios_own_tool_goes_before_a_packaged_one_of_its_name(tmp_path):
    scenario = SCENARIO.replace("  a: {result: A}", "  a: {result: A}\n  end_call: {result: mine}")
    agent = '[agent]\nsystem = "x"\ntools = ["end_call"]\n'
    result = sim.run(write(tmp_path, agent, calls="[{end_call: {}}]", scenario=scenario))
    assert [message["content"] for message in result.context if message["role"] == "tool"] == ["mine"]


def test_a_fault_of_a_key_beside_the_file_is_the_scenarios(tmp_path):
    scenario = SCENARIO.replace("{file: FILE}", "{file: FILE, tools: [ghost]}")
    path = write(tmp_path, '[agent]\nsystem = "x"\n', calls="[]", scenario=scenario)
    with pytest.raises(ScenarioError) as refused:
        sim.load(path)
    assert refused.value.sentences[0].startswith(f'{path}:3: agent.tools[0]: nobody provides the tool "ghost"')


def test_confirm_tools_gate_tools_that_were_declared_without(tmp_path):
    agent = '[agent]\nsystem = "x"\ntools = ["transfer_call"]\nconfirm_tools = ["transfer_call"]\n'
    result = sim.run(write(tmp_path, agent, calls='[{transfer_call: {to: "12"}}]'))
    assert outcomes(result) == [("transfer_call", "confirmation_required")]
    assert result.scenario.specs[0].confirm
    assert [record["tools"] for record in result.timeline.of("llm.request")] == [2, 2]


def test_the_tools_of_a_link_are_listed_nowhere_and_are_there(tmp_path):
    remote = SCENARIO + "remote: {tools: {far: {latency: 1s, result: R}}}\n"
    path = write(tmp_path, '[agent]\nsystem = "x"\n', calls="[{far: {}}]", scenario=remote)
    assert outcomes(sim.run(path)) == [("far", "ok")]


def test_a_tool_that_nobody_provides_keeps_the_session_from_starting(tmp_path):
    path = write(tmp_path, '[agent]\nsystem = "x"\ntools = [\n  "a",\n  "ghost",\n]\n')
    code, output = invoke("run", path)
    assert (code, output) == (
        2,
        'agent.toml:5: agent.tools[1]: nobody provides the tool "ghost"; accepted is a tool of a scenario\'s tools, '
        "--tools MODULE:ATTRIBUTE or a packaged one (book_table, end_call, get_notes, get_time, save_note, send_dtmf, "
        "transfer_call)\n",
    )


def test_a_demo_tool_is_refused_with_what_would_provide_it_and_runs_with_that(tmp_path):
    agent = '[agent]\nsystem = "x"\ntools = ["lookup_order"]\n'
    path = write(tmp_path, agent, calls='[{lookup_order: {number: "1001"}}]')
    with pytest.raises(ScenarioError) as refused:
        sim.load(path)
    assert refused.value.sentences[0] == (
        'agent.toml:3: agent.tools[0]: nobody provides the tool "lookup_order"; it is a demo tool: accepted is '
        "--tools bargein.models.apps.demo:tools"
    )
    assert outcomes(sim.run(path, tools=demo.tools)) == [("lookup_order", "ok")]


@pytest.mark.parametrize(
    ("lines", "sentences"),
    [
        (
            'tools = ["a"]\nconfirm_tools = ["end_call"]',
            ['agent.toml:4: agent.confirm_tools[0]: "end_call" is not among the agent\'s tools; accepted is one of '
             'them: "a"'],
        ),
        (
            'tools = ["confirm_pending"]\nconfirm_tools = ["confirm_pending"]',
            [f'agent.toml:{line}: agent.{key}[0]: "confirm_pending" comes by itself with a tool that needs it; '
             "accepted is any other tool" for line, key in ((3, "tools"), (4, "confirm_tools"))],
        ),
        (
            'tools = ["a"]\nconfirm_tools = ["a"]',
            ['agent.toml:4: agent.confirm_tools[0]: "a" is read_only and changes nothing; accepted is a side_effect'],
        ),
        ('tools = ["a",\n"a"]', ['agent.toml:4: agent.tools[1]: "a" is listed twice; accepted is once']),
    ],
)  # fmt: skip
def test_lists_of_tools_that_cannot_be_are_refused_in_a_scenario(tmp_path, lines, sentences):
    with pytest.raises(ScenarioError) as refused:
        sim.load(write(tmp_path, f'[agent]\nsystem = "x"\n{lines}\n', calls="[]"))
    assert list(refused.value.sentences) == sentences


def test_an_agent_block_may_list_tools_as_a_file_does():
    data = {"scenario": "s", "agent": {"tools": ["a", "get_time"], "confirm_tools": ["a"]}}
    scenario = sim.load({**data, "tools": {"a": {"kind": "side_effect"}, "b": {}}})
    assert [(spec.name, spec.confirm) for spec in scenario.specs] == [("a", True), ("get_time", False)]
    assert sim.load(scenario.to_dict()) == scenario


# -- checking ---------------------------------------------------------------------------------------------------


def test_check_reports_every_fault_with_its_place(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        "[agent]\n"
        'tools = ["ghost", "end_call"]\n'
        'confirm_tools = ["transfer_call"]\n'
        "[llm]\n"
        'provider = "antropic"\n'
        "[filler]\n"
        "delay_ms = 900\n"
        "per_tool = true\n"
        "[filler.tool_phrases]\n"
        'end_cal = ["Bye."]\n'
        "[interruption]\n"
        'when = "audibly"\n'
        "min_speech = 3\n",
        encoding="utf-8",
    )
    code, output = invoke("check", path)
    found = [re.sub(r"^.*agent\.toml:", "", line) for line in output.splitlines()]
    assert code == 2
    assert [line.partition(";")[0] for line in found] == [
        '1: agent: the key "system" is missing',
        '2: agent.tools[0]: nobody provides the tool "ghost"',
        '3: agent.confirm_tools[0]: "transfer_call" is not among the agent\'s tools',
        '5: llm.provider: unknown provider "antropic"',
        "6: filler: delay_ms and per_tool are both given",
        '10: filler.tool_phrases.end_cal: unknown tool "end_cal"',
        '12: interruption.when: unknown value "audibly"',
        '13: interruption.min_speech: unknown key "min_speech"',
    ]


def test_check_works_offline_and_knows_the_programs_own_tools(tmp_path, monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("check opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    path = tmp_path / "agent.yaml"
    path.write_text("agent: {system: x, tools: [book_appointment]}\n", encoding="utf-8")
    assert invoke("check", path)[0] == 2
    assert invoke("check", path, "--tools", "bargein.models.apps.demo:tools") == (0, f"{path}: ok\n")
    own = CliRunner().invoke(main, ["check", str(path)], obj=demo.tools)
    assert (own.exit_code, own.output) == (0, f"{path}: ok\n")


def test_check_takes_scenarios_and_agents_together(tmp_path):
    path = write(tmp_path, TOML)
    (tmp_path / "plain.toml").write_text('[agent]\nsystem = "x"\n', encoding="utf-8")
    code, output = invoke("check", path, tmp_path / "plain.toml")
    assert (code, output) == (0, f"{path}: ok\n{tmp_path / 'plain.toml'}: ok\n")


def test_the_command_tells_about_itself():
    assert invoke("--help")[0] == 0
    assert re.fullmatch(r"bargein, version \S+\n", invoke("--version")[1])
    code, output = invoke()
    assert (code in (0, 2), "check" in output) == (True, True)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../agent.toml", '"../agent.toml" leaves the scenario\'s folder; accepted is an agent file inside it'),
        ("none.toml", 'there is no file "none.toml"; accepted is an agent file in the scenario\'s folder'),
    ],
)
def test_an_agent_file_is_inside_the_scenarios_folder(tmp_path, name, problem):
    path = tmp_path / "s.scenario.yaml"
    path.write_text(f"scenario: s\nagent: {{file: {name}}}\n", encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        sim.load(path)
    assert refused.value.sentences == (f"{path}:2: agent.file: {problem}",)


def test_plain_data_has_no_folder_for_an_agent_file():
    with pytest.raises(ScenarioError) as refused:
        sim.load({"scenario": "s", "agent": {"file": "a.toml"}})
    assert refused.value.sentences == (
        'agent.file: "a.toml" has no folder to be in; accepted is an agent file of a scenario that is a file',
    )


def test_an_agent_file_is_no_scenario(tmp_path):
    write(tmp_path, TOML)
    code, output = invoke("run", tmp_path / "agent.toml")
    assert code == 2
    assert output.endswith("agent.toml: it is an agent file; accepted is a scenario, which may name it as agent: "
                           "{file: ...}\n")  # fmt: skip


# -- the examples -------------------------------------------------------------------------------------------------


def examples():
    return sorted(path.name for path in files("bargein.models.apps").joinpath("examples").iterdir())


def test_there_are_examples():
    assert examples() == ["order_desk.toml"]


@pytest.mark.parametrize("name", examples())
def test_an_example_fits_the_demo_tools_and_is_refused_without_them(name):
    path = files("bargein.models.apps").joinpath("examples", name)
    agent = check_agent_file(path, name, demo.tools.specs)
    assert {"lookup_order", "book_appointment"} <= set(agent.tools)
    with pytest.raises(ScenarioError) as refused:
        check_agent_file(path, name)
    assert [re.findall('"(.*?)"', each)[0] for each in refused.value.sentences] == ["lookup_order", "book_appointment"]


def test_a_renamed_tool_makes_its_example_stale():
    path = files("bargein.models.apps").joinpath("examples", "order_desk.toml")
    renamed = [spec for spec in demo.tools.specs if spec.name != "book_appointment"]
    with pytest.raises(ScenarioError, match='nobody provides the tool "book_appointment"'):
        check_agent_file(path, "order_desk.toml", renamed)
