"""A script of rounds in order as rules, so that the call may be interrupted anywhere.

Exploration asks for it. The list is cut into turns: a turn goes on after a round with calls and ends with one
without. A turn answers a request whose last user message holds what its first round expects, or else what the
caller says in that place; its rounds are given in order, from the first again when the caller says it again.

Where steering routes requests to several models, the rounds are put in the order in which the call as it is written
takes them, and every model is given the rules of them all: a turn that an interruption has moved to another model is
answered as it was meant. Left out: guessing; a list whose turns cannot be told apart is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from bargein.models.llm_script import turns_of
from bargein.sim.scenario.build import CLOSING
from bargein.sim.scenario.model import Llm, Round, Rule, Scenario, When
from bargein.sim.scenario.places import Fault, Path, path_text
from bargein.sim.scenario.steering import steering_of

__all__ = ["HINT", "matched"]

HINT = "accepted is expect_user on the first round of each turn, or llm.rules, which fit wherever the call is cut"
"""What would make a list of rounds fit."""

_Turn: TypeAlias = tuple[Path, str | None, Sequence[Round]]
"""Where its first round stands, the words it answers, and its rounds."""


def matched(scenario: Scenario) -> Scenario:
    """The scenario with rules in place of its rounds; the same object where it has no rounds.

    Raises:
        ScenarioError: it is not known to which words of the caller a turn belongs, or two belong to the same; or one
            model has rounds and another rules.
    """
    if not any(script.rounds for script in scenario.scripts.values()):
        return scenario
    turns = list(_turns_of_all(scenario) if scenario.models else _turns(scenario))
    rules: list[Rule] = []
    closing = Round(text=CLOSING)
    cues: dict[str, Path] = {}
    for first, cue, turn in turns:
        if cue is None:
            raise scenario.place.error([Fault(first, f"nothing says which words of the caller it answers; {HINT}")])
        taken = next((at for earlier, at in cues.items() if earlier in cue), None)
        if taken is not None:
            problem = f'it answers "{cue}", which {path_text(taken)} answers already; {HINT}'
            raise scenario.place.error([Fault(first, problem)])
        cues[cue] = first
        for number, each in enumerate(turn, start=1):
            rules.append(Rule(When(user=cue, round=number), replace(each, expect_user=None)))
        rules.append(Rule(When(user=cue), closing))

    def ruled(script: Llm) -> Llm:
        return replace(script, rounds=(), rules=tuple(rules), else_=closing)

    models = {label: ruled(script) for label, script in scenario.models.items()}
    return replace(scenario, llm=ruled(scenario.llm), models=models)


def _turns(scenario: Scenario) -> Iterator[_Turn]:
    for at, cue, turn in turns_of(scenario.llm.rounds, scenario.user_lines):
        yield ("llm", at), cue, turn


def _turns_of_all(scenario: Scenario) -> Iterator[_Turn]:
    """The turns of the call as it is written, each round from the model that steering routes its request to.

    Raises:
        ScenarioError: a model's answers are not in order, so that it is not known where its turns end.
    """
    for label, script in scenario.scripts.items():
        if script.rules or script.behaviour is not None:
            path: Path = ("llm",) if label == scenario.agent.model else ("models", label)
            problem = "it stands beside rounds of another model, which are taken in order; accepted are rules for both"
            raise scenario.place.error([Fault(path, problem)])
    steering, own = steering_of(scenario.steering), scenario.agent.model
    taken = dict.fromkeys(scenario.scripts, 0)

    def upcoming(epoch: int, number: int) -> tuple[str, Round | None]:
        label = steering.at(epoch, number).model or own
        rounds, at = scenario.scripts[label].rounds, taken[label]
        return label, rounds[at] if at < len(rounds) else None

    epoch = 0
    while True:
        epoch += 1
        label, first = upcoming(epoch, 1)
        if first is None:
            return  # whatever else there is, the call as it is written does not come to it
        path = ("llm", taken[label]) if label == own else ("models", label, taken[label])
        said = scenario.user_lines[epoch - 1] if epoch <= len(scenario.user_lines) else None
        turn: list[Round] = []
        following: Round | None = first
        while following is not None and (not turn or following.expect_user is None):
            turn.append(following)
            taken[label] += 1
            if not following.calls:
                break
            label, following = upcoming(epoch, len(turn) + 1)
        yield path, first.expect_user or said, turn
