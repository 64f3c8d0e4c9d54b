"""What a handler hands back beside its outcome: values that a tool publishes for whoever looks at the call.

A payload that has ``outputs`` collects them. A record holds them apart from the outcome, and a replay puts them back
without the handler (run contract, section 8.4). Left out: values that go to the handler; no record has those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bargein.sim.effects.bus import Effect
from bargein.sim.effects.identity import canonical

__all__ = ["publish_again", "published_by"]


def published_by(effect: Effect) -> dict[str, Any]:
    """What the handler of an effect has published, once it has landed.

    Raises:
        TypeError, ValueError: it is no plain data.
    """
    outputs = getattr(effect.payload, "outputs", None)
    if not outputs or effect.outcome is None:
        return {}
    try:
        canonical(outputs)
    except (TypeError, ValueError) as error:
        raise type(error)(f"what effect {effect.id} ({effect.key}) published has no plain form: {error}") from None
    return dict(outputs)


def publish_again(effect: Effect, published: Mapping[str, Any]) -> None:
    """Publish what was recorded, in place of the handler.

    Raises:
        ValueError: nothing can be published for this effect.
    """
    if not published:
        return
    outputs = getattr(effect.payload, "outputs", None)
    if type(outputs) is not dict:
        raise ValueError(f"recorded was that it published {', '.join(published)}; nothing can be published for it")
    outputs.update(published)
