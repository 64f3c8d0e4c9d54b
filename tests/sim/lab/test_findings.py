"""Findings: failures grouped by invariant, with windows of instants, and told apart by kind."""

from __future__ import annotations

import pytest

from bargein.sim.lab.findings import Outcome, failure_kind, group
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.probes import Probe

STOP = Violation("stop_bound", 7, "too long", 0)
CRASH = Violation("crash", 9, "ValueError: no", 0)


def _outcomes(*failing: int, tries: int = 6) -> list[Outcome]:
    return [Outcome("", Probe((at,)), (STOP,) if at in failing else ()) for at in range(tries)]


def test_neighbouring_instants_that_fail_are_one_window() -> None:
    (finding,) = group([Outcome("", Probe(()), ()), *_outcomes(1, 2, 5)])
    assert finding.windows_us == ((1, 2), (5, 5))
    assert (finding.first_at_us, finding.runs, finding.after_runs) == (1, 3, 3)


def test_a_plain_call_that_fails_has_no_first_instant_and_is_the_one_to_look_at() -> None:
    (finding,) = group([*_outcomes(1), Outcome("", Probe(()), (STOP,))])
    assert (finding.first_at_us, finding.first.probe) == (None, Probe(()))


def test_crashes_come_first_and_an_invariant_counts_once_a_run() -> None:
    found = group([Outcome("", Probe((1,)), (STOP, STOP, CRASH))])
    assert [(each.invariant, each.kind, each.runs) for each in found] == [
        ("crash", "crash", 1),
        ("stop_bound", "safety", 1),
    ]


@pytest.mark.parametrize(
    ("invariant", "kind"),
    [
        ("stop_bound", "safety"),
        ("turn_answered", "liveness"),
        ("deadlock", "stuck"),
        ("livelock", "stuck"),
        ("eventstorm", "stuck"),
        ("crash", "crash"),
    ],
)
def test_wrong_stuck_and_crashed_are_told_apart(invariant: str, kind: str) -> None:
    assert failure_kind(invariant) == kind


def test_a_finding_flips_where_one_order_of_ties_holds_and_another_breaks() -> None:
    held, broken = Outcome("", Probe((1,)), ()), Outcome("", Probe((1,), 3), (STOP,))
    also = Outcome("", Probe((1,)), (STOP,))
    assert [finding.flips for finding in group([held, broken])] == [True]
    assert [finding.flips for finding in group([also, broken])] == [False]


def test_of_several_failures_the_one_with_least_to_know_is_shown() -> None:
    pair, tied, plain = Probe((1, 2)), Probe((3,), 1), Probe((4,))
    (finding,) = group([Outcome("", each, (STOP,)) for each in (pair, tied, plain)])
    assert finding.first.probe == plain
