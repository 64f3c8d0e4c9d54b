"""The recogniser: what the caller said between two instants, some time after the detector saw its end.

It knows what the caller's lines say and where their words lie, and gives each word to exactly one final transcript.
A second, late final of the last words of a stretch is an option. Left out: misheard words; a line can name its own
transcript instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bargein.models.latency import Latency
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.streams import Stream

__all__ = ["LateWords", "ScriptedStt"]


@dataclass(frozen=True, slots=True)
class LateWords:
    """The last ``words`` words of each stretch come as a second final, ``after_us`` after the first."""

    after_us: int
    words: int


class ScriptedStt:
    """The recogniser of one session.

    Args:
        latency: from the moment the stretch is handed over to its final.
        stream: the random stream that ``latency`` draws from.
        late: the second final, if there is one.
    """

    def __init__(self, clock: Clock, latency: Latency, stream: Stream, late: LateWords | None = None) -> None:
        self._clock = clock
        self._latency = latency
        self._stream = stream
        self._late = late
        self._words: list[tuple[int, int, str]] = []  # (begin, end, text) in microseconds of the session
        self._next = 0

    def will_say(self, first_sample: int, words: list[tuple[str, int, int]]) -> None:
        """The caller begins a line: its words with the samples at which each begins and ends."""
        for at, (text, begin, end) in enumerate(words):
            spaced = text if at or text[:1].isspace() else f" {text}"  # a line may follow another in one stretch
            self._words.append((samples_to_us(first_sample + begin), samples_to_us(first_sample + end), spaced))

    def transcribe(
        self, segment: int, onset_us: int, end_us: int, on_final: Callable[[int, str, bool], object]
    ) -> None:
        """Transcribe a stretch (``ports.Transcriber``)."""
        words = self._take(onset_us, end_us)
        delay = self._latency.draw(self._stream)
        if delay is None:
            return
        held = self._late.words if self._late is not None else 0
        if self._late is None or len(words) <= held:
            self._send(delay, segment, words, False, on_final)
        else:
            self._send(delay, segment, words[:-held], True, on_final)
            self._send(delay + self._late.after_us, segment, words[-held:], False, on_final)

    def _send(
        self,
        delay: int,
        segment: int,
        words: list[str],
        more: bool,
        on_final: Callable[[int, str, bool], object],
    ) -> None:
        text = "".join(words).strip()
        self._clock.call_in(delay, Order.DELIVERY, lambda _: on_final(segment, text, more))

    def _take(self, onset_us: int, end_us: int) -> list[str]:
        """The words heard in a stretch; each word is taken once, what was too quiet to be noticed is lost."""
        taken = []
        while self._next < len(self._words) and self._words[self._next][0] < end_us:
            _, ends_at_us, text = self._words[self._next]
            if ends_at_us > onset_us:
                taken.append(text)
            self._next += 1
        return taken
