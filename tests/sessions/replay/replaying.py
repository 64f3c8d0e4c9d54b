"""Replays every log of a folder in both modes, in a process of its own, and prints a line of JSON for each.

Run as a script by the tests, which start one process for many logs.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path


def main(folder: str) -> None:
    """Replay ``folder/*.log`` in name order."""
    from bargein import sim

    for path in sorted(Path(folder).glob("*.log")):
        for visible in (False, True):
            again = sim.replay(path, visible=visible)
            told = {"log": path.stem, "digest": again.result.digest, "equal": again.equal, "visible": visible}
            print(json.dumps({**told, "again": sha256(again.again.to_bytes()).hexdigest()}))


if __name__ == "__main__":
    main(sys.argv[1])
