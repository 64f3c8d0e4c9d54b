"""The TTS provider: turns streamed text into audio, one sentence after the other, each context on its own.

A sentence is synthesised once it is complete (the next one has begun, or no more text will come). The first audio of
a context comes after its time to first byte; a later sentence follows when the one before has been delivered. Audio
arrives ``speed`` times faster than it plays: a sentence comes whole with its first byte when that is 1 or more (the
playout can tell no difference), word by word when it is less, so that the playout can starve. Left out: keeping
contexts in order; a provider streams each as if it were alone, and the speech stage sorts it out.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from bargein.models.latency import Latency
from bargein.models.recordings import Recording
from bargein.models.sentences import split_sentences
from bargein.models.voice import speak
from bargein.pipelines.ports import Pcm
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.streams import Stream

__all__ = ["Piece", "ScriptedTts", "spoken"]


class Piece:
    """A stretch of a recording as the pipeline takes it (``ports.Speech``).

    Attributes:
        recording: what it is a stretch of; first: its first sample there.
    """

    __slots__ = ("first", "length", "recording", "words")

    def __init__(self, recording: Recording, first: int, last: int, words: tuple[tuple[str, int], ...]) -> None:
        self.recording = recording
        self.first = first
        self.length = last - first
        self.words = words

    def pcm(self) -> Pcm:
        """The samples, decoded or rendered on first use."""
        return self.recording.pcm()[self.first : self.first + self.length]


@lru_cache(maxsize=4096)
def spoken(voice: str, text: str) -> Piece:
    """``text`` said by ``voice``, whole."""
    recording = speak(voice, text)
    words = tuple([(word.text, word.end) for word in recording.words])
    return Piece(recording, 0, recording.length, words)


@lru_cache(maxsize=1024)
def _by_words(voice: str, text: str) -> tuple[Piece, ...]:
    recording = speak(voice, text)
    pieces, first = [], 0
    for word in recording.words:
        pieces.append(Piece(recording, first, word.end, ((word.text, word.end - first),)))
        first = word.end
    return tuple(pieces)


class ScriptedTts:
    """The provider of one session.

    Args:
        ttfb: from the first complete sentence of a context to its first audio.
        stream: the random stream that ``ttfb`` draws from.
        speed: how many times faster than it plays audio arrives.
        voice: whose fixtures are taken, or which plain voice speaks.

    Attributes:
        opened: utterances that the provider has heard of, in order; cancelled: those it was told to stop.
    """

    def __init__(self, clock: Clock, ttfb: Latency, stream: Stream, speed: float, voice: str) -> None:
        self._clock = clock
        self._ttfb = ttfb
        self._stream = stream
        self._speed = Fraction(str(speed))
        self._voice = voice
        self.opened: list[int] = []
        self.cancelled: list[int] = []

    def open(
        self, utterance: int, on_audio: Callable[[int, Piece], object], on_end: Callable[[int], object]
    ) -> _Context:
        """Open a context (``ports.Synthesizer``)."""
        self.opened.append(utterance)
        return _Context(self, utterance, on_audio, on_end)

    def first_byte_us(self) -> int | None:
        """The next time to first byte; ``None`` is never."""
        return self._ttfb.draw(self._stream)

    def arrival_us(self, samples: int) -> int:
        """How long ``samples`` samples take to arrive."""
        exact = samples_to_us(samples) / self._speed
        return -(-exact.numerator // exact.denominator)

    @property
    def slow(self) -> bool:
        """Whether audio arrives slower than it plays."""
        return self._speed < 1


class _Context:
    __slots__ = (
        "_buffer",
        "_busy",
        "_flushed",
        "_on_audio",
        "_on_end",
        "_ready",
        "_started",
        "_timer",
        "_tts",
        "_utterance",
    )

    def __init__(
        self,
        tts: ScriptedTts,
        utterance: int,
        on_audio: Callable[[int, Piece], object],
        on_end: Callable[[int], object],
    ) -> None:
        self._tts = tts
        self._utterance = utterance
        self._on_audio = on_audio
        self._on_end = on_end
        self._buffer = ""
        self._ready: list[str] = []
        self._flushed = False
        self._busy = False  # a sentence is being synthesised or delivered
        self._started = False
        self._timer: Timer | None = None

    def say(self, text: str) -> None:
        self._buffer += text
        sentences = split_sentences(self._buffer)
        if len(sentences) > 1:
            self._ready += sentences[:-1]
            self._buffer = sentences[-1]
            self._go_on()

    def flush(self) -> None:
        self._flushed = True
        if self._buffer:
            self._ready.append(self._buffer)
            self._buffer = ""
        self._go_on()

    def cancel(self) -> None:
        self._tts.cancelled.append(self._utterance)
        self._ready.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self, _: object = None) -> None:
        """Take up the next sentence, or end the context."""
        if self._busy:
            return
        clock = self._tts._clock
        if self._ready:
            self._busy = True
            sentence = self._ready.pop(0)
            if self._started:
                self._deliver(sentence)
                return
            self._started = True
            delay = self._tts.first_byte_us()
            if delay is not None:  # a provider that never answers leaves the context open
                self._timer = clock.call_in(delay, Order.DELIVERY, self._deliver, sentence)
        elif self._flushed:
            self._on_end(self._utterance)

    def _deliver(self, sentence: str) -> None:
        tts = self._tts
        if tts.slow:
            self._deliver_words(list(_by_words(tts._voice, sentence)))
            return
        piece = spoken(tts._voice, sentence)
        self._on_audio(self._utterance, piece)
        if self._flushed and not self._ready:
            self._busy = False
            self._on_end(self._utterance)
            return
        self._timer = tts._clock.call_in(tts.arrival_us(piece.length), Order.DELIVERY, self._free)

    def _deliver_words(self, pieces: list[Piece]) -> None:
        if not pieces:
            self._free()
            return
        piece = pieces.pop(0)
        self._on_audio(self._utterance, piece)
        if self._flushed and not self._ready and not pieces:
            self._busy = False
            self._on_end(self._utterance)
            return
        self._timer = self._tts._clock.call_in(
            self._tts.arrival_us(piece.length), Order.DELIVERY, self._deliver_words, pieces
        )

    def _free(self, _: object = None) -> None:
        self._busy = False
        self._go_on()
