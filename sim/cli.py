"""The ``bargein`` command.

Exit status: 0 all held; 1 an expectation or an invariant failed; 2 bad input, with one sentence and no traceback.
Heavy imports stay inside the commands, so that ``bargein --help`` is quick. Left out: everything that a command
does; it calls the same functions that Python users call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from bargein.models.python_tools import Tools
    from bargein.sim.lab.result import Result
    from bargein.sim.scenario.model import Scenario

__all__ = ["main"]

HELD, FAILED, BAD_INPUT = 0, 1, 2
DEMO = "barge_in_during_booking"

Command = TypeVar("Command", bound=Callable[..., Any])


def _one_sentence(command: Command) -> Command:
    """Turn bad input into its sentences on standard error and exit status 2."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        from bargein.sim.effects.documents import DocumentError
        from bargein.sim.effects.replay import ReplayRefused
        from bargein.sim.scenario.places import ScenarioError

        try:
            return command(*args, **kwargs)
        except (ScenarioError, ReplayRefused) as error:
            _complain(*error.sentences)
        except DocumentError as error:
            _complain(str(error))
        except BrokenPipeError:
            raise  # whoever read along has had enough; click ends quietly
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _complain(f"{where}{(error.strerror or str(error)).lower()}; accepted is a place that can be written")

    return guarded  # type: ignore[return-value]


def _complain(*sentences: str) -> NoReturn:
    for sentence in sentences:
        click.echo(sentence, err=True)
    raise SystemExit(BAD_INPUT)


def _own_tools(command: Command) -> Command:
    """Add ``--tools``; the command is given the tools, those of the program that it is part of where none are named."""

    @click.option("--tools", "place", metavar="MODULE:ATTRIBUTE", help="Tools in Python, importable from here.")
    @click.pass_obj
    @wraps(command)
    def given(program: Tools | None, /, *args: Any, place: str | None, **kwargs: Any) -> Any:
        from bargein.sim.own_tools import import_tools

        return command(*args, tools=program if place is None else import_tools(place), **kwargs)

    return given  # type: ignore[return-value]


def _exports(command: Command) -> Command:
    """Add an option for each further file; the command is given the names of those that are asked for."""
    from bargein.sim.report.exports import EXPORTS

    @wraps(command)
    def given(*args: Any, **kwargs: Any) -> Any:
        return command(*args, exports=[name for name in EXPORTS if kwargs.pop(name)], **kwargs)

    options: Any = given
    for name, export in reversed(EXPORTS.items()):
        options = click.option(f"--{name}", is_flag=True, help=f"Write {export.about}.")(options)
    return options  # type: ignore[no-any-return]


_LAZY = {
    "explore": ("bargein.sim.cli_lab", "Barge in at every instant that matters; save the smallest failing scenarios."),
    "replay": ("bargein.sim.cli_effects", "Run a recorded call again, its effects answered by its log alone."),
    "resume": (
        "bargein.sim.cli_effects",
        "Go on from a checkpoint to the end of the call, with values or tools changed or not.",
    ),
    "sweep": ("bargein.sim.cli_lab", "Run with values varied, the same callers for every variant; a table."),
    "record": ("bargein.sim.cli_record", "Run with a real provider for a model; keep what was said as a cassette."),
}
"""Commands that live elsewhere and are loaded when they are called: module and summary."""


class _Commands(click.Group):
    """The commands of this file and those of ``_LAZY``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LAZY])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _LAZY:
            return super().get_command(ctx, cmd_name)
        found = getattr(import_module(_LAZY[cmd_name][0]), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, _LAZY[name][1] if name in _LAZY else self.commands[name].get_short_help_str(200))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="bargein", prog_name="bargein")
def main() -> None:
    """Simulate voice sessions: barge-ins, tool calls, fillers and playout, to the microsecond, the same every time."""


@main.command()
@click.option("--out", default="bargein-out", show_default=True, metavar="DIR", help="Where to write the files.")
@_one_sentence
def demo(out: str) -> None:
    """A caller interrupts a booking: the story, the numbers, a picture and the call to listen to."""
    from bargein import sim

    result = sim.run(DEMO)
    click.echo(f"{DEMO}: {result.scenario.about}\n")
    _tell(result)
    _write(result, Path(out), plot=True, wav=True)
    raise SystemExit(HELD if result.ok else FAILED)


@main.command()
@click.argument("scenario")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the story.")
@click.option("--out", metavar="DIR", help="Write timeline.jsonl, and what is asked for below, into DIR.")
@click.option("--plot", is_flag=True, help="Draw timeline.png and latencies.png (into --out, or here).")
@click.option("--wav", is_flag=True, help="Write call.wav: the caller on channel 0, the agent as heard on channel 1.")
@_exports
@click.option("--seed", type=int, metavar="N", help="Seed of the random streams, instead of the scenario's.")
@click.option("--tie-seed", type=int, metavar="N", help="Permute what falls on the same instant.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change a value, by dotted path.")
@click.option("--record", metavar="LOG", help="Write the effect log, which replay runs again.")
@click.option("--checkpoint-at", metavar="WHEN", help="Save the call after an event (tool.committed:2) or before 4.5s.")
@click.option("--checkpoint", metavar="FILE", help="Where to save it; resume goes on from it.")
@click.option("--stack", metavar="NAME", help="Through another framework's session on the same clock: livekit.")
@_one_sentence
@_own_tools
def run(
    scenario: str,
    as_json: bool,
    out: str | None,
    plot: bool,
    wav: bool,
    exports: list[str],
    seed: int | None,
    tie_seed: int | None,
    settings: tuple[str, ...],
    record: str | None,
    checkpoint_at: str | None,
    checkpoint: str | None,
    stack: str | None,
    tools: Tools | None,
) -> None:
    """Run SCENARIO (a built-in's name or a file) once and say what happened."""
    from bargein import sim
    from bargein.sim.scenario.setting import split_assignment

    chosen = sim.load(scenario, tools=tools)
    for assignment in settings:
        chosen = chosen.with_value(*split_assignment(assignment))
    if stack is not None:
        from bargein.sim.cli_stack import run_through

        others = {"--plot": plot, "--wav": wav, "exports": exports, "--tie-seed": tie_seed, "--record": record}
        others |= {"--checkpoint-at": checkpoint_at, "--checkpoint": checkpoint}
        held = run_through(chosen, stack, tools=tools, seed=seed, out=out, as_json=as_json, others=others)
        raise SystemExit(HELD if held else FAILED)
    result = sim.run(
        chosen,
        tools=tools,
        seed=seed,
        tie_seed=tie_seed,
        record=record,
        checkpoint_at=checkpoint_at,
        checkpoint=checkpoint,
    )
    for note in result.notes:
        click.echo(note, err=True)
    if out is not None or plot or wav or exports:
        _write(result, Path(out or "."), exports, plot=plot, wav=wav, quiet=as_json, timeline=out is not None)
    if as_json:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False, sort_keys=True))
    else:
        _tell(result)
    raise SystemExit(HELD if result.ok else FAILED)


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@_one_sentence
@_own_tools
def check(files: tuple[str, ...], tools: Tools | None) -> None:
    """Validate scenario and agent files without running them; says file, line, key, and what would be right."""
    from bargein.sim.scenario.agent_file import check_agent_file, is_agent_file
    from bargein.sim.scenario.build import Plan
    from bargein.sim.scenario.loading import load
    from bargein.sim.scenario.places import ScenarioError

    wrong: list[str] = []
    for file in files:
        specs = () if tools is None else tools.specs
        try:
            if is_agent_file(file):
                check_agent_file(Path(file), file, specs)
                click.echo(f"{file}: ok")
                continue
            plan = Plan(load(file, tools=specs), tools)
        except ScenarioError as error:
            wrong += error.sentences
        else:
            for note in plan.notes:
                click.echo(f"{file}: {note}")
            click.echo(f"{file}: ok")
    if wrong:
        _complain(*wrong)


@main.command()
@click.argument("a")
@click.argument("b")
def diff(a: str, b: str) -> None:
    """The first event where two timelines part, with what surrounds it: A is -, B is +.

    Exit status: 0 they are equal, 1 they differ, 2 one cannot be read.
    """
    from bargein.sim.lab.diff import TimelineError, compare, read_timeline, tell

    try:
        old, new = read_timeline(a), read_timeline(b)
    except TimelineError as error:
        _complain(str(error))
    difference = compare(old, new)
    for line in tell(difference, old, new, (a, b)):
        click.echo(line)
    raise SystemExit(HELD if difference is None else FAILED)


@main.command()
@click.option(
    "--kind", is_flag=False, flag_value="", metavar="[NAME]", help="Show kinds of fault; only NAME's if given."
)
@_one_sentence
def scenarios(kind: str | None) -> None:
    """The built-in scenarios, a line each, the name first; with --kind after the kind of fault that it is about."""
    from bargein.sim.scenario.loading import builtin_names, load

    found = [load(name) for name in builtin_names()]
    if kind is not None:
        found = _of_kind(found, kind)
    kinds_width = max(len(each.kind or "") for each in found)
    width = max(len(each.name) for each in found)
    for each in found:
        first = "" if kind is None else f"{each.kind:<{kinds_width}}  "
        click.echo(f"{first}{each.name:<{width}}  {each.about}")


def _of_kind(found: Sequence[Scenario], kind: str) -> list[Scenario]:
    """Those about a fault, kind by kind; of one kind where it is named."""
    from bargein.sim.scenario.places import ScenarioError
    from bargein.sim.scenario.suggest import unknown

    chosen = sorted((each for each in found if each.kind is not None), key=lambda each: (each.kind or "", each.name))
    if not kind:
        return chosen
    if all(each.kind != kind for each in chosen):
        raise ScenarioError(unknown("kind", kind, dict.fromkeys(each.kind for each in chosen if each.kind)))
    return [each for each in chosen if each.kind == kind]


def _tell(result: Result) -> None:
    """The story, the numbers, and whether it was right."""
    from bargein.sim.report.console import print_metrics, print_story

    print_story(result.records)
    click.echo()
    print_metrics(result.metrics)
    click.echo()
    for violation in result.violations:
        click.echo(f"violated: {violation.invariant} at {violation.t} us: {violation.message}")
    for expectation in result.expectations:
        if not expectation.ok:
            click.echo(f"not as expected: {expectation.name}: {expectation.message}")
    held = sum(expectation.ok for expectation in result.expectations)
    click.echo(
        f"{'ok' if result.ok else 'FAILED'}: {len(result.violations)} violations, "
        f"{held} of {len(result.expectations)} expectations held, digest {result.digest[:16]}"
    )


def _write(
    result: Result,
    folder: Path,
    exports: Sequence[str] = (),
    *,
    plot: bool,
    wav: bool,
    quiet: bool = False,
    timeline: bool = True,
) -> None:
    """Write the files that were asked for, each whole or not at all."""
    from bargein.sim.report.atomic import write_whole
    from bargein.sim.report.exports import EXPORTS

    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    if timeline:
        written.append(write_whole(folder / "timeline.jsonl", result.timeline.to_jsonl().encode()))
    if plot:
        written.append(result.plot(folder / "timeline.png"))
        written.append(result.plot_latencies(folder / "latencies.png"))
    if wav:
        written.append(result.write_wav(folder / "call.wav"))
    for export in exports:
        for name, content in EXPORTS[export].files.items():
            written.append(write_whole(folder / name, content(result)))
    if not quiet:
        for path in written:
            click.echo(f"wrote {path}", err=True)


if __name__ == "__main__":
    sys.exit(main())
