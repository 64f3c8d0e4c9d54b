"""Scenario files under pytest: collected, compared with their golden timelines, rewritten when told."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree as Xml

import pytest

from bargein import sim
from bargein.sim.scenario.loading import load_text

pytest_plugins = ["pytester"]

SCENARIO = """\
scenario: greeting
caller:
  - {say: "Hi.", at: 100ms, level: decision, for: 300ms}
llm:
  - {text: "Hello there."}
"""


@pytest.fixture(scope="module", autouse=True)
def loaded():
    """Runs a session before any inner pytest does, since those forget what they import, and NumPy loads only once."""
    sim.run(load_text(SCENARIO))


def with_scenarios(pytester, *names, text=SCENARIO, golden=True):
    """Scenario files in a folder of their own, each with its golden timeline."""
    folder = pytester.mkdir("calls")
    for name in names:
        (folder / f"{name}.scenario.yaml").write_text(text)
        if golden:
            timeline = sim.run(load_text(text)).timeline.to_jsonl()
            (folder / f"{name}.timeline.jsonl").write_text(timeline)
    return folder


def shown(result, first):
    """The lines of a failure from the one that begins so, up to the next rule."""
    lines = result.outlines
    start = next(at for at, line in enumerate(lines) if line.startswith(first))
    end = next(at for at in range(start, len(lines)) if lines[at].startswith("===="))
    return lines[start:end]


def changed(folder, name, by_us):
    """Move the session's end in a golden timeline."""
    path = folder / f"{name}.timeline.jsonl"
    lines = path.read_text().splitlines()
    last = json.loads(lines[-1])
    path.write_text("\n".join([*lines[:-1], json.dumps({**last, "t": last["t"] + by_us})]) + "\n")
    return last["t"]


def test_a_scenario_is_a_test_that_passes_with_and_without_a_golden_timeline(pytester):
    folder = with_scenarios(pytester, "one")
    (folder / "two.scenario.yaml").write_text(SCENARIO)
    (folder / "three.yaml").write_text("not: a scenario")
    result = pytester.runpytest("-v")
    result.assert_outcomes(passed=2)
    assert [line.split()[0] for line in result.outlines if "PASSED" in line] == [
        "calls/one.scenario.yaml::one",
        "calls/two.scenario.yaml::two",
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        "one.scenario.yaml",
        "one.timeline.jsonl",
        "three.yaml",
        "two.scenario.yaml",
    ]


def test_a_moved_time_fails_with_what_moved_and_by_how_much(pytester):
    folder = with_scenarios(pytester, "one")
    end_us = changed(folder, "one", 20_000)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    text = shown(result, "only times moved")
    count = len(sim.run(load_text(SCENARIO)).records)
    assert text[0] == (
        f"only times moved: 1 of {count} events, first event {count - 1} (session.ended) by -20ms, none by more"
    )
    assert text[1:3] == ["--- calls/one.timeline.jsonl", "+++ this run"]
    assert text[4] == (f"first difference: event {count - 1}, session.ended: t {end_us + 20_000} -> {end_us} (-20ms)")
    assert [line[0] for line in text[5:10]] == [" ", " ", " ", "-", "+"]
    assert text[-1] == "if this is meant: pytest calls/one.scenario.yaml --timeline-update"
    assert not [line for line in result.outlines if "Traceback" in line or "pytest_plugin.py" in line]


def test_timeline_update_writes_what_is_missing_or_changed_and_says_so(pytester):
    folder = with_scenarios(pytester, "one", "two")
    (folder / "three.scenario.yaml").write_text(SCENARIO)
    wanted = (folder / "two.timeline.jsonl").read_bytes()
    kept = (folder / "two.timeline.jsonl").stat().st_mtime_ns
    changed(folder, "one", 20_000)
    result = pytester.runpytest("--timeline-update")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*golden timelines written*", "calls/one.timeline.jsonl", "calls/three.timeline.jsonl", "", "*3 passed*"],
        consecutive=True,
    )
    assert {path.read_bytes() for path in folder.glob("*.timeline.jsonl")} == {wanted}
    assert (folder / "two.timeline.jsonl").stat().st_mtime_ns == kept
    pytester.runpytest().assert_outcomes(passed=3)


def test_a_call_that_does_not_hold_fails_and_never_becomes_golden(pytester):
    text = SCENARIO + "expect: {events: [tool.started]}\n"
    folder = with_scenarios(pytester, "one", text=text, golden=False)
    line = "not as expected: events[0]: found 0 of tool.started; wanted at least 1"
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert shown(result, "not as") == [line]
    updated = pytester.runpytest("--timeline-update")
    updated.assert_outcomes(failed=1)
    assert shown(updated, "not as") == [
        line,
        "its golden timeline is left as it was: only a call that holds is worth keeping",
    ]
    assert not (folder / "one.timeline.jsonl").exists()


def test_a_fault_in_a_file_is_its_sentence(pytester):
    with_scenarios(pytester, "one", text=SCENARIO.replace("text:", "txt:"), golden=False)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert [line for line in result.outlines if "one.scenario.yaml:5" in line and "txt" in line]
    assert not [line for line in result.outlines if "Traceback" in line]


def test_a_golden_file_that_is_no_timeline_is_named(pytester):
    folder = with_scenarios(pytester, "one")
    (folder / "one.timeline.jsonl").write_text("nope\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*one.timeline.jsonl: line 1 is not JSON: *; accepted is a timeline in JSON lines*"])


def test_a_golden_file_with_other_line_ends_is_the_same_timeline(pytester):
    folder = with_scenarios(pytester, "one")
    golden = folder / "one.timeline.jsonl"
    golden.write_bytes(golden.read_bytes().replace(b"\n", b"\r\n"))
    pytester.runpytest().assert_outcomes(passed=1)


def test_it_runs_in_parallel(pytester):
    folder = with_scenarios(pytester, "one", "two", "three", golden=False)
    result = pytester.runpytest_subprocess("-n", "2", "--timeline-update")
    result.assert_outcomes(passed=3)
    written = [line for line in result.outlines if line.startswith("calls/")]
    assert written == ["calls/one.timeline.jsonl", "calls/three.timeline.jsonl", "calls/two.timeline.jsonl"]
    assert len({path.read_bytes() for path in folder.glob("*.timeline.jsonl")}) == 1
    changed(folder, "two", 20_000)
    result = pytester.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=2, failed=1)
    assert shown(result, "only times moved")


def test_pytests_own_junit_report_has_the_difference_and_the_digest(pytester):
    changed(with_scenarios(pytester, "one"), "one", 20_000)
    pytester.runpytest("--junit-xml=report.xml")
    case = Xml.parse("report.xml").find("testsuite/testcase")
    assert (case.get("classname"), case.get("name")) == ("calls.one.scenario.yaml", "one")
    assert case.find("failure").text.startswith("only times moved: 1 of ")
    result = sim.run(load_text(SCENARIO))
    assert {each.get("name"): each.get("value") for each in case.find("properties")} == {
        "bargein_digest": result.digest,
        "bargein_virtual_us": str(result.virtual_us),
    }


def test_scenarios_may_call_the_tools_of_the_project(pytester):
    pytester.makepyfile(
        my_tools="""
        from bargein.sim import Tools

        tools = Tools()

        @tools.read_only
        def look_up(day: str) -> str:
            "Looks up a day."
            return "free"
        """
    )
    text = SCENARIO.replace('{text: "Hello there."}', "{calls: [{look_up: {day: friday}}]}\n  - {text: Free.}")
    with_scenarios(pytester, "one", text=text + "expect: {tool_runs: {look_up: 1}}\n", golden=False)
    pytester.runpytest_subprocess("--scenario-tools", "my_tools:tools").assert_outcomes(passed=1)
    pytester.runpytest("--scenario-tools", "nothing").assert_outcomes(failed=1)


def test_a_run_of_pytest_without_scenarios_loads_nothing_of_ours():
    script = "import sys, bargein.sim.pytest_plugin; print(sorted(n for n in sys.modules if n.startswith('bargein')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded == "['bargein', 'bargein.sim', 'bargein.sim.pytest_plugin']\n"
