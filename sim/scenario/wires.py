"""What makes a script's wire impossible: a vendor that is not known, a quirk that it does not have.

``checks`` asks it. Left out: the wires; ``bargein.models.providers`` and ``bargein.models.vendors`` know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.script import Llm
from bargein.sim.scenario.suggest import unknown

__all__ = ["wire_faults"]


def wire_faults(script: Llm, root: Path, reasoning: Sequence[tuple[Path, str]]) -> Iterator[Fault]:
    """Everything about a script's wire that cannot be.

    Args:
        root: where the script stands.
        reasoning: the place of each round, and what it thinks.
    """
    if script.wire is None:
        for key in ("quirks", "chunking"):
            if getattr(script, key) not in ((), "event"):
                yield Fault((*root, key), f"{key} stands without wire; accepted is {key} beside the vendor it is of")
        for path, thought in reasoning:
            if thought:
                yield Fault(
                    (*path, "reasoning"), "reasoning is shown on a wire only; accepted is reasoning beside wire"
                )
        return
    from bargein.models.providers.catalogue import WIRES
    from bargein.models.vendors.wire import answer_class

    if script.wire not in WIRES:
        yield Fault((*root, "wire"), unknown("wire", script.wire, WIRES))
        return
    supported = tuple(sorted(answer_class(script.wire).SUPPORTED))
    for index, quirk in enumerate(script.quirks):
        if quirk not in supported:
            yield Fault((*root, "quirks", index), unknown(f"quirk of {script.wire}", quirk, supported))
