"""The commands that run many sessions: ``bargein explore`` and ``bargein sweep``.

``cli`` registers them and loads this file when one is called. Left out: everything that they do; they call the
functions that Python users call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bargein.sim.cli import FAILED, HELD, _complain, _one_sentence, _own_tools

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools
    from bargein.sim.lab.sweep.table import Table
    from bargein.sim.scenario.model import Scenario

__all__ = ["explore", "sweep"]

STOPPED = 130
"""Exit status after Ctrl-C, as a shell gives it."""


@click.command()
@click.argument("scenario")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the report.")
@click.option("--level", default="decision", show_default=True, help="decision places the barge-in; audio speaks.")
@click.option("--depth", default=1, show_default=True, metavar="N", help="Interjections in one call, at most.")
@click.option("--ties", default=0, show_default=True, metavar="N", help="Also N other orders of simultaneous events.")
@click.option("--instant-tools", is_flag=True, help="Also with tools that answer at once.")
@click.option("--hung-tools", is_flag=True, help="Also with tools that never answer.")
@click.option("--hang-up", is_flag=True, help="Also with the caller hanging up there.")
@click.option("--grid", metavar="DURATION", help="Also an instant this often, such as 10ms.")
@click.option("--budget", type=int, metavar="N", help="Runs at most; instants beyond it are sampled.  [default: 10000]")
@click.option("--seed", type=int, metavar="N", help="Seed of the random streams and of the sample.")
@click.option("--workers", default=1, show_default=True, metavar="N", help="Processes to share the runs.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value, by dotted path.")
@click.option("--out", default="bargein-out", show_default=True, metavar="DIR", help="Where failing scenarios go.")
@_one_sentence
@_own_tools
def explore(
    scenario: str,
    as_json: bool,
    grid: str | None,
    budget: int | None,
    workers: int,
    settings: tuple[str, ...],
    out: str,
    tools: Tools | None,
    **tried: Any,
) -> None:
    """Barge in at every instant that matters of SCENARIO; save the smallest failing scenarios."""
    from bargein.sim.kernel.durations import DurationError, parse_duration
    from bargein.sim.lab.explore import DEFAULT_BUDGET, Options
    from bargein.sim.lab.explore import explore as run
    from bargein.sim.report.exploring import exploration_lines
    from bargein.sim.report.progress import progress_bar

    _check_workers(workers)
    grid_us = None
    if grid is not None:
        try:
            grid_us = parse_duration(grid)
        except DurationError as error:
            _complain(f"--grid: {error}")
    options = Options(grid_us=grid_us, budget=DEFAULT_BUDGET if budget is None else budget, **tried)
    chosen = _chosen(scenario, settings, tools)
    with progress_bar(f"exploring {chosen.name}", "runs") as progress:
        found = run(chosen, options, tools=tools, workers=workers, out=Path(out), progress=progress)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False, sort_keys=True))
    else:
        for line in exploration_lines(found, rate=True):
            click.echo(line)
    raise SystemExit(STOPPED if found.stopped else FAILED if found.findings else HELD)


@click.command()
@click.argument("scenario")
@click.option(
    "--vary", "varied", multiple=True, metavar="KEY=A,B,C", help="Values, or FROM..TO/STEPS; may be repeated."
)
@click.option("--seeds", default=100, show_default=True, metavar="N", help="Sessions for every combination.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Measure only this; may be repeated.")
@click.option("--workers", default=1, show_default=True, metavar="N", help="Processes to share the sessions.")
@click.option("--cluster", metavar="ADDRESS", help="Run on a Dask cluster (tcp://HOST:PORT) instead.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value first, by dotted path.")
@click.option("--out", metavar="FILE", help="A .csv or .parquet file; a sweep that was stopped goes on from there.")
@click.option("--plots", metavar="DIR", help="Draw what the sweep can show into DIR.")
@_one_sentence
@_own_tools
def sweep(
    scenario: str,
    varied: tuple[str, ...],
    seeds: int,
    metrics: tuple[str, ...],
    workers: int,
    cluster: str | None,
    settings: tuple[str, ...],
    out: str | None,
    plots: str | None,
    tools: Tools | None,
) -> None:
    """Run SCENARIO with values varied, the same callers for every variant; print or write a table."""
    from bargein.sim.lab.sweep.run import sweep as run
    from bargein.sim.lab.sweep.variants import read_vary
    from bargein.sim.report.progress import progress_bar

    _check_workers(workers)
    chosen = _chosen(scenario, settings, tools)
    vary: dict[str, Any] = {}
    for text in varied:
        path, values = read_vary(text)
        if path in vary:
            _complain(f"--vary names {path} twice; accepted is one list of values for each key")
        vary[path] = values
    try:
        with progress_bar(f"sweeping {chosen.name}", "sessions") as progress, _on(cluster):
            table = run(
                chosen,
                vary,
                seeds,
                metrics=metrics or None,
                tools=tools,
                workers=None if cluster else workers,
                out=None if out is None else Path(out),
                progress=progress,
            )
    except KeyboardInterrupt as stop:
        click.echo("".join(getattr(stop, "__notes__", ["stopped"])), err=True)
        raise SystemExit(STOPPED) from None
    if out is None:
        _print_csv(table)
    else:
        click.echo(f"wrote {out}: {len(table)} sessions", err=True)
    if plots is not None:
        _draw(table, Path(plots))


def _check_workers(workers: int) -> None:
    if workers == 0:
        _complain("--workers is 0; accepted is 1 or more, or -1 for as many as there are cores")


def _chosen(scenario: str, settings: tuple[str, ...], tools: Tools | None) -> Scenario:
    from bargein import sim
    from bargein.sim.scenario.setting import split_assignment

    chosen = sim.load(scenario, tools=tools)
    for assignment in settings:
        chosen = chosen.with_value(*split_assignment(assignment))
    return chosen


def _on(cluster: str | None) -> Any:
    """Where the sessions run: here, or on the Dask cluster at this address."""
    from contextlib import nullcontext

    if cluster is None:
        return nullcontext()
    from bargein.sim.lab.sweep.cluster import dask_cluster

    return dask_cluster(cluster)


def _print_csv(table: Table) -> None:
    import csv
    import sys

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)


def _draw(table: Table, folder: Path) -> None:
    """Every picture that the table has the columns for."""
    from bargein.sim.lab.sweep.stats import amount
    from bargein.sim.report.sweep_plots import draw_ecdf, draw_fillers, draw_heat_map, draw_paired, write_figure

    folder.mkdir(parents=True, exist_ok=True)
    by = table.varied[0] if table.varied else None
    latencies = [name for name in ("response_latency_us", "stop_latency_us") if name in table.columns]
    figures: dict[str, Any] = {}
    if latencies:
        figures["latencies.png"] = draw_ecdf(table, latencies, by)
    needed = ("agent.filler.delay", "dead_air_us", "answer_wait_us", "fillers_heard", "fillers_in_vain")
    if all(name in table.columns for name in needed):
        figures["fillers.png"] = draw_fillers(table)
    if len(table.varied) >= 2:
        value = latencies[0] if latencies and not any(table.column("violations")) else "violations"
        figures["heat_map.png"] = draw_heat_map(table, table.varied[0], table.varied[1], value)
    if by is not None and latencies and any(amount(number) for number in table.column("variant")):
        figures["paired.png"] = draw_paired(table, latencies[0])
    for name, figure in figures.items():
        click.echo(f"wrote {write_figure(folder / name, figure)}", err=True)
