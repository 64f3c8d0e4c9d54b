"""A script of rounds in order as rules, so that the call may be interrupted anywhere.

Exploration asks for it. The list is cut into turns: a turn goes on after a round with calls and ends with one
without. A turn answers a request whose last user message holds what its first round expects, or else what the
caller says in that place; its rounds are given in order, from the first again when the caller says it again.
Left out: guessing; a list whose turns cannot be told apart is refused.
"""

from __future__ import annotations

from dataclasses import replace

from bargein.models.llm_script import turns_of
from bargein.sim.scenario.build import CLOSING
from bargein.sim.scenario.model import Round, Rule, Scenario, When
from bargein.sim.scenario.places import Fault

__all__ = ["HINT", "matched"]

HINT = "accepted is expect_user on the first round of each turn, or llm.rules, which fit wherever the call is cut"
"""What would make a list of rounds fit."""


def matched(scenario: Scenario) -> Scenario:
    """The scenario with rules in place of its rounds; the same object where it has no rounds.

    Raises:
        ScenarioError: it is not known to which words of the caller a turn belongs, or two belong to the same.
    """
    rounds = scenario.llm.rounds
    if not rounds:
        return scenario
    rules: list[Rule] = []
    closing = Round(text=CLOSING)
    cues: dict[str, int] = {}
    for first, cue, turn in turns_of(rounds, scenario.user_lines):
        if cue is None:
            raise scenario.place.error(
                [Fault(("llm", first), f"nothing says which words of the caller it answers; {HINT}")]
            )
        taken = next((at for earlier, at in cues.items() if earlier in cue), None)
        if taken is not None:
            problem = f'it answers "{cue}", which llm[{taken}] answers already; {HINT}'
            raise scenario.place.error([Fault(("llm", first), problem)])
        cues[cue] = first
        for number, each in enumerate(turn, start=1):
            rules.append(Rule(When(user=cue, round=number), replace(each, expect_user=None)))
        rules.append(Rule(When(user=cue), closing))
    return replace(scenario, llm=replace(scenario.llm, rounds=(), rules=tuple(rules), else_=closing))
