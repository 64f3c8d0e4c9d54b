"""The playout book: which sample that was heard belongs to which words of which message.

The TTS stage enters each utterance with its text, the playout advances it, the interruption reads from it what
was heard. An utterance is one TTS context and belongs to one response of one epoch; a response is known by its
ordinal within the session. Left out: moving audio (``playout``) and editing the context (``session``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bargein.pipelines.ports import Speech

__all__ = ["PlayoutBook", "Source", "Utterance", "UtteranceState"]


class Source(StrEnum):
    """What an utterance is for."""

    ANSWER = "answer"
    FILLER = "filler"
    FALLBACK = "fallback"


class UtteranceState(StrEnum):
    """Where an utterance stands."""

    OPEN = "open"
    PLAYING = "playing"
    ENDED = "ended"
    CUT = "cut"
    LOST = "lost"
    """It was dropped before any of it was heard."""


@dataclass(slots=True, eq=False)
class Utterance:
    """What one TTS context says.

    Attributes:
        pieces: audio received, in order, each with its offset in the utterance.
        words: word texts and their end offsets, as far as received.
        spans: where it was heard: (session sample, offset in the utterance, samples).
        heard: samples that have left the playout.

    Invariant: ``0 <= heard <= received``, and ``heard`` is the sum of the spans once it is over.
    """

    number: int
    epoch: int
    ordinal: int
    source: Source
    clip: str | None = None
    text: list[str] = field(default_factory=list)
    pieces: list[tuple[int, Speech]] = field(default_factory=list)
    words: list[tuple[str, int]] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    received: int = 0
    heard: int = 0
    complete: bool = False
    state: UtteranceState = UtteranceState.OPEN

    @property
    def over(self) -> bool:
        """Whether nothing more of it will be heard."""
        return self.state not in (UtteranceState.OPEN, UtteranceState.PLAYING)

    @property
    def sent_text(self) -> str:
        """The text that was given to it to say."""
        return "".join(self.text)

    def receive(self, speech: Speech) -> None:
        """Append a piece of audio."""
        base = self.received
        self.pieces.append((base, speech))
        self.words += [(word, base + end) for word, end in speech.words] if base else speech.words
        self.received = base + speech.length

    def heard_text(self) -> str:
        """The words whose last sample was heard."""
        if self.state is UtteranceState.ENDED:
            return self.sent_text
        heard = self.heard
        return "".join([word for word, end in self.words if end <= heard])


class PlayoutBook:
    """All utterances of a session, in the order in which they were opened."""

    __slots__ = ("_by_ordinal", "_message_of", "_next_ordinal", "cues", "utterances")

    def __init__(self) -> None:
        self.utterances: list[Utterance] = []
        self.cues: dict[int, str] = {}
        self._by_ordinal: dict[int, Utterance] = {}
        self._message_of: dict[int, int] = {}
        self._next_ordinal = 0

    def next_ordinal(self) -> int:
        """The ordinal for a new response (the round key of tool contract, "Filler policy")."""
        ordinal = self._next_ordinal
        self._next_ordinal = ordinal + 1
        return ordinal

    def cue_clip(self, ordinal: int, clip: str) -> None:
        """Announce that the response ``ordinal`` can be said by ``clip``."""
        self.cues[ordinal] = clip

    def register(self, epoch: int, ordinal: int, source: Source, clip: str | None = None) -> Utterance:
        """Enter a new utterance."""
        utterance = Utterance(len(self.utterances), epoch, ordinal, source, clip)
        self.utterances.append(utterance)
        self._by_ordinal[ordinal] = utterance
        return utterance

    def of_response(self, ordinal: int) -> Utterance | None:
        """The utterance that says the response, if one was opened."""
        return self._by_ordinal.get(ordinal)

    def heard_of_response(self, ordinal: int) -> str:
        """What was heard of the response; empty when nothing was."""
        utterance = self._by_ordinal.get(ordinal)
        return "" if utterance is None else utterance.heard_text()

    def tie(self, ordinal: int, message: int) -> None:
        """The response is this message of the context; truncation will look here."""
        self._message_of[ordinal] = message

    def ties(self) -> list[tuple[int, int]]:
        """(ordinal, message) for each response that is in the context, in order."""
        return list(self._message_of.items())

    def untie(self, ordinal: int) -> None:
        """The message will not change any more."""
        self._message_of.pop(ordinal, None)
