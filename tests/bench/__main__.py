"""``make bench``: what bargein costs, side by side in one run, as medians and ratios. Prints and judges nothing.

``python -m tests.bench`` measures everything in about two minutes; ``python -m tests.bench sessions memory`` only
what is named.
"""

from __future__ import annotations

import sys
from importlib import import_module

from rich.console import Console

BENCHES = {
    "sessions": "one session",
    "text": "its text, and judging it",
    "effects": "recording, replaying, saving and resuming one session",
    "agent_runs": "recording, replaying, saving and loading one agent run",
    "lab": "many sessions",
    "cold_start": "cold start",
    "memory": "memory",
    "stacks": "another framework's session on the same clock",
}


def main(names: list[str]) -> int:
    """Run the benches of these names, or all of them."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"there is no bench called {', '.join(unknown)}; accepted is {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    console = Console(width=120)
    console.print(f"Python {sys.version.split()[0]}")
    for name in names or BENCHES:
        console.print(f"\n[bold]{name}[/bold]: {BENCHES[name]}")
        import_module(f"tests.bench.{name}").run(console)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
