"""The provider's audio, as the speech stage takes it: an answer is spoken by what came in, the rest by a voice.

It stands where a synthesizer does, so that answers, fillers and clips keep their order in ``tts_stage`` and the playout
book knows every sample. Audio that comes before its context can be opened (a clip is still to be heard) waits here.
Left out: which responses are alive (``s2s``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bargein.pipelines.playout_book import PlayoutBook, Source, Utterance
from bargein.pipelines.ports import Speech, Synthesis, Synthesizer

__all__ = ["LiveSpeech", "LiveVoice"]


class LiveSpeech:
    """The audio of one response.

    Attributes:
        utterance: what it became for the playout, once a context was opened for it.
        items: provider items as ``[id, first sample, samples received]``, in order.
        received: samples in all.

    Invariant: each item begins at the sample where the one before it ended, so that positions count from its own 0.
    """

    __slots__ = ("_on_audio", "_waiting", "items", "received", "utterance")

    def __init__(self) -> None:
        self.utterance: Utterance | None = None
        self.items: list[tuple[str, int, int]] = []
        self.received = 0
        self._on_audio: Callable[[Speech], object] | None = None
        self._waiting: deque[Speech] = deque()

    def receive(self, item: str, speech: Speech) -> None:
        """Take in a delta."""
        if self.items and self.items[-1][0] == item:
            _, first, count = self.items[-1]
            self.items[-1] = (item, first, count + speech.length)
        else:
            self.items.append((item, self.received, speech.length))
        self.received += speech.length
        self._waiting.append(speech)
        self.pump()

    def open(self, utterance: Utterance, on_audio: Callable[[Speech], object]) -> None:
        """A context stands open for it; what has waited goes with the next text."""
        self.utterance = utterance
        self._on_audio = on_audio

    def pump(self) -> None:
        """Pass on what has come."""
        while self._on_audio is not None and self._waiting:
            self._on_audio(self._waiting.popleft())

    def close(self) -> None:
        """Nothing more of it is passed on."""
        self._on_audio = None
        self._waiting.clear()

    def heard_of_items(self) -> list[tuple[str, int, int]]:
        """``(item, samples heard, samples received)`` for each item; never more heard than received."""
        heard = 0 if self.utterance is None else self.utterance.heard
        return [(item, min(max(heard - first, 0), count), count) for item, first, count in self.items]


class LiveVoice:
    """Opens contexts (``ports.Synthesizer``).

    Args:
        voice: says what the provider does not: fillers and the fallback.
    """

    def __init__(self, book: PlayoutBook, voice: Synthesizer) -> None:
        self._book = book
        self._voice = voice
        self._coming: deque[LiveSpeech] = deque()  # begun to come in, and no context opened yet

    def announce(self, speech: LiveSpeech) -> None:
        """The next answer whose context will be opened is this one."""
        self._coming.append(speech)

    def drop(self) -> None:
        """What has no context yet will not get one: its epoch is over."""
        for speech in self._coming:
            speech.close()
        self._coming.clear()

    def open(
        self, utterance: int, on_audio: Callable[[int, Speech], object], on_end: Callable[[int], object]
    ) -> Synthesis:
        """Open a context: the oldest answer that has none, or the voice's own."""
        entry = self._book.utterances[utterance]
        if entry.source is not Source.ANSWER:
            return self._voice.open(utterance, on_audio, on_end)
        speech = self._coming.popleft()
        speech.open(entry, lambda piece: on_audio(utterance, piece))
        return _LiveContext(speech, lambda: on_end(utterance))


class _LiveContext:
    """The context of an answer: text only tells that it is open, the audio comes from the provider."""

    __slots__ = ("_on_end", "_speech")

    def __init__(self, speech: LiveSpeech, on_end: Callable[[], object]) -> None:
        self._speech = speech
        self._on_end = on_end

    def say(self, text: str) -> None:
        self._speech.pump()

    def flush(self) -> None:
        """The response is complete, its audio with it."""
        self._speech.pump()
        self._on_end()

    def cancel(self) -> None:
        self._speech.close()
