"""An exploration in words: what was tried, what broke where, and the line that shows it again.

``bargein explore`` prints it. Left out: the timeline of a failing call; running its file shows that.
"""

from __future__ import annotations

from collections.abc import Iterator

from bargein.sim.kernel.durations import format_us
from bargein.sim.lab.findings import Exploration, Finding

__all__ = ["exploration_lines"]

_WINDOWS_SHOWN = 4
_MEANS = {
    "safety": "something wrong happened",
    "liveness": "something right never happened",
    "stuck": "the session could not go on",
    "crash": "a stage raised",
}


def exploration_lines(exploration: Exploration, *, rate: bool = False) -> Iterator[str]:
    """The lines to print.

    Args:
        rate: also how fast it went, which is another number every time.
    """
    for finding in exploration.findings:
        yield from _finding_lines(finding)
        yield ""
    tried = f"{exploration.instants} instants"
    if exploration.known > exploration.instants:
        tried += f" of {exploration.known} (a larger --budget tries them all)"
    speed = f", {exploration.runs / exploration.seconds:,.0f} runs/s" if rate and exploration.seconds else ""
    state = "stopped" if exploration.stopped else "FAILED" if exploration.findings else "ok"
    broken = len(exploration.findings)
    yield f"{state}: {tried}, {exploration.runs} runs{speed}: {broken} invariant{'' if broken == 1 else 's'} broken"


def _finding_lines(finding: Finding) -> Iterator[str]:
    probe = finding.first.probe
    yield f"{finding.invariant} ({finding.kind}: {_MEANS[finding.kind]}), {finding.runs} runs"
    yield f"  first seen     {_how(finding)}"
    if probe.at_us or finding.first_at_us is not None:
        earliest = "the plain call" if finding.first_at_us is None else format_us(finding.first_at_us)
        yield f"  first instant  {earliest}, windows {_windows(finding)}"
    yield f"  what           at {format_us(finding.first.violation.t)}: {finding.first.violation.message}"
    if finding.flips:
        yield "  ties           it holds in one order of what falls on the same instant and breaks in another"
    if finding.reproduction is not None:
        small = finding.reproduction
        sure = "" if small.confirmed else "; it did NOT fail again when the file was run"
        yield f"  smallest       {small.lines} caller lines, {small.tools} tools{sure}"
        yield f"  reproduce      {small.command}"


def _how(finding: Finding) -> str:
    probe = finding.first.probe
    words = "the plain call"
    if probe.at_us:
        doing = "hanging up" if probe.hang_up else "cutting in"
        words = f"{doing} at {', '.join(format_us(at_us) for at_us in probe.at_us)}"
    more = [each for each in (finding.first.variant, probe.level if probe.level != "decision" else "") if each]
    if probe.tie_seed is not None:
        more.append(f"tie seed {probe.tie_seed}")
    aside = f" ({', '.join(more)})" if more else ""
    return f"{words}{aside}, after {finding.after_runs} runs"


def _windows(finding: Finding) -> str:
    shown = [
        format_us(low) if low == high else f"{format_us(low)} to {format_us(high)}"
        for low, high in finding.windows_us[:_WINDOWS_SHOWN]
    ]
    more = len(finding.windows_us) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "") if shown else "none"
