"""The command that talks to a provider: ``bargein record``.

``cli`` registers it and loads this file when it is called. Left out: everything that it does; ``bargein.sim.live``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from bargein.sim.cli import FAILED, HELD, _one_sentence, _own_tools

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools

__all__ = ["record"]


@click.command()
@click.argument("scenario")
@click.option("--provider", metavar="NAME", help="The wire to speak, such as anthropic or ollama.")
@click.option("--model", metavar="NAME", help="The provider's name of the model.")
@click.option("--launch", metavar="FILE", help="Launch settings with both, and endpoint, proxy and the rest, as YAML.")
@click.option("--out", required=True, metavar="FILE", help="Where the cassette goes.")
@click.option("--redact", multiple=True, metavar="REGEX", help="Leave what matches out of FILE; may be repeated.")
@click.option("--seed", type=int, metavar="N", help="Seed of the random streams, instead of the scenario's.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value, by dotted path.")
@_one_sentence
@_own_tools
def record(
    scenario: str,
    provider: str | None,
    model: str | None,
    launch: str | None,
    out: str,
    redact: tuple[str, ...],
    seed: int | None,
    settings: tuple[str, ...],
    tools: Tools | None,
) -> None:
    """Run SCENARIO once with a real provider for a model, and keep requests, bytes and times as a cassette.

    The key is read from <PROVIDER>_API_KEY and the address from <PROVIDER>_BASE_URL, unless the launch settings say
    otherwise; neither is written anywhere.
    """
    from bargein import sim
    from bargein.models.cassettes import dump_cassette
    from bargein.sim.live.recording import launched, play
    from bargein.sim.live.recording import record as record_now
    from bargein.sim.live.story import story_lines
    from bargein.sim.report.atomic import write_whole
    from bargein.sim.scenario.places import ScenarioError
    from bargein.sim.scenario.setting import split_assignment

    chosen = sim.load(scenario, tools=tools)
    for assignment in settings:
        chosen = chosen.with_value(*split_assignment(assignment))
    wire, name, fetcher = launched(provider, model, launch, os.environ)
    recorded = record_now(
        chosen, wire, name, environ=os.environ, redact=redact, tools=tools, seed=seed, fetcher=fetcher
    )
    write_whole(out, dump_cassette(recorded.cassette).encode("utf-8", "surrogatepass"))
    for line in story_lines(recorded.result):
        click.echo(line)
    click.echo(f"wrote {out}: {len(recorded.cassette.exchanges)} exchanges", err=True)
    try:
        played = play(recorded.cassette, chosen, tools=tools, seed=seed)
    except ScenarioError as error:
        click.echo(f"FAILED: the cassette does not play back: {error}")
        raise SystemExit(FAILED) from None
    same = "as it was recorded" if played.digest == recorded.result.digest else "otherwise, since it was redacted"
    for violation in recorded.result.violations:
        click.echo(f"violated: {violation.invariant} at {violation.t} us: {violation.message}")
    ok = not recorded.result.violations
    click.echo(f"{'ok' if ok else 'FAILED'}: the cassette plays back {same}, digest {played.digest[:16]}")
    raise SystemExit(HELD if ok else FAILED)
