"""``python -m tests.conformance``: what the recordings say, a line a file and a total."""

from __future__ import annotations

from tests.conformance.report import lines, run_lines

if __name__ == "__main__":
    print("\n".join([*lines(), *run_lines()]))
