"""Playout: paces audio to the caller's ear, publishes words as they are heard, and cuts on a frame boundary.

The TTS stage feeds utterances; they are played in the order in which their first audio came. An utterance begins
on the frame grid and runs sample by sample; a word counts as heard when its last sample has left. An interruption
cuts at the next frame boundary: what is audible is cut there, what waits is never heard.

Two modes give the same timeline: by spans (one timer for the next word end or utterance end) and per frame, the
reference, which is driven by one tick a frame. Ties: a word or an utterance that ends on the boundary of a cut was
heard, whatever order the events of that instant are taken in. Left out: which audio should come (``tts_stage``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from bargein.pipelines.playout_book import Utterance, UtteranceState
from bargein.pipelines.ports import Pcm, Speech
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import FRAME_SAMPLES, FRAME_US, next_boundary_us, samples_to_us, us_to_samples
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Playout"]


class Playout:
    """The way to the caller's ear.

    Args:
        on_over: called with each utterance of which nothing more will be heard.
        on_sound: called with (session sample, samples) of what is about to be heard; the echo path listens here.
        on_silence: called with the session sample from which on what was announced is not heard after all.
        on_audible: called when audio is queued where nothing was.
        per_frame: the reference mode.

    Invariant: at any instant at most one utterance is audible.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        on_over: Callable[[Utterance], object],
        on_sound: Callable[[int, Pcm], object] | None = None,
        on_silence: Callable[[int], object] | None = None,
        on_audible: Callable[[], object] | None = None,
        per_frame: bool = False,
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._on_over = on_over
        self._on_sound = on_sound
        self._on_silence = on_silence
        self._on_audible = on_audible
        self._per_frame = per_frame
        self._queue: deque[Utterance] = deque()
        self._current: Utterance | None = None
        self._span_start = 0  # session sample at which the running span began
        self._span_offset = 0  # its offset in the utterance
        self._word = 0  # the next word to be published
        self._starved = False
        self._timer: Timer | None = None
        self._cut_timer: Timer | None = None
        self.first_sound_us: int | None = None

    # -- state --------------------------------------------------------------------------------------------

    @property
    def audible(self) -> bool:
        """Whether something is heard or queued to be heard."""
        return self._current is not None or bool(self._queue)

    # -- feeding ------------------------------------------------------------------------------------------

    def feed(self, utterance: Utterance, speech: Speech) -> None:
        """Append audio to an utterance; the first piece puts it in the queue."""
        first = not utterance.pieces
        utterance.receive(speech)
        if first:
            self._queue.append(utterance)
            if self._current is None and len(self._queue) == 1:
                self._start_at(next_boundary_us(self._clock.now))
                if self._on_audible is not None:
                    self._on_audible()
        elif utterance is self._current:
            if self._starved:
                if self._timer is None:
                    self._start_at(next_boundary_us(self._clock.now))
            else:
                if self._on_sound is not None:
                    offset, piece = utterance.pieces[-1]
                    self._on_sound(self._span_start + offset - self._span_offset, piece.pcm())
                if not self._per_frame:
                    self._arm()

    def finish(self, utterance: Utterance) -> None:
        """No more audio will come for the utterance."""
        utterance.complete = True
        if utterance is self._current:
            if self._starved and utterance.heard >= utterance.received:
                self._end(utterance)
        elif not utterance.pieces and not utterance.over:
            self._lose(utterance)

    def _lose(self, utterance: Utterance) -> None:
        utterance.state = UtteranceState.LOST
        self._on_over(utterance)

    # -- playing ------------------------------------------------------------------------------------------

    def _start_at(self, at_us: int) -> None:
        if self._cut_timer is None:  # what would begin on the boundary of a cut is not begun
            self._timer = self._clock.call_at(at_us, Order.PLAYOUT, self._start)

    def _start(self, _: object) -> None:
        """Begin the next utterance, or go on with the one that starved."""
        self._timer = None
        utterance = self._current
        at_us = self._clock.now
        at_sample = us_to_samples(at_us)
        if utterance is None:
            utterance = self._current = self._queue.popleft()
            utterance.state = UtteranceState.PLAYING
            self._word = 0
            self._timeline.add("playout.started", utterance.epoch, utterance.number, utterance.source, at_sample)
            if self.first_sound_us is None:
                self.first_sound_us = at_us
        else:
            self._starved = False
            self._timeline.add("playout.resumed", utterance.epoch, utterance.number, at_sample)
        self._span_start = at_sample
        self._span_offset = utterance.heard
        if self._on_sound is not None:
            for offset, piece in utterance.pieces:
                if offset >= self._span_offset:
                    self._on_sound(at_sample + offset - self._span_offset, piece.pcm())
        if self._per_frame:
            self._tick(None)
        else:
            self._arm()

    def _instant_of(self, offset: int) -> int:
        """When the sample before ``offset`` has left."""
        return samples_to_us(self._span_start + offset - self._span_offset)

    def _arm(self) -> None:
        """Set the timer for the next word's end, or for the end of what was received."""
        utterance = self._current
        assert utterance is not None
        words = utterance.words
        target = words[self._word][1] if self._word < len(words) else utterance.received
        if self._timer is not None:
            self._timer.cancel()
        at_us = samples_to_us(self._span_start + target - self._span_offset)
        self._timer = self._clock.call_at(at_us, Order.PLAYOUT, self._advance, target)

    def _advance(self, target: int) -> None:
        utterance = self._current
        assert utterance is not None
        self._timer = None
        utterance.heard = target
        self._publish(utterance)
        if target < utterance.received or self._word < len(utterance.words):
            self._arm()
        else:
            self._run_out(utterance)

    def _publish(self, utterance: Utterance) -> None:
        """Announce the words of which the last sample has left."""
        words = utterance.words
        at = self._word
        while at < len(words) and words[at][1] <= utterance.heard:
            self._timeline.add("playout.word", utterance.epoch, utterance.number, at, words[at][0])
            at += 1
        self._word = at

    def _run_out(self, utterance: Utterance) -> None:
        """Everything received was heard: the utterance is over, or the next piece is late."""
        self._timer = None
        if utterance.complete:
            self._end(utterance)
        else:
            self._close_span(utterance)
            self._starved = True
            if self._cut_timer is None or self._cut_timer.at_us > self._clock.now:  # else the cut tells
                self._timeline.add("playout.starved", utterance.epoch, utterance.number, utterance.heard)

    def _close_span(self, utterance: Utterance) -> None:
        count = utterance.heard - self._span_offset
        if count:
            utterance.spans.append((self._span_start, self._span_offset, count))
        self._span_start += count
        self._span_offset = utterance.heard

    def _end(self, utterance: Utterance) -> None:
        if not self._starved:
            self._close_span(utterance)
        self._starved = False
        self._current = None
        utterance.state = UtteranceState.ENDED
        self._timeline.add("playout.ended", utterance.epoch, utterance.number, utterance.heard)
        if self._queue:
            self._start_at(next_boundary_us(self._clock.now))
        self._on_over(utterance)

    # -- the reference mode -------------------------------------------------------------------------------

    def _tick(self, _: object) -> None:
        """One frame: publish what ends in it at its exact instant, then re-arm for the next."""
        utterance = self._current
        if utterance is None or self._starved:
            return
        first = self._span_offset + us_to_samples(self._clock.now) - self._span_start
        last = min(first + FRAME_SAMPLES, utterance.received)
        self._time_words(utterance, last)
        if last == utterance.received:
            self._timer = self._clock.call_at(self._instant_of(last), Order.PLAYOUT, self._frame_last, last)
        else:
            self._timer = self._clock.call_in(FRAME_US, Order.PLAYOUT, self._tick)

    def _time_words(self, utterance: Utterance, last: int) -> None:
        """Publish the words that end by ``last``; those at the end of what was received come with that end."""
        words = utterance.words
        for word in range(self._word, len(words)):
            end = words[word][1]
            if end > last or end == utterance.received:
                break
            self._clock.call_at(self._instant_of(end), Order.PLAYOUT, self._frame_word, utterance)

    def _frame_word(self, utterance: Utterance) -> None:
        if utterance is self._current and self._word < len(utterance.words):
            utterance.heard = max(utterance.heard, utterance.words[self._word][1])
            self._publish(utterance)

    def _frame_last(self, target: int) -> None:
        utterance = self._current
        assert utterance is not None
        if target < utterance.received:  # more has come while this frame was playing
            utterance.heard = target
            self._resume_tick(utterance)
            return
        utterance.heard = target
        self._publish(utterance)
        self._run_out(utterance)

    def _resume_tick(self, utterance: Utterance) -> None:
        """Audio ended inside a frame and the next piece has come: catch up, then tick on the grid again."""
        self._publish(utterance)
        boundary = next_boundary_us(self._clock.now)
        upto = self._span_offset + us_to_samples(boundary) - self._span_start
        self._time_words(utterance, upto)
        if utterance.received <= upto:
            self._timer = self._clock.call_at(
                self._instant_of(utterance.received), Order.PLAYOUT, self._frame_last, utterance.received
            )
        else:
            self._timer = self._clock.call_at(boundary, Order.PLAYOUT, self._tick)

    # -- cutting ------------------------------------------------------------------------------------------

    def cut(self, on_cut: Callable[[], object]) -> None:
        """Silence everything at the next frame boundary, then call ``on_cut``; at once if nothing is queued.

        What is audible is heard up to the boundary; what is queued is not heard at all.
        """
        if self._current is None and not self._queue:
            on_cut()
            return
        if self._timer is not None and (self._current is None or self._starved):
            self._timer.cancel()  # a beginning on that boundary
            self._timer = None
        boundary = next_boundary_us(self._clock.now)
        self._cut_timer = self._clock.call_at(boundary, Order.PLAYOUT, self._cut, on_cut)

    def _cut(self, on_cut: Callable[[], object]) -> None:
        self._cut_timer = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        boundary = us_to_samples(self._clock.now)
        utterance = self._current
        over: list[Utterance] = []
        if utterance is not None:
            if not self._starved:
                left = self._span_offset + boundary - self._span_start
                utterance.heard = min(left, utterance.received)
                self._publish(utterance)
                self._close_span(utterance)
            whole = utterance.complete and utterance.heard == utterance.received
            self._starved = False
            self._current = None
            if whole:
                utterance.state = UtteranceState.ENDED
                self._timeline.add("playout.ended", utterance.epoch, utterance.number, utterance.heard)
            else:
                utterance.state = UtteranceState.CUT
                self._record_cut(utterance)
            over.append(utterance)
        waiting, self._queue = self._queue, deque()
        for queued in waiting:
            queued.state = UtteranceState.CUT
            self._record_cut(queued)
            over.append(queued)
        if self._on_silence is not None:
            self._on_silence(boundary)
        for gone in over:
            self._on_over(gone)
        on_cut()

    def _record_cut(self, utterance: Utterance) -> None:
        self._timeline.add("playout.cut", utterance.epoch, utterance.number, utterance.heard, utterance.received)
