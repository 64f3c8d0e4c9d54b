"""The nearest known name, for errors about an unknown one. Left out: the sentence around it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["either", "nearest", "unknown"]


def nearest(found: str, known: Iterable[str]) -> str | None:
    """The known name most like ``found``; ``None`` where none is like it. Of equals, the first in name order."""
    ordered = sorted(known)
    close = get_close_matches(found, ordered, n=1, cutoff=0.6)
    if close:
        return close[0]
    # Half a name is often meant as the whole: "filler_del" for "delay" is not, "silence" for "min_silence" is.
    return next((name for name in ordered if found and (found in name or name in found) and len(found) > 2), None)


def unknown(what: str, found: str, known: Iterable[str]) -> str:
    """``unknown key "fillr"; the nearest known one is "filler"``, or all known ones where none is near."""
    names = sorted(known)
    near = nearest(found, names)
    if near is not None:
        return f'unknown {what} "{found}"; the nearest known one is "{near}"'
    accepted = f"accepted is {either(names)}" if names else "there is none"
    return f'unknown {what} "{found}"; {accepted}'


def either(names: Iterable[str]) -> str:
    """``a, b or c``."""
    each = list(names)
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} or {each[-1]}" if each else "none"
