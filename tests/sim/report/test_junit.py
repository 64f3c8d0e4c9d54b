"""JUnit XML, read back by a reader of such files."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.lab.invariants import INVARIANTS, Violation
from bargein.sim.report.junit import junit

junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")


def read(result):
    suites = list(junitparser.JUnitXml.fromstring(junit(result)))
    assert len(suites) == 1
    return suites[0]


def verdicts(suite):
    """The cases that did not pass: ``(class, name, verdict, message)``."""
    return [(case.classname, case.name, type(found).__name__, found.message) for case in suite for found in case.result]


def test_a_call_that_holds_has_a_passed_case_for_each_invariant_and_expectation(call):
    result = sim.run(call("Sure.", seed=3, expect={"events": ["turn.user"]}))
    suite = read(result)
    assert [case.name for case in suite] == [*INVARIANTS, "events[0]"]
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("call", 17, 0, 0, 0)
    assert {each.name: each.value for each in suite.properties()} == {
        "seed": "3",
        "digest": result.digest,
        "virtual_us": str(result.virtual_us),
    }
    assert verdicts(suite) == []


def test_what_did_not_hold_is_a_failure_with_every_instant(call):
    result = sim.run(call("Sure.", expect={"events": ["tool.started"]}))
    result.violations += [Violation("stop_bound", 5, "too late", 1), Violation("stop_bound", 9, "again \x00", 2)]
    suite = read(result)
    assert verdicts(suite) == [
        ("call.invariants", "stop_bound", "Failure", "too late"),
        ("call.expect", "events[0]", "Failure", "found 0 of tool.started; wanted at least 1"),
    ]
    assert suite.failures == 2
    assert (
        next(case for case in suite if case.name == "stop_bound").result[0].text == "5 us: too late\n9 us: again \ufffd"
    )


def test_a_simulation_that_could_not_go_on_is_an_error(call):
    result = sim.run(call("Sure."))
    result.violations.insert(0, Violation("crash", 7, "KeyError: 1", 0))
    suite = read(result)
    assert (next(iter(suite)).name, suite.errors, suite.failures) == ("crash", 1, 0)
    assert verdicts(suite) == [("call.invariants", "crash", "Error", "KeyError: 1")]


def test_what_is_off_is_skipped_and_what_is_announced_is_as_expected(call):
    result = sim.run(call("Sure.", invariants={"off": ["quiet_end"]}, expect={"violations": ["stop_bound"]}))
    result.violations.append(Violation("stop_bound", 5, "too late", 1))
    assert verdicts(read(result)) == [
        ("call.invariants", "quiet_end", "Skipped", "the scenario turns it off"),
    ]
