"""The reports on all recordings: a line a file, a total, and the table of the kinds that occurred."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.cassettes import FOLDER, Cassette, files, folder, load
from tests.conformance.comparing import Verdict, compare
from tests.conformance.differences import KINDS
from tests.conformance.driving import Driven, drive

__all__ = ["drivable", "driven", "lines", "run_lines", "verdicts"]


def verdicts() -> list[Verdict]:
    """What became of each file."""
    return [compare(load(path)) for path in files()]


def lines(found: list[Verdict] | None = None) -> list[str]:
    """The report as text."""
    if not files():
        return [f"no recordings in {folder()}; {FOLDER} names another folder"]
    found = verdicts() if found is None else found
    return [*(str(each) for each in found), f"{len(found)} files: {_grades(found)}", *_kinds(found)]


def drivable(cassette: Cassette) -> bool:
    """Whether runs can be driven by a recording: it has a request to arrive at, and streams for answers."""
    return len(cassette.exchanges) > 1 and all(each.streamed for each in cassette.exchanges)


def driven() -> list[Driven]:
    """What became of each file that runs can be driven by."""
    return [drive(cassette) for path in files() if drivable(cassette := load(path))]


def run_lines(found: list[Driven] | None = None) -> list[str]:
    """The report on the runs as text; empty where there are no recordings."""
    if not files():
        return []
    found = driven() if found is None else found
    counted = f"{sum(each.requests for each in found)} requests of {sum(each.runs for each in found)} runs"
    left = f"{len(files()) - len(found)} files left out, which hold one request or an answer that is no stream"
    total = f"{len(found)} files driven as runs: {_grades(found)}; {counted}; {left}"
    return [*(str(each) for each in found), total, *_kinds(found)]


def _grades(found: Sequence[Verdict]) -> str:
    grades = [each.grade for each in found]
    return ", ".join(f"{grades.count(grade)} {grade}" for grade in ("exact", "justified", "different"))


def _kinds(found: Sequence[Verdict]) -> list[str]:
    return [f"  {kind}: {KINDS[kind]}" for kind in sorted({kind for each in found for kind in each.kinds})]
