"""Running named tests inside a test, with a fault planted in this very process.

A fault is a changed attribute of a loaded class or module, so the tests have to run here and not in a process of
their own. Left out: the faults, and which tests must catch them (``catalogue``).
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["Seen", "run_tests"]

ROOT = Path(__file__).parents[2]
MISFITS = re.compile(r"TypeError: .* argument|AttributeError|NameError|ImportError|ModuleNotFoundError")
"""What a fault raises that does not fit the code it was written for; a test that meets it has found nothing."""
PLUGINS_OFF = ("cacheprovider", "xdist", "faulthandler", "junitxml", "unraisableexception", "threadexception")
"""What a run inside a run has no use for; the last two collect the garbage of the whole process, again and again."""


@dataclass(eq=False)
class Seen:
    """What became of the named tests.

    Attributes:
        passed: node ids, in the order they ran.
        failed: node ids of tests that found something wrong, with what each found.
        misfit: the same of tests that met a fault which does not fit the code any more.
        status: of the session; ``USAGE_ERROR`` where a named test does not exist.
        output: what the session printed.
    """

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    misfit: dict[str, str] = field(default_factory=dict)
    status: int = -1
    output: str = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sort a test's own outcome; a failing set-up is no finding, and shows in the status alone."""
        if report.when != "call":
            return
        if not report.failed:
            self.passed.append(report.nodeid)
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        found = "" if crash is None else str(crash.message)
        (self.misfit if MISFITS.match(found) else self.failed)[report.nodeid] = found


def run_tests(ids: Sequence[str], *options: str) -> Seen:
    """Run tests by their ids, which start at ``tests/``, with more options of pytest's."""
    seen = Seen()
    printed = io.StringIO()
    place = [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}"]
    off = [part for name in PLUGINS_OFF for part in ("-p", f"no:{name}")]
    arguments = [*[str(ROOT / each) for each in ids], *place, *off, "-q", "--capture=no", "--tb=line"]
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        seen.status = int(pytest.main([*arguments, *options], plugins=[seen]))
    seen.output = printed.getvalue()
    return seen
