"""How a scripted response streams: its deltas, each with its delay after the one before.

Text comes some words at a time; tool calls come whole, in pieces of a few bytes one after the other, or with the
pieces of all calls interleaved. The response is complete with its last delta. Left out: what the response says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from json import JSONEncoder
from typing import Any, Protocol

from bargein.models.sentences import split_words
from bargein.pipelines.agent.deltas import CallDelta, Delta, StreamEnd, TextDelta
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer

__all__ = ["Playback", "ScriptedCall", "call_deltas", "text_deltas"]

_to_json = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

INTERLEAVED_BYTES = 8
"""Length of an argument fragment when the fragments of several calls are mixed."""


class ScriptedCall(Protocol):
    """A tool call of a script."""

    @property
    def tool(self) -> str: ...
    @property
    def args(self) -> Any: ...
    @property
    def raw(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...


@lru_cache(maxsize=4096)
def text_deltas(text: str, words: int) -> tuple[TextDelta, ...]:
    """``text`` in pieces of ``words`` words; nobody changes a delta, so a text that is said again is free."""
    pieces = split_words(text)
    return tuple(TextDelta("".join(pieces[at : at + words])) for at in range(0, len(pieces), words))


def call_deltas(calls: Sequence[ScriptedCall], first_id: int, fragments: str | int) -> list[list[CallDelta]]:
    """The fragments of ``calls``; each inner list arrives at once.

    Args:
        first_id: number of the first call of this response in the session, for made-up provider ids.
        fragments: ``whole``, ``interleaved``, or a number of bytes.
    """
    cut: list[list[CallDelta]] = []
    for index, call in enumerate(calls):
        text = call.raw if call.raw is not None else _to_json(call.args)
        provider_id = call.id or f"call_{first_id + index}"
        if fragments == "whole":
            cut.append([CallDelta(index, provider_id, call.tool, text)])
            continue
        size = INTERLEAVED_BYTES if fragments == "interleaved" else int(fragments)
        pieces = [text[at : at + size] for at in range(0, len(text), size)] or [""]
        cut.append(
            [CallDelta(index, provider_id, call.tool, pieces[0]), *(CallDelta(index, arguments=p) for p in pieces[1:])]
        )
    if fragments != "interleaved":
        return [[delta] for each in cut for delta in each]
    mixed: list[list[CallDelta]] = []
    for turn in range(max((len(each) for each in cut), default=0)):
        mixed += [[each[turn]] for each in cut if turn < len(each)]
    return mixed


class Playback:
    """Plays one response into its effect: the first delta after ``first_us``, one more every ``every_us``."""

    __slots__ = ("_at", "_clock", "_deltas", "_effect", "_end", "_every_us", "_failure", "_timer")

    def __init__(
        self,
        clock: Clock,
        effect: Effect,
        deltas: Sequence[Delta],
        first_us: int,
        every_us: int,
        end: StreamEnd,
        failure: str | None,
    ) -> None:
        self._clock = clock
        self._effect = effect
        self._deltas = deltas
        self._every_us = every_us
        self._end = end
        self._failure = failure
        self._at = 0
        self._timer: Timer = clock.call_in(first_us, Order.DELIVERY, self._step)

    def stop(self, _: Cause) -> None:
        """The request was cancelled: nothing more comes."""
        self._timer.cancel()

    def _step(self, _: object) -> None:
        effect, deltas, at = self._effect, self._deltas, self._at
        if at < len(deltas):
            self._at = at + 1
            effect.deliver(deltas[at])
        if at + 1 < len(deltas):
            self._timer = self._clock.call_in(self._every_us, Order.DELIVERY, self._step)
        elif self._failure is not None:
            effect.land(Outcome(Status.FAILED, self._failure))
        else:
            effect.deliver(self._end)
            effect.land(Outcome(Status.OK))
