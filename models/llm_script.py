"""The scripted model: what it answers to each request, from rounds in order, from rules, or from a behaviour.

It serves completions on the effect bus. Rounds are for a call whose course is known; rules read the request that
was really sent, so that they go on sensibly wherever the call is interrupted; behaviours are ready-made rules for
the ways in which real models go wrong. Left out: languages; a script says its lines word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bargein.models.latency import Latency
from bargein.models.llm_course import Course
from bargein.models.llm_reading import Reading
from bargein.models.llm_stream import INTERLEAVED_BYTES, Playback, ScriptedCall, call_deltas, text_deltas
from bargein.pipelines.agent.deltas import Delta, StreamEnd
from bargein.pipelines.agent.request import Request
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream

if TYPE_CHECKING:
    from bargein.models.vendors.wire import ScriptedWire

__all__ = [
    "BehaviourPlan",
    "Choose",
    "RoundPlan",
    "RulePlan",
    "ScriptError",
    "ScriptedModel",
    "by_behaviour",
    "by_rounds",
    "by_rules",
    "by_turns",
    "turns_of",
]


class ScriptError(Exception):
    """The script has no answer to a request that was really sent.

    Args: what happened, and the place in the script (a key path) that it concerns.
    """


class DeltaPlan(Protocol):
    """How text streams."""

    @property
    def every_us(self) -> int: ...
    @property
    def words(self) -> int: ...


class RoundPlan(Protocol):
    """One response."""

    @property
    def expect_user(self) -> str | None: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def calls(self) -> Sequence[ScriptedCall]: ...
    @property
    def text_after(self) -> str: ...
    @property
    def ttft(self) -> Latency | None: ...
    @property
    def delta(self) -> DeltaPlan | None: ...
    @property
    def fragments(self) -> str | int | None: ...
    @property
    def finish(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...


class ResultPlan(Protocol):
    """A condition on the newest call of a tool."""

    @property
    def tool(self) -> str: ...
    @property
    def is_(self) -> str: ...
    @property
    def error(self) -> str | None: ...


class WhenPlan(Protocol):
    """Conditions on a request."""

    @property
    def user(self) -> str | None: ...
    @property
    def user_matches(self) -> str | None: ...
    @property
    def result(self) -> Sequence[ResultPlan]: ...
    @property
    def last_reply(self) -> str | None: ...
    @property
    def epoch(self) -> int | None: ...
    @property
    def round(self) -> int | None: ...


AnyRound = TypeVar("AnyRound", bound=RoundPlan)


class RulePlan(Protocol):
    """A condition and the response it gives."""

    @property
    def when(self) -> WhenPlan: ...
    @property
    def round(self) -> RoundPlan: ...


class BehaviourPlan(Protocol):
    """A ready-made model that wants one effect."""

    @property
    def behaviour(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def args(self) -> dict[str, Any]: ...
    @property
    def ask(self) -> str: ...
    @property
    def done(self) -> str: ...
    @property
    def failed(self) -> str: ...
    @property
    def waiting(self) -> str: ...


Choose = Callable[[Reading], RoundPlan]


def by_rounds(rounds: Sequence[RoundPlan], taken: int = 0, place: str = "llm") -> Choose:
    """Answer the n-th request with the n-th round; ``taken`` of them were given before.

    Args:
        place: where the script stands, for errors.
    """

    def choose(reading: Reading) -> RoundPlan:
        nonlocal taken
        taken += 1
        if taken > len(rounds):
            raise ScriptError(
                f"the model was asked a {_ordinal(taken)} time (turn {reading.epoch}, round {reading.round}, after "
                f'"{reading.user}"), and the script has {len(rounds)} round{"" if len(rounds) == 1 else "s"}',
                place,
            )
        plan = rounds[taken - 1]
        if plan.expect_user is not None and plan.expect_user not in reading.user:
            raise ScriptError(
                f'round {taken} expects a request whose last user message holds "{plan.expect_user}", and it was '
                f'"{reading.user}"',
                f"{place}[{taken - 1}].expect_user",
            )
        return plan

    return choose


def by_rules(rules: Sequence[RulePlan], otherwise: RoundPlan | None, place: str = "llm") -> Choose:
    """Answer each request with the round of the first rule that fits it; ``place`` is the script's, for errors."""

    def choose(reading: Reading) -> RoundPlan:
        for rule in rules:
            if _fits(rule.when, reading):
                return rule.round
        if otherwise is None:
            raise ScriptError(
                f'no rule fits the request of turn {reading.epoch}, round {reading.round}, after "{reading.user}"; '
                "an else: would answer it",
                f"{place}.rules",
            )
        return otherwise

    return choose


def _fits(when: WhenPlan, reading: Reading) -> bool:
    return (
        (when.user is None or when.user in reading.user)
        and (when.user_matches is None or re.search(when.user_matches, reading.user) is not None)
        and (when.epoch is None or when.epoch == reading.epoch)
        and (when.round is None or when.round == reading.round)
        and (when.last_reply is None or when.last_reply == reading.last_reply)
        and all(_result_fits(each, reading) for each in when.result)
    )


def _result_fits(wanted: ResultPlan, reading: Reading) -> bool:
    calls = reading.calls_of(wanted.tool)
    if not calls:
        return wanted.is_ == "missing"
    newest = calls[-1]
    return wanted.is_ in newest.states and (wanted.error is None or wanted.error == newest.error)


def turns_of(rounds: Sequence[AnyRound], user_lines: Sequence[str]) -> list[tuple[int, str | None, Sequence[AnyRound]]]:
    """A list of rounds, cut into turns: where each begins in the list, the words it answers, and its rounds.

    A turn goes on after a round with calls and ends with one without. It answers what its first round expects, or
    else what the caller says in that place; ``None`` where neither is known.
    """
    starts = [
        at for at, each in enumerate(rounds) if not at or not rounds[at - 1].calls or each.expect_user is not None
    ]
    turns: list[tuple[int, str | None, Sequence[AnyRound]]] = []
    for number, (start, end) in enumerate(pairwise([*starts, len(rounds)])):
        said = user_lines[number] if number < len(user_lines) else None
        turns.append((start, rounds[start].expect_user or said, rounds[start:end]))
    return turns


def by_turns(rounds: Sequence[RoundPlan], user_lines: Sequence[str], otherwise: str) -> Choose:
    """Answer with the rounds that fit, wherever the call is interrupted; for a script that is a list of rounds.

    A turn of the list (`turns_of`) fits a request whose last user message holds the words it answers. Its rounds are
    given in order, from the first again when the user says it again; where nothing fits, ``otherwise`` is said.
    """
    turns = turns_of(rounds, user_lines)
    closing = _Said(otherwise)

    def choose(reading: Reading) -> RoundPlan:
        for _, cue, turn in turns:
            if cue is not None and cue in reading.user:
                return turn[reading.round - 1] if reading.round <= len(turn) else closing
        return closing

    return choose


class _Said:
    """A response made up by a behaviour."""

    __slots__ = ("calls", "text")

    expect_user = None
    reasoning = ""
    text_after = ""
    ttft = None
    delta = None
    fragments = None
    finish = None
    error = None

    def __init__(self, text: str, calls: Sequence[ScriptedCall] = ()) -> None:
        self.text = text
        self.calls = calls


class _Wanted:
    __slots__ = ("args", "tool")

    raw = None
    id = None

    def __init__(self, tool: str, args: dict[str, Any]) -> None:
        self.tool = tool
        self.args = args


def by_behaviour(plan: BehaviourPlan) -> Choose:
    """Answer as a model that wants one effect.

    ``naive`` asks for it again unless it reads a success; ``patient`` waits when it reads that a call is pending and
    gives up on a failure; ``repeats`` asks once more in each turn although it reads a success.
    """
    ask = _Said(plan.ask, (_Wanted(plan.tool, plan.args),))
    done, failed, waiting = _Said(plan.done), _Said(plan.failed), _Said(plan.waiting)

    def choose(reading: Reading) -> RoundPlan:
        calls = reading.calls_of(plan.tool)
        success = any(call.success for call in calls)
        if plan.behaviour == "repeats":
            return done if success and sum(call.in_turn for call in calls) > 1 else ask
        if success:
            return done
        if plan.behaviour == "patient" and calls:
            if "pending" in calls[-1].states:
                return waiting
            if "failed" in calls[-1].states:
                return failed
        return ask

    return choose


class ScriptedModel:
    """The model of one session, as a handler of completions.

    Args:
        choose: gives the response to a request, read.
        ttft: time to first token, where a round has none of its own.
        every_us, words, fragments: how responses stream, likewise.
        stream: the random stream that latencies draw from.
        wire: the vendor's bytes that requests and responses travel as; plain deltas without one.
        course: what was asked and said so far, which the models of one call share; its own unless given.

    Attributes:
        requests: every request it was sent, in order.
    """

    def __init__(
        self,
        clock: Clock,
        choose: Choose,
        *,
        ttft: Latency,
        every_us: int,
        words: int,
        fragments: str | int,
        stream: Stream,
        wire: ScriptedWire | None = None,
        course: Course | None = None,
    ) -> None:
        self._clock = clock
        self._choose = choose
        self._ttft = ttft
        self._every_us = every_us
        self._words = words
        self._fragments = fragments
        self._stream = stream
        self.wire = wire
        self._course = course or Course()
        self.requests: list[Request] = []

    def adopt(self, choose: Choose, *, ttft: Latency, every_us: int, words: int, fragments: str | int) -> None:
        """Answer otherwise the requests that are still to come."""
        self._choose = choose
        self._ttft = ttft
        self._every_us = every_us
        self._words = words
        self._fragments = fragments

    def serve(self, effect: Effect) -> Callable[[Cause], object] | None:
        """Answer one request (``effects.Handler``).

        Raises:
            ScriptError: the script has no answer to it.
        """
        request: Request = effect.payload
        self.requests.append(request)
        if self.wire is not None:
            refused = self.wire.send(request)
            if refused is not None:
                effect.land(Outcome(Status.FAILED, refused))
                return None
        course = self._course
        plan = self._choose(course.read(request, effect.scope))
        first_us = (plan.ttft or self._ttft).draw(self._stream)
        if plan.text or plan.text_after:
            course.said.append(plan.text + plan.text_after)
        if first_us is None:
            return None  # a model that hangs
        every_us = self._every_us if plan.delta is None else plan.delta.every_us
        words = self._words if plan.delta is None else plan.delta.words
        deltas: list[Delta] = [*text_deltas(plan.text, words)]
        if plan.calls:
            fragments = self._fragments if plan.fragments is None else plan.fragments
            if self.wire is not None:
                fragments = self.wire.fragments(fragments, INTERLEAVED_BYTES)
            deltas += [each for batch in call_deltas(plan.calls, course.calls, fragments) for each in batch]
            course.calls += len(plan.calls)
        deltas += text_deltas(plan.text_after, words)
        end = StreamEnd(plan.finish or ("tool_calls" if plan.calls else "stop"))
        if self.wire is None:
            return Playback(self._clock, effect, deltas, first_us, every_us, end, plan.error).stop
        thoughts = [each.text for each in text_deltas(plan.reasoning, words)]
        return self.wire.play(self._clock, effect, thoughts, deltas, first_us, every_us, end, plan.error)


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
