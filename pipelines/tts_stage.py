"""The speech stage: opens a TTS context for each response, keeps clips and answers in order, drops what is stale.

The runner puts text into the inbox; audio goes on to the playout. Each response is one context. A response that
was cued as a clip is never sent to the provider: its clip waits in a bounded queue until everything before it has
been heard. While a clip waits, the next provider context is not opened, because a provider streams its contexts
independently and the answer's audio would overtake the clip (tool contract, "Clip playback"). The provider's own
contexts reach the playout in the order in which they were opened.

Ties: audio that arrives on the instant of an interruption was delivered before it and is cut with the rest.
Left out: when to speak (``llm_runner``) and how long (``playout``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from bargein.pipelines.playout import Playout
from bargein.pipelines.playout_book import PlayoutBook, Source, Utterance, UtteranceState
from bargein.pipelines.ports import ClipStore, Speech, Synthesis, Synthesizer
from bargein.pipelines.settings import TtsSettings
from bargein.sim.kernel.channel import Channel
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import SAMPLE_RATE_HZ
from bargein.sim.kernel.timeline import Timeline

__all__ = ["SpeechItem", "TtsStage", "TtsStats"]

SpeechItem = tuple[int, int, Source, str | None]
"""What the runner puts in: (epoch, ordinal, source, text); ``None`` for the text ends the response."""


@dataclass(slots=True)
class TtsStats:
    """Counters of the stage (tool contract, "Clip playback")."""

    clip_fallbacks: int = 0
    clips_dropped: int = 0
    clip_waits: int = 0


@dataclass(slots=True, eq=False)
class _Context:
    """An utterance on its way: at the provider, or as a clip."""

    utterance: Utterance
    synthesis: Synthesis | None
    clip: Speech | None = None
    held: deque[Speech] | None = None  # audio that came before its turn
    ended: bool = False


class TtsStage:
    """Text in, audio out, in order.

    Args:
        synthesizer: the provider.
        clips: pre-rendered audio, or ``None`` where there is no store.
        on_idle: called whenever the stage may have come to rest.

    Invariant: contexts leave the ledger in the order in which they entered it.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        book: PlayoutBook,
        playout: Playout,
        synthesizer: Synthesizer,
        clips: ClipStore | None,
        settings: TtsSettings,
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._book = book
        self._playout = playout
        self._synthesizer = synthesizer
        self._clips = clips
        self._settings = settings
        self._on_idle = on_idle
        self._ledger: dict[int, _Context] = {}
        self._clip_queue: deque[_Context] = deque()
        self._speaking: dict[int, _Context] = {}  # by ordinal, while text still comes
        self._waiting: SpeechItem | None = None
        self._wait_timer: Timer | None = None
        self._live_epoch = 0
        self.stats = TtsStats()
        self.inbox: Channel[SpeechItem] = Channel(clock, "speech", settings.inbox)
        self.inbox.listen(self._take)

    @property
    def idle(self) -> bool:
        """Whether nothing is being said, synthesised or held back."""
        return not self._ledger and self._waiting is None and not len(self.inbox)

    def waits(self) -> list[str]:
        """What is waited for, in words; the report of a stuck session shows it."""
        late = [each.utterance.number for each in self._ledger.values() if not each.utterance.complete]
        return [f"utterance {number} waits for its audio" for number in late]

    def adopt(self, settings: TtsSettings, clips: ClipStore | None) -> None:
        """Keep to other bounds and take clips from another store, from now on."""
        self._settings = settings
        self._clips = clips
        self.inbox.capacity = settings.inbox

    # -- text ---------------------------------------------------------------------------------------------

    def _take(self, item: SpeechItem) -> None:
        epoch, ordinal, _, text = item
        if epoch < self._live_epoch:
            return
        context = self._speaking.get(ordinal)
        if context is None:
            if text is None:
                return  # a response of which no text came
            context = self._open(item)
            if context is None:
                return
        if text is None:
            self._flush(context)
        else:
            context.utterance.text.append(text)
            if context.synthesis is not None:
                context.synthesis.say(text)

    def _open(self, item: SpeechItem) -> _Context | None:
        """Open the context of a response at its first text; ``None`` when it has to wait."""
        epoch, ordinal, source, _ = item
        clip = self._playable_clip(epoch, ordinal)
        if clip is None and self._must_wait():
            self._wait(item)
            return None
        return self._enter(epoch, ordinal, source, clip)

    def _enter(self, epoch: int, ordinal: int, source: Source, clip: Speech | None) -> _Context:
        """Open a context; a clip's is one that the provider never hears of."""
        key = self._book.cues.get(ordinal) if clip is not None else None
        utterance = self._book.register(epoch, ordinal, source, key)
        self._timeline.add("tts.opened", epoch, utterance.number, ordinal, source, key)
        context = _Context(utterance, None, clip)
        if clip is None:
            context.synthesis = self._synthesizer.open(utterance.number, self._on_audio, self._on_end)
        self._ledger[utterance.number] = context
        self._speaking[ordinal] = context
        return context

    def _playable_clip(self, epoch: int, ordinal: int) -> Speech | None:
        """The clip that was cued for a response, if it can be played; otherwise the provider speaks."""
        key = self._book.cues.get(ordinal)
        if key is None:
            return None
        reason = "no store"
        if self._clips is not None:
            found = self._clips.clip(key)
            if found is None:
                reason = "unknown clip"
            elif found[1] != SAMPLE_RATE_HZ:
                reason = "other sample rate"
            else:
                return found[0]
        self.stats.clip_fallbacks += 1
        self._timeline.add("clip.fallback", epoch, ordinal, key, reason)
        return None

    def _flush(self, context: _Context) -> None:
        """The response's text is complete."""
        utterance = context.utterance
        self._speaking.pop(utterance.ordinal, None)
        if context.synthesis is not None:
            context.synthesis.flush()
            return
        if len(self._clip_queue) >= self._settings.clip_queue:
            self.stats.clips_dropped += 1
            self._drop(context, "clip queue full")
            self._on_idle()
            return
        self._clip_queue.append(context)
        self._timeline.add("clip.queued", utterance.epoch, utterance.number, utterance.clip)
        self._advance()

    # -- waiting for a clip -------------------------------------------------------------------------------

    def _must_wait(self) -> bool:
        """Whether a provider context opened now could overtake a clip."""
        return bool(self._clip_queue)

    def _wait(self, item: SpeechItem) -> None:
        self._waiting = item
        self.stats.clip_waits += 1
        self._timeline.add("tts.waiting", item[0], item[1])
        self.inbox.pause()
        self._wait_timer = self._clock.call_in(self._settings.clip_wait_limit_us, Order.TIMER, self._end_wait)

    def _end_wait(self, _: object = None) -> None:
        """Go on with the response that was held back; its clip plays now, or the limit has passed."""
        item, self._waiting = self._waiting, None
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None
        if item is not None and item[0] >= self._live_epoch:
            context = self._enter(item[0], item[1], item[2], None)
            if item[3] is not None:
                context.utterance.text.append(item[3])
                assert context.synthesis is not None
                context.synthesis.say(item[3])
        self.inbox.resume()

    # -- audio --------------------------------------------------------------------------------------------

    def _on_audio(self, number: int, speech: Speech) -> None:
        context = self._ledger.get(number)
        if context is None:
            return  # an epoch that ended; the provider had not heard of it yet
        utterance = context.utterance
        if not utterance.received and not context.held:
            self._timeline.add("tts.first_byte", utterance.epoch, number)
        if self._has_turn(context):
            self._playout.feed(utterance, speech)
        else:
            if context.held is None:
                context.held = deque()
            context.held.append(speech)

    def _has_turn(self, context: _Context) -> bool:
        """Whether all contexts opened before have had all their audio."""
        for earlier in self._ledger.values():
            if earlier is context:
                return True
            if not earlier.utterance.complete:
                return False
        return True

    def _on_end(self, number: int) -> None:
        context = self._ledger.get(number)
        if context is None:
            return
        context.ended = True
        self._pass_on()

    def _pass_on(self) -> None:
        """Let audio that was held back go, as far as its turn has come."""
        for context in tuple(self._ledger.values()):
            utterance = context.utterance
            if utterance.complete or context.clip is not None or not self._has_turn(context):
                continue
            while context.held:
                self._playout.feed(utterance, context.held.popleft())
            if not context.ended:
                continue
            self._timeline.add("tts.ended", utterance.epoch, utterance.number, utterance.received)
            self._playout.finish(utterance)

    def _advance(self) -> None:
        """Play the next clip if everything before it has been heard."""
        while self._clip_queue:
            context = self._clip_queue[0]
            if next(iter(self._ledger.values())) is not context:
                return
            self._clip_queue.popleft()
            utterance = context.utterance
            assert context.clip is not None
            self._playout.feed(utterance, context.clip)
            self._timeline.add("tts.ended", utterance.epoch, utterance.number, utterance.received)
            self._playout.finish(utterance)
            self._pass_on()  # a context that did not wait for the clip any longer
        if self._waiting is not None and not self._clip_queue:
            self._end_wait()

    def on_over(self, utterance: Utterance) -> None:
        """An utterance will not be heard any further: what comes behind it may move up."""
        self._ledger.pop(utterance.number, None)
        if self._clip_queue:
            self._advance()
        self._on_idle()

    # -- interruption -------------------------------------------------------------------------------------

    def interrupt(self, live_epoch: int) -> None:
        """Drop everything of the epochs before ``live_epoch`` that the playout does not hold yet.

        Contexts at the provider are cancelled; a clip's context is not, since the provider never heard of it.
        """
        self._live_epoch = live_epoch
        self._speaking.clear()
        self.inbox.clear(keep=lambda item: item[0] >= live_epoch)
        self._clip_queue.clear()
        for context in tuple(self._ledger.values()):
            utterance = context.utterance
            if utterance.epoch >= live_epoch:
                continue
            if context.synthesis is not None and not context.ended:
                context.synthesis.cancel()
            if context.clip is not None and utterance.state is UtteranceState.OPEN:
                self.stats.clips_dropped += 1
            if not utterance.pieces:
                self._drop(context, "interrupted")
            else:
                del self._ledger[utterance.number]
        if self._waiting is not None:
            self._end_wait()

    def _drop(self, context: _Context, reason: str) -> None:
        utterance = context.utterance
        utterance.state = UtteranceState.LOST
        self._ledger.pop(utterance.number, None)
        self._timeline.add("tts.dropped", utterance.epoch, utterance.number, reason)
