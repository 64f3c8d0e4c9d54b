"""Cold start: a fresh process that prints its help, runs one session, or only starts Python."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from rich.console import Console

from tests.bench.measuring import Both, measured, numbers

__all__ = ["run"]

ROUNDS = 5
BARGEIN = (sys.executable, "-c", "from bargein.sim.cli import main; main(prog_name='bargein')")
COMMANDS = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "python -c 'import simpy, numpy'": (sys.executable, "-c", "import simpy, numpy"),
    "bargein --help": (*BARGEIN, "--help"),
    "bargein run barge_in_during_booking --json": (*BARGEIN, "run", "barge_in_during_booking", "--json"),
}


def run(console: Console) -> None:
    """Start each command in turn."""
    found: dict[str, list[Both]] = {name: [] for name in COMMANDS}
    for number in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            with measured() as figure:
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if number:  # the first one reads the files from the disk
                found[name].append(figure)
    table = numbers("command", "ms on the wall", "ms of processor", "ratio to Python")
    bare = median(each.cpu_s for each in found["python -c pass"])
    for name, figures in found.items():
        cpu = median(each.cpu_s for each in figures)
        wall = median(each.wall_s for each in figures)
        table.add_row(name, f"{wall * 1e3:,.0f}", f"{cpu * 1e3:,.0f}", f"{cpu / bare:.1f}")
    console.print(table)
