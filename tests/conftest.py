"""Short calls as plain data, and readers of what came of them.

A short call is a placed "Hi." from 100 to 400 ms, answered by the given reply: first token at 750 ms (350 ms after
the turn), first audio 150 ms after the first whole sentence. "All right." answers everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sim.lab import found_table

HI = {"say": "Hi.", "at": "100ms", "level": "decision", "for": "300ms"}


@pytest.fixture(scope="session")
def call() -> Callable[..., dict[str, Any]]:
    """``call(reply, *more_lines, **keys)``: a short call; ``reply`` is a text or a whole round."""

    def build(reply: str | dict[str, Any], *lines: dict[str, Any], **keys: Any) -> dict[str, Any]:
        first = {"text": reply} if isinstance(reply, str) else reply
        rules = [{"when": {"user": "Hi", "round": 1}, **first}]
        llm = {"rules": rules, "else": {"text": "All right."}}
        return {"scenario": "call", "caller": [HI, *lines], "llm": llm, **keys}

    return build


@pytest.fixture(scope="session")
def cut_in() -> Callable[..., dict[str, Any]]:
    """``cut_in(at_us)``: a placed line, so that the barge-in is decided at exactly that instant."""

    def build(at_us: int, say: str = "Wait.", for_us: int = 300_000) -> dict[str, Any]:
        return {"say": say, "at": f"{at_us}us", "level": "decision", "for": f"{for_us}us"}

    return build


@pytest.fixture(scope="session")
def events() -> Callable[..., list[tuple[Any, ...]]]:
    """``events(result, kind, ...)``: ``(t, kind, *values)`` of these kinds, in order."""

    def read(result: Any, *kinds: str) -> list[tuple[Any, ...]]:
        return [(row[0], row[1], *row[3:]) for row in result.timeline.rows if row[1] in kinds]

    return read


@pytest.fixture(scope="session")
def said() -> Callable[..., list[tuple[str, str]]]:
    """``said(result)``: the final context as ``(role, text)``, a tool message with its content."""

    def read(result: Any) -> list[tuple[str, str]]:
        return [(each["role"], each.get("text") or each.get("content") or "") for each in result.context]

    return read


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many planted faults were caught; with ``-v`` also by what."""
    passed = terminalreporter.stats.get("passed", [])
    caught = [value for report in passed for key, value in report.user_properties if key == "mutant"]
    failed = terminalreporter.stats.get("failed", [])
    missed = [report.nodeid for report in failed if "find" in report.nodeid and "planted_fault[" in report.nodeid]
    if caught or missed:
        terminalreporter.section("planted faults")
        if terminalreporter.verbosity > 0:
            for line in sorted(caught):
                terminalreporter.write_line(line)
        for node in missed:
            terminalreporter.write_line(f"not caught: {node}")
        terminalreporter.write_line(f"{len(caught)} of {len(caught) + len(missed)} mutants caught")
    found_table.pytest_terminal_summary(terminalreporter)
