"""What the pipeline needs from the world, as protocols.

A session is built with objects that fulfil these: models in a simulation, something else in somebody's test.
The pipeline never imports a model. Completions and tool calls do not appear here: they go through the effect bus.
Audio is mono, 16-bit, 16 kHz; positions are sample counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ClipStore",
    "EchoPath",
    "Edge",
    "Heard",
    "Pcm",
    "RequestRefused",
    "Room",
    "Sound",
    "Speech",
    "SpeechDetector",
    "Synthesis",
    "Synthesizer",
    "Transcriber",
]

Pcm = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The value of a completion that failed because the provider would not take the request: who, and why."""

    provider: str
    reason: str

    def __str__(self) -> str:
        return f"{self.provider} would refuse this request, because {self.reason}"


class Speech(Protocol):
    """Spoken audio with the places of its words.

    Attributes:
        length: in samples.
        words: text of each word with its leading space, and the sample at which its last sound has passed; joined
            they give what is said.
    """

    @property
    def length(self) -> int: ...
    @property
    def words(self) -> Sequence[tuple[str, int]]: ...
    def pcm(self) -> Pcm:
        """The samples, rendered when first asked for."""
        ...


class Synthesis(Protocol):
    """One TTS context that is open at the provider."""

    def say(self, text: str) -> None:
        """Append text."""

    def flush(self) -> None:
        """No more text will come; `Synthesizer.open`'s ``on_end`` follows its last audio."""

    def cancel(self) -> None:
        """Stop; audio that is still under way may arrive and is the stage's to drop."""


class Synthesizer(Protocol):
    """Opens TTS contexts; each delivers audio on its own, unaware of the others."""

    def open(
        self, utterance: int, on_audio: Callable[[int, Speech], object], on_end: Callable[[int], object]
    ) -> Synthesis:
        """Open a context for ``utterance``; its audio comes in pieces, in order, each with its words."""
        ...


class Transcriber(Protocol):
    """Turns stretches of caller audio into text."""

    def transcribe(
        self, segment: int, onset_us: int, end_us: int, on_final: Callable[[int, str, bool], object]
    ) -> None:
        """Transcribe what was said between two instants.

        ``on_final(segment, text, more)`` is called once or, with ``more`` true before the last, several times.
        """
        ...


class Edge(Protocol):
    """Speech started or stopped, decided at the end of a frame."""

    @property
    def kind(self) -> str:
        """``start`` or ``stop``."""
        ...

    @property
    def onset_frame(self) -> int:
        """For a start, its first voiced frame."""
        ...

    @property
    def last_frame(self) -> int:
        """For a stop, its last voiced frame."""
        ...


class SpeechDetector(Protocol):
    """The ear: turns sound into a level for each frame and decides on those; all faces give the same edges.

    A state is a tuple of plain numbers that begins with the next frame to be decided, ``next_frame``.
    """

    state: Any
    """What `push` goes on from; at first, silence from frame 0."""

    def hear(self, sounds: Sequence[Sound], room: Room | None, first_frame: int, frames: int) -> NDArray[np.int64]:
        """The level of each of ``frames`` frames from ``first_frame`` on, of everything that sounds in them."""
        ...

    def push(self, level: int) -> Edge | None:
        """Decide one frame, into ``state``."""
        ...

    def scan(self, levels: NDArray[np.int64], state: Any) -> tuple[Sequence[tuple[int, Edge]], Any]:
        """Decide many frames at once: (deciding frame, edge) in order, and the state after them."""
        ...

    def settle(self, levels: NDArray[np.int64], state: Any, upto: int) -> tuple[Sequence[tuple[int, Edge]], Any]:
        """The same up to frame ``upto``, with silence after ``levels``."""
        ...

    def at_rest(self, state: Any) -> bool:
        """Whether the state is that of silence."""
        ...

    def edges_of(self, line: Heard, first_sample: int) -> Sequence[tuple[int, Edge]]:
        """The edges of one line in a quiet room; kept by content, for when it is said again."""
        ...


class Sound(Protocol):
    """Something that sounds at the microphone, from one sample of the session to another.

    Attributes:
        line: the caller's line that it is, or ``None`` for the bot's echo.
    """

    start: int
    stop: int
    line: Heard | None

    def pcm(self) -> Pcm:
        """Its samples from ``start`` on; those at ``stop`` and later are not heard."""
        ...


class Heard(Protocol):
    """A caller's line as audio."""

    @property
    def length(self) -> int: ...
    @property
    def content(self) -> str:
        """Equal keys mean equal samples."""
        ...

    def pcm(self) -> Pcm: ...


class Room(Protocol):
    """The sound that is there without anybody speaking: noise at the microphone."""

    def slice(self, first_sample: int, count: int) -> Pcm:
        """``count`` samples from the session's sample ``first_sample``."""
        ...


class EchoPath(Protocol):
    """How the bot's own sound comes back into the microphone."""

    @property
    def delay_samples(self) -> int: ...
    def returned(self, pcm: Pcm) -> Pcm:
        """What comes back of ``pcm``."""
        ...


class ClipStore(Protocol):
    """Clips rendered beforehand, by key; it does not change during a session."""

    def has(self, key: str) -> bool:
        """Whether the clip can be had."""
        ...

    def clip(self, key: str) -> tuple[Speech, int] | None:
        """The clip and its sample rate, or ``None``."""
        ...
