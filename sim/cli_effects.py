"""The commands that go on from what was recorded: ``bargein replay`` and ``bargein resume``.

``cli`` registers them and loads this file when one is called. Left out: recording and saving, which ``bargein run``
does, and everything that these do; they call the functions that Python users call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from bargein.sim.cli import FAILED, HELD, _one_sentence, _own_tools, _tell

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools

__all__ = ["replay", "resume"]


@click.command()
@click.argument("log")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the story.")
@click.option("--visible", is_flag=True, help="Also demand that all became visible on its instant, in its batches.")
@click.option("--scenario", metavar="SCENARIO", help="Prove that this scenario is still the recorded one.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value of it, by dotted path.")
@_one_sentence
@_own_tools
def replay(
    log: str,
    as_json: bool,
    visible: bool,
    scenario: str | None,
    settings: tuple[str, ...],
    tools: Tools | None,
) -> None:
    """Run the call in LOG again, its effects answered by LOG alone; refused where anything has changed."""
    from bargein import sim
    from bargein.sim.scenario.places import ScenarioError

    if settings and scenario is None:
        raise ScenarioError("--set changes nothing here, since a log is what it is; accepted is --scenario with it")
    again = sim.replay(log, scenario=scenario, tools=tools, set=_values(settings), visible=visible)
    if as_json:
        click.echo(json.dumps(again.to_json(), ensure_ascii=False, sort_keys=True))
    else:
        _tell(again.result)
        count = len(again.log.records)
        came = "the same timeline, to the byte" if again.equal else "another timeline than the recorded one"
        click.echo(f"replayed {count} effect{'' if count == 1 else 's'} of {log}, and no handler was called: {came}")
    raise SystemExit(HELD if again.ok else FAILED)


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the story.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value from there on.")
@click.option("--replace", is_flag=True, help="Take --tools as they are now, also where they are declared otherwise.")
@click.option("--record", metavar="LOG", help="Write the effect log of the whole call.")
@_one_sentence
@_own_tools
def resume(
    file: str, as_json: bool, settings: tuple[str, ...], replace: bool, record: str | None, tools: Tools | None
) -> None:
    """Go on from the checkpoint in FILE to the end of the call; nothing that was done is done again."""
    from bargein import sim

    gone_on = sim.resume(file, tools=tools, replace=replace, set=_values(settings), record=record)
    if as_json:
        click.echo(json.dumps(gone_on.to_json(), ensure_ascii=False, sort_keys=True))
    else:
        _tell(gone_on.result)
        place = gone_on.place
        click.echo(f"resumed {file} at {place.at_us} us ({place.why}), after {place.seq} records of the timeline")
    raise SystemExit(HELD if gone_on.ok else FAILED)


def _values(settings: tuple[str, ...]) -> dict[str, Any]:
    from bargein.sim.scenario.setting import split_assignment

    return dict(split_assignment(assignment) for assignment in settings)
