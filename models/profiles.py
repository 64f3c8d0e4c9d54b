"""Ways in which real models are slow or go wrong, by name: ``llm: {profile: unkept_promise, rounds: [...]}``.

A profile stands beside a script and changes its answers, so that the same call can be had with a model that guesses,
promises or sleeps. The kinds and their numbers are reported elsewhere, from small local models on one machine (the
fastest of them said its first sentence after 157 ms, without tools); nothing here was measured by this project.
`bargein.sim.scenario.build` applies them. Left out: how often a model does so; a script does it every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

from bargein.models.latency import Constant, Latency, Uniform
from bargein.models.llm_reading import Reading
from bargein.models.llm_script import Choose, DeltaPlan, RoundPlan
from bargein.models.llm_stream import ScriptedCall
from bargein.models.providers.adapter import compact_json

__all__ = ["PROFILES", "Profile", "profiled"]

R = TypeVar("R")
_GUESSED = {str: "Rome", int: 1, float: 1.0, bool: True}
INVENTED = "It is all arranged, and the sun is shining."
PROMISED = "I will ask for something else instead."


@dataclass(frozen=True, slots=True)
class _Pace:
    """``words`` words every ``every_us``."""

    every_us: int
    words: int = 1


@dataclass(slots=True)
class _Answer:
    """An answer of the script, changed."""

    expect_user: str | None
    reasoning: str
    text: str
    calls: Sequence[ScriptedCall]
    text_after: str
    ttft: Latency | None
    delta: DeltaPlan | None
    fragments: str | int | None
    finish: str | None
    error: str | None


def _changed(plan: RoundPlan, **changes: Any) -> RoundPlan:
    kept = {each.name: getattr(plan, each.name) for each in fields(_Answer)}
    return _Answer(**{**kept, **changes})


@dataclass(frozen=True, slots=True)
class Profile:
    """One way.

    Attributes:
        about: what such a model does.
        answer: the script's answer to a request, changed; the number counts the session's answers from 1.
        rounds: changes a list of rounds beforehand, where the order of calls is what goes wrong.
        ends_turns: a turn may end before its rounds are used up, so they are matched to what the caller says.
    """

    about: str
    answer: Callable[[RoundPlan, Reading, int], RoundPlan] | None = None
    rounds: Callable[[Sequence[Any]], tuple[Any, ...]] | None = None
    ends_turns: bool = False


def profiled(profile: Profile, choose: Choose, answers: int = 0) -> Choose:
    """``choose`` as a model of this profile answers; for one session, in which ``answers`` were given before."""
    change = profile.answer
    if change is None:
        return choose

    def answer(reading: Reading) -> RoundPlan:
        nonlocal answers
        answers += 1
        return change(choose(reading), reading, answers)

    return answer


# -- how they go wrong --------------------------------------------------------------------------------------------


def _guess_ahead(rounds: Sequence[R]) -> tuple[R, ...]:
    """The first two rounds in a row that call come as one, the second's arguments invented."""
    given: list[Any] = list(rounds)
    for at, (first, second) in enumerate(pairwise(given)):
        if first.calls and second.calls:
            ahead = tuple(replace(call, args=_invented(call.args)) for call in second.calls)
            given[at : at + 2] = [replace(first, calls=(*first.calls, *ahead))]
            break
    return tuple(given)


def _invented(args: Any) -> Any:
    return {key: _GUESSED.get(type(value), value) for key, value in args.items()} if type(args) is dict else args


def _promise(plan: RoundPlan, reading: Reading, _: int) -> RoundPlan:
    """After a refusal for its arguments, another attempt is only announced."""
    tools = {call.name: None for message in reading.request.messages for call in message.calls}
    refused = any(
        state.in_turn and state.error == "invalid_arguments" for tool in tools for state in reading.calls_of(tool)
    )
    return _changed(plan, text=PROMISED, calls=(), text_after="", finish=None) if refused else plan


def _invent(plan: RoundPlan, reading: Reading, _: int) -> RoundPlan:
    return _changed(plan, text=INVENTED, calls=(), text_after="", finish=None) if plan.calls else plan


def _write_out(plan: RoundPlan, reading: Reading, _: int) -> RoundPlan:
    """Calls are written as JSON where text belongs."""
    if not plan.calls:
        return plan
    written = [compact_json({"name": call.tool, "arguments": call.args}) for call in plan.calls]
    return _changed(plan, text=" ".join(filter(None, (plan.text, *written))), calls=(), finish=None)


def _nothing(plan: RoundPlan, reading: Reading, _: int) -> RoundPlan:
    return _changed(plan, text="", calls=(), text_after="", finish=None)


# -- how slow they are --------------------------------------------------------------------------------------------


def _paced(ttft: Latency, pace: _Pace | None = None) -> Callable[[RoundPlan, Reading, int], RoundPlan]:
    """Every answer of the script that has no pace of its own."""

    def change(plan: RoundPlan, reading: Reading, _: int) -> RoundPlan:
        return _changed(plan, ttft=plan.ttft or ttft, delta=plan.delta or pace)

    return change


def _cold(plan: RoundPlan, reading: Reading, number: int) -> RoundPlan:
    """The first answer waits until the model is loaded."""
    return _changed(plan, ttft=Uniform(7_000_000, 50_000_000)) if number == 1 else plan


PROFILES: Mapping[str, Profile] = {
    "guessed_dependency": Profile(
        "asks for what a lookup would tell in the same response, with an invented value", rounds=_guess_ahead
    ),
    "unkept_promise": Profile(
        "announces another attempt after invalid arguments, and makes none", _promise, ends_turns=True
    ),
    "invented_answer": Profile("answers without the calls that it needs", _invent, ends_turns=True),
    "call_as_text": Profile("writes its calls as text, to be spoken aloud", _write_out, ends_turns=True),
    "empty_answer": Profile("gives neither text nor calls", _nothing, ends_turns=True),
    # 30 of 48 layers on the GPU: first token after 376 ms, and with 13 words the first sentence after 1.66 s.
    "partial_offload": Profile("has only part of itself on the GPU", _paced(Constant(376_000), _Pace(107_000))),
    "cold_load": Profile("is loaded by the first request, in 7 to 50 s", _cold),
    "thinking_medium": Profile("thinks 22 s before the first token", _paced(Constant(22_000_000))),
}
"""By name: five faults, three paces."""
