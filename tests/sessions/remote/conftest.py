"""One session with a remote agent whose link takes 100 ms each way.

The caller's turn comes at 1 s and the model answers after a second, so that the first call leaves at 2 s, reaches the
agent at 2.1 s, and a body of one second is answered at 3.2 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.result import Result

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def start(
        rounds: Sequence[Mapping[str, Any]],
        declared: Mapping[str, Any],
        /,
        *,
        link: Mapping[str, Any] | None = None,
        caller: Sequence[Mapping[str, Any]] = (),
        wait: bool = True,
        tie_seed: int | None = None,
        **more: Any,
    ) -> Result:
        """Run it; with ``wait`` the caller stays on the line until 200 s, for what comes late."""
        remote = {"link": {"latency": "100ms", **(link or {})}, "tools": declared, **more.pop("remote", {})}
        lines = [{"say": "Please do it.", "at": "500ms", "level": "decision", "for": "500ms"}, *caller]
        if wait:
            lines.append({"hang_up": True, "at": "200s"})
        script = {"ttft": "1s", "rounds": list(rounds)}
        scenario = {"scenario": "remote", "caller": lines, "llm": script, "remote": remote, **more}
        result = sim.run(scenario, tie_seed=tie_seed)
        assert result.violations == []
        return result

    return start


@pytest.fixture
def messages() -> Callable[[Result], list[tuple[int, str, str, str]]]:
    """What went over the link: ``(ms, sent or lost, type, call)``, what was refused included."""

    def read(result: Result) -> list[tuple[int, str, str, str]]:
        found = []
        for record in result.timeline.of("link.sent", "link.received", "link.lost"):
            kind = record["kind"].removeprefix("link.")
            found.append((record["t"] // 1_000, kind, record["what"], record["call"]))
        return found

    return read


@pytest.fixture
def answers() -> Callable[[Result], list[tuple[int, str, str]]]:
    """How calls were settled: ``(ms, call, outcome)``."""

    def read(result: Result) -> list[tuple[int, str, str]]:
        return [(r["t"] // 1_000, r["call"], r["outcome"]) for r in result.timeline.of("tool.settled")]

    return read
