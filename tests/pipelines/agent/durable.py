"""Goes on with programs of which nothing is left but two texts, and prints a line of JSON for each.

Run as a script by a test: ``NAME.head.log`` is what had an outcome when the first world was cut off, ``NAME.json`` the
runs as they stood there. Handlers are made anew; what they are asked is what was not answered in the head.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_logs import log_of_runs
from bargein.pipelines.agent.run_restore import load_runs
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.tails import LogCheckpoint

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.pipelines.agent.checkpoint_kit import wait
from tests.pipelines.agent.tail_kit import PROGRAMS, before_of, endings, recording, rows


def gone_on(name: str, folder: Path) -> dict[str, Any]:
    """One program to its end."""
    head = EffectLog.from_bytes((folder / f"{name}.head.log").read_bytes(), "head.log")
    state = RunCheckpoint.from_bytes((folder / f"{name}.json").read_bytes())
    world, recorder = recording(PROGRAMS[name], before_of(head))
    wait(world, state.at_us)
    load_runs(state, world.runs)
    world.clock.run()
    tail = EffectLog.from_bytes(log_of_runs(world.runs, recorder, name="tail.log").to_bytes(), "tail.log")
    checkpoint = LogCheckpoint(head, (), state.next_id, head.header["deliveries"], state)
    whole = EffectLog.from_checkpoint(checkpoint, tail)
    return {
        "name": name,
        "endings": repr(endings(world)),
        "tail": [record.to_dict() for record in tail.records],
        "ids": [record.id for record in whole.records],
        "deliveries": whole.header["deliveries"],
        "rows": rows(world),
    }


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        print(json.dumps(gone_on(path.stem, path.parent)))
