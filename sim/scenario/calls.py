"""Whether the caller can do what their lines say: moments that can come, lines apart, recordings that are there.

``checks`` asks it. How long a line lasts is known from its recording, from the packaged or the synthetic voice, or
from its ``for``. Left out: lines that begin after an event; when they fall only the run shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.scenario.callers import Line
from bargein.sim.scenario.folders import inside
from bargein.sim.scenario.moments import After, field_faults
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.suggest import unknown

if TYPE_CHECKING:
    from bargein.sim.scenario.model import Scenario

__all__ = ["caller_faults", "line_duration_us", "recording_path"]

_BEFORE_ANYONE_SPEAKS = ("session.started",)
_AFTER_EVERYTHING = ("session.ended", "caller.hung_up")


def caller_faults(scenario: Scenario, tools: tuple[str, ...]) -> Iterator[Fault]:
    """Everything about the caller's lines that cannot be, line by line."""
    for index, line in enumerate(scenario.caller):
        path: Path = ("caller", index)
        yield from _form_faults(line, path)
        if line.wav is not None:
            yield from _recording_faults(line, scenario.folder, path)
        if line.after is not None:
            yield from _moment_faults(scenario, index, line.after, (*path, "after"), tools)
    yield from _overlap_faults(scenario)


def line_duration_us(line: Line, folder: FilePath | None) -> int | None:
    """How long the line lasts; ``None`` where its recording cannot be read."""
    if line.for_us is not None:
        return line.for_us
    if line.wav is None:
        from bargein.models.voice import speak

        return samples_to_us(speak("caller", line.say).length)
    path = recording_path(line.wav, folder)
    if isinstance(path, str):
        return None
    length = _length(path, path.stat().st_mtime_ns if path.exists() else 0)
    return None if isinstance(length, str) else samples_to_us(length)


def recording_path(wav: str, folder: FilePath | None) -> FilePath | str:
    """The file that ``wav`` means, or what is wrong with it: it must lie inside the folder, links followed."""
    if folder is None:
        return f'"{wav}" has no folder to be in; accepted is a recording in a scenario that is a file'
    path = inside(folder, wav)
    if path is None:
        return f'"{wav}" leaves the scenario\'s folder; accepted is a path inside it'
    if not path.exists():
        return f'there is no file "{wav}"; accepted is a WAV or FLAC file in the scenario\'s folder'
    return path


def _form_faults(line: Line, path: Path) -> Iterator[Fault]:
    if not line.speaks and not line.hang_up:
        yield Fault(path, "the line says nothing; accepted is say, wav or hang_up")
    if line.say and not line.say.strip():
        yield Fault((*path, "say"), "found only spaces; accepted is a text to say")
    given = [key for key, value in (("at", line.at_us), ("after", line.after)) if value is not None]
    if len(given) != 1:
        found = "at and after are both given" if given else "neither at nor after is given"
        yield Fault(path, f"{found}; accepted is one of them")
    if line.level == "audio" and line.for_us is not None:
        yield Fault((*path, "for"), "a line at level audio lasts as long as its audio; accepted is level: decision")
    if line.level == "decision" and line.wav is not None:
        yield Fault((*path, "wav"), "a line at level decision has no audio; accepted is wav at level audio")
    if line.transcript is not None and not line.speaks:
        yield Fault((*path, "transcript"), "the line says nothing; accepted is transcript beside say or wav")


def _recording_faults(line: Line, folder: FilePath | None, path: Path) -> Iterator[Fault]:
    found = recording_path(line.wav or "", folder)
    if isinstance(found, str):
        yield Fault((*path, "wav"), found)
        return
    length = _length(found, found.stat().st_mtime_ns)
    if isinstance(length, str):
        yield Fault((*path, "wav"), length.replace(str(found), str(line.wav)))


@lru_cache(maxsize=64)
def _length(path: FilePath, _changed_ns: int) -> int | str:
    """Samples at 16 kHz, or why the file cannot be used; kept, since a sweep makes a scenario many times."""
    from bargein.models.recordings import AudioError, load

    try:
        return load(path, "")[0].length
    except AudioError as error:
        return str(error)


def _moment_faults(scenario: Scenario, index: int, after: After, path: Path, tools: tuple[str, ...]) -> Iterator[Fault]:
    wrong = list(field_faults(after.match, (*path, "event"), path))
    if wrong:
        yield from wrong
        return
    tool = after.where.get("tool")
    if isinstance(tool, str) and tool and tool not in tools:
        yield Fault((*path, "tool"), unknown("tool", tool, tools))
        return
    problem = _impossible(scenario, index, after, tools)
    if problem:
        yield Fault((*path, "event"), f"{after.match.describe()} cannot come before this line: {problem}")


def _impossible(scenario: Scenario, index: int, after: After, tools: tuple[str, ...]) -> str | None:
    """Why the event cannot come before the line; ``None`` where it may."""
    kind = after.event
    if kind in _AFTER_EVERYTHING:
        return "it ends the session; accepted is an event during it"
    earlier = sum(line.speaks for line in scenario.caller[:index])
    if kind not in _BEFORE_ANYONE_SPEAKS and not earlier:
        return "nobody has spoken yet; accepted is session.started, or a line before this one"
    if kind in ("caller.started", "caller.ended"):
        about = after.where.get("line")
        number = index + 1  # on the timeline, lines are counted from 1
        if type(about) is int and not 0 < about < number:
            return f"line {about} does not come before line {number}; accepted is the number of one that does, from 1"
        if about is None and after.nth > earlier:
            return f"only {earlier} of the lines before it are spoken; accepted is nth up to {earlier}"
    return _never(scenario, after, tools)


def _never(scenario: Scenario, after: After, tools: tuple[str, ...]) -> str | None:
    """Why the scenario can have no such event at all."""
    family = after.event.partition(".")[0]
    if family == "filler" and not scenario.agent.filler.enabled:
        return "the filler is off; accepted is an event that a filler is not needed for"
    if family == "confirm" and not any(spec.confirm for spec in scenario.all_specs):
        return "no tool has confirm; accepted is an event that the gate is not needed for"
    if family in ("tool", "tools"):
        return _no_call(scenario, after.where.get("tool"), tools)
    return None


def _no_call(scenario: Scenario, tool: object, tools: tuple[str, ...]) -> str | None:
    if not scenario.llm.scripted:
        return None  # what it calls is in the cassette, or for a provider to say
    called = [tool for script in scenario.scripts.values() for tool in script.called]
    if not called:
        return "the script calls no tool; accepted is an event that no tool is needed for"
    misspelt = any(name not in tools for name in called)  # told of where it stands; the one cause is enough
    if isinstance(tool, str) and tool and tool not in called and not misspelt:
        return f'the script never calls "{tool}"; accepted is a tool that it calls'
    return None


def _overlap_faults(scenario: Scenario) -> Iterator[Fault]:
    """Two lines at fixed instants of which one begins while the other is still spoken."""
    fixed = [
        (line.at_us, index, line)
        for index, line in enumerate(scenario.caller)
        if line.at_us is not None and line.speaks and (line.wav is not None or line.say.strip())
    ]
    fixed.sort(key=lambda each: each[:2])
    for (start_us, first, line), (next_us, second, _line) in pairwise(fixed):
        lasts_us = line_duration_us(line, scenario.folder)
        if lasts_us is not None and next_us < start_us + lasts_us:
            yield Fault(
                ("caller", second, "at"),
                f"{format_us(next_us)} is inside caller[{first}], which is spoken from {format_us(start_us)} to "
                f"{format_us(start_us + lasts_us)}; accepted is one line after another",
            )
