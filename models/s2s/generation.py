"""What a live provider sends of one response, and when: audio word by word faster than it plays, then its calls.

Built from a round of the script, the same that a text model streams. Left out: the conversation it comes from
(``server``).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from bargein.models.llm_script import RoundPlan
from bargein.models.llm_stream import call_deltas
from bargein.models.sentences import split_sentences
from bargein.models.tts import Piece
from bargein.models.voice import speak
from bargein.pipelines.agent.live import AudioDelta, CallReady, ResponseEnded
from bargein.sim.kernel.frames import samples_to_us

__all__ = ["Step", "steps_of"]

Step = tuple[int, AudioDelta | CallReady | ResponseEnded]
"""An event, with its delay after the one before it."""


@lru_cache(maxsize=1024)
def _pieces(voice: str, text: str) -> tuple[tuple[Piece, str], ...]:
    """``text`` in pieces of one word, each with the silence before it."""
    pieces = []
    for sentence in split_sentences(text):
        recording, first = speak(voice, sentence), 0
        for word in recording.words:
            pieces.append((Piece(recording, first, word.end, ((word.text, word.end - first),)), word.text))
            first = word.end
    return tuple(pieces)


def steps_of(
    plan: RoundPlan,
    response: str,
    *,
    voice: str,
    speed: Fraction,
    first_us: int,
    first_call: int,
    calls_last: bool,
) -> list[Step]:
    """The events of a response, in order.

    Args:
        speed: how many times faster than it plays audio comes.
        first_us: from the request to the first of them.
        first_call: number of its first call in the session, for made-up ids.
        calls_last: whether calls end what is said, also where the script says something after them.
    """
    steps: list[Step] = []
    gap_us = first_us

    def say(text: str, item: str) -> None:
        nonlocal gap_us
        for piece, word in _pieces(voice, text):
            steps.append((gap_us, AudioDelta(response, item, piece, word)))
            exact = samples_to_us(piece.length) / speed
            gap_us = -(-exact.numerator // exact.denominator)

    def call() -> None:
        nonlocal gap_us
        for (delta,) in call_deltas(plan.calls, first_call, "whole"):
            steps.append((gap_us, CallReady(response, delta.id or "", delta.name or "", delta.arguments)))
            gap_us = 0

    say(plan.text, f"{response}_item_1")
    if not calls_last:
        call()
    say(plan.text_after, f"{response}_item_2")
    if calls_last:
        call()
    failed = plan.error is not None
    ended = ResponseEnded(response, "failed" if failed else "completed", plan.error or "")
    steps.append((gap_us if not steps else 0, ended))
    return steps
