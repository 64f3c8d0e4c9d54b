"""What a layer sees of an effect, and what it may decide about it.

Before anything is served a layer may deny, patch or suspend what is asked; once the handler has answered it may put
another outcome in the place of the handler's, or take its time over the verdict (run contract, section 9.6 and
"Returned replies and collection cadence"). `layers` asks it. Left out: layers of any use; a program brings its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bargein.sim.effects.bus import EffectKind, Outcome

__all__ = ["Approval", "Ask", "Deny", "Later", "Layer", "Patch", "Suspend"]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a handler, as a layer sees it.

    Attributes:
        payload: of a voice session's model the request, of a tool the invocation with its ``tool`` and ``arguments``,
            of a memory the operation. It is not to be changed; `Patch` asks for another of its type.
        scope: the turn or the run.
        parent: id of the effect on whose behalf it is asked.
    """

    kind: EffectKind
    key: str
    payload: Any
    scope: str
    parent: int | None


class Approval:
    """An answer that somebody outside gives once: a person, a scenario, a hook.

    Invariant: the first answer stands.
    """

    __slots__ = ("_listeners", "answered", "denied")

    def __init__(self) -> None:
        self.answered = False
        self.denied: str | None = None
        self._listeners: list[Callable[[], object]] = []

    def approve(self) -> bool:
        """Let what waits for it go on now. Returns whether anybody was still waiting to hear that."""
        return self._answer(None)

    def deny(self, reason: str) -> bool:
        """Refuse it for ``reason``. Returns whether anybody was still waiting to hear that."""
        return self._answer(reason)

    def _answer(self, denied: str | None) -> bool:
        if self.answered:
            return False
        self.answered, self.denied = True, denied
        heard = bool(self._listeners)
        while self._listeners:  # one that goes on may have another give up
            self._listeners.pop(0)()
        return heard

    def listen(self, listener: Callable[[], object]) -> None:
        """Have ``listener()`` called with the answer, after those before it; at once if it is there."""
        if self.answered:
            listener()
        else:
            self._listeners.append(listener)

    def forget(self, listener: Callable[[], object]) -> None:
        """``listener`` waits no more; an answer that comes later does nothing to it."""
        if listener in self._listeners:
            self._listeners.remove(listener)


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not serve it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Ask this instead; ``kind`` may only repeat what was asked for."""

    payload: Any
    kind: EffectKind | None = None


@dataclass(frozen=True, slots=True)
class Suspend:
    """Go on once the approval is answered."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class Later:
    """The asker is told once the approval is answered: what the handler answered, or that it was denied."""

    approval: Approval


class Layer:
    """A layer that lets everything pass; subclasses override what they decide.

    Attributes:
        name: what a program that declares its layers calls it.
    """

    name = "layer"

    def before(self, ask: Ask) -> Deny | Patch | Suspend | None:
        """Decide before anything is served; ``None`` passes it on."""
        return None

    def keeps(self, ask: Ask, item: Any) -> bool:
        """Whether the effect may go on after this stream item; ``False`` cancels it."""
        return True

    def after(self, ask: Ask, outcome: Outcome) -> Outcome | Later:
        """What the asker is told in place of ``outcome``, or when; a cancellation is told at once all the same."""
        return outcome
