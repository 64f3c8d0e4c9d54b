"""Dropping media nobody needs any more: all content of all runs is looked at, and what the host pins stays.

Nothing is dropped by itself: a host calls `collect_assets` after it has taken runs out, and until then what they had
counts against the store's limits (run contract, section 1). Left out: the store (``assets``), and content that is in no
run, such as that of another set of runs on the same store, which the host has to pin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bargein.pipelines.agent.media_sources import Stored
from bargein.pipelines.agent.parts import MediaPart, Part, ResultPart
from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_state import Run

__all__ = ["collect_assets"]


def collect_assets(runs: AgentRuns, pins: Iterable[str] = ()) -> int:
    """Drop every payload that no run uses and the host does not pin.

    Args:
        pins: digests that stay.

    Returns:
        How many were dropped.

    Raises:
        ContentError: a payload that is used or pinned is not in the store; nothing was changed.
    """
    used = [digest for run in runs.live.values() for digest in _of(run)]
    return runs.assets.collect([*used, *pins])


def _of(run: Run) -> Iterator[str]:
    """What a run's messages use, also those that it has not read yet."""
    yield from run.history.digests()
    for message in run.prior if run.prompt is None else (*run.prior, run.prompt):
        for part in message.parts:
            yield from _in(part)


def _in(part: Part) -> Iterator[str]:
    if isinstance(part, ResultPart):
        for item in part.items:
            yield from _in(item)
    elif isinstance(part, MediaPart) and isinstance(part.source, Stored):
        yield part.source.sha256
