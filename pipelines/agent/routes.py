"""Routes between models: which model's handler each round of a run goes to.

An agent has a model and may declare routes to others. Between the beginning of a round and its request a hook may
choose; the choice stays until another replaces it (run contract, sections 9.2 and 12). `ByRound` is the hook that a
plan writes down. Left out: the request, which does not depend on the choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.run_settings import Agent
from bargein.sim.effects.bus import EffectKind

__all__ = ["ByRound", "required"]


def required(agent: Agent) -> dict[str, str]:
    """The row of what a program needs served: the agent's model and every route it declares, selected or not."""
    return dict.fromkeys((agent.model.key, *(route.key for route in agent.routes)), str(EffectKind.COMPLETION))


@dataclass(frozen=True, slots=True)
class ByRound:
    """Sends rounds to a model by their number, from 1; the agent's own model has the rounds after.

    Attributes:
        key: of the model's handler; a route that the agent did not declare will do.
        first, last: the rounds that go there, both included; without ``last`` all from the first on.
    """

    key: str
    first: int = 1
    last: int | None = None

    def __post_init__(self) -> None:
        if self.first < 1 or (self.last is not None and self.last < self.first):
            raise ValueError(f"a route takes rounds from 1, first to last, not {self.first} to {self.last}")

    def attach(self, hooks: Hooks) -> None:
        """Choose from now on, in every run that these hooks are called for."""
        hooks.on(At.SELECT_MODEL, self)

    def __call__(self, moment: Moment) -> None:
        """Choose for one round."""
        number = moment.run.cursor
        if number == self.first:
            moment.select(self.key)
        elif self.last is not None and number == self.last + 1:
            moment.select(moment.run.agent.model.key)
