"""``bargein run SCENARIO --stack NAME``: the scenario through somebody else's stack, told and judged.

``sim.cli`` calls it. Left out: what is drawn or kept of a run of our own pipeline; of another's one can have the
story, the timeline as a file and the judged invariants.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools
    from bargein.sim.scenario.model import Scenario

__all__ = ["run_through"]


def run_through(
    scenario: Scenario,
    stack: str,
    *,
    tools: Tools | None,
    seed: int | None,
    out: str | None,
    as_json: bool,
    others: dict[str, object],
) -> bool:
    """Run it and say what happened.

    Args:
        out: a folder for ``timeline.jsonl``.
        others: further options of the command, by name; none of them may be given.

    Returns:
        Whether all judged invariants held.

    Raises:
        ScenarioError: the stack, the scenario or an option cannot be used.
    """
    from bargein.sim.lab.stacks import JUDGED, run_stack
    from bargein.sim.report.atomic import write_whole
    from bargein.sim.report.console import print_story
    from bargein.sim.scenario.build import Plan
    from bargein.sim.scenario.places import ScenarioError

    wrong = [name for name, value in others.items() if value not in (None, False, (), [])]
    if wrong:
        raise ScenarioError(f"{', '.join(wrong)} beside --stack; accepted are --json, --out, --seed, --set and --tools")
    run = run_stack(Plan(scenario, tools), stack, seed)
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "timeline.jsonl", run.timeline.to_jsonl().encode())
    if as_json:
        click.echo(json.dumps(run.to_json(), ensure_ascii=False, sort_keys=True))
        return not run.violations
    print_story(run.records)
    click.echo()
    for violation in run.violations:
        click.echo(f"violated: {violation.invariant} at {violation.t} us: {violation.message}")
    verdict = "FAILED" if run.violations else "ok"
    click.echo(
        f"{verdict}: {len(run.violations)} violations of {len(JUDGED)} invariants judged, {stack}, "
        f"digest {run.timeline.digest()[:16]}"
    )
    return not run.violations
