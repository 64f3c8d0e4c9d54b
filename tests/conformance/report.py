"""The report on all recordings: a line a file, a total, and the table of the kinds that occurred."""

from __future__ import annotations

from tests.conformance.cassettes import FOLDER, files, folder, load
from tests.conformance.comparing import Verdict, compare
from tests.conformance.differences import KINDS

__all__ = ["lines", "verdicts"]


def verdicts() -> list[Verdict]:
    """What became of each file."""
    return [compare(load(path)) for path in files()]


def lines(found: list[Verdict] | None = None) -> list[str]:
    """The report as text."""
    if not files():
        return [f"no recordings in {folder()}; {FOLDER} names another folder"]
    found = verdicts() if found is None else found
    grades = [each.grade for each in found]
    total = ", ".join(f"{grades.count(grade)} {grade}" for grade in ("exact", "justified", "different"))
    kinds = sorted({kind for each in found for kind in each.kinds})
    return [
        *(str(each) for each in found),
        f"{len(found)} files: {total}",
        *(f"  {kind}: {KINDS[kind]}" for kind in kinds),
    ]
