"""What the scripted model does: rounds in order, rules on what it was sent, or a ready-made behaviour.

Part of the scenario model; ``model`` gathers it. Left out: answering; the scripted model in ``bargein.models`` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from bargein.models.latency import Constant, Latency
from bargein.sim.scenario.codec import read_fields, read_value, write, write_fields
from bargein.sim.scenario.places import Path

__all__ = ["Behaviour", "Call", "Delta", "Llm", "ResultWhen", "Round", "Rule", "When"]

_STREAMS = ("ttft", "delta", "fragments", "wire", "quirks", "chunking", "profile")
"""The keys of a script that say how it streams, whatever it says."""


@dataclass(frozen=True, slots=True)
class Delta:
    """How text streams: ``words`` words every ``every_us``, the first with the first token."""

    every_us: int = 20_000
    words: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model.

    Attributes:
        tool: the name it calls, which a bad model may get wrong on purpose through ``unknown``.
        args: the arguments.
        raw: the arguments as text instead, sent as it is: for JSON that is no JSON.
        id: the provider's id of the call; made up where empty.
        unknown: the tool is meant not to exist.
    """

    tool: str
    args: Any = field(default_factory=dict)
    raw: str | None = None
    id: str | None = None
    unknown: bool = False

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{tool: ..., args: ...}`` or the short form ``{<tool>: <arguments>}``."""
        if "tool" not in data:
            ((tool, args),) = data.items()
            return cls(tool, {} if args is None else args)
        return read_fields(cls, data, path)

    def to_value(self) -> Any:
        if self.raw is None and self.id is None and not self.unknown and self.tool != "tool":
            return {self.tool: self.args}
        return write_fields(self)


@dataclass(frozen=True, slots=True)
class Round:
    """One response of the model.

    Attributes:
        expect_user: text that the request's last user message must hold, else the script does not fit the call.
        text: what it says first; ``text_after`` is said after its calls.
        ttft: to the first token; the script's own where not given, as for ``delta`` and ``fragments``.
        fragments: how the arguments of calls stream: ``whole``, ``interleaved``, or so many bytes at a time.
        finish: the finish reason, where it is not the one that follows from the calls.
        error: the provider fails with this text, after what it has streamed.
        reasoning: what it thinks first, where a wire shows that; it is streamed and never spoken.
    """

    expect_user: str | None = None
    text: str = ""
    calls: tuple[Call, ...] = ()
    text_after: str = ""
    ttft: Latency | None = None
    delta: Delta | None = None
    fragments: str | int | None = None
    finish: str | None = None
    error: str | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ResultWhen:
    """The newest call of ``tool`` is, as the request shows it, in this state.

    ``ok``, ``failed`` (the tool said no), ``interrupted``, ``pending`` (still running), ``note`` (told later by a
    system note), ``missing`` (never called), or ``refused`` (the engine did not run it), with the error's kind.
    """

    tool: str
    is_: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class When:
    """Conditions on one request; all that are given must hold.

    Attributes:
        user: the last user message holds this text; ``user_matches`` is a regular expression to find in it.
        result: states of calls.
        last_reply: the last assistant text was ``heard`` whole, ``cut``, or ``unheard``.
        epoch: the turn's number; ``round`` the request's within the turn, from 1.
    """

    user: str | None = None
    user_matches: str | None = None
    result: tuple[ResultWhen, ...] = ()
    last_reply: str | None = None
    epoch: int | None = None
    round: int | None = None

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read the conditions; ``result`` may be one mapping or a list."""
        if isinstance(data.get("result"), dict):
            data = {**data, "result": [data["result"]]}
        return read_fields(cls, data, path)

    def to_value(self) -> Any:
        data = write_fields(self)
        if len(self.result) == 1:
            data["result"] = data["result"][0]
        return data


@dataclass(frozen=True, slots=True)
class Rule:
    """If the request is so, the model answers with this round. The first rule that fits is taken."""

    when: When
    round: Round

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{when: {...}, <keys of a round>}``."""
        return cls(read_value(When, data["when"], (*path, "when")), read_fields(Round, data, path))

    def to_value(self) -> Any:
        return {"when": write(self.when), **write_fields(self.round)}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A ready-made model that wants one effect.

    Attributes:
        behaviour: ``naive`` asks again unless it reads a success, ``patient`` waits when it reads that the call is
            pending, ``repeats`` asks again although it reads a success.
        tool, args: the effect.
        ask: said with the call; ``done``, ``failed`` and ``waiting`` once it knows.
    """

    behaviour: str
    tool: str
    args: dict[str, Any] = field(default_factory=dict)
    ask: str = "Let me book that for you."
    done: str = "It is booked already."
    failed: str = "I'm sorry, something went wrong. Please try again."
    waiting: str = "Still working on it."


@dataclass(frozen=True, slots=True)
class Llm:
    """The script: ``rounds``, or ``rules`` with an optional ``else``, or a ``behaviour``; and how it streams.

    Attributes:
        wire: the vendor whose bytes requests and answers travel as; plain deltas without one.
        quirks: what this vendor does, by name.
        chunking: how its bytes arrive: ``event``, ``answer``, or in pieces of so many bytes.
        profile: a way of real models in which the script's answers are changed, by name.
        cassette: recorded answers in place of a script, a path inside the scenario's folder.
    """

    rounds: tuple[Round, ...] = ()
    rules: tuple[Rule, ...] = ()
    else_: Round | None = None
    behaviour: Behaviour | None = None
    ttft: Latency = field(default=Constant(350_000))
    delta: Delta = Delta()
    fragments: str | int = "whole"
    wire: str | None = None
    quirks: tuple[str, ...] = ()
    chunking: str | int = "event"
    profile: str | None = None
    cassette: str | None = None

    @property
    def scripted(self) -> bool:
        """Whether it says itself what the model answers."""
        return bool(self.rounds or self.rules or self.else_ or self.behaviour)

    @property
    def called(self) -> list[str]:
        """The tools that it calls."""
        if self.behaviour is not None:
            return [self.behaviour.tool]
        given = [*self.rounds, *(rule.round for rule in self.rules), *([self.else_] if self.else_ else [])]
        return [call.tool for each in given for call in each.calls]

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read a list of rounds, a list of rules (the last may be ``{else: ...}``), or a mapping."""
        if isinstance(data, list):
            return cls._from_list(data, path)
        if "behaviour" not in data:
            return read_fields(cls, data, path)
        rest = {key: value for key, value in data.items() if key in _STREAMS}
        own = {key: value for key, value in data.items() if key not in rest}
        streamed = read_fields(cls, rest, path)
        return replace(streamed, behaviour=read_fields(Behaviour, own, path))

    @classmethod
    def _from_list(cls, data: list[Any], path: Path) -> Self:
        if not any("when" in each or "else" in each for each in data):
            return cls(rounds=read_value(tuple[Round, ...], data, path))
        ruled = [each for each in data if "else" not in each]
        fallback = data[-1].get("else") if data else None
        return cls(
            rules=read_value(tuple[Rule, ...], ruled, path),
            else_=None if fallback is None else read_fields(Round, fallback, (*path, len(data) - 1, "else")),
        )

    def to_value(self) -> Any:
        data = write_fields(self)
        if self.behaviour is not None:
            return {**data.pop("behaviour"), **data}
        return data["rounds"] if set(data) == {"rounds"} else data
