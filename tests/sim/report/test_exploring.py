"""An exploration in words, and a progress bar that only a terminal sees."""

from __future__ import annotations

import io
import sys

import pytest

from bargein.sim.lab.findings import Exploration, Failure, Finding, Reproduction
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.probes import Probe
from bargein.sim.report.exploring import exploration_lines
from bargein.sim.report.progress import progress_bar


def test_a_finding_says_what_where_and_how_to_see_it_again() -> None:
    failure = Failure(
        "hung tools", Probe((1_500_000,), 2, hang_up=True), Violation("stop_bound", 1_600_000, "too late", 3)
    )
    small = Reproduction("o/x.yaml", "bargein run o/x.yaml --tie-seed 2", 2, 1, True)
    windows = tuple((at, at + 1) for at in range(0, 60, 10))
    finding = Finding("stop_bound", "safety", failure, 12, 5, 0, windows, True, small)
    assert list(exploration_lines(Exploration("s", 10, 30, 40, 2.0, (finding,)))) == [
        "stop_bound (safety: something wrong happened), 12 runs",
        "  first seen     hanging up at 1.5s (hung tools, tie seed 2), after 5 runs",
        "  first instant  0us, windows 0us to 1us; 10us to 11us; 20us to 21us; 30us to 31us; and 2 more",
        "  what           at 1.6s: too late",
        "  ties           it holds in one order of what falls on the same instant and breaks in another",
        "  smallest       2 caller lines, 1 tools",
        "  reproduce      bargein run o/x.yaml --tie-seed 2",
        "",
        "FAILED: 10 instants of 30 (a larger --budget tries them all), 40 runs: 1 invariant broken",
    ]


def test_a_file_that_does_not_fail_again_is_said_to() -> None:
    failure = Failure("", Probe(()), Violation("crash", 1, "ValueError: no", 3))
    finding = Finding("crash", "crash", failure, 1, 1, None, (), False, Reproduction("x", "y", 1, 0, False))
    lines = list(exploration_lines(Exploration("s", 0, 0, 1, 2.0, (finding,))))
    assert lines[:2] == ["crash (crash: a stage raised), 1 runs", "  first seen     the plain call, after 1 runs"]
    assert "  smallest       1 caller lines, 0 tools; it did NOT fail again when the file was run" in lines


@pytest.mark.parametrize(
    ("exploration", "last"),
    [
        (Exploration("s", 3, 3, 4, 2.0, ()), "ok: 3 instants, 4 runs, 2 runs/s: 0 invariants broken"),
        (Exploration("s", 3, 3, 4, 2.0, (), True), "stopped: 3 instants, 4 runs, 2 runs/s: 0 invariants broken"),
    ],
)
def test_the_last_line_says_how_it_went(exploration: Exploration, last: str) -> None:
    assert list(exploration_lines(exploration, rate=True)) == [last]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_sees_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("sweeping", "sessions") as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar("sweeping", "sessions") as tell:
        tell(1, 4)
        tell(3, 4)
    assert "sweeping" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()
