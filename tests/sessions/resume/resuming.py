"""Resumes every checkpoint of a folder, in a process of its own, and prints a line of JSON for each.

Run as a script by the tests, which start one process for many checkpoints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: str) -> None:
    """Resume ``folder/*.json`` in name order."""
    from bargein import sim
    from bargein.sim.effects.replay import ReplayRefused

    for path in sorted(Path(folder).glob("*.json")):
        try:
            result = sim.resume(path).result
        except ReplayRefused as refused:
            told = {"refused": str(refused).removeprefix(f"{path}: ")}
        else:
            runs: dict[str, int] = {}
            for record in result.timeline.of("tool.started"):
                if record["side_effect"]:
                    runs[record["call"]] = runs.get(record["call"], 0) + 1
            told = {"digest": result.digest, "runs": runs, "ok": result.ok}
        print(json.dumps({"place": path.stem, **told}))


if __name__ == "__main__":
    main(sys.argv[1])
