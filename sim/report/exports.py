"""The further files that a run can leave, each in the format of what opens it.

``bargein run`` has an option for each and writes the files. A format's module is imported when one is asked for.
Left out: the timeline, the pictures and the WAV, which have methods of their own on a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bargein.sim.lab.result import Result

__all__ = ["EXPORTS", "Export"]


@dataclass(frozen=True, slots=True)
class Export:
    """What one option writes: what it is for, and the files' bytes by name."""

    about: str
    files: dict[str, Callable[[Result], bytes]]


def _page(result: Result) -> bytes:
    from bargein.sim.report.html import page

    return page(result).encode()


def _trace(result: Result) -> bytes:
    from bargein.sim.report.trace import trace

    return trace(result.records, title=result.scenario.name, violations=result.violations).encode()


def _labels(result: Result) -> bytes:
    from bargein.sim.report.labels import labels

    return labels(result.records).encode("utf-8", "replace")


def _turns(result: Result) -> bytes:
    from bargein.sim.report.turns import turn_trace

    return turn_trace(result.records).encode("utf-8", "backslashreplace")


def _onsets(result: Result) -> bytes:
    from bargein.sim.report.turns import caller_onsets

    return caller_onsets(result.records).encode()


def _junit(result: Result) -> bytes:
    from bargein.sim.report.junit import junit

    return junit(result)


EXPORTS: dict[str, Export] = {
    "html": Export("call.html: lanes, sound and context as one page for a browser", {"call.html": _page}),
    "trace": Export("trace.json: a Chrome trace, which Perfetto opens", {"trace.json": _trace}),
    "labels": Export("labels.txt: Audacity labels, to go with call.wav", {"labels.txt": _labels}),
    "turns": Export(
        "turns.jsonl and call.onsets.txt: who was audible when, and the caller's onsets, in seconds",
        {"turns.jsonl": _turns, "call.onsets.txt": _onsets},
    ),
    "junit": Export("junit.xml: invariants and expectations as test cases", {"junit.xml": _junit}),
}
"""By the name of the option."""
