"""Hooks: plain callables for the named moments of a run, called in the order in which they were registered.

A hook reads a `Moment` and writes what it wants into it; the step that comes next in the run loop acts on that (run
contract, section 9). Left out: hooks that wait; whoever needs time holds an effect and releases it later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bargein.pipelines.agent.answers import Answer, render_args
from bargein.pipelines.agent.edits import PartEdit, RequestPatch
from bargein.pipelines.agent.run_state import InvalidCall, PendingEffect, Resolution, Retry, Run, Turn
from bargein.sim.effects.bus import EffectKind, Outcome
from bargein.sim.effects.reports import ReportKind, failed

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["At", "Hook", "Hooks", "Moment"]


class At(StrEnum):
    """The moments, in the order of one step."""

    RUN_STARTED = "run_started"
    SELECT_MODEL = "select_model"
    BEFORE_REQUEST = "before_request"
    REQUEST_FOLDED = "request_folded"
    GATE = "gate"
    JUDGE_OUTCOME = "judge_outcome"
    DELTA = "delta"
    JUDGE_ROUND = "judge_round"
    INVALID_CALL = "invalid_call"
    COMMITTED = "committed"
    """A tool turn is committed, and nobody has been told yet."""
    CHECKPOINT = "checkpoint"
    RUN_ENDED = "run_ended"


@dataclass(slots=True)
class Moment:
    """What a hook sees, and what it can do about it.

    Attributes:
        at: which moment it is.
        turn: the round, where there is one; its number is the run's cursor.
        effect: what is about to be dispatched, or what has landed.
        item: the stream's item, at ``delta``.
        invalid: the call, at ``invalid_call``.
    """

    runs: AgentRuns
    at: At
    run: Run
    turn: Turn | None = None
    effect: PendingEffect | None = None
    item: Any = None
    invalid: InvalidCall | None = None

    def stop(self, reason: str) -> None:
        """End the run as cancelled for ``reason``; nothing happens where it has ended."""
        self.runs.cancel(self.run, reason)

    def select(self, key: str) -> None:
        """Have the model under ``key`` answer, until another is chosen."""
        self.run.uses_model = key

    def patch(self, patch: RequestPatch) -> None:
        """Change this round's request; over what hooks before have changed."""
        turn = self._turn()
        turn.patch = patch if turn.patch is None else turn.patch.merge(patch)

    def edit(self, *edits: PartEdit) -> None:
        """Change parts in this round's request."""
        self._turn().edits.extend(edits)

    def deny(self, reason: str) -> None:
        """Answer the effect as denied, in place of dispatching it."""
        self._effect().outcome = failed(ReportKind.DENIED, reason)
        self.runs.wake()  # the place that it leaves in its batch is another's

    def patch_arguments(self, arguments: Any) -> None:
        """Have the tool run with other arguments; history keeps the model's."""
        effect = self._effect()
        effect.payload = replace(effect.payload, args=render_args(arguments))

    def replace_outcome(self, outcome: Outcome) -> None:
        """Have the run read another outcome; the record keeps the handler's."""
        self._effect().outcome = outcome

    def replace_answer(self, answer: Answer) -> None:
        """Have the run read another answer; the record keeps the model's."""
        self._turn().answer = answer

    def retry(self, feedback: str | None = None) -> None:
        """Ask again in place of settling on this answer."""
        self._turn().retry = Retry(feedback)

    def resolve(self, resolution: Resolution) -> None:
        """Say what becomes of the invalid call."""
        assert self.invalid is not None, f"there is no invalid call at {self.at}"
        self.invalid.resolution = resolution

    def dispatch(
        self, kind: EffectKind, key: str, payload: Any, on_landed: Callable[[PendingEffect], object] | None = None
    ) -> PendingEffect | None:
        """Ask something of the world under this run; nothing where nobody serves ``key``.

        Raises:
            ValueError: a custom payload that is no plain data.
        """
        return self.runs.ask(self.run, kind, key, payload, on_landed)

    def _turn(self) -> Turn:
        assert self.turn is not None, f"there is no round at {self.at}"
        return self.turn

    def _effect(self) -> PendingEffect:
        assert self.effect is not None, f"there is no effect at {self.at}"
        return self.effect


Hook = Callable[[Moment], object]


@dataclass(slots=True)
class Hooks:
    """Who is called when."""

    _hooks: dict[At, list[Hook]] = field(default_factory=dict)

    def on(self, at: At, hook: Hook) -> Hook:
        """Have ``hook(moment)`` called at ``at``, after those registered before it."""
        self._hooks.setdefault(at, []).append(hook)
        return hook

    def call(self, moment: Moment) -> None:
        """Call them; those that are left are not called once one of them has ended the run."""
        ended = moment.run.ending is not None
        for hook in tuple(self._hooks.get(moment.at, ())):
            hook(moment)
            if moment.run.ending is not None and not ended:
                return
