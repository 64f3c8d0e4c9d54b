"""Scenario files as tests: pytest collects ``*.scenario.yaml`` and compares each with its golden timeline.

Installing the package registers it with pytest. A scenario passes when its invariants and expectations hold and its
timeline equals the ``*.timeline.jsonl`` beside it, where there is one; ``--timeline-update`` writes that file. Each
test writes only its own, whole or not at all, so any number of pytest-xdist workers may run. Every pytest run of a
project that has the package loads this file: nothing of ours is imported before a scenario runs. Left out: what is
checked (the lab's result) and what a difference looks like (``sim.lab.diff``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bargein.sim.lab.result import Result

__all__ = ["ScenarioFile", "ScenarioItem"]

SCENARIO, GOLDEN = ".scenario.yaml", ".timeline.jsonl"
WRITTEN = "bargein_timeline_written"


class ScenarioFailed(Exception):
    """A scenario that did not hold; the arguments are the lines that say why."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--timeline-update`` and ``--scenario-tools``."""
    group = parser.getgroup("bargein", "voice session scenarios")
    group.addoption(
        "--timeline-update",
        action="store_true",
        help=f"write the golden *{GOLDEN} beside each scenario that holds",
    )
    group.addoption(
        "--scenario-tools",
        metavar="MODULE:ATTRIBUTE",
        help="tools in Python that the scenarios may call, as `bargein run --tools` takes them",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Take scenario files; JSON ones are data of something else as often as not, and are left alone."""
    if file_path.name.endswith(SCENARIO):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    """A ``*.scenario.yaml`` file: one test."""

    def collect(self) -> Iterator[ScenarioItem]:
        """The test, without reading the file; a fault in it is that test's failure."""
        yield ScenarioItem.from_parent(self, name=self.path.name.removesuffix(SCENARIO))


class ScenarioItem(pytest.Item):
    """A scenario that must hold, and be the same call as before."""

    def runtest(self) -> None:
        """Run the session once and judge it."""
        from bargein import sim
        from bargein.sim.own_tools import import_tools
        from bargein.sim.scenario.places import ScenarioError

        place = self.config.getoption("scenario_tools")
        try:
            result = sim.run(self.path, tools=None if place is None else import_tools(place))
        except ScenarioError as error:
            raise ScenarioFailed(*error.sentences) from None
        self.user_properties += [("bargein_digest", result.digest), ("bargein_virtual_us", result.virtual_us)]
        wrong = _broken(result)
        if self.config.getoption("timeline_update"):
            if wrong:
                wrong.append("its golden timeline is left as it was: only a call that holds is worth keeping")
            elif self._update(result):
                self.user_properties.append((WRITTEN, _shown(self.golden)))
        else:
            wrong += self._changed(result)
        if wrong:
            raise ScenarioFailed(*wrong)

    @property
    def golden(self) -> Path:
        """Where its golden timeline stands, or would."""
        return self.path.with_name(self.name + GOLDEN)

    def _update(self, result: Result) -> bool:
        """Write the golden timeline, unless it says the same already."""
        from bargein.sim.report.atomic import write_whole

        text = result.timeline.to_jsonl().encode()
        if self.golden.exists() and self.golden.read_bytes() == text:
            return False
        write_whole(self.golden, text)
        return True

    def _changed(self, result: Result) -> list[str]:
        """How the call differs from its golden timeline; nothing where it is the same or there is none."""
        from bargein.sim.lab.diff import TimelineError, compare, read_timeline, tell

        if not self.golden.exists():
            return []
        try:
            golden = read_timeline(self.golden)
        except TimelineError as error:
            return [str(error)]
        difference = compare(golden, result.records)
        if difference is None:
            return []
        return [
            *tell(difference, golden, result.records, (_shown(self.golden), "this run")),
            "",
            f"if this is meant: pytest {_shown(self.path)} --timeline-update",
        ]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was wrong, without a traceback; an error of our own keeps its traceback."""
        if isinstance(excinfo.value, ScenarioFailed):
            return "\n".join(excinfo.value.args)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Place and title of a failure."""
        return self.path, None, f"scenario {self.name}"


def _broken(result: Result) -> list[str]:
    """What a run did that it should not have, a line each, announced violations apart."""
    lines = [f"violated: {each.invariant} at {each.t} us: {each.message}" for each in result.unexpected_violations]
    lines += [f"not as expected: {each.name}: {each.message}" for each in result.expectations if not each.ok]
    return lines


def _shown(path: Path) -> str:
    """The path as one would type it here."""
    return os.path.relpath(path)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which golden timelines were written."""
    written = [
        value
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == WRITTEN and report.when == "call"
    ]
    if written:
        terminalreporter.section("golden timelines written")
        for path in sorted(written):
            terminalreporter.line(path)
