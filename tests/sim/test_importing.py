"""Importing the package leaves the process as it was: no handlers, hooks, filters, seeds or variables are set."""

from __future__ import annotations

import subprocess
import sys

LOOK = """
import locale, logging, os, random, signal, sys, threading, warnings

def state():
    return (
        list(logging.root.handlers), logging.root.level, logging.lastResort,
        [signal.getsignal(number) for number in signal.valid_signals()],
        list(warnings.filters), sys.excepthook, sys.getrecursionlimit(), sys.getswitchinterval(),
        locale.setlocale(locale.LC_ALL), dict(os.environ), os.getcwd(), random.getstate(), threading.active_count(),
    )

import numpy, simpy, click, yaml
before = state()
import bargein.sim, bargein.sim.cli, bargein.sim.lab.session, bargein.sim.scenario.build, bargein.models.apps.demo
names = "handlers level fallback signals warnings hook recursion interval locale environ folder random threads".split()
print([name for name, old, new in zip(names, before, state(), strict=True) if old != new])
"""


def test_importing_the_package_sets_nothing_for_the_whole_process():
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
