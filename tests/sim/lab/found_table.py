"""The table of planted faults at the end of a test run: what exploring found, after how much, how fast.

``conftest.py`` brings the hook in. Left out: finding them; ``test_explore.py`` does.
"""

from __future__ import annotations

from typing import Any

__all__ = ["pytest_terminal_summary"]

_HEAD = ["planted fault", "instants tried", "first found after", "seconds", "what", "where"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print it, from the properties that the tests recorded; they travel from xdist's workers too."""
    rows = [
        value
        for report in terminalreporter.stats.get("passed", ())
        for name, value in getattr(report, "user_properties", ())
        if name == "planted"
    ]
    if not rows:
        return
    terminalreporter.section("planted faults, found by exploring the built-ins")
    widths = [max(len(row[at]) for row in [_HEAD, *rows]) for at in range(len(_HEAD))]
    for name, tried, runs, seconds, what, where in [_HEAD, *sorted(rows)]:
        right = [f"{cell:>{width}}" for cell, width in zip((tried, runs, seconds), widths[1:4], strict=True)]
        left = [f"{cell:<{width}}" for cell, width in zip((what, where), widths[4:], strict=True)]
        terminalreporter.write_line("  ".join([f"{name:<{widths[0]}}", *right, *left]).rstrip())
